//! Planted faults in real memory: each is detected, named and located to the byte, and the engine goes on.
//!
//! The list is that of the kernel's `slub_kunit`, and what it leaves out. Everything runs under each policy, which a
//! debug cache must not be able to tell apart.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

use slabcore::classes::Kmalloc;
use slabcore::debug::check::DamageKind;
use slabcore::debug::depot::function_of;
use slabcore::debug::layout::ObjectLayout;
use slabcore::slab::NONE;
use slabcore::validate::{Bytes, Fault};
use slabcore::{
    Address, Cache, CacheBuilder, DebugFlags, Engine, EngineConfig, OnFault, Policy, Report,
    SlabAlloc,
};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::RefCell;
use std::ptr::NonNull;

thread_local!(static LOG: RefCell<String> = const { RefCell::new(String::new()) });

fn keep(text: &str) {
    LOG.with_borrow_mut(|log| log.push_str(text));
}

/// What was reported on this thread since the last call.
fn log() -> String {
    LOG.take()
}

fn config(policy: Policy) -> EngineConfig {
    EngineConfig {
        policy,
        report: Report::Call(keep),
        ..EngineConfig::new()
    }
}

/// An engine and a cache of 64-byte objects with some of them live, under each policy.
fn each(flags: &str, test: impl Fn(&Engine, &Cache)) {
    for policy in Policy::ALL {
        let engine = Engine::new(config(policy)).unwrap();
        let cache = cache(&engine, "sb-64", 64, flags);
        let bystanders: Vec<_> = (0..5).map(|_| cache.alloc().unwrap()).collect();
        test(&engine, &cache);
        goes_on(&engine, &cache, &[]);
        for object in bystanders {
            free(&cache, object);
        }
        assert_eq!(log(), "", "{policy:?}: bystanders are whole");
    }
}

fn cache(engine: &Engine, name: &str, size: usize, flags: &str) -> Cache {
    let layout = Layout::from_size_align(size, 8).unwrap();
    let flags = flags.parse().unwrap();
    let builder = CacheBuilder::new(engine, name, layout);
    builder.debug_flags(flags).build().unwrap()
}

/// The engine still works and is sound, and none of `gone` is handed out again.
fn goes_on(engine: &Engine, cache: &Cache, gone: &[NonNull<u8>]) {
    assert_eq!(engine.validate().findings, [], "the repair holds");
    let objects: Vec<_> = (0..300).map(|_| cache.alloc().unwrap()).collect();
    for object in &objects {
        assert!(!gone.contains(object), "an object in quarantine came back");
        // SAFETY: the object is ours and at least that large.
        unsafe { object.as_ptr().write_bytes(0x77, cache.object_size()) };
    }
    assert_eq!(engine.validate().findings, []);
    for object in objects {
        free(cache, object);
    }
    assert_eq!(engine.validate().findings, []);
    assert_eq!(log(), "", "nothing more to report");
}

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: what must not be freed is what the tests are about; a debug cache refuses it.
    unsafe { cache.free(object) };
}

/// Writes a byte somewhere around an object, as the faulty program does.
fn poke(object: NonNull<u8>, at: isize, value: u8) {
    // SAFETY: the address is in the object's slab, which is mapped.
    unsafe { object.as_ptr().offset(at).write_volatile(value) };
}

fn peek(object: NonNull<u8>, at: isize) -> u8 {
    // SAFETY: as above.
    unsafe { object.as_ptr().offset(at).read_volatile() }
}

fn faults(engine: &Engine) -> Vec<Fault> {
    let found = engine.validate().findings;
    found.iter().map(|finding| finding.fault).collect()
}

/// The only finding, which must be about bytes.
fn only_bytes(engine: &Engine) -> Bytes {
    match faults(engine)[..] {
        [Fault::Bytes(bytes)] => bytes,
        ref other => panic!("{other:?}"),
    }
}

/// The damage of one byte, to be found by validation.
fn one_byte(engine: &Engine, part: DamageKind, at: isize, value: u8, expected: u8) -> Bytes {
    let bytes = only_bytes(engine);
    assert_eq!(
        (bytes.part, bytes.offset, bytes.len, bytes.expected),
        (part, at, 1, Some(expected))
    );
    assert_eq!(bytes.found.bytes(), [value]);
    let log = log();
    for line in [
        format!("[{part}] 0x"),
        format!("First byte 0x{value:x} instead of 0x{expected:x}"),
        "BUG sb-64 (".into(),
        "): Object corrupt\n".into(),
        format!("FIX sb-64: Restoring {} 0x", part.what()),
    ] {
        assert!(log.contains(&line), "{line} is not in\n{log}");
    }
    bytes
}

