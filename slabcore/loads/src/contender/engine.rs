//! The engine, through its public interface and with all its counters.

use super::options::Options;
use crate::{Contender, Heap, Held, Pool};
use slabcore::stats::Counters;
use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, Policy, SlabAlloc};
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

/// An engine with one policy: caches for one size, a global allocator for many.
#[derive(Debug)]
pub struct Slabcore {
    engine: Engine,
    options: Options,
    heap: &'static SlabAlloc,
    validator: Option<Validator>,
}

/// A thread that validates an engine without pause, until this is dropped.
#[derive(Debug)]
struct Validator {
    shared: Arc<(AtomicBool, AtomicU64)>,
    thread: Option<JoinHandle<()>>,
}

impl Validator {
    fn of(engine: Engine) -> Option<Self> {
        let shared = Arc::new((AtomicBool::new(false), AtomicU64::new(0)));
        let own = Arc::clone(&shared);
        let look = move || {
            while !own.0.load(Relaxed) {
                let found = engine.validate().findings.len() as u64;
                own.1.fetch_add(found, Relaxed);
            }
        };
        let thread = std::thread::Builder::new().spawn(look).ok()?;
        let thread = Some(thread);
        Some(Self { shared, thread })
    }
}

impl Drop for Validator {
    fn drop(&mut self) {
        self.shared.0.store(true, Relaxed);
        // What it found is counted.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Slabcore {
    /// A new engine with a policy; `None` if the system has no memory for it.
    pub fn new(policy: Policy) -> Option<Self> {
        Self::with(Options::of(policy))
    }

    /// A new engine with some options; `None` if the system has no memory for it.
    pub fn with(options: Options) -> Option<Self> {
        let config = EngineConfig {
            policy: options.policy,
            ..EngineConfig::new()
        };
        let engine = Engine::new(config).ok()?;
        let validator = if options.validate {
            Some(Validator::of(engine.clone())?)
        } else {
            None
        };
        Some(Self {
            engine,
            options,
            // As a global allocator it lives as long as the process.
            heap: Box::leak(Box::new(SlabAlloc::with(config))),
            validator,
        })
    }
}

impl Contender for Slabcore {
    type Pool = Cache;
    type Heap = &'static SlabAlloc;

    fn pool(&self, size: usize) -> Option<Cache> {
        let layout = Layout::from_size_align(size, 8).ok()?;
        let builder = CacheBuilder::new(&self.engine, "load", layout);
        self.options.apply(builder).build().ok()
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

    fn held(&self) -> Option<Held> {
        let mut held = Held::default();
        let engines = [Some(&self.engine), self.heap.engine()];
        for cache in { engines.into_iter().flatten() }.flat_map(|of| of.snapshot().caches) {
            let barns = { cache.nodes.iter() }.map(|node| u64::from(node.barn_full));
            let barns = barns.sum::<u64>() * u64::from(cache.sheaf_capacity);
            held.slab_bytes += cache.slabs * (4096 << cache.order);
            held.partial += cache.partial + cache.slabs_cpu_partial;
            held.parked += cache.sheaf_objects + barns;
            held.live_bytes += cache.objects * u64::from(cache.object_size);
        }
        Some(held)
    }

    fn wrong(&self) -> Option<String> {
        let found = self.validator.as_ref()?.shared.1.load(Relaxed);
        (found > 0).then(|| format!("{found} findings while it was validated"))
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
