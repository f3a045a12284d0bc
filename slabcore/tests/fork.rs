//! A child of a fork may use every engine at once, whatever other threads were doing.
//!
//! `SLABCORE_STRESS_MS` makes each storm as long as that.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used, clippy::needless_for_each)]

use slabcore::{Cache, CacheBuilder, Decommit, Engine, EngineConfig, Policy};
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

struct Object(NonNull<u8>);
// SAFETY: an object is owned by whoever holds this value.
unsafe impl Send for Object {}

impl Object {
    fn new(cache: &Cache, stamp: u64) -> Self {
        let at = cache.alloc().unwrap();
        // SAFETY: the object is new and has at least 64 bytes.
        unsafe { at.cast::<[u64; 8]>().write([stamp; 8]) };
        Self(at)
    }

    fn free(self, cache: &Cache, stamp: u64) {
        // SAFETY: the object is ours, of this cache, and freed once.
        unsafe {
            assert_eq!(self.0.cast::<[u64; 8]>().read(), [stamp; 8]);
            cache.free(self.0);
        }
    }
}

fn engine() -> Engine {
    let config = EngineConfig {
        nodes: 2,
        decommit: Decommit::AfterMs(1),
        ..EngineConfig::new()
    };
    Engine::new(config).unwrap()
}

/// A cache on each policy, and a debug cache.
fn caches(engine: &Engine) -> Vec<Cache> {
    let builder = |name| CacheBuilder::new(engine, name, Layout::new::<[u64; 8]>());
    let plain = Policy::ALL.map(|policy| builder(policy.name()).policy(policy).build().unwrap());
    let debug = builder("debug").debug_flags("FZPU".parse().unwrap());
    plain.into_iter().chain([debug.build().unwrap()]).collect()
}

/// Runs in a child; true if it came to its end and found all well.
fn in_child(work: impl FnOnce()) -> bool {
    // SAFETY: the child uses the engine, which is what is tested, its own threads, and the
    // C library, which handles forks; it ends without running anything of the parent's.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            libc::alarm(30);
            let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok();
            libc::_exit(i32::from(!well));
        }
        let mut status = 1;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        status == 0
    }
}

type Work<'w> = Box<dyn FnOnce() + Send + 'w>;

/// Runs each in a thread of its own and waits for them. Not Rust's threads: their list has a
/// lock that a thread of the parent may have held at the fork, and nobody resets it.
fn run_threads(all: Vec<Work<'_>>) {
    extern "C" fn run(work: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: made by `Box::into_raw` below, and this thread's alone.
        let work: Box<Work<'_>> = unsafe { Box::from_raw(work.cast()) };
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(*work)).is_ok();
        usize::from(!well) as *mut _
    }
    let threads: Vec<_> = all
        .into_iter()
        .map(|work| {
            let (mut thread, work) = (0, Box::into_raw(Box::new(work)));
            // SAFETY: the work outlives the thread, which is waited for below.
            let made = unsafe {
                libc::pthread_create(&raw mut thread, std::ptr::null(), run, work.cast())
            };
            assert_eq!(made, 0);
            thread
        })
        .collect();
    for thread in threads {
        let mut failed = std::ptr::null_mut();
        // SAFETY: made above and waited for once.
        assert_eq!(unsafe { libc::pthread_join(thread, &raw mut failed) }, 0);
        assert!(failed.is_null());
    }
}

/// Uses the caches in every way.
fn use_all(engine: &Engine, caches: &[Cache], n: usize) {
    assert_eq!(engine.validate().findings, []);
    let objects: Vec<Vec<_>> = caches
        .iter()
        .map(|cache| (0..n).map(|i| Object::new(cache, i as u64)).collect())
        .collect();
    let work = caches.iter().zip(objects).map(|(cache, objects)| {
        let work = move || {
            let more: Vec<_> = (0..n).map(|_| Object::new(cache, 7)).collect();
            more.into_iter().for_each(|object| object.free(cache, 7));
            for (i, object) in objects.into_iter().enumerate() {
                object.free(cache, i as u64);
            }
        };
        Box::new(work) as Work<'_>
    });
    run_threads(work.collect());
    caches.iter().for_each(Cache::shrink);
    engine.tick();
    assert_eq!(engine.validate().findings, []);
}

#[test]
fn what_idle_threads_had_at_hand_is_not_lost_in_a_child() {
    let engine = engine();
    let caches = caches(&engine);
    let (ready, end) = (Barrier::new(4), Barrier::new(4));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for cache in &caches {
                    let objects: Vec<_> = (0..500).map(|_| Object::new(cache, 3)).collect();
                    objects.into_iter().for_each(|object| object.free(cache, 3));
                }
                ready.wait();
                end.wait();
            });
        }
        ready.wait();
        assert!(engine.snapshot().used > 0);
        let well = in_child(|| {
            use_all(&engine, &caches, 300);
            let again = in_child(|| {
                use_all(&engine, &caches, 300);
                assert_eq!(engine.snapshot().used, 0, "every page came back");
            });
            assert!(again, "a child of the child");
            assert_eq!(engine.snapshot().used, 0, "every page came back");
        });
        end.wait();
        assert!(well);
    });
    for cache in caches {
        assert_eq!(cache.destroy(), Ok(()));
    }
    assert_eq!(engine.snapshot().used, 0);
}

