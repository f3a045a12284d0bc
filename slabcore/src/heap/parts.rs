//! What a heap consists of: its engine, the caches of its classes, and their rows.

use super::STRIDE;
use super::sizes::{KINDS, NAMES, SIZES};
use crate::builder::CacheBuilder;
use crate::cache::Cache;
use crate::config::EngineConfig;
use crate::debug::operation::{OnFault, Operation};
use crate::debug::outside::outside;
use crate::debug::reason::Reason;
use crate::engine::{Address, Engine};
use crate::finding::{Fault, Finding};
use crate::guarded;
use crate::row::Row;
use crate::slot::MAX_SLOTS;
use crate::sys::{self, PAGE};
use std::alloc::Layout;
use std::ptr::NonNull;

#[derive(Debug)]
pub(super) struct Parts {
    pub engine: Engine,
    /// By class; there is none for class 0.
    pub caches: [Option<Cache>; KINDS],
    /// Some cache is a debug cache.
    pub debug: bool,
    /// Some cache is sampled.
    pub sampled: bool,
    /// Behind the caches, since they go first.
    pub rows: Rows,
}

/// The mapping of the rows of all slots.
#[derive(Debug)]
pub(super) struct Rows(pub usize);

impl Rows {
    const BYTES: usize = MAX_SLOTS as usize * STRIDE;

    fn map() -> Option<Self> {
        let at = sys::map_lazy(Self::BYTES);
        (at != 0).then_some(Self(at))
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: only a heap that nobody knows is dropped, after its caches.
        unsafe { sys::unmap(self.0, Self::BYTES) };
    }
}

impl Parts {
    /// All of it; `None` when the system refuses the memory.
    pub fn make(config: EngineConfig) -> Option<Self> {
        let rows = Rows::map()?;
        let engine = Engine::new(config).ok()?;
        let mut caches = [const { None }; KINDS];
        let (mut debug, mut sampled) = (false, false);
        for (kind, place) in caches.iter_mut().enumerate().skip(1) {
            let cache = Self::cache(&engine, kind, rows.0)?;
            debug |= cache.core.hooks.is_some();
            sampled |= cache.core.sampled;
            *place = Some(cache);
        }
        Some(Self {
            engine,
            caches,
            debug,
            sampled,
            rows,
        })
    }

    fn cache(engine: &Engine, kind: usize, rows: usize) -> Option<Cache> {
        let size = SIZES[kind];
        let align = (1 << size.trailing_zeros()).min(PAGE);
        let layout = Layout::from_size_align(size, align).ok()?;
        let builder = CacheBuilder::new(engine, NAMES[kind], layout)
            .merge(false)
            .of_heap(kind as u8, rows + kind * size_of::<Row>());
        builder.kmalloc().build().ok()
    }

    /// Whether a large object starts at a pointer into it.
    pub fn starts_here(&self, object: NonNull<u8>) -> bool {
        match self.engine.classify(object.as_ptr()) {
            // More aligned than its run is: it begins at the first such address.
            Address::Large { start, bytes } => {
                let at = object.as_ptr() as usize;
                start == at || bytes > crate::sys::HUGE && at.is_multiple_of(crate::sys::HUGE)
            }
            _ => false,
        }
    }

    /// Reports a pointer that is no object of the heap, if there are debug caches.
    #[cold]
    pub fn report(&self, object: NonNull<u8>) {
        let (core, pointer) = (self.engine.core, object.as_ptr() as usize);
        // Was a guarded object, or lies beside one: there is more to be told.
        if let (Some(pool), Some(cache)) = (core.guarded, &self.caches[1])
            && pool.owns(pointer)
        {
            return guarded::free(cache.core, pool, pointer);
        }
        if !self.debug {
            return;
        }
        let mut op = Operation::new();
        op.identify(None, core.config.own_code);
        let reason = Reason::NoCache {
            pointer: pointer as u64,
        };
        let finding = Finding::new(u32::MAX, 0, Fault::OutsideSlab { pointer });
        outside(core, &mut op, "<unknown>", (reason, pointer), finding);
        op.send(core.config.report);
        if core.config.on_fault == OnFault::Abort {
            std::process::abort();
        }
    }
}
