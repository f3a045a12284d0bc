//! The engine at odd times: while a thread ends, while it unwinds, from hooks and
//! constructors, and from very many threads. This program runs on it.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used, clippy::needless_for_each)]

use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, OnFault, Policy, Report, SlabAlloc};
use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, OnceLock};

#[global_allocator]
static GLOBAL: SlabAlloc = SlabAlloc::new();

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: the tests free each object once, to where it came from.
    unsafe { cache.free(object) };
}

fn sound() {
    assert_eq!(GLOBAL.engine().unwrap().validate().findings, []);
}

#[test]
fn hooks_and_destructors_of_a_panic_may_allocate() {
    struct Noisy(Vec<String>);
    impl Drop for Noisy {
        fn drop(&mut self) {
            for i in 0..300 {
                self.0.push(format!("while unwinding {i}"));
            }
        }
    }
    static TOLD: Mutex<Vec<String>> = Mutex::new(vec![]);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let words = info.to_string();
        if !words.contains("on purpose") {
            before(info);
        }
        let mut told = TOLD.lock().unwrap();
        told.extend(words.split(' ').map(str::to_owned));
    }));
    for round in 0..20 {
        let thread = std::thread::spawn(move || {
            let _noisy = Noisy(vec![String::new(); 100]);
            let parts: Vec<Box<[u8]>> = (1..200).map(|n| vec![1; n * 7].into()).collect();
            assert!(parts.len() < 10, "on purpose {round}");
        });
        let payload = thread.join().unwrap_err();
        assert!(
            payload
                .downcast_ref::<String>()
                .unwrap()
                .contains("on purpose")
        );
    }
    assert!(TOLD.lock().unwrap().len() > 20);
    sound();
}

#[test]
fn thread_locals_may_allocate_when_they_end() {
    #[allow(clippy::vec_box)]
    struct Last(Vec<Box<[u64; 3]>>);
    impl Drop for Last {
        fn drop(&mut self) {
            // The first of the two that ends brings the other to life again, or not.
            let _ = SECOND.try_with(|second| second.borrow_mut().push("late".repeat(50)));
            self.0.extend((0..500).map(|n| Box::new([n; 3])));
            SUM.fetch_add(self.0.iter().map(|n| n[2]).sum(), Ordering::Relaxed);
        }
    }
    static SUM: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static FIRST: RefCell<Last> = const { RefCell::new(Last(vec![])) };
        static SECOND: RefCell<Vec<String>> = const { RefCell::new(vec![]) };
    }
    /// Runs after the engine has taken the thread's slot back, and again and again.
    extern "C" fn very_late(left: *mut libc::c_void) {
        drop(std::hint::black_box(vec![left as usize; 100]));
        let left = left as usize - 1;
        // SAFETY: the key exists; the value is a number.
        unsafe { libc::pthread_setspecific(*KEY.get().unwrap(), left as *const _) };
    }
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    let key = *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a new key with a destructor that may run on any thread.
        let made = unsafe { libc::pthread_key_create(&raw mut key, Some(very_late)) };
        assert_eq!(made, 0);
        key
    });
    for _ in 0..20 {
        std::thread::spawn(move || {
            SECOND.with_borrow_mut(|second| second.push("early".to_owned()));
            FIRST.with_borrow_mut(|first| first.0.push(Box::new([1; 3])));
            // SAFETY: the key exists; the value is a number.
            unsafe { libc::pthread_setspecific(key, 3usize as *const _) };
        })
        .join()
        .unwrap();
    }
    assert_eq!(SUM.load(Ordering::Relaxed), 20 * (1 + 499 * 500 / 2));
    sound();
}

#[test]
fn constructors_and_reports_may_allocate() {
    static OTHER: OnceLock<Cache> = OnceLock::new();
    static TOLD: Mutex<Vec<String>> = Mutex::new(vec![]);
    fn constructor(at: *mut u8) {
        let other = OTHER.get().unwrap();
        let objects: Vec<_> = (0..40).map(|_| other.alloc().unwrap()).collect();
        objects.into_iter().for_each(|object| free(other, object));
        // SAFETY: the engine constructs an object of eight bytes at least.
        unsafe { at.write(b'c') };
    }
    fn sink(text: &str) {
        let other = OTHER.get().unwrap();
        let object = other.alloc().unwrap();
        TOLD.lock().unwrap().extend(text.lines().map(str::to_owned));
        free(other, object);
    }
    let engine = Engine::new(EngineConfig {
        report: Report::Call(sink),
        on_fault: OnFault::Quarantine,
        ..EngineConfig::new()
    });
    let engine = engine.unwrap();
    let builder = |name| CacheBuilder::new(&engine, name, Layout::new::<[u64; 8]>());
    let other = builder("other").debug_flags("FZPU".parse().unwrap());
    OTHER.set(other.build().unwrap()).unwrap();
    for policy in Policy::ALL {
        let cache = builder("constructed").policy(policy).ctor(constructor);
        let cache = cache.build().unwrap();
        let objects: Vec<_> = (0..500).map(|_| cache.alloc().unwrap()).collect();
        for object in objects {
            // SAFETY: the constructor has written the byte.
            assert_eq!(unsafe { object.as_ptr().read() }, b'c');
            free(&cache, object);
        }
        assert_eq!(cache.destroy(), Ok(()));
    }
    let object = OTHER.get().unwrap().alloc().unwrap();
    free(OTHER.get().unwrap(), object);
    free(OTHER.get().unwrap(), object);
    assert!(
        TOLD.lock()
            .unwrap()
            .iter()
            .any(|line| line.contains("already free"))
    );
    assert_eq!(engine.validate().findings, []);
    sound();
}

