//! Making caches: options with the kernel's names and defaults.
//!
//! Source of truth: `kmem_cache_create`, `calculate_sizes`, `set_cpu_partial`
//! and `set_min_partial` of Linux 6.12; array capacities of Linux 7.0.

use crate::cache::Cache;
use crate::config::Error;
use crate::core::{CacheCore, NodePart, Outside, Path};
use crate::debug::cache::DebugCache;
use crate::debug::flags::{DebugFlags, DebugOptions};
use crate::debug::layout::LayoutSpec;
use crate::engine::{Engine, MAX_CACHES};
use crate::guarded;
use crate::harden::{self, Hard};
use crate::heap;
use crate::hooks::DebugHooks;
use crate::order::{OrderParams, calculate_order, order_of};
use crate::policy::Policy;
use crate::row::Row;
use crate::sync::{AtomicU32, AtomicUsize, Lock, Ordering, Ordering::Relaxed};
use crate::sys::{self, PAGE};
use std::alloc::Layout;

/// Describes a cache to be made.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct CacheBuilder<'a> {
    engine: &'a Engine,
    name: &'a str,
    layout: Layout,
    policy: Policy,
    ctor: Option<fn(*mut u8)>,
    min_partial: Option<u32>,
    cpu_partial: Option<u32>,
    min_objects: Option<u32>,
    max_order: u32,
    sheaf_capacity: Option<u32>,
    merge: bool,
    add_to_tail: bool,
    hooks: Option<&'static dyn DebugHooks>,
    /// Address of the hooks, if they are the engine's own.
    debug_at: usize,
    flags: Option<DebugFlags>,
    kmalloc: bool,
    kind: u8,
    rows: Option<usize>,
    harden: bool,
    randomise: bool,
}

/// By size of the slot: from 4096, 1024, 256 bytes on, and below.
fn by_size(size: usize, values: [u32; 4]) -> u32 {
    let [huge, large, medium, small] = values;
    match size {
        4096.. => huge,
        1024.. => large,
        256.. => medium,
        _ => small,
    }
}

/// What follows from size and alignment.
struct Geometry {
    size: usize,
    link: usize,
    object_offset: usize,
    order: u32,
    fallback_order: u32,
    objects: usize,
}

impl<'a> CacheBuilder<'a> {
    /// A cache for objects of a layout, with the engine's defaults.
    pub fn new(engine: &'a Engine, name: &'a str, layout: Layout) -> Self {
        Self {
            engine,
            name,
            layout,
            policy: engine.core.config.policy,
            ctor: None,
            min_partial: None,
            cpu_partial: None,
            min_objects: None,
            max_order: 3,
            sheaf_capacity: None,
            merge: engine.core.config.merge,
            add_to_tail: false,
            hooks: None,
            debug_at: 0,
            flags: None,
            kmalloc: false,
            kind: 0,
            rows: None,
            harden: engine.core.config.harden_freelist,
            randomise: engine.core.config.randomise_freelist,
        }
    }

    /// Whether links of free objects are stored so that damage shows, as the kernel's
    /// `CONFIG_SLAB_FREELIST_HARDENED`. It costs a multiplication for each link used.
    #[must_use]
    pub const fn harden_freelist(mut self, on: bool) -> Self {
        self.harden = on;
        self
    }

    /// Whether the objects of a new slab are handed out in random order, as the kernel's
    /// `CONFIG_SLAB_FREELIST_RANDOM`.
    #[must_use]
    pub const fn randomise_freelist(mut self, on: bool) -> Self {
        self.randomise = on;
        self
    }

    /// The policy.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Called once for each new object. Users must free objects in the state in which
    /// the constructor leaves them. It must not use the cache itself, nor make engines, end
    /// caches or validate: it may run with a lock held that a fork waits for.
    #[must_use]
    pub const fn ctor(mut self, ctor: fn(*mut u8)) -> Self {
        self.ctor = Some(ctor);
        self
    }

    /// Partial slabs that a node keeps before an empty one is discarded.
    /// By default half the binary logarithm of the size, from 5 to 10.
    #[must_use]
    pub const fn min_partial(mut self, slabs: u32) -> Self {
        self.min_partial = Some(slabs);
        self
    }

