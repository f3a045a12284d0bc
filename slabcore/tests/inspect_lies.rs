//! The memory of a true process with words changed where its structures are: each look ends within
//! its limits of time and memory, and what was cut says so.
#![cfg(not(any(loom, shuttle)))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

#[path = "support/changed.rs"]
mod changed;

use changed::Changed;
use proptest::prelude::*;
use slabcore::dump::{DumpOptions, Next, Visit};
use slabcore::inspect::{self, Inspector, Limits, Memory, Part, Process, Reach, Refusal};
use slabcore::segment::Segment;
use slabcore::{CacheBuilder, Engine, EngineConfig, Policy};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Counts the bytes that are held.
struct Counted;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// One look at a time: what is held is counted for all threads.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes that a look may hold beside its limit: the copies and tables that are bounded anyway.
const BESIDE: usize = 16 << 20;

/// What looks may take in these tests.
const LIMITS: Limits = Limits {
    time: Duration::from_millis(300),
    ..Limits::DEFAULT
};

/// Where structures of this process begin, and how many words of each are changed at most.
type Places = Vec<(u64, u64)>;

/// A true segment of this process, and where its structures are.
static TRUE: LazyLock<(Segment, Places)> = LazyLock::new(|| {
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let layout = Layout::new::<[u64; 8]>();
    let plain = Policy::ALL.map(|of| CacheBuilder::new(&engine, of.name(), layout).policy(of));
    let debug = CacheBuilder::new(&engine, "debug", layout).debug_flags("FZPU".parse().unwrap());
    for builder in plain.into_iter().chain([debug]) {
        let cache = builder.build().unwrap();
        let all: Vec<_> = (0..700).map(|_| cache.alloc().unwrap()).collect();
        for object in all.into_iter().step_by(3) {
            // SAFETY: of this cache, ours, and freed once.
            unsafe { cache.free(object) };
        }
        std::mem::forget(cache);
    }
    // For the life of this process.
    std::mem::forget(engine);
    let found = inspect::of_process(std::process::id()).unwrap().unwrap();
    let segment = inspect::read(&found.file).unwrap();
    let memory = Process::open(std::process::id()).unwrap();
    let number = |name: &str| segment.number(name).unwrap();
    let word = |at: u64| {
        let mut bytes = [0; 8];
        memory.get(at, &mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    };
    let engine = word(number("root.engines"));
    let table = word(engine + number("engine.table"));
    let range = engine + number("engine.pages") + number("pages.range");
    let descs = word(range + number("range.descs"));
    let mut places = vec![
        (number("root.engines"), 1),
        (number("root.slots_used"), 1),
        (engine, number("engine.present") / 8),
        (range, number("range.sizeof") / 8),
        (descs, 40 * number("desc.sizeof") / 8),
        (word(range + number("range.map")), 20),
    ];
    for id in 0..=Policy::ALL.len() as u64 {
        let cache = table + id * number("cache.sizeof");
        places.push((cache, number("cache.sizeof") / 8));
        places.push((
            word(cache + number("cache.rows")),
            4 * number("row.sizeof") / 8,
        ));
        let debug = word(cache + number("cache.outside") + number("outside.debug"));
        places.extend((debug != 0).then_some((debug, number("debug.sizeof") / 8)));
    }
    (segment, places)
});

/// Runs a look, within the limits.
fn bounded<R>(what: &str, look: impl FnOnce() -> R) -> R {
    let (began, before) = (Instant::now(), LIVE.load(Relaxed));
    PEAK.store(before, Relaxed);
    let seen = look();
    let held = PEAK.load(Relaxed).saturating_sub(before);
    assert!(held <= LIMITS.held + BESIDE, "{what} held {held}");
    let took = began.elapsed();
    assert!(
        took < LIMITS.time + Duration::from_secs(4),
        "{what} took {took:?}"
    );
    seen
}

/// Everything that can be looked at.
fn look(words: BTreeMap<u64, u64>) {
    let process = Process::open(std::process::id()).unwrap();
    let inspector = Inspector::new(
        Changed {
            process,
            words,
            live: true,
        },
        &TRUE.0,
    )
    .unwrap();
    inspector.limit(LIMITS);
    let _ = bounded("snapshot", || inspector.snapshot());
    let _ = bounded("stacks", || inspector.stacks());
    let _ = bounded("validate", || inspector.validate());
    for bytes in [false, true] {
        let _ = bounded("dump", || {
            inspector.dump(DumpOptions { bytes }, &mut |_, _| Next::On)
        });
    }
}

/// Numbers that lies are made of: small, large, around powers of two, addresses.
fn lie() -> impl Strategy<Value = u64> {
    let here = TRUE.1.iter().map(|of| of.0).collect::<Vec<_>>();
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 0u32..64).prop_map(|(n, shift)| n >> shift),
        (0u32..64, -1i64..2).prop_map(|(bit, off)| (1u64 << bit).wrapping_add_signed(off)),
        prop::sample::select(here),
        Just(u64::MAX),
        Just(0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn changed_structures_are_survived_within_the_limits(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), lie()), 1..12),
    ) {
        let _alone = ALONE.lock();
        let places = &TRUE.1;
        let words = changes.into_iter().map(|(place, word, value)| {
            let (at, words) = places[place.index(places.len())];
            (at + word % words.max(1) * 8, value)
        });
        look(words.collect());
    }
}

