//! Published figures as a snapshot: what is known without reading private memory.
//!
//! Nodes, slots and the occupancy of slabs are not published: those parts are empty.

use crate::debug::flags::DebugFlags;
use crate::policy::Policy;
use crate::segment::{PublishedCache, PublishedEngine, Segment};
use crate::snapshot::{BUCKETS, CacheSnapshot, EngineSnapshot};
use crate::stats::{Counters, Stat};

/// Values by the names that the segment has for them.
struct Named<'s> {
    names: Vec<&'s str>,
    values: &'s [u64],
}

impl Named<'_> {
    fn get(&self, name: &str) -> u64 {
        let place = self.names.iter().position(|of| *of == name);
        let value = place.and_then(|place| self.values.get(place));
        value.copied().unwrap_or(0)
    }

    fn get_u32(&self, name: &str) -> u32 {
        u32::try_from(self.get(name)).unwrap_or(u32::MAX)
    }
}

/// The engines of a segment, with sums only.
pub(super) fn engines(segment: &Segment) -> Vec<EngineSnapshot> {
    let names = |engine: bool| {
        let own = segment
            .figures
            .iter()
            .filter(move |of| of.of_engine == engine);
        own.map(|of| &*of.name).collect::<Vec<_>>()
    };
    let published = &segment.published;
    let engines = published.engines.iter().map(|of| {
        let caches = published
            .caches
            .iter()
            .filter(|cache| cache.engine == of.number);
        let caches = caches.map(|of| cache(of, names(false))).collect();
        engine(of, names(true), caches)
    });
    engines.collect()
}

fn engine(of: &PublishedEngine, names: Vec<&str>, caches: Vec<CacheSnapshot>) -> EngineSnapshot {
    let of = Named {
        names,
        values: &of.values,
    };
    EngineSnapshot {
        reserved: of.get("reserved"),
        used: of.get("used"),
        used_peak: of.get("used_peak"),
        decommitted: of.get("decommitted"),
        failed: of.get("failed"),
        large: (of.get("large_objects"), of.get("large_bytes")),
        faults: of.get("faults"),
        caches,
    }
}

fn cache(published: &PublishedCache, names: Vec<&str>) -> CacheSnapshot {
    let of = Named {
        names,
        values: &published.values,
    };
    let mut counters = Counters::default();
    for stat in Stat::ALL {
        counters.add_wrapping(*stat, of.get(stat.name()));
    }
    let policy = usize::try_from(of.get("policy")).ok();
    let policy = policy.and_then(|n| Policy::ALL.get(n.checked_sub(1)?));
    CacheSnapshot {
        name: published.name.clone(),
        id: published.id,
        policy: policy.copied(),
        object_size: of.get_u32("object_size"),
        slab_size: of.get_u32("slab_size"),
        align: of.get_u32("align"),
        objs_per_slab: of.get_u32("objs_per_slab"),
        order: of.get_u32("order"),
        min_partial: of.get_u32("min_partial"),
        cpu_partial: of.get_u32("cpu_partial"),
        sheaf_capacity: of.get_u32("sheaf_capacity"),
        aliases: of.get_u32("aliases"),
        objects: of.get("objects"),
        objects_taken: 0,
        total_objects: of.get("total_objects"),
        slabs: of.get("slabs"),
        partial: of.get("partial"),
        cpu_slabs: of.get("cpu_slabs"),
        slabs_cpu_partial: of.get("slabs_cpu_partial"),
        slabs_cpu_full: of.get("slabs_cpu_full"),
        sheaf_objects: of.get("sheaf_objects"),
        nodes: Vec::new(),
        slots: Vec::new(),
        occupancy: [0; BUCKETS],
        flags: DebugFlags::from_bits_truncate(of.get("flags") as u8),
        faults: of.get("faults"),
        quarantined: of.get("quarantined"),
        counters,
    }
}
