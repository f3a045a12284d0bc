//! Everything at once, under every policy and every set of debug flags: objects cross threads,
//! threads die, caches come and go, memory is short at times, and validation, shrinking and
//! changes of limits never cease. Nothing may be found, and all counters are exact at the end.
//!
//! A moment for each set by default; `SLABCORE_STRESS_MS` sets the time for each.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used, clippy::needless_for_each)]

#[path = "support/stamped.rs"]
mod stamped;

use slabcore::stats::{Counters, Stat};
use slabcore::{Cache, CacheBuilder, DebugFlags, Decommit, Engine, EngineConfig, Policy, Report};
use stamped::{Object, Rng, stress_ms};
use std::alloc::Layout;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SIZES: [usize; 3] = [24, 200, 1000];
const WORKERS: usize = 3;

static REPORTED: Mutex<String> = Mutex::new(String::new());

/// Traces are no faults.
fn keep(text: &str) {
    if text.contains("BUG ") || text.contains("FIX ") {
        REPORTED.lock().unwrap().push_str(text);
    }
}

/// A cache, what the workers did to it, and what it is called.
struct Counted {
    cache: Cache,
    allocs: AtomicU64,
    frees: AtomicU64,
}

impl Counted {
    fn new(engine: &Engine, name: &str, size: usize, policy: Policy, flags: DebugFlags) -> Self {
        let layout = Layout::from_size_align(size, 8).unwrap();
        let builder = CacheBuilder::new(engine, name, layout).policy(policy);
        Self {
            cache: builder.debug_flags(flags).build().unwrap(),
            allocs: AtomicU64::new(0),
            frees: AtomicU64::new(0),
        }
    }

    fn alloc(&self, stamp: u64) -> Option<Object> {
        let object = Object::new(&self.cache, stamp)?;
        self.allocs.fetch_add(1, Relaxed);
        Some(object)
    }

    fn free(&self, object: Object) {
        object.free(&self.cache);
        self.frees.fetch_add(1, Relaxed);
    }

    /// Counters say what happened, and the cache ends without a trace.
    fn end(self) {
        let (allocs, frees) = (self.allocs.load(Relaxed), self.frees.load(Relaxed));
        let counters = self.cache.counters();
        assert_eq!((counters.allocs(), counters.frees()), (allocs, frees));
        assert_eq!((counters.live(), self.cache.destroy()), (0, Ok(())));
    }
}

type Item = (usize, Object);

struct Storm {
    engine: Engine,
    caches: Vec<Counted>,
    stop: AtomicBool,
    serial: AtomicU64,
}

/// One life of a worker; what it holds at the end is left to the next.
fn live(
    storm: &Storm,
    seed: u64,
    to: &SyncSender<Item>,
    from: &Receiver<Item>,
    held: &mut Vec<Item>,
) {
    let mut rng = Rng::new(seed);
    for _ in 0..2000 {
        let which = rng.below(SIZES.len());
        match rng.below(6) {
            0..3 if held.len() < 600 => {
                for _ in 0..=rng.below(30) {
                    let stamp = storm.serial.fetch_add(1, Relaxed) << 8;
                    held.extend(storm.caches[which].alloc(stamp).map(|it| (which, it)));
                }
            }
            3 => {
                for _ in 0..rng.below(40).min(held.len()) {
                    let (of, object) = held.swap_remove(rng.below(held.len()));
                    storm.caches[of].free(object);
                }
            }
            4 => {
                while let Some(item) = held.pop() {
                    if let Err(back) = to.try_send(item) {
                        let (std::sync::mpsc::TrySendError::Full(item)
                        | std::sync::mpsc::TrySendError::Disconnected(item)) = back;
                        held.push(item);
                        break;
                    }
                }
            }
            _ => {
                for (of, object) in from.try_iter().take(60) {
                    storm.caches[of].free(object);
                }
            }
        }
        if storm.stop.load(Relaxed) {
            break;
        }
    }
}

/// Threads in turn, until the storm is over; gives what is left.
fn worker(
    storm: &Arc<Storm>,
    number: u64,
    mut to: SyncSender<Item>,
    mut from: Receiver<Item>,
) -> (Vec<Item>, Receiver<Item>) {
    let (mut held, mut round) = (vec![], 0);
    while !storm.stop.load(Relaxed) {
        let its = storm.clone();
        round += 1;
        let seed = number << 32 | round;
        (held, to, from) = std::thread::spawn(move || {
            live(&its, seed, &to, &from, &mut held);
            (held, to, from)
        })
        .join()
        .unwrap();
    }
    (held, from)
}

/// Caches that come, are used by two threads, and go.
fn mayflies(storm: &Storm, policy: Policy, flags: DebugFlags) -> u64 {
    let mut lives = 0;
    while lives == 0 || !storm.stop.load(Relaxed) {
        let size = [16, 72, 500, 4096][lives as usize % 4];
        let mayfly = Counted::new(&storm.engine, "mayfly", size, policy, flags);
        std::thread::scope(|scope| {
            let objects: Vec<_> = (0..100).filter_map(|i| mayfly.alloc(i << 8)).collect();
            let its = &mayfly;
            scope.spawn(move || objects.into_iter().for_each(|object| its.free(object)));
            let own: Vec<_> = (0..50).filter_map(|i| mayfly.alloc(i << 9)).collect();
            for object in own {
                mayfly.free(object);
            }
        });
        mayfly.end();
        lives += 1;
    }
    lives
}

