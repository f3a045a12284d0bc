//! Beyond the kernel: arrays of objects in front of slabs that slots own.
//!
//! A slab is frozen while a slot owns it (`owned.rs`). The owner knows its free
//! objects by bits of its own (`own.rs`) and frees to them without atomics, even
//! to a full slab; others free runs of objects into the slab's word. A slab that
//! its owner found full has the wake bit: see `wake.rs`. Arrays go through the
//! barn only when most of what is in them belongs to others, and nobody waits
//! for the barn's lock.

use super::owned::{adopt, give_up, is_own, link, look_at_told, make, settle, unlink};
use crate::barn::Exchange;
use crate::core::Cx;
use crate::harden;
use crate::slab::{Chain, NIL, WasFull, place};
use crate::stats::Stat;
use crate::sync::{AtomicUsize, Ordering::Relaxed};

/// Objects of an array that are looked at to tell whose it is.
const SAMPLES: usize = 8;

/// Allocates one object when the main array is empty; 0 is failure.
#[cold]
#[inline(never)]
pub(crate) fn alloc(cx: Cx<'_>) -> usize {
    if !fill(cx) {
        return 0;
    }
    cx.inc(Stat::AllocSlowpath);
    cx.pop().unwrap_or(0)
}

/// Has something in the main array, if that costs no more than an exchange of arrays.
pub(super) fn has_array(cx: Cx<'_>) -> bool {
    if cx.row.n.load(Relaxed) == 0 && cx.row.spare_n.load(Relaxed) > 0 {
        cx.swap_sheaves();
    }
    cx.row.n.load(Relaxed) > 0
}

/// Has something in the main array; false if memory is short.
pub(super) fn fill(cx: Cx<'_>) -> bool {
    let row = cx.row;
    if !cx.ensure_sheaves() {
        cx.inc(Stat::AllocFailed);
        return false;
    }
    if row.n.load(Relaxed) == 0 {
        if row.spare_n.load(Relaxed) > 0 {
            cx.swap_sheaves();
        } else if !get_from_barn(cx) {
            refill(cx);
        }
    }
    row.n.load(Relaxed) != 0
}

