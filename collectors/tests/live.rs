//! The live path on a tree that is made: what is opened, and what is left out.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use collectors::model::{Cache, Flag, Layer, Quantity, Snapshot, WarningCode};
use collectors::source::kernel::KernelSource;
use collectors::source::tree::DirTree;
use collectors::source::{Demand, Source as _};
use rustix::io::Errno;
use support::counting::{Counting, Faults, Log, attributes, opened};
use support::tree::{Fake, Figures, Shape};

fn value(cache: &Cache, q: Quantity) -> Option<u64> {
    cache.get(q).map(|f| f.value)
}

fn named<'a>(snapshot: &'a Snapshot, name: &'a str) -> &'a Cache {
    snapshot.named(name).next().unwrap()
}

/// Ten caches: `busy` has 12,000 partial slabs, `full` has none.
fn ten() -> Fake {
    let mut fake = Fake::new(Shape {
        caches: 7,
        ..Shape::default()
    });
    let with = |partial, used| Figures {
        size: 64,
        order: 0,
        nodes: vec![[20_000, partial, used]],
    };
    fake.cache("busy", "busy", &with(12_000, 100_000));
    fake.cache("full", "full", &with(0, 0));
    fake.cache("some", "some", &with(30, 500));
    fake
}

fn live(fake: &Fake) -> (KernelSource, Log, Faults) {
    let (tree, log, faults) = Counting::new(Box::new(fake.mem()));
    (KernelSource::live(Box::new(tree)), log, faults)
}

const LIST: [Quantity; 4] = [
    Quantity::Slabs,
    Quantity::Objects,
    Quantity::TotalObjects,
    Quantity::Partial,
];

fn sample(fake: &Fake, demand: &Demand) -> (Snapshot, Log) {
    let (mut source, log, _) = live(fake);
    let snapshot = source.sample(demand).unwrap();
    (snapshot, log)
}

/// Files below a directory that this process has open.
fn held(dir: &std::path::Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = links.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    targets
        .filter(|target| target.starts_with(dir) && target.is_file())
        .count()
}

/// Each open file is itself an object of three caches or more: a report would
/// count its own.
#[test]
fn no_file_is_held_open_between_samples() {
    let dir = tempfile::tempdir().unwrap();
    ten().write(dir.path());
    let tree = DirTree::trusted(dir.path()).unwrap();
    let mut source = KernelSource::live(Box::new(tree));
    for _ in 0..2 {
        source.sample(&Demand::everything()).unwrap();
        assert_eq!(held(dir.path()), 0);
    }
}

#[test]
fn only_the_files_of_the_demand_are_opened() {
    for (q, file) in [
        (Quantity::ObjectSize, "object_size"),
        (Quantity::Align, "align"),
        (Quantity::CpuSlabs, "cpu_slabs"),
        (Quantity::MinPartial, "min_partial"),
    ] {
        let (_, log) = sample(&ten(), &Demand::names().with(&[q]));
        assert_eq!(opened(&log, file), 10, "{file}");
        // The file, and `partial`, which says how the rest may be read.
        assert_eq!(attributes(&log), 10 + opened(&log, "partial"), "{file}");
    }
    let mut demand = Demand::names();
    demand.flags = vec![Flag::Poison];
    let (snapshot, log) = sample(&ten(), &demand);
    assert_eq!((opened(&log, "poison"), opened(&log, "red_zone")), (10, 0));
    assert_eq!(snapshot.caches[0].flags.get(Flag::Poison), Some(false));
    assert_eq!(snapshot.caches[0].flags.get(Flag::RedZone), None);
}

#[test]
fn call_sites_of_one_cache_are_asked_of_that_cache_only() {
    let (_, log) = sample(&ten(), &Demand::everything());
    assert_eq!(opened(&log, "alloc_traces"), 0, "each walks every object");
    let mut demand = Demand::names();
    demand.sites_of = Some("some".to_owned());
    let (_, log) = sample(&ten(), &demand);
    let traces: Vec<String> = log
        .borrow()
        .iter()
        .filter(|p| p.ends_with("_traces"))
        .cloned()
        .collect();
    assert_eq!(
        traces,
        [
            "sys/kernel/debug/slab/some/alloc_traces",
            "sys/kernel/debug/slab/some/free_traces"
        ]
    );
}

