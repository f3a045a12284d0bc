//! An engine seen from outside tells what it tells of itself; here the outside is this process.
#![cfg(not(any(loom, shuttle)))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

use slabcore::dump::{DumpOptions, Next, Visit};
use slabcore::inspect::{self, Inspector, Process};
use slabcore::segment::{PublishedCache, Segment};
use slabcore::validate::Validation;
use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, EngineSnapshot, Policy};
use std::alloc::Layout;
use std::fmt::Write as _;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Engines are of the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Object(NonNull<u8>);
// SAFETY: an object is owned by whoever holds this value.
unsafe impl Send for Object {}

fn segment() -> Segment {
    let found = inspect::of_process(std::process::id()).unwrap().unwrap();
    inspect::read(&found.file).unwrap()
}

fn look() -> Vec<EngineSnapshot> {
    let process = Process::open(std::process::id()).unwrap();
    let inspector = Inspector::new(process, &segment()).unwrap();
    inspector.snapshot().unwrap()
}

fn caches(engine: &Engine) -> Vec<Cache> {
    let builder = |name, size| {
        let layout = Layout::from_size_align(size, 8).unwrap();
        CacheBuilder::new(engine, name, layout)
    };
    let plain = Policy::ALL.map(|of| builder(of.name(), 72).policy(of).build().unwrap());
    let debug = builder("debug", 72).debug_flags("FZPU".parse().unwrap());
    let more = [
        debug.build().unwrap(),
        builder("large-slots", 6000).build().unwrap(),
        builder("hard", 32).harden_freelist(true).build().unwrap(),
    ];
    plain.into_iter().chain(more).collect()
}

/// Allocates and frees so that every kind of place has something.
fn work(caches: &[Cache]) -> Vec<(usize, Object)> {
    let mut kept = Vec::new();
    for (place, cache) in caches.iter().enumerate() {
        let all: Vec<_> = (0..500).map(|_| cache.alloc().unwrap()).collect();
        for (n, object) in all.into_iter().enumerate() {
            if n % 3 == 0 || n > 450 {
                kept.push((place, Object(object)));
            } else {
                // SAFETY: of this cache, ours, and freed once.
                unsafe { cache.free(object) };
            }
        }
    }
    kept
}

fn give_back(caches: &[Cache], kept: Vec<(usize, Object)>) {
    for (place, object) in kept {
        // SAFETY: of that cache, ours, and freed once.
        unsafe { caches[place].free(object.0) };
    }
}

#[test]
fn an_engine_looks_the_same_from_outside() {
    let _alone = ALONE.lock();
    let config = EngineConfig {
        nodes: 2,
        ..EngineConfig::new()
    };
    let engine = Engine::new(config).unwrap();
    let caches = caches(&engine);
    let mut kept = work(&caches);
    let large = engine.large_alloc(300_000, 8).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            for (place, object) in kept.drain(..400).collect::<Vec<_>>() {
                // SAFETY: of that cache, handed over, and freed once.
                unsafe { caches[place].free(object.0) };
            }
        });
        // Only a join waits until the thread has given its slot back.
        other.join().unwrap();
    });
    let seen = look();
    let own = engine.snapshot();
    assert_eq!(seen, [own]);
    let second = Engine::new(EngineConfig::new()).unwrap();
    assert_eq!(look(), [engine.snapshot(), second.snapshot()]);
    // SAFETY: allocated above.
    unsafe { engine.large_free(large.at) };
    give_back(&caches, kept);
}

