//! What a reader of the remarks relies on.

use super::*;
use crate::analysis::diff::diff;
use crate::analysis::testing::{cache, snapshot, sysfs};
use crate::model::{Bytes, Flag, Quantity, Snapshot};
use proptest::prelude::*;
use std::time::Duration;

const LIMITS: Limits = Limits { bytes: 1 << 20 };

fn rules(list: &[Advice]) -> Vec<(Rule, Option<&str>)> {
    list.iter().map(|a| (a.rule, a.cache.as_deref())).collect()
}

/// A cache of 21 objects of 192 bytes in a page.
fn page_cache(name: &str, objects: u64, slabs: u64, reclaim: Option<bool>) -> Cache {
    let mut made = cache(
        name,
        &[
            (Quantity::ObjectSize, 192),
            (Quantity::SlabSize, 192),
            (Quantity::ObjsPerSlab, 21),
            (Quantity::Order, 0),
            (Quantity::Objects, objects),
            (Quantity::TotalObjects, slabs * 21),
            (Quantity::Slabs, slabs),
        ],
    );
    if let Some(reclaim) = reclaim {
        made.flags.put(Flag::ReclaimAccount, reclaim);
    }
    made
}

fn grown(before: Cache, after: Cache) -> Vec<Advice> {
    let (a, b) = (snapshot(vec![before]), snapshot(vec![after]));
    let diff = diff(&a, &b, Some(Duration::from_secs(1800)));
    of_growth(&b, &diff, LIMITS)
}

#[test]
fn a_tidy_cache_gets_no_remark() {
    // 10,000 full slabs each: 40 MB.
    let tidy = ["a", "b", "c", "d", "e"].map(|n| page_cache(n, 210_000, 10_000, Some(true)));
    assert_eq!(of_snapshot(&snapshot(tidy.into()), LIMITS), []);
}

#[test]
fn one_snapshot_never_speaks_of_growth() {
    let odd = snapshot(vec![
        page_cache("kmalloc-192", 734_506_368, 34_976_494, Some(false)),
        sysfs(100_000, 40_000, 99_000, 9_000),
    ]);
    let list = of_snapshot(&odd, LIMITS);
    assert!(!list.is_empty());
    for advice in list {
        assert!(advice.rule > Rule::GrowingHoles, "{advice:?}");
        assert!(!advice.says.contains("leak"), "{advice:?}");
        assert!(!advice.says.contains("grew"), "{advice:?}");
    }
}

#[test]
fn holes_are_told_with_how_sparse_the_lists_are() {
    // Of 10,000 slabs 9,000 are partial, with 4 of 32 objects each.
    let mut sparse = sysfs(10_000, 68_000, 9_000, 36_000);
    sparse.set_exact(Quantity::MinPartial, 5, crate::model::Layer::Sysfs);
    let list = of_snapshot(&snapshot(vec![sparse]), LIMITS);
    assert_eq!(
        rules(&list),
        [
            (Rule::Dominant, Some("x")),
            (Rule::Fragmentation, None),
            (Rule::Fragmentation, Some("x")),
        ]
    );
    let hole = list
        .iter()
        .find(|a| a.rule == Rule::Fragmentation && a.cache.is_some())
        .unwrap();
    // (320,000 - 68,000) slots of 128 bytes.
    assert_eq!(hole.bytes, Some(Approx::exact(252_000 * 128)));
    let text: Vec<_> = hole.evidence.iter().map(|e| e.text(Scale::Iec)).collect();
    assert!(
        text.contains(&"use_of_partial_slabs 12.5%".to_owned()),
        "{text:?}"
    );
}

#[test]
fn a_long_list_is_told_only_where_the_nodes_are_known() {
    // Of 10,000 slabs 9,000 are partial, and nearly full.
    let long = || {
        let made = sysfs(10_000, 310_000, 9_000, 278_000);
        snapshot(vec![
            made.with(crate::model::Layer::Sysfs, &[(Quantity::MinPartial, 5)]),
        ])
    };
    let told =
        |of: &Snapshot| rules(&of_snapshot(of, LIMITS)).contains(&(Rule::PartialList, Some("x")));
    assert!(
        !told(&long()),
        "each node keeps some, and how many nodes is not known"
    );
    let mut known = long();
    known.system.nodes = Some(2);
    assert!(told(&known));
}

#[test]
fn a_slot_larger_than_its_class_is_debugging() {
    // A grep of a slabinfo: no flags, and slots of 3072 bytes for kmalloc-1k.
    let debugged = cache(
        "kmalloc-1k",
        &[
            (Quantity::SlabSize, 3072),
            (Quantity::ObjsPerSlab, 10),
            (Quantity::PagesPerSlab, 8),
            (Quantity::TotalObjects, 670),
            (Quantity::Objects, 661),
            (Quantity::Slabs, 67),
        ],
    );
    let list = of_snapshot(&snapshot(vec![debugged]), LIMITS);
    let expected = [
        (Rule::Dominant, Some("kmalloc-1k")),
        (Rule::DebugSizes, None),
    ];
    assert_eq!(rules(&list), expected);
    assert_eq!(list[1].bytes, Some(Approx::estimate(670 * 2048)));
}

