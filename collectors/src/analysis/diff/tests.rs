//! What a reader of a comparison relies on.

use super::*;
use crate::analysis::testing::{self, snapshot};
use crate::model::{Counter, CounterId, CpuId, Era, Layer, Warning, WarningCode};
use proptest::prelude::*;

/// Objects in use and slabs of 21 slots of 192 bytes.
fn cache(name: &str, objects: u64, slabs: u64) -> Cache {
    let figures = [
        (Quantity::SlabSize, 192),
        (Quantity::ObjectSize, 192),
        (Quantity::ObjsPerSlab, 21),
        (Quantity::Order, 0),
        (Quantity::Objects, objects),
        (Quantity::TotalObjects, slabs * 21),
        (Quantity::Slabs, slabs),
    ];
    testing::cache(name, &figures)
}

fn names(diff: &Diff) -> Vec<&str> {
    diff.rows.iter().map(|r| &*r.name).collect()
}

fn value<T: Copy>(figure: Option<Approx<T>>) -> Option<T> {
    figure.map(|f| f.value)
}

#[test]
fn deltas_are_signed_and_the_largest_memory_change_comes_first() {
    let a = snapshot(vec![cache("filp", 21, 1), cache("dentry", 4200, 200)]);
    let b = snapshot(vec![cache("dentry", 2100, 100), cache("filp", 63, 3)]);
    let d = diff(&a, &b, Some(Duration::from_secs(1800)));
    assert_eq!(names(&d), ["dentry", "filp"]);
    let memory = d.rows[0].changes.memory;
    assert_eq!(memory.delta, Some(Approx::exact(-409_600)));
    assert_eq!(memory.per_hour, Some(Approx::exact(-819_200.0)));
    assert_eq!(d.rows[1].changes.objects.delta, Some(Approx::exact(42)));
    assert_eq!(d.totals.slabs.delta, Some(Approx::exact(-98)));
    assert!(d.warnings.is_empty());
}

#[test]
fn a_figure_one_side_lacks_has_no_delta() {
    let mut before = cache("dentry", 21, 1);
    before.set_exact(Quantity::Partial, 1, Layer::Sysfs);
    let d = diff(
        &snapshot(vec![before]),
        &snapshot(vec![cache("dentry", 21, 1)]),
        None,
    );
    let partial = d.rows[0].changes.partial;
    assert_eq!((value(partial.before), partial.delta), (Some(1), None));
    assert_eq!(d.rows[0].changes.memory.per_hour, None, "no time is known");
}

#[test]
fn caches_that_come_and_go_count_in_full() {
    let a = snapshot(vec![cache("old", 21, 1)]);
    let b = snapshot(vec![cache("new", 42, 2)]);
    let d = diff(&a, &b, None);
    assert_eq!(names(&d), ["new", "old"]);
    assert_eq!(d.rows[0].presence, Presence::Appeared);
    assert_eq!(d.rows[0].changes.memory.before, None);
    assert_eq!(d.rows[0].changes.memory.delta, Some(Approx::exact(8192)));
    assert_eq!(d.rows[1].presence, Presence::Vanished);
    assert_eq!(d.rows[1].changes.objects.delta, Some(Approx::exact(-21)));
}

#[test]
fn what_is_missing_in_a_partial_list_is_marked() {
    let mut a = snapshot(Vec::new());
    a.warnings
        .push(Warning::new(WarningCode::Incomplete, "a grep"));
    let d = diff(&a, &snapshot(vec![cache("new", 42, 2)]), None);
    assert_eq!(d.rows[0].changes.memory.delta, Some(Approx::estimate(8192)));
    assert!(d.warnings.has(WarningCode::Note));
}

#[test]
fn one_name_on_several_caches_is_paired_and_told() {
    // Two network namespaces, one of which went away.
    let a = snapshot(vec![
        cache("nf_conntrack", 42, 2),
        cache("nf_conntrack", 21, 1),
    ]);
    let b = snapshot(vec![cache("nf_conntrack", 63, 3)]);
    let d = diff(&a, &b, None);
    let presence: Vec<_> = d.rows.iter().map(|r| (r.before, r.presence)).collect();
    assert_eq!(
        presence,
        [(Some(0), Presence::Both), (Some(1), Presence::Vanished)]
    );
    assert!(d.warnings.has(WarningCode::DuplicateName));
}

#[test]
fn a_merged_cache_under_another_name_says_so() {
    let mut old = cache("Acpi-State", 21, 1);
    old.aliases = Some(vec!["Acpi-ParseExt".into()]);
    let d = diff(
        &snapshot(vec![old]),
        &snapshot(vec![cache("Acpi-ParseExt", 42, 2)]),
        None,
    );
    assert_eq!(d.rows.len(), 1);
    assert_eq!(d.rows[0].renamed_from.as_deref(), Some("Acpi-State"));
}

fn counted(value: u32) -> Cache {
    let mut cache = cache("dentry", 21, 1);
    cache.counters = Some(Box::new(Counters(vec![Counter {
        id: CounterId::AllocFastpath,
        total: u64::from(value),
        cpus: vec![(CpuId(0), value)],
    }])));
    cache
}

