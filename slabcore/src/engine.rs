//! Engines: a page range, a table of caches, and the list of all engines.
//!
//! Lock order: registry, then slots, then an engine's table, then a cache's shared row,
//! then wake queue or list lock or barn, then the pool of arrays, then pages. Metadata's
//! lock comes last, below a debug cache's quarantine. `fork` takes all of them in this
//! order. Nothing is allocated from the global allocator.

use crate::config::{EngineConfig, Error};
use crate::core::{CacheCore, Cx, MAX_NODES};
use crate::fork;
use crate::guarded::Pool;
use crate::pages::{Pages, state, unpack};
use crate::policy;
use crate::segment;
use crate::slab::{NIL, Table};
use crate::slot;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Lock, Ordering, Ordering::Relaxed};
use crate::sys;

/// Caches of one engine at most.
pub const MAX_CACHES: u32 = 1024;
const META_CHUNK: usize = 256 << 10;

/// An engine, as its handles and caches share it.
#[derive(Debug)]
pub(crate) struct EngineCore {
    pub pages: Pages,
    pub config: EngineConfig,
    /// Protects the table of caches.
    pub table_lock: Lock,
    table: usize,
    /// Entries of the table that have been used.
    pub nr_caches: AtomicU32,
    /// One word for each entry: whether there is a cache.
    pub present: [AtomicU32; MAX_CACHES as usize],
    /// Handles and caches.
    refs: AtomicU32,
    /// Caches that could not be destroyed because objects live on.
    pub zombies: AtomicU32,
    meta_lock: Lock,
    meta_at: AtomicUsize,
    meta_end: AtomicUsize,
    meta_chunks: AtomicUsize,
    /// Bytes asked for by large objects, and their number.
    pub large_bytes: AtomicU64,
    pub large_count: AtomicU64,
    /// Reports made so far.
    pub faults: AtomicU64,
    /// Region of the stack depot, made with the first cache that tracks.
    pub depot: AtomicUsize,
    /// Pages of sampled objects, if there is sampling: a pointer that may be null.
    pub guarded: Option<&'static Pool>,
    /// Number of nodes.
    nodes: u32,
    next: AtomicUsize,
}

#[cfg(not(shuttle))]
crate::segment::layout::fields!(EngineCore, "engine": pages, nodes, table, nr_caches, present, large_bytes,
    large_count, faults, depot, guarded, next);

/// All engines of the process; `lock` is held while a slot is flushed.
struct Registry {
    lock: Lock,
    first: AtomicUsize,
}

static REGISTRY: Registry = Registry {
    lock: Lock::new(),
    first: AtomicUsize::new(0),
};

