//! The same snapshot that an engine makes of itself, from copies of its memory.
//!
//! Source of truth: `snapshot.rs`. Counts are read one after the other while the process
//! runs; each is right at some moment, and all together are exact when no thread is in an
//! operation. Slots told one by one are bounded; the rest is in the sums.

use super::Refusal;
use super::budget::Bounded;
use super::image::{self, AT_ONCE, CacheImage, EngineImage};
use super::memory::{Part, u32_at, u64_at};
use super::shape::Shape;
use crate::debug::flags::DebugFlags;
use crate::debug::layout::{LayoutParts, ObjectLayout};
use crate::pages::unpack;
use crate::policy::Policy;
use crate::slab::Word;
use crate::snapshot::{
    BUCKETS, CacheSnapshot, DebugSnapshot, EngineSnapshot, NodeSnapshot, SlotSnapshot, bucket,
};
use crate::stats::{Counters, Stat};

/// Slots that are told one by one, over all caches.
pub(super) const MOST_SLOTS: usize = 16 << 10;

/// Which of our counters each number of a row is.
#[derive(Debug, Clone)]
pub(super) struct StatMap(Vec<Option<Stat>>);

impl StatMap {
    /// From the names that a segment has for them.
    pub fn of<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let known = |name| Stat::ALL.iter().copied().find(|stat| stat.name() == name);
        Self(names.map(known).collect())
    }

    /// Which numbers of a row are the counters of the two fast paths.
    pub fn fast(&self) -> [Option<usize>; 2] {
        let place = |stat| self.0.iter().position(|of| *of == Some(stat));
        [Stat::AllocFastpath, Stat::FreeFastpath].map(place)
    }

    /// Objects of a cache in use, by its counters.
    pub fn live(
        &self,
        memory: &Bounded<'_>,
        shape: &Shape,
        engine: &EngineImage,
        cache: &CacheImage,
    ) -> Result<u64, Refusal> {
        let rows = read_rows(
            memory,
            shape,
            self,
            (cache, engine.slots),
            &mut Vec::new(),
            &mut 0,
        )?;
        Ok(rows.counters.live())
    }

    fn add(&self, to: &mut Counters, row: &[u8]) {
        for (stat, at) in self.0.iter().zip((0..).step_by(8)) {
            if let Some(stat) = stat {
                to.add_wrapping(*stat, u64_at(row, at));
            }
        }
    }
}

/// Where all runs of an engine are looked at, in order: for each slab its page, its
/// descriptor, and its cache's id.
pub(super) fn each_slab(
    memory: &Bounded<'_>,
    shape: &Shape,
    engine: &EngineImage,
    see: &mut dyn FnMut(Slab<'_>) -> bool,
) -> Result<(), Refusal> {
    let each = shape.desc.sizeof;
    let pages = (AT_ONCE / each).clamp(1, 16 << 10);
    let mut descs = vec![0u8; pages * each];
    let mut map = vec![0u8; pages * 4];
    for range in &engine.ranges {
        let mut page = range.first.max(1);
        while page < range.frontier {
            let n = ((range.frontier - page) as usize).min(pages);
            let (Some(descs), Some(map)) = (descs.get_mut(..n * each), map.get_mut(..n * 4)) else {
                break;
            };
            let at = u64::from(page);
            let mut parts = [
                Part::new(range.descs.wrapping_add(at * each as u64), descs),
                Part::new(range.map.wrapping_add(at * 4), map),
            ];
            memory.read(&mut parts);
            if let Some(part) = parts.iter().find(|part| !part.whole()) {
                return Err(memory.missing(part.at));
            }
            memory.steps(n)?;
            let [descs, map] = parts;
            let mut next = page;
            while next < page + n as u32 {
                let index = (next - page) as usize;
                let desc = descs.into.get(index * each..).unwrap_or_default();
                let head = u32_at(map.into, index * 4) == next;
                let (is, order) = unpack(u32_at(desc, shape.desc.run));
                let cache = u32_at(desc, shape.desc.cache).checked_sub(1);
                if let Some(cache) = cache.filter(|_| head && is == shape.run_slab) {
                    let slab = Slab {
                        page: next,
                        order: order.min(20),
                        cache,
                        desc,
                    };
                    if !see(slab) {
                        return Ok(());
                    }
                }
                let step = if head { 1 << order.min(20) } else { 1 };
                next = next.saturating_add(step);
            }
            page = next;
        }
    }
    Ok(())
}

/// A slab by its descriptor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slab<'d> {
    pub page: u32,
    pub order: u32,
    pub cache: u32,
    /// The descriptor, and perhaps what is behind it.
    pub desc: &'d [u8],
}

