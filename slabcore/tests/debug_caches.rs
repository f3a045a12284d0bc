//! What debug caches do beside finding faults: options, classes, tracks, the end of a cache, load.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

mod support;

use slabcore::classes::Kmalloc;
use slabcore::debug::check::DamageKind;
use slabcore::debug::depot::function_of;
use slabcore::finding::{Fault, Finding};
use slabcore::{
    Cache, CacheBuilder, DebugFlags, Engine, EngineConfig, OnFault, Policy, Report, SlabAlloc,
};
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;
use support::{cache, config, each, faults, free, goes_on, log, only_bytes, peek, poke};

#[test]
fn the_slack_of_a_class_is_guarded() {
    for policy in Policy::ALL {
        let config = EngineConfig {
            debug: Some("FZPU"),
            ..config(policy)
        };
        let engine = Engine::new(config).unwrap();
        let classes = Kmalloc::new(&engine, policy).unwrap();
        let object = classes.alloc(18).unwrap();
        for at in 0..18 {
            poke(object, at, 0xee);
        }
        assert_eq!(faults(&engine), []);
        poke(object, 18, 0xab);
        poke(object, 19, 0xab);
        let bytes = only_bytes(&engine);
        assert_eq!(bytes.kind, Fault::Damage(DamageKind::KmallocRedzone));
        assert_eq!(
            (bytes.offset, bytes.len, bytes.expected),
            (Some(18), 2, Some(0xcc))
        );
        assert!(log().contains("BUG kmalloc-32 ("));
        // SAFETY: from this class, freed once.
        unsafe { classes.free(object, 18) };
        let cache = classes.class(2);
        goes_on(&engine, cache, &[object]);
    }
}

#[test]
fn a_leak_is_told_when_the_cache_ends() {
    for policy in Policy::ALL {
        let engine = Engine::new(config(policy)).unwrap();
        let cache = cache(&engine, "sb-leak", 64, "FZPU");
        let object = cache.alloc().unwrap();
        let (freed, damaged) = (cache.alloc().unwrap(), cache.alloc().unwrap());
        free(&cache, freed);
        poke(damaged, 64, 1);
        free(&cache, damaged);
        log();
        assert_eq!(cache.destroy().unwrap_err().objects, 1);
        let text = log();
        assert!(text.contains("BUG sb-leak (Tainted: G    B             ): Objects remaining on __kmem_cache_shutdown()\n"), "{text}");
        assert!(text.contains(&format!("Object 0x{:016x} @offset=", object.addr())));
        assert_eq!(
            text.matches("\nObject 0x").count(),
            1,
            "not the retired one: {text}"
        );
        assert_eq!(text.matches("\nAllocated in debug").count(), 1);
    }
}

#[test]
fn names_choose_caches_and_debug_caches_are_never_merged() {
    let config = EngineConfig {
        debug: Some("FZ,sb-a*;P,sb-b"),
        merge: true,
        ..config(Policy::Hybrid)
    };
    let engine = Engine::new(config).unwrap();
    let layout = Layout::from_size_align(64, 8).unwrap();
    let build = |name| CacheBuilder::new(&engine, name, layout).build().unwrap();
    let caches = ["sb-a1", "sb-a2", "sb-b", "sb-c", "sb-d"].map(build);
    let ids: Vec<_> = caches.iter().map(Cache::id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 3]);
    let sizes: Vec<_> = engine
        .snapshot()
        .caches
        .iter()
        .map(|c| c.slab_size)
        .collect();
    assert_eq!(sizes, [88, 88, 72, 64]);
    let off = CacheBuilder::new(&engine, "sb-a3", layout).debug_flags(DebugFlags::NONE);
    assert_eq!(off.build().unwrap().id(), 3);
}

#[test]
fn a_constructed_object_is_kept() {
    let engine = Engine::new(config(Policy::Hybrid)).unwrap();
    // SAFETY: the objects have 64 bytes.
    let ctor = |object: *mut u8| unsafe { object.write_bytes(0x31, 64) };
    let layout = Layout::from_size_align(64, 8).unwrap();
    let builder = CacheBuilder::new(&engine, "sb-ctor", layout).ctor(ctor);
    let cache = builder.debug_flags(DebugFlags::DEFAULT).build().unwrap();
    let object = cache.alloc().unwrap();
    free(&cache, object);
    assert!((0..64).all(|at| peek(object, at) == 0x31));
    assert_eq!(faults(&engine), []);
}

