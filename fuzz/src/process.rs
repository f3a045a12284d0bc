//! Segments and memory of processes that lie.

use std::sync::OnceLock;

use slabcore::dump::{DumpOptions, Next};
use slabcore::inspect::{self, Inspector, Memory, Part};
use slabcore::segment::Segment;
use slabcore::{CacheBuilder, Engine, EngineConfig};

use crate::memory;

/// Bytes that a look at anything may hold: copies of a megabyte, and lists of what an engine has.
const HELD: usize = 200 << 20;

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

/// The input as the segment itself.
pub fn segment(input: &[u8]) {
    bounded(|| {
        if let Ok(segment) = Segment::parse(input) {
            assert_eq!(Ok(&segment), Segment::parse_twice(input, input).as_ref());
            let _ = inspect::published(&segment);
        }
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
        let _ = inspect::published(&segment);
        let Ok(inspector) = Inspector::new(Told(memory), &segment) else {
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
    });
}
