//! What the kernel's attributes would say of each cache.
//!
//! Source of truth: Documentation/ABI/testing/sysfs-kernel-slab. Counts are read
//! one after the other while the program runs; each is right at some moment,
//! and all together are exact when no thread is in an operation.

use crate::core::{CacheCore, Path};
use crate::debug::flags::DebugFlags;
use crate::debug::layout::ObjectLayout;
use crate::engine::{self, Engine};
use crate::hooks::DebugHooks;
use crate::pages::{state, unpack};
use crate::policy::Policy;
use crate::slab::{NIL, Table};
use crate::slot;
use crate::stats::Counters;
use crate::sync::Ordering::Relaxed;

/// Buckets of the occupancy histogram: empty, ten tenths, full.
pub const BUCKETS: usize = 12;

/// One node of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeSnapshot {
    /// Slabs.
    pub slabs: u64,
    /// Slabs on the partial list.
    pub partial: u64,
    /// Objects that fit in the slabs.
    pub total_objects: u64,
    /// Full arrays in the barn.
    pub barn_full: u32,
    /// Empty arrays in the barn.
    pub barn_empty: u32,
}

/// What one slot holds of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotSnapshot {
    /// Number of the slot. Number 1 is shared by threads without one.
    pub slot: u32,
    /// Slabs in hand: 0 or 1.
    pub slab: u64,
    /// Slabs on its list of partial slabs.
    pub partial: u64,
    /// Slabs that it owns and found full (hybrid).
    pub full: u64,
    /// Objects in its main array.
    pub main: u64,
    /// Objects in its second array.
    pub spare: u64,
    /// Its counters.
    pub counters: Counters,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSnapshot {
    /// Name.
    pub name: String,
    /// Id.
    pub id: u32,
    /// Policy; `None` for a debug cache.
    pub policy: Option<Policy>,
    /// Bytes of an object.
    pub object_size: u32,
    /// Bytes from one object to the next.
    pub slab_size: u32,
    /// Alignment of the objects.
    pub align: u32,
    /// Objects in a slab of the usual order.
    pub objs_per_slab: u32,
    /// Page order of a slab.
    pub order: u32,
    /// Setting: partial slabs kept by a node.
    pub min_partial: u32,
    /// Setting: free objects in a slot's list of partial slabs.
    pub cpu_partial: u32,
    /// Setting: objects in an array.
    pub sheaf_capacity: u32,
    /// Handles beyond the first.
    pub aliases: u32,
    /// Objects in use by the program.
    pub objects: u64,
    /// Objects that slabs think are in use: also those in arrays and own lists.
    pub objects_taken: u64,
    /// Objects that fit in the slabs.
    pub total_objects: u64,
    /// Slabs.
    pub slabs: u64,
    /// Slabs on partial lists of nodes.
    pub partial: u64,
    /// Slabs in hand of slots.
    pub cpu_slabs: u64,
    /// Slabs on lists of slots.
    pub slabs_cpu_partial: u64,
    /// Slabs that slots own and found full (hybrid).
    pub slabs_cpu_full: u64,
    /// Objects in arrays of slots.
    pub sheaf_objects: u64,
    /// The nodes.
    pub nodes: Vec<NodeSnapshot>,
    /// The slots that hold something of the cache or have counted something.
    pub slots: Vec<SlotSnapshot>,
    /// Slabs by occupancy as slabs see it: 0, up to 10 %, ..., below 100 %, full.
    pub occupancy: [u64; BUCKETS],
    /// Its debugging layer; `None` where that could not be read.
    pub debug: Option<DebugSnapshot>,
    /// Counters.
    pub counters: Counters,
}

/// The debugging layer of a cache; nothing and zero where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DebugSnapshot {
    /// What is debugged.
    pub flags: DebugFlags,
    /// Reports about the cache.
    pub faults: u64,
    /// Objects that are kept out of use because of damage.
    pub quarantined: u64,
}

/// An engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSnapshot {
    /// Bytes of addresses reserved.
    pub reserved: u64,
    /// Bytes in runs that are in use.
    pub used: u64,
    /// The most so far.
    pub used_peak: u64,
    /// Bytes given back to the system so far.
    pub decommitted: u64,
    /// Runs refused, by limit or system.
    pub failed: u64,
    /// Large objects, and bytes of their runs.
    pub large: (u64, u64),
    /// Reports made so far: about debug caches, hardened links, guard pages, foreign pointers.
    pub faults: u64,
    /// The caches.
    pub caches: Vec<CacheSnapshot>,
}

/// The bucket of a slab with so many objects taken.
pub(crate) fn bucket(taken: u64, objects: u16) -> usize {
    let total = u64::from(objects).max(1);
    let bucket = match taken {
        0 => 0,
        taken if taken >= total => BUCKETS - 1,
        taken => 1 + (taken * 10 / total) as usize,
    };
    bucket.min(BUCKETS - 1)
}