#[test]
fn a_request_resized_in_place_keeps_its_guard() {
    for policy in Policy::ALL {
        let heap = SlabAlloc::with(EngineConfig {
            debug: Some("FZPU"),
            reserve: 1 << 30,
            ..config(policy)
        });
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        // SAFETY: each layout is the object's present one, and it is freed once.
        unsafe {
            let object = heap.alloc_zeroed(layout(48));
            object.write_bytes(0x11, 48);
            let object = heap.realloc(object, layout(48), 40);
            let at = NonNull::new(object).unwrap();
            let bytes: Vec<_> = (40..64).map(|byte| peek(at, byte)).collect();
            assert_eq!(bytes, [0xcc; 24], "the slack is guarded");
            let object = heap.realloc(object, layout(40), 56);
            assert_eq!(at.as_ptr(), object, "the same class");
            object.write_bytes(0x22, 56);
            let engine = heap.engine().unwrap();
            assert_eq!(engine.validate().findings, []);
            poke(at, 56, 0x22);
            let bytes = only_bytes(engine);
            assert_eq!(
                (bytes.kind, bytes.offset),
                (Fault::Damage(DamageKind::KmallocRedzone), Some(56))
            );
            log();
            let object = heap.realloc(object, layout(56), 112);
            object.write_bytes(0x33, 112);
            heap.dealloc(object, layout(112));
            assert_eq!(engine.validate().findings, []);
            assert_eq!(log(), "");
        }
    }
}

#[test]
fn flags_that_make_slabs_larger_can_be_avoided() {
    let engine = Engine::new(EngineConfig {
        debug: Some("FZPUO"),
        ..config(Policy::Hybrid)
    });
    let engine = engine.unwrap();
    let sizes = [64, 4096].map(|size| {
        let layout = Layout::from_size_align(size, 8).unwrap();
        let cache = CacheBuilder::new(&engine, "sb", layout).build().unwrap();
        let id = cache.id() as usize;
        let snapshot = &engine.snapshot().caches[id];
        (snapshot.policy, snapshot.slab_size)
    });
    assert_eq!(sizes, [(None, 160), (None, 4096)]);
}

#[inline(never)]
fn allocates_here(cache: &Cache) -> NonNull<u8> {
    std::hint::black_box(cache.alloc().unwrap())
}

#[inline(never)]
fn frees_here(cache: &Cache, object: NonNull<u8>) {
    free(cache, object);
    std::hint::black_box(());
}

#[test]
fn tracks_name_the_functions_that_allocated_and_freed() {
    each("FZPU", |engine, cache| {
        let object = allocates_here(cache);
        frees_here(cache, object);
        poke(object, 1, 0);
        let bytes = only_bytes(engine);
        let (allocated, freed) = (bytes.allocated.unwrap(), bytes.freed.unwrap());
        let function = |at: u64| function_of(at as usize - 1);
        assert_eq!(
            function(allocated.caller),
            allocates_here as *const () as usize
        );
        // A function that does nothing but call another one may be merged with it.
        let freeing = [
            frees_here as *const () as usize,
            self::free as *const () as usize,
        ];
        assert!(freeing.contains(&function(freed.caller)));
        assert!(allocated.time_ns <= freed.time_ns && allocated.stack.is_some());
        // SAFETY: no preconditions.
        let thread = unsafe { libc::gettid() }.cast_unsigned();
        assert_eq!((allocated.thread, freed.thread), (thread, thread));
        log();
        goes_on(engine, cache, &[object]);
    });
}

#[test]
fn traced_operations_are_printed() {
    let engine = Engine::new(config(Policy::Hybrid)).unwrap();
    let cache = cache(&engine, "sb-trace", 64, "TZ");
    let object = cache.alloc().unwrap();
    assert!(log().contains(&format!(
        "TRACE sb-trace alloc 0x{:016x} inuse=1",
        object.addr()
    )));
    free(&cache, object);
    assert!(log().contains(&format!("TRACE sb-trace free 0x{:016x}", object.addr())));
    assert_eq!(engine.snapshot().caches[0].debug.unwrap().faults, 0);
}

#[test]
fn pointers_freed_without_a_cache_are_checked_too() {
    let engine = Engine::new(config(Policy::Hybrid)).unwrap();
    let cache = cache(&engine, "sb-64", 64, "FZPU");
    let object = cache.alloc().unwrap();
    let inside = NonNull::new(object.as_ptr().wrapping_add(3)).unwrap();
    // SAFETY: an interior pointer of a debug cache is refused.
    assert!(!unsafe { engine.free(inside) });
    assert!(log().contains("): Invalid object pointer 0x"));
    // SAFETY: freed once.
    assert!(unsafe { engine.free(object) });
    assert_eq!((log().as_str(), cache.counters().live()), ("", 0));
}

