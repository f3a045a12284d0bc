//! The segment of this process: its mapping, and what a child of a fork must not have.
//!
//! Where the segment is stands on a page that the system empties in a child, however it was
//! forked (`MADV_WIPEONFORK`), so that a child never writes into its parent's. The child
//! makes one of its own at its first slow path.
//!
//! Rules of the unsafe code: `base` is the start of a shared mapping of `BYTES` bytes that is
//! never unmapped, and every place is a multiple of 8 below that.

use super::format::BYTES;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use crate::sys;

/// What a child begins without.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Own {
    /// Start of the segment, or 0.
    pub base: AtomicUsize,
    /// 1 while a thread makes the segment; 2 if it cannot be made.
    pub making: AtomicU32,
    /// 1 while a thread publishes.
    pub busy: AtomicU32,
    /// When to publish next, in milliseconds.
    pub due: AtomicU64,
    /// Caches that a pass has dealt with.
    pub done: AtomicUsize,
    /// The process's number; of a child asked right at the fork.
    pub pid: AtomicU32,
    /// 1 if the segment may outlive the process.
    pub outlives: AtomicU32,
    /// The watcher looks, or has seen enough.
    pub looks: AtomicU32,
    pub left: AtomicU32,
}

/// Address of the page with [`Own`].
static OWN: AtomicUsize = AtomicUsize::new(0);

/// The page, if the process ever wanted a segment.
pub(super) fn own() -> Option<&'static Own> {
    let at = OWN.load(Ordering::Acquire);
    // SAFETY: published by `prepare`; never unmapped, and all zero is a valid value.
    (at != 0).then(|| unsafe { &*(at as *const Own) })
}

/// Maps the page, once.
pub(super) fn prepare() -> Option<&'static Own> {
    if OWN.load(Ordering::Acquire) == 0 {
        let at = sys::map_lazy(sys::page_size());
        if at == 0 {
            return None;
        }
        // Where the system does not know it, the handler of the fork does it.
        sys::wipe_on_fork(at, sys::page_size());
        let set = OWN.compare_exchange(0, at, Ordering::AcqRel, Ordering::Acquire);
        if set.is_err() {
            // SAFETY: a new mapping that nobody knows.
            unsafe { sys::unmap(at, sys::page_size()) };
        }
    }
    own()
}

/// A mapped segment of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live(usize);

impl Live {
    /// The process's own, if there is one.
    pub fn current() -> Option<Self> {
        let base = own()?.base.load(Ordering::Acquire);
        (base != 0).then_some(Self(base))
    }

    /// That at an address.
    pub const fn at(base: usize) -> Self {
        Self(base)
    }

    /// Its address.
    pub const fn base(self) -> usize {
        self.0
    }

    /// The word at a place.
    pub fn word(self, at: usize) -> &'static AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= BYTES);
        // SAFETY: by the rules of this file; all that access it here use atomics.
        unsafe { &*((self.0 + at) as *const AtomicU64) }
    }

    /// Writes a number.
    pub fn put(self, at: usize, value: u64) {
        self.word(at).store(value, Relaxed);
    }

    /// Writes two numbers of 32 bits into one word, the first at the lower address.
    pub fn put_two(self, at: usize, first: u32, second: u32) {
        let mut bytes = [0; 8];
        let (low, high) = bytes.split_at_mut(4);
        low.copy_from_slice(&first.to_ne_bytes());
        high.copy_from_slice(&second.to_ne_bytes());
        self.put(at, u64::from_ne_bytes(bytes));
    }

    /// Writes a text, cut to `room` bytes with a zero behind it.
    pub fn put_text(self, at: usize, room: usize, text: &str) {
        let mut end = text.len().min(room.saturating_sub(1));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text.as_bytes().get(..end).unwrap_or_default();
        for word in 0..room / 8 {
            let mut bytes = [0; 8];
            let part = text.get(word * 8..).unwrap_or_default();
            for (to, from) in bytes.iter_mut().zip(part) {
                *to = *from;
            }
            self.put(at + word * 8, u64::from_ne_bytes(bytes));
        }
    }
}
