//! Snapshots of slabcore's engines in the model: of the built-in one, or of a process's.
//!
//! `objects` are those really in use: the engine counts every object handed
//! out and taken back. Free ones that slots keep are in the CPU and node parts.
//! Slots stand for processors, by their number. Counters that the kernel does
//! not have are left out.

use slabcore::segment::{PublishedCache, Segment};
use slabcore::{
    CacheSnapshot, DebugFlags, DebugSnapshot, EngineSnapshot, NodeSnapshot, Policy, SlotSnapshot,
};

use crate::analysis::consistency;
use crate::model::{
    Allocator, Approx, Cache, CacheId, Counter, CounterId, Counters, CpuId, CpuPart, Ctor, Era,
    Flag, Layer, MemInfo, NodeId, NodePart, Objects, Occupancy, Origin, Quantity, Slabs, Snapshot,
    System, Warning, WarningCode, Warnings,
};

/// Bytes of the engine's pages (`slabcore`: its glossary).
const PAGE_SIZE: u64 = 4096;

/// The engines of one process; `engine` is what they are, with a version.
pub(super) fn snapshot(
    engines: &[EngineSnapshot],
    engine: String,
    origin: Origin,
    warnings: Warnings,
) -> Snapshot {
    let caches = || engines.iter().flat_map(|engine| &engine.caches);
    let slots: std::collections::BTreeSet<u32> = caches()
        .flat_map(|of| &of.slots)
        .map(|of| of.slot)
        .collect();
    let nodes = caches().map(|of| of.nodes.len()).max();
    let mut system = system(engine);
    system.cpus = u32::try_from(slots.len()).ok();
    system.nodes = nodes.and_then(|n| u32::try_from(n).ok());
    let caches = caches().zip(0..).map(|(of, id)| cache(of, CacheId(id)));
    let mut warnings = warnings;
    if let Some(of) = large(engines) {
        warnings.push(of);
    }
    finish(system, caches.collect(), origin, warnings)
}

/// Objects too large for slabs are in no cache's figures, and have no call sites.
fn large(engines: &[EngineSnapshot]) -> Option<Warning> {
    let number: u64 = engines.iter().map(|of| of.large.0).sum();
    let bytes: u64 = engines.iter().map(|of| of.large.1).sum();
    (number > 0).then(|| {
        let space = crate::units::size(bytes, crate::units::Scale::Iec);
        let says = format!(
            "{} in no row, and of no call site: {space} of pages of their own",
            match number {
                1 => "1 object too large for slabs is".to_owned(),
                n => format!("{n} objects too large for slabs are"),
            }
        );
        Warning::new(WarningCode::Note, says)
    })
}

/// What a process published: sums; not nodes, slots and the occupancy of slabs. What its segment
/// does not name is not known.
pub(super) fn sums(segment: &Segment, origin: Origin, warnings: Warnings) -> Snapshot {
    let caches = segment.published.caches.iter().zip(0..);
    let caches = caches.map(|(of, id)| published(segment, of, CacheId(id)));
    let system = system(segment.identity.engine.clone());
    finish(system, caches.collect(), origin, warnings)
}

fn finish(system: System, caches: Vec<Cache>, origin: Origin, warnings: Warnings) -> Snapshot {
    let mut snapshot = Snapshot {
        origin,
        system,
        caches,
        warnings,
    };
    snapshot.describe_layers(&[(Layer::Engine, "engine".to_owned())]);
    let found = consistency::check(&snapshot);
    snapshot.warnings.append(found);
    snapshot
}

fn system(engine: String) -> System {
    let host = rustix::system::uname();
    System {
        hostname: Some(host.nodename().to_string_lossy().into_owned()),
        kernel: Some(engine),
        page_size: PAGE_SIZE,
        page_size_assumed: false,
        cpus: None,
        nodes: None,
        era: Era::Unknown,
        allocator: Allocator::Unknown,
        meminfo: MemInfo::default(),
        vmstat: std::collections::BTreeMap::new(),
        pressure: None,
        free_blocks: Vec::new(),
        cmdline: None,
        config: std::collections::BTreeMap::new(),
    }
}