impl Slab<'_> {
    /// Its word.
    pub fn word(&self, shape: &Shape) -> Word {
        shape.word.read(u64_at(self.desc, shape.desc.word))
    }
}

/// An engine.
pub(super) fn engine(
    memory: &Bounded<'_>,
    shape: &Shape,
    stats: &StatMap,
    engine: &EngineImage,
    room: &mut usize,
) -> Result<EngineSnapshot, Refusal> {
    let _held = memory.hold::<(CacheSnapshot, usize)>(engine.caches.len())?;
    let mut caches = Vec::with_capacity(engine.caches.len());
    let mut bytes = Vec::new();
    for of in &engine.caches {
        caches.push(cache(memory, shape, stats, engine, of, &mut bytes, room)?);
    }
    occupancy(memory, shape, engine, &mut caches)?;
    let pages = |n: u64| n.saturating_mul(shape.page);
    let reserved = engine.ranges.iter().map(|range| u64::from(range.count));
    Ok(EngineSnapshot {
        reserved: pages(reserved.sum()),
        used: pages(engine.used),
        used_peak: pages(engine.peak),
        decommitted: pages(engine.decommitted),
        failed: engine.failed,
        large: engine.large,
        faults: engine.faults,
        caches,
    })
}

fn occupancy(
    memory: &Bounded<'_>,
    shape: &Shape,
    engine: &EngineImage,
    caches: &mut [CacheSnapshot],
) -> Result<(), Refusal> {
    // By id, since there may be a thousand caches and a million slabs.
    let ids = engine.caches.iter().map(|of| of.id as usize + 1).max();
    let mut places = vec![usize::MAX; ids.unwrap_or(0)];
    for (place, of) in caches.iter().enumerate() {
        if let Some(entry) = places.get_mut(of.id as usize) {
            *entry = place;
        }
    }
    each_slab(memory, shape, engine, &mut |slab| {
        let place = places.get(slab.cache as usize);
        let Some(cache) = place.and_then(|place| caches.get_mut(*place)) else {
            return true;
        };
        let word = slab.word(shape);
        let mut taken = u64::from(word.inuse());
        if cache.policy == Some(Policy::Hybrid) && word.frozen() {
            let own = u32_at(slab.desc, shape.desc.own_free);
            taken = taken.saturating_sub(own.into());
        }
        cache.objects_taken += taken;
        if let Some(bucket) = cache.occupancy.get_mut(bucket(taken, word.objects())) {
            *bucket += 1;
        }
        true
    })
}

/// The rows of a cache: sums, and slots one by one while there is room.
struct Rows {
    counters: Counters,
    slots: Vec<SlotSnapshot>,
    sums: [u64; 4],
}

fn read_rows(
    memory: &Bounded<'_>,
    shape: &Shape,
    stats: &StatMap,
    (cache, slots): (&CacheImage, u32),
    bytes: &mut Vec<u8>,
    room: &mut usize,
) -> Result<Rows, Refusal> {
    let of = &shape.row;
    let mut rows = Rows {
        counters: Counters::default(),
        slots: Vec::new(),
        sums: [0; 4],
    };
    let at_once = (AT_ONCE / of.sizeof).max(1) as u32;
    // Slot 0 is the empty one.
    let mut slot = 1;
    while slot < slots {
        let n = at_once.min(slots - slot);
        memory.steps(n as usize)?;
        bytes.resize(n as usize * of.sizeof, 0);
        image::rows(memory, shape, cache, slot, bytes)?;
        for (row, slot) in bytes.chunks(of.sizeof).zip(slot..) {
            let number = |at| u64::from(u32_at(row, at));
            let mut counters = Counters::default();
            stats.add(&mut counters, row.get(of.stats..).unwrap_or_default());
            rows.counters.add_all(&counters);
            let seen = SlotSnapshot {
                slot,
                slab: u64::from(number(of.slab) != 0),
                partial: number(of.nr_partial),
                full: number(of.nr_full),
                main: number(of.n),
                spare: number(of.spare_n),
                counters,
            };
            let values = [seen.slab, seen.partial, seen.full, seen.main + seen.spare];
            for (sum, value) in rows.sums.iter_mut().zip(values) {
                *sum = sum.saturating_add(value);
            }
            if *room > 0 && !seen.is_unused() {
                *room -= 1;
                rows.slots.push(seen);
            }
        }
        slot += n;
    }
    Ok(rows)
}

