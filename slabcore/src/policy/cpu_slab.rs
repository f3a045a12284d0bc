//! A slab in hand: its word's list is taken as a whole and popped without atomics.
//!
//! Source of truth: `___slab_alloc`, `put_cpu_partial`, `__put_partials` and
//! `deactivate_slab` of mm/slub.c in Linux 6.12. The slab in hand is frozen;
//! others free into its word, from which the slot takes all when its own list
//! is spent.

use crate::core::{CacheCore, Cx};
use crate::row::Row;
use crate::slab::{Chain, Links, NIL, NONE, WasFull};
use crate::slabs::After;
use crate::stats::Stat;
use crate::sync::Ordering::Relaxed;

/// Slabs taken from a node for the slot's list at most, at one time.
const MOST_AT_ONCE: usize = 32;

/// What the three policies differ in.
pub(crate) trait CpuSlab {
    /// What a free does to a slab that was full.
    const WAS_FULL: WasFull;
    /// Whether slots have a list of partial slabs.
    const SLOT_LIST: bool;
    /// Whether slabs on it are frozen.
    const LIST_IS_FROZEN: bool;
}

/// Pops an object of the own list, if there is one. The list belongs to this thread.
#[inline(always)]
pub(crate) fn alloc_fast(core: &CacheCore, row: &Row) -> Option<usize> {
    let object = row.head();
    (object != NONE).then(|| {
        let links = core.links_at(row.address(0, 0));
        row.set_head(links.get(object));
        row.inc(Stat::AllocFastpath);
        row.address(object, core.size)
    })
}

/// Pushes an object to the own list, if it is of the slab in hand.
#[inline(always)]
pub(crate) fn free_fast(core: &CacheCore, row: &Row, address: usize) -> bool {
    let Some(offset) = row.offset_in_hand(address) else {
        return false;
    };
    let object = ((offset * core.magic) >> 32) as u16;
    core.links_at(row.address(0, 0)).set(object, row.head());
    row.set_head(object);
    row.inc(Stat::FreeFastpath);
    true
}

/// Allocates objects for the places of `out`; gives their number.
pub(crate) fn alloc_bulk<P: CpuSlab>(cx: Cx<'_>, out: &mut [*mut u8]) -> usize {
    for (at, place) in out.iter_mut().enumerate() {
        let object = alloc::<P>(cx);
        if object == 0 {
            return at;
        }
        *place = object as *mut u8;
    }
    out.len()
}

/// Frees a run of objects of one slab.
pub(crate) fn sink<P: CpuSlab>(cx: Cx<'_>, slab: u32, run: Chain) {
    if slab == cx.row.slab.load(Relaxed) {
        cx.core.links(slab).set(run.tail, cx.row.head());
        cx.row.set_head(run.head);
        cx.add(Stat::FreeFastpath, u64::from(run.len));
        return;
    }
    cx.add(Stat::FreeSlowpath, u64::from(run.len));
    if let After::ToSlot(slab) = cx.slab_free(slab, run, P::WAS_FULL) {
        put_on_slot::<P>(cx, slab);
        cx.inc(Stat::CpuPartialFree);
    }
}

/// Allocates one object; 0 is failure.
pub(crate) fn alloc<P: CpuSlab>(cx: Cx<'_>) -> usize {
    if let Some(object) = alloc_fast(cx.core, cx.row) {
        return object;
    }
    if !refill::<P>(cx) {
        return 0;
    }
    cx.inc(Stat::AllocSlowpath);
    let object = cx.row.head();
    cx.row
        .set_head(cx.core.links_at(cx.row.address(0, 0)).get(object));
    cx.row.address(object, cx.core.size)
}

/// Frees one object.
pub(crate) fn free<P: CpuSlab>(cx: Cx<'_>, object: usize) {
    if free_fast(cx.core, cx.row, object) {
        return;
    }
    let (slab, object) = cx.core.locate(object);
    sink::<P>(cx, slab, Chain::one(object));
}

/// Makes a frozen slab the one in hand.
fn take_in_hand(cx: Cx<'_>, slab: u32, head: u16) {
    let objects = usize::from(cx.core.desc(slab).load().objects());
    let base = cx.core.engine.pages.address(slab);
    let bytes = objects * cx.core.size as usize;
    cx.row.set_in_hand(slab, base, bytes, head);
}

