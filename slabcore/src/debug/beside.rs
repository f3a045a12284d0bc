//! The part of a cache's debugging that looks at slabs beside a running program: validation, and the end of a cache.
//!
//! Live objects are copied without what their users write, checked in the copy, and repaired in place where a byte is
//! wrong. The node's lock is held, as for all of [`super::cache`].

use super::cache::DebugCache;
use super::check::{self, Damage, check_object};
use super::operation::Operation;
use super::poison::State;
use super::quarantine::Held;
use super::raw;
use super::reason::{Fix, Reason};
use super::track::{TRACK_SIZE, Track};
use crate::dump::Tracks;
use crate::finding::{Fault, Finding};
use crate::hooks::{ObjectRef, SlabRef};
use crate::slab::NONE;
use core::ops::Range;

impl DebugCache {
    /// Checks one slot beside its user; the damage is repaired in place.
    pub(super) fn check_beside(
        &self,
        object: &ObjectRef,
        state: State,
        op: &mut Operation,
        tell: &mut dyn FnMut(Finding),
    ) {
        let size = self.layout.slab_size();
        let mut first = true;
        // As often as a slot has parts that can be damaged.
        for _ in 0..8 {
            let mut scratch = std::mem::take(&mut op.scratch);
            let (guards, whole) = scratch.pair(size);
            let found = self.look(object, state, guards);
            if let Some((damage, finding)) = found {
                // SAFETY: the slot is mapped and the node's lock is held; the bytes are for showing only.
                let all = unsafe {
                    raw::copy_guards(object.slot as *const u8, State::Free, &self.layout, whole)
                };
                if let Some(all) = all {
                    let view = self.view(object, all);
                    self.report(op, &object.of, finding, |to, out| {
                        to.damage(out, &damage, &view, first)
                    });
                }
                // SAFETY: the damage was found in this slot, under the lock that is still held.
                unsafe { raw::restore(&damage, object.slot as *mut u8) };
                tell(finding);
            }
            op.scratch = scratch;
            if found.is_none() {
                break;
            }
            if first {
                self.quarantine
                    .put(self.engine, self.object_address(object), Held::Pending);
            }
            first = false;
        }
    }

    fn look(&self, object: &ObjectRef, state: State, into: &mut [u8]) -> Option<(Damage, Finding)> {
        // SAFETY: the slot is mapped and the node's lock is held.
        let copy =
            unsafe { raw::copy_guards(object.slot as *const u8, state, &self.layout, into) }?;
        let damage = check_object(copy, state, &self.layout, &self.links(object.objects, copy))?;
        let kind = Fault::Damage(damage.kind());
        let finding = Finding::new(object.of.cache, object.of.node, kind)
            .of_object(object.index, copy, &self.layout)
            .with_damage(&damage, Some(&self.layout));
        Some((damage, finding))
    }

    /// Who had an object, and the size asked for.
    pub(super) fn tracks_of(&self, object: &ObjectRef) -> Tracks {
        let load = |range: Range<usize>| {
            let mut bytes = [0; TRACK_SIZE];
            for (to, at) in bytes.iter_mut().zip(range.clone()) {
                // SAFETY: the layout's ranges lie in the slot, which is mapped; the node's lock is held.
                *to = unsafe { (object.slot as *const u8).add(at).read_volatile() };
            }
            (range.len() <= TRACK_SIZE).then_some(bytes)
        };
        let requested = load(self.layout.orig_size()).and_then(|b| b.first_chunk().copied());
        Tracks {
            allocated: load(self.layout.alloc_track()).and_then(|b| Track::decode(&b)),
            freed: load(self.layout.free_track()).and_then(|b| Track::decode(&b)),
            requested: requested
                .filter(|_| self.layout.keeps_orig_size())
                .map(usize::from_ne_bytes),
        }
    }