#[test]
fn a_write_outside_a_live_object_is_found_and_the_object_retired() {
    for (flags, at, part) in [
        ("FZPU", 64, DamageKind::RightRedzone),
        ("Z", 64, DamageKind::RightRedzone),
        ("FZPU", -1, DamageKind::LeftRedzone),
        ("FZ", -1, DamageKind::LeftRedzone),
    ] {
        each(flags, |engine, cache| {
            let object = cache.alloc().unwrap();
            poke(object, at, 0x12);
            let bytes = one_byte(engine, part, at, 0x12, 0xcc);
            assert_eq!(bytes.allocated.is_some(), flags.contains('U'));
            assert_eq!(bytes.freed, None);
            assert_eq!(peek(object, at), 0xcc);
            goes_on(engine, cache, &[object]);
            free(cache, object);
            goes_on(engine, cache, &[object]);
            let snapshot = engine.snapshot();
            assert_eq!(snapshot.caches[0].quarantined, 1);
            assert_eq!(
                (snapshot.caches[0].faults, snapshot.caches[0].objects),
                (1, 5)
            );
        });
    }
}

#[test]
fn a_write_after_the_free_is_found() {
    for (at, part, expected) in [
        (0, DamageKind::Poison, 0x6b),
        (50, DamageKind::Poison, 0x6b),
        (63, DamageKind::EndPoison, 0xa5),
        (64, DamageKind::RightRedzone, 0xbb),
        (-1, DamageKind::LeftRedzone, 0xbb),
    ] {
        each("FZPU", |engine, cache| {
            let object = cache.alloc().unwrap();
            free(cache, object);
            poke(object, at, 0x9a);
            let bytes = one_byte(engine, part, at, 0x9a, expected);
            assert!(bytes.allocated.is_some() && bytes.freed.is_some());
            goes_on(engine, cache, &[object]);
        });
    }
}

#[test]
fn operations_find_damage_themselves() {
    each("FZPU", |engine, cache| {
        let object = cache.alloc().unwrap();
        poke(object, 64, 0x12);
        free(cache, object);
        let text = log();
        assert!(text.contains("[Right Redzone overwritten] 0x"), "{text}");
        assert!(text.contains("Allocated in 0x") && text.contains("Call Trace:"));
        assert!(text.contains(&format!(
            "FIX sb-64: Object at 0x{:016x} not freed",
            object.addr()
        )));
        goes_on(engine, cache, &[object]);
        // A second free of it is a second free.
        free(cache, object);
        assert!(log().contains("): Object already free\n"));

        let object = cache.alloc().unwrap();
        free(cache, object);
        poke(object, 7, 0x9a);
        let other = cache.alloc().unwrap();
        assert_ne!(object, other, "the damaged one is next in turn");
        let text = log();
        assert!(
            text.contains("[Poison overwritten] 0x") && text.contains("Freed in 0x"),
            "{text}"
        );
        goes_on(engine, cache, &[object]);
        free(cache, other);
    });
}

#[test]
fn freeing_twice_or_what_is_no_object_is_refused() {
    each("FZPU", |engine, cache| {
        let object = cache.alloc().unwrap();
        free(cache, object);
        let live = cache.counters().live();
        free(cache, object);
        assert!(log().contains("BUG sb-64 (Not tainted): Object already free\n"));

        let object = cache.alloc().unwrap();
        let inside = NonNull::new(object.as_ptr().wrapping_add(8)).unwrap();
        free(cache, inside);
        let address = inside.addr();
        assert!(log().contains(&format!("): Invalid object pointer 0x{address:016x}\n")));

        let mut outside = Box::new(0u64);
        let foreign = NonNull::from(&mut *outside).cast::<u8>();
        free(cache, foreign);
        let address = foreign.addr();
        let text = log();
        assert!(text.contains(&format!(
            "): Attempt to free object(0x{address:016x}) outside of slab\n"
        )));
        assert!(text.contains(&format!(
            "FIX sb-64: Object at 0x{address:016x} not freed\n"
        )));

        let second = self::cache(engine, "sb-other", 64, "FZPU");
        let others = second.alloc().unwrap();
        free(cache, others);
        assert!(
            log()
                .contains("BUG sb-64 (Tainted: G    B             ): page slab pointer corrupt.\n")
        );
        free(&second, others);
        assert_eq!(log(), "", "it was left alone");
        second.destroy().unwrap();

        assert_eq!(cache.counters().live(), live + 1);
        goes_on(engine, cache, &[]);
        free(cache, object);
    });
}

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
        assert_eq!(bytes.part, DamageKind::KmallocRedzone);
        assert_eq!(
            (bytes.offset, bytes.len, bytes.expected),
            (18, 2, Some(0xcc))
        );
        assert!(log().contains("BUG kmalloc-32 ("));
        // SAFETY: from this class, freed once.
        unsafe { classes.free(object, 18) };
        let cache = classes.class(2);
        goes_on(&engine, cache, &[object]);
    }
}

/// Where a word of the layout is, counted from the object.
fn from_object(flags: &str, of: impl Fn(&ObjectLayout) -> usize) -> isize {
    let flags: DebugFlags = flags.parse().unwrap();
    let layout = ObjectLayout::new(64, 8, flags, false, false).unwrap();
    of(&layout).cast_signed() - layout.object_at().cast_signed()
}