/// Fills the own list: from the slab in hand, the slot's list, the nodes, a new slab.
#[cold]
fn refill<P: CpuSlab>(cx: Cx<'_>) -> bool {
    let slab = cx.row.slab.load(Relaxed);
    if slab != NIL {
        cx.inc(Stat::AtomicOps);
        let word = cx.core.desc(slab).update(|old| {
            let new = old.emptied().with_frozen(old.head() != NONE);
            Some(new)
        });
        if let Some((old, _)) = word
            && old.head() != NONE
        {
            cx.inc(Stat::AllocRefill);
            cx.row.set_head(old.head());
            return true;
        }
        // Full and thawed: it is nobody's now.
        cx.inc(Stat::Thaw);
        cx.inc(Stat::DeactivateFull);
        cx.row.set_in_hand(NIL, 0, 0, NONE);
    }
    if P::SLOT_LIST
        && let Some(slab) = take_from_slot(cx)
    {
        cx.inc(Stat::CpuPartialAlloc);
        pick(cx, slab, !P::LIST_IS_FROZEN);
        return true;
    }
    let mut nodes = cx.node_order();
    if nodes.next().is_some_and(|node| from_node::<P>(cx, node)) {
        return true;
    }
    if let Some((slab, all)) = cx.new_slab() {
        cx.inc(Stat::Freeze);
        take_in_hand(cx, slab, all.head);
        return true;
    }
    nodes.any(|node| from_node::<P>(cx, node))
}

/// Makes a held slab with free objects the one in hand.
fn pick(cx: Cx<'_>, slab: u32, freezes: bool) {
    let (head, _) = cx.core.desc(slab).take_all(true);
    cx.inc(Stat::AtomicOps);
    if freezes {
        cx.inc(Stat::Freeze);
    }
    take_in_hand(cx, slab, head);
}

/// Takes a slab from a node, and for policies with a slot list some more for it.
fn from_node<P: CpuSlab>(cx: Cx<'_>, node: usize) -> bool {
    let mut slabs = [NIL; MOST_AT_ONCE];
    let wanted = if P::SLOT_LIST {
        // As many as half of what the list may hold, and the one to allocate from.
        (1 + cx.core.cpu_partial_slabs as usize / 2).min(MOST_AT_ONCE)
    } else {
        1
    };
    let got = cx.take_partial(node, &mut slabs[..wanted], u32::MAX, |slab| {
        if P::LIST_IS_FROZEN {
            // All of them under the list lock, as the eager policy does.
            cx.core.desc(slab).update(|old| Some(old.with_frozen(true)));
            cx.inc(Stat::Freeze);
            cx.inc(Stat::AtomicOps);
        }
    });
    let Some((first, more)) = slabs[..got].split_first() else {
        return false;
    };
    cx.inc(Stat::AllocFromPartial);
    pick(cx, *first, !P::LIST_IS_FROZEN);
    for slab in more {
        push_on_slot(cx, *slab);
        cx.inc(Stat::CpuPartialNode);
    }
    true
}

fn push_on_slot(cx: Cx<'_>, slab: u32) {
    let row = cx.row;
    cx.core
        .desc(slab)
        .next
        .store(row.partial.load(Relaxed), Relaxed);
    row.partial.store(slab, Relaxed);
    row.nr_partial
        .store(row.nr_partial.load(Relaxed) + 1, Relaxed);
}

fn take_from_slot(cx: Cx<'_>) -> Option<u32> {
    let row = cx.row;
    let slab = row.partial.load(Relaxed);
    (slab != NIL).then(|| {
        row.partial
            .store(cx.core.desc(slab).next.load(Relaxed), Relaxed);
        row.nr_partial
            .store(row.nr_partial.load(Relaxed) - 1, Relaxed);
        slab
    })
}

/// Puts a slab on the slot's list; a list at its limit is moved to the nodes first.
fn put_on_slot<P: CpuSlab>(cx: Cx<'_>, slab: u32) {
    if cx.row.nr_partial.load(Relaxed) >= cx.core.cpu_partial_slabs {
        cx.inc(Stat::CpuPartialDrain);
        drain::<P>(cx);
    }
    push_on_slot(cx, slab);
}

/// Moves the slot's list to the nodes.
fn drain<P: CpuSlab>(cx: Cx<'_>) {
    while let Some(slab) = take_from_slot(cx) {
        if P::LIST_IS_FROZEN {
            cx.deactivate(slab, None);
        } else {
            cx.put_down(slab, cx.core.desc(slab).load());
        }
    }
}

/// Lets go of the slab in hand and of the slot's list.
pub(crate) fn flush<P: CpuSlab>(cx: Cx<'_>) {
    let slab = cx.row.slab.load(Relaxed);
    if slab != NIL {
        cx.inc(Stat::CpuslabFlush);
        let links = cx.core.links(slab);
        let mut own: Option<Chain> = None;
        let mut object = cx.row.head();
        while object != NONE {
            let chain = own.get_or_insert(Chain {
                head: object,
                tail: object,
                len: 0,
            });
            chain.tail = object;
            chain.len += 1;
            object = links.get(object);
        }
        cx.row.set_in_hand(NIL, 0, 0, NONE);
        cx.deactivate(slab, own);
    }
    drain::<P>(cx);
}