    /// Checks what is behind the last object, which is nobody's.
    pub(super) fn check_tail(
        &self,
        slab: &SlabRef,
        op: &mut Operation,
        tell: &mut dyn FnMut(Finding),
    ) {
        let tail_at = usize::from(slab.objects) * self.layout.slab_size();
        let Some(len) = slab.bytes.checked_sub(tail_at) else {
            return;
        };
        // SAFETY: the rest of the slab's memory, which belongs to no object; the node's lock is held.
        let tail =
            unsafe { std::slice::from_raw_parts((slab.address + tail_at) as *const u8, len) };
        if check::check_slab_padding(tail, 0, &self.layout).is_none() {
            return;
        }
        // Offsets are told from the slab's start, so the tail is looked at in its place.
        let mut scratch = std::mem::take(&mut op.scratch);
        let (whole, _) = scratch.pair(slab.bytes);
        if let Some(place) = whole.get_mut(tail_at..) {
            place.copy_from_slice(tail);
        }
        let damage = check::check_slab_padding(whole, usize::from(slab.objects), &self.layout);
        if let Some(damage) = damage {
            let kind = Fault::Damage(damage.kind());
            let finding = Finding::new(slab.cache, slab.node, kind).in_slab(slab.address);
            let finding = finding.with_damage(&damage, None);
            self.report(op, slab, finding, |to, out| {
                to.slab_padding(out, &damage, whole.get(tail_at..).unwrap_or(&[]), tail_at)
            });
            // SAFETY: the damage lies in the tail of this slab.
            unsafe { raw::restore(&damage, slab.address as *mut u8) };
            tell(finding);
        }
        op.scratch = scratch;
    }

    /// Reports a damaged free list and how it was repaired.
    pub(super) fn report_list(&self, slab: &SlabRef, fault: Fault, left: u16, op: &mut Operation) {
        let counter = u32::from(slab.inuse);
        let without_list = u32::from(slab.objects.saturating_sub(left));
        let finding = Finding::new(slab.cache, slab.node, fault);
        match fault {
            Fault::BadLink { object: NONE, .. } => {
                self.report(op, slab, finding, |to, out| {
                    to.slab(out, Reason::FreepointerCorrupt)?;
                    to.fix(out, Fix::FreelistCleared)
                });
                return;
            }
            Fault::BadLink { object, .. } => {
                let object = self.object_ref(slab, object);
                // An object of the free list is nobody's.
                let view = self.view(&object, self.slot(&object));
                self.report(op, slab, finding, |to, out| {
                    to.object(out, Reason::FreechainCorrupt, &view)?;
                    to.fix(out, Fix::Isolated)
                });
            }
            Fault::Cycle { .. } => self.report(op, slab, finding, |to, out| {
                to.slab(out, Reason::FreelistCycle)?;
                to.fix(out, Fix::Isolated)
            }),
            _ => {}
        }
        if counter != without_list {
            let kind = Fault::FreeCount {
                found: left,
                counted: slab.objects.wrapping_sub(slab.inuse),
            };
            let finding = Finding::new(slab.cache, slab.node, kind);
            self.report(op, slab, finding, |to, out| {
                to.slab(
                    out,
                    Reason::WrongCount {
                        counter,
                        counted: without_list,
                    },
                )?;
                to.fix(out, Fix::CountAdjusted)
            });
        }
    }

    /// Reports the objects of a slab that the cache's end leaves in use.
    pub(super) fn report_remaining(
        &self,
        slab: &SlabRef,
        free: &dyn Fn(u16) -> bool,
        op: &mut Operation,
    ) {
        let live = |index: u16| {
            !free(index) && self.quarantine.find(self.address(slab, index)) != Some(Held::Out)
        };
        if !(0..slab.objects).any(live) {
            return;
        }
        let size = self.layout.slab_size();
        let mut scratch = std::mem::take(&mut op.scratch);
        let (copies, _) = scratch.pair(slab.bytes);
        for index in (0..slab.objects).filter(|&index| live(index)) {
            let at = usize::from(index) * size;
            let Some(place) = copies.get_mut(at..at + size) else {
                break;
            };
            // SAFETY: the slot is mapped, and the cache has no handle left, so nothing of it changes but live bytes.
            unsafe {
                raw::copy_guards(
                    (slab.address + at) as *const u8,
                    State::Live,
                    &self.layout,
                    place,
                )
            };
        }
        let remaining = (0..slab.objects).filter(|&index| live(index)).count();
        let kind = Fault::Remaining {
            objects: remaining as u16,
        };
        let finding = Finding::new(slab.cache, slab.node, kind);
        self.report(op, slab, finding, |to, out| {
            let objects = (0..slab.objects).filter(|&index| live(index));
            let views = objects.filter_map(|index| {
                let at = usize::from(index) * size;
                let slot = copies.get(at..at + size)?;
                Some(self.view(&self.object_ref(slab, index), slot))
            });
            to.objects_remaining(out, views)
        });
        op.scratch = scratch;
    }
}
