//! The engine, through its public interface and with all its counters.

use crate::{Contender, Heap, Pool};
use slabcore::stats::Counters;
use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, Policy, SlabAlloc};
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, null_mut};

/// An engine with one policy: caches for one size, a global allocator for many.
#[derive(Debug)]
pub struct Slabcore {
    engine: Engine,
    policy: Policy,
    heap: &'static SlabAlloc,
}

impl Slabcore {
    /// A new engine; `None` if the system has no memory for it.
    pub fn new(policy: Policy) -> Option<Self> {
        let config = EngineConfig {
            policy,
            ..EngineConfig::new()
        };
        Some(Self {
            engine: Engine::new(config).ok()?,
            policy,
            // As a global allocator it lives as long as the process.
            heap: Box::leak(Box::new(SlabAlloc::with(config))),
        })
    }
}

impl Contender for Slabcore {
    type Pool = Cache;
    type Heap = &'static SlabAlloc;

    fn pool(&self, size: usize) -> Option<Cache> {
        let layout = Layout::from_size_align(size, 8).ok()?;
        let builder = CacheBuilder::new(&self.engine, "load", layout);
        builder.policy(self.policy).build().ok()
    }

    fn heap(&self) -> &'static SlabAlloc {
        self.heap
    }

    fn counters(&self) -> Option<Counters> {
        let mut sum = Counters::default();
        let engines = [Some(&self.engine), self.heap.engine()];
        for engine in engines.into_iter().flatten() {
            for cache in engine.snapshot().caches {
                sum.add_all(&cache.counters);
            }
        }
        Some(sum)
    }
}

impl Pool for Cache {
    #[inline(always)]
    fn alloc(&self) -> *mut u8 {
        Self::alloc(self).map_or(null_mut(), NonNull::as_ptr)
    }

    #[inline(always)]
    unsafe fn free(&self, object: *mut u8) {
        // SAFETY: by the contract; an object in use is not null.
        unsafe { Self::free(self, NonNull::new_unchecked(object)) };
    }

    fn alloc_bulk(&self, out: &mut [*mut u8]) {
        Self::alloc_bulk(self, out);
    }

    unsafe fn free_bulk(&self, objects: &[*mut u8]) {
        // SAFETY: by the contract.
        unsafe { Self::free_bulk(self, objects) };
    }
}

impl Heap for &'static SlabAlloc {
    #[inline(always)]
    fn alloc(&self, size: usize) -> *mut u8 {
        match Layout::from_size_align(size, 8) {
            // SAFETY: loads ask for at least one byte.
            Ok(layout) => unsafe { GlobalAlloc::alloc(*self, layout) },
            Err(_) => null_mut(),
        }
    }

    #[inline(always)]
    unsafe fn free(&self, object: *mut u8, size: usize) {
        if let Ok(layout) = Layout::from_size_align(size, 8) {
            // SAFETY: by the contract.
            unsafe { GlobalAlloc::dealloc(*self, object, layout) };
        }
    }
}