#[test]
fn a_thousand_threads_use_every_policy_at_once() {
    const THREADS: usize = 1000;
    const EACH: usize = 20;
    struct Object(NonNull<u8>);
    // SAFETY: an object is owned by whoever holds this value.
    unsafe impl Send for Object {}
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let caches = Policy::ALL.map(|policy| {
        let layout = Layout::new::<[usize; 8]>();
        let builder = CacheBuilder::new(&engine, policy.name(), layout);
        builder.policy(policy).build().unwrap()
    });
    let all_there = Barrier::new(THREADS);
    let passed: Vec<_> = (0..THREADS).map(|_| Mutex::new(vec![])).collect();
    std::thread::scope(|scope| {
        for i in 0..THREADS {
            let (caches, all_there, passed) = (&caches, &all_there, &passed);
            let thread = std::thread::Builder::new().stack_size(64 << 10);
            let work = move || {
                let mut mine = passed[i].lock().unwrap();
                for (of, cache) in caches.iter().enumerate() {
                    for _ in 0..EACH {
                        let object = cache.alloc().unwrap();
                        // SAFETY: the object is new and eight words large.
                        unsafe { object.cast::<[usize; 8]>().write([i; 8]) };
                        mine.push((of, Object(object)));
                    }
                }
                drop(mine);
                all_there.wait();
                let other = (i + 1) % THREADS;
                for (of, object) in passed[other].lock().unwrap().drain(..) {
                    // SAFETY: whole, and ours now.
                    assert_eq!(unsafe { object.0.cast::<[usize; 8]>().read() }, [other; 8]);
                    free(&caches[of], object.0);
                }
            };
            thread.spawn_scoped(scope, work).unwrap();
        }
    });
    for cache in caches {
        let counters = cache.counters();
        assert_eq!(
            (counters.live(), counters.allocs()),
            (0, (THREADS * EACH) as u64)
        );
        assert_eq!(cache.destroy(), Ok(()));
    }
    assert_eq!(engine.validate().findings, []);
    assert_eq!(engine.snapshot().used, 0);
    sound();
}

#[test]
fn objects_outlive_their_cache_and_may_be_freed_later() {
    for policy in Policy::ALL {
        let engine = Engine::new(EngineConfig::new()).unwrap();
        let builder = |name| CacheBuilder::new(&engine, name, Layout::new::<[u64; 8]>());
        let cache = builder("ends").policy(policy).build().unwrap();
        let objects: Vec<_> = (0..300).map(|_| cache.alloc().unwrap()).collect();
        let (kept, rest) = objects.split_at(3);
        rest.iter().for_each(|object| free(&cache, *object));
        let id = cache.id();
        assert_eq!(cache.destroy().unwrap_err().objects, 3, "{policy:?}");
        let next = builder("next").policy(policy).build().unwrap();
        assert_ne!(
            next.id(),
            id,
            "the place of a cache with objects is not used again"
        );
        assert_eq!(engine.validate().findings, []);
        for object in kept {
            // SAFETY: the object is in use, of this engine, and freed once.
            assert!(unsafe { engine.free(*object) });
        }
        let more: Vec<_> = (0..300).map(|_| next.alloc().unwrap()).collect();
        assert!(!more.contains(&kept[0]));
        more.into_iter().for_each(|object| free(&next, object));
        assert_eq!(engine.validate().findings, [], "{policy:?}");
        assert_eq!(next.destroy(), Ok(()));
    }
}

#[test]
fn threads_that_allocate_first_at_the_same_time_share_one_engine() {
    use std::alloc::GlobalAlloc;
    for _ in 0..10 {
        let fresh = SlabAlloc::new();
        let together = Barrier::new(8);
        let layout = Layout::new::<[u64; 8]>();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    // SAFETY: the layout has a size; the object is freed once, with it.
                    unsafe {
                        let object = fresh.alloc(layout);
                        assert!(!object.is_null());
                        fresh.dealloc(object, layout);
                    }
                });
            }
        });
        let engine = fresh.engine().unwrap();
        let counts = engine.snapshot().caches.into_iter().map(|cache| {
            assert_eq!(cache.objects, 0);
            cache.counters.allocs()
        });
        assert_eq!(counts.sum::<u64>(), 8, "all in one");
        assert_eq!(engine.validate().findings, []);
    }
}
