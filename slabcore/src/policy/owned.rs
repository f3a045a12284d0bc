//! The slabs that a slot owns: taken, listed, aged, given up.
//!
//! Lists of a row: `partial` holds owned slabs with free objects, `full` those
//! that had too few when last seen. An owned slab is on one of them or in hand.
//! Slabs that are all free stay with their owner until a row has not needed
//! them for a while: making a slab again costs more than the objects in it.

use crate::core::{Cx, Path};
use crate::engine;
use crate::policy::Policy;
use crate::slab::{NIL, place};
use crate::slot;
use crate::stats::Stat;
use crate::sync::{AtomicU32, Ordering::Relaxed};
use crate::sys::{self, PAGE};

/// Bytes of slabs with free objects that a row keeps in any case until they have aged.
const KEPT: usize = 16 << 20;
/// Milliseconds between two looks for slabs that were not needed in between.
const AGE_MS: u64 = 500;

#[inline]
pub(super) fn is_own(cx: Cx<'_>, slab: u32) -> bool {
    // Only this slot ever writes its own number there, so a stale value cannot mislead.
    cx.core.desc(slab).owner.load(Relaxed) == cx.owner()
}

/// Makes a frozen slab this slot's own; false if there is no memory for its bits.
pub(super) fn own_it(cx: Cx<'_>, slab: u32) -> bool {
    if !cx.own_begin(slab) {
        return false;
    }
    let queue = &cx.row.queue.0;
    queue.adopt(&cx.core.engine.pages, slab, cx.owner());
    true
}

/// Takes a slab off a node's list and owns it.
pub(super) fn adopt(cx: Cx<'_>, node: usize) -> u32 {
    let mut slab = [NIL];
    if cx.take_partial(node, &mut slab, 1, |_| ()) == 0 {
        return NIL;
    }
    let [slab] = slab;
    let desc = cx.core.desc(slab);
    desc.update(|old| Some(old.with_frozen(true)));
    cx.add(Stat::AtomicOps, 4);
    cx.inc(Stat::Freeze);
    if !own_it(cx, slab) {
        cx.deactivate(slab, None);
        return NIL;
    }
    let (head, len) = desc.take_all(true);
    cx.core.own_add_list(slab, head, len);
    cx.inc(Stat::AllocFromPartial);
    slab
}

/// A new slab of this slot's own.
pub(super) fn make(cx: Cx<'_>) -> u32 {
    let Some((slab, new)) = cx.new_slab() else {
        return NIL;
    };
    cx.inc(Stat::Freeze);
    if !own_it(cx, slab) {
        // Its objects are all free, but not linked: nobody must find it.
        cx.inc(Stat::Thaw);
        cx.discard(slab);
        return NIL;
    }
    let mut all = 0..new.len;
    cx.core.own_add(slab, || all.next());
    slab
}

/// Lets go of an owned slab that is on no list.
pub(super) fn give_up(cx: Cx<'_>, slab: u32) {
    let desc = cx.core.desc(slab);
    cx.row.queue.0.give_up(&cx.core.engine.pages, slab);
    cx.add(Stat::AtomicOps, 2);
    desc.place.store(place::NOWHERE, Relaxed);
    let own = cx.own_end(slab);
    cx.deactivate(slab, own);
}

/// Looks again at a slab that got free objects, own or foreign.
pub(super) fn settle(cx: Cx<'_>, slab: u32, enough: bool) {
    let desc = cx.core.desc(slab);
    if enough && desc.place.load(Relaxed) == place::FULL {
        unlink(cx, slab);
        // The wake bit stays: at worst the owner is told of a slab that it has found already.
        link(cx, slab, place::PARTIAL);
    }
    let most = (KEPT / (PAGE << cx.core.order)) as u32;
    let most = most.max(cx.core.min_partial.load(Relaxed));
    if cx.row.nr_partial.load(Relaxed) > most
        && desc.place.load(Relaxed) == place::PARTIAL
        && is_all_free(cx, slab)
    {
        unlink(cx, slab);
        give_up(cx, slab);
    }
}

fn is_all_free(cx: Cx<'_>, slab: u32) -> bool {
    let word = cx.core.desc(slab).load();
    cx.core.own_free(slab) + word.free() >= word.objects()
}

/// Slabs that others told of go to the list of partial ones.
pub(super) fn look_at_told(cx: Cx<'_>) {
    let queue = &cx.row.queue.0;
    while !queue.is_empty() {
        cx.add(Stat::AtomicOps, 2);
        let Some(slab) = queue.take(&cx.core.engine.pages) else {
            return;
        };
        let free = cx.core.desc(slab).load().free() > 0 || cx.core.own_free(slab) > 0;
        settle(cx, slab, free);
    }
}

/// Ages the slot's rows of all caches now and then: a row that slows down keeps
/// no slabs that it would need only if it went on as before.
pub(crate) fn age(cx: Cx<'_>) {
    let now = sys::coarse_ms();
    let last = cx.row.aged.load(Relaxed);
    if last != 0 && now.wrapping_sub(last) < AGE_MS {
        return;
    }
    age_row(cx, now);
    // The shared rows of other caches have locks of their own.
    if last != 0 && cx.slot != slot::SHARED {
        // Not waited for: whoever holds it may be allocating. Caches stay while it is held.
        engine::try_registry(|| {
            for core in cx.core.engine.caches() {
                let other = Cx::new(core, cx.slot);
                let last = other.row.aged.load(Relaxed);
                if last != 0 && now.wrapping_sub(last) >= AGE_MS {
                    let _changing = other.row.change();
                    age_row(other, now);
                }
            }
        });
    }
    cx.core.engine.pages.tick_if_due();
}

/// Gives up slabs that are all free and that were not needed since the last time.
fn age_row(cx: Cx<'_>, now: u64) {
    let row = cx.row;
    row.aged.store(now, Relaxed);
    if cx.core.path != Path::Policy(Policy::Hybrid) {
        return;
    }
    let min = cx.core.min_partial.load(Relaxed);
    let mut spare = row.low.load(Relaxed).saturating_sub(min);
    look_at_told(cx);
    let mut slab = row.partial.load(Relaxed);
    while slab != NIL && spare > 0 {
        let next = cx.core.desc(slab).next.load(Relaxed);
        if is_all_free(cx, slab) {
            unlink(cx, slab);
            give_up(cx, slab);
            spare -= 1;
        }
        slab = next;
    }
    row.low.store(row.nr_partial.load(Relaxed), Relaxed);
}

fn list_of(cx: Cx<'_>, of: u32) -> (&AtomicU32, &AtomicU32) {
    if of == place::FULL {
        (&cx.row.full, &cx.row.nr_full)
    } else {
        (&cx.row.partial, &cx.row.nr_partial)
    }
}

/// Puts an owned slab on one of the row's lists.
pub(super) fn link(cx: Cx<'_>, slab: u32, of: u32) {
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
pub(super) fn unlink(cx: Cx<'_>, slab: u32) {
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
    let left = count.load(Relaxed) - 1;
    count.store(left, Relaxed);
    if desc.place.load(Relaxed) == place::PARTIAL && left < cx.row.low.load(Relaxed) {
        cx.row.low.store(left, Relaxed);
    }
    desc.place.store(place::NOWHERE, Relaxed);
}
