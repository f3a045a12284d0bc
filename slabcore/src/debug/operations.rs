//! What happens to a slot on each operation of a debug cache: the hooks.
//!
//! Order of checks and changes as in `alloc_debug_processing` and `free_debug_processing` of `mm/slub.c`, Linux 6.12.

use super::cache::DebugCache;
use super::flags::DebugFlags;
use super::layout::ObjectLayout;
use super::operation::{self, OnFault, Operation};
use super::outside::outside;
use super::poison::{self, State};
use super::quarantine::Held;
use super::reason::Reason;
use super::track::TrackKind;
use crate::dump::Tracks;
use crate::finding::{Fault, Finding};
use crate::hooks::{DebugHooks, Misplaced, ObjectRef, SlabRef, Verdict};
use crate::slab::NONE;
use crate::sync::{Lock, Ordering::Relaxed};

impl DebugHooks for DebugCache {
    fn lock(&self) -> Option<&Lock> {
        Some(self.quarantine.lock())
    }

    fn slot_bytes(&self, _: usize, _: usize) -> usize {
        self.layout.slab_size()
    }

    fn object_offset(&self, _: usize, _: usize) -> usize {
        self.layout.object_at()
    }

    fn link_offset(&self, _: usize, _: usize) -> usize {
        self.layout.free_pointer().start
    }

    fn begin(&self, op: &mut Operation) {
        if self.has(DebugFlags::STORE_USER) || self.has(DebugFlags::TRACE) {
            op.identify(self.depot.as_ref(), self.engine.config.own_code);
        }
    }

    fn end(&self, op: &mut Operation) {
        op.send(self.engine.config.report);
        if op.fault && self.engine.config.on_fault == OnFault::Abort {
            operation::stop();
        }
    }

    fn fails(&self) -> bool {
        let every = u64::from(self.engine.config.fail_every);
        self.has(DebugFlags::FAIL)
            && every > 0
            && (self.requests.fetch_add(1, Relaxed) + 1).is_multiple_of(every)
    }

    fn walks_lists(&self) -> bool {
        self.has(DebugFlags::CONSISTENCY)
    }

    fn on_new(&self, object: &ObjectRef) {
        if object.index == 0 {
            // SAFETY: the slab is new and nobody else's, and its memory is that large.
            let slab = unsafe {
                std::slice::from_raw_parts_mut(object.slab as *mut u8, object.slab_bytes)
            };
            poison::init_slab(slab, usize::from(object.objects), &self.layout);
            self.quarantine
                .forget(object.slab..object.slab + object.slab_bytes);
        }
        if self.layout.free_pointer_outside() {
            let word = super::cache::LINK_PATTERN | u64::from(NONE);
            poison::set_free_pointer(self.slot(object), &self.layout, word);
        }
    }

    fn on_alloc(&self, object: &ObjectRef, requested: usize, op: &mut Operation) -> Verdict {
        let slot = self.slot(object);
        let known = self.quarantine.find(self.object_address(object));
        let damaged =
            self.has(DebugFlags::CONSISTENCY) && self.check(object, slot, State::Free, op) > 0;
        if known.is_some() || damaged {
            self.retire(object, slot);
            return Verdict::Quarantine;
        }
        poison::on_alloc(slot, &self.layout, requested);
        op.track.store(slot, &self.layout, TrackKind::Allocated);
        self.trace_operation(op, object, slot, TrackKind::Allocated);
        Verdict::Fine
    }

