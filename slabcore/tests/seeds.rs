//! What five kernel threads claimed, read off the engine's counters.
//!
//! Each test replays one question on one thread, so its counts are the same every time; times
//! are the business of `slabctl bench`. docs/SEEDS.md has the counts seen and where a claim is
//! about time only. `cargo test --test seeds -- --nocapture` prints them.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used, clippy::needless_for_each)]

use slabcore::stats::{Counters, Stat};
use slabcore::{
    Cache, CacheBuilder, CacheSnapshot, DebugFlags, Decommit, Engine, EngineConfig, Policy,
};
use std::alloc::Layout;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

type Options = fn(CacheBuilder<'_>) -> CacheBuilder<'_>;

fn engine() -> Engine {
    Engine::new(EngineConfig {
        reserve: 1 << 30,
        decommit: Decommit::Immediate,
        cpus: 2,
        ..EngineConfig::new()
    })
    .unwrap()
}

fn cache(
    engine: &Engine,
    name: &str,
    size: usize,
    options: impl Fn(CacheBuilder<'_>) -> CacheBuilder<'_>,
) -> Cache {
    let layout = Layout::from_size_align(size, 8).unwrap();
    options(CacheBuilder::new(engine, name, layout))
        .build()
        .unwrap()
}

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: the loads free each object once.
    unsafe { cache.free(object) };
}

fn take(cache: &Cache, n: usize) -> Vec<NonNull<u8>> {
    (0..n).map(|_| cache.alloc().unwrap()).collect()
}

/// The counters of a load on a cache of its own.
fn counted(size: usize, options: Options, load: fn(&Cache)) -> Counters {
    let engine = engine();
    let cache = cache(&engine, "seed", size, options);
    load(&cache);
    cache.counters()
}

fn of(engine: &Engine, cache: &Cache) -> CacheSnapshot {
    let caches = engine.snapshot().caches;
    caches.into_iter().find(|it| it.id == cache.id()).unwrap()
}

fn held(cache: &CacheSnapshot) -> u64 {
    (cache.slabs * 4096) << cache.order
}

/// Messages on their way: `depth` are queued, and each round sends a burst and receives one.
fn messages(cache: &Cache, depth: usize, rounds: usize) {
    let mut queue = VecDeque::new();
    for round in 0..rounds {
        let burst = 1 + round * 7 % 40;
        queue.extend(take(cache, burst));
        while queue.len() > depth {
            free(cache, queue.pop_front().unwrap());
        }
    }
    queue.into_iter().for_each(|object| free(cache, object));
}

/// Node list lock takings: every change of a node's list is one, and a batch taken off is one.
fn list_locks(counters: &Counters) -> u64 {
    [
        Stat::FreeAddPartial,
        Stat::FreeRemovePartial,
        Stat::AllocFromPartial,
        Stat::DeactivateToHead,
        Stat::DeactivateToTail,
    ]
    .map(|stat| counters.get(stat))
    .iter()
    .sum()
}

/// The eager and the delayed policy under one load.
fn eager_and_delayed(load: fn(&Cache)) -> [Counters; 2] {
    let both = [Policy::CpuPartial, Policy::DelayedFreeze].map(|policy| {
        let engine = engine();
        let cache = cache(&engine, "seed", 256, |it| it.policy(policy));
        load(&cache);
        let it = cache.counters();
        let per_free = it.get(Stat::AtomicOps) as f64 / it.frees() as f64;
        let [freeze, thaw] = [Stat::Freeze, Stat::Thaw].map(|stat| it.get(stat));
        let name = policy.name();
        eprintln!("{name}: {per_free:.3} atomics a free, freeze {freeze}, thaw {thaw}");
        it
    });
    // The same slabs took the same ways: only how they were marked differs.
    let ways = [
        Stat::FreeSlowpath,
        Stat::AllocSlowpath,
        Stat::CpuPartialFree,
        Stat::CpuPartialDrain,
        Stat::AllocSlab,
    ];
    for stat in ways {
        assert_eq!(both[0].get(stat), both[1].get(stat), "{}", stat.name());
    }
    assert!(both[0].get(Stat::CpuPartialDrain) > 100);
    both
}

/// 2023, "slub: Delay freezing of CPU partial slabs": slabs on a processor's partial list that
/// are not frozen spare an atomic operation when they get there from a node or leave again.
#[test]
fn delayed_freezing_saves_atomics() {
    let [eager, delayed] = eager_and_delayed(|cache| messages(cache, 3000, 2000));
    let saved = |stat| eager.get(stat) - delayed.get(stat);
    assert!(saved(Stat::Freeze) * 5 > eager.get(Stat::Freeze));
    assert!(saved(Stat::Thaw) * 5 > eager.get(Stat::Thaw));
    let atomics = saved(Stat::AtomicOps);
    assert!(atomics > 0 && atomics <= saved(Stat::Freeze) + saved(Stat::Thaw));
}

/// Its price: the free that empties a slab which is not frozen must ask, under the node's
/// lock, whether the slab is on the node's list.
#[test]
fn delayed_freezing_pays_where_slabs_run_empty() {
    let [eager, delayed] = eager_and_delayed(|cache| {
        for _ in 0..50 {
            for object in take(cache, 2000) {
                free(cache, object);
            }
        }
    });
    assert!(delayed.get(Stat::Freeze) * 9 < eager.get(Stat::Freeze) * 5);
    assert!(delayed.get(Stat::AtomicOps) > eager.get(Stat::AtomicOps));
}

/// 2011, "Discard slab page only when node partials > minimum setting": a load that grows and
/// shrinks makes its slabs anew each time if the node keeps none.
#[test]
fn min_partial_keeps_slabs_for_the_next_wave() {
    fn load(cache: &Cache) {
        for _ in 0..200 {
            for object in take(cache, 200) {
                free(cache, object);
            }
        }
    }
    for policy in [
        Policy::Classic,
        Policy::CpuPartial,
        Policy::DelayedFreeze,
        Policy::Sheaves,
    ] {
        let made = |min_partial| {
            let engine = engine();
            // Eight objects a slab: a wave is 25 slabs.
            let cache = cache(&engine, "seed", 512, |it| {
                it.policy(policy)
                    .min_objects(8)
                    .max_order(0)
                    .min_partial(min_partial)
                    .cpu_partial(8)
                    .sheaf_capacity(8)
            });
            load(&cache);
            let counters = cache.counters();
            [counters.get(Stat::AllocSlab), counters.get(Stat::FreeSlab)]
        };
        let [none, five, all] = [0, 5, 30].map(made);
        eprintln!(
            "{}: slabs made and given back: {none:?} keeping 0, {five:?} keeping 5, {all:?} keeping 30",
            policy.name()
        );
        assert!(none[0] > 200, "each wave makes slabs: {none:?}");
        assert!(five[0] < none[0] && five[1] < none[1]);
        assert!(all[0] <= 30 && all[1] == 0, "made once, never given back");
    }
}

/// 2011, "per cpu partial lists": slabs wait for their processor on a list of its own, so
/// neither the free that makes them partial nor the next allocation takes the node's lock.
#[test]
fn slot_lists_spare_the_nodes_lock() {
    fn load(cache: &Cache) {
        messages(cache, 100, 4000);
    }
    let options: [Options; 3] = [
        |it| it.policy(Policy::Classic),
        |it| it.policy(Policy::CpuPartial),
        |it| it.policy(Policy::DelayedFreeze),
    ];
    let [classic, eager, delayed] = options.map(|options| {
        let counters = counted(512, options, load);
        (list_locks(&counters), counters.allocs())
    });
    eprintln!(
        "node lock taken: classic {classic:?}, cpu-partial {eager:?}, delayed-freeze {delayed:?} of allocations"
    );
    assert!(classic.0 * 20 > classic.1, "at least every 20th allocation");
    assert!(eager.0 * 5 < classic.0 && delayed.0 * 5 < classic.0);
}

/// 2008, "hackbench regression since 2.6.25-rc": with few objects in a slab of kmalloc-512 most
/// of the time went to slow allocations and to lists; beyond 32 little is gained.
#[test]
fn min_objects_sets_the_share_of_slow_paths() {
    fn load(cache: &Cache) {
        messages(cache, 4000, 3000);
    }
    let of = |min_objects: u32| {
        let engine = engine();
        let cache = cache(&engine, "kmalloc-512", 512, |it| {
            it.policy(Policy::Classic).min_objects(min_objects)
        });
        load(&cache);
        let counters = cache.counters();
        let slow = counters.get(Stat::AllocSlowpath) + counters.get(Stat::FreeAddPartial);
        let share = slow as f64 / counters.allocs() as f64;
        let objects = of(&engine, &cache).objs_per_slab;
        eprintln!(
            "min_objects {min_objects}: {objects} objects a slab, slow allocation or add_partial at {:.1} % of allocations, {} slabs made",
            share * 100.0,
            counters.get(Stat::AllocSlab)
        );
        share
    };
    let [at8, at16, at32, at64] = [8, 16, 32, 64].map(of);
    assert!(at8 > at16 && at16 > at32 && at32 > at64);
    assert!(at8 > at32 * 2.5, "{at8} {at32}");
}

/// 2013, "create a separate slab for page->ptl allocation": locks of 72 bytes in kmalloc-96
/// waste a quarter, and share their slabs with what lives longer.
#[test]
fn a_cache_of_its_own_for_72_bytes() {
    const LOCKS: usize = 50_000;
    let engine = engine();
    for policy in Policy::ALL {
        let shared = cache(&engine, "kmalloc-96", 96, |it| it.policy(policy));
        let own = cache(&engine, "ptlock", 72, |it| it.policy(policy));
        let (mut locks, mut others) = (vec![], vec![]);
        for i in 0..LOCKS {
            locks.push(shared.alloc().unwrap());
            if i % 20 == 0 {
                others.push(shared.alloc().unwrap());
            }
        }
        let own_locks = take(&own, LOCKS);
        let [in_shared, in_own] = [&shared, &own].map(|it| held(&of(&engine, it)));
        locks.into_iter().for_each(|it| free(&shared, it));
        own_locks.into_iter().for_each(|it| free(&own, it));
        shared.shrink();
        own.shrink();
        let [kept_shared, kept_own] = [&shared, &own].map(|it| held(&of(&engine, it)));
        eprintln!(
            "{}: {LOCKS} locks: {in_shared} bytes in kmalloc-96, {in_own} in their own; all freed: {kept_shared}, {kept_own}",
            policy.name()
        );
        assert!(in_own * 100 <= in_shared * 80);
        assert_eq!(kept_own, 0);
        assert!(kept_shared * 2 > in_shared, "pinned by one object in 21");
        others.into_iter().for_each(|it| free(&shared, it));
    }
}

/// 2022, "fix the race between validate_slab and slab_free": to be validated while it is used
/// costs a cache without debug flags nothing; caches with flags pay with a lock an operation.
#[test]
fn validation_costs_the_free_path_nothing() {
    fn load(cache: &Cache) {
        messages(cache, 500, 1500);
    }
    for policy in Policy::ALL {
        let run = |validate: bool, flags: &str| {
            let engine = engine();
            let flags = if flags.is_empty() {
                DebugFlags::NONE
            } else {
                flags.parse().unwrap()
            };
            let cache = cache(&engine, "seed", 256, |it| {
                it.policy(policy).debug_flags(flags)
            });
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let watch = || {
                    let mut looks = 0;
                    while looks == 0 || !done.load(Relaxed) {
                        assert_eq!(engine.validate().findings, []);
                        looks += 1;
                    }
                };
                if validate {
                    scope.spawn(watch);
                }
                load(&cache);
                done.store(true, Relaxed);
            });
            cache.counters()
        };
        let (alone, watched) = (run(false, ""), run(true, ""));
        // Not one locked instruction more, and none that had to be repeated. (Validation
        // itself takes the list lock.)
        for stat in Stat::ALL {
            if !matches!(stat, Stat::ListLock | Stat::ListLockContended) {
                let (alone, watched) = (alone.get(*stat), watched.get(*stat));
                assert_eq!(alone, watched, "{policy:?} {}", stat.name());
            }
        }
        let debug = run(true, "Z");
        let per_op =
            |it: &Counters| it.get(Stat::AtomicOps) as f64 / (it.allocs() + it.frees()) as f64;
        eprintln!(
            "{}: {:.3} atomics an operation, watched or not; with red zones {:.3}",
            policy.name(),
            per_op(&alone),
            per_op(&debug)
        );
        assert!(per_op(&debug) >= 3.0 && per_op(&alone) < 1.5);
        assert_eq!(debug.get(Stat::FreeFastpath), 0);
    }
}