/// Changed memory, and zeroes without end from an address on.
#[derive(Debug)]
struct Endless(Changed, u64);

impl Memory for Endless {
    fn read(&self, parts: &mut [Part<'_>]) {
        for part in parts {
            if part.at >= self.1 {
                part.into.fill(0);
                part.got = part.into.len();
            } else {
                self.0.read(std::slice::from_mut(part));
            }
        }
    }

    fn is_live(&self) -> bool {
        true
    }
}

#[test]
fn a_look_without_end_is_cut_and_says_so() {
    let _alone = ALONE.lock();
    let (segment, places) = &*TRUE;
    let number = |name: &str| segment.number(name).unwrap();
    let far = 1 << 60;
    let range = places[3].0;
    let mut words = BTreeMap::from([
        (range + number("range.descs"), far),
        (range + number("range.map"), far),
    ]);
    // Half words, of which two may share one.
    for (name, value) in [("first", 0), ("count", u32::MAX), ("frontier", u32::MAX)] {
        let at = range + number(&format!("range.{name}"));
        *words.entry(at / 8 * 8).or_default() |= u64::from(value) << (at % 8 * 8);
    }
    let memory = Changed {
        process: Process::open(std::process::id()).unwrap(),
        words,
        live: true,
    };
    let inspector = Inspector::new(Endless(memory, far), segment).unwrap();
    inspector.limit(LIMITS);
    assert_eq!(
        bounded("snapshot", || inspector.snapshot()),
        Err(Refusal::TooMuch)
    );
    let found = bounded("validate", || inspector.validate()).unwrap();
    assert!(found.iter().any(|of| of.cut && !of.is_clean()), "{found:?}");
    let seen = bounded("dump", || {
        inspector.dump(DumpOptions::default(), &mut |_, _| Next::On)
    });
    // No cache was reached.
    assert_eq!(seen, Err(Refusal::TooMuch));
}

#[test]
fn what_cannot_be_read_is_not_known_and_not_zero() {
    let _alone = ALONE.lock();
    let (segment, places) = &*TRUE;
    let number = |name: &str| segment.number(name).unwrap();
    let memory = Process::open(std::process::id()).unwrap();
    let mut table = [0; 8];
    memory
        .get(places[2].0 + number("engine.table"), &mut table)
        .unwrap();
    let cache = u64::from_ne_bytes(table) + Policy::ALL.len() as u64 * number("cache.sizeof");
    let nowhere = 16;
    let words = [
        (
            cache + number("cache.outside") + number("outside.debug"),
            nowhere,
        ),
        (places[2].0 + number("engine.guarded"), nowhere),
    ];
    let changed = Changed {
        process: memory,
        words: words.into_iter().collect(),
        live: true,
    };
    let inspector = Inspector::new(changed, segment).unwrap();
    let [engine] = &inspector.snapshot().unwrap()[..] else {
        panic!("one engine");
    };
    let known: Vec<bool> = engine.caches.iter().map(|of| of.debug.is_some()).collect();
    assert_eq!(
        known,
        [true, true, true, true, true, false][6 - known.len()..]
    );
    let mut seen = 0;
    let reach = inspector.dump(DumpOptions::default(), &mut |_, visit| {
        if let Visit::End(totals) = visit {
            seen += 1;
            assert_eq!(
                (totals.guarded, totals.exact, totals.cut),
                (None, false, false)
            );
        }
        Next::On
    });
    assert_eq!((seen, reach), (known.len(), Ok(Reach::Whole)));
    let found = &inspector.validate().unwrap()[0];
    // The debug cache's slabs have bytes that nobody could check.
    assert!(found.unchecked > 0, "{found:?}");
}
