//! Many objects at a time: whole arrays, whole lists, whole slabs.
//!
//! Source of truth for what callers may rely on: `kmem_cache_alloc_bulk` and
//! `kmem_cache_free_bulk` of mm/slub.c in Linux 7.0. All or nothing: if memory
//! ends in between, what was allocated is freed again. Interrupts, which the
//! kernel's callers must have enabled, mean nothing here. A debug cache goes
//! object by object, with every check.

use super::{classic::Classic, cpu_partial::CpuPartial, delayed_freeze::DelayedFreeze};
use super::{cpu_slab, hybrid, sheaves};
use crate::cache::{Cache, with_slot};
use crate::core::{CacheCore, Cx, Path};
use crate::policy::Policy;
use crate::stats::Stat;
use crate::sync::{AtomicUsize, Ordering::Relaxed};
use std::ptr::NonNull;

/// Objects that are freed past the arrays at a time.
const CHUNK: usize = 128;

impl Cache {
    /// Allocates an object for each place of `out` and gives their number; or none and
    /// gives 0, when memory is short. What then is in `out` is of no use.
    pub fn alloc_bulk(&self, out: &mut [*mut u8]) -> usize {
        let mut got = 0;
        if self.one_by_one() {
            while let Some(place) = out.get_mut(got) {
                let Some(object) = self.alloc() else {
                    break;
                };
                *place = object.as_ptr();
                got += 1;
            }
        } else {
            got = pop_into(Cx::of_row(self.core, self.row()), out);
            if got < out.len() {
                got += with_slot(self.core, |cx| {
                    cx.follow_shrink();
                    alloc(cx, &mut out[got..])
                });
            }
        }
        if got == out.len() {
            return got;
        }
        // SAFETY: these have just been allocated, and the caller does not know of them.
        unsafe { self.free_bulk(&out[..got]) };
        0
    }

    /// Frees objects; null pointers are left out.
    ///
    /// # Safety
    /// As [`Cache::free`], for each of them.
    pub unsafe fn free_bulk(&self, objects: &[*mut u8]) {
        if self.one_by_one() {
            for object in objects.iter().filter_map(|object| NonNull::new(*object)) {
                // SAFETY: by the contract.
                unsafe { self.free(object) };
            }
            return;
        }
        let mut objects = objects.iter().copied().filter(|object| !object.is_null());
        // What fits into the array is counted as one by one.
        push_from(Cx::of_row(self.core, self.row()), &mut objects);
        let mut next = objects.next();
        while let Some(first) = next {
            with_slot(self.core, |cx| {
                cx.follow_shrink();
                free(cx, first as usize, &mut objects);
            });
            next = objects.next();
        }
    }
}

impl Cache {
    /// Whether each object needs a look of its own.
    fn one_by_one(&self) -> bool {
        self.core.hooks.is_some() || self.core.sampled
    }
}

/// Pops objects of the main array into `out`; gives their number.
#[inline]
fn pop_into(cx: Cx<'_>, out: &mut [*mut u8]) -> usize {
    let row = cx.row;
    let n = row.n.load(Relaxed) as usize;
    let got = n.min(out.len());
    if got == 0 {
        // Perhaps the empty row, which nobody may write to.
        return 0;
    }
    let places = cx.core.places(row.main.load(Relaxed));
    for (place, from) in out.iter_mut().zip(places[n - got..n].iter().rev()) {
        *place = from.load(Relaxed) as *mut u8;
    }
    row.n.store((n - got) as u32, Relaxed);
    cx.add(Stat::AllocFastpath, got as u64);
    got
}

/// Pushes objects to the main array while there is room.
#[inline]
fn push_from(cx: Cx<'_>, objects: &mut impl Iterator<Item = *mut u8>) {
    let row = cx.row;
    let n = row.n.load(Relaxed) as usize;
    let room = row.cap.load(Relaxed) as usize - n;
    if room == 0 {
        return;
    }
    let places = cx.core.places(row.main.load(Relaxed));
    let mut pushed = 0;
    for (place, object) in places[n..n + room].iter().zip(objects) {
        place.store(object as usize, Relaxed);
        pushed += 1;
    }
    row.n.store((n + pushed) as u32, Relaxed);
    cx.add(Stat::FreeFastpath, pushed as u64);
}

/// Allocates objects for `out` when the main array had too few; gives their number.
fn alloc(cx: Cx<'_>, out: &mut [*mut u8]) -> usize {
    match cx.core.path {
        Path::Policy(Policy::Classic) => cpu_slab::alloc_bulk::<Classic>(cx, out),
        Path::Policy(Policy::CpuPartial) => cpu_slab::alloc_bulk::<CpuPartial>(cx, out),
        Path::Policy(Policy::DelayedFreeze) => cpu_slab::alloc_bulk::<DelayedFreeze>(cx, out),
        Path::Policy(Policy::Sheaves) => through_arrays(cx, out, sheaves::fill),
        Path::Policy(Policy::Hybrid) => {
            let capacity = cx.core.sheaf_capacity as usize;
            let mut got = 0;
            // Arrays that are there first: they are warm.
            while out.len() - got >= capacity && hybrid::has_array(cx) {
                got += pop_into(cx, &mut out[got..]);
            }
            // What would fill an array anyway does not go through one, but where its order
            // is to be random.
            let direct = match cx.core.sequence {
                None => (out.len() - got) / capacity * capacity,
                Some(_) => 0,
            };
            let places = &mut out[got..got + direct];
            let taken = hybrid::take(cx, direct, |at, object| places[at] = object as *mut u8);
            cx.add(Stat::AllocSlowpath, taken as u64);
            got += taken;
            if taken == direct {
                got += through_arrays(cx, &mut out[got..], hybrid::fill);
            }
            got
        }
        Path::Debug => 0,
    }
}

fn through_arrays(cx: Cx<'_>, out: &mut [*mut u8], fill: impl Fn(Cx<'_>) -> bool) -> usize {
    let mut got = 0;
    while got < out.len() && fill(cx) {
        got += pop_into(cx, &mut out[got..]);
    }
    got
}

/// Frees `first` and some of the others: as many as it takes for a good run.
fn free(cx: Cx<'_>, first: usize, objects: &mut impl Iterator<Item = *mut u8>) {
    let mut places = [const { AtomicUsize::new(0) }; CHUNK];
    *places[0].get_mut() = first;
    let mut n = 1;
    let rest = places[1..].iter_mut();
    for (place, object) in rest.zip(objects) {
        *place.get_mut() = object as usize;
        n += 1;
    }
    let places = &places[..n];
    let has_arrays = cx.core.sheaf_capacity > 0;
    // A full chunk would only push out what the arrays hold.
    if !has_arrays || n == CHUNK {
        cx.flush_places(places);
        if has_arrays {
            cx.add(Stat::FreeSlowpath, n as u64);
        }
        return;
    }
    for place in places {
        let object = place.load(Relaxed);
        if cx.push(object) {
            cx.inc(Stat::FreeFastpath);
        } else {
            super::free(cx, object);
        }
    }
}

impl<'a> Cx<'a> {
    /// For what touches only the row: it need not be known whose it is.
    fn of_row(core: &'a CacheCore, row: &'a crate::row::Row) -> Self {
        Self { core, row, slot: 0 }
    }
}