/// What an operator does, all the time. Gives the number of validations.
fn tend(storm: &Storm, until: Instant) -> u64 {
    let mut rounds = 0;
    while rounds == 0 || Instant::now() < until {
        assert_eq!(storm.engine.validate().findings, []);
        let caches = &storm.caches;
        let at = rounds as usize;
        match rounds % 7 {
            0 => caches[at % SIZES.len()].cache.shrink(),
            1 => storm.engine.set_limit(storm.engine.snapshot().used),
            2 => storm.engine.set_limit(u64::MAX),
            3 => caches[at % SIZES.len()]
                .cache
                .set_min_partial(at as u32 % 8),
            4 => drop(storm.engine.tick()),
            5 => storm
                .engine
                .set_limit(storm.engine.snapshot().used + (64 << 10)),
            _ => std::thread::sleep(Duration::from_micros(500)),
        }
        rounds += 1;
    }
    storm.engine.set_limit(u64::MAX);
    rounds
}

/// The sum over slots is the cache's, and each object took exactly one path.
fn exact(storm: &Storm) {
    for cache in storm.engine.snapshot().caches {
        let sum = |of: &dyn Fn(&Counters) -> u64| cache.slots.iter().map(|s| of(&s.counters)).sum();
        // Those of locks are the nodes'.
        let of_locks = [Stat::ListLock, Stat::ListLockContended];
        for stat in Stat::ALL.iter().filter(|stat| !of_locks.contains(stat)) {
            let over_slots: u64 = sum(&|counters| counters.get(*stat));
            assert_eq!(cache.counters.get(*stat), over_slots, "{}", stat.name());
        }
        let slabs = |stat| cache.counters.get(stat);
        assert_eq!(slabs(Stat::AllocSlab) - slabs(Stat::FreeSlab), cache.slabs);
        let counted = &storm.caches[cache.id as usize];
        let live = counted.allocs.load(Relaxed) - counted.frees.load(Relaxed);
        assert_eq!(cache.objects, live);
        let parked = cache.sheaf_objects;
        assert!(cache.objects_taken >= live + parked && cache.total_objects >= cache.objects_taken);
        let debug = cache.debug.unwrap();
        assert_eq!((debug.faults, debug.quarantined), (0, 0));
    }
}

fn storm(policy: Policy, flags: DebugFlags, ms: u64) -> u64 {
    let engine = Engine::new(EngineConfig {
        nodes: 2,
        reserve: 1 << 30,
        decommit: if flags.contains(DebugFlags::POISON) {
            Decommit::AfterMs(2)
        } else {
            Decommit::Immediate
        },
        fail_every: 50,
        report: Report::Call(keep),
        ..EngineConfig::new()
    })
    .unwrap();
    let names = ["storm-24", "storm-200", "storm-1000"];
    let caches = SIZES.into_iter().zip(names);
    let caches = caches.map(|(size, name)| Counted::new(&engine, name, size, policy, flags));
    let storm = Arc::new(Storm {
        caches: caches.collect(),
        engine,
        stop: AtomicBool::new(false),
        serial: AtomicU64::new(1),
    });
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..WORKERS).map(|_| sync_channel::<Item>(500)).unzip();
    let workers: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(i, from)| {
            let (storm, to) = (storm.clone(), senders[(i + 1) % WORKERS].clone());
            std::thread::spawn(move || worker(&storm, i as u64, to, from))
        })
        .collect();
    drop(senders);
    let its = storm.clone();
    let flies = std::thread::spawn(move || mayflies(&its, policy, flags));
    let rounds = tend(&storm, Instant::now() + Duration::from_millis(ms));
    storm.stop.store(true, Relaxed);
    let lives = flies.join().unwrap();
    assert!(lives > 0 && rounds > 0);
    let left: Vec<_> = workers.into_iter().map(|it| it.join().unwrap()).collect();
    exact(&storm);
    for (held, from) in left {
        for (of, object) in held.into_iter().chain(from.try_iter()) {
            storm.caches[of].free(object);
        }
    }
    assert_eq!(storm.engine.validate().findings, []);
    let storm = Arc::into_inner(storm).unwrap();
    storm.caches.into_iter().for_each(Counted::end);
    assert_eq!(storm.engine.snapshot().used, 0, "every page came back");
    assert_eq!(*REPORTED.lock().unwrap(), "");
    storm.serial.load(Relaxed)
}

/// All sets of the flags that check, and all flags there are.
fn under_all_flags(policy: Policy) {
    let ms = stress_ms(20);
    let mut objects = 0;
    for set in 0..16 {
        let flags: String = "FZPU"
            .chars()
            .enumerate()
            .filter(|(i, _)| set >> i & 1 == 1)
            .map(|(_, c)| c)
            .collect();
        // No letter would mean the default set.
        let flags = if set == 0 {
            DebugFlags::NONE
        } else {
            flags.parse().unwrap()
        };
        objects += storm(policy, flags, ms);
    }
    objects += storm(policy, "FZPUTA".parse().unwrap(), ms);
    eprintln!("{}: {objects} objects", policy.name());
}

#[test]
fn classic_weathers_it() {
    under_all_flags(Policy::Classic);
}

#[test]
fn cpu_partial_weathers_it() {
    under_all_flags(Policy::CpuPartial);
}

#[test]
fn delayed_freeze_weathers_it() {
    under_all_flags(Policy::DelayedFreeze);
}

#[test]
fn sheaves_weather_it() {
    under_all_flags(Policy::Sheaves);
}

#[test]
fn hybrid_weathers_it() {
    under_all_flags(Policy::Hybrid);
}
