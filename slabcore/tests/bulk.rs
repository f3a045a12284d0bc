//! Many objects at a time, under every policy: distinct, counted exactly, all or none.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, Policy};
use std::alloc::Layout;
use std::collections::BTreeSet;
use std::ptr::null_mut;

fn caches(config: EngineConfig, size: usize, test: impl Fn(&Engine, &Cache)) {
    for policy in Policy::ALL {
        let engine = Engine::new(config).unwrap();
        let layout = Layout::from_size_align(size, 8).unwrap();
        let builder = CacheBuilder::new(&engine, "bulk", layout).policy(policy);
        let cache = builder.build().unwrap();
        test(&engine, &cache);
        assert_eq!(engine.validate().findings, [], "{policy:?}");
        assert_eq!(cache.counters().live(), 0, "{policy:?}");
        assert_eq!(cache.destroy(), Ok(()), "{policy:?}");
        assert_eq!(engine.snapshot().used, 0, "{policy:?}");
    }
}

fn get(cache: &Cache, n: usize) -> Vec<*mut u8> {
    let mut out = vec![null_mut(); n];
    assert_eq!(cache.alloc_bulk(&mut out), n);
    for object in &out {
        // SAFETY: the object is ours and has at least 8 bytes.
        unsafe { object.write_bytes(0x5c, 8) };
    }
    out
}

fn put(cache: &Cache, objects: &[*mut u8]) {
    // SAFETY: the tests free each object once.
    unsafe { cache.free_bulk(objects) };
}

#[test]
fn objects_of_all_calls_are_distinct_and_each_is_counted_once() {
    for size in [8, 64, 1000] {
        caches(EngineConfig::default(), size, |_, cache| {
            let mut live: Vec<*mut u8> = vec![];
            let (mut allocs, mut frees) = (0, 0);
            for n in [1, 3, 60, 61, 250, 7, 1000, 0, 128, 513] {
                live.extend(get(cache, n));
                allocs += n as u64;
                let distinct: BTreeSet<_> = live.iter().collect();
                assert_eq!(distinct.len(), live.len());
                // Every third one, so that slabs come in turn and stay in use.
                let (back, kept) = (live.iter().step_by(3).copied().collect::<Vec<_>>(), {
                    let mut at = 0;
                    live.retain(|_| {
                        at += 1;
                        (at - 1) % 3 != 0
                    });
                    &live
                });
                put(cache, &back);
                frees += back.len() as u64;
                let counters = cache.counters();
                assert_eq!((counters.allocs(), counters.frees()), (allocs, frees));
                assert_eq!(counters.live(), kept.len() as u64);
            }
            put(cache, &live);
        });
    }
}

#[test]
fn when_memory_ends_nothing_is_allocated() {
    let config = EngineConfig {
        limit: 64 << 10,
        ..EngineConfig::default()
    };
    caches(config, 256, |engine, cache| {
        let some = get(cache, 40);
        let mut out = vec![null_mut(); 1000];
        assert_eq!(cache.alloc_bulk(&mut out), 0);
        assert_eq!(cache.counters().live(), 40);
        assert_eq!(engine.validate().findings, []);
        // And what there is can still be had.
        let more = get(cache, 100);
        put(cache, &more);
        put(cache, &some);
    });
}

#[test]
fn null_pointers_are_left_out() {
    caches(EngineConfig::default(), 64, |_, cache| {
        let mut objects = get(cache, 300);
        for at in [0, 17, 18, 299] {
            let object = std::mem::replace(&mut objects[at], null_mut());
            put(cache, &[object]);
        }
        put(cache, &objects);
        put(cache, &[null_mut(); 5]);
        assert_eq!(cache.counters().frees(), 300);
    });
}

#[test]
fn another_thread_may_free_them() {
    struct Objects(Vec<*mut u8>);
    // SAFETY: whoever has the value owns the objects.
    unsafe impl Send for Objects {}
    caches(EngineConfig::default(), 64, |engine, cache| {
        for _ in 0..20 {
            let objects = Objects(get(cache, 700));
            std::thread::scope(|scope| {
                let objects = objects;
                scope.spawn(move || {
                    let objects = objects;
                    put(cache, &objects.0);
                });
            });
            assert_eq!(engine.validate().findings, []);
        }
    });
}

#[test]
fn a_large_call_needs_fewer_locked_instructions_than_its_objects() {
    caches(EngineConfig::default(), 64, |_, cache| {
        let locked = || cache.counters().get(slabcore::stats::Stat::AtomicOps);
        let objects = get(cache, 2000);
        put(cache, &objects);
        let before = locked();
        let objects = get(cache, 2000);
        put(cache, &objects);
        let needed = locked() - before;
        assert!(needed < 1000, "{needed}");
    });
}

#[test]
fn a_debug_cache_checks_each_object() {
    let engine = Engine::new(EngineConfig {
        report: slabcore::Report::Call(|_| ()),
        ..EngineConfig::default()
    })
    .unwrap();
    let builder = CacheBuilder::new(&engine, "bulk", Layout::new::<u64>());
    let cache = builder.debug_flags("FZP".parse().unwrap()).build().unwrap();
    let objects = get(&cache, 100);
    put(&cache, &objects[..50]);
    let faults = || engine.snapshot().caches[0].debug.unwrap().faults;
    assert_eq!(faults(), 0);
    put(&cache, &objects[49..]);
    assert_eq!(faults(), 1, "one was free already");
    assert_eq!(engine.validate().findings, []);
}