    /// Free objects that a slot's list of partial slabs may hold.
    /// By default 6, 24, 52 or 120, by size.
    #[must_use]
    pub const fn cpu_partial(mut self, objects: u32) -> Self {
        self.cpu_partial = Some(objects);
        self
    }

    /// Objects that a slab should hold; 0 is the kernel's `4 * (fls(cpus) + 1)`. By default
    /// that, too, and 64 with the policy `hybrid`; debug caches follow the kernel.
    #[must_use]
    pub const fn min_objects(mut self, objects: u32) -> Self {
        self.min_objects = Some(objects);
        self
    }

    /// Largest page order tried for `min_objects`, by default 3.
    #[must_use]
    pub const fn max_order(mut self, order: u32) -> Self {
        self.max_order = order;
        self
    }

    /// Objects in an array; by default 4, 12, 28 or 60, by size.
    #[must_use]
    pub const fn sheaf_capacity(mut self, objects: u32) -> Self {
        self.sheaf_capacity = Some(objects);
        self
    }

    /// Whether the cache may share the slabs of another one of the same size,
    /// alignment and policy. Caches with a constructor or hooks never do.
    #[must_use]
    pub const fn merge(mut self, merge: bool) -> Self {
        self.merge = merge;
        self
    }

    /// Adds partial slabs to the tail of the node's list, not to its head.
    #[must_use]
    pub const fn add_to_tail(mut self, tail: bool) -> Self {
        self.add_to_tail = tail;
        self
    }

