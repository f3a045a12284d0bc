//! Segments and processes that lie: each is refused or read within bounds, and nothing else happens.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use slabcore::dump::{DumpOptions, Next};
use slabcore::inspect::{self, Inspector, Memory, Part, Process, Refusal};
use slabcore::segment::{Segment, format};
use slabcore::{CacheBuilder, Engine, EngineConfig};
use std::alloc::Layout;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A true segment, of this process.
static TRUE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let layout = Layout::new::<[u64; 8]>();
    let caches = ["one", "two", "three"].map(|name| {
        let cache = CacheBuilder::new(&engine, name, layout).debug_flags("FZPU".parse().unwrap());
        cache.build().unwrap()
    });
    for cache in &caches {
        for _ in 0..2000 {
            cache.alloc().unwrap();
        }
    }
    let found = inspect::of_process(std::process::id()).unwrap().unwrap();
    // For the life of this process.
    std::mem::forget((engine, caches));
    std::fs::read(found.path).unwrap()
});

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

#[test]
fn a_true_segment_is_read() {
    let segment = Segment::parse(&TRUE).unwrap();
    assert_eq!(segment.identity.pid, u64::from(std::process::id()));
    assert!(segment.whole && segment.layout.len() > 100 && segment.figures.len() > 50);
    assert_eq!(segment.published.caches.len(), 3);
    assert!(segment.published.caches.iter().all(|of| of.whole));
    assert!(segment.events.len() > 3);
    let texts = segment.figures.iter().all(|of| !of.doc.is_empty());
    assert!(texts, "each figure says what it is");
}

#[test]
fn a_record_that_was_being_written_is_told() {
    let mut bytes = TRUE.clone();
    let at = format::CACHES.at + format::record::GENERATION[0];
    let now = u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    put(&mut bytes, at, now + 1);
    let torn = Segment::parse(&bytes).unwrap().published.caches;
    let whole: Vec<bool> = torn.iter().map(|of| of.whole).collect();
    assert_eq!(whole, [false, true, true]);
    // Whole in each of two copies, but not the same.
    let mut other = TRUE.clone();
    let at = format::CACHES.at + format::record::BYTES + format::record::VALUES;
    put(&mut other, at, 7);
    let torn = Segment::parse_twice(&TRUE, &other)
        .unwrap()
        .published
        .caches;
    let whole: Vec<bool> = torn.iter().map(|of| of.whole).collect();
    assert_eq!(whole, [true, false, true]);
}

#[test]
fn lengths_counts_and_versions_are_refused_in_one_line() {
    let whole = TRUE.clone();
    let refusal = |bytes: &[u8]| Segment::parse(bytes).unwrap_err();
    assert_eq!(refusal(&[]), Refusal::NoSegment);
    assert_eq!(refusal(&[0; 4096]), Refusal::NoSegment);
    assert_eq!(refusal(&whole[..100]), Refusal::Length(100));
    for cut in [128, 5000, whole.len() - 1] {
        assert!(
            matches!(refusal(&whole[..cut]), Refusal::Length(_)),
            "{cut}"
        );
    }
    let changed = |at: usize, value: u64| {
        let mut bytes = whole.clone();
        put(&mut bytes, at, value);
        refusal(&bytes)
    };
    assert_eq!(changed(format::head::VERSION, 2), Refusal::Version(2));
    let order = u64::from(format::ORDER_MARK.swap_bytes());
    assert_eq!(changed(format::head::ORDER, order), Refusal::ByteOrder);
    let most = u64::from(format::ORDER_MARK) | u64::from(u32::MAX) << 32;
    let contents = Refusal::Contents("table of contents");
    assert_eq!(changed(format::head::ORDER, most), contents);
    for entry in 0..format::SECTIONS.len() {
        let at = format::head::CONTENTS + entry * format::head::ENTRY;
        for wrong in [u64::MAX, 1 << 40, whole.len() as u64 - 8, 3] {
            assert_eq!(changed(at + 8, wrong), contents, "{entry} at {wrong}");
        }
        for wrong in [u64::MAX, u64::MAX / 2, 1 << 32, 1 << 20] {
            assert_eq!(
                changed(at + 16, wrong),
                contents,
                "{entry}: {wrong} records"
            );
        }
    }
    for refusal in [contents, Refusal::Version(2), Refusal::Length(3)] {
        assert!(!refusal.to_string().contains('\n'));
    }
}

