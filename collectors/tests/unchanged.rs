//! A live source that may take what did not move from an earlier sample.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::time::Duration;

use collectors::model::{Quantity, Snapshot};
use collectors::source::kernel::KernelSource;
use collectors::source::tree::DirTree;
use collectors::source::{Demand, Source};
use support::counting::{Counting, Log, attributes, opened};
use support::tree::{Fake, Figures, Shape};

/// A machine on disk, whose files can be changed between samples.
struct Machine {
    dir: tempfile::TempDir,
    fake: Fake,
    source: KernelSource,
    log: Log,
}

impl Machine {
    fn new() -> Self {
        let mut fake = Fake::new(Shape {
            caches: 4,
            ..Shape::default()
        });
        for (name, partial) in [("busy", 12_000), ("calm", 30), ("other", 30)] {
            let figures = Figures {
                size: 64,
                order: 0,
                nodes: vec![[20_000, partial, 500]],
            };
            fake.cache(name, name, &figures);
        }
        let dir = tempfile::tempdir().unwrap();
        fake.write(dir.path());
        let tree = DirTree::trusted(dir.path()).unwrap();
        let (tree, log, _) = Counting::new(Box::new(tree));
        let source = KernelSource::live(Box::new(tree));
        Self {
            dir,
            fake,
            source,
            log,
        }
    }

    /// Writes an attribute, without a word in /proc/slabinfo.
    fn write(&self, file: &str, text: &str) {
        let path = self.dir.path().join("sys/kernel/slab").join(file);
        std::fs::write(path, text).unwrap();
    }

    /// The next sample, and how many attribute files it read.
    fn sample(&mut self, demand: &Demand) -> (Snapshot, usize) {
        self.log.borrow_mut().clear();
        let snapshot = self.source.sample(demand).unwrap();
        let read = attributes(&self.log);
        (snapshot, read)
    }
}

fn list() -> Demand {
    let mut demand = Demand::names().with(&[
        Quantity::Slabs,
        Quantity::Objects,
        Quantity::Partial,
        Quantity::CpuSlabs,
    ]);
    demand.unchanged_for = Duration::from_secs(3600);
    demand
}

fn partial(snapshot: &Snapshot, name: &str) -> u64 {
    let cache = snapshot.named(name).next().unwrap();
    cache.partial().unwrap().value.get()
}

#[test]
fn a_cache_whose_row_is_the_same_is_not_read_again() {
    let mut machine = Machine::new();
    let (first, all) = machine.sample(&list());
    assert!(first.origin.carried.is_none() && all >= 14);
    let (second, again) = machine.sample(&list());
    // A long list's objects are estimates that stay the same: it is read with every sample.
    assert_eq!(opened(&machine.log, "cpu_slabs"), 1);
    assert_eq!(again, 2);
    let carried = second.origin.carried.unwrap();
    assert_eq!(
        (carried.caches, carried.at_most),
        (6, Duration::from_secs(3600))
    );
    let same = |snapshot: &Snapshot| {
        let mut caches = snapshot.caches.clone();
        caches.sort_by(|a, b| a.name.cmp(&b.name));
        caches
    };
    assert_eq!(same(&first), same(&second));
}

#[test]
fn a_row_that_moves_has_its_lists_read() {
    let mut machine = Machine::new();
    machine.sample(&list());
    machine.write("calm/partial", "31 N0=31\n");
    machine.write("other/partial", "31 N0=31\n");
    let text = machine.fake.slabinfo();
    let row = text.lines().find(|l| l.starts_with("calm ")).unwrap();
    let mut words: Vec<&str> = row.split_whitespace().collect();
    let fewer = (words[1].parse::<u64>().unwrap() - 1).to_string();
    words[1] = &fewer;
    let moved = text.replace(row, &words.join(" "));
    std::fs::write(machine.dir.path().join("proc/slabinfo"), moved).unwrap();
    let (now, _) = machine.sample(&list());
    assert_eq!(partial(&now, "calm"), 31);
    // Within the time that was allowed.
    assert_eq!(partial(&now, "other"), 30);
    let mut at_once = list();
    at_once.unchanged_for = Duration::ZERO;
    let (now, _) = machine.sample(&at_once);
    assert_eq!(partial(&now, "other"), 31);
    assert!(now.origin.carried.is_none());
}

#[test]
fn nothing_is_older_than_was_allowed() {
    let mut machine = Machine::new();
    let mut demand = list();
    demand.unchanged_for = Duration::from_millis(50);
    machine.sample(&demand);
    machine.write("calm/partial", "31 N0=31\n");
    std::thread::sleep(Duration::from_millis(60));
    let (now, _) = machine.sample(&demand);
    assert_eq!(partial(&now, "calm"), 31);
}

#[test]
fn another_demand_the_cache_in_focus_and_counters_are_read_anew() {
    let mut machine = Machine::new();
    machine.sample(&list());
    machine.write("calm/partial", "31 N0=31\n");
    let mut focus = list();
    focus.focus = Some("calm".to_owned());
    let (now, _) = machine.sample(&focus);
    assert_eq!((partial(&now, "calm"), partial(&now, "other")), (31, 30));
    assert_eq!(now.origin.carried.unwrap().caches, 5);

    machine.write("other/partial", "32 N0=32\n");
    let more = list().with(&[Quantity::MinPartial]);
    let (now, _) = machine.sample(&more);
    assert_eq!(partial(&now, "other"), 32);
    assert!(now.origin.carried.is_none());

    let mut counters = list();
    counters.counters = true;
    machine.sample(&counters);
    let (now, _) = machine.sample(&counters);
    assert!(now.origin.carried.is_none());
}

#[test]
fn a_cache_with_a_broken_attribute_is_told_of_with_every_sample() {
    let mut machine = Machine::new();
    machine.write("calm/partial", "nonsense\n");
    for _ in 0..3 {
        let (now, _) = machine.sample(&list());
        let told = now
            .warnings
            .iter()
            .filter(|w| w.to_string().contains("calm/partial"));
        assert_eq!(told.count(), 1);
    }
}
