//! This process's own memory, but for some words: a target that lies.

use slabcore::inspect::{Memory, Part, Process};
use std::collections::BTreeMap;

/// The memory.
#[derive(Debug)]
pub struct Changed {
    /// This process.
    pub process: Process,
    /// Words by address; they may overlap.
    pub words: BTreeMap<u64, u64>,
    /// Whether it is said to change between two reads.
    pub live: bool,
}

impl Memory for Changed {
    fn read(&self, parts: &mut [Part<'_>]) {
        self.process.read(parts);
        for part in parts {
            let end = part.at.saturating_add(part.into.len() as u64);
            for (at, word) in self.words.range(part.at.saturating_sub(7)..end) {
                for (byte, at) in word.to_ne_bytes().into_iter().zip(*at..) {
                    let place = at.checked_sub(part.at).map(|n| n as usize);
                    if let Some(to) = place.and_then(|n| part.into.get_mut(n)) {
                        *to = byte;
                    }
                }
            }
        }
    }

    fn is_live(&self) -> bool {
        self.live
    }
}
