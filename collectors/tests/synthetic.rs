//! Trees that no real kernel showed yet, and those on which the kernel's own
//! slabinfo tool fails: each test names what that tool does.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use collectors::analysis::consistency;
use collectors::analysis::totals::Totals;
use collectors::analysis::usage::Usage;
use collectors::model::{
    Cache, CacheId, CounterId, Layer, NodeId, Quantity, Slabs, Snapshot, WarningCode,
};
use collectors::source::kernel::KernelSource;
use collectors::source::tree::{DirTree, Tree};
use collectors::source::{Demand, Source as _};
use support::counting::Counting;
use support::tree::{Fake, Figures, Lcg, Shape, figures};

fn live(tree: impl Tree + 'static) -> Snapshot {
    let mut source = KernelSource::live(Box::new(tree));
    source.sample(&Demand::everything()).unwrap()
}

fn saved(tree: impl Tree + 'static) -> Snapshot {
    let mut source = KernelSource::saved(Box::new(tree), "fake".into(), None);
    source.sample(&Demand::everything()).unwrap()
}

/// The same tree as a live one and as a saved one.
fn both(fake: &Fake) -> [Snapshot; 2] {
    [live(fake.mem()), saved(fake.mem())]
}

fn named<'a>(snapshot: &'a Snapshot, name: &'a str) -> &'a Cache {
    snapshot.named(name).next().unwrap()
}

fn value(cache: &Cache, q: Quantity) -> Option<u64> {
    cache.get(q).map(|f| f.value)
}

fn messages(snapshot: &Snapshot, code: WarningCode) -> Vec<String> {
    let list = snapshot.warnings.iter().filter(|w| w.code == code);
    list.map(ToString::to_string).collect()
}

/// A machine with one cache, `victim`, among nine others.
fn with_victim() -> Fake {
    let mut fake = Fake::new(Shape {
        caches: 9,
        ..Shape::default()
    });
    fake.cache("victim", "victim", &plain());
    fake
}

fn plain() -> Figures {
    Figures {
        size: 64,
        order: 0,
        nodes: vec![[10, 4, 100]],
    }
}

#[test]
fn a_tree_reads_alike_in_memory_and_on_disk() {
    let fake = Fake::new(Shape {
        caches: 60,
        merged_every: 3,
        nodes: 2,
        cpus: 4,
        counters: true,
    });
    let dir = tempfile::tempdir().unwrap();
    fake.write(dir.path());
    let mut all = vec![
        live(fake.mem()),
        saved(fake.mem()),
        live(DirTree::trusted(dir.path()).unwrap()),
        saved(DirTree::confined(dir.path()).unwrap()),
    ];
    for snapshot in &mut all {
        assert!(snapshot.warnings.is_empty(), "{:?}", snapshot.warnings);
        assert_eq!(snapshot.caches.len(), 60);
        assert_eq!(snapshot.system.nodes, Some(2));
    }
    for q in Quantity::ALL {
        for cache in 0..60 {
            let figures: Vec<_> = all.iter().map(|s| value(&s.caches[cache], *q)).collect();
            let read: Vec<_> = figures.iter().flatten().collect();
            assert!(
                read.windows(2).all(|w| w[0] == w[1]),
                "{q:?} {cache}: {figures:?}"
            );
        }
    }
    for pair in all.windows(2) {
        for (a, b) in pair[0].caches.iter().zip(&pair[1].caches) {
            assert_eq!((&a.name, &a.aliases), (&b.name, &b.aliases));
            assert_eq!((&a.nodes, &a.counters), (&b.nodes, &b.counters));
        }
    }
    let counters = all[0].caches[0].counters.as_ref().unwrap();
    assert_eq!(
        counters.get(CounterId::AllocFastpath).unwrap().cpus.len(),
        4
    );
}

#[test]
fn totals_are_the_sum_of_what_was_generated() {
    let shape = Shape {
        caches: 300,
        nodes: 2,
        ..Shape::default()
    };
    let mut random = Lcg(42);
    let (mut slabs, mut objects, mut bytes) = (0, 0, 0);
    for _ in 0..shape.caches {
        let f = figures(&mut random, shape);
        slabs += f.slabs();
        objects += f.objects();
        bytes += f.slabs() * (4096 << f.order);
    }
    for snapshot in both(&Fake::new(shape)) {
        let totals = Totals::of(&snapshot.caches, 4096);
        assert_eq!(totals.slabs.total.unwrap().value.get(), slabs);
        assert_eq!(totals.objects.total.unwrap().value.get(), objects);
        assert_eq!(totals.memory.total.unwrap().value.get(), bytes);
    }
}

