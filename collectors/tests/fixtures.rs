//! Captures of real kernels, from 6.1 to 7.3, read as a user's archive is.
//!
//! The figures were read by hand from the files, or are computed here by a
//! second, naive reader of the same bytes.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use collectors::analysis::groups::merge_groups;
use collectors::analysis::order::{OrderParams, calculate_order, rule_of_release};
use collectors::analysis::totals::Totals;
use collectors::analysis::usage::Usage;
use collectors::model::{
    Allocator, Cache, CounterId, CpuId, Era, Layer, Objects, Quantity, SiteKind, Slabs, Snapshot,
    WarningCode,
};
use collectors::source::{Demand, Source as _, capture};
use support::raw::{Raw, kernel};

const SLUB: [&str; 7] = [
    "host-6.18",
    "deb6.1-cloud",
    "deb6.12-cloud-FZPU-numa2",
    "custom6.12-lite-stats-numa2",
    "deb7.0-cloud",
    "deb7.3-cloud",
    "custom7.3-lite-stats-numa2",
];
const SLAB: &str = "custom6.1-SLAB-debug-numa2";

/// Each capture is read once for all tests.
fn snapshot(name: &str) -> Arc<Snapshot> {
    static READ: Mutex<BTreeMap<String, Arc<Snapshot>>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap();
    let snapshot = read.entry(name.to_owned()).or_insert_with(|| {
        let mut source = capture::open(&kernel(name)).unwrap();
        Arc::new(source.sample(&Demand::everything()).unwrap())
    });
    Arc::clone(snapshot)
}

fn named<'a>(snapshot: &'a Snapshot, name: &'a str) -> &'a Cache {
    let mut found = snapshot.named(name);
    let cache = found.next().unwrap();
    assert!(found.next().is_none(), "{name} is one cache");
    cache
}

fn value(cache: &Cache, q: Quantity) -> Option<u64> {
    cache.get(q).map(|f| f.value)
}

fn count(snapshot: &Snapshot, code: WarningCode) -> usize {
    snapshot.warnings.iter().filter(|w| w.code == code).count()
}

/// Capture, kernel release, caches, CPUs, nodes, era, names merged into
/// others, groups of merged names.
type Machine = (
    &'static str,
    &'static str,
    usize,
    u32,
    u32,
    Era,
    usize,
    usize,
);

const MACHINES: [Machine; 8] = [
    ("host-6.18", "6.18.44", 235, 2, 1, Era::Mixed, 194, 42),
    (
        "deb6.1-cloud",
        "6.1.0-57-cloud-amd64",
        153,
        2,
        1,
        Era::CpuSlabs,
        120,
        29,
    ),
    (
        "deb6.12-cloud-FZPU-numa2",
        "6.12.117+deb12-cloud-amd64",
        248,
        4,
        2,
        Era::CpuSlabs,
        0,
        0,
    ),
    (
        "custom6.12-lite-stats-numa2",
        "6.12.117-slabstats",
        103,
        4,
        2,
        Era::CpuSlabs,
        88,
        15,
    ),
    (
        "deb7.0-cloud",
        "7.0.13+deb13-cloud-amd64",
        199,
        2,
        1,
        Era::Sheaves,
        130,
        26,
    ),
    (
        "deb7.3-cloud",
        "7.3.4+deb13-cloud-amd64",
        203,
        2,
        1,
        Era::Sheaves,
        130,
        25,
    ),
    (
        "custom7.3-lite-stats-numa2",
        "7.3.4-slabstats",
        119,
        4,
        2,
        Era::Sheaves,
        87,
        16,
    ),
    (SLAB, "6.1.192-slab", 108, 4, 2, Era::Slab, 0, 0),
];

#[test]
fn every_machine_is_told_from_its_files() {
    for (name, release, caches, cpus, nodes, era, links, groups) in MACHINES {
        let snapshot = snapshot(name);
        let system = &snapshot.system;
        assert_eq!(system.kernel.as_deref(), Some(release), "{name}");
        assert_eq!(snapshot.caches.len(), caches, "{name}");
        assert_eq!(
            (system.cpus, system.nodes),
            (Some(cpus), Some(nodes)),
            "{name}"
        );
        assert_eq!(system.era, era, "{name}");
        assert_eq!(
            (system.page_size, system.page_size_assumed),
            (4096, false),
            "{name}"
        );
        let allocator = if name == SLAB {
            Allocator::Slab
        } else {
            Allocator::Slub
        };
        assert_eq!(system.allocator, allocator, "{name}");
        // Each merged directory shows one of its links as the name.
        let merged = snapshot
            .caches
            .iter()
            .filter(|c| c.is_mergeable() == Some(true))
            .count();
        let aliases: usize = snapshot
            .caches
            .iter()
            .map(|c| c.aliases.as_ref().map_or(0, Vec::len))
            .sum();
        assert_eq!(aliases + merged, links, "{name}");
        let shared = merge_groups(&snapshot.caches)
            .iter()
            .filter(|g| g.names.len() > 1)
            .count();
        assert_eq!(shared, groups, "{name}");
        assert!(snapshot.origin.taken_at.is_some(), "{name} has a date");
        let memory = system.meminfo.slab.unwrap().get();
        assert!(memory > 8 << 20, "{name}: {memory}");
    }
}