    fn on_free(&self, object: &ObjectRef, listed: bool, op: &mut Operation) -> Verdict {
        let address = self.object_address(object);
        let slot = self.slot(object);
        let known = self.quarantine.find(address);
        if listed || known == Some(Held::Out) {
            let view = self.view(object, slot);
            let finding = Finding::new(object.of.cache, object.of.node, Fault::AlreadyFree)
                .of_object(object.index, slot, &self.layout);
            self.report(op, &object.of, finding, |to, out| {
                to.object(out, Reason::AlreadyFree, &view)
            });
            self.not_freed(op, &object.of, address);
            return Verdict::Refuse;
        }
        let damaged =
            self.has(DebugFlags::CONSISTENCY) && self.check(object, slot, State::Live, op) > 0;
        self.trace_operation(op, object, slot, TrackKind::Freed);
        if damaged {
            self.not_freed(op, &object.of, address);
        }
        if damaged || known.is_some() {
            op.track.store(slot, &self.layout, TrackKind::Freed);
            self.retire(object, slot);
            return Verdict::Quarantine;
        }
        poison::on_free(slot, &self.layout);
        op.track.store(slot, &self.layout, TrackKind::Freed);
        Verdict::Fine
    }

    fn on_bad_free(&self, cache: u32, address: usize, place: Misplaced, op: &mut Operation) {
        let pointer = address as u64;
        match place {
            Misplaced::Foreign => {
                self.faults.fetch_add(1, Relaxed);
                let kind = Fault::OutsideSlab { pointer: address };
                let reason = Reason::OutsideSlab { pointer };
                let finding = Finding::new(cache, 0, kind);
                outside(self.engine, op, self.name, (reason, address), finding);
            }
            Misplaced::Inside(slab) => {
                let kind = Fault::InvalidPointer { pointer: address };
                let finding = Finding::new(cache, slab.node, kind);
                self.report(op, &slab, finding, |to, out| {
                    to.bad_pointer(out, Reason::InvalidPointer { pointer }, pointer)
                });
                self.not_freed(op, &slab, address);
            }
            Misplaced::OtherCache(slab) => {
                // Where its list begins is for the other cache to say.
                let slab = SlabRef { head: NONE, ..slab };
                let kind = Fault::OtherCache { pointer: address };
                let finding = Finding::new(cache, slab.node, kind);
                self.report(op, &slab, finding, |to, out| {
                    to.bad_pointer(out, Reason::OtherCache, pointer)
                });
                self.not_freed(op, &slab, address);
            }
        }
    }

    fn on_resize(&self, object: &ObjectRef, requested: usize) {
        // The caller resizes its own object, so nobody writes it now.
        let slot = self.slot(object);
        poison::on_resize(slot, &self.layout, requested);
    }

    fn looks_live(&self, object: &ObjectRef) -> bool {
        self.shows(object, State::Live)
    }

    fn on_list_fault(&self, slab: &SlabRef, fault: Fault, left: u16, op: &mut Operation) {
        self.report_list(slab, fault, left, op);
    }

    fn on_lost(&self, object: &ObjectRef) {
        if self.shows(object, State::Free) {
            self.retire(object, self.slot(object));
        }
    }

    fn check_slab(
        &self,
        slab: &SlabRef,
        free: &dyn Fn(u16) -> bool,
        op: &mut Operation,
        tell: &mut dyn FnMut(Finding),
    ) {
        for index in 0..slab.objects {
            let state = if free(index) {
                State::Free
            } else {
                State::Live
            };
            self.check_beside(&self.object_ref(slab, index), state, op, tell);
        }
        self.check_tail(slab, op, tell);
    }

    fn on_remaining(&self, slab: &SlabRef, free: &dyn Fn(u16) -> bool, op: &mut Operation) {
        self.report_remaining(slab, free, op);
    }

    fn layout(&self) -> Option<&ObjectLayout> {
        Some(&self.layout)
    }

    fn is_out(&self, object: &ObjectRef) -> bool {
        self.quarantine.find(self.object_address(object)) == Some(Held::Out)
    }

    fn tracks(&self, object: &ObjectRef) -> Option<Tracks> {
        self.has(DebugFlags::STORE_USER)
            .then(|| self.tracks_of(object))
    }

    fn counts(&self) -> (u64, u64) {
        (self.faults.load(Relaxed), self.quarantine.count())
    }
}