impl EngineCore {
    fn create(mut config: EngineConfig) -> Result<&'static Self, Error> {
        fork::register();
        if config.cpus == 0 {
            // Asked once: it opens a file.
            config.cpus = sys::cpus();
        }
        let pages = Pages::new(
            config.reserve,
            config.limit,
            config.decommit,
            config.huge_pages,
        );
        let pages = pages.ok_or(Error::NoMemory)?;
        let at = sys::map_lazy(size_of::<Self>());
        let table = sys::map_lazy(MAX_CACHES as usize * size_of::<CacheCore>());
        if at == 0 || table == 0 {
            // SAFETY: nothing of the new mappings is in use.
            unsafe {
                sys::unmap(at, size_of::<Self>());
                sys::unmap(table, MAX_CACHES as usize * size_of::<CacheCore>());
                pages.release();
            }
            return Err(Error::NoMemory);
        }
        let core = Self {
            pages,
            config,
            table_lock: Lock::new(),
            table,
            nr_caches: AtomicU32::new(0),
            present: [const { AtomicU32::new(0) }; MAX_CACHES as usize],
            refs: AtomicU32::new(1),
            zombies: AtomicU32::new(0),
            meta_lock: Lock::new(),
            meta_at: AtomicUsize::new(0),
            meta_end: AtomicUsize::new(0),
            meta_chunks: AtomicUsize::new(0),
            large_bytes: AtomicU64::new(0),
            large_count: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            depot: AtomicUsize::new(0),
            guarded: match config.sample_every {
                0 => None,
                every => Pool::make(every),
            },
            nodes: config.nodes.clamp(1, MAX_NODES) as u32,
            next: AtomicUsize::new(0),
        };
        let at = at as *mut Self;
        // SAFETY: `at` is a fresh, page-aligned mapping large enough for the value; it stays
        // mapped until the last reference is gone (`release`).
        let core = unsafe {
            at.write(core);
            &*at
        };
        let held = REGISTRY.lock.lock();
        core.next.store(REGISTRY.first.load(Relaxed), Relaxed);
        REGISTRY.first.store(at as usize, Relaxed);
        drop(held);
        segment::begin(config.segment, config.watcher);
        Ok(core)
    }

    /// The lock of the metadata, for `fork`.
    pub fn meta_lock(&self) -> &Lock {
        &self.meta_lock
    }

    /// Node of a slot.
    pub fn node_of(&self, slot: u32) -> usize {
        slot as usize % self.nodes()
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes as usize
    }

    /// Metadata that lives as long as the engine; `None` when the system refuses.
    pub fn meta(&self, bytes: usize, align: usize) -> Option<usize> {
        let _held = self.meta_lock.lock();
        let at = self.meta_at.load(Relaxed).next_multiple_of(align);
        if at != 0 && at + bytes <= self.meta_end.load(Relaxed) {
            self.meta_at.store(at + bytes, Relaxed);
            return Some(at);
        }
        // The first two words of a chunk link the chunks and tell the size.
        let size = META_CHUNK.max((bytes + align + 64).next_multiple_of(sys::PAGE));
        let chunk = sys::map_lazy(size);
        if chunk == 0 {
            return None;
        }
        // SAFETY: a fresh mapping of at least two words.
        unsafe {
            (chunk as *mut usize).write(self.meta_chunks.load(Relaxed));
            (chunk as *mut usize).add(1).write(size);
        }
        self.meta_chunks.store(chunk, Relaxed);
        let at = (chunk + 16).next_multiple_of(align);
        self.meta_at.store(at + bytes, Relaxed);
        self.meta_end.store(chunk + size, Relaxed);
        Some(at)
    }

    /// Place of a table entry.
    pub fn entry(&self, id: u32) -> *mut CacheCore {
        debug_assert!(id < MAX_CACHES);
        // SAFETY: the table maps MAX_CACHES entries and `id` is below.
        unsafe { (self.table as *mut CacheCore).add(id as usize) }
    }

    /// The cache of an id, if there is one.
    pub fn cache(&self, id: u32) -> Option<&'static CacheCore> {
        let there = self.present.get(id as usize)?.load(Ordering::Acquire) != 0;
        // SAFETY: `present` is set after the entry was written; entries are rewritten only after
        // `present` was cleared by the destruction of a cache without objects and handles.
        there.then(|| unsafe { &*self.entry(id) })
    }

    /// All caches.
    pub fn caches(&self) -> impl Iterator<Item = &'static CacheCore> + '_ {
        (0..self.nr_caches.load(Relaxed)).filter_map(|id| self.cache(id))
    }

    pub fn add_ref(&self) {
        self.refs.fetch_add(1, Relaxed);
    }

    /// As [`Self::add_ref`], unless the last reference is gone and the engine is about to go.
    #[cfg_attr(shuttle, allow(dead_code))]
    pub fn try_add_ref(&self) -> bool {
        let mut refs = self.refs.load(Relaxed);
        while refs > 0 {
            let more = self.refs.compare_exchange(refs, refs + 1, Relaxed, Relaxed);
            match more {
                Ok(_) => return true,
                Err(now) => refs = now,
            }
        }
        false
    }

    /// Gives a reference up; the last one unmaps everything, unless objects live on.
    pub fn release(&'static self) {
        if self.refs.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let held = REGISTRY.lock.lock();
        let me = std::ptr::from_ref(self) as usize;
        let mut link = &REGISTRY.first;
        while link.load(Relaxed) != me {
            // SAFETY: registered engines are mapped; the registry lock is held.
            link = unsafe { &(*(link.load(Relaxed) as *const Self)).next };
        }
        link.store(self.next.load(Relaxed), Relaxed);
        drop(held);
        if self.zombies.load(Relaxed) != 0 || self.large_count.load(Relaxed) != 0 {
            return;
        }
        let (table, mut chunk) = (self.table, self.meta_chunks.load(Relaxed));
        // SAFETY: no handle, cache, object or registry entry is left, so nobody can reach any of
        // these mappings; the chunk header was written by `meta`.
        unsafe {
            if let Some(pool) = self.guarded {
                pool.release();
            }
            self.pages.release();
            sys::unmap(table, MAX_CACHES as usize * size_of::<CacheCore>());
            while chunk != 0 {
                let header = chunk as *const usize;
                let (next, size) = (header.read(), header.add(1).read());
                sys::unmap(chunk, size);
                chunk = next;
            }
            sys::unmap(me, size_of::<Self>());
        }
    }
}

/// All engines; the registry lock is held.
pub(crate) fn registered() -> impl Iterator<Item = &'static EngineCore> {
    let at = |at: usize| {
        // SAFETY: registered engines are mapped while the registry lock is held.
        (at != 0).then(|| unsafe { &*(at as *const EngineCore) })
    };
    std::iter::successors(at(REGISTRY.first.load(Relaxed)), move |engine| {
        at(engine.next.load(Relaxed))
    })
}

/// The lock of the list of engines, for `fork`.
pub(crate) fn registry_lock() -> &'static Lock {
    &REGISTRY.lock
}

/// Address of the word that leads to the first engine.
#[cfg(not(shuttle))]
pub(crate) fn root() -> usize {
    &raw const REGISTRY.first as usize
}

