//! Sampled objects on guarded pages: each fault in a process of its own, which it ends.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

use slabcore::dump::DumpOptions;
use slabcore::finding::{Fault, Finding};
use slabcore::{Address, Cache, CacheBuilder, Engine, EngineConfig, Policy, Report};
use std::alloc::Layout;
use std::cell::RefCell;
use std::process::Command;
use std::ptr::NonNull;

thread_local! {
    static FOUND: RefCell<Vec<Finding>> = const { RefCell::new(Vec::new()) };
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

fn note(text: &str, findings: &[Finding]) {
    TEXT.with_borrow_mut(|log| log.push_str(text));
    FOUND.with_borrow_mut(|found| found.extend_from_slice(findings));
}

fn make(policy: Policy, every: u32, size: usize, report: Report) -> (Engine, Cache) {
    let engine = Engine::new(EngineConfig {
        policy,
        sample_every: every,
        report,
        ..EngineConfig::new()
    })
    .unwrap();
    let layout = Layout::from_size_align(size, 8).unwrap();
    let cache = CacheBuilder::new(&engine, "sampled", layout)
        .build()
        .unwrap();
    (engine, cache)
}

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: objects of this cache; what breaks the contract is what the tests are about.
    unsafe { cache.free(object) };
}

fn is_guarded(engine: &Engine, object: NonNull<u8>) -> bool {
    matches!(engine.classify(object.as_ptr()), Address::Guarded { start, .. } if start == object.addr().get())
}

/// One object at the end of its page and one at its start.
fn both(engine: &Engine, cache: &Cache) -> [NonNull<u8>; 2] {
    let objects = [(); 2].map(|()| cache.alloc().unwrap());
    assert!(objects.iter().all(|object| is_guarded(engine, *object)));
    let page = |object: &NonNull<u8>| object.addr().get() % 4096;
    let [left, right] = if page(&objects[0]) == 0 {
        objects
    } else {
        [objects[1], objects[0]]
    };
    assert_eq!((page(&left), page(&right)), (0, 4096 - cache.object_size()));
    [left, right]
}

#[test]
fn one_allocation_in_n_is_guarded_and_all_of_them_come_back() {
    for policy in Policy::ALL {
        let (engine, cache) = make(policy, 10, 64, Report::Findings(note));
        let objects: Vec<_> = (0..1000).map(|_| cache.alloc().unwrap()).collect();
        let guarded = objects
            .iter()
            .filter(|object| is_guarded(&engine, **object));
        assert_eq!(guarded.count(), 100, "{policy:?}");
        let mut totals = None;
        cache.dump(DumpOptions::default(), &mut |visit| {
            if let slabcore::dump::Visit::End(end) = visit {
                totals = Some(end);
            }
            slabcore::dump::Next::On
        });
        let totals = totals.unwrap();
        assert_eq!(
            (totals.guarded, totals.allocated, totals.exact),
            (Some(100), 900, true)
        );
        for (i, object) in objects.iter().enumerate() {
            // SAFETY: the object is ours and has 64 bytes.
            unsafe { object.as_ptr().write_bytes(i as u8, 64) };
        }
        assert_eq!(engine.validate().findings, []);
        for (i, object) in objects.into_iter().enumerate() {
            // SAFETY: as above.
            assert_eq!(unsafe { object.as_ptr().add(63).read() }, i as u8);
            free(&cache, object);
        }
        assert_eq!(cache.counters().live(), 0, "{policy:?}");
        assert_eq!(TEXT.take(), "");
        assert!(cache.destroy().is_ok());
    }
}

#[test]
fn without_sampling_nothing_is_guarded() {
    let (engine, cache) = make(Policy::Hybrid, 0, 64, Report::Findings(note));
    let objects: Vec<_> = (0..1000).map(|_| cache.alloc().unwrap()).collect();
    assert!(!objects.iter().any(|object| is_guarded(&engine, *object)));
    for object in objects {
        free(&cache, object);
    }
    let fast = cache.counters().get(slabcore::stats::Stat::FreeFastpath);
    assert!(fast > 900, "{fast}");
}

#[test]
fn a_full_pool_is_passed_by_and_the_oldest_slot_is_used_first() {
    let (engine, cache) = make(Policy::Hybrid, 1, 64, Report::Findings(note));
    let objects: Vec<_> = (0..300).map(|_| cache.alloc().unwrap()).collect();
    let (inside, beside): (Vec<_>, Vec<_>) = objects
        .into_iter()
        .partition(|object| is_guarded(&engine, *object));
    assert_eq!((inside.len(), beside.len()), (255, 45));
    free(&cache, inside[7]);
    free(&cache, inside[3]);
    let page = |object: NonNull<u8>| object.addr().get() / 4096;
    let again = cache.alloc().unwrap();
    assert_eq!(page(again), page(inside[7]));
    for (i, object) in inside
        .into_iter()
        .enumerate()
        .filter(|(i, _)| ![3, 7].contains(i))
    {
        assert!(i < 255);
        free(&cache, object);
    }
    for object in beside.into_iter().chain([again]) {
        free(&cache, object);
    }
    assert_eq!((cache.counters().live(), &*TEXT.take()), (0, ""));
}

