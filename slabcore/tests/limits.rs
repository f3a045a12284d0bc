//! At a limit, of the engine or of the process, an allocation fails and is counted, nothing
//! is damaged, and the engine goes on when there is room again. What is not used goes back.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used, clippy::needless_for_each)]

use slabcore::stats::Stat;
use slabcore::{Address, Cache, CacheBuilder, Decommit, Engine, EngineConfig, Policy};
use std::alloc::Layout;
use std::ptr::NonNull;

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: the tests free each object once, to where it came from.
    unsafe { cache.free(object) };
}

fn cache(engine: &Engine, policy: Policy, flags: &str) -> Cache {
    let layout = Layout::from_size_align(512, 8).unwrap();
    let builder = CacheBuilder::new(engine, policy.name(), layout).policy(policy);
    let builder = builder.debug_flags(flags.parse().unwrap());
    builder.min_objects(64).build().unwrap()
}

fn fill(cache: &Cache, most: usize) -> Vec<NonNull<u8>> {
    let mut objects = Vec::with_capacity(most);
    objects.extend(std::iter::from_fn(|| cache.alloc()).take(most));
    objects
}

#[test]
fn a_cap_fails_allocations_cleanly_and_may_be_lifted() {
    for (policy, flags) in Policy::ALL
        .map(|policy| (policy, "-"))
        .into_iter()
        .chain([(Policy::Hybrid, "FZPU")])
    {
        let engine = Engine::new(EngineConfig::new()).unwrap();
        engine.set_limit(1 << 20);
        let cache = cache(&engine, policy, flags);
        let mut objects = fill(&cache, 10_000);
        assert!((900..=2048).contains(&objects.len()), "{policy:?}");
        let counters = cache.counters();
        assert!(counters.get(Stat::AllocFailed) > 0, "{policy:?}");
        assert_eq!(counters.live(), objects.len() as u64, "{policy:?}");
        assert!(engine.snapshot().failed > 0);
        assert!(engine.snapshot().used <= 1 << 20);
        assert_eq!(engine.validate().findings, [], "{policy:?}");
        for object in objects.drain(..200) {
            free(&cache, object);
        }
        objects.extend((0..200).map(|_| cache.alloc().unwrap()));
        assert_eq!(cache.alloc(), None, "{policy:?}");
        engine.set_limit(u64::MAX);
        objects.extend((0..5000).map(|_| cache.alloc().unwrap()));
        assert_eq!(engine.validate().findings, [], "{policy:?}");
        for object in objects {
            free(&cache, object);
        }
        assert_eq!(cache.destroy(), Ok(()), "{policy:?}");
        assert_eq!(engine.snapshot().used, 0, "{policy:?}");
    }
}

#[test]
fn a_smaller_order_is_taken_where_a_large_one_does_not_fit() {
    for policy in Policy::ALL {
        let engine = Engine::new(EngineConfig::new()).unwrap();
        // A slab of order 3, and seven of its eight pages once more.
        engine.set_limit(15 << 12);
        let cache = cache(&engine, policy, "-");
        let objects = fill(&cache, 1000);
        assert_eq!(objects.len(), 15 * 8, "{policy:?}: every page is used");
        assert_eq!(cache.counters().get(Stat::OrderFallback), 7, "{policy:?}");
        assert_eq!(engine.validate().findings, [], "{policy:?}");
        for object in objects {
            free(&cache, object);
        }
        assert_eq!(cache.destroy(), Ok(()), "{policy:?}");
        assert_eq!(engine.snapshot().used, 0);
    }
}

