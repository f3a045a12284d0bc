//! A hand-built machine for the tests: two nodes, merged caches, debug flags,
//! an empty cache, figures that contradict each other, and unknown ones.

use collectors::model::{
    Approx, Cache, CacheId, CallSite, Counter, CounterId, Counters, CpuId, Flag, Layer, NodeId,
    NodePart, Objects, Origin, OriginKind, Quantity as Q, SiteKind, Slabs, Snapshot, System,
    Warnings,
};

/// objects, object_size, slab_size, objs_per_slab, order, slabs, partial, cpu_slabs, objects_partial.
type Figures = [u64; 9];

fn cache(name: &str, sysfs_id: &str, aliases: &[&str], figures: Figures) -> Cache {
    let mut cache = Cache::new(CacheId(0), name);
    cache.sysfs_id = Some(sysfs_id.into());
    cache.aliases = Some(aliases.iter().map(|a| Box::from(*a)).collect());
    let quantities = [
        Q::Objects,
        Q::ObjectSize,
        Q::SlabSize,
        Q::ObjsPerSlab,
        Q::Order,
        Q::Slabs,
        Q::Partial,
        Q::CpuSlabs,
        Q::ObjectsPartial,
    ];
    for (q, value) in quantities.into_iter().zip(figures) {
        cache.set_exact(q, value, Layer::Sysfs);
    }
    let total = figures[5] * figures[3];
    cache.set_exact(Q::TotalObjects, total, Layer::Sysfs);
    cache.set_exact(Q::Align, 8, Layer::Sysfs);
    cache.set_exact(Q::AliasCount, aliases.len() as u64, Layer::Sysfs);
    for flag in Flag::ALL {
        cache.flags.put(*flag, false);
    }
    let mut node0 = NodePart::new(NodeId(0));
    node0.slabs = Some(Slabs(figures[5] - figures[5] / 4));
    node0.partial = Some(Slabs(figures[6]));
    let mut node1 = NodePart::new(NodeId(1));
    node1.slabs = Some(Slabs(figures[5] / 4));
    cache.nodes = vec![node0, node1];
    cache
}

fn with(mut cache: Cache, flags: &[Flag]) -> Cache {
    for flag in flags {
        cache.flags.put(*flag, true);
    }
    cache
}

/// A call site of the kind that alloc_traces prints.
fn site(kind: SiteKind, count: u64, symbol: Option<&str>) -> CallSite {
    CallSite {
        age_unit: collectors::model::AgeUnit::Jiffies,
        pinned: None,
        kind,
        count: Objects(count),
        symbol: symbol.map(str::to_owned),
        waste: symbol.map(|_| (count * 16, 16)),
        age: Some((10, 2500, 90_000)),
        pids: Some((1, 731)),
        cpus: vec![CpuId(0), CpuId(1), CpuId(3)],
        nodes: vec![NodeId(0)],
        stack: vec!["kmalloc_trace+0x2a/0xa0".into(), "do_init+0x1/0x2".into()],
    }
}

/// Counters as Linux 6.18 has them, so that sheaves count.
pub(super) fn counters(seed: u64) -> Counters {
    let ids = CounterId::ALL.iter().filter(|id| id.is_of_kernel());
    let ids = ids.enumerate();
    Counters(
        ids.map(|(i, id)| Counter {
            id: *id,
            total: seed.saturating_mul(i as u64 + 1),
            cpus: Vec::new(),
        })
        .collect(),
    )
}

fn tracked() -> Cache {
    let debug = [
        Flag::Poison,
        Flag::RedZone,
        Flag::SanityChecks,
        Flag::StoreUser,
    ];
    let figures = [1871, 64, 208, 19, 0, 99, 4, 0, 50];
    let mut cache = with(cache("kmalloc-64", "kmalloc-64", &[], figures), &debug);
    cache.sites = Some(Box::new(vec![
        site(SiteKind::Alloc, 1500, Some("do_init+0x1/0x2")),
        site(SiteKind::Alloc, 371, Some("net_init+0x33/0x80")),
        site(SiteKind::Free, 1871, None),
    ]));
    cache.counters = Some(Box::new(counters(7)));
    cache
}

/// A cache of which /proc/slabinfo alone tells, so that much is unknown.
fn unknown() -> Cache {
    let mut cache = Cache::new(CacheId(0), "proc_only");
    for (q, value) in [
        (Q::Objects, 90),
        (Q::TotalObjects, 100),
        (Q::SlabSize, 400),
        (Q::ObjsPerSlab, 10),
        (Q::PagesPerSlab, 1),
        (Q::Slabs, 10),
    ] {
        cache.set_exact(q, value, Layer::Slabinfo);
    }
    cache
}

/// Slabs at CPUs and on lists beyond all slabs, more payload than memory.
fn raced() -> Cache {
    let mut cache = with(
        cache(
            "raced",
            ":A-0000256",
            &[],
            [70, 256, 256, 16, 0, 3, 5, 4, 70],
        ),
        &[Flag::HwcacheAlign],
    );
    cache.set(Q::Objects, Approx::estimate(70), Layer::Slabinfo);
    cache
}

/// The machine.
pub(super) fn snapshot() -> Snapshot {
    let inode = [48_920, 1120, 1120, 14, 2, 3500, 9, 6, 100];
    let caches = vec![
        with(
            cache(
                "dentry",
                "dentry",
                &[],
                [72_870, 192, 192, 21, 0, 3600, 130, 8, 1500],
            ),
            &[Flag::ReclaimAccount, Flag::DestroyByRcu],
        ),
        with(
            cache(
                "pid",
                ":A-0000192",
                &["cred", "zz_longest_of_all"],
                [420, 184, 192, 21, 0, 20, 0, 16, 0],
            ),
            &[Flag::HwcacheAlign],
        ),
        cache(
            "jbd2_inode",
            ":0000064",
            &[],
            [64, 64, 64, 64, 0, 1, 0, 1, 0],
        ),
        tracked(),
        with(
            cache("ext4_inode_cache", "ext4_inode_cache", &[], inode),
            &[Flag::ReclaimAccount],
        ),
        cache(
            "xfs_inode",
            "xfs_inode",
            &[],
            [0, 1024, 1024, 16, 2, 0, 0, 0, 0],
        ),
        raced(),
        cache("bio-120", "bio-120", &[], [32, 120, 128, 32, 0, 1, 0, 1, 0]),
        cache("BIO-099", "BIO-099", &[], [32, 120, 128, 32, 0, 1, 0, 1, 0]),
        unknown(),
    ];
    let mut snapshot = Snapshot {
        origin: Origin::new(OriginKind::Capture, "hand-built"),
        system: System {
            page_size: 4096,
            nodes: Some(2),
            ..System::default()
        },
        caches,
        warnings: Warnings::default(),
    };
    number(&mut snapshot);
    snapshot
}

/// Gives every cache its place as its id.
pub(super) fn number(snapshot: &mut Snapshot) {
    for (i, cache) in snapshot.caches.iter_mut().enumerate() {
        cache.id = CacheId(u32::try_from(i).unwrap());
    }
}
