//! Beyond the kernel: arrays of objects in front of slabs that slots own.
//!
//! A slab is frozen while a slot owns it. The owner keeps free objects in a
//! list of its own (`Desc::local`) and frees to it without atomics, even to a
//! full slab; others free runs of objects into the slab's word. A slab that its
//! owner found full has the wake bit: see `wake.rs`. Arrays go through the barn
//! only when most of what is in them belongs to others, and nobody waits for
//! the barn's lock.
//!
//! Lists of a row: `partial` holds owned slabs with free objects, `full` those
//! that had too few when last seen. An owned slab is on one of them or in hand.

use super::sheaves::reverse;
use crate::barn::Exchange;
use crate::core::Cx;
use crate::slab::{Chain, Links, NIL, NONE, WasFull, place};
use crate::stats::Stat;
use crate::sync::{AtomicU32, Ordering::Relaxed};

/// Objects of an array that are looked at to tell whose it is.
const SAMPLES: usize = 8;

/// Allocates one object when the main array is empty; 0 is failure.
#[cold]
#[inline(never)]
pub(crate) fn alloc(cx: Cx<'_>) -> usize {
    let row = cx.row;
    if !cx.ensure_sheaves() {
        cx.inc(Stat::AllocFailed);
        return 0;
    }
    if row.n.load(Relaxed) == 0 {
        if row.spare_n.load(Relaxed) > 0 {
            cx.swap_sheaves();
        } else if !get_from_barn(cx) {
            refill(cx);
        }
    }
    let object = cx.pop().unwrap_or(0);
    if object != 0 {
        cx.inc(Stat::AllocSlowpath);
    }
    object
}

/// Frees one object when the main array is full.
#[cold]
#[inline(never)]
pub(crate) fn free(cx: Cx<'_>, object: usize) {
    let row = cx.row;
    cx.inc(Stat::FreeSlowpath);
    if !cx.ensure_sheaves() {
        let (slab, object) = cx.core.locate(object);
        sink(cx, slab, Chain::one(object));
        return;
    }
    if cx.push(object) {
        return;
    }
    let capacity = cx.core.sheaf_capacity;
    if row.spare_n.load(Relaxed) == capacity && !put_in_barn(cx) {
        let spare = row.spare.load(Relaxed);
        cx.flush_array(spare, capacity, |slab, run| sink(cx, slab, run));
        row.spare_n.store(0, Relaxed);
    }
    cx.swap_sheaves();
    cx.push(object);
}

fn get_from_barn(cx: Cx<'_>) -> bool {
    let barn = &cx.part().barn;
    if barn.counts().0 == 0 {
        cx.inc(Stat::BarnGetFail);
        return false;
    }
    cx.add(Stat::AtomicOps, 2);
    let Exchange::Swapped(full) = barn.full_for_empty(cx.row.main.load(Relaxed), false) else {
        cx.inc(Stat::BarnGetFail);
        return false;
    };
    cx.inc(Stat::BarnGet);
    cx.row.main.store(full, Relaxed);
    cx.row.n.store(cx.core.sheaf_capacity, Relaxed);
    true
}

/// Exchanges the full spare array for an empty one, if most of it is foreign.
fn put_in_barn(cx: Cx<'_>) -> bool {
    let barn = &cx.part().barn;
    let spare = cx.row.spare.load(Relaxed);
    if barn.counts().0 as usize >= crate::barn::MAX_SHEAVES || !is_foreign(cx, spare) {
        return false;
    }
    cx.add(Stat::AtomicOps, 2);
    let empty = match barn.empty_for_full(spare, false) {
        Exchange::Swapped(empty) => empty,
        Exchange::Refused => {
            cx.inc(Stat::BarnPutFail);
            return false;
        }
        Exchange::NoEmpty => {
            let Some(empty) = cx.sheaf_alloc() else {
                return false;
            };
            if !barn.put_full(spare) {
                cx.sheaf_free(empty);
                cx.inc(Stat::BarnPutFail);
                return false;
            }
            empty
        }
    };
    cx.inc(Stat::BarnPut);
    cx.row.spare.store(empty, Relaxed);
    cx.row.spare_n.store(0, Relaxed);
    true
}

/// Whether more than half of the samples belong to other slots.
fn is_foreign(cx: Cx<'_>, sheaf: usize) -> bool {
    let places = cx.core.places(sheaf);
    let step = (places.len() / SAMPLES).max(1);
    let (mut seen, mut foreign) = (0, 0);
    for place in places.iter().step_by(step) {
        let (slab, _) = cx.core.locate(place.load(Relaxed));
        seen += 1;
        foreign += u32::from(!is_own(cx, slab));
    }
    foreign * 2 > seen
}

