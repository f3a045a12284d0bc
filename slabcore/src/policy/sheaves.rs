//! Linux 7.0: arrays of objects for each slot and a barn for each node, no slab in hand.
//!
//! Commit "slab: replace cpu (partial) slabs with sheaves" (7.0). Slabs are
//! never frozen. The barn lock is held to exchange whole arrays only; arrays are
//! filled from slabs outside of it.

use crate::barn::Exchange;
use crate::core::Cx;
use crate::slab::{Chain, Links, NIL, NONE, WasFull};
use crate::stats::Stat;
use crate::sync::{AtomicUsize, Ordering::Relaxed};

/// Slabs taken from a node at one time at most.
const MOST_AT_ONCE: usize = 16;

/// Allocates one object when the main array is empty; 0 is failure.
#[cold]
pub(crate) fn alloc(cx: Cx<'_>) -> usize {
    if !fill(cx) {
        return 0;
    }
    cx.inc(Stat::AllocSlowpath);
    cx.pop().unwrap_or(0)
}

/// Has something in the main array; false if memory is short.
pub(super) fn fill(cx: Cx<'_>) -> bool {
    let row = cx.row;
    if !cx.ensure_sheaves() {
        cx.inc(Stat::AllocFailed);
        return false;
    }
    if row.n.load(Relaxed) != 0 {
        return true;
    }
    if row.spare_n.load(Relaxed) > 0 {
        cx.swap_sheaves();
        return true;
    }
    cx.add(Stat::AtomicOps, 2);
    match cx.part().barn.full_for_empty(row.main.load(Relaxed), true) {
        Exchange::Swapped(full) => {
            cx.inc(Stat::BarnGet);
            row.main.store(full, Relaxed);
            row.n.store(cx.core.sheaf_capacity, Relaxed);
        }
        Exchange::NoEmpty | Exchange::Refused => {
            cx.inc(Stat::BarnGetFail);
            refill(cx);
        }
    }
    row.n.load(Relaxed) != 0
}

/// Frees one object when the main array is full.
#[cold]
pub(crate) fn free(cx: Cx<'_>, object: usize) {
    let row = cx.row;
    cx.inc(Stat::FreeSlowpath);
    if !cx.ensure_sheaves() {
        cx.flush_places(&[AtomicUsize::new(object)]);
        return;
    }
    if cx.push(object) {
        return;
    }
    let capacity = cx.core.sheaf_capacity;
    if row.spare_n.load(Relaxed) < capacity {
        cx.swap_sheaves();
    } else if !put_in_barn(cx) {
        cx.flush_array(row.spare.load(Relaxed), capacity);
        row.spare_n.store(0, Relaxed);
        cx.swap_sheaves();
    }
    cx.push(object);
}

/// Exchanges the full main array for an empty one.
fn put_in_barn(cx: Cx<'_>) -> bool {
    let row = cx.row;
    let barn = &cx.part().barn;
    let main = row.main.load(Relaxed);
    cx.add(Stat::AtomicOps, 2);
    let empty = match barn.empty_for_full(main, true) {
        Exchange::Swapped(empty) => Some(empty),
        Exchange::Refused => None,
        Exchange::NoEmpty => cx.sheaf_alloc().filter(|empty| {
            let put = barn.put_full(main);
            if !put {
                cx.sheaf_free(*empty);
            }
            put
        }),
    };
    let Some(empty) = empty else {
        cx.inc(Stat::BarnPutFail);
        return false;
    };
    cx.inc(Stat::BarnPut);
    row.main.store(empty, Relaxed);
    row.n.store(0, Relaxed);
    true
}

/// Frees a run of objects of one slab.
pub(crate) fn sink(cx: Cx<'_>, slab: u32, run: Chain) {
    cx.slab_free(slab, run, WasFull::ToNode);
}

/// Fills the main array from slabs.
fn refill(cx: Cx<'_>) {
    let capacity = cx.core.sheaf_capacity as u16;
    let mut got = 0;
    for node in cx.node_order() {
        while got < capacity {
            let mut slabs = [NIL; MOST_AT_ONCE];
            let wanted = u32::from(capacity - got);
            let taken = cx.take_partial(node, &mut slabs, wanted, |_| ());
            for slab in &slabs[..taken] {
                cx.inc(Stat::AllocFromPartial);
                got += take_from(cx, *slab, capacity - got);
            }
            if taken == 0 {
                break;
            }
        }
        // Other nodes only when this one cannot have a new slab.
        while got < capacity {
            let Some((slab, all)) = cx.new_slab() else {
                break;
            };
            let take = all.len.min(capacity - got);
            let links = cx.core.links(slab);
            let mut object = all.head;
            for _ in 0..take {
                cx.push(cx.core.address(slab, object));
                object = links.get(object);
            }
            got += take;
            let rest = (take < all.len).then_some(Chain {
                head: object,
                tail: all.tail,
                len: all.len - take,
            });
            cx.deactivate(slab, rest);
        }
        if got > 0 {
            break;
        }
    }
    reverse(cx, got);
    cx.add(Stat::SheafRefill, u64::from(got));
}

/// The first objects of a slab are to be popped first.
fn reverse(cx: Cx<'_>, n: u16) {
    let places = &cx.core.places(cx.row.main.load(Relaxed))[..usize::from(n)];
    let (low, high) = places.split_at(places.len() / 2);
    for (a, b) in low.iter().zip(high.iter().rev()) {
        let first = a.load(Relaxed);
        a.store(b.load(Relaxed), Relaxed);
        b.store(first, Relaxed);
    }
}

/// Pushes up to `want` objects of a slab taken off the node's list; lists it again
/// if some are left.
fn take_from(cx: Cx<'_>, slab: u32, want: u16) -> u16 {
    let links = cx.core.links(slab);
    let desc = cx.core.desc(slab);
    let (mut object, got, held) = desc.take_some(&links, want);
    cx.inc(Stat::AtomicOps);
    for n in 0..got {
        cx.push(cx.core.address(slab, object));
        // The link of the last one leads into what is left; it is not followed.
        object = links.get(object);
        if object == NONE && n + 1 < got {
            // Broken since it was looked at.
            return n + 1;
        }
    }
    if held {
        debug_assert_ne!(desc.load().head(), NONE);
        cx.put_down(slab, desc.load());
    }
    got
}
