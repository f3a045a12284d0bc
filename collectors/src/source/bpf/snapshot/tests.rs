//! What the programs tell in the running kernel, as root, and what is said of it.

use std::collections::BTreeSet;

use super::*;
use crate::model::Quantity;

#[test]
fn what_is_not_in_the_figures_is_told_each_on_its_own() {
    assert_eq!(Missing::default().told(), Vec::<String>::new());
    let none = Missing::default;
    let alone = [
        Missing { lost: 3, ..none() },
        Missing {
            unseen: 2,
            ..none()
        },
        Missing {
            partly: 1,
            ..none()
        },
        Missing {
            ended: true,
            ..none()
        },
        Missing {
            cut: true,
            ..none()
        },
    ];
    let each: Vec<String> = alone.iter().flat_map(Missing::told).collect();
    let all = Missing {
        lost: 3,
        unseen: 2,
        partly: 1,
        ended: true,
        cut: true,
    };
    assert_eq!(all.told(), each);
    assert_eq!(each.len(), alone.len());
}

#[test]
fn what_is_remembered_has_a_bound() {
    assert_eq!(hands(2), 1024);
    assert_eq!(hands(u32::MAX), MOST_HANDS);
}

/// The programs that walk the list, which newer kernels let us do too.
fn walking(from: impl FnOnce(u64) -> u64) -> Option<Snapshots> {
    let walking = Machine::look().and_then(|mut machine| {
        machine.slab_caches = from(slab_caches()?);
        Snapshots::walking(machine)
    });
    walking
        .inspect_err(|refusal| eprintln!("skipped: no BPF here: {refusal}"))
        .ok()
}

fn told(snapshots: &mut Snapshots) -> (Vec<Cache>, Vec<String>) {
    let mut warnings = Warnings::default();
    let caches = snapshots.caches(&Demand::everything(), &mut warnings);
    let said = warnings.iter().map(|w| w.message.clone()).collect();
    (caches.unwrap_or_default(), said)
}

fn names(caches: &[Cache]) -> BTreeSet<String> {
    caches.iter().map(|cache| cache.name.to_string()).collect()
}

#[test]
fn the_list_has_the_caches_of_the_iterator() {
    let (Some(mut list), Ok(mut caches)) = (walking(|at| at), Snapshots::open()) else {
        return;
    };
    // One that comes or goes meanwhile is not always there.
    let before = names(&told(&mut caches).0);
    let (walked, said) = told(&mut list);
    let after = names(&told(&mut caches).0);
    let always: BTreeSet<_> = before.intersection(&after).cloned().collect();
    assert!(always.len() > 50 && names(&walked).is_superset(&always));
    assert_eq!(said, Vec::<String>::new());
}

#[test]
fn a_walk_that_does_not_come_back_to_its_head_says_so() {
    // Not the head, so the list goes on behind it.
    let Some(mut list) = walking(|at| at.wrapping_add(8)) else {
        return;
    };
    let (_, said) = told(&mut list);
    let ended = Missing {
        ended: true,
        ..Missing::default()
    };
    let ended = ended.told();
    assert!(said.iter().any(|text| ended.contains(text)), "{said:?}");
}

/// What there is no budget for is marked or not known.
#[test]
fn without_a_budget_no_figure_is_taken_for_the_whole() {
    let Some(mut list) = walking(|at| at) else {
        return;
    };
    list.budget = 0;
    let (caches, _) = told(&mut list);
    let mut checked = 0;
    for cache in &caches {
        let slabs = cache.get(Quantity::Partial).map_or(0, |of| of.value);
        let inuse = cache.get(Quantity::ObjectsPartial).unwrap();
        // A node has one list; 64 slabs of each are looked at.
        let nodes = cache.nodes.len() as u64;
        if slabs > 64 * nodes {
            assert!(inuse.approx, "{}", cache.name);
            checked += 1;
        }
        if cache.get(Quantity::CpuSlabs).is_none() {
            assert_eq!(cache.get(Quantity::Objects), None, "{}", cache.name);
        }
    }
    assert!(checked > 0, "no cache has a long list");
}