#[test]
fn merged_caches_are_keyed_by_their_directory() {
    let mut fake = Fake::machine(Shape::default());
    for (id, name, other) in [
        (":0000064", "first", "second"),
        (":a-0000064", "third", "fourth"),
    ] {
        fake.link(name, id);
        fake.link(other, id);
        fake.cache(id, name, &plain());
    }
    for snapshot in both(&fake) {
        assert_eq!(snapshot.caches.len(), 2);
        for (name, id, alias) in [
            ("first", ":0000064", "second"),
            ("third", ":a-0000064", "fourth"),
        ] {
            let cache = named(&snapshot, name);
            assert_eq!(*cache.name, *name);
            assert_eq!(cache.sysfs_id.as_deref(), Some(id));
            assert_eq!(cache.aliases.as_deref(), Some(&[alias.into()][..]));
            assert_eq!(named(&snapshot, alias).id, cache.id);
            assert_eq!(named(&snapshot, id).id, cache.id);
        }
    }
}

#[test]
fn two_caches_of_one_name_stay_two() {
    let mut fake = with_victim();
    // The second one could not get a directory of its own.
    fake.row(
        "victim",
        &Figures {
            size: 128,
            order: 0,
            nodes: vec![[3, 0, 0]],
        },
    );
    for snapshot in both(&fake) {
        assert_eq!(snapshot.caches.len(), 11);
        let twins: Vec<_> = snapshot.named("victim").collect();
        assert_eq!(twins.len(), 2);
        assert_ne!(twins[0].id, twins[1].id);
        let sizes: Vec<_> = twins.iter().map(|c| value(c, Quantity::SlabSize)).collect();
        assert_eq!(sizes, [Some(64), Some(128)]);
        assert_eq!(twins[1].sysfs_id, None);
        assert!(snapshot.warnings.has(WarningCode::DuplicateName));
        for (index, cache) in (0u32..).zip(&snapshot.caches) {
            assert_eq!(cache.id, CacheId(index));
        }
    }
}

#[test]
fn names_with_odd_characters_are_kept_as_they_are() {
    let names = [
        "ext4 inode(0)",
        "naïve",
        "a=b",
        "N0=3",
        "-rf",
        "\u{1b}[31mred",
        "%s",
        "x:y",
    ];
    let mut fake = Fake::machine(Shape::default());
    for name in names {
        fake.cache(name, name, &plain());
    }
    for snapshot in both(&fake) {
        let mut found: Vec<&str> = snapshot.caches.iter().map(|c| &*c.name).collect();
        found.sort_unstable();
        let mut expected = names;
        expected.sort_unstable();
        assert_eq!(found, expected);
        let joined = snapshot
            .caches
            .iter()
            .filter(|c| c.layers.contains(Layer::Sysfs) && c.sysfs_id.is_some());
        assert_eq!(joined.count(), names.len());
    }
}

#[test]
fn long_names_are_whole() {
    // slabinfo builds paths in buffers of 100 bytes.
    let name = "n".repeat(200);
    let mut fake = with_victim();
    fake.cache(&name, &name, &plain());
    for snapshot in both(&fake) {
        assert_eq!(value(named(&snapshot, &name), Quantity::Slabs), Some(10));
    }
}

// slabinfo up to 6.12 crashes over 500 caches; later ones stop over 2000.
#[test]
fn any_number_of_caches_is_read() {
    for snapshot in both(&Fake::new(Shape {
        caches: 2001,
        ..Shape::default()
    })) {
        assert_eq!(snapshot.caches.len(), 2001);
        assert!(snapshot.warnings.is_empty());
    }
}

// slabinfo stops with "Too many aliases" over 500.
#[test]
fn any_number_of_aliases_is_read() {
    let mut fake = with_victim();
    fake.cache(":0000064", "alias_000", &plain());
    for i in 0..501 {
        fake.link(&format!("alias_{i:03}"), ":0000064");
    }
    for snapshot in both(&fake) {
        let cache = named(&snapshot, "alias_500");
        assert_eq!(*cache.name, *"alias_000");
        assert_eq!(cache.names().count(), 501);
    }
}

// slabinfo writes beyond its arrays for nodes from 1024 on.
#[test]
fn a_node_of_any_number_is_its_own() {
    let mut fake = with_victim();
    fake.set("sys/devices/system/node/online", "0,2000\n");
    fake.attribute("victim", "slabs", "10 N0=4 N2000=6\n");
    fake.attribute("victim", "partial", "4 N2000=4\n");
    for snapshot in both(&fake) {
        let nodes = &named(&snapshot, "victim").nodes;
        let seen: Vec<_> = nodes.iter().map(|n| (n.node, n.slabs, n.partial)).collect();
        assert_eq!(
            seen,
            [
                (NodeId(0), Some(Slabs(4)), Some(Slabs(0))),
                (NodeId(2000), Some(Slabs(6)), Some(Slabs(4)))
            ]
        );
    }
}