#[test]
fn wrong_frees_and_overwritten_rests_are_told_when_they_are_freed() {
    for policy in Policy::ALL {
        let (engine, cache) = make(policy, 1, 60, Report::Findings(note));
        let object = cache.alloc().unwrap();
        assert!(is_guarded(&engine, object));
        let inside = NonNull::new(object.as_ptr().wrapping_add(8)).unwrap();
        free(&cache, inside);
        // SAFETY: the byte behind the object is of its page.
        unsafe { object.as_ptr().add(60).write(1) };
        free(&cache, object);
        free(&cache, object);
        let kinds: Vec<_> = FOUND.take().iter().map(|finding| finding.kind).collect();
        let pointer = inside.addr().get();
        let expected = [
            Fault::InvalidPointer { pointer },
            Fault::Guarded,
            Fault::AlreadyFree,
        ];
        assert_eq!(kinds, expected, "{policy:?}");
        let text = TEXT.take();
        for part in [
            "BUG: KFENCE: invalid free in guarded",
            &format!("Invalid free of 0x{pointer:016x} (in kfence-#0):\n"),
            "BUG: KFENCE: memory corruption in guarded",
            &format!(
                "Corrupted memory at 0x{:016x} (in kfence-#0):\n",
                object.addr().get() + 60
            ),
            "size=60, cache=sampled\n",
            "\nallocated by task ",
            "\nfreed by task ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(cache.counters().live(), 0);
    }
}

#[test]
fn an_object_that_stays_is_told_as_a_leak() {
    let (_engine, cache) = make(Policy::Hybrid, 1, 64, Report::Findings(note));
    cache.alloc().unwrap();
    assert_eq!(cache.destroy().unwrap_err().objects, 1);
}

/// What the child does, chosen by an environment variable.
#[test]
fn child() {
    let Ok(fault) = std::env::var("GUARDED_FAULT") else {
        return;
    };
    let policy = std::env::var("GUARDED_POLICY").unwrap();
    let policy = Policy::from_name(&policy).unwrap();
    let (engine, cache) = make(policy, 1, 64, Report::Stderr);
    assert!(engine.catch_guard_faults() && engine.catch_guard_faults());
    let [left, right] = both(&engine, &cache);
    // SAFETY: each access is the fault that the test is about; the page is not accessible.
    unsafe {
        match &*fault {
            "overflow" => right.as_ptr().add(64).write_volatile(1),
            "underflow" => assert!(left.as_ptr().sub(1).read_volatile() < 1),
            "after-free" => {
                cache.free(right);
                assert!(right.as_ptr().add(9).read_volatile() < 1);
            }
            "elsewhere" => assert!(std::ptr::without_provenance::<u8>(8).read_volatile() < 1),
            _ => {}
        }
    }
    unreachable!("the fault ends the process");
}

/// Runs the child; what it wrote, and whether the signal ended it.
fn fault(name: &str, policy: Policy) -> (String, Option<i32>) {
    use std::os::unix::process::ExitStatusExt as _;
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env("GUARDED_FAULT", name)
        .env("GUARDED_POLICY", policy.name())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (text, output.status.signal())
}

#[test]
fn an_access_beside_or_after_is_named_and_located() {
    for (policy, name, parts) in [
        (
            Policy::Hybrid,
            "overflow",
            ["out-of-bounds write in guarded", "(1B right of kfence-#"],
        ),
        (
            Policy::Sheaves,
            "underflow",
            ["out-of-bounds read in guarded", "(1B left of kfence-#"],
        ),
        (
            Policy::Classic,
            "after-free",
            ["use-after-free read in guarded", "(in kfence-#"],
        ),
        (
            Policy::Hybrid,
            "after-free",
            ["use-after-free read in guarded", "(in kfence-#"],
        ),
    ] {
        let (text, signal) = fault(name, policy);
        assert_eq!(signal, Some(libc_sigsegv()), "{name}: {text}");
        if cfg!(target_arch = "x86_64") {
            assert!(text.contains(parts[0]), "{name}: {text}");
        }
        for part in [parts[1], "size=64, cache=sampled\n", "\nallocated by task "] {
            assert!(text.contains(part), "{name}: {part}: {text}");
        }
        assert_eq!(text.contains("\nfreed by task "), name == "after-free");
        assert_eq!(text.matches("BUG: KFENCE").count(), 1, "{name}: {text}");
    }
}

#[test]
fn other_faults_are_left_alone() {
    let (text, signal) = fault("elsewhere", Policy::Hybrid);
    assert_eq!(signal, Some(libc_sigsegv()), "{text}");
    assert!(!text.contains("KFENCE"), "{text}");
}

const fn libc_sigsegv() -> i32 {
    11
}