#[test]
fn a_damaged_free_list_is_cut_and_lost_objects_retired() {
    for flags in ["P", "FZPU", "F", "Z"] {
        let at = from_object(flags, |layout| layout.free_pointer().start);
        each(flags, |engine, cache| {
            let (a, b) = (cache.alloc().unwrap(), cache.alloc().unwrap());
            free(cache, b);
            free(cache, a);
            // The list is a, b, ...; the link of a now leads out of the slab.
            let link = peek(a, at + 1);
            poke(a, at + 1, link ^ 0x7f);
            let found = faults(engine);
            assert!(
                matches!(found[..], [Fault::BadLink { link: 0x7f00.., .. }]),
                "{found:?}"
            );
            let text = log();
            assert!(text.contains("): Freechain corrupt\n"), "{text}");
            assert!(text.contains("FIX sb-64: Isolate corrupted freechain\n"));
            assert!(
                text.contains("): Wrong object count. Counter is ")
                    && text.contains("FIX sb-64: Object count adjusted\n")
            );
            goes_on(engine, cache, &[b]);
        });
    }
}

#[test]
fn an_allocation_does_not_follow_a_damaged_link() {
    let at = from_object("FZPU", |layout| layout.free_pointer().start);
    each("FZPU", |engine, cache| {
        let (a, b) = (cache.alloc().unwrap(), cache.alloc().unwrap());
        free(cache, b);
        free(cache, a);
        poke(a, at + 1, 0x55);
        let first = cache.alloc().unwrap();
        assert_eq!(first, a, "it is whole but for its link");
        assert!(log().contains("): Freechain corrupt\n"));
        goes_on(engine, cache, &[a, b]);
        free(cache, first);
    });
}

#[test]
fn links_in_a_circle_or_to_a_live_object_are_found() {
    let at = from_object("FZPU", |layout| layout.free_pointer().start);
    let index = |engine: &Engine, object: NonNull<u8>| match engine.classify(object.as_ptr()) {
        Address::Slab { index, .. } => index,
        other => panic!("{other:?}"),
    };
    each("FZPU", |engine, cache| {
        // The list is b, a, ...; a shall lead back to b.
        let (a, b) = (cache.alloc().unwrap(), cache.alloc().unwrap());
        free(cache, a);
        free(cache, b);
        let object = index(engine, b);
        poke(a, at, object as u8);
        poke(a, at + 1, (object >> 8) as u8);
        let found = faults(engine);
        assert_eq!(found, [Fault::Cycle { object }]);
        assert!(log().contains("): Freelist cycle detected\n"));
        goes_on(engine, cache, &[]);

        let live = cache.alloc().unwrap();
        let (a, link) = (cache.alloc().unwrap(), index(engine, live));
        poke(live, 3, 0x42);
        free(cache, a);
        let object = index(engine, a);
        poke(a, at, link as u8);
        poke(a, at + 1, (link >> 8) as u8);
        // Found by the next allocation, which would have handed it out after a.
        let other = cache.alloc().unwrap();
        assert!(log().contains("): Freechain corrupt\n"));
        assert_eq!((other, index(engine, other)), (a, object));
        assert_eq!(peek(live, 3), 0x42, "the live object is left alone");
        free(cache, live);
        free(cache, other);
        goes_on(engine, cache, &[]);
    });
}

#[test]
fn padding_of_objects_and_slabs_is_checked() {
    let at = from_object("FZPU", |layout| layout.padding().start);
    each("FZPU", |engine, cache| {
        let object = cache.alloc().unwrap();
        poke(object, at + 2, 0x12);
        one_byte(engine, DamageKind::ObjectPadding, at + 2, 0x12, 0x5a);
        free(cache, object);
        goes_on(engine, cache, &[object]);

        let object = cache.alloc().unwrap();
        let snapshot = &engine.snapshot().caches[0];
        let bytes = 4096usize << snapshot.order;
        let tail_at = snapshot.objs_per_slab as usize * snapshot.slab_size as usize;
        assert!(tail_at < bytes, "this size leaves a tail");
        let slab = object.addr().get() & !(bytes - 1);
        let last = (slab + bytes - 1).cast_signed() - object.addr().get().cast_signed();
        poke(object, last, 0x34);
        let found = only_bytes(engine);
        assert_eq!((found.object, found.part), (NONE, DamageKind::SlabPadding));
        assert_eq!((found.offset, found.len), (bytes.cast_signed() - 1, 1));
        let text = log();
        assert!(
            text.contains("): Padding overwritten. 0x")
                && text.contains("FIX sb-64: Restoring slab padding 0x")
        );
        assert_eq!(peek(object, last), 0x5a);
        free(cache, object);
    });
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
        assert_eq!(text.matches("\nAllocated in 0x").count(), 1);
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
            assert_eq!((bytes.part, bytes.offset), (DamageKind::KmallocRedzone, 56));
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
        let thread = unsafe { libc::gettid() };
        assert_eq!(
            (allocated.thread, freed.thread),
            (thread as u32, thread as u32)
        );
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
    assert_eq!(engine.snapshot().caches[0].faults, 0);
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
    assert!(text.contains("Allocated in 0x") && text.contains("Freed in 0x"));
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, Some(6));
}
