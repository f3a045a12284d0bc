//! What a reader of one snapshot is warned of.

use super::*;
use crate::analysis::testing::{cache, snapshot};
use crate::model::{Approx, CacheId, Layer};
use proptest::prelude::*;

/// A row of /proc/slabinfo: total, slot, objects and pages per slab, slabs.
fn row(name: &str, figures: [u64; 5]) -> Cache {
    let keys = [
        Quantity::TotalObjects,
        Quantity::SlabSize,
        Quantity::ObjsPerSlab,
        Quantity::PagesPerSlab,
        Quantity::Slabs,
    ];
    let figures: Vec<_> = keys.into_iter().zip(figures).collect();
    cache(name, &figures)
}

fn messages(caches: Vec<Cache>, code: WarningCode) -> Vec<String> {
    check(&snapshot(caches))
        .iter()
        .filter(|w| w.code == code)
        .map(|w| w.message.clone())
        .collect()
}

#[test]
fn races_name_the_cache_and_both_figures() {
    let torn = cache(
        "dentry",
        &[
            (Quantity::Objects, 500),
            (Quantity::TotalObjects, 420),
            (Quantity::Slabs, 20),
            (Quantity::CpuSlabs, 22),
            (Quantity::Partial, 3),
        ],
    );
    assert_eq!(
        messages(vec![torn], WarningCode::Race),
        ["dentry: objects 500 > total_objects 420; cpu_slabs 22 > slabs 20: not of one moment"]
    );
}

#[test]
fn slabs_cannot_be_partial_and_in_a_cpu_at_once() {
    let figures = [
        (Quantity::Slabs, 10),
        (Quantity::Partial, 6),
        (Quantity::CpuSlabs, 5),
    ];
    let found = messages(vec![cache("x", &figures)], WarningCode::Race);
    assert!(found[0].contains("partial 6 + cpu_slabs 5 > slabs 10"));
}

#[test]
fn parked_objects_are_in_use_on_their_slabs() {
    let figures = [(Quantity::ObjectsPartial, 647), (Quantity::Objects, 610)];
    let mut seen = figures.to_vec();
    seen.push((Quantity::Parked, 40));
    assert_eq!(
        messages(vec![cache("x", &figures)], WarningCode::Race).len(),
        1
    );
    assert!(messages(vec![cache("x", &seen)], WarningCode::Race).is_empty());
}

#[test]
fn sound_figures_and_estimates_are_no_race() {
    // proc_inode_cache of a 4.1 ARM router.
    let sound = cache(
        "proc_inode_cache",
        &[
            (Quantity::Slabs, 99),
            (Quantity::ObjsPerSlab, 23),
            (Quantity::TotalObjects, 2277),
            (Quantity::Objects, 1970),
            (Quantity::ObjectsPartial, 153),
            (Quantity::Partial, 20),
            (Quantity::CpuSlabs, 22),
        ],
    );
    let mut estimate = cache("x", &[(Quantity::TotalObjects, 100)]);
    estimate.set(Quantity::Objects, Approx::estimate(101), Layer::Slabtop);
    assert!(check(&snapshot(vec![sound, estimate])).is_empty());
}

#[test]
fn fallback_slabs_are_counted_and_the_excess_is_told() {
    // slabinfo of an OpenStack host with a 5.4 kernel.
    let rows = vec![
        row("ext4_inode_cache", [171_921, 1096, 29, 8, 5931]),
        row("inode_cache", [115_277, 608, 13, 2, 8868]),
        row("task_struct", [3_666, 6080, 5, 8, 734]),
        row("radix_tree_node", [88_116, 584, 14, 2, 6298]),
        row("kmalloc-64", [64 * 7, 64, 64, 1, 7]),
    ];
    let slabs: Vec<_> = rows
        .iter()
        .filter_map(|r| FallbackSlabs::of(r, 4096))
        .map(|f| (f.slabs, f.order))
        .collect();
    assert_eq!(slabs, [(3, 0), (1, 0), (1, 1), (8, 0)]);
    let found = messages(rows, WarningCode::FallbackOrder);
    assert_eq!(found.len(), 4);
    assert_eq!(
        found[0],
        "ext4_inode_cache: room for 171921 objects, 78 fewer than 5931 slabs of 29: 3 slabs are \
         of fallback order 0, memory is an upper bound, 84.0K too high"
    );
}

