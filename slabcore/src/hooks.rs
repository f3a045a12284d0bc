//! Where a debugging layer attaches.
//!
//! A cache built with hooks has no fast path: every operation runs under the
//! list lock of the slab's node, through one pair of functions, and calls the
//! hooks there. So the bytes of all free objects of such a cache are at rest
//! while that lock is held. The engine itself looks at free lists only; what the
//! bytes should be is the hooks' business (see `debug::cache`).

use crate::debug::layout::ObjectLayout;
use crate::debug::operation::Operation;
use crate::dump::Tracks;
use crate::finding::{Fault, Finding};
use crate::sync::Lock;

/// A slab of a debug cache, under the node's lock.
#[derive(Debug, Clone, Copy)]
pub struct SlabRef {
    /// Id of the cache.
    pub cache: u32,
    /// Its address.
    pub address: usize,
    /// Its bytes.
    pub bytes: usize,
    /// Its objects.
    pub objects: u16,
    /// Objects that are not in its free list.
    pub inuse: u16,
    /// First object of the free list, or 0xffff.
    pub head: u16,
    /// Its node.
    pub node: u32,
    /// Address of its descriptor.
    pub descriptor: usize,
}

/// An object of a debug cache, under the node's lock.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRef {
    /// Address of the slab.
    pub slab: usize,
    /// Bytes of the slab.
    pub slab_bytes: usize,
    /// Index of the object.
    pub index: u16,
    /// Objects of the slab.
    pub objects: u16,
    /// Address of the object's slot.
    pub slot: usize,
    /// Bytes of the slot, with red zones and tracks.
    pub slot_bytes: usize,
    /// The slab.
    pub of: SlabRef,
}

/// What to do after a hook has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Fine,
    /// Leave the object out of use for good. An allocation takes another one, a free counts.
    Quarantine,
    /// On free: there is nothing to take back, and nothing is counted.
    Refuse,
}

/// What a freed pointer is that is no object of the cache.
#[derive(Debug, Clone, Copy)]
pub enum Misplaced {
    /// In no slab.
    Foreign,
    /// In a slab of the cache, but not where an object begins.
    Inside(SlabRef),
    /// In a slab of another cache.
    OtherCache(SlabRef),
}

/// A debugging layer for one cache or many.
pub trait DebugHooks: Sync + std::fmt::Debug {
    /// Bytes from one object to the next, for objects of `size` bytes; a multiple of 8.
    fn slot_bytes(&self, size: usize, align: usize) -> usize;
    /// Offset of the object inside its slot; a multiple of the alignment.
    fn object_offset(&self, size: usize, align: usize) -> usize;
    /// Offset of the free link inside the slot: two bytes at an even offset.
    fn link_offset(&self, size: usize, align: usize) -> usize;
    /// A new object, before its first link is written and before the constructor.
    fn on_new(&self, object: &ObjectRef);
    /// An object about to be handed out for `requested` bytes.
    fn on_alloc(&self, object: &ObjectRef, requested: usize, op: &mut Operation) -> Verdict;
    /// An object about to be taken back, before its link is written. `listed`: it is in
    /// the free list already (looked for only if [`DebugHooks::walks_lists`]).
    fn on_free(&self, object: &ObjectRef, listed: bool, op: &mut Operation) -> Verdict;
    /// A pointer that is no object of the cache of this id was freed. No lock is held.
    fn on_bad_free(&self, cache: u32, address: usize, place: Misplaced, op: &mut Operation);

    /// An operation begins; no lock is held.
    fn begin(&self, _op: &mut Operation) {}
    /// An operation ends; no lock is held.
    fn end(&self, _op: &mut Operation) {}
    /// Whether this allocation is to fail on purpose.
    fn fails(&self) -> bool {
        false
    }
    /// Whether each free looks through the slab's list.
    fn walks_lists(&self) -> bool {
        false
    }
    /// The requested size of a live object changes.
    fn on_resize(&self, _object: &ObjectRef, _requested: usize) {}
    /// Whether an object shows that it is handed out.
    fn looks_live(&self, _object: &ObjectRef) -> bool {
        false
    }
    /// A free list is damaged and has been cut or recounted; `slab` is as it was, `left` is
    /// what its list has now.
    fn on_list_fault(&self, _slab: &SlabRef, _fault: Fault, _left: u16, _op: &mut Operation) {}
    /// An object that is in no list after damage to a list. It may be live.
    fn on_lost(&self, _object: &ObjectRef) {}
    /// Checks the bytes of a slab at rest and repairs them; `free` knows the free list.
    fn check_slab(
        &self,
        _slab: &SlabRef,
        _free: &dyn Fn(u16) -> bool,
        _op: &mut Operation,
        _tell: &mut dyn FnMut(Finding),
    ) {
    }
    /// The cache ends with this slab's objects in use.
    fn on_remaining(&self, _slab: &SlabRef, _free: &dyn Fn(u16) -> bool, _op: &mut Operation) {}
    /// The parts of a slot, if the hooks know them.
    fn layout(&self) -> Option<&ObjectLayout> {
        None
    }
    /// Whether an object is out of use.
    fn is_out(&self, _object: &ObjectRef) -> bool {
        false
    }
    /// Who allocated and freed an object; `None` if that is not kept.
    fn tracks(&self, _object: &ObjectRef) -> Option<Tracks> {
        None
    }
    /// A lock of its own that operations take, which a fork must find free.
    #[doc(hidden)]
    fn lock(&self) -> Option<&Lock> {
        None
    }
    /// Reports so far, and objects in quarantine.
    fn counts(&self) -> (u64, u64) {
        (0, 0)
    }
}