// slabinfo prints 18446744073709551615 slabs, -2 full ones and 166 % here.
#[test]
fn races_are_named_and_never_wrap() {
    let mut fake = with_victim();
    fake.attribute("victim", "cpu_slabs", "12 N0=12\n");
    fake.attribute("victim", "partial", "16 N0=16\n");
    fake.attribute("victim", "objects", "700 N0=700\n");
    let snapshot = saved(fake.mem());
    let races = messages(&snapshot, WarningCode::Race);
    assert_eq!(races.len(), 1, "{races:?}");
    for part in [
        "objects 700 > total_objects 640",
        "partial 16 > slabs 10",
        "cpu_slabs 12 > slabs 10",
    ] {
        assert!(races[0].contains(part), "{races:?}");
    }
    let usage = Usage::of(named(&snapshot, "victim"), 4096);
    let text = format!("{usage:?}");
    for share in [usage.object_use, usage.utilization, usage.fragmentation] {
        assert!((0.0..=1.0).contains(&share.unwrap().value), "{text}");
    }
    assert!(usage.loss.unwrap().value <= usage.memory.unwrap().value);
    assert!(usage.free.unwrap().value.get() <= usage.memory.unwrap().value.get());
}

// slabinfo stores these in an int and prints -1294967296.
#[test]
fn huge_figures_are_exact_and_sums_do_not_wrap() {
    let mut fake = with_victim();
    let near = u64::MAX - 3;
    fake.attribute("victim", "cpu_slabs", "3000000000 N0=3000000000\n");
    fake.attribute("victim", "slabs", &format!("{near} N0={near}\n"));
    fake.attribute("victim", "total_objects", "2147483648 N0=2147483648\n");
    fake.attribute("victim", "objects", "-1294967296\n");
    let snapshot = saved(fake.mem());
    let victim = named(&snapshot, "victim");
    assert_eq!(value(victim, Quantity::CpuSlabs), Some(3_000_000_000));
    assert_eq!(value(victim, Quantity::Slabs), Some(near));
    assert_eq!(value(victim, Quantity::TotalObjects), Some(1 << 31));
    // A negative number is no figure; the row of /proc/slabinfo has one.
    let broken = messages(&snapshot, WarningCode::BrokenValue);
    assert!(broken[0].contains("victim/objects"), "{broken:?}");
    assert_eq!(victim.origin(Quantity::Objects), Some(Layer::Slabinfo));
    let totals = Totals::of(&snapshot.caches, 4096);
    assert!(totals.slabs.total.unwrap().value.get() >= near);
    // No memory of 2^76 bytes: unknown, or marked as beyond what fits.
    let memory = Usage::of(victim, 4096).memory;
    assert!(memory.is_none_or(|m| m.approx), "{memory:?}");
}

// slabinfo: "Unknown file type 8", "Unresolved alias", exit status 1.
#[test]
fn what_does_not_belong_there_is_a_warning() {
    let mut fake = with_victim();
    fake.set("sys/kernel/slab/README", "stray\n");
    fake.link("lost", ":0000999");
    for snapshot in both(&fake) {
        assert_eq!(snapshot.caches.len(), 10);
        let stray = messages(&snapshot, WarningCode::StrayEntry);
        assert_eq!(stray.len(), 1);
        assert!(stray[0].starts_with("sys/kernel/slab/README"), "{stray:?}");
        let dangling = messages(&snapshot, WarningCode::DanglingLink);
        assert_eq!(dangling.len(), 1);
        assert!(dangling[0].contains(":0000999"), "{dangling:?}");
    }
}

// slabinfo shows 0 for an attribute that it cannot read.
#[test]
fn an_empty_attribute_is_unknown_and_not_zero() {
    let mut fake = with_victim();
    for name in ["align", "partial", "objects"] {
        fake.attribute("victim", name, "");
    }
    let snapshot = saved(fake.mem());
    let victim = named(&snapshot, "victim");
    assert_eq!(value(victim, Quantity::Align), None);
    assert_eq!(value(victim, Quantity::Partial), None);
    assert_eq!(victim.origin(Quantity::Objects), Some(Layer::Slabinfo));
    assert_eq!(victim.nodes[0].partial, None);
    assert_eq!(value(victim, Quantity::Slabs), Some(10));
}