#[test]
fn a_deficit_that_no_fallback_explains_is_still_told() {
    let odd = row("x", [171_920, 1096, 29, 8, 5931]);
    assert_eq!(FallbackSlabs::of(&odd, 4096), None);
    let found = messages(vec![odd], WarningCode::FallbackOrder);
    assert!(found[0].ends_with("memory is an upper bound"), "{found:?}");
}

#[test]
fn many_findings_are_summed_up() {
    let rows = (0..25)
        .map(|i| row(&format!("c{i:02}"), [171_921, 1096, 29, 8, 5931]))
        .collect();
    let found = messages(rows, WarningCode::FallbackOrder);
    assert_eq!(found.len(), 21);
    assert!(found[20].starts_with("5 more caches"), "{}", found[20]);
}

#[test]
fn repeated_names_are_told_once_and_per_cgroup() {
    let mut other = cache("dm_bio", &[]);
    other.cgroup = Some("/web".into());
    let caches = vec![
        cache("dm_bio", &[]),
        other,
        cache("a", &[]),
        cache("dm_bio", &[]),
    ];
    assert_eq!(
        messages(caches, WarningCode::DuplicateName),
        ["2 caches are named dm_bio; they are kept apart"]
    );
}

#[test]
fn debugging_is_told_from_kmalloc_slots_alone() {
    // A laptop with slub_debug: kmalloc-8 has 344-byte slots.
    let rows = vec![
        row("kmalloc-1k", [2420, 3072, 10, 8, 242]),
        row("kmalloc-8", [7705, 344, 23, 2, 335]),
        row("dentry", [169_074, 528, 31, 4, 5454]),
    ];
    let found = messages(rows, WarningCode::Note);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with(
            "slab debugging is on: the 344 bytes of a kmalloc-8 object include 336 bytes of metadata"
        ),
        "{found:?}"
    );
    // A Raspberry Pi where only kmalloc-1k was copied.
    let found = messages(
        vec![row("kmalloc-1k", [670, 3072, 10, 8, 67])],
        WarningCode::Note,
    );
    assert!(found[0].contains("include 2048 bytes"), "{found:?}");
}

#[test]
fn alignment_is_not_debugging() {
    // SLAB aligns reclaimable classes to cache lines.
    let rows = vec![
        row("kmalloc-rcl-96", [32, 128, 32, 1, 1]),
        row("kmalloc-192", [21, 192, 21, 1, 1]),
        row("kmalloc-1024", [32, 1024, 32, 8, 1]),
        row("biovec-64", [30, 1088, 30, 8, 1]),
    ];
    assert!(check(&snapshot(rows)).is_empty());
}

#[test]
fn flags_tell_which_debugging_is_on() {
    let mut caches = vec![
        cache(
            "kmalloc-64",
            &[(Quantity::ObjectSize, 64), (Quantity::SlabSize, 512)],
        ),
        cache("quiet", &[]),
    ];
    caches[0].flags.put(Flag::RedZone, true);
    caches[0].flags.put(Flag::StoreUser, true);
    caches[0].flags.put(Flag::Poison, false);
    assert_eq!(
        messages(caches.clone(), WarningCode::Note),
        [
            "slab debugging is on for 1 of 2 caches (red_zone, store_user): the 512 bytes of a \
          kmalloc-64 object include 448 bytes of metadata and alignment"
        ]
    );
    caches[0].flags.put(Flag::RedZone, false);
    caches[0].flags.put(Flag::StoreUser, false);
    let found = messages(caches, WarningCode::Note);
    assert!(found[0].contains("KASAN"), "{found:?}");
}

proptest! {
    #[test]
    fn no_figures_break_the_check(
        values in proptest::collection::vec(any::<(u8, u64)>(), 0..24),
        page_size in prop_oneof![Just(0), Just(4096), any::<u64>()],
    ) {
        let mut odd = Cache::new(CacheId(0), "kmalloc-8");
        for (q, v) in values {
            odd.set_exact(Quantity::ALL[q as usize % Quantity::COUNT], v, Layer::Sysfs);
        }
        let mut s = snapshot(vec![odd]);
        s.system.page_size = page_size;
        let _ = check(&s);
    }
}
