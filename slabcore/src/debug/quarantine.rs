//! Objects of one cache that are kept out of use after a fault.
//!
//! Addresses in an unordered table that grows by chunks of the engine's metadata. It is looked through only while it
//! has entries, so an undamaged program does not pay for it.

use crate::engine::EngineCore;
use crate::sync::{AtomicU64, AtomicUsize, Lock, Ordering::Relaxed};

/// Words of a chunk: the next chunk, then entries.
pub(crate) const WORDS: usize = 512;
/// Objects are aligned to 8, so the lowest bit of an entry is free: the object is out of use.
const OUT: usize = 1;

/// What is known of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Its user or the free list still has it; from there it goes out of use.
    Pending,
    /// Out of use.
    Out,
}

/// The table.
#[derive(Debug)]
pub struct Quarantine {
    lock: Lock,
    first: AtomicUsize,
    count: AtomicU64,
}

#[cfg(not(shuttle))]
crate::segment::layout::fields!(Quarantine, "quarantine": first, count);

impl Quarantine {
    /// An empty table.
    pub const fn new() -> Self {
        Self {
            lock: Lock::new(),
            first: AtomicUsize::new(0),
            count: AtomicU64::new(0),
        }
    }

    /// The lock, for `fork`.
    pub(crate) const fn lock(&self) -> &Lock {
        &self.lock
    }

    /// How many objects.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Entries, used or not; the lock is held.
    fn entries(&self) -> impl Iterator<Item = &AtomicUsize> {
        let chunks = std::iter::successors(Some(self.first.load(Relaxed)), |&chunk| {
            // SAFETY: a chunk's first word links to the next; zero ends the list and is not followed.
            (chunk != 0).then(|| unsafe { (*(chunk as *const AtomicUsize)).load(Relaxed) })
        });
        chunks.take_while(|&chunk| chunk != 0).flat_map(|chunk| {
            // SAFETY: a chunk has that many words, zeroed before it was linked and only used as atomics; it lives as
            // long as the engine, which outlives its caches.
            unsafe { std::slice::from_raw_parts(chunk as *const AtomicUsize, WORDS) }
                .iter()
                .skip(1)
        })
    }

    /// What is known of an object.
    pub fn find(&self, object: usize) -> Option<Held> {
        if self.count() == 0 {
            return None;
        }
        let _held = self.lock.lock();
        self.entries().find_map(|entry| {
            let entry = entry.load(Relaxed);
            (entry & !OUT == object).then_some(match entry & OUT {
                0 => Held::Pending,
                _ => Held::Out,
            })
        })
    }

    /// Puts an object in, or changes what is known of it. Without memory nothing is kept.
    pub fn put(&self, engine: &EngineCore, object: usize, held: Held) {
        let value = object | if held == Held::Out { OUT } else { 0 };
        let _held = self.lock.lock();
        let known = self
            .entries()
            .find(|entry| entry.load(Relaxed) & !OUT == object);
        if let Some(entry) = known {
            entry.store(entry.load(Relaxed) | value, Relaxed);
            return;
        }
        if self.entries().all(|entry| entry.load(Relaxed) != 0) {
            let Some(chunk) = engine.meta(WORDS * size_of::<usize>(), 64) else {
                return;
            };
            // SAFETY: fresh zeroed metadata of a chunk's size.
            unsafe { (*(chunk as *const AtomicUsize)).store(self.first.load(Relaxed), Relaxed) };
            self.first.store(chunk, Relaxed);
        }
        if let Some(entry) = self.entries().find(|entry| entry.load(Relaxed) == 0) {
            entry.store(value, Relaxed);
            self.count.fetch_add(1, Relaxed);
        }
    }

    /// Forgets the objects of a slab whose memory begins a new life.
    pub fn forget(&self, slab: std::ops::Range<usize>) {
        if self.count() == 0 {
            return;
        }
        let _held = self.lock.lock();
        for entry in self.entries() {
            if slab.contains(&entry.load(Relaxed)) {
                entry.store(0, Relaxed);
                self.count.fetch_sub(1, Relaxed);
            }
        }
    }
}