#[test]
fn nothing_that_a_real_kernel_prints_is_misunderstood() {
    for (name, ..) in MACHINES {
        let snapshot = snapshot(name);
        for code in [
            WarningCode::BrokenValue,
            WarningCode::BrokenRow,
            WarningCode::Truncated,
            WarningCode::Unreadable,
            WarningCode::StrayEntry,
            WarningCode::DanglingLink,
            WarningCode::Vanished,
            WarningCode::DuplicateName,
            WarningCode::LookAlike,
            WarningCode::LimitReached,
            WarningCode::Incomplete,
        ] {
            let found: Vec<_> = snapshot
                .warnings
                .iter()
                .filter(|w| w.code == code)
                .collect();
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}

#[test]
fn every_figure_of_every_cache_is_the_one_in_its_file() {
    let plain = [
        Quantity::SlabSize,
        Quantity::ObjectSize,
        Quantity::ObjsPerSlab,
        Quantity::Order,
        Quantity::Align,
        Quantity::MinPartial,
        Quantity::CpuPartial,
        Quantity::Slabs,
        Quantity::TotalObjects,
        Quantity::Objects,
        Quantity::Partial,
        Quantity::ObjectsPartial,
        Quantity::CpuSlabs,
        Quantity::SheafCapacity,
    ];
    for name in SLUB {
        let (raw, snapshot) = (Raw::of(name), snapshot(name));
        assert_eq!(raw.directories().len(), snapshot.caches.len(), "{name}");
        for id in raw.directories() {
            let cache = named(&snapshot, id);
            for q in plain {
                assert_eq!(
                    value(cache, q),
                    raw.number(id, q.name()),
                    "{name} {id} {q:?}"
                );
                let known = value(cache, q).is_some();
                let from = known.then_some(Layer::Sysfs);
                assert_eq!(cache.origin(q), from, "{name} {id} {q:?}");
            }
            let aliases = raw.number(id, "aliases").unwrap();
            assert_eq!(value(cache, Quantity::AliasCount), Some(aliases));
        }
    }
}

#[test]
fn the_rows_keep_their_order_and_first_created_names() {
    for (name, ..) in MACHINES {
        let rows = Raw::of(name).rows();
        let snapshot = snapshot(name);
        let names: Vec<&str> = snapshot.caches.iter().map(|c| &*c.name).collect();
        let expected: Vec<&str> = rows.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, expected, "{name}");
    }
}

#[test]
fn totals_equal_a_sum_over_the_raw_files() {
    for name in SLUB {
        let (raw, snapshot) = (Raw::of(name), snapshot(name));
        let mut expected = [0u64; 4];
        for id in raw.directories() {
            let get = |a| raw.number(id, a).unwrap();
            expected[0] += get("slabs");
            expected[1] += get("objects");
            expected[2] += get("partial");
            expected[3] += (get("slabs") * 4096) << get("order");
        }
        let totals = Totals::of(&snapshot.caches, 4096);
        let found = [
            totals.slabs.total.unwrap().value.get(),
            totals.objects.total.unwrap().value.get(),
            totals.partial.total.unwrap().value.get(),
            totals.memory.total.unwrap().value.get(),
        ];
        assert_eq!(found, expected, "{name}");
    }
    // Sums of one capture, taken from its files by a script.
    let totals = Totals::of(&snapshot("host-6.18").caches, 4096);
    assert_eq!(totals.slabs.total.unwrap().value, Slabs(61_560));
    assert_eq!(totals.objects.total.unwrap().value, Objects(1_768_538));
    assert_eq!(totals.memory.total.unwrap().value.get(), 467_005_440);
}

#[test]
fn idle_caches_agree_and_the_rest_is_said_to_have_moved() {
    // Caches whose slabs are the same in both files, of all.
    let same = [
        ("host-6.18", 209),
        ("deb6.1-cloud", 147),
        ("deb6.12-cloud-FZPU-numa2", 241),
        ("custom6.12-lite-stats-numa2", 98),
        ("deb7.0-cloud", 193),
        ("deb7.3-cloud", 197),
        ("custom7.3-lite-stats-numa2", 112),
    ];
    for (name, expected) in same {
        let rows = Raw::of(name).rows();
        let snapshot = snapshot(name);
        let mut equal = 0;
        for (cache, (row_name, [_, _, pages, slabs])) in snapshot.caches.iter().zip(&rows) {
            assert_eq!(*cache.name, **row_name);
            assert_eq!(cache.pages_per_slab(), Some(*pages), "{name} {row_name}");
            equal += usize::from(value(cache, Quantity::Slabs) == Some(*slabs));
        }
        assert_eq!(equal, expected, "{name}");
        let moved = snapshot.caches.len() - equal;
        let said = snapshot
            .warnings
            .iter()
            .find(|w| w.code == WarningCode::NotSimultaneous)
            .unwrap();
        assert!(
            said.message.starts_with(&format!("{moved} caches")),
            "{said}"
        );
    }
}

#[test]
fn objects_beyond_the_capacity_are_named_as_races() {
    let stats = snapshot("custom6.12-lite-stats-numa2");
    let races: Vec<&str> = stats
        .warnings
        .iter()
        .filter(|w| w.code == WarningCode::Race)
        .map(|w| w.message.as_str())
        .collect();
    assert!(
        races
            .iter()
            .any(|r| r.contains("objects 12555 > total_objects 12537")),
        "{races:?}"
    );
    assert!(
        races
            .iter()
            .any(|r| r.starts_with("inode_cache") && r.contains("objects 3509")),
        "{races:?}"
    );
    for cache in &stats.caches {
        let usage = Usage::of(cache, 4096);
        if let Some(share) = usage.object_use {
            assert!((0.0..=1.0).contains(&share.value), "{}", cache.name);
        }
        if let (Some(loss), Some(memory)) = (usage.loss, usage.memory) {
            assert!(loss.value <= memory.value, "{}", cache.name);
        }
    }
    assert_eq!(count(&snapshot("deb7.3-cloud"), WarningCode::Race), 0);
}

#[test]
fn nodes_have_their_own_figures_and_their_zeros() {
    let snapshot = snapshot("deb6.12-cloud-FZPU-numa2");
    let dentry = named(&snapshot, "dentry");
    let [a, b] = &dentry.nodes[..] else {
        panic!("two nodes: {:?}", dentry.nodes);
    };
    assert_eq!((a.slabs, b.slabs), (Some(Slabs(199)), Some(Slabs(54))));
    assert_eq!(
        (a.objects, b.objects),
        (Some(Objects(5552)), Some(Objects(1498)))
    );
    assert_eq!((a.partial, b.partial), (Some(Slabs(2)), Some(Slabs(5))));
    assert_eq!(
        (a.objects_partial, b.objects_partial),
        (Some(Objects(11)), Some(Objects(126)))
    );
    // cpu_slabs reads "0": no node is named, so each has none.
    assert_eq!((a.cpu_slabs, b.cpu_slabs), (Some(Slabs(0)), Some(Slabs(0))));
    for cache in &snapshot.caches {
        let sum: u64 = cache
            .nodes
            .iter()
            .filter_map(|n| n.slabs)
            .map(Slabs::get)
            .sum();
        assert_eq!(Some(sum), value(cache, Quantity::Slabs), "{}", cache.name);
    }
}

#[test]
fn cpu_partial_lists_are_read_per_processor() {
    let snapshot = snapshot("custom6.12-lite-stats-numa2");
    let dentry = named(&snapshot, "dentry");
    assert_eq!(dentry.sysfs_id.as_deref(), Some(":aA-0000192"));
    assert_eq!(value(dentry, Quantity::SlabsCpuPartial), Some(14));
    // 14 slabs of 21 objects, half of them: the kernel's estimate.
    let objects = dentry.get(Quantity::ObjectsCpuPartial).unwrap();
    assert_eq!((objects.value, objects.approx), (147, true));
    let lists: Vec<_> = dentry
        .cpus
        .iter()
        .map(|p| (p.cpu.0, p.slabs_cpu_partial.unwrap().get()))
        .collect();
    assert_eq!(lists, [(0, 4), (1, 1), (2, 2), (3, 7)]);
}

#[test]
fn counters_carry_the_names_of_their_era() {
    let old = snapshot("custom6.12-lite-stats-numa2");
    let new = snapshot("custom7.3-lite-stats-numa2");
    let counters = |s: &Snapshot, n: &str| {
        let cache = s.named(n).next().unwrap();
        cache.counters.clone().unwrap()
    };
    let (a, b) = (counters(&old, "dentry"), counters(&new, "dentry"));
    assert_eq!((a.0.len(), b.0.len()), (26, 26));
    let fast = a.get(CounterId::AllocFastpath).unwrap();
    assert_eq!(fast.total, 20_448);
    let cpus: Vec<_> = [2465, 1954, 1840, 14189]
        .into_iter()
        .zip(0..)
        .map(|(v, c)| (CpuId(c), v))
        .collect();
    assert_eq!(fast.cpus, cpus);
    assert!(a.get(CounterId::CpuslabFlush).is_some());
    assert!(a.get(CounterId::SheafRefill).is_none());
    assert!(b.get(CounterId::CpuslabFlush).is_none());
    assert_eq!(b.total(CounterId::SheafRefill), Some(15_180));
    // SLUB_STATS=n: unknown, not zero.
    let host = snapshot("host-6.18");
    assert!(host.caches.iter().all(|c| c.counters.is_none()));
    let debian = snapshot("deb6.1-cloud");
    assert_eq!(debian.system.config["CONFIG_SLUB_STATS"], "n");
    assert_eq!(old.system.config["CONFIG_SLUB_STATS"], "y");
}

#[test]
fn sheaves_are_seen_where_the_kernel_has_them() {
    let capacity = |name: &str, cache: &str| {
        let snapshot = snapshot(name);
        value(
            snapshot.named(cache).next().unwrap(),
            Quantity::SheafCapacity,
        )
    };
    assert_eq!(capacity("deb6.1-cloud", "kmalloc-64"), None);
    assert_eq!(capacity("host-6.18", "kmalloc-64"), Some(0));
    assert_eq!(capacity("host-6.18", "maple_node"), Some(32));
    assert_eq!(capacity("deb7.0-cloud", "kmalloc-64"), Some(60));
    assert_eq!(capacity("deb7.3-cloud", "dentry"), Some(60));
}

#[test]
fn call_sites_are_read_with_their_stacks() {
    let snapshot = snapshot("deb6.12-cloud-FZPU-numa2");
    let sites = named(&snapshot, "kmalloc-64").sites.clone().unwrap();
    let first = &sites[0];
    assert_eq!((first.kind, first.count), (SiteKind::Alloc, Objects(400)));
    assert_eq!(
        first.symbol.as_deref(),
        Some("kprobe_add_ksym_blacklist+0x6e/0xf0")
    );
    assert_eq!(first.waste, Some((6400, 16)));
    assert_eq!(first.stack[1], "init_kprobes+0x197/0x1c0");
    assert!(sites.iter().any(|s| s.kind == SiteKind::Free));
    // slab_debug=FZPU, as the command line and the flags both say.
    let cmdline = snapshot.system.cmdline.as_deref().unwrap();
    assert!(cmdline.contains("slab_debug=FZPU"), "{cmdline}");
    let tracked = snapshot
        .caches
        .iter()
        .filter(|c| c.flags.debugging())
        .count();
    assert!(tracked > 200, "{tracked}");
    assert!(count(&snapshot, WarningCode::Note) >= 1);
    let plain = self::snapshot("deb6.1-cloud");
    assert!(plain.caches.iter().all(|c| c.sites.is_none()));
}

#[test]
fn the_slab_allocator_gives_its_own_statistics() {
    let snapshot = snapshot(SLAB);
    let nodes = named(&snapshot, "fib6_nodes");
    assert_eq!(value(nodes, Quantity::Objects), Some(9));
    assert_eq!(value(nodes, Quantity::TotalObjects), Some(64));
    assert_eq!(value(nodes, Quantity::ActiveSlabs), Some(1));
    assert_eq!(value(nodes, Quantity::Partial), None, "SLAB does not tell");
    let tunables = nodes.tunables.clone().unwrap();
    assert_eq!(
        (tunables.limit, tunables.batchcount, tunables.sharedfactor),
        (32, 16, Some(8))
    );
    let statistics = nodes.slab_statistics.clone().unwrap();
    assert_eq!(
        (statistics.maxobjs, statistics.allocmiss),
        (Some(16), Some(1))
    );
}

#[test]
fn the_kernels_choice_of_order_is_predicted() {
    // slab_min_objects follows nr_cpu_ids, which these files do not tell, so
    // only a CPU count that explains all of them counts as a prediction.
    for name in ["host-6.18", "deb6.1-cloud", "deb7.0-cloud", "deb7.3-cloud"] {
        let snapshot = snapshot(name);
        let rule = rule_of_release(snapshot.system.kernel.as_deref().unwrap()).unwrap();
        let wrong = |cpus: u32| {
            let caches = snapshot.caches.iter();
            let seen = caches.filter_map(|c| {
                let size = value(c, Quantity::SlabSize)?;
                let params = OrderParams::new(size, cpus, 4096).with_rule(rule);
                let choice = calculate_order(&params)?;
                Some(u64::from(choice.order) != value(c, Quantity::Order)?)
            });
            seen.filter(|wrong| *wrong).count()
        };
        let cpus = snapshot.system.cpus.unwrap();
        let best = (cpus..=64).map(wrong).min().unwrap();
        assert!(best <= snapshot.caches.len() / 50, "{name}: {best} wrong");
    }
}