fn cache(
    memory: &Bounded<'_>,
    shape: &Shape,
    stats: &StatMap,
    engine: &EngineImage,
    of: &CacheImage,
    bytes: &mut Vec<u8>,
    room: &mut usize,
) -> Result<CacheSnapshot, Refusal> {
    let mut rows = read_rows(memory, shape, stats, (of, engine.slots), bytes, room)?;
    for node in &of.nodes {
        let [taken, contended] = node.lock;
        rows.counters.add_wrapping(Stat::ListLock, taken);
        rows.counters
            .add_wrapping(Stat::ListLockContended, contended);
    }
    let nodes: Vec<_> = { of.nodes.iter() }
        .map(|node| NodeSnapshot {
            slabs: node.nr_slabs,
            partial: node.nr_partial.into(),
            total_objects: node.total_objects,
            barn_full: node.barn_full,
            barn_empty: node.barn_empty,
        })
        .collect();
    let sum = |of: fn(&NodeSnapshot) -> u64| nodes.iter().map(of).fold(0, u64::saturating_add);
    let debug = Debug::read(memory, shape, of);
    let [cpu_slabs, slabs_cpu_partial, slabs_cpu_full, sheaf_objects] = rows.sums;
    Ok(CacheSnapshot {
        name: of.name.clone(),
        id: of.id,
        policy: of.policy,
        object_size: of.object_size,
        slab_size: of.size,
        align: of.align,
        objs_per_slab: of.objects.into(),
        order: of.order,
        min_partial: of.min_partial,
        cpu_partial: of.cpu_partial,
        sheaf_capacity: of.sheaf_capacity,
        aliases: of.refs.saturating_sub(1),
        objects: rows.counters.live(),
        objects_taken: 0,
        total_objects: sum(|node| node.total_objects),
        slabs: sum(|node| node.slabs),
        partial: sum(|node| node.partial),
        cpu_slabs,
        slabs_cpu_partial,
        slabs_cpu_full,
        sheaf_objects,
        nodes,
        slots: rows.slots,
        occupancy: [0; BUCKETS],
        debug: debug.as_ref().map(Debug::told),
        counters: rows.counters,
    })
}

/// What a debug cache's layer says; of a cache without one there is nothing to say.
#[derive(Debug, Clone, Default)]
pub(super) struct Debug {
    pub layout: Option<ObjectLayout>,
    pub faults: u64,
    pub quarantined: u64,
    /// First chunk of the quarantine.
    pub quarantine: u64,
}

impl Debug {
    /// `None` where it cannot be read, or is none.
    pub fn read(memory: &Bounded<'_>, shape: &Shape, cache: &CacheImage) -> Option<Self> {
        let of = &shape.debug;
        if cache.debug == 0 {
            return cache.policy.is_some().then(Self::default);
        }
        let mut bytes = vec![0; of.sizeof];
        memory.get(cache.debug, &mut bytes).ok()?;
        let quarantine = bytes.get(of.quarantine..).unwrap_or_default();
        let layout = bytes.get(of.layout..).unwrap_or_default();
        Some(Self {
            layout: Some(layout_of(shape, layout)?),
            faults: u64_at(&bytes, of.faults),
            quarantined: u64_at(quarantine, shape.quarantine.count),
            quarantine: u64_at(quarantine, shape.quarantine.first),
        })
    }

    fn told(&self) -> DebugSnapshot {
        let flags = self.layout.as_ref().map(ObjectLayout::flags);
        DebugSnapshot {
            flags: flags.unwrap_or(DebugFlags::NONE),
            faults: self.faults,
            quarantined: self.quarantined,
        }
    }
}

fn layout_of(shape: &Shape, bytes: &[u8]) -> Option<ObjectLayout> {
    let of = &shape.layout;
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    ObjectLayout::of_parts(&LayoutParts {
        flags: byte(of.flags),
        poisons: byte(of.poisons) != 0,
        keeps_size: byte(of.keeps_size) != 0,
        sizes: [
            of.object_size,
            of.align,
            of.left,
            of.inuse,
            of.free_pointer,
            of.track_size,
            of.slab_size,
        ]
        .map(|at| u64_at(bytes, at)),
    })
}