#[test]
fn pressure_and_free_blocks_are_read_when_asked_for() {
    for (memory, times) in [(false, 0), (true, 1)] {
        let mut demand = Demand::names();
        demand.memory = memory;
        let (_, log) = sample(&ten(), &demand);
        let read = |path: &str| log.borrow().iter().filter(|p| *p == path).count();
        assert_eq!(read("proc/pressure/memory"), times);
        assert_eq!(read("proc/buddyinfo"), times);
        assert_eq!(read("proc/config.gz"), 0, "build options do not change");
    }
}

#[test]
fn no_list_is_walked_when_slabinfo_has_the_answer() {
    let (snapshot, log) = sample(&ten(), &Demand::names().with(&LIST));
    assert_eq!(opened(&log, "objects"), 0);
    assert_eq!(opened(&log, "objects_partial"), 0);
    let some = named(&snapshot, "some").get(Quantity::Objects).unwrap();
    assert_eq!(
        (some.value, some.approx),
        (20_000 * 64 - 30 * 64 + 500, false)
    );
    // Over the kernel's own bound its figure is scaled from a part of the list.
    let busy = named(&snapshot, "busy").get(Quantity::Objects).unwrap();
    assert!(busy.approx);
    let full = named(&snapshot, "full");
    assert_eq!(
        value(full, Quantity::Objects),
        value(full, Quantity::TotalObjects)
    );
}

#[test]
fn a_lower_limit_marks_more_figures_as_estimates() {
    let mut demand = Demand::names().with(&LIST);
    demand.walk_limit = 10;
    let (snapshot, log) = sample(&ten(), &demand);
    assert_eq!(opened(&log, "objects"), 0);
    for (name, approx) in [("busy", true), ("some", true), ("full", false)] {
        let objects = named(&snapshot, name).get(Quantity::Objects).unwrap();
        assert_eq!(objects.approx, approx, "{name}");
    }
}

#[test]
fn exact_walks_any_list() {
    let mut demand = Demand::names().with(&LIST);
    demand.exact = true;
    let (snapshot, log) = sample(&ten(), &demand);
    assert!(log.borrow().iter().any(|p| p.ends_with("/busy/objects")));
    let busy = named(&snapshot, "busy");
    let objects = busy.get(Quantity::Objects).unwrap();
    assert_eq!(
        (objects.value, objects.approx),
        (20_000 * 64 - 12_000 * 64 + 100_000, false)
    );
    assert_eq!(busy.origin(Quantity::Objects), Some(Layer::Sysfs));
    // Nothing to walk, so nothing is asked.
    assert!(!log.borrow().iter().any(|p| p.ends_with("/full/objects")));
    let full = named(&snapshot, "full").get(Quantity::Objects).unwrap();
    assert_eq!((full.value, full.approx), (20_000 * 64, false));
}

#[test]
fn without_slabinfo_long_lists_are_left_alone() {
    let mut fake = ten();
    fake.rows.clear();
    let (snapshot, log) = sample(&fake, &Demand::names().with(&LIST));
    assert_eq!(snapshot.caches.len(), 10);
    assert!(!log.borrow().iter().any(|p| p.ends_with("/busy/objects")));
    assert!(log.borrow().iter().any(|p| p.ends_with("/some/objects")));
    assert_eq!(value(named(&snapshot, "busy"), Quantity::Objects), None);
    let said = snapshot
        .warnings
        .iter()
        .find(|w| w.code == WarningCode::NotInSource);
    assert!(
        said.unwrap().message.contains("busy"),
        "{:?}",
        snapshot.warnings
    );
    let full = named(&snapshot, "full");
    assert_eq!(value(full, Quantity::Objects), Some(20_000 * 64));
    assert_eq!(full.origin(Quantity::Objects), Some(Layer::Derived));
}

#[test]
fn one_attribute_that_fails_costs_one_warning_and_one_figure() {
    for errno in [Errno::NODEV, Errno::NOENT, Errno::ACCESS, Errno::IO] {
        let (mut source, _, faults) = live(&ten());
        faults
            .borrow_mut()
            .insert("sys/kernel/slab/some/align".into(), errno);
        let snapshot = source.sample(&Demand::everything()).unwrap();
        assert_eq!(snapshot.caches.len(), 10, "{errno}");
        let some = named(&snapshot, "some");
        assert_eq!(value(some, Quantity::Align), None, "{errno}");
        assert_eq!(value(some, Quantity::MinPartial), Some(5), "{errno}");
        let about: Vec<_> = snapshot.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(about.len(), 1, "{errno}: {about:?}");
        assert!(about[0].contains("some/align"), "{errno}: {about:?}");
    }
}

