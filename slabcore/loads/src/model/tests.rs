use super::*;
use slabcore::Policy;

fn run(cpus: usize, seed: u64, policy: Policy, to: To) -> (Machine, Of, Tally) {
    let mut machine = Machine::new(cpus, seed).unwrap();
    let of = machine.cache("message", 512, |it| it.policy(policy).min_objects(8));
    let of = of.unwrap();
    let load = Messages {
        depth: 30,
        each: 200,
        to,
        work: 1000,
    };
    let tally = load.run(&mut machine, &[of]).unwrap();
    (machine, of, tally)
}

#[test]
fn the_same_seed_gives_the_same_numbers_and_another_one_others() {
    for policy in [Policy::Classic, Policy::CpuPartial, Policy::DelayedFreeze] {
        let of = |seed| run(5, seed, policy, To::Anybody).2;
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}

/// The tally is of the engine's own counters, and misses nothing.
#[test]
fn what_is_told_is_what_the_engine_counted() {
    for policy in [Policy::Classic, Policy::CpuPartial, Policy::DelayedFreeze] {
        let mut machine = Machine::new(3, 7).unwrap();
        let of = machine
            .cache("message", 256, |it| it.policy(policy))
            .unwrap();
        let mut objects = Vec::new();
        for n in 0..500 {
            objects.push(machine.alloc(n % 3, of).unwrap());
        }
        for (n, object) in objects.into_iter().enumerate() {
            // SAFETY: allocated above, freed once.
            unsafe { machine.free(n % 2, of, object) };
        }
        let tally = machine.take_tally();
        let snapshot = machine.snapshot(of).unwrap();
        let counted = |stat| snapshot.counters.get(stat);
        assert_eq!((tally.allocs, tally.frees), (500, 500));
        let slow = counted(Stat::AllocSlowpath) + counted(Stat::FreeSlowpath);
        assert_eq!(tally.slow, slow);
        assert_eq!(tally.atomics, counted(Stat::AtomicOps));
        assert_eq!(tally.locks, counted(Stat::ListLock));
        assert_eq!(tally.slabs, counted(Stat::AllocSlab));
        let frozen = counted(Stat::Freeze) + counted(Stat::Thaw);
        assert_eq!(tally.freezes, frozen, "{policy:?}");
        assert!(tally.words_moved > 0 && tally.locks_moved <= tally.locks);
        assert_eq!(machine.engine.validate().findings, []);
    }
}

#[test]
fn one_processor_has_everything_to_itself() {
    let (_, _, tally) = run(1, 3, Policy::Classic, To::Anybody);
    assert!(tally.locks > 1, "{tally:?}");
    assert_eq!(
        (tally.words_moved, tally.contended, tally.waited),
        (0, 0, 0)
    );
    assert!(tally.locks_moved <= 1, "the first time it is nobody's");
}

#[test]
fn who_wants_a_held_lock_waits_for_all_before_him() {
    let mut machine = Machine::new(3, 1).unwrap();
    let of = machine.cache("message", 512, |it| {
        it.policy(Policy::Classic).min_objects(8).max_order(0)
    });
    let of = of.unwrap();
    // Three full slabs of one processor; an object of each is freed at the same time.
    let objects: Vec<_> = (0..25).map(|_| machine.alloc(0, of).unwrap()).collect();
    machine.clocks = vec![1000, 1000, 1000];
    machine.parts[0].lock.ends.clear();
    machine.take_tally();
    let waited: Vec<u64> = (0..3)
        .map(|cpu| {
            // SAFETY: allocated above, freed once.
            unsafe { machine.free(cpu, of, objects[cpu * 8]) };
            machine.take_tally().waited
        })
        .collect();
    assert_eq!(waited[0], 0);
    assert!(waited[0] < waited[1] && waited[1] < waited[2], "{waited:?}");
    for (n, object) in objects.into_iter().enumerate() {
        if n % 8 != 0 || n == 24 {
            // SAFETY: as above; those that are freed already are left out.
            unsafe { machine.free(0, of, object) };
        }
    }
}