#[test]
fn a_loaded_program_has_no_findings() {
    let ms = std::env::var("SLABCORE_STRESS_MS")
        .ok()
        .and_then(|ms| ms.parse().ok())
        .unwrap_or(500);
    for policy in Policy::ALL {
        let config = EngineConfig {
            debug: Some("FZPU"),
            nodes: 2,
            ..config(policy)
        };
        let engine = Engine::new(config).unwrap();
        let classes = Kmalloc::new(&engine, policy).unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_millis(ms);
        std::thread::scope(|scope| {
            for seed in 1..=3u64 {
                let classes = &classes;
                scope.spawn(move || {
                    let (mut held, mut random) = (Vec::new(), seed);
                    while std::time::Instant::now() < end {
                        random = random
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        if held.len() < 200 && random >> 63 == 0 {
                            let size = 1 + (random >> 33) as usize % 700;
                            let object = classes.alloc(size).unwrap();
                            // SAFETY: the object is ours and that large.
                            unsafe { object.as_ptr().write_bytes(random as u8, size) };
                            held.push((object, size));
                        } else if !held.is_empty() {
                            let at = (random >> 33) as usize % held.len();
                            let (object, size) = held.swap_remove(at);
                            // SAFETY: ours, freed once.
                            unsafe { classes.free(object, size) };
                        }
                    }
                    for (object, size) in held {
                        // SAFETY: as above.
                        unsafe { classes.free(object, size) };
                    }
                    assert_eq!(log(), "");
                });
            }
            let mut rounds = 0;
            while std::time::Instant::now() < end {
                let found = engine.validate();
                assert_eq!(found.findings, []);
                rounds += 1;
            }
            assert!(rounds > 2);
        });
        assert_eq!(log(), "");
    }
}

#[test]
fn a_fault_aborts_if_so_configured() {
    const CHILD: &str = "SLABCORE_TEST_ABORTS";
    if std::env::var_os(CHILD).is_some() {
        let config = EngineConfig {
            report: Report::Stderr,
            on_fault: OnFault::Abort,
            ..config(Policy::Hybrid)
        };
        let engine = Engine::new(config).unwrap();
        let cache = cache(&engine, "sb-abort", 64, "FZPU");
        let object = cache.alloc().unwrap();
        free(&cache, object);
        free(&cache, object);
        unreachable!("the second free aborts");
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_fault_aborts_if_so_configured", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("BUG sb-abort (Not tainted): Object already free"),
        "{text}"
    );
    assert!(text.contains("Allocated in debug") && text.contains("Freed in debug"));
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, Some(6));
}

#[test]
fn allocations_fail_on_purpose() {
    let engine = Engine::new(EngineConfig {
        fail_every: 3,
        ..config(Policy::Hybrid)
    });
    let engine = engine.unwrap();
    let (failing, other) = (
        cache(&engine, "sb-fail", 64, "A"),
        cache(&engine, "sb-fine", 64, "FZ"),
    );
    let works = |cache: &Cache| [(); 7].map(|()| cache.alloc().is_some());
    let every_third = [true, true, false, true, true, false, true];
    assert_eq!((works(&failing), works(&other)), (every_third, [true; 7]));
    assert_eq!(failing.counters().live(), 5);
}

/// A report and its data are of the same fault.
#[test]
fn findings_of_operations_are_data_too() {
    thread_local!(static FOUND: std::cell::RefCell<Vec<Finding>> = const { std::cell::RefCell::new(Vec::new()) });
    fn note(text: &str, findings: &[Finding]) {
        assert_eq!(
            text.matches("\nBUG sb-64 (").count(),
            findings.len(),
            "{text}"
        );
        FOUND.with_borrow_mut(|found| found.extend_from_slice(findings));
    }
    for policy in Policy::ALL {
        let engine = Engine::new(EngineConfig {
            report: Report::Findings(note),
            ..config(policy)
        })
        .unwrap();
        let cache = cache(&engine, "sb-64", 64, "FZPU");
        let (first, second) = (cache.alloc().unwrap(), cache.alloc().unwrap());
        poke(first, 64, 0x12);
        free(&cache, first);
        free(&cache, second);
        free(&cache, second);
        let inside = NonNull::new(second.as_ptr().wrapping_add(1)).unwrap();
        free(&cache, inside);
        let found = FOUND.take();
        let kinds: Vec<_> = found.iter().map(|finding| finding.kind).collect();
        let pointer = inside.addr().get();
        assert_eq!(
            kinds,
            [
                Fault::Damage(DamageKind::RightRedzone),
                Fault::AlreadyFree,
                Fault::InvalidPointer { pointer }
            ]
        );
        assert_eq!((found[0].object, found[0].offset), (Some(0), Some(64)));
        assert_eq!((found[1].object, found[2].object), (Some(1), None));
        assert!(found[1].allocated.is_some() && found[1].freed.is_some());
        let slab = found[0].slab.unwrap();
        assert!(found.iter().all(|finding| finding.slab == Some(slab)));
        assert!(found.iter().all(|finding| finding.cache == cache.id()));
    }
}