/// Runs in a child made by `fork`; true if all was well there.
fn in_child(fork: impl FnOnce() -> i32, work: impl FnOnce() -> bool) -> bool {
    let pid = fork();
    assert!(pid >= 0);
    if pid == 0 {
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(i32::from(!well.unwrap_or(false))) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[test]
fn a_child_has_a_segment_of_its_own_and_leaves_its_parents_alone() {
    let _alone = ALONE.lock();
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let caches = caches(&engine);
    let kept = work(&caches);
    let before = segment();
    let well = in_child(
        // SAFETY: the child uses the engine and the C library, which handle forks.
        || unsafe { libc::fork() },
        || {
            let kept = work(&caches);
            let own = segment();
            let same = look() == [engine.snapshot()];
            give_back(&caches, kept);
            own.identity.pid == u64::from(std::process::id())
                && own.events_total < before.events_total
                && same
        },
    );
    assert!(well);
    // Without the library's handlers: the system alone sees to it.
    let well = in_child(
        // SAFETY: as `fork`; the child has a copy of everything.
        || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32 },
        || {
            let kept = work(&caches);
            give_back(&caches, kept);
            true
        },
    );
    assert!(well);
    let after = segment();
    assert_eq!(after.identity, before.identity);
    assert_eq!(after.events_total, before.events_total);
    assert_eq!(after.published, before.published);
    give_back(&caches, kept);
}

#[test]
fn figures_are_published_and_events_are_noted() {
    let _alone = ALONE.lock();
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let caches = caches(&engine);
    let before = segment();
    let began = std::time::Instant::now();
    let allocs = |segment: &Segment, cache: &PublishedCache| -> u64 {
        let counters = segment.counters(cache);
        let allocs =
            counters.filter(|(name, _)| name.starts_with("alloc_") && name.ends_with("path"));
        allocs.map(|(_, value)| value).sum()
    };
    let seen = loop {
        let kept = work(&caches);
        give_back(&caches, kept);
        let segment = segment();
        let published = &segment.published;
        let used = published.caches.iter().all(|of| allocs(&segment, of) > 0);
        if published.pass_ns > before.published.pass_ns && published.engines.len() == 1 && used {
            break segment;
        }
        assert!(began.elapsed().as_secs() < 20);
    };
    let own = engine.snapshot();
    let used = seen.of_engine(&seen.published.engines[0], "used");
    assert!(used.unwrap() > 0 && used.unwrap() <= own.used_peak);
    assert_eq!(seen.published.caches.len(), own.caches.len());
    for (of, own) in seen.published.caches.iter().zip(&own.caches) {
        let figure = |name| seen.of_cache(of, name);
        let policy = Policy::ALL.iter().position(|of| Some(*of) == own.policy);
        assert_eq!(of.name, own.name);
        assert_eq!(figure("policy"), Some(policy.map_or(0, |n| n as u64 + 1)));
        assert_eq!(
            figure("flags"),
            Some(own.debug.unwrap().flags.bits().into())
        );
        assert_eq!(figure("object_size"), Some(own.object_size.into()));
        // A cache's figures are not an engine's, and what is not named is not known.
        assert_eq!((figure("reserved"), figure("nothing")), (None, None));
    }
    let after = segment();
    let new = after
        .events
        .iter()
        .filter(|of| of.number > before.events_total);
    let kinds: Vec<_> = new.filter_map(|of| of.what).collect();
    assert!(kinds.contains(&slabcore::segment::Event::SlabAllocated));
    assert!(after.events.len() <= 1024 && after.events_total >= after.events.len() as u64);
    engine.validate();
    let last = segment().events.last().copied().unwrap();
    assert_eq!(last.what, Some(slabcore::segment::Event::Validate));
}

/// Chooses caches by name.
type Wanted = fn(&str) -> bool;

/// What a dump shows, in full.
fn shown(wanted: Wanted, dump: impl FnOnce(&mut dyn FnMut(Visit<'_>) -> Next)) -> String {
    let mut text = String::new();
    dump(&mut |visit| {
        writeln!(text, "{visit:?}").unwrap();
        match visit {
            Visit::Cache(of) if !wanted(of.name) => Next::Skip,
            _ => Next::On,
        }
    });
    text
}

#[test]
fn a_dump_from_outside_is_that_from_inside() {
    let _alone = ALONE.lock();
    let config = EngineConfig {
        nodes: 2,
        ..EngineConfig::new()
    };
    let engine = Engine::new(config).unwrap();
    let caches = caches(&engine);
    let mut kept = work(&caches);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (place, object) in kept.drain(..400).collect::<Vec<_>>() {
                // SAFETY: of that cache, handed over, and freed once.
                unsafe { caches[place].free(object.0) };
            }
            let own = work(&caches);
            let process = Process::open(std::process::id()).unwrap();
            let inspector = Inspector::new(process, &segment()).unwrap();
            let looks: [(bool, Wanted); 2] = [(false, |_| true), (true, |name| name == "debug")];
            for (bytes, wanted) in looks {
                let options = DumpOptions { bytes };
                let outside = shown(wanted, |visit| {
                    inspector.dump(options, &mut |_, seen| visit(seen)).unwrap();
                });
                let inside = shown(wanted, |visit| engine.dump(options, visit));
                assert!(!inside.contains("Unknown") && inside.contains("exact: true"));
                let places = [
                    "Allocated",
                    "Free",
                    "Remote",
                    "Own {",
                    "Main {",
                    "Spare {",
                    "Barn {",
                ];
                assert!(bytes || places.iter().all(|place| inside.contains(place)));
                for (n, (a, b)) in outside.lines().zip(inside.lines()).enumerate() {
                    assert_eq!(a, b, "line {n}");
                }
                assert_eq!(outside.len(), inside.len());
            }
            give_back(&caches, own);
        });
    });
    give_back(&caches, kept);
}