/// What the engine of this program is.
pub(super) fn own() -> String {
    concat!("slabcore ", env!("CARGO_PKG_VERSION")).to_owned()
}

fn cache(of: &CacheSnapshot, id: CacheId) -> Cache {
    let mut cache = named(id, &of.name, figures(of).into_iter());
    if let Some(DebugSnapshot { flags, .. }) = of.debug {
        put_flags(&mut cache, flags);
    }
    cache.nodes = of.nodes.iter().zip(0..).map(node).collect();
    cache.cpus = of.slots.iter().map(cpu).collect();
    cache.occupancy = Some(Box::new(Approx::exact(Occupancy(of.occupancy))));
    cache.counters = Some(Box::new(counters(of)));
    cache
}

/// Figures with the name that a segment has for them.
const PUBLISHED: [(Quantity, &str); 13] = [
    (Quantity::ObjectSize, "object_size"),
    (Quantity::SlabSize, "slab_size"),
    (Quantity::ObjsPerSlab, "objs_per_slab"),
    (Quantity::Order, "order"),
    (Quantity::Align, "align"),
    (Quantity::MinPartial, "min_partial"),
    (Quantity::CpuPartial, "cpu_partial"),
    (Quantity::Objects, "objects"),
    (Quantity::TotalObjects, "total_objects"),
    (Quantity::Slabs, "slabs"),
    (Quantity::Partial, "partial"),
    (Quantity::SlabsCpuPartial, "slabs_cpu_partial"),
    (Quantity::AliasCount, "aliases"),
];

fn published(segment: &Segment, of: &PublishedCache, id: CacheId) -> Cache {
    let figure = |name| segment.of_cache(of, name);
    let pages = figure("order").and_then(|order| 1u64.checked_shl(order.try_into().ok()?));
    let policy = figure("policy").and_then(|n| usize::try_from(n).ok());
    // Number 0 is a debug cache, and one that is not known may have arrays.
    let sheaves = match policy.map(|n| (n, Policy::ALL.get(n.wrapping_sub(1)))) {
        Some((0, _)) => Some(0),
        Some((_, Some(policy))) if !policy.has_sheaves() => Some(0),
        Some((_, Some(_))) => figure("sheaf_capacity"),
        _ => None,
    };
    let on_cpus = ["cpu_slabs", "slabs_cpu_partial", "slabs_cpu_full"].map(figure);
    let on_cpus = on_cpus
        .into_iter()
        .try_fold(0u64, |sum, n| sum.checked_add(n?));
    let direct = PUBLISHED.map(|(quantity, name)| (quantity, figure(name)));
    let derived = [
        (Quantity::PagesPerSlab, pages),
        (Quantity::SheafCapacity, sheaves),
        (Quantity::CpuSlabs, on_cpus),
    ];
    let known = direct.into_iter().chain(derived);
    let mut cache = named(id, &of.name, known.filter_map(|(of, n)| Some((of, n?))));
    if let Some(flags) = figure("flags").and_then(|bits| u8::try_from(bits).ok()) {
        put_flags(&mut cache, DebugFlags::from_bits_truncate(flags));
    }
    let counters = segment.counters(of).filter_map(|(name, total)| {
        Some(Counter {
            id: CounterId::from_name(name)?,
            total,
            cpus: Vec::new(),
        })
    });
    let mut counters: Vec<_> = counters.collect();
    counters.sort_by_key(|counter| counter.id);
    counters.dedup_by_key(|counter| counter.id);
    cache.counters = Some(Box::new(Counters(counters)));
    cache
}