#[test]
fn counters_are_compared_within_one_era_only() {
    let mut a = snapshot(vec![counted(10)]);
    let mut b = snapshot(vec![counted(25)]);
    a.system.era = Era::Mixed;
    b.system.era = Era::Mixed;
    let d = diff(&a, &b, None);
    assert_eq!(d.rows[0].counters[0].delta, Some(Approx::exact(15)));
    b.system.era = Era::Sheaves;
    let d = diff(&a, &b, None);
    assert!(d.rows[0].counters.is_empty());
    let warning = d.warnings.iter().next().unwrap();
    assert!(warning.message.contains("mixed, then sheaves"), "{warning}");
    b.system.era = Era::Unknown;
    assert!(!diff(&a, &b, None).warnings.is_empty());
}

#[test]
fn other_sizes_machines_and_pages_are_told() {
    let mut bigger = cache("dentry", 21, 1);
    bigger.set_exact(Quantity::SlabSize, 528, Layer::Sysfs);
    let mut a = snapshot(vec![cache("dentry", 21, 1)]);
    let mut b = snapshot(vec![bigger]);
    a.system.hostname = Some("one".into());
    b.system.hostname = Some("two".into());
    b.system.page_size = 65_536;
    let messages: Vec<_> = diff(&a, &b, None)
        .warnings
        .iter()
        .map(|w| w.message.clone())
        .collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[0].starts_with("page sizes differ (4096 and 65536"));
    assert!(messages[1].contains("one and two"));
    assert_eq!(messages[2], "dentry: slab_size went from 192 to 528");
}

#[test]
fn the_times_of_the_snapshots_give_the_elapsed_time() {
    let mut a = snapshot(vec![cache("dentry", 21, 1)]);
    let mut b = snapshot(vec![cache("dentry", 42, 2)]);
    a.origin.taken_at = Some("2024-03-24T10:00:00Z".parse().unwrap());
    b.origin.taken_at = Some("2024-03-24T12:00:00Z".parse().unwrap());
    let d = diff(&a, &b, None);
    assert_eq!(d.elapsed, Some(Duration::from_secs(7200)));
    assert_eq!(value(d.rows[0].changes.memory.per_hour), Some(2048.0));
    let back = diff(&b, &a, None);
    assert_eq!(back.elapsed, None);
    assert!(back.warnings.iter().any(|w| w.message.contains("older")));
}

#[test]
fn only_growth_beyond_every_limit_exceeds() {
    let a = snapshot(vec![cache("grew", 210, 10), cache("shrank", 210, 10)]);
    let b = snapshot(vec![
        cache("grew", 252, 12),
        cache("shrank", 0, 0),
        cache("new", 1, 1),
    ]);
    let d = diff(&a, &b, None);
    let over = |name: &str, bytes, percent, objects| {
        let row = d.rows.iter().find(|r| &*r.name == name).unwrap();
        exceeds(
            row,
            &Threshold {
                bytes,
                percent,
                objects,
            },
        )
    };
    assert!(over("grew", Some(8191), None, None));
    assert!(!over("grew", Some(8192), None, None));
    assert!(over("grew", None, Some(19.9), None));
    assert!(!over("grew", None, Some(20.0), None));
    assert!(over("grew", Some(1), Some(1.0), Some(41)));
    assert!(!over("grew", Some(1), Some(1.0), Some(42)));
    assert!(!over("shrank", Some(0), None, None));
    assert!(over("new", None, Some(1e9), None));
    assert!(!over("grew", None, None, None));
}

proptest! {
    #[test]
    fn every_cache_of_both_sides_is_in_one_row(
        a in proptest::collection::vec((0u8..5, 0u8..3), 0..12),
        b in proptest::collection::vec((0u8..5, 0u8..3), 0..12),
    ) {
        let side = |list: &[(u8, u8)]| {
            let caches = list.iter().map(|(name, id)| {
                let mut c = cache(&format!("c{name}"), u64::from(*id), u64::from(*name));
                c.sysfs_id = (*id > 0).then(|| format!(":{id}").into());
                c.aliases = Some(vec![format!("c{id}").into()]);
                c
            });
            snapshot(caches.collect())
        };
        let (a, b) = (side(&a), side(&b));
        let d = diff(&a, &b, None);
        let mut seen: Vec<_> = d.rows.iter().filter_map(|r| r.before).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..a.caches.len()).collect::<Vec<_>>());
        let mut seen: Vec<_> = d.rows.iter().filter_map(|r| r.after).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..b.caches.len()).collect::<Vec<_>>());
        // The rows add up to the totals.
        let sum: i128 = d.rows.iter().filter_map(|r| value(r.changes.memory.delta)).sum();
        prop_assert_eq!(Some(sum), value(d.totals.memory.delta));
    }

    #[test]
    fn the_same_snapshot_has_no_difference(list in proptest::collection::vec((0u8..3, 0u64..9), 0..12)) {
        let caches = list.iter().map(|(name, n)| cache(&format!("c{name}"), *n, *n)).collect();
        let s = snapshot(caches);
        for row in diff(&s, &s, None).rows {
            prop_assert_eq!(row.presence, Presence::Both);
            prop_assert_eq!(value(row.changes.memory.delta), Some(0));
        }
    }
}
