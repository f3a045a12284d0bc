//! Loads for memory allocators, and contenders to run them on.
//!
//! The loads are those by which kernel people and allocator authors compare:
//! `slab_test.c` of the prototype-kernel repository, and larson, xmalloc-test and
//! mstress of mimalloc-bench, written anew with fixed seeds and fixed work.
//! Each is written once, against the traits below, and compiled for each
//! contender, so that no load pays for a choice at run time. What is not here:
//! who runs them and when (`bin/compare.rs`), and any claim about the results.

pub mod bench;
pub mod contender;
pub mod figure;
pub mod load;
pub mod model;
pub mod outcome;
pub mod pin;
pub mod rss;
pub mod seed;
pub mod ticks;

mod rng;

/// Objects of one size.
pub trait Pool: Sync {
    /// Allocates an object, or gives null.
    fn alloc(&self) -> *mut u8;

    /// Frees an object.
    ///
    /// # Safety
    /// It came from this pool, is in use, and is not freed again.
    unsafe fn free(&self, object: *mut u8);

    /// Allocates an object for each place; those behind the last success are left as they are.
    fn alloc_bulk(&self, out: &mut [*mut u8]) {
        for place in out {
            *place = self.alloc();
        }
    }

    /// Frees objects.
    ///
    /// # Safety
    /// As [`Pool::free`], for each.
    unsafe fn free_bulk(&self, objects: &[*mut u8]) {
        for object in objects {
            // SAFETY: by the contract.
            unsafe { self.free(*object) };
        }
    }
}

/// Objects of any size.
pub trait Heap: Sync {
    /// Allocates `size` bytes aligned to 8, or gives null.
    fn alloc(&self, size: usize) -> *mut u8;

    /// Frees an object of `size` bytes.
    ///
    /// # Safety
    /// It was allocated here with that size, is in use, and is not freed again.
    unsafe fn free(&self, object: *mut u8, size: usize);
}

/// What an allocator holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes of slabs.
    pub slab_bytes: u64,
    /// Slabs on lists of partial slabs, of nodes and slots.
    pub partial: u64,
    /// Free objects in arrays: of slots, and in barns.
    pub parked: u64,
    /// Bytes of objects in use.
    pub live_bytes: u64,
}

/// An allocator that takes part.
pub trait Contender {
    /// For loads of one size.
    type Pool: Pool;
    /// For loads of many sizes.
    type Heap: Heap;

    /// A pool of objects of `size` bytes; `None` if it cannot be had.
    fn pool(&self, size: usize) -> Option<Self::Pool>;

    /// The heap.
    fn heap(&self) -> Self::Heap;

    /// What is held now; `None` if that cannot be told.
    fn held(&self) -> Option<Held> {
        None
    }

    /// What was counted so far, over all pools and the heap; `None` if nothing is counted.
    fn counters(&self) -> Option<slabcore::stats::Counters> {
        None
    }

    /// A mistake that the contender itself has noticed.
    fn wrong(&self) -> Option<String> {
        None
    }
}