#[test]
fn directories_that_may_not_be_read_leave_slabinfo() {
    let (mut source, _, faults) = live(&ten());
    faults
        .borrow_mut()
        .insert("sys/kernel/slab".into(), Errno::ACCESS);
    let snapshot = source.sample(&Demand::everything()).unwrap();
    assert_eq!(snapshot.caches.len(), 10);
    let about: Vec<_> = snapshot.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(about.len(), 1, "{about:?}");
    assert_eq!(
        value(named(&snapshot, "some"), Quantity::Slabs),
        Some(20_000)
    );
}

#[test]
fn nothing_readable_is_an_error_that_says_why() {
    let (mut source, _, faults) = live(&ten());
    for path in ["sys/kernel/slab", "proc/slabinfo"] {
        faults.borrow_mut().insert(path.into(), Errno::ACCESS);
    }
    let error = source.sample(&Demand::everything()).unwrap_err();
    assert!(
        matches!(error, collectors::Error::Permission { .. }),
        "{error}"
    );
}

#[test]
fn a_cache_made_anew_under_the_same_name_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut fake = ten();
    fake.write(dir.path());
    let mut source = KernelSource::live(Box::new(DirTree::trusted(dir.path()).unwrap()));
    let before = source.sample(&Demand::everything()).unwrap();
    assert_eq!(
        value(named(&before, "some"), Quantity::ObjectSize),
        Some(56)
    );
    let other = Figures {
        size: 128,
        order: 0,
        nodes: vec![[20_000, 30, 500]],
    };
    fake.rows.pop();
    fake.cache("some", "some", &other);
    for (path, text) in &fake.files {
        std::fs::write(dir.path().join(path), text).unwrap();
    }
    std::fs::write(dir.path().join("proc/slabinfo"), fake.slabinfo()).unwrap();
    let after = source.sample(&Demand::everything()).unwrap();
    let some = named(&after, "some");
    assert_eq!(value(some, Quantity::SlabSize), Some(128));
    assert_eq!(value(some, Quantity::ObjectSize), Some(120));
}

#[test]
fn everything_is_read_of_the_cache_in_focus_and_of_no_other() {
    let mut demand = Demand::names().with(&LIST);
    demand.focus = Some("some".to_owned());
    let (snapshot, log) = sample(&ten(), &demand);
    assert_eq!((opened(&log, "align"), opened(&log, "min_partial")), (1, 1));
    assert_eq!(opened(&log, "objects_partial"), 1);
    assert!(value(named(&snapshot, "some"), Quantity::Align).is_some());
    assert_eq!(value(named(&snapshot, "full"), Quantity::Align), None);
    // A name that no cache has is no fault.
    demand.focus = Some("nobody".to_owned());
    let (snapshot, log) = sample(&ten(), &demand);
    assert_eq!(opened(&log, "align"), 0);
    assert_eq!(snapshot.caches.len(), 10);
}

#[test]
fn a_cache_that_comes_or_goes_is_seen_by_the_next_sample() {
    let dir = tempfile::tempdir().unwrap();
    let mut fake = ten();
    fake.write(dir.path());
    let mut source = KernelSource::live(Box::new(DirTree::trusted(dir.path()).unwrap()));
    let demand = Demand::names().with(&[Quantity::Align]);
    for _ in 0..2 {
        assert_eq!(source.sample(&demand).unwrap().caches.len(), 10);
    }
    let figures = Figures {
        size: 64,
        order: 0,
        nodes: vec![[9, 3, 20]],
    };
    fake.cache("fresh", "fresh", &figures);
    let fresh = dir.path().join("sys/kernel/slab/fresh");
    std::fs::create_dir(&fresh).unwrap();
    for (path, text) in fake.files.iter().filter(|(p, _)| p.contains("/fresh/")) {
        std::fs::write(dir.path().join(path), text).unwrap();
    }
    std::fs::write(dir.path().join("proc/slabinfo"), fake.slabinfo()).unwrap();
    let more = source.sample(&demand).unwrap();
    assert_eq!(more.caches.len(), 11);
    assert!(value(named(&more, "fresh"), Quantity::Align).is_some());
    fake.rows.pop();
    std::fs::remove_dir_all(&fresh).unwrap();
    std::fs::write(dir.path().join("proc/slabinfo"), fake.slabinfo()).unwrap();
    let fewer = source.sample(&demand).unwrap();
    assert_eq!(fewer.caches.len(), 10);
    assert!(fewer.named("fresh").next().is_none());
}
