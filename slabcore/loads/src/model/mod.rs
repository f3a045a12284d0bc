//! A machine with many processors, modelled: the engine's real code, run for one logical
//! processor after the other on one thread.
//!
//! Each logical processor is a slot of the engine ([`slabcore::Slots`]) and has a clock. The one
//! whose clock is furthest behind goes next; what it did is read off the engine's counters and
//! slab words, and the clock goes on by what that costs ([`Weights`]). So what is counted is what
//! the engine did, in one of the orders that are possible; what it costs is the model's. The same
//! seed gives the same numbers on every machine.
//!
//! What it knows of costs: a cache line (a slab's word; a list lock with its list) that another
//! processor had last has to be transferred; who wants a list lock waits for those before him,
//! and who gets it waits for the line behind half of the others, as with the ticket locks of Linux
//! 2.6.25 (S. Boyd-Wickizer et al., Non-scalable locks are dangerous, 2012). What it does not:
//! an operation is not interrupted by others, so no compare-and-swap is ever lost; the page
//! allocator has no contention; lines of objects are the messages' and not the allocator's; one
//! node. The policies with arrays in front are not modelled: their barn is not seen from outside.

mod load;

pub use load::{Messages, To};

use crate::rng::Rng;
use slabcore::stats::{Counters, Stat};
use slabcore::{Cache, CacheBuilder, CacheSnapshot, Decommit, Engine, EngineConfig, Slots};
use std::alloc::Layout;
use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;

/// What things cost, in cycles. One set for all that is modelled; docs/BENCH.md has the reasons.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    /// An operation of the fast path.
    pub fast: u64,
    /// A slow path, without what follows.
    pub slow: u64,
    /// A locked instruction on a line that is there.
    pub atomic: u64,
    /// A line that another processor had.
    pub transfer: u64,
    /// What is done under a list lock.
    pub list: u64,
    /// A slab got from the page allocator or given back, without its objects.
    pub pages: u64,
    /// Each object of a new slab.
    pub object: u64,
    /// Everything but the allocator, for a message sent and received.
    pub message: u64,
}

/// The weights: a machine of 2008 with four sockets on front side buses.
pub const WEIGHTS: Weights = Weights {
    fast: 20,
    slow: 100,
    atomic: 30,
    transfer: 400,
    list: 50,
    pages: 500,
    object: 20,
    message: 9000,
};

/// What was done, and what it cost, over all processors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Objects allocated.
    pub allocs: u64,
    /// Objects freed.
    pub frees: u64,
    /// Allocations and frees that took a slow path.
    pub slow: u64,
    /// Frees of these.
    pub slow_frees: u64,
    /// Locked instructions.
    pub atomics: u64,
    /// Times a list lock was taken.
    pub locks: u64,
    /// Times of these that another processor had it or waited for it.
    pub contended: u64,
    /// Lines of slab words that another processor had last.
    pub words_moved: u64,
    /// List locks that another processor had last.
    pub locks_moved: u64,
    /// Slabs frozen and thawed.
    pub freezes: u64,
    /// Slabs that came onto a node's list or left it.
    pub list_moves: u64,
    /// Slabs got from the page allocator.
    pub slabs: u64,
    /// Cycles of everything, waiting too.
    pub cycles: u64,
    /// Cycles of slow paths, waiting too.
    pub slow_cycles: u64,
    /// Cycles of waiting for list locks.
    pub waited: u64,
}

impl Tally {
    /// So many of something for a thousand operations.
    pub fn per_thousand(&self, n: u64) -> f64 {
        n as f64 * 1000.0 / (self.allocs + self.frees).max(1) as f64
    }

    /// So many of something for a free.
    pub fn per_free(&self, n: u64) -> f64 {
        n as f64 / self.frees.max(1) as f64
    }

    /// Cycles for an allocation and a free, with everything around them.
    pub fn cycles_each(&self) -> f64 {
        self.cycles as f64 * 2.0 / (self.allocs + self.frees).max(1) as f64
    }

    /// The share of all cycles that slow paths take, waiting too, in percent.
    pub fn slow_share(&self) -> f64 {
        self.slow_cycles as f64 * 100.0 / self.cycles.max(1) as f64
    }

    /// The share of list locks that were wanted by another too, in percent.
    pub fn contended_share(&self) -> f64 {
        self.contended as f64 * 100.0 / self.locks.max(1) as f64
    }
}

/// A list lock in time.
#[derive(Debug, Default)]
struct ListLock {
    /// When those who wanted it are done with it.
    ends: VecDeque<u64>,
    last: Option<usize>,
    taken: u64,
}

