//! A snapshot made by hand for the tests of machine output: one cache with
//! every figure, one of which little is known, and a second one of its name.

use collectors::model::{
    Approx, Bytes, Cache, CacheId, Counter, CounterId, Counters, CpuId, CpuPart, Ctor, Era, Flag,
    Layer, MemInfo, NodeId, NodePart, Objects, Occupancy, Origin, OriginKind, Quantity,
    SlabStatistics, SlabTunables, Slabs, Snapshot, System, Warning, WarningCode, Warnings,
};

/// The snapshot, from a capture.
pub(super) fn snapshot() -> Snapshot {
    let mut warnings = Warnings::default();
    warnings.push(
        Warning::new(WarningCode::BrokenRow, "4 columns instead of 16, left out")
            .in_file("proc/slabinfo")
            .at_line(61),
    );
    warnings.push(Warning::new(
        WarningCode::DuplicateName,
        "mlx5_fs_ftes: 2 caches have this name",
    ));
    let mut snapshot = Snapshot {
        origin: Origin {
            kind: OriginKind::Capture,
            detail: "host.tar.gz".to_owned(),
            taken_at: "2026-01-31T12:00:00Z".parse().ok(),
            layers: Vec::new(),
            carried: None,
        },
        system: system(),
        caches: vec![full(), sparse(1, 7), sparse(2, 9)],
        warnings,
    };
    snapshot.describe_layers(&[
        (Layer::Slabinfo, "proc/slabinfo".to_owned()),
        (Layer::Sysfs, "sys/kernel/slab".to_owned()),
    ]);
    snapshot
}

fn system() -> System {
    System {
        hostname: Some("db1".to_owned()),
        kernel: Some("6.12.0".to_owned()),
        page_size: 4096,
        cpus: Some(2),
        nodes: Some(1),
        era: Era::CpuSlabs,
        meminfo: MemInfo {
            mem_total: Some(Bytes(8_589_934_592)),
            slab: Some(Bytes(90_112)),
            s_reclaimable: Some(Bytes(81_920)),
            s_unreclaim: Some(Bytes(8192)),
            ..MemInfo::default()
        },
        ..System::default()
    }
}

const FIGURES: [(Quantity, u64); 21] = [
    (Quantity::ObjectSize, 184),
    (Quantity::SlabSize, 192),
    (Quantity::ObjsPerSlab, 21),
    (Quantity::Order, 0),
    (Quantity::PagesPerSlab, 1),
    (Quantity::Align, 64),
    (Quantity::Usersize, 40),
    (Quantity::MinPartial, 5),
    (Quantity::CpuPartial, 120),
    (Quantity::SheafCapacity, 0),
    (Quantity::RemoteNodeDefragRatio, 100),
    (Quantity::Objects, 400),
    (Quantity::TotalObjects, 420),
    (Quantity::ObjectsPartial, 22),
    (Quantity::Slabs, 20),
    (Quantity::Partial, 2),
    (Quantity::CpuSlabs, 3),
    (Quantity::SlabsCpuPartial, 1),
    (Quantity::ActiveSlabs, 20),
    (Quantity::AliasCount, 2),
    (Quantity::ReportedTotal, 81_920),
];

/// dentry, with every part filled; no kernel has all of them at once.
fn full() -> Cache {
    let mut cache = Cache::new(CacheId(0), "dentry");
    for (q, value) in FIGURES {
        cache.set_exact(q, value, Layer::Sysfs);
    }
    let parked = Approx::estimate(10);
    cache.set(Quantity::ObjectsCpuPartial, parked, Layer::Sysfs);
    cache.set_exact(Quantity::ActiveSlabs, 20, Layer::Slabinfo);
    cache.sysfs_id = Some(":aA-0000192".into());
    cache.aliases = Some(vec!["ext4_system_zone".into(), "kernfs_node_cache".into()]);
    cache.cgroup = Some("/system.slice".into());
    cache.ctor = Ctor::Symbol("init_once+0x0/0x40".into());
    for flag in Flag::ALL {
        cache.flags.put(*flag, *flag == Flag::ReclaimAccount);
    }
    let mut node = NodePart::new(NodeId(0));
    node.slabs = Some(Slabs(20));
    node.objects = Some(Objects(400));
    node.total_objects = Some(Objects(420));
    node.partial = Some(Slabs(2));
    node.objects_partial = Some(Objects(22));
    node.cpu_slabs = Some(Slabs(3));
    node.barn_full = Some(6);
    node.barn_empty = Some(4);
    cache.nodes = vec![node];
    let mut cpu = CpuPart::new(CpuId(1));
    cpu.objects_cpu_partial = Some(Objects(10));
    cpu.slabs_cpu_partial = Some(Slabs(1));
    cpu.sheaf_main = Some(Objects(28));
    cpu.sheaf_spare = Some(Objects(27));
    cpu.sheaf_rcu_free = Some(Objects(26));
    cache.cpus = vec![cpu];
    cache.occupancy = Some(Box::new(Approx::exact(Occupancy([
        0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0,
    ]))));
    cache.counters = Some(Box::new(Counters(vec![
        counter(CounterId::FreeFastpath, 700),
        counter(CounterId::AllocFastpath, 1100),
    ])));
    cache.tunables = Some(Box::new(SlabTunables {
        limit: 120,
        batchcount: 60,
        sharedfactor: Some(8),
    }));
    cache.slab_statistics = Some(Box::new(SlabStatistics {
        listallocs: Some(1),
        maxobjs: Some(2),
        grown: Some(3),
        reaped: Some(4),
        error: Some(5),
        maxfreeable: Some(6),
        nodeallocs: Some(7),
        remotefrees: Some(8),
        alienoverflow: Some(9),
        allochit: Some(10),
        allocmiss: Some(11),
        freehit: Some(12),
        freemiss: Some(13),
    }));
    cache
}

fn counter(id: CounterId, total: u64) -> Counter {
    Counter {
        id,
        total,
        cpus: vec![(CpuId(0), 600), (CpuId(1), 100)],
    }
}

/// A row of which only the number of objects and the tunables are known.
fn sparse(id: u32, objects: u64) -> Cache {
    let mut cache = Cache::new(CacheId(id), "mlx5_fs_ftes");
    cache.set_exact(Quantity::Objects, objects, Layer::Slabinfo);
    cache.tunables = Some(Box::new(SlabTunables {
        limit: 120,
        batchcount: 60,
        sharedfactor: None,
    }));
    cache
}