/// Runs a test of this program again, in a process of its own.
fn again(name: &str, variable: &str) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(variable, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

/// Lets the process have so many bytes of addresses more than it has.
fn limit_addresses(more: u64) {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
    let bytes = pages * 4096 + more;
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: a valid limit, for this process only.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    assert_eq!(set, 0);
}

#[test]
fn a_process_with_few_addresses_gets_what_there_is() {
    const CHILD: &str = "SLABCORE_TEST_FEW_ADDRESSES";
    const MORE: u64 = 200 << 20;
    if std::env::var_os(CHILD).is_none() {
        again("a_process_with_few_addresses_gets_what_there_is", CHILD);
        return;
    }
    limit_addresses(MORE);
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let at_first = engine.snapshot().reserved;
    assert!(at_first <= MORE / 4, "room is left for others: {at_first}");
    let policies = Policy::ALL.map(|policy| cache(&engine, policy, "-"));
    let mut objects = Vec::with_capacity(2_000_000);
    let mut large = Vec::with_capacity(10_000);
    let mut full = false;
    while !full {
        for cache in &policies {
            for _ in 0..1000 {
                let object = cache.alloc();
                full |= object.is_none();
                objects.extend(object.map(|object| (cache, object)));
            }
        }
        large.extend(engine.large_alloc(1 << 20, 8));
    }
    // The rest in pieces; some is left for the test itself.
    while large.len() < 10_000
        && let Some(more) = engine.large_alloc(100_000, 8)
    {
        large.push(more);
    }
    for (_, object) in objects.drain(..4000) {
        // SAFETY: freed once.
        assert!(unsafe { engine.free(object) });
    }
    for large in large.drain(..) {
        // SAFETY: freed once.
        assert!(unsafe { engine.large_free(large.at) });
    }
    let snapshot = engine.snapshot();
    assert!(snapshot.reserved >= 2 * at_first, "{}", snapshot.reserved);
    assert!(snapshot.used_peak > MORE / 2 && snapshot.failed > 0);
    for (cache, object) in &objects {
        let found = engine.classify(object.as_ptr());
        let right = matches!(found, Address::Slab { cache: id, offset: 0, .. } if id == cache.id());
        assert!(right, "{found:?}");
        let inside = engine.classify(object.as_ptr().wrapping_add(7));
        assert!(matches!(inside, Address::Slab { offset: 7, .. }));
    }
    assert_eq!(
        engine.classify(std::ptr::from_ref(&snapshot).cast()),
        Address::Foreign
    );
    assert_eq!(engine.validate().findings, []);
    objects
        .drain(..)
        .for_each(|(cache, object)| free(cache, object));
    for cache in &policies {
        objects.extend((0..1000).map(|_| (cache, cache.alloc().unwrap())));
    }
    objects
        .drain(..)
        .for_each(|(cache, object)| free(cache, object));
    for cache in policies {
        assert_eq!(cache.destroy(), Ok(()));
    }
    assert_eq!(engine.snapshot().used, 0, "every page came back");
}

/// Bytes of the process that are in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn memory_comes_down_after_a_load_while_little_happens() {
    const LOAD: u64 = 32 << 20;
    for policy in Policy::ALL {
        let engine = Engine::new(EngineConfig {
            decommit: Decommit::AfterMs(10),
            ..EngineConfig::new()
        });
        let engine = engine.unwrap();
        let builder = |name| CacheBuilder::new(&engine, name, Layout::new::<[u64; 32]>());
        let cache = builder("load").policy(policy).build().unwrap();
        let small = builder("small").policy(policy).min_partial(1000);
        let small = small.build().unwrap();
        let mut few: Vec<_> = (0..500).map(|_| small.alloc().unwrap()).collect();
        let before = resident();
        let objects: Vec<_> = (0..LOAD / 256).map(|_| cache.alloc().unwrap()).collect();
        for object in &objects {
            // SAFETY: the object is ours and of that size.
            unsafe { object.as_ptr().write_bytes(1, 256) };
        }
        assert!(resident() > before + LOAD * 8 / 10);
        objects.into_iter().for_each(|object| free(&cache, object));
        // Never a page is allocated or freed, and nobody calls `tick`.
        let slabs = small.counters().get(Stat::AllocSlab);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while engine.snapshot().decommitted < LOAD * 9 / 10 && std::time::Instant::now() < end {
            few.drain(..400).for_each(|object| free(&small, object));
            few.extend((0..400).map(|_| small.alloc().unwrap()));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let snapshot = engine.snapshot();
        assert!(
            snapshot.decommitted >= LOAD * 9 / 10,
            "{policy:?} {} of {}",
            snapshot.decommitted,
            snapshot.used
        );
        assert!(resident() < before + LOAD / 2, "{policy:?}");
        assert!(small.counters().get(Stat::AllocSlab) <= slabs + 20);
        few.into_iter().for_each(|object| free(&small, object));
        assert_eq!(cache.destroy(), Ok(()));
    }
}