/// Memory in which everything is there, with whatever a lie may need.
#[derive(Debug)]
struct Liar {
    kind: u32,
    seed: u64,
}

impl Liar {
    fn word(&self, at: u64) -> u64 {
        match self.kind {
            // Everything is the same number; small ones are counts, large ones addresses.
            0 => self.seed,
            // Everything leads to itself.
            1 => at & !7,
            // Everything leads onwards.
            2 => (at & !7).wrapping_add(4096),
            // Noise of small numbers.
            3 => (at ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44,
            // Noise.
            _ => (at ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }
}

impl Memory for Liar {
    fn read(&self, parts: &mut [Part<'_>]) {
        for part in parts {
            let at = part.at;
            for (n, byte) in part.into.iter_mut().enumerate() {
                let at = at.wrapping_add(n as u64);
                *byte = self.word(at).to_ne_bytes()[(at % 8) as usize];
            }
            part.got = part.into.len();
        }
    }
    fn is_live(&self) -> bool {
        true
    }
}

/// This process's memory, with some words changed.
#[derive(Debug)]
struct Changed {
    process: Process,
    /// One word in so many is another one.
    every: u64,
    seed: u64,
}

impl Memory for Changed {
    fn read(&self, parts: &mut [Part<'_>]) {
        self.process.read(parts);
        for part in parts {
            let at = part.at;
            for (n, word) in part.into.chunks_mut(4).enumerate() {
                let mixed =
                    (at.wrapping_add(n as u64 * 4) ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                if (mixed >> 20).is_multiple_of(self.every) {
                    for (byte, lie) in word.iter_mut().zip(mixed.to_ne_bytes()) {
                        *byte = lie;
                    }
                }
            }
        }
    }
    fn is_live(&self) -> bool {
        true
    }
}

/// Everything that can be looked at, within a time.
fn look(memory: impl Memory, segment: &Segment) {
    let began = Instant::now();
    if let Ok(inspector) = Inspector::new(memory, segment) {
        // Whatever comes is a value or a refusal.
        let _ = inspector.snapshot();
        let _ = inspector.stacks();
        let _ = inspector.validate();
        for bytes in [false, true] {
            let mut left = 1000;
            let _ = inspector.dump(DumpOptions { bytes }, &mut |_, _| {
                left -= 1;
                if left == 0 { Next::Stop } else { Next::On }
            });
        }
    }
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_change_of_a_segment_is_survived(
        changes in prop::collection::vec((0usize..6000, any::<u64>(), 0u32..64), 1..20),
        far in prop::collection::vec((0usize..format::BYTES / 8, any::<u64>()), 0..20),
    ) {
        let mut bytes = TRUE.clone();
        for (word, value, shift) in changes {
            put(&mut bytes, word * 8, value >> shift);
        }
        for (word, value) in far {
            put(&mut bytes, word * 8, value);
        }
        if let Ok(segment) = Segment::parse(&bytes) {
            look(Process::open(std::process::id()).unwrap(), &segment);
        }
    }

    #[test]
    fn changed_memory_is_survived(every in 1u64..5000, seed: u64) {
        let segment = Segment::parse(&TRUE).unwrap();
        let process = Process::open(std::process::id()).unwrap();
        look(Changed { process, every, seed }, &segment);
    }
}

#[test]
fn memory_that_lies_about_everything_is_survived() {
    let segment = Segment::parse(&TRUE).unwrap();
    for kind in 0..5 {
        for seed in [
            0,
            1,
            2,
            16,
            255,
            4096,
            1 << 20,
            u64::MAX,
            0x0101_0101_0101_0101,
        ] {
            look(Liar { kind, seed }, &segment);
        }
    }
}
