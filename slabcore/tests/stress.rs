//! Stamped stress: threads allocate, pass objects to each other, free and die, while
//! validation runs all the time. Every object carries a stamp that its holder checks.
//!
//! Seconds by default; `SLABCORE_STRESS_MS` sets the time for each policy.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

#[path = "support/stamped.rs"]
mod stamped;

use slabcore::{Cache, CacheBuilder, Decommit, Engine, EngineConfig, Policy};
use stamped::{Object, Rng, stress_ms};
use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

struct Shared {
    cache: Cache,
    stop: AtomicBool,
    serial: AtomicU64,
    allocs: AtomicU64,
}

/// One life of a worker; what it holds at the end is passed on.
fn live(
    shared: &Shared,
    seed: u64,
    to: &SyncSender<Object>,
    from: &Receiver<Object>,
    held: Vec<Object>,
) -> Vec<Object> {
    let mut rng = Rng::new(seed);
    let mut held = held;
    let cache = &shared.cache;
    let mut allocs = 0;
    for _ in 0..20_000 {
        match rng.below(8) {
            0..4 if held.len() < 3000 => {
                for _ in 0..=rng.below(40) {
                    let stamp = shared.serial.fetch_add(1, Ordering::Relaxed) << 8;
                    held.push(Object::new(cache, stamp).unwrap());
                    allocs += 1;
                }
            }
            4 | 5 if !held.is_empty() => {
                for _ in 0..=rng.below(60) {
                    if held.is_empty() {
                        break;
                    }
                    let at = rng.below(held.len());
                    held.swap_remove(at).free(cache);
                }
            }
            6 => {
                for _ in 0..40 {
                    let Some(object) = held.pop() else { break };
                    if let Err(back) = to.try_send(object) {
                        let (std::sync::mpsc::TrySendError::Full(object)
                        | std::sync::mpsc::TrySendError::Disconnected(object)) = back;
                        held.push(object);
                        break;
                    }
                }
            }
            7 => {
                for object in from.try_iter().take(60) {
                    object.free(cache);
                }
                if rng.below(2000) == 0 {
                    cache.shrink();
                }
            }
            _ => {}
        }
        if shared.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    shared.allocs.fetch_add(allocs, Ordering::Relaxed);
    held
}

fn stress(policy: Policy, size: usize, nodes: usize) {
    let ms = stress_ms(400);
    let engine = Engine::new(EngineConfig {
        nodes,
        decommit: Decommit::AfterMs(5),
        reserve: 4 << 30,
        ..EngineConfig::default()
    })
    .unwrap();
    let layout = Layout::from_size_align(size, 8).unwrap();
    let cache = CacheBuilder::new(&engine, "stress", layout)
        .policy(policy)
        .build()
        .unwrap();
    let shared = Arc::new(Shared {
        cache,
        stop: AtomicBool::new(false),
        serial: AtomicU64::new(1),
        allocs: AtomicU64::new(0),
    });
    let workers = 4;
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..workers).map(|_| sync_channel::<Object>(2000)).unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(i, from)| {
            let shared = shared.clone();
            let to = senders[(i + 1) % workers].clone();
            std::thread::spawn(move || {
                let (mut held, mut from, mut to, mut round) = (vec![], from, to, 0u64);
                // Each round is a thread that dies and leaves its objects to the next.
                while !shared.stop.load(Ordering::Relaxed) {
                    let for_life = shared.clone();
                    round += 1;
                    let seed = (i as u64 + 1) * 0x9e37_79b9 + round;
                    (held, from, to) = std::thread::spawn(move || {
                        let held = live(&for_life, seed, &to, &from, held);
                        (held, from, to)
                    })
                    .join()
                    .unwrap();
                }
                (held, from)
            })
        })
        .collect();
    drop(senders);
    let end = Instant::now() + Duration::from_millis(ms);
    let mut slabs = 0;
    while Instant::now() < end {
        let validation = engine.validate();
        assert_eq!(validation.findings, [], "{policy:?} {size}");
        slabs += validation.slabs;
        std::thread::sleep(Duration::from_millis(1));
    }
    shared.stop.store(true, Ordering::Relaxed);
    let left: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    let allocs = shared.allocs.load(Ordering::Relaxed);
    assert_eq!(shared.cache.counters().allocs(), allocs, "exact counters");
    let mut live = 0;
    let mut rest = vec![];
    for (held, from) in left {
        rest.extend(held);
        rest.extend(from.try_iter());
    }
    live += rest.len() as u64;
    assert_eq!(shared.cache.counters().live(), live);
    for object in rest {
        object.free(&shared.cache);
    }
    assert_eq!(shared.cache.counters().live(), 0);
    assert_eq!(engine.validate().findings, []);
    assert!(slabs > 0);
    let counters = shared.cache.counters();
    eprintln!(
        "{} {size} nodes {nodes}: {allocs} objects, {slabs} slabs validated",
        policy.name()
    );
    if ms > 5000 {
        for (name, value) in counters.iter().filter(|(_, value)| *value > 0) {
            eprintln!("  {name} {value}");
        }
    }
    let cache = Arc::into_inner(shared).unwrap().cache;
    assert_eq!(cache.destroy(), Ok(()));
    assert_eq!(engine.snapshot().used, 0, "every page came back");
}

fn all_sizes(policy: Policy) {
    stress(policy, 64, 1);
    stress(policy, 8, 2);
    stress(policy, 1000, 1);
    stress(policy, 4096, 2);
}

#[test]
fn classic_keeps_every_stamp() {
    all_sizes(Policy::Classic);
}

#[test]
fn cpu_partial_keeps_every_stamp() {
    all_sizes(Policy::CpuPartial);
}

#[test]
fn delayed_freeze_keeps_every_stamp() {
    all_sizes(Policy::DelayedFreeze);
}

#[test]
fn sheaves_keep_every_stamp() {
    all_sizes(Policy::Sheaves);
}

#[test]
fn hybrid_keeps_every_stamp() {
    all_sizes(Policy::Hybrid);
}

#[test]
fn more_threads_than_slots_keep_every_stamp() {
    // Threads that end late share a row: destructors of other keys run after the slot's.
    let engine = Engine::new(EngineConfig::default()).unwrap();
    let cache = CacheBuilder::new(&engine, "crowd", Layout::new::<[u64; 8]>())
        .build()
        .unwrap();
    let threads = slabcore::MAX_SLOTS as usize + 100;
    let barrier = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        for i in 0..threads {
            let (cache, barrier) = (&cache, &barrier);
            std::thread::Builder::new()
                .stack_size(64 << 10)
                .spawn_scoped(scope, move || {
                    let mine = Object::new(cache, (i as u64) << 8).unwrap();
                    barrier.wait();
                    mine.free(cache);
                })
                .unwrap();
        }
    });
    assert_eq!(cache.counters().live(), 0);
    assert_eq!(cache.counters().allocs(), threads as u64);
    assert_eq!(engine.validate().findings, []);
    assert_eq!(cache.destroy(), Ok(()));
}
