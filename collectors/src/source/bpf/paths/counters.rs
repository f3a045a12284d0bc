//! The words that programs count in, as the kernel's own counters.
//!
//! Source of truth: collectors/bpf/slots.h; a test compares the numbers. What a
//! kernel does not let the programs tell is no counter, never 0.

use super::functions::Functions;
use crate::model::{Cache, Counter, CounterId, Counters, Era, Quantity};

/// Words of a cache's counts; see `enum count_word` of slots.h.
pub(super) const WORDS: usize = 16;
pub(super) const SLOW: usize = 4;
pub(super) const GONE: usize = 8;
pub(super) const UNSURE: usize = 10;

/// A cache that is counted.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: Box<str>,
    /// Where its counts are.
    pub(super) index: u32,
    /// Slabs that it had when counting began.
    pub(super) slabs: Option<u64>,
    /// It has sheaves; `None` where the kernel has none.
    pub(super) sheaves: Option<bool>,
}

impl Known {
    /// A cache whose counts are at that place.
    pub(super) fn new(cache: &Cache, index: u64) -> Self {
        let capacity = cache.get(Quantity::SheafCapacity);
        Self {
            name: cache.name.clone(),
            index: u32::try_from(index).unwrap_or(u32::MAX),
            slabs: slabs(cache),
            sheaves: capacity.map(|capacity| capacity.value > 0),
        }
    }
}

/// What can be told of events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) era: Era,
    /// The path of each event is inferred.
    pub(super) paths: bool,
    /// Where pages are described is known: objects lead to their slabs.
    pub(super) pages: bool,
    /// Pages that are given back lead to their cache.
    pub(super) slabs: bool,
}

pub(super) fn slabs(cache: &Cache) -> Option<u64> {
    Some(cache.get(Quantity::Slabs)?.value)
}

/// The words of all processors as the kernel's own counters. `None`: no event was
/// seen of a cache that may be one of kmalloc's, which were not looked for.
pub(super) fn counters(
    words: &[u64; WORDS],
    known: &Known,
    slabs: Option<u64>,
    told: Told,
    functions: &Functions,
) -> Option<Counters> {
    if !told.pages && words[..SLOW].iter().all(|word| *word == 0) {
        return None;
    }
    let all = |from: usize| words[from].wrapping_add(words[from + 1]);
    let (allocs, frees) = (all(0), all(2));
    let mut list = List(Vec::new());
    if !told.paths {
        list.count(CounterId::Allocs, allocs);
        list.count(CounterId::Frees, frees);
        for (id, total) in functions.counters(words, told.era) {
            list.count(id, total);
        }
        list.0.sort_by_key(|counter| counter.id);
        return Some(Counters(list.0));
    }
    let sides = |from: usize, all: u64| {
        let slow = words[SLOW + from].wrapping_add(words[SLOW + from + 1]);
        // Without sheaves those kernels have no other path.
        if told.era == Era::Sheaves && known.sheaves == Some(false) {
            return (0, all);
        }
        (all.saturating_sub(slow), slow.min(all))
    };
    let ((alloc_fast, alloc_slow), (free_fast, free_slow)) = (sides(0, allocs), sides(2, frees));
    // From 7.0 on the sheaf is what the fast paths' counters count.
    let sheaves = known.sheaves == Some(true);
    let apart = sheaves && told.era != Era::Sheaves;
    let main = |fast: u64| if apart { 0 } else { fast };
    list.count(CounterId::AllocFastpath, main(alloc_fast));
    list.count(CounterId::AllocSlowpath, alloc_slow);
    // Whose slab an object is of tells the path of a free where there is no sheaf.
    if sheaves || told.pages || told.era == Era::Sheaves {
        list.count(CounterId::FreeFastpath, main(free_fast));
        list.count(CounterId::FreeSlowpath, free_slow);
    } else {
        list.count(CounterId::Frees, frees);
    }
    if told.slabs {
        let gone = words[GONE];
        if let (Some(before), Some(now)) = (known.slabs, slabs) {
            let made = now.saturating_add(gone).saturating_sub(before);
            list.count(CounterId::AllocSlab, made);
        }
        list.count(CounterId::FreeSlab, gone);
    }
    if apart {
        list.count(CounterId::AllocCpuSheaf, alloc_fast);
        list.count(CounterId::FreeCpuSheaf, free_fast);
    }
    list.0.sort_by_key(|counter| counter.id);
    Some(Counters(list.0))
}

struct List(Vec<Counter>);

impl List {
    fn count(&mut self, id: CounterId, total: u64) {
        self.0.push(Counter {
            id,
            total,
            // One reading of all processors has no 32-bit counters that wrap.
            cpus: Vec::new(),
        });
    }
}
