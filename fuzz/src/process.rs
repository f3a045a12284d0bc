//! Segments and memory of processes that lie.

use std::sync::OnceLock;

use slabcore::dump::{DumpOptions, Next};
use slabcore::inspect::{self, Inspector, Memory, Part, Process};
use slabcore::segment::Segment;
use slabcore::{CacheBuilder, Engine, EngineConfig};

use crate::changed::Changed;
use crate::memory;

/// Bytes that a look at anything may hold: copies of a megabyte, and lists of what an engine has.
const HELD: usize = 64 << 20;

/// Runs it within that.
fn bounded(run: impl FnOnce()) {
    let ((), peak) = memory::peak_of(run);
    assert!(peak <= HELD, "held {peak} bytes");
}

/// A true segment, of this process, which has caches of both kinds.
fn template() -> &'static [u8] {
    static TEMPLATE: OnceLock<Vec<u8>> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let Ok(engine) = Engine::new(EngineConfig::new()) else {
            panic!("no engine");
        };
        let layout = std::alloc::Layout::new::<[u64; 8]>();
        for (name, flags) in [("plain", None), ("debug", "FZPU".parse().ok())] {
            let builder = CacheBuilder::new(&engine, name, layout);
            let builder = flags.map_or(builder, |flags| builder.debug_flags(flags));
            let Ok(cache) = builder.build() else {
                panic!("no cache");
            };
            for _ in 0..1000 {
                let _ = cache.alloc();
            }
            std::mem::forget(cache);
        }
        std::mem::forget(engine);
        let found = inspect::of_process(std::process::id());
        let Ok(Some(found)) = found else {
            panic!("no segment");
        };
        std::fs::read(found.path).unwrap_or_default()
    })
}

/// Writes the true segment to the file that `FUZZ_TEMPLATE` names: a seed of the others.
pub fn seed(_: &[u8]) {
    if let Some(path) = std::env::var_os("FUZZ_TEMPLATE") {
        assert!(std::fs::write(path, template()).is_ok());
    }
}

/// The input as the segment itself, and as the beginning of one that is true behind it.
pub fn segment(input: &[u8]) {
    let mut whole = template().to_vec();
    let begin = input.len().min(whole.len());
    whole[..begin].copy_from_slice(&input[..begin]);
    for bytes in [input, &whole] {
        bounded(|| {
            let Ok(segment) = Segment::parse(bytes) else {
                return;
            };
            assert_eq!(Ok(&segment), Segment::parse_twice(bytes, bytes).as_ref());
            named(&segment);
        });
    }
}

/// Every figure by its name.
fn named(segment: &Segment) {
    for cache in &segment.published.caches {
        let _ = segment.of_cache(cache, "objects");
        assert!(segment.counters(cache).count() <= cache.values.len());
    }
    for engine in &segment.published.engines {
        let _ = segment.of_engine(engine, "used");
    }
}

/// Where structures of this process begin: its engine, its pages, its caches and their slabs.
fn places(segment: &Segment) -> Vec<u64> {
    let Ok(memory) = Process::open(std::process::id()) else {
        panic!("one's own memory");
    };
    let number = |name: &str| segment.number(name).unwrap_or_default();
    let word = |at: u64| {
        let mut bytes = [0; 8];
        let _ = memory.get(at, &mut bytes);
        u64::from_ne_bytes(bytes)
    };
    let engine = word(number("root.engines"));
    let range = engine + number("engine.pages") + number("pages.range");
    let table = word(engine + number("engine.table"));
    let mut places = vec![number("root.slots_used"), engine, range];
    places.extend(["range.descs", "range.map"].map(|name| word(range + number(name))));
    for cache in [table, table + number("cache.sizeof")] {
        let outside = cache + number("cache.outside");
        places.push(cache);
        places.push(word(cache + number("cache.rows")));
        places.push(word(outside + number("outside.debug")));
    }
    places
}

/// A true process, of which 12 bytes each change a word: which structure and which of its
/// words, 16 bits each; the value.
pub fn image(input: &[u8]) {
    static TRUE: OnceLock<(Segment, Vec<u64>)> = OnceLock::new();
    let (segment, places) = TRUE.get_or_init(|| {
        let Ok(segment) = Segment::parse(template()) else {
            panic!("a true segment");
        };
        let places = places(&segment);
        (segment, places)
    });
    let words = input.chunks_exact(12).map(|change| {
        let half = |at: usize| u64::from(u16::from_le_bytes([change[at], change[at + 1]]));
        let place = places[half(0) as usize % places.len()];
        let value = change[4..12].try_into().map_or(0, u64::from_le_bytes);
        (place + half(2) % 512 * 8, value)
    });
    let Ok(process) = Process::open(std::process::id()) else {
        return;
    };
    let words = words.collect();
    bounded(|| {
        look(
            Changed {
                process,
                words,
                live: false,
            },
            segment,
        )
    });
}

fn look(memory: impl Memory, segment: &Segment) {
    let Ok(inspector) = Inspector::new(memory, segment) else {
        return;
    };
    let _ = inspector.snapshot();
    let _ = inspector.stacks();
    let _ = inspector.validate();
    let mut left = 100;
    let _ = inspector.dump(DumpOptions { bytes: true }, &mut |_, _| {
        left -= 1;
        if left == 0 { Next::Stop } else { Next::On }
    });
}

/// Memory that has what the input says, again and again; whatever is read is there.
#[derive(Debug)]
struct Told<'i>(&'i [u8]);

impl Memory for Told<'_> {
    fn read(&self, parts: &mut [Part<'_>]) {
        for part in parts {
            for (n, byte) in part.into.iter_mut().enumerate() {
                let at = part.at.wrapping_add(n as u64) as usize;
                *byte = self.0.get(at % self.0.len().max(1)).copied().unwrap_or(0);
            }
            part.got = part.into.len();
        }
    }

    fn is_live(&self) -> bool {
        false
    }
}

/// The first half of the input changes words of a true segment, 12 bytes each; the second is
/// the memory that it leads to.
pub fn process(input: &[u8]) {
    let (changes, memory) = input.split_at(input.len() / 2);
    let mut bytes = template().to_vec();
    for change in changes.chunks_exact(12) {
        let (at, value) = change.split_at(4);
        let at = u32::from_le_bytes(at.try_into().unwrap_or_default()) as usize;
        // Mostly where names and numbers are.
        let at = if at % 8 == 0 { at } else { at % (24 << 10) } / 8 * 8 % bytes.len();
        bytes[at..at + 8].copy_from_slice(value);
    }
    bounded(|| {
        let Ok(segment) = Segment::parse(&bytes) else {
            return;
        };
        named(&segment);
        look(Told(memory), &segment);
    });
}