#[inline]
fn is_own(cx: Cx<'_>, slab: u32) -> bool {
    // Only this slot ever writes its own number there, so a stale value cannot mislead.
    cx.core.desc(slab).owner.load(Relaxed) == cx.owner()
}

/// Frees a run of objects of one slab.
pub(crate) fn sink(cx: Cx<'_>, slab: u32, run: Chain) {
    if !is_own(cx, slab) {
        cx.inc(Stat::RemoteFree);
        cx.slab_free(slab, run, WasFull::ToNode);
        return;
    }
    let desc = cx.core.desc(slab);
    let (head, len) = desc.local();
    // What an empty list begins with is of no meaning.
    let after = if len == 0 { NONE } else { head };
    cx.core.links(slab).set(run.tail, after);
    if len == 0 {
        desc.local_tail.store(u32::from(run.tail), Relaxed);
    }
    let len = len + run.len;
    desc.set_local(run.head, len);
    match desc.place.load(Relaxed) {
        place::FULL if len >= cx.core.wake => {
            unlink(cx, slab);
            stop_wake(cx, slab);
            link(cx, slab, place::PARTIAL);
        }
        _ => {}
    }
    if desc.place.load(Relaxed) == place::PARTIAL {
        give_up_if_spare(cx, slab);
    }
}

/// Gives a slab of the partial list up if it is all free and there are enough others.
fn give_up_if_spare(cx: Cx<'_>, slab: u32) {
    let desc = cx.core.desc(slab);
    let word = desc.load();
    if cx.row.nr_partial.load(Relaxed) > cx.core.min_partial.load(Relaxed)
        && desc.local().1 + word.free() >= word.objects()
    {
        unlink(cx, slab);
        give_up(cx, slab);
    }
}

/// Nobody needs to tell of a slab that the owner looks at anyway.
fn stop_wake(cx: Cx<'_>, slab: u32) {
    let desc = cx.core.desc(slab);
    if desc.load().wake() {
        desc.update(|old| Some(old.with_wake(false)));
        cx.inc(Stat::AtomicOps);
    }
}

/// Fills half of the main array, first objects of a slab to be popped first.
fn refill(cx: Cx<'_>) {
    let want = (cx.core.sheaf_capacity as u16 / 2).max(1);
    let mut got = 0;
    while got < want {
        let mut slab = cx.row.slab.load(Relaxed);
        if slab == NIL {
            slab = next_slab(cx);
            if slab == NIL {
                break;
            }
        }
        got += take_local(cx, slab, want - got);
        if got < want && !spent(cx, slab) {
            cx.row.slab.store(NIL, Relaxed);
        }
    }
    reverse(cx, got);
    cx.add(Stat::SheafRefill, u64::from(got));
}

/// Pushes up to `want` objects of the slab's own list to the main array.
fn take_local(cx: Cx<'_>, slab: u32, want: u16) -> u16 {
    let desc = cx.core.desc(slab);
    let links = cx.core.links(slab);
    let (mut object, len) = desc.local();
    let take = len.min(want);
    for n in 1..=take {
        cx.push(cx.core.address(slab, object));
        object = links.get(object);
        if object == NONE && n < len && cx.core.hard.is_some() {
            // A broken list: what is behind stays out of use.
            desc.set_whole_local(NONE, 0, NONE);
            return n;
        }
    }
    desc.set_local(object, len - take);
    take
}

/// The own list of the slab in hand is spent: takes what others freed, or puts
/// the slab on the list of full ones, to be told later. Tells whether there is more.
fn spent(cx: Cx<'_>, slab: u32) -> bool {
    let desc = cx.core.desc(slab);
    cx.inc(Stat::AtomicOps);
    if let Some((head, len)) = desc.take_or_ask(cx.core.wake) {
        cx.inc(Stat::AllocRefill);
        desc.set_whole_local(head, len, NONE);
        return true;
    }
    link(cx, slab, place::FULL);
    false
}

/// Finds another slab to allocate from; [`NIL`] if there is none to be had.
fn next_slab(cx: Cx<'_>) -> u32 {
    look_at_told(cx);
    let row = cx.row;
    loop {
        let slab = row.partial.load(Relaxed);
        if slab == NIL {
            break;
        }
        unlink(cx, slab);
        let desc = cx.core.desc(slab);
        if desc.local().1 == 0 {
            let (head, len) = desc.take_all(true);
            cx.inc(Stat::AtomicOps);
            if len > 0 {
                desc.set_whole_local(head, len, NONE);
            } else if !spent(cx, slab) {
                continue;
            }
        }
        cx.inc(Stat::CpuPartialAlloc);
        return take_in_hand(cx, slab);
    }
    let mut nodes = cx.node_order();
    let own = nodes.next().map_or(NIL, |node| adopt(cx, node));
    if own != NIL {
        return own;
    }
    if let Some((slab, all)) = cx.new_slab() {
        cx.inc(Stat::Freeze);
        let desc = cx.core.desc(slab);
        desc.set_whole_local(all.head, all.len, all.tail);
        own_it(cx, slab);
        return take_in_hand(cx, slab);
    }
    nodes
        .map(|node| adopt(cx, node))
        .find(|slab| *slab != NIL)
        .unwrap_or(NIL)
}

