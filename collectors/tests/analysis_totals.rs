//! Totals, reconciliation, checks and comparison of real /proc/slabinfo tables.

#![allow(clippy::unwrap_used, clippy::float_cmp)]

use collectors::analysis::consistency::check;
use collectors::analysis::diff::diff;
use collectors::analysis::groups::families;
use collectors::analysis::reconcile::reconcile;
use collectors::analysis::totals::{Extended, ExtendedRow, Figure, Totals};
use collectors::model::{
    Approx, Bytes, Cache, CacheId, Layer, MemInfo, Objects, Origin, OriginKind, Quantity, Snapshot,
    System, WarningCode, Warnings,
};

/// A host with two nodes and 128 GB whose sum is meminfo's to the byte.
const TWO_NODES: &str = include_str!("data/totals/two-nodes-128g.csv");
/// A compute node with a 5.4 kernel; four caches have fallback slabs.
const OPENSTACK: &str = include_str!("data/totals/openstack-5.4.csv");

/// /sys/kernel/slab of a Debian 6.12 kernel with 2 processors.
const SYSFS: &str = include_str!("data/totals/sysfs-6.12.csv");

const SLABINFO_COLUMNS: [Quantity; 6] = [
    Quantity::Objects,
    Quantity::TotalObjects,
    Quantity::SlabSize,
    Quantity::ObjsPerSlab,
    Quantity::PagesPerSlab,
    Quantity::Slabs,
];

const SYSFS_COLUMNS: [Quantity; 9] = [
    Quantity::ObjectSize,
    Quantity::SlabSize,
    Quantity::ObjsPerSlab,
    Quantity::Order,
    Quantity::Slabs,
    Quantity::TotalObjects,
    Quantity::Objects,
    Quantity::Partial,
    Quantity::ObjectsPartial,
];

fn caches(table: &str, columns: &[Quantity], layer: Layer) -> Vec<Cache> {
    let rows = table.lines().skip(1).zip(0..);
    rows.map(|(line, id)| {
        let mut fields = line.split(',');
        let mut cache = Cache::new(CacheId(id), fields.next().unwrap());
        for (q, text) in columns.iter().zip(fields) {
            cache.set_exact(*q, text.parse().unwrap(), layer);
        }
        cache
    })
    .collect()
}

fn snapshot(table: &str) -> Snapshot {
    Snapshot {
        origin: Origin::new(OriginKind::Capture, "test"),
        system: System {
            page_size: 4096,
            ..System::default()
        },
        caches: caches(table, &SLABINFO_COLUMNS, Layer::Slabinfo),
        warnings: Warnings::default(),
    }
}

const fn kib(n: u64) -> Bytes {
    Bytes(n * 1024)
}

#[test]
fn the_sum_of_a_sound_table_is_exact_and_meminfos() {
    let mut s = snapshot(TWO_NODES);
    s.system.meminfo = MemInfo {
        slab: Some(kib(1_452_008)),
        ..MemInfo::default()
    };
    let totals = Totals::of(&s.caches, 4096);
    assert_eq!((totals.caches, totals.empty_caches), (129, 50));
    assert_eq!(totals.memory.total, Some(Approx::exact(kib(1_452_008))));
    assert_eq!(reconcile(&s).all.difference, Some(Approx::exact(0)));
    assert!(check(&s).is_empty());
}

#[test]
fn fallback_slabs_mark_the_sum_and_are_named() {
    let s = snapshot(OPENSTACK);
    let totals = Totals::of(&s.caches, 4096);
    assert_eq!((totals.caches, totals.empty_caches), (223, 99));
    assert_eq!(totals.memory.total, Some(Approx::estimate(kib(920_532))));
    // slabinfo gives slots only, so the payload in use is an upper bound.
    let used = totals.used.total.unwrap();
    assert_eq!((used.value.get() / 1024, used.approx), (810_375, true));
    assert_eq!(totals.partial.total, None);
    assert_eq!(totals.incomplete(), [("partial", 223), ("slack", 223)]);
    let warnings = check(&s);
    assert!(
        warnings
            .iter()
            .all(|w| w.code == WarningCode::FallbackOrder)
    );
    let mut named: Vec<_> = warnings
        .iter()
        .filter_map(|w| w.message.split(':').next())
        .collect();
    named.sort_unstable();
    assert_eq!(
        named,
        [
            "ext4_inode_cache",
            "inode_cache",
            "radix_tree_node",
            "task_struct"
        ]
    );
}