/// A cache of the machine.
#[derive(Debug)]
struct Part {
    cache: Cache,
    lock: ListLock,
    /// What each processor had counted when it was last looked at.
    seen: Vec<Counters>,
    objects: u64,
}

/// The word of a slab.
#[derive(Debug, Clone, Copy)]
struct Word {
    changes: u16,
    /// The processor that had it last, if one was seen to.
    last: Option<usize>,
}

/// Logical processors, caches, and where their lines are.
#[derive(Debug)]
pub struct Machine {
    // Caches before slots: what is flushed at the end is flushed to them.
    parts: Vec<Part>,
    slots: Slots,
    engine: Engine,
    clocks: Vec<u64>,
    words: BTreeMap<usize, Word>,
    weights: Weights,
    tally: Tally,
    rng: Rng,
}

/// A cache of a [`Machine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Of(usize);

impl Machine {
    /// A machine of so many processors; `None` if there is no memory, or no slots.
    pub fn new(cpus: usize, seed: u64) -> Option<Self> {
        let engine = Engine::new(EngineConfig {
            reserve: 4 << 30,
            decommit: Decommit::Immediate,
            cpus: u32::try_from(cpus).ok()?,
            segment: slabcore::segment::Place::Off,
            ..EngineConfig::new()
        });
        Some(Self {
            parts: Vec::new(),
            slots: Slots::take(cpus.max(1))?,
            engine: engine.ok()?,
            clocks: vec![0; cpus.max(1)],
            words: BTreeMap::new(),
            weights: WEIGHTS,
            tally: Tally::default(),
            rng: Rng::new(seed),
        })
    }