/// Flushes a slot's rows in all engines; the slot's thread is ending.
pub(crate) fn flush_slot(slot: u32) {
    with_registry(|| flush_slot_held(slot));
}

/// As [`flush_slot`], with the registry lock held.
pub(crate) fn flush_slot_held(slot: u32) {
    for core in registered().flat_map(EngineCore::caches) {
        policy::flush(Cx::new(core, slot));
    }
}

/// The first engine that a test accepts; gives up when the list is locked for long.
/// For handlers of signals, which may interrupt whoever holds the lock.
pub(crate) fn find(test: impl Fn(&EngineCore) -> bool) -> Option<&'static EngineCore> {
    let _held = (0..1 << 20).find_map(|_| REGISTRY.lock.try_lock())?;
    registered().find(|engine| test(engine))
}

/// Runs `work` while no slot is being flushed and no engine comes or goes.
pub(crate) fn with_registry<R>(work: impl FnOnce() -> R) -> R {
    let _held = REGISTRY.lock.lock();
    fork::recover_held();
    work()
}

/// As [`with_registry`], unless somebody holds it.
pub(crate) fn try_registry(work: impl FnOnce()) {
    if let Some(_held) = REGISTRY.lock.try_lock() {
        work();
    }
}

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// Not of this engine.
    Foreign,
    /// Of the engine's range, but in nothing that is allocated.
    Unused,
    /// In a large object that begins at `start`.
    Large {
        /// Address of its first byte.
        start: usize,
        /// Its bytes.
        bytes: usize,
    },
    /// In a slab.
    Slab {
        /// Id of the cache.
        cache: u32,
        /// Address of the slab.
        start: usize,
        /// Index of the object, or of the one that the address is in.
        index: u16,
        /// Bytes from the object's start; 0 for a pointer that may be freed.
        offset: usize,
    },
    /// In a live sampled object on a page of its own.
    Guarded {
        /// Id of the cache.
        cache: u32,
        /// Address of the object.
        start: usize,
        /// Its bytes.
        bytes: usize,
    },
    /// In a slab, behind its last object.
    Tail {
        /// Id of the cache.
        cache: u32,
        /// Address of the slab.
        start: usize,
    },
}

/// A handle on an engine.
#[derive(Debug)]
pub struct Engine {
    pub(crate) core: &'static EngineCore,
}

impl Engine {
    /// Makes an engine; several may exist.
    pub fn new(config: EngineConfig) -> Result<Self, Error> {
        EngineCore::create(config).map(|core| Self { core })
    }

    /// Gives back memory that has been free since the last tick; returns bytes.
    pub fn tick(&self) -> u64 {
        self.core.pages.tick() * sys::PAGE as u64
    }

    /// Has faults in guard pages and freed sampled objects reported, in the kernel's words for
    /// KFENCE. Installs a handler of SIGSEGV for the process, which then does what was done before:
    /// an earlier handler runs, or the process ends; for overflows of stacks, which leave it no room,
    /// always the latter. False if the system refuses.
    pub fn catch_guard_faults(&self) -> bool {
        crate::guarded::catch()
    }

    /// Changes the limit on bytes in use.
    pub fn set_limit(&self, bytes: u64) {
        self.core.pages.set_limit(bytes);
    }

    /// Says what an address is, in constant time and without reading what it points to.
    pub fn classify(&self, address: *const u8) -> Address {
        let address = address as usize;
        let pages = &self.core.pages;
        let Some(page) = pages.page_of(address) else {
            return match self.core.guarded.filter(|pool| pool.owns(address)) {
                None => Address::Foreign,
                Some(pool) => match pool.object(address) {
                    Some((cache, start, bytes)) => Address::Guarded {
                        cache,
                        start,
                        bytes,
                    },
                    None => Address::Unused,
                },
            };
        };
        let head = pages.head_entry(page).load(Relaxed);
        if head == NIL {
            return Address::Unused;
        }
        let desc = pages.desc(head);
        let start = pages.address(head);
        let cache = desc.cache.load(Relaxed);
        if unpack(desc.run.load(Relaxed)).0 == state::LARGE {
            let bytes = pages.run_bytes(head);
            return Address::Large { start, bytes };
        }
        let Some(core) = cache.checked_sub(1).and_then(|id| self.core.cache(id)) else {
            return Address::Unused;
        };
        let cache = core.id;
        let offset = address - start;
        let index = offset / core.size as usize;
        if index >= usize::from(desc.load().objects()) {
            return Address::Tail { cache, start };
        }
        Address::Slab {
            cache,
            start,
            index: index as u16,
            offset: (offset % core.size as usize).wrapping_sub(core.object_offset as usize),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.core.release();
    }
}

impl Clone for Engine {
    fn clone(&self) -> Self {
        self.core.add_ref();
        Self { core: self.core }
    }
}

impl CacheCore {
    /// Rows that may hold something or have counted something.
    pub fn used_rows(&self) -> impl Iterator<Item = &crate::row::Row> {
        (slot::SHARED..slot::used()).map(|slot| self.row(slot))
    }
}