fn validate() -> Vec<Validation> {
    let process = Process::open(std::process::id()).unwrap();
    let inspector = Inspector::new(process, &segment()).unwrap();
    inspector.validate().unwrap()
}

/// Ends the load, also of a test that fails.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_sound_engine_has_no_findings_while_threads_work() {
    let _alone = ALONE.lock();
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let caches = caches(&engine);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let kept = work(&caches);
                    give_back(&caches, kept);
                }
            });
        }
        let _stop = Stop(&stop);
        let end = Instant::now() + Duration::from_secs(2);
        let mut slabs = 0;
        while Instant::now() < end {
            let [found] = &validate()[..] else {
                panic!("one engine");
            };
            assert_eq!((&found.findings[..], found.more), (&[][..], 0));
            slabs += found.slabs - found.unchecked;
        }
        assert!(slabs > 100, "{slabs}");
    });
    // Threads give their slots back a moment after their work is over; then nothing moves.
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let [found] = &validate()[..] else {
            panic!("one engine");
        };
        assert!(found.findings.is_empty());
        if (found.unchecked, found.moving) == (0, 0) {
            break;
        }
        assert!(Instant::now() < end, "{found:?}");
    }
}

/// As daemons do with files that they do not know.
#[test]
fn a_process_that_closed_all_its_files_is_found() {
    let _alone = ALONE.lock();
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let caches = caches(&engine);
    let kept = work(&caches);
    let well = in_child(
        // SAFETY: the child uses the engine and the C library, which handle forks.
        || unsafe { libc::fork() },
        || {
            let kept = work(&caches);
            // SAFETY: the child's own files; it uses none of them any more.
            unsafe { libc::close_range(3, u32::MAX, 0) };
            let found = segment().identity.pid == u64::from(std::process::id());
            let same = look() == [engine.snapshot()];
            give_back(&caches, kept);
            found && same
        },
    );
    assert!(well);
    give_back(&caches, kept);
}

/// The system ends a process that makes a file longer than it may be.
#[test]
fn a_process_that_may_write_no_files_has_a_segment_without_one() {
    let _alone = ALONE.lock();
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let caches = caches(&engine);
    let well = in_child(
        // SAFETY: the child uses the engine and the C library, which handle forks.
        || unsafe { libc::fork() },
        || {
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: the record is whole.
            let set = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const none) } == 0;
            let kept = work(&caches);
            let found = segment().identity.pid == u64::from(std::process::id());
            give_back(&caches, kept);
            set && found
        },
    );
    assert!(well);
}