#[test]
fn a_count_that_does_not_parse_is_not_called_over_the_limit() {
    let mut fake = with_victim();
    // A cache that has no row in slabinfo to fall back on.
    fake.directory("lone", &plain());
    fake.attribute("lone", "partial", "4 N0=4\n");
    fake.attribute("lone", "objects", "-5\n");
    let snapshot = live(fake.mem());
    assert_eq!(value(named(&snapshot, "lone"), Quantity::Objects), None);
    let broken = messages(&snapshot, WarningCode::BrokenValue);
    assert!(
        broken.iter().any(|m| m.contains("lone/objects")),
        "{broken:?}"
    );
    let over = messages(&snapshot, WarningCode::NotInSource);
    assert!(!over.iter().any(|m| m.contains("limit")), "{over:?}");
}

#[test]
fn rubbish_in_one_attribute_costs_only_that_attribute() {
    for text in [
        "\n",
        "x\n",
        "10 N0\n",
        "10 NX=3\n",
        "1e3\n",
        "99999999999999999999999\n",
        "\0\0\n",
    ] {
        let mut fake = with_victim();
        fake.attribute("victim", "slabs", text);
        let snapshot = saved(fake.mem());
        let broken = messages(&snapshot, WarningCode::BrokenValue);
        assert_eq!(broken.len(), 1, "{text:?}: {broken:?}");
        assert!(broken[0].starts_with("victim/slabs: "), "{broken:?}");
        let victim = named(&snapshot, "victim");
        assert_eq!(victim.origin(Quantity::Slabs), Some(Layer::Slabinfo));
        assert_eq!(victim.origin(Quantity::Order), Some(Layer::Sysfs));
        assert_eq!(snapshot.caches.len(), 10);
    }
}

/// A page full of a list: the kernel cuts it in the middle of a number.
fn cut_list(label: char, ids: u32) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{}", u64::from(ids) * 1000);
    for id in 0..ids {
        write!(text, " {label}{id}=1000").unwrap();
    }
    assert!(text.len() > 4096);
    text.truncate(4096);
    text
}

#[test]
fn a_list_cut_at_the_page_keeps_its_total_and_says_so() {
    let mut fake = with_victim();
    fake.set("sys/devices/system/node/online", "0-599\n");
    fake.attribute("victim", "slabs", &cut_list('N', 600));
    fake.attribute("victim", "partial", "7 N599=7\n");
    fake.attribute("victim", "alloc_fastpath", &cut_list('C', 600));
    let snapshot = saved(fake.mem());
    let victim = named(&snapshot, "victim");
    assert_eq!(value(victim, Quantity::Slabs), Some(600_000));
    // Nothing is invented for the token in which the text ends, nor for the
    // nodes behind it.
    let listed = victim.nodes.iter().filter(|n| n.slabs.is_some());
    assert!(listed.clone().count() > 300);
    assert!(listed.clone().all(|n| n.slabs == Some(Slabs(1000))));
    let last = victim.nodes.last().unwrap();
    assert_eq!(
        (last.node, last.slabs, last.partial),
        (NodeId(599), None, Some(Slabs(7)))
    );
    // The list of caches is whole all the same.
    assert!(!consistency::is_partial(&snapshot));
    let cut = messages(&snapshot, WarningCode::NotInSource);
    assert_eq!(cut.len(), 2, "{cut:?}");
    assert!(cut.iter().any(|w| w.starts_with("victim/slabs: ")));
    let counter = victim
        .counters
        .as_ref()
        .unwrap()
        .get(CounterId::AllocFastpath);
    let counter = counter.unwrap();
    assert_eq!(counter.total, 600_000);
    assert!(counter.cpus.iter().all(|(_, n)| *n == 1000));
}

#[test]
fn a_long_list_that_is_whole_is_not_called_cut() {
    let mut fake = with_victim();
    let mut text = cut_list('N', 600);
    text.truncate(text.rfind(' ').unwrap());
    fake.attribute("victim", "slabs", &(text + "\n"));
    let snapshot = saved(fake.mem());
    assert!(!snapshot.warnings.has(WarningCode::NotInSource));
}

// slabinfo ends at the first cache that goes away while it reads.
#[test]
fn a_cache_that_goes_away_costs_only_itself() {
    use rustix::io::Errno;
    for errno in [Errno::NOENT, Errno::NODEV] {
        let (tree, _log, faults) = Counting::new(Box::new(with_victim().mem()));
        let path = "sys/kernel/slab/victim".to_owned();
        faults.borrow_mut().insert(path, errno);
        let snapshot = live(tree);
        assert_eq!(snapshot.caches.len(), 10);
        let gone = messages(&snapshot, WarningCode::Vanished);
        assert_eq!(gone.len(), 1, "{gone:?}");
        assert_eq!(snapshot.warnings.iter().count(), 1);
        // Its row had been read before.
        assert_eq!(
            named(&snapshot, "victim").origin(Quantity::Slabs),
            Some(Layer::Slabinfo)
        );
    }
}