impl SlotSnapshot {
    /// It holds nothing and has counted nothing.
    pub(crate) fn is_unused(&self) -> bool {
        *self
            == Self {
                slot: self.slot,
                ..Self::default()
            }
    }
}

impl Engine {
    /// Looks at everything.
    pub fn snapshot(&self) -> EngineSnapshot {
        let core = self.core;
        let [reserved, used, used_peak, decommitted] = core.pages.bytes();
        // No cache is destroyed meanwhile. Operations do not take this lock.
        let caches = engine::with_registry(|| {
            let mut caches: Vec<_> = core.caches().map(CacheCore::snapshot).collect();
            self.add_occupancy(&mut caches);
            caches
        });
        EngineSnapshot {
            reserved,
            used,
            used_peak,
            decommitted,
            failed: core.pages.failed(),
            large: (
                core.large_count.load(Relaxed),
                core.large_bytes.load(Relaxed),
            ),
            faults: core.faults.load(Relaxed),
            caches,
        }
    }

    fn add_occupancy(&self, caches: &mut [CacheSnapshot]) {
        let pages = &self.core.pages;
        for page in pages.heads() {
            let desc = pages.desc(page);
            let (is, _) = unpack(desc.run.load(Relaxed));
            let cache = desc.cache.load(Relaxed);
            if is == state::SLAB
                && let Some(cache) = caches.iter_mut().find(|of| of.id + 1 == cache)
            {
                let word = desc.load();
                let mut taken = u64::from(word.inuse());
                if cache.policy == Some(Policy::Hybrid) && word.frozen() {
                    taken = taken.saturating_sub(u64::from(desc.own_free.load(Relaxed)));
                }
                cache.objects_taken += taken;
                cache.occupancy[bucket(taken, word.objects())] += 1;
            }
        }
    }
}

impl CacheCore {
    fn snapshot(&self) -> CacheSnapshot {
        let counters = self.counters();
        let (faults, quarantined) = self.hooks.map_or((0, 0), DebugHooks::counts);
        let layout = self.hooks.and_then(DebugHooks::layout);
        let nodes: Vec<_> = self
            .nodes
            .iter()
            .take(self.engine.nodes())
            .map(|part| NodeSnapshot {
                slabs: part.node.nr_slabs.load(Relaxed),
                partial: u64::from(part.node.nr_partial()),
                total_objects: part.node.total_objects.load(Relaxed),
                barn_full: part.barn.counts().0,
                barn_empty: part.barn.counts().1,
            })
            .collect();
        let sum = |of: fn(&NodeSnapshot) -> u64| nodes.iter().map(of).sum();
        let mut snapshot = CacheSnapshot {
            name: self.name.to_owned(),
            id: self.id,
            policy: match self.path {
                Path::Policy(policy) => Some(policy),
                Path::Debug => None,
            },
            object_size: self.object_size,
            slab_size: self.size,
            align: self.align,
            objs_per_slab: u32::from(self.objects),
            order: self.order,
            min_partial: self.min_partial.load(Relaxed),
            cpu_partial: self.cpu_partial,
            sheaf_capacity: self.sheaf_capacity,
            aliases: self.refs.load(Relaxed).saturating_sub(1),
            objects: counters.live(),
            objects_taken: 0,
            total_objects: sum(|node| node.total_objects),
            slabs: sum(|node| node.slabs),
            partial: sum(|node| node.partial),
            cpu_slabs: 0,
            slabs_cpu_partial: 0,
            slabs_cpu_full: 0,
            sheaf_objects: 0,
            nodes,
            slots: self.slots(),
            occupancy: [0; BUCKETS],
            debug: Some(DebugSnapshot {
                flags: layout.map_or(DebugFlags::NONE, ObjectLayout::flags),
                faults,
                quarantined,
            }),
            counters,
        };
        for slot in &snapshot.slots {
            snapshot.cpu_slabs += slot.slab;
            snapshot.slabs_cpu_partial += slot.partial;
            snapshot.slabs_cpu_full += slot.full;
            snapshot.sheaf_objects += slot.main + slot.spare;
        }
        snapshot
    }

    fn slots(&self) -> Vec<SlotSnapshot> {
        let all = (slot::SHARED..slot::used()).map(|slot| {
            let row = self.row(slot);
            let mut counters = Counters::default();
            counters.add_row(&row.stats);
            SlotSnapshot {
                slot,
                slab: u64::from(row.slab.load(Relaxed) != NIL),
                partial: u64::from(row.nr_partial.load(Relaxed)),
                full: u64::from(row.nr_full.load(Relaxed)),
                main: u64::from(row.n.load(Relaxed)),
                spare: u64::from(row.spare_n.load(Relaxed)),
                counters,
            }
        });
        all.filter(|of| !of.is_unused()).collect()
    }
}