#[test]
fn a_large_cache_with_several_names_names_them_all() {
    let mut merged = page_cache("cred_jar", 210_000, 10_000, None);
    merged.aliases = Some(vec!["kmalloc-192".into(), "biovec".into()]);
    let list = of_snapshot(&snapshot(vec![merged]), LIMITS);
    let expected = [
        (Rule::Dominant, Some("cred_jar")),
        (Rule::MergedNames, Some("cred_jar")),
    ];
    assert_eq!(rules(&list), expected);
    let names = list[1].evidence[1].text(Scale::Iec);
    assert_eq!(names, "names cred_jar, kmalloc-192, biovec");
}

#[test]
fn slab_is_acquitted_where_it_is_small() {
    // A NAS of 1 GB that ran out of memory with 72 MB of slab.
    let mut small = snapshot(vec![page_cache("kernfs_node_cache", 10, 1, Some(false))]);
    small.system.meminfo.slab = Some(Bytes(72 << 20));
    small.system.meminfo.mem_total = Some(Bytes(988 << 20));
    let list = of_snapshot(&small, LIMITS);
    assert_eq!(rules(&list), [(Rule::Share, None)]);
    assert!(list[0].says.contains("elsewhere"), "{}", list[0].says);
}

#[test]
fn fallback_slabs_are_told() {
    let short = || {
        let figures = [(Quantity::TotalObjects, 209_000)];
        page_cache("x", 209_000, 10_000, None).with(crate::model::Layer::Sysfs, &figures)
    };
    let list = of_snapshot(&snapshot(vec![short()]), LIMITS);
    // 1,000 objects of 192 bytes less than full slabs would hold.
    assert_eq!(rules(&list), [(Rule::Dominant, Some("x"))]);
    let list = of_snapshot(&snapshot(vec![short()]), Limits { bytes: 192_000 });
    assert!(rules(&list).contains(&(Rule::OrderFallback, Some("x"))));
}

#[test]
fn growth_has_a_shape() {
    let before = || page_cache("x", 21_000, 1_000, None);
    let shape = |after: Cache| rules(&grown(before(), after)).first().map(|(r, _)| *r);
    let live = |reclaim| page_cache("x", 42_000, 2_000, reclaim);
    assert_eq!(shape(live(Some(true))), Some(Rule::CacheShaped));
    assert_eq!(shape(live(Some(false))), Some(Rule::LeakShaped));
    assert_eq!(shape(live(None)), Some(Rule::LeakShaped));
    let room = page_cache("x", 21_500, 2_000, Some(false));
    assert_eq!(shape(room), Some(Rule::GrowingHoles));
    let left = page_cache("x", 7_000, 990, Some(false));
    assert_eq!(shape(left), Some(Rule::GrowingHoles));
    // Freed with its memory, or grown by less than a megabyte.
    assert_eq!(shape(page_cache("x", 7_000, 400, Some(false))), None);
    assert_eq!(shape(page_cache("x", 23_100, 1_100, Some(false))), None);
}

#[test]
fn what_did_not_grow_is_no_growth_whatever_the_limit() {
    let same = || page_cache("x", 21_000, 1_000, Some(false));
    let gone = page_cache("x", 7_000, 1_000, Some(false));
    let all = |after: Cache| {
        let (a, b) = (snapshot(vec![same()]), snapshot(vec![after]));
        of_growth(&b, &diff(&a, &b, None), Limits { bytes: 0 })
    };
    assert_eq!(all(same()), []);
    assert_eq!(rules(&all(gone)), [(Rule::GrowingHoles, Some("x"))]);
}

#[test]
fn growth_says_how_fast() {
    let list = grown(
        page_cache("x", 21_000, 1_000, None),
        page_cache("x", 42_000, 2_000, None),
    );
    let text: Vec<_> = list[0]
        .evidence
        .iter()
        .map(|e| e.text(Scale::Iec))
        .collect();
    // 1,000 pages in half an hour.
    assert!(
        text.contains(&"memory_growth +7.81M/h".to_owned()),
        "{text:?}"
    );
    assert!(list[0].next.contains("cannot tell a leak"));
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let figures = proptest::collection::vec((0..Quantity::COUNT, any::<u64>()), 0..12);
    proptest::collection::vec(figures, 0..6).prop_map(|caches| {
        let made = caches.into_iter().map(|figures| {
            let figures: Vec<_> = figures
                .into_iter()
                .filter_map(|(i, v)| Some((*Quantity::ALL.get(i)?, v)))
                .collect();
            cache("kmalloc-8", &figures)
        });
        snapshot(made.collect())
    })
}

proptest! {
    #[test]
    fn no_figures_upset_the_rules(a in any_snapshot(), b in any_snapshot()) {
        let limits = Limits { bytes: 0 };
        for advice in of_snapshot(&a, limits) {
            prop_assert!(!advice.says.is_empty() && !advice.next.is_empty());
        }
        let growth = diff(&a, &b, None);
        for advice in of_growth(&b, &growth, limits) {
            prop_assert!(advice.rule <= Rule::GrowingHoles);
        }
    }
}