#[test]
fn a_child_may_end_caches_and_engines() {
    let engine = engine();
    let caches = caches(&engine);
    let kept: Vec<_> = caches.iter().map(|cache| Object::new(cache, 5)).collect();
    let mut caches = Some(caches);
    let well = in_child(|| {
        let own = self::engine();
        use_all(&own, &self::caches(&own), 100);
        drop(own);
        for (cache, object) in caches.take().unwrap().into_iter().zip(&kept) {
            assert_eq!(cache.destroy().unwrap_err().objects, 1);
            // SAFETY: still in use, though its cache has ended.
            unsafe { assert_eq!(object.0.cast::<[u64; 8]>().read(), [5; 8]) };
        }
    });
    assert!(well);
    for (cache, object) in caches.unwrap().into_iter().zip(kept) {
        object.free(&cache, 5);
        assert_eq!(cache.destroy(), Ok(()), "what a child does stays there");
    }
}

/// Threads that use all caches, free what others made, and end.
fn hammer(
    caches: &[Cache],
    passed: &Mutex<Vec<(usize, Object)>>,
    stop: &AtomicBool,
    ops: &AtomicU64,
) {
    while !stop.load(Ordering::Relaxed) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20 {
                    for (of, cache) in caches.iter().enumerate() {
                        let mut objects: Vec<_> = (0..150).map(|_| Object::new(cache, 1)).collect();
                        let rest = objects.split_off(100);
                        let pass = rest.into_iter().map(|object| (of, object));
                        let mut passed = passed.lock().unwrap();
                        passed.extend(pass);
                        let others = passed.len().saturating_sub(2000);
                        let others: Vec<_> = passed.drain(..others).collect();
                        drop(passed);
                        for (of, object) in others {
                            object.free(&caches[of], 1);
                        }
                        objects.into_iter().for_each(|object| object.free(cache, 1));
                        ops.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        });
    }
}

/// The forking thread goes on in the child with what it had, whoever is first to use an engine.
#[test]
fn a_thread_of_the_child_leaves_the_forking_threads_slot_alone() {
    let engine = engine();
    let build = |name| CacheBuilder::new(&engine, name, Layout::new::<[u64; 8]>());
    let cache = build("own").build().unwrap();
    let parked = || -> u64 {
        let snapshot = engine.snapshot();
        let slots = &snapshot.caches[0].slots;
        slots.iter().map(|slot| slot.main + slot.spare).sum()
    };
    let objects: Vec<_> = (0..100).map(|_| Object::new(&cache, 5)).collect();
    objects
        .into_iter()
        .for_each(|object| object.free(&cache, 5));
    let mine = parked();
    assert!(mine > 0);
    let well = in_child(|| {
        for _ in 0..3 {
            let work = || {
                let objects: Vec<_> = (0..300).map(|_| Object::new(&cache, 6)).collect();
                objects
                    .into_iter()
                    .for_each(|object| object.free(&cache, 6));
            };
            run_threads(vec![Box::new(work)]);
            assert_eq!(parked(), mine, "threads that end take their own with them");
        }
        let objects: Vec<_> = (0..300).map(|_| Object::new(&cache, 7)).collect();
        objects
            .into_iter()
            .for_each(|object| object.free(&cache, 7));
        assert_eq!(engine.validate().findings, []);
    });
    assert!(well);
}

#[test]
fn a_storm_of_forks_under_load_finds_nothing_wrong() {
    let given = std::env::var("SLABCORE_STRESS_MS").ok();
    let ms = given.and_then(|ms| ms.parse().ok()).unwrap_or(1500);
    let engine = engine();
    let caches = caches(&engine);
    let (passed, stop, ops) = (
        Mutex::new(vec![]),
        AtomicBool::new(false),
        AtomicU64::new(0),
    );
    let mut forks = 0;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| hammer(&caches, &passed, &stop, &ops));
        }
        let end = Instant::now() + Duration::from_millis(ms);
        while Instant::now() < end {
            let well = in_child(|| {
                use_all(&engine, &caches, 200);
                assert!(forks % 4 != 0 || in_child(|| use_all(&engine, &caches, 100)));
            });
            forks += 1;
            if !well {
                stop.store(true, Ordering::Relaxed);
                panic!("child {forks}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(forks > 3 && ops.load(Ordering::Relaxed) > 0);
    eprintln!("{forks} forks, {} rounds", ops.load(Ordering::Relaxed));
    for (of, object) in passed.into_inner().unwrap() {
        object.free(&caches[of], 1);
    }
    use_all(&engine, &caches, 100);
    for cache in caches {
        assert_eq!(cache.destroy(), Ok(()), "the parent lost nothing");
    }
    assert_eq!(engine.snapshot().used, 0);
}
