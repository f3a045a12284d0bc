//! The live path on this host: that its figures agree with its other files.
//!
//! The tests need root; without it they say that they were skipped.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use std::collections::BTreeMap;

use collectors::model::{Cache, Layer, Quantity};
use collectors::parse::slabinfo;
use collectors::source::kernel::KernelSource;
use collectors::source::tree::DirTree;
use collectors::source::{Demand, Source as _};
use support::counting::{Counting, attributes, opened};

fn host() -> Option<DirTree> {
    if std::fs::read("/proc/slabinfo").is_err()
        || !std::path::Path::new("/sys/kernel/slab").exists()
    {
        eprintln!("skipped: /proc/slabinfo or /sys/kernel/slab is not readable here");
        return None;
    }
    Some(DirTree::trusted("/").unwrap())
}

fn value(cache: &Cache, q: Quantity) -> Option<u64> {
    cache.get(q).map(|f| f.value)
}

/// Slabs of each cache of /proc/slabinfo, by name.
fn rows() -> BTreeMap<String, (u64, u64)> {
    let table = slabinfo::parse(&std::fs::read("/proc/slabinfo").unwrap());
    let mut map = BTreeMap::new();
    for cache in &table.parsed.caches {
        let slabs = value(cache, Quantity::Slabs).unwrap();
        map.insert(
            cache.name.to_string(),
            (slabs, cache.pages_per_slab().unwrap()),
        );
    }
    map
}

/// Slabs of each cache of sysfs, read here without the library.
fn directories() -> BTreeMap<String, (u64, u64)> {
    let base = std::path::Path::new("/sys/kernel/slab");
    let mut map = BTreeMap::new();
    for entry in std::fs::read_dir(base).unwrap().flatten() {
        if entry.file_type().unwrap().is_symlink() {
            continue;
        }
        let first = |name: &str| -> Option<u64> {
            let text = std::fs::read_to_string(entry.path().join(name)).ok()?;
            text.split_whitespace().next()?.parse().ok()
        };
        if let (Some(slabs), Some(order)) = (first("slabs"), first("order")) {
            map.insert(entry.file_name().display().to_string(), (slabs, 1 << order));
        }
    }
    map
}

#[test]
fn this_hosts_pages_are_the_same_in_sysfs_and_slabinfo() {
    let Some(tree) = host() else { return };
    let mut demand = Demand::names().with(&[Quantity::Slabs, Quantity::Order]);
    // Read from sysfs although /proc/slabinfo has the figures too.
    demand.exact = true;
    let mut source = KernelSource::live(Box::new(tree));
    let mut last = String::new();
    for _ in 0..20 {
        let before = rows();
        let snapshot = source.sample(&demand).unwrap();
        let (after, own) = (rows(), directories());
        let still = |c: &&Cache| {
            let name = &*c.name;
            before.contains_key(name) && before.get(name) == after.get(name)
        };
        let (mut ours, mut theirs, mut naive, mut count) = (0, 0, 0, 0);
        for cache in snapshot.caches.iter().filter(still) {
            assert_eq!(
                cache.origin(Quantity::Slabs),
                Some(Layer::Sysfs),
                "{}",
                cache.name
            );
            ours +=
                value(cache, Quantity::Slabs).unwrap() << value(cache, Quantity::Order).unwrap();
            let (slabs, pages) = after[&*cache.name];
            theirs += slabs * pages;
            let (slabs, pages) = own[cache.sysfs_id.as_deref().unwrap()];
            naive += slabs * pages;
            count += 1;
        }
        if ours == theirs && naive == ours && count * 10 > snapshot.caches.len() * 8 {
            return;
        }
        last = format!("{ours} {theirs} {naive} pages of {count} caches");
    }
    panic!("never alike in 20 tries: {last}");
}

#[test]
fn this_hosts_caches_with_no_partial_slab_are_full() {
    let Some(tree) = host() else { return };
    let snapshot = KernelSource::live(Box::new(tree))
        .sample(&Demand::everything())
        .unwrap();
    let mut seen = 0;
    for cache in &snapshot.caches {
        if value(cache, Quantity::Partial) == Some(0) {
            let (objects, total) = (
                value(cache, Quantity::Objects),
                value(cache, Quantity::TotalObjects),
            );
            // Of one row of /proc/slabinfo; `partial` is read a moment later.
            if cache.origin(Quantity::Objects) == cache.origin(Quantity::TotalObjects)
                && objects == total
            {
                seen += 1;
            }
        }
    }
    let empty = snapshot
        .caches
        .iter()
        .filter(|c| value(c, Quantity::Partial) == Some(0))
        .count();
    assert!(seen * 10 >= empty * 9, "{seen} of {empty}");
}

#[test]
fn a_second_sample_of_this_host_reads_no_fixed_attribute_again() {
    let Some(tree) = host() else { return };
    let (tree, log, _) = Counting::new(Box::new(tree));
    let mut source = KernelSource::live(Box::new(tree));
    let first = source.sample(&Demand::everything()).unwrap();
    let opens = attributes(&log);
    assert!(opened(&log, "object_size") >= first.caches.len());
    log.borrow_mut().clear();
    let second = source.sample(&Demand::everything()).unwrap();
    assert!(
        attributes(&log) * 2 < opens,
        "{} then {}",
        opens,
        attributes(&log)
    );
    assert_eq!(opened(&log, "object_size"), 0);
    assert_eq!(opened(&log, "ctor"), 0);
    for cache in &first.caches {
        let Some(id) = cache.sysfs_id.as_deref() else {
            continue;
        };
        let Some(again) = second.named(id).next() else {
            continue;
        };
        for q in [
            Quantity::ObjectSize,
            Quantity::SlabSize,
            Quantity::Align,
            Quantity::Order,
        ] {
            assert_eq!(value(cache, q), value(again, q), "{id} {q:?}");
        }
        assert_eq!(
            (cache.flags, &cache.ctor),
            (again.flags, &again.ctor),
            "{id}"
        );
    }
}

#[test]
fn the_default_columns_of_this_host_cost_few_files() {
    let Some(tree) = host() else { return };
    let (tree, log, _) = Counting::new(Box::new(tree));
    let demand = Demand::names().with(&[
        Quantity::ObjectSize,
        Quantity::Slabs,
        Quantity::Objects,
        Quantity::TotalObjects,
        Quantity::Partial,
    ]);
    let snapshot = KernelSource::live(Box::new(tree)).sample(&demand).unwrap();
    // object_size and partial; /proc/slabinfo gives the rest. The era is told
    // from a few files of one cache.
    assert!(
        attributes(&log) <= 2 * snapshot.caches.len() + 8,
        "{}",
        attributes(&log)
    );
    assert_eq!((opened(&log, "slabs"), opened(&log, "align")), (0, 0));
}