/// Slabs that others told of go to the list of partial ones.
fn look_at_told(cx: Cx<'_>) {
    let queue = &cx.row.queue.0;
    while !queue.is_empty() {
        cx.add(Stat::AtomicOps, 2);
        let Some(slab) = queue.take(&cx.core.engine.pages) else {
            return;
        };
        let desc = cx.core.desc(slab);
        if desc.place.load(Relaxed) == place::FULL && (desc.load().free() > 0 || desc.local().1 > 0)
        {
            unlink(cx, slab);
            stop_wake(cx, slab);
            link(cx, slab, place::PARTIAL);
            // Told at the threshold, but often all free by now.
            give_up_if_spare(cx, slab);
        }
    }
}

/// Takes a slab off a node's list and owns it.
fn adopt(cx: Cx<'_>, node: usize) -> u32 {
    let mut slab = [NIL];
    if cx.take_partial(node, &mut slab, 1, |_| ()) == 0 {
        return NIL;
    }
    let [slab] = slab;
    let (head, len) = cx.core.desc(slab).take_all(true);
    cx.core.desc(slab).set_whole_local(head, len, NONE);
    cx.inc(Stat::AllocFromPartial);
    cx.inc(Stat::Freeze);
    cx.add(Stat::AtomicOps, 3);
    own_it(cx, slab);
    take_in_hand(cx, slab)
}

fn own_it(cx: Cx<'_>, slab: u32) {
    cx.row
        .queue
        .0
        .adopt(&cx.core.engine.pages, slab, cx.owner());
}

fn take_in_hand(cx: Cx<'_>, slab: u32) -> u32 {
    cx.core.desc(slab).place.store(place::CURRENT, Relaxed);
    cx.row.slab.store(slab, Relaxed);
    slab
}

/// Lets go of an owned slab that is on no list.
fn give_up(cx: Cx<'_>, slab: u32) {
    let desc = cx.core.desc(slab);
    cx.row.queue.0.give_up(&cx.core.engine.pages, slab);
    cx.add(Stat::AtomicOps, 2);
    desc.place.store(place::NOWHERE, Relaxed);
    let own = cx.local_chain(slab);
    desc.set_whole_local(NONE, 0, NONE);
    cx.deactivate(slab, own);
}

/// Gives both arrays, the slab in hand and all owned slabs up.
pub(crate) fn flush(cx: Cx<'_>) {
    cx.drop_sheaves(|slab, run| sink(cx, slab, run));
    let slab = cx.row.slab.load(Relaxed);
    if slab != NIL {
        cx.inc(Stat::CpuslabFlush);
        cx.row.slab.store(NIL, Relaxed);
        give_up(cx, slab);
    }
    for list in [&cx.row.partial, &cx.row.full] {
        while list.load(Relaxed) != NIL {
            let slab = list.load(Relaxed);
            unlink(cx, slab);
            give_up(cx, slab);
        }
    }
}

fn list_of(cx: Cx<'_>, of: u32) -> (&AtomicU32, &AtomicU32) {
    if of == place::FULL {
        (&cx.row.full, &cx.row.nr_full)
    } else {
        (&cx.row.partial, &cx.row.nr_partial)
    }
}

/// Puts an owned slab on one of the row's lists.
fn link(cx: Cx<'_>, slab: u32, of: u32) {
    let (list, count) = list_of(cx, of);
    let desc = cx.core.desc(slab);
    let first = list.load(Relaxed);
    desc.prev.store(NIL, Relaxed);
    desc.next.store(first, Relaxed);
    if first != NIL {
        cx.core.desc(first).prev.store(slab, Relaxed);
    }
    list.store(slab, Relaxed);
    count.store(count.load(Relaxed) + 1, Relaxed);
    desc.place.store(of, Relaxed);
}

/// Takes an owned slab off its list.
fn unlink(cx: Cx<'_>, slab: u32) {
    let desc = cx.core.desc(slab);
    let (list, count) = list_of(cx, desc.place.load(Relaxed));
    let (prev, next) = (desc.prev.load(Relaxed), desc.next.load(Relaxed));
    match prev {
        NIL => list.store(next, Relaxed),
        _ => cx.core.desc(prev).next.store(next, Relaxed),
    }
    if next != NIL {
        cx.core.desc(next).prev.store(prev, Relaxed);
    }
    count.store(count.load(Relaxed) - 1, Relaxed);
    desc.place.store(place::NOWHERE, Relaxed);
}