fn named(id: CacheId, name: &str, figures: impl Iterator<Item = (Quantity, u64)>) -> Cache {
    let mut cache = Cache::new(id, name);
    for (quantity, value) in figures {
        cache.set_exact(quantity, value, Layer::Engine);
    }
    // The engine keeps no names of merged caches, and does not name constructors.
    cache.aliases = Some(Vec::new());
    cache.ctor = Ctor::None;
    cache
}

fn put_flags(cache: &mut Cache, flags: DebugFlags) {
    for flag in Flag::ALL {
        cache.flags.put(*flag, false);
    }
    for (flag, debug) in [
        (Flag::SanityChecks, DebugFlags::CONSISTENCY),
        (Flag::RedZone, DebugFlags::RED_ZONE),
        (Flag::Poison, DebugFlags::POISON),
        (Flag::StoreUser, DebugFlags::STORE_USER),
        (Flag::Trace, DebugFlags::TRACE),
        (Flag::Failslab, DebugFlags::FAIL),
    ] {
        cache.flags.put(flag, flags.contains(debug));
    }
}

fn figures(of: &CacheSnapshot) -> [(Quantity, u64); 16] {
    let arrays = matches!(of.policy, Some(Policy::Sheaves | Policy::Hybrid));
    let sheaves = if arrays { of.sheaf_capacity } else { 0 };
    let on_cpus = of.cpu_slabs.saturating_add(of.slabs_cpu_partial);
    let on_cpus = on_cpus.saturating_add(of.slabs_cpu_full);
    [
        (Quantity::ObjectSize, of.object_size.into()),
        (Quantity::SlabSize, of.slab_size.into()),
        (Quantity::ObjsPerSlab, of.objs_per_slab.into()),
        (Quantity::Order, of.order.into()),
        (
            Quantity::PagesPerSlab,
            1u64.checked_shl(of.order).unwrap_or(0),
        ),
        (Quantity::Align, of.align.into()),
        (Quantity::MinPartial, of.min_partial.into()),
        (Quantity::CpuPartial, of.cpu_partial.into()),
        (Quantity::SheafCapacity, sheaves.into()),
        (Quantity::Objects, of.objects),
        (Quantity::TotalObjects, of.total_objects),
        (Quantity::Slabs, of.slabs),
        (Quantity::Partial, of.partial),
        // As on most kernels, with the lists of the CPUs.
        (Quantity::CpuSlabs, on_cpus),
        (Quantity::SlabsCpuPartial, of.slabs_cpu_partial),
        (Quantity::AliasCount, of.aliases.into()),
    ]
}

fn node((of, number): (&NodeSnapshot, u32)) -> NodePart {
    NodePart {
        slabs: Some(Slabs(of.slabs)),
        total_objects: Some(Objects(of.total_objects)),
        partial: Some(Slabs(of.partial)),
        barn_full: Some(of.barn_full.into()),
        barn_empty: Some(of.barn_empty.into()),
        ..NodePart::new(NodeId(number))
    }
}

fn cpu(of: &SlotSnapshot) -> CpuPart {
    CpuPart {
        slabs_cpu_partial: Some(Slabs(of.partial)),
        sheaf_main: Some(Objects(of.main)),
        sheaf_spare: Some(Objects(of.spare)),
        ..CpuPart::new(CpuId(of.slot))
    }
}

fn counters(of: &CacheSnapshot) -> Counters {
    let mut list: Vec<Counter> = Vec::new();
    for (place, (name, total)) in of.counters.iter().enumerate() {
        let Some(id) = CounterId::from_name(name) else {
            continue;
        };
        let cpus = of.slots.iter().filter_map(|slot| {
            let (_, value) = slot.counters.iter().nth(place)?;
            // Lists of the kernel leave zeros out. One of more than 32 bits is left out too:
            // the list then does not add up, and the sum is taken.
            let value = u32::try_from(value).ok().filter(|value| *value > 0)?;
            Some((CpuId(slot.slot), value))
        });
        list.push(Counter {
            id,
            total,
            cpus: cpus.collect(),
        });
    }
    list.sort_by_key(|counter| counter.id);
    Counters(list)
}