    /// Makes it a debug cache: no fast path, and these hooks at each operation.
    #[must_use]
    pub const fn debug(mut self, hooks: &'static dyn DebugHooks) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// Debugs the cache, or not, whatever the engine's option says of its name. A cache
    /// with flags is a debug cache and never shares slabs.
    #[must_use]
    pub const fn debug_flags(mut self, flags: DebugFlags) -> Self {
        self.flags = Some(flags);
        self
    }

    /// Requests may be smaller than the object.
    pub(crate) const fn kmalloc(mut self) -> Self {
        self.kmalloc = true;
        self
    }

    /// It is the cache of a class of a heap, which has its rows.
    pub(crate) const fn of_heap(mut self, kind: u8, rows: usize) -> Self {
        self.kind = kind;
        self.rows = Some(rows);
        self
    }

    /// The flags that apply, by the builder or else by the engine's option.
    fn flags(&self) -> DebugFlags {
        if let Some(flags) = self.flags {
            return flags;
        }
        let Some(options) = self.engine.core.config.debug.map(DebugOptions::parse) else {
            return DebugFlags::NONE;
        };
        let flags = options.flags_for(self.name).unwrap_or(DebugFlags::NONE);
        let size = self.layout.size();
        // The kernel's `O`: no flags that would make a slab of one object larger.
        let grown = self.spec(flags).layout().map_or(size, |it| it.slab_size());
        if options.avoid_higher_order() && order_of(grown) > order_of(size) {
            let kept = [DebugFlags::CONSISTENCY, DebugFlags::TRACE, DebugFlags::FAIL];
            let kept = kept.into_iter().filter(|&flag| flags.contains(flag));
            return kept.fold(DebugFlags::NONE, DebugFlags::union);
        }
        flags
    }

    fn spec(&self, flags: DebugFlags) -> LayoutSpec {
        LayoutSpec {
            has_ctor: self.ctor.is_some(),
            kmalloc: self.kmalloc,
            ..LayoutSpec::new(self.layout.size().max(1), self.layout.align().max(8), flags)
        }
    }

    /// The layout of the objects.
    #[must_use]
    pub const fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    fn geometry(&self) -> Result<Geometry, Error> {
        let (bytes, align) = (self.layout.size(), self.layout.align().max(8));
        if align > PAGE || bytes > PAGE << crate::order::MAX_ORDER {
            return Err(Error::BadLayout);
        }
        let (size, link, object_offset) = if let Some(hooks) = self.hooks {
            (
                hooks.slot_bytes(bytes, align),
                hooks.link_offset(bytes, align),
                hooks.object_offset(bytes, align),
            )
        } else if self.ctor.is_some() {
            // A constructed object is kept while it is free: the link goes behind it.
            let link = bytes.next_multiple_of(8);
            (link + 8, link, 0)
        } else {
            (bytes.max(8), 0, 0)
        };
        let size = size.next_multiple_of(align);
        let cpus = self.engine.core.config.cpus;
        let usual = if self.hooks.is_none() {
            self.policy.min_objects()
        } else {
            0
        };
        let params = OrderParams {
            min_objects: Some(self.min_objects.unwrap_or(usual)),
            max_order: self.max_order,
            ..OrderParams::new(size as u64, cpus, PAGE as u64)
        };
        let choice = calculate_order(&params).ok_or(Error::BadLayout)?;
        let order = choice.order;
        let fits = link + 2 <= size && link % 2 == 0 && object_offset + bytes <= size;
        if !fits {
            return Err(Error::BadLayout);
        }
        Ok(Geometry {
            size,
            link,
            object_offset,
            order,
            fallback_order: choice.fallback_order.min(order),
            objects: (choice.objs_per_slab as usize).min(crate::order::MAX_OBJECTS),
        })
    }

    /// Makes the cache, or gives another handle on one it may be merged with.
    pub fn build(mut self) -> Result<Cache, Error> {
        let (flags, mut name) = (self.flags(), None);
        if self.hooks.is_none() && !flags.is_empty() {
            if self.layout.size() > PAGE << crate::order::MAX_ORDER {
                return Err(Error::BadLayout);
            }
            let kept = self.store_name().ok_or(Error::NoMemory)?;
            let _held = self.engine.core.table_lock.lock();
            let hooks = DebugCache::make(self.engine.core, kept, self.spec(flags));
            let hooks = hooks.ok_or(Error::NoMemory)?;
            self.debug_at = std::ptr::from_ref(hooks) as usize;
            self.hooks = Some(hooks);
            name = Some(kept);
        }
        let geometry = self.geometry()?;
        let engine = self.engine.core;
        let mergeable = self.merge && self.ctor.is_none() && self.hooks.is_none();
        let _held = engine.table_lock.lock();
        if mergeable && let Some(core) = self.twin(&geometry) {
            core.refs.fetch_add(1, Relaxed);
            engine.add_ref();
            return Ok(Cache::of(core));
        }
        let used = engine.nr_caches.load(Relaxed);
        let id = (0..used)
            .find(|id| engine.present[*id as usize].load(Relaxed) == 0)
            .unwrap_or(used);
        if id >= MAX_CACHES {
            return Err(Error::TooManyCaches);
        }
        let name = name.or_else(|| self.store_name());
        let name = name.ok_or(Error::NoMemory)?;
        let rows = { self.rows }.unwrap_or_else(|| sys::map_lazy(CacheCore::rows_bytes()));
        if rows == 0 {
            return Err(Error::NoMemory);
        }
        let mut core = self.core(&geometry, id, name, rows, mergeable);
        if self.randomise {
            core.sequence = harden::sequence(engine, geometry.objects);
            core.seed = harden::random();
        }
        let entry = engine.entry(id);
        // SAFETY: no cache is present under this id, so nobody reads the entry; the table lock
        // keeps others from choosing it. The entry stays mapped while the engine lives, and the
        // reference below is used by handles, which keep the engine alive.
        let core = unsafe {
            entry.write(core);
            &*entry
        };
        engine.present[id as usize].store(1, Ordering::Release);
        engine.nr_caches.store(used.max(id + 1), Relaxed);
        engine.add_ref();
        Ok(Cache::of(core))
    }

    fn store_name(&self) -> Option<&'static str> {
        let at = self.engine.core.meta(self.name.len().max(1), 1)?;
        // SAFETY: fresh metadata of that length, never freed while the engine lives; the bytes
        // copied are those of a str.
        unsafe {
            std::ptr::copy_nonoverlapping(self.name.as_ptr(), at as *mut u8, self.name.len());
            let bytes = std::slice::from_raw_parts(at as *const u8, self.name.len());
            Some(std::str::from_utf8_unchecked(bytes))
        }
    }

