//! A thread that acts as many slots does what as many threads would do.
#![cfg(not(any(loom, shuttle)))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

use slabcore::stats::Stat;
use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, Policy, Slots};
use std::alloc::Layout;
use std::ptr::NonNull;

fn engine() -> Engine {
    Engine::new(EngineConfig {
        reserve: 1 << 28,
        cpus: 2,
        ..EngineConfig::new()
    })
    .unwrap()
}

fn cache(engine: &Engine, policy: Policy) -> Cache {
    let layout = Layout::from_size_align(512, 8).unwrap();
    let builder = CacheBuilder::new(engine, "slots", layout);
    builder.policy(policy).min_objects(8).build().unwrap()
}

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: each test frees its objects once.
    unsafe { cache.free(object) };
}

#[test]
fn each_slot_has_its_own_slab_and_counters() {
    for policy in Policy::ALL {
        let engine = engine();
        let cache = cache(&engine, policy);
        let slots = Slots::take(3).unwrap();
        let object = |n| slots.act(n, || cache.alloc().unwrap());
        let objects = [0, 1, 2].map(object);
        let mine = cache.alloc().unwrap();
        for n in 0..3 {
            assert_eq!(slots.counters(n, &cache).allocs(), 1, "{policy:?}");
        }
        if !policy.has_sheaves() {
            let slab = |object: NonNull<u8>| engine.slab_changes(object.as_ptr()).unwrap().0;
            let mut slabs: Vec<_> = objects.into_iter().chain([mine]).map(slab).collect();
            slabs.sort_unstable();
            slabs.dedup();
            assert_eq!(slabs.len(), 4, "{policy:?}");
        }
        // What another slot has allocated is freed by this one.
        for object in objects {
            slots.act(1, || free(&cache, object));
        }
        free(&cache, mine);
        assert_eq!(slots.counters(1, &cache).frees(), 3);
        assert_eq!(slots.counters(2, &cache).frees(), 0);
        assert_eq!(engine.validate().findings, []);
        drop(slots);
        cache.destroy().unwrap();
    }
}

#[test]
fn what_a_slot_was_given_and_frees_first_is_not_what_it_gets() {
    let engine = engine();
    let layout = Layout::from_size_align(8, 8).unwrap();
    let builder = CacheBuilder::new(&engine, "neighbours", layout);
    let cache = builder.policy(Policy::Hybrid).build().unwrap();
    let slots = Slots::take(2).unwrap();
    // Two objects side by side: on one line, and each slot works on one of them.
    let given = [cache.alloc().unwrap(), cache.alloc().unwrap()];
    let line = |object: NonNull<u8>| object.as_ptr() as usize / 64;
    let got = [0, 1].map(|n| {
        slots.act(n, || {
            free(&cache, given[n]);
            cache.alloc().unwrap()
        })
    });
    assert_ne!(line(got[0]), line(got[1]));
    assert!(given.iter().all(|object| !got.contains(object)));
    assert_eq!(engine.validate().findings, []);
    for (n, object) in got.into_iter().enumerate() {
        slots.act(n, || free(&cache, object));
    }
    drop(slots);
    cache.destroy().unwrap();
}

#[test]
fn slots_that_are_given_back_hold_nothing() {
    let engine = engine();
    let cache = cache(&engine, Policy::CpuPartial);
    let slots = Slots::take(8).unwrap();
    for n in 0..8 {
        slots.act(n, || free(&cache, cache.alloc().unwrap()));
    }
    assert_eq!(engine.snapshot().caches[0].cpu_slabs, 8);
    drop(slots);
    assert_eq!(engine.snapshot().caches[0].cpu_slabs, 0);
    assert_eq!(Slots::take(1 << 20).map(|_| ()), None);
    // Those that were taken in vain are there again.
    assert_eq!(Slots::take(1000).unwrap().len(), 1000);
}

#[test]
fn a_panic_or_a_number_too_high_leaves_the_thread_itself() {
    let engine = engine();
    let cache = cache(&engine, Policy::Classic);
    let slots = Slots::take(1).unwrap();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let work = || slots.act(0, || panic!("in the middle"));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    std::panic::set_hook(hook);
    assert!(caught.is_err());
    free(&cache, cache.alloc().unwrap());
    slots.act(1, || free(&cache, cache.alloc().unwrap()));
    assert_eq!(slots.counters(0, &cache).allocs(), 0);
    assert_eq!(cache.counters().allocs(), 2);
}

#[test]
fn changes_of_a_word_and_of_a_list_are_seen() {
    let engine = engine();
    let cache = cache(&engine, Policy::Classic);
    let slots = Slots::take(2).unwrap();
    let objects: Vec<_> = (0..8)
        .map(|_| slots.act(0, || cache.alloc().unwrap()))
        .collect();
    // The slab is spent and thawed.
    let next = slots.act(0, || cache.alloc().unwrap());
    let (slab, before) = engine.slab_changes(objects[0].as_ptr()).unwrap();
    let locks = cache.list_locks().0;
    slots.act(1, || free(&cache, objects[3]));
    let after = engine.slab_changes(objects[0].as_ptr()).unwrap();
    assert_eq!(after, (slab, before.wrapping_add(1) & 0x7fff));
    assert_eq!(cache.list_locks().0, locks + 1);
    assert_eq!(slots.counters(1, &cache).get(Stat::FreeAddPartial), 1);
    assert_eq!(engine.slab_changes((&raw const slab).cast()), None);
    for object in objects
        .iter()
        .filter(|it| **it != objects[3])
        .chain([&next])
    {
        free(&cache, *object);
    }
}

/// What the child does; gives the number of findings.
fn in_child(engine: &Engine, cache: &Cache, slots: Slots, kept: NonNull<u8>) -> usize {
    for n in [0, 1, 0] {
        slots.act(n, || free(cache, cache.alloc().unwrap()));
    }
    free(cache, kept);
    drop(slots);
    free(cache, cache.alloc().unwrap());
    // Slots are dealt out once each.
    let again = Slots::take(50).unwrap();
    let before: Vec<_> = (0..50).map(|n| again.counters(n, cache).allocs()).collect();
    let object = |n| again.act(n, || cache.alloc().unwrap());
    let objects: Vec<_> = (0..50).map(object).collect();
    for (n, object) in objects.into_iter().enumerate() {
        assert_eq!(again.counters(n, cache).allocs(), before[n] + 1);
        again.act(n, || free(cache, object));
    }
    engine.validate().findings.len()
}

/// In a child the slots have been given back, whoever acted when it was made.
#[test]
fn a_child_acts_as_itself() {
    let engine = engine();
    let cache = cache(&engine, Policy::CpuPartial);
    let slots = Slots::take(2).unwrap();
    let kept = slots.act(0, || cache.alloc().unwrap());
    for inside in [false, true] {
        let child = || {
            // SAFETY: the child uses the engine only and leaves by `_exit`.
            let pid = unsafe { libc::fork() };
            assert!(pid >= 0);
            pid
        };
        let pid = if inside { slots.act(1, child) } else { child() };
        if pid == 0 {
            let work = || in_child(&engine, &cache, slots, kept);
            let sound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!matches!(sound, Ok(0)))) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(status, 0, "forked inside: {inside}");
    }
    slots.act(1, || free(&cache, kept));
}