/// Frees one object when the main array is full.
#[cold]
#[inline(never)]
pub(crate) fn free(cx: Cx<'_>, object: usize) {
    let row = cx.row;
    cx.inc(Stat::FreeSlowpath);
    // What a thread frees before it has arrays was most likely given to it, and its line of the
    // processor's cache is others' as well: not to be handed out here next.
    let first = row.cap.load(Relaxed) == 0;
    if !cx.ensure_sheaves() || first {
        cx.flush_places(&[AtomicUsize::new(object)]);
        return;
    }
    if cx.push(object) {
        return;
    }
    let capacity = cx.core.sheaf_capacity;
    if row.spare_n.load(Relaxed) == capacity && !put_in_barn(cx) {
        let spare = row.spare.load(Relaxed);
        cx.flush_array(spare, capacity);
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

/// Frees a run of objects of one slab that another slot owns, or nobody.
pub(crate) fn sink(cx: Cx<'_>, slab: u32, run: Chain) {
    cx.inc(Stat::RemoteFree);
    cx.slab_free(slab, run, WasFull::ToNode);
}

/// Frees objects of own slabs: those at the front of `places` that are of the first one's slab.
/// Gives their number, 0 if the slab is somebody else's.
pub(crate) fn sink_own(cx: Cx<'_>, slab: u32, places: &[AtomicUsize]) -> usize {
    if !is_own(cx, slab) {
        return 0;
    }
    let core = cx.core;
    let (base, bytes) = core.span(slab);
    let mut places = places.iter();
    let n = core.own_add(slab, || {
        let offset = places.next()?.load(Relaxed).wrapping_sub(base);
        (offset < bytes).then(|| core.index(offset))
    });
    settle(cx, slab, core.own_free(slab) >= core.wake);
    usize::from(n)
}

/// Fills the empty main array, first objects of a slab to be popped first.
fn refill(cx: Cx<'_>) {
    let want = cx.core.sheaf_capacity as usize;
    let places = &cx.core.places(cx.row.main.load(Relaxed))[..want];
    let got = take(cx, want, |at, object| {
        // Not out of bounds: `at` is below `want`.
        if let Some(place) = places.get(want - 1 - at) {
            place.store(object, Relaxed);
        }
    });
    if got < want {
        // Memory ended: what there is goes down.
        for at in 0..got {
            places[at].store(places[want - got + at].load(Relaxed), Relaxed);
        }
    }
    if cx.core.sequence.is_some() {
        // Bits have no order of their own.
        let turn = cx.row.stats.get(Stat::SheafRefill);
        harden::shuffle(&places[..got], cx.core.seed, turn);
    }
    cx.row.n.store(got as u32, Relaxed);
    cx.add(Stat::SheafRefill, got as u64);
}

/// Takes up to `want` objects of own slabs: `put` gets the number of each, counted
/// from 0, and its address. Gives how many; less only when memory is short.
#[inline(always)]
pub(super) fn take(cx: Cx<'_>, want: usize, mut put: impl FnMut(usize, usize)) -> usize {
    let size = cx.core.size as usize;
    let mut got = 0;
    while got < want {
        let mut slab = cx.row.slab.load(Relaxed);
        if slab == NIL {
            slab = next_slab(cx);
            if slab == NIL {
                break;
            }
        }
        let base = cx.core.address(slab, 0);
        got += cx.core.own_take(slab, want - got, |at, object| {
            let object = base + object * size;
            prefetch(object);
            put(got + at, object);
        });
        if got < want && !spent(cx, slab) {
            cx.row.slab.store(NIL, Relaxed);
        }
    }
    got
}

/// Asks for the first line of an object that will be given out soon.
#[inline(always)]
fn prefetch(object: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch may be given any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(object as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = object;
}

/// The own objects of the slab in hand are spent: takes what others freed, or puts
/// the slab on the list of full ones, to be told later. Tells whether there is more.
#[inline(never)]
fn spent(cx: Cx<'_>, slab: u32) -> bool {
    let desc = cx.core.desc(slab);
    // A wake bit that is still set needs no change: who clears it will tell.
    if !desc.load().asks(cx.core.wake) {
        cx.inc(Stat::AtomicOps);
        if let Some((head, len)) = desc.take_or_ask(cx.core.wake) {
            cx.inc(Stat::AllocRefill);
            cx.core.own_add_list(slab, head, len);
            return true;
        }
    }
    link(cx, slab, place::FULL);
    false
}

/// Finds another slab to allocate from; [`NIL`] if there is none to be had.
#[inline(never)]
fn next_slab(cx: Cx<'_>) -> u32 {
    look_at_told(cx);
    let row = cx.row;
    loop {
        let slab = row.partial.load(Relaxed);
        if slab == NIL {
            break;
        }
        unlink(cx, slab);
        if cx.core.own_free(slab) == 0 {
            let (head, len) = cx.core.desc(slab).take_all(true);
            cx.inc(Stat::AtomicOps);
            if len > 0 {
                cx.core.own_add_list(slab, head, len);
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
        return take_in_hand(cx, own);
    }
    let new = make(cx);
    if new != NIL {
        return take_in_hand(cx, new);
    }
    nodes
        .map(|node| adopt(cx, node))
        .find(|slab| *slab != NIL)
        .map_or(NIL, |slab| take_in_hand(cx, slab))
}

fn take_in_hand(cx: Cx<'_>, slab: u32) -> u32 {
    cx.core.desc(slab).place.store(place::CURRENT, Relaxed);
    cx.row.slab.store(slab, Relaxed);
    slab
}

/// Gives both arrays, the slab in hand and all owned slabs up.
pub(crate) fn flush(cx: Cx<'_>) {
    cx.drop_sheaves();
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