    fn twin(&self, geometry: &Geometry) -> Option<&'static CacheCore> {
        self.engine.core.caches().find(|core| {
            core.mergeable
                && core.hard.is_some() == self.harden
                && core.sequence.is_some() == self.randomise
                && core.path == Path::Policy(self.policy)
                && core.size as usize == geometry.size
                && core.order == geometry.order
                && core.align as usize >= self.layout.align()
                && core.refs.load(Relaxed) > 0
                && core.object_size as usize >= self.layout.size()
        })
    }

    fn core(
        &self,
        geometry: &Geometry,
        id: u32,
        name: &'static str,
        rows: usize,
        mergeable: bool,
    ) -> CacheCore {
        let size = geometry.size;
        let path = match self.hooks {
            Some(_) => Path::Debug,
            None => Path::Policy(self.policy),
        };
        let cpu_partial = match (path, self.cpu_partial) {
            (Path::Policy(policy), _) if !policy.has_cpu_partial() => 0,
            (Path::Debug, _) => 0,
            (_, given) => given.unwrap_or(by_size(size, [6, 24, 52, 120])),
        };
        let sheaves = matches!(path, Path::Policy(policy) if policy.has_sheaves());
        let capacity = self.sheaf_capacity.unwrap_or(match path {
            // Twice the kernel's: fewer slow paths, and nothing held for longer.
            Path::Policy(Policy::Hybrid) => by_size(size, [8, 24, 56, 120]),
            _ => by_size(size, [4, 12, 28, 60]),
        });
        let per_slab = geometry.objects as u32;
        let hard = (self.harden && self.hooks.is_none()).then(Hard::new);
        let number = |policy| Policy::ALL.iter().position(|it| *it == policy);
        let outside = Outside {
            name: name.as_ptr() as usize,
            name_len: name.len() as u32,
            policy: match path {
                Path::Policy(policy) => number(policy).map_or(0, |n| n as u32 + 1),
                Path::Debug => 0,
            },
            secret: hard.as_ref().map_or(0, Hard::secret),
            debug: self.debug_at,
        };
        CacheCore {
            engine: self.engine.core,
            id,
            path,
            name,
            object_size: self.layout.size() as u32,
            size: size as u32,
            align: self.layout.align().max(8) as u32,
            link: geometry.link as u32,
            object_offset: geometry.object_offset as u32,
            magic: (1u64 << 32).div_ceil(size as u64),
            order: geometry.order,
            fallback_order: geometry.fallback_order,
            objects: geometry.objects as u16,
            own_words: per_slab.div_ceil(u64::BITS),
            links_new: path != Path::Policy(Policy::Hybrid),
            wake: (per_slab / 8).clamp(1, 32) as u16,
            sheaf_capacity: if sheaves { capacity.clamp(2, 4096) } else { 0 },
            cpu_partial,
            // As the kernel: slabs of the list are taken to be half full.
            cpu_partial_slabs: (cpu_partial * 2).div_ceil(per_slab),
            add_to_tail: self.add_to_tail,
            ctor: self.ctor,
            hooks: self.hooks,
            hard,
            sampled: self.hooks.is_none()
                && guarded::takes(self.engine.core, self.layout.size(), self.layout.align()),
            sequence: None,
            seed: 0,
            mergeable,
            kind: self.kind,
            rows,
            stride: match self.rows {
                Some(_) => heap::STRIDE,
                None => size_of::<Row>(),
            },
            outside,
            min_partial: AtomicU32::new(
                self.min_partial.unwrap_or((size.ilog2() / 2).clamp(5, 10)),
            ),
            refs: AtomicU32::new(1),
            epoch: AtomicU32::new(0),
            shared: Lock::new(),
            pool_lock: Lock::new(),
            sheaf_pool: AtomicUsize::new(0),
            own_pool: AtomicUsize::new(0),
            nodes: std::array::from_fn(|_| NodePart::default()),
        }
    }
}
