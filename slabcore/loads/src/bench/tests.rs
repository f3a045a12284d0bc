use super::*;

#[test]
fn every_workload_runs_and_nothing_is_wrong() {
    for workload in WORKLOADS {
        let case = workload.cases[0];
        for name in ["hybrid", "malloc"] {
            let outcome = workload.run(name, case, 2).unwrap();
            assert_eq!(outcome.wrong, None, "{} on {name}", workload.name);
            assert!(!outcome.figures.is_empty());
            for figure in &outcome.figures {
                let sound = figure.value.is_finite() && figure.value >= 0.0;
                assert!(sound, "{} on {name}: {figure:?}", workload.name);
            }
            assert_eq!(outcome.counters.is_some(), name != "malloc");
        }
    }
    assert!(WORKLOADS[0].run("nobody", 8, 1).is_none());
}

#[test]
fn the_engine_counts_what_the_workload_did() {
    let kmalloc = Workload::named("kmalloc").unwrap();
    let counters = kmalloc.run("hybrid", 64, 1).unwrap().counters.unwrap();
    // Eight batches of 10,000, and eight times 100,000 pairs.
    assert_eq!(counters.allocs(), 8 * 10_000 + 8 * 100_000);
    assert_eq!(counters.frees(), counters.allocs());
    let hackbench = Workload::named("hackbench").unwrap();
    let counters = hackbench.run("sheaves", 1, 1).unwrap().counters.unwrap();
    assert_eq!(counters.allocs(), 20 * 20 * 50);
    assert_eq!(counters.live(), 0);
}

#[test]
fn one_thread_has_nobody_to_free_for_it() {
    let workload = Workload::named("concurrent").unwrap();
    let outcome = workload.run("hybrid", 64, 1).unwrap();
    let names: Vec<_> = outcome.figures.iter().map(|f| f.name).collect();
    assert_eq!(names, ["alloc", "free", "pair"]);
}

/// Senders and receivers count each their own: a buffer for each message on both sides.
#[test]
fn processes_count_every_message_on_both_sides() {
    let workload = Workload::named("hackbench-processes").unwrap();
    let outcome = workload.run("classic/min-objects=16", 1, 1).unwrap();
    assert_eq!(outcome.wrong, None);
    let counters = outcome.counters.unwrap();
    assert_eq!(counters.allocs(), 2 * 20 * 20 * 50);
    assert_eq!(counters.live(), 0);
    // Nobody else frees what a process allocated.
    assert_eq!(counters.get(slabcore::stats::Stat::RemoteFree), 0);
    assert_eq!(counters.get(slabcore::stats::Stat::ListLockContended), 0);
}

#[test]
fn switches_reach_the_caches_of_a_workload() {
    let workload = Workload::named("hackbench").unwrap();
    let made = |name: &str| {
        let counters = workload.run(name, 1, 1).unwrap().counters.unwrap();
        counters.get(slabcore::stats::Stat::AllocSlab)
    };
    // A slab of order 0 has 8 objects, one of order 3 has 64.
    let (small, large) = (
        made("classic/min-objects=8"),
        made("classic/min-objects=64"),
    );
    assert!(small > large, "{small} {large}");
    assert!(workload.run("classic/min-objects=x", 1, 1).is_none());
}

#[test]
fn a_validation_beside_finds_nothing() {
    let workload = Workload::named("kmalloc").unwrap();
    for name in ["cpu-partial/validate", "cpu-partial/validate/debug=Z"] {
        let outcome = workload.run(name, 64, 1).unwrap();
        assert_eq!(outcome.wrong, None, "{name}");
    }
}
