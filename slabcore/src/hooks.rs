//! Where a debugging layer attaches.
//!
//! A cache built with hooks has no fast path: every operation runs under the
//! list lock of the slab's node, through one pair of functions, and calls the
//! hooks there. So the bytes of all free objects of such a cache are at rest
//! while that lock is held. The engine itself checks nothing here.

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
}

/// What to do after a hook has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Fine,
    /// On allocation: leave the object out of use for good and take another.
    /// On free: do not take it back.
    Quarantine,
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
    fn on_alloc(&self, object: &ObjectRef, requested: usize) -> Verdict;
    /// An object about to be taken back, before its link is written.
    fn on_free(&self, object: &ObjectRef) -> Verdict;
    /// A pointer that is no object of the cache was freed.
    fn on_bad_free(&self, address: usize);
}