#[test]
fn the_extended_table_is_over_the_caches_that_hold_slabs() {
    let s = snapshot(OPENSTACK);
    let table = Extended::of(&s.caches, 4096);
    assert_eq!((table.caches, table.active, table.unknown), (223, 124, 0));
    let row = |name| table.rows.iter().find(|r| r.name == name).unwrap();
    let memory = row("memory");
    assert_eq!(
        memory.max,
        Some(Approx::estimate(Figure::Whole(kib(189_792).get())))
    );
    assert_eq!(
        memory.total,
        Some(Approx::estimate(Figure::Whole(kib(920_532).get())))
    );
    assert_eq!(row("partial_slabs").missing, 124);
    assert_eq!(row("partial_slabs").total, None);
}

/// What `slabinfo -X` of Linux 6.12 printed for the same tree: average, as it
/// cuts it, smallest, largest, total.
const PRINTED: [(&str, [u64; 4]); 7] = [
    ("objects", [635, 12, 11_460, 58_484]),
    ("slabs", [20, 1, 382, 1_863]),
    ("partial_slabs", [0, 0, 12, 39]),
    ("partial_objects", [3, 0, 237, 356]),
    ("memory", [174_347, 4_096, 4_308_992, 16_039_936]),
    ("used", [165_201, 3_072, 4_153_296, 15_198_496]),
    ("loss", [9_146, 0, 301_688, 841_440]),
];

#[test]
fn the_extended_table_agrees_with_the_kernels_tool() {
    let caches = caches(SYSFS, &SYSFS_COLUMNS, Layer::Sysfs);
    let table = Extended::of(&caches, 4096);
    assert_eq!((table.caches, table.active), (187, 92));
    let find = |rows: &[ExtendedRow], name| rows.iter().find(|r| r.name == name).cloned().unwrap();
    let number = |f: Option<Approx<Figure>>| f.unwrap().value.as_f64();
    for (name, [average, min, max, total]) in PRINTED {
        // The tool prints 0, a percentage, for the average of partial objects.
        let row = find(&table.rows, name);
        let cells = [
            row.average.unwrap().value.floor(),
            number(row.min),
            number(row.max),
            number(row.total),
        ];
        assert_eq!(
            cells,
            [average, min, max, total].map(|n| n as f64),
            "{name}"
        );
    }
    for (name, max, total) in [
        ("partial_slabs_share", 54.0, 2.0),
        ("partial_objects_share", 27.0, 0.0),
    ] {
        let row = find(&table.rows, name);
        let percents = [row.max, row.total].map(|f| (number(f) * 100.0).floor());
        assert_eq!(percents, [max, total], "{name}");
    }
    for (name, [average, min, max]) in [
        ("memory", [262.0, 8.0, 8448.0]),
        ("user", [259.0, 8.0, 8392.0]),
        ("loss", [2.0, 0.0, 64.0]),
    ] {
        let row = find(&table.per_object, name);
        let cells = [
            row.average.unwrap().value.floor(),
            number(row.min),
            number(row.max),
        ];
        assert_eq!(cells, [average, min, max], "{name}");
    }
    assert!((table.loss_to_used.unwrap().value - 841_440.0 / 15_198_496.0).abs() < 1e-9);
}

#[test]
fn kmalloc_sizes_add_up_over_their_kinds() {
    let s = snapshot(OPENSTACK);
    let of_32 = families(&s.caches, 4096)
        .into_iter()
        .find(|f| f.size == 32)
        .unwrap();
    let by_name: u64 = s
        .caches
        .iter()
        .filter(|c| c.name.ends_with("kmalloc-32") || &*c.name == "kmalloc-rcl-32")
        .map(|c| c.objects().unwrap().value.get())
        .sum();
    assert!(by_name >= 866_841);
    assert_eq!(
        of_32.totals.objects.total,
        Some(Approx::exact(Objects(by_name)))
    );
}

#[test]
fn a_table_beside_itself_shows_no_change_and_growth_comes_first() {
    let before = snapshot(OPENSTACK);
    let mut after = before.clone();
    let grown = after
        .caches
        .iter_mut()
        .find(|c| &*c.name == "dentry")
        .unwrap();
    let slabs = grown.slabs().unwrap().value.get();
    grown.set_exact(Quantity::Slabs, slabs + 1000, Layer::Slabinfo);
    after.caches.reverse();
    let d = diff(&before, &after, None);
    assert_eq!(d.rows.len(), 223);
    assert_eq!(&*d.rows[0].name, "dentry");
    assert!(d.rows[0].changes.memory.delta.unwrap().value > 0);
    let rest = d.rows[1..].iter().map(|r| r.changes.memory.delta);
    assert!(rest.into_iter().all(|delta| delta.unwrap().value == 0));
}