    /// Another cache, of objects of `size` bytes.
    pub fn cache(
        &mut self,
        name: &str,
        size: usize,
        options: impl FnOnce(CacheBuilder<'_>) -> CacheBuilder<'_>,
    ) -> Option<Of> {
        let layout = Layout::from_size_align(size, 8).ok()?;
        let builder = options(CacheBuilder::new(&self.engine, name, layout));
        let cache = builder.build().ok()?;
        let of = |counters: usize| self.slots.counters(counters, &cache);
        let seen = (0..self.cpus()).map(of).collect();
        let mut part = Part {
            cache,
            lock: ListLock::default(),
            seen,
            objects: 0,
        };
        part.objects = self.snapshot_of(&part)?.objs_per_slab.into();
        self.parts.push(part);
        Some(Of(self.parts.len() - 1))
    }

    /// Processors.
    pub fn cpus(&self) -> usize {
        self.clocks.len()
    }

    /// What was done since the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// What the engine tells of a cache.
    pub fn snapshot(&self, of: Of) -> Option<CacheSnapshot> {
        self.snapshot_of(self.parts.get(of.0)?)
    }

    fn snapshot_of(&self, part: &Part) -> Option<CacheSnapshot> {
        let caches = self.engine.snapshot().caches;
        caches.into_iter().find(|it| it.id == part.cache.id())
    }

    /// Gives back what nobody uses of a cache, as if it were shrunk on each processor.
    pub fn shrink(&self, of: Of) {
        for cpu in 0..self.cpus() {
            self.slots.act(cpu, || self.parts[of.0].cache.shrink());
        }
    }

    /// Something else than the allocator takes a processor's time.
    fn works(&mut self, cpu: usize, cycles: u64) {
        self.clocks[cpu] += cycles;
        self.tally.cycles += cycles;
    }

    /// A processor allocates an object; `None` if memory is short.
    pub fn alloc(&mut self, cpu: usize, of: Of) -> Option<NonNull<u8>> {
        let part = &self.parts[of.0];
        let object = self.slots.act(cpu, || part.cache.alloc())?;
        self.tally.allocs += 1;
        self.look(cpu, of, object);
        Some(object)
    }

    /// A processor frees an object.
    ///
    /// # Safety
    /// The object is of this cache, in use, and not freed again.
    pub unsafe fn free(&mut self, cpu: usize, of: Of, object: NonNull<u8>) {
        // Its slab may be gone afterwards: seen before.
        self.note(object);
        let part = &self.parts[of.0];
        // SAFETY: by the contract.
        self.slots.act(cpu, || unsafe { part.cache.free(object) });
        self.tally.frees += 1;
        self.look(cpu, of, object);
    }

    /// Has a slab among those that are known.
    fn note(&mut self, object: NonNull<u8>) {
        if let Some((slab, changes)) = self.engine.slab_changes(object.as_ptr()) {
            let last = None;
            self.words.entry(slab).or_insert(Word { changes, last });
        }
    }

    /// Sees what an operation has done and lets the processor's clock go on.
    fn look(&mut self, cpu: usize, of: Of, object: NonNull<u8>) {
        let w = self.weights;
        let part = &mut self.parts[of.0];
        let seen = &mut part.seen[cpu];
        let slow = seen.get(Stat::AllocSlowpath) + seen.get(Stat::FreeSlowpath);
        if self.slots.slow_paths(cpu, &part.cache) == slow {
            self.works(cpu, w.fast);
            return;
        }
        let now = self.slots.counters(cpu, &part.cache);
        let before = std::mem::replace(seen, now);
        let did = |stat| now.get(stat) - before.get(stat);
        let slow_frees = did(Stat::FreeSlowpath);
        let frozen = did(Stat::Freeze) + did(Stat::Thaw);
        let (made, gone) = (did(Stat::AllocSlab), did(Stat::FreeSlab));
        let listed = LIST_MOVES.map(did).iter().sum::<u64>();
        let many = did(Stat::CpuPartialNode) + did(Stat::CpuPartialDrain) > 0;
        let atomics = did(Stat::AtomicOps);
        let objects = part.objects;
        let moved = self.words_moved(cpu, object, many || listed > 1);
        let mut cycles = w.slow + atomics * w.atomic + moved * w.transfer;
        cycles += (made + gone) * w.pages + made * objects * w.object;
        cycles += self.locks(cpu, of, self.clocks[cpu] + w.slow);
        let tally = &mut self.tally;
        tally.slow += 1;
        tally.slow_frees += slow_frees;
        tally.atomics += atomics;
        tally.words_moved += moved;
        tally.freezes += frozen;
        tally.list_moves += listed;
        tally.slabs += made;
        tally.slow_cycles += cycles;
        self.works(cpu, cycles);
    }

    /// Words that the operation changed and another processor had. `all`: of any slab.
    fn words_moved(&mut self, cpu: usize, object: NonNull<u8>, all: bool) -> u64 {
        self.note(object);
        let engine = &self.engine;
        let mut moved = 0;
        // False if the slab is gone.
        let mut look = |slab: usize, word: &mut Word| {
            let now = engine.slab_changes(slab as *const u8);
            let Some((_, changes)) = now.filter(|it| it.0 == slab) else {
                return false;
            };
            if changes != word.changes {
                moved += u64::from(word.last.is_some_and(|last| last != cpu));
                let last = Some(cpu);
                *word = Word { changes, last };
            }
            true
        };
        if all {
            self.words.retain(|slab, word| look(*slab, word));
        } else if let Some((slab, _)) = engine.slab_changes(object.as_ptr())
            && let Some(word) = self.words.get_mut(&slab)
        {
            look(slab, word);
            // It is this processor's from now on, new or not.
            word.last.get_or_insert(cpu);
        }
        moved
    }

    /// Takes the list lock as often as the operation did; gives the cycles until it is done.
    fn locks(&mut self, cpu: usize, of: Of, arrival: u64) -> u64 {
        let w = self.weights;
        let part = &mut self.parts[of.0];
        let taken = part.cache.list_locks().0;
        let lock = &mut part.lock;
        let times = taken - std::mem::replace(&mut lock.taken, taken);
        let mut now = arrival;
        for _ in 0..times {
            while lock.ends.front().is_some_and(|end| *end <= now) {
                lock.ends.pop_front();
            }
            let others = lock.ends.len() as u64;
            let free = lock.ends.back().copied().unwrap_or(now);
            let mut hold = w.list;
            if lock.last != Some(cpu) {
                // The lock's line, behind half of those who look at it; and the list's.
                hold += w.transfer * (2 + others / 2);
                self.tally.locks_moved += 1;
            }
            self.tally.locks += 1;
            self.tally.contended += u64::from(others > 0);
            self.tally.waited += free - now;
            now = free + hold;
            lock.ends.push_back(now);
            lock.last = Some(cpu);
        }
        now - arrival
    }
}

/// Each is a slab that comes onto a node's list or leaves it.
const LIST_MOVES: [Stat; 6] = [
    Stat::FreeAddPartial,
    Stat::FreeRemovePartial,
    Stat::AllocFromPartial,
    Stat::CpuPartialNode,
    Stat::DeactivateToHead,
    Stat::DeactivateToTail,
];

#[cfg(test)]
mod tests;
