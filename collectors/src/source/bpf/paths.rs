//! Allocations and frees of every cache since the programs were attached, by
//! path: collectors/bpf/paths.bpf.c.
//!
//! [`WithPaths`] adds them to the snapshots of another source as the counters
//! that a kernel with CONFIG_SLUB_STATS has; what counts them there is left as
//! it is. How many allocations and frees there were is measured. Which path
//! they took, and how many slabs came and went, is inferred, and marked. What
//! passed unseen is told with every snapshot.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::maps::{Array, PerCpuArray};
use aya::programs::RawTracePoint;
use aya::programs::raw_trace_point::RawTracePointLink;

use super::address::PageKey;
use super::object::{Machine, PATHS, iterate, named, refused};
use super::preflight::{Refusal, version};
use super::record::Seen;
use super::slots::{Slot, Slots};
use super::snapshot::Snapshots;
use crate::error::Error;
use crate::model::{
    Cache, Counter, CounterId, Counters, Era, Quantity, Snapshot, Warning, WarningCode, Warnings,
};
use crate::source::{Demand, Source};

/// Tracepoints, in the order of the words that their programs count in.
const EVENTS: [&str; 4] = ["kmem_cache_alloc", "kmalloc", "kmem_cache_free", "kfree"];
const PAGES: &str = "mm_page_free";
const OBSERVE: &str = "observe";

/// Words of a cache's counts; see `enum count_word` of slots.h.
const WORDS: usize = 16;
const SLOW: usize = 4;
const GONE: usize = 8;
/// See `enum here_word`.
const HERE_WORDS: usize = 5;
const ELSEWHERE: usize = 1;

/// A cache that is counted.
#[derive(Debug)]
struct Known {
    name: Box<str>,
    /// Where its counts are.
    index: u32,
    /// Slabs that it had when counting began.
    slabs: Option<u64>,
    /// It has sheaves; `None` where the kernel has none.
    sheaves: Option<bool>,
}

/// What can be told of events.
#[derive(Debug, Clone, Copy)]
struct Told {
    era: Era,
    /// Where pages are described is known: objects lead to their slabs.
    pages: bool,
    /// Pages that are given back lead to their cache.
    slabs: bool,
}

/// The attached programs.
pub struct Paths {
    ebpf: Ebpf,
    links: Vec<RawTracePointLink>,
    snapshots: Snapshots,
    slots: Slots,
    /// By address.
    known: BTreeMap<u64, Known>,
    /// Caches that found no place.
    unplaced: usize,
    /// Caches of kmalloc are counted.
    kmalloc: bool,
    /// Slabs that are given back are counted.
    gone: bool,
    since: Instant,
}

impl std::fmt::Debug for Paths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paths")
            .field("caches", &self.known.len())
            .field("kmalloc", &self.kmalloc)
            .finish_non_exhaustive()
    }
}

impl Paths {
    /// Begins to count, or says why that cannot be.
    pub fn open() -> Result<Self, Refusal> {
        let mut snapshots = Snapshots::open()?;
        let seen = look(&mut snapshots)?;
        let machine = Machine::look()?;
        let slots = Slots::for_caches(seen.len());
        let key = PageKey::learn(&seen, machine.page_size);
        let ebpf = load(&machine, &slots, key)?;
        let mut paths = Self {
            ebpf,
            links: Vec::new(),
            snapshots,
            slots,
            known: BTreeMap::new(),
            unplaced: 0,
            kmalloc: key.is_some(),
            gone: names_cache_at_its_end(),
            since: Instant::now(),
        };
        paths.add(&seen)?;
        observe(&machine, &mut paths.ebpf)?;
        for event in EVENTS.iter().chain([&PAGES]) {
            let link = attach(&mut paths.ebpf, event)?;
            paths.links.push(link);
        }
        paths.since = Instant::now();
        Ok(paths)
    }

    /// Caches that came meanwhile are counted from now on.
    fn add(&mut self, seen: &[Seen]) -> Result<(), Refusal> {
        let mut fresh: Vec<(u32, Slot)> = Vec::new();
        for cache in seen {
            if self.known.contains_key(&cache.address) {
                continue;
            }
            let Some((at, slot)) = self.slots.add(cache.address) else {
                self.unplaced += 1;
                continue;
            };
            let known = Known {
                name: cache.cache.name.clone(),
                index: u32::try_from(slot[0]).unwrap_or(u32::MAX),
                slabs: slabs(&cache.cache),
                sheaves: has_sheaves(&cache.cache),
            };
            self.known.insert(cache.address, known);
            fresh.push((at, slot));
        }
        let failed = |error| refused("the table of caches", &error);
        let map = self.ebpf.map_mut("slots").ok_or_else(no_map)?;
        let mut slots: Array<_, Slot> = Array::try_from(map).map_err(failed)?;
        for (at, slot) in fresh {
            slots.set(at, slot, 0).map_err(failed)?;
        }
        Ok(())
    }

    /// Adds the counters to a snapshot.
    fn fill(&mut self, snapshot: &mut Snapshot) -> Result<(), Refusal> {
        let seen = look(&mut self.snapshots)?;
        self.unplaced = 0;
        self.add(&seen)?;
        let by_name = unique(&seen);
        let slabs_now: BTreeMap<u64, Option<u64>> =
            seen.iter().map(|s| (s.address, slabs(&s.cache))).collect();
        let failed = |error| refused("the counts", &error);
        let map = self.ebpf.map("counts").ok_or_else(no_map)?;
        let counts: PerCpuArray<_, [u64; WORDS]> = PerCpuArray::try_from(map).map_err(failed)?;
        let told = Told {
            era: snapshot.system.era,
            pages: self.kmalloc,
            slabs: self.gone,
        };
        let mut own = false;
        for cache in &mut snapshot.caches {
            if cache.counters.is_some() {
                own = true;
                continue;
            }
            let Some(address) = cache.names().find_map(|name| by_name.get(name)) else {
                continue;
            };
            // Another cache that was made where one was is not counted.
            let Some(known) = self.known.get(address) else {
                continue;
            };
            if !cache.names().any(|name| *name == *known.name) {
                continue;
            }
            let words = counts.get(&known.index, 0).map_err(failed)?;
            let mut sum = [0u64; WORDS];
            for cpu in words.iter() {
                for (total, word) in sum.iter_mut().zip(cpu) {
                    *total = total.wrapping_add(*word);
                }
            }
            let grown = slabs_now.get(address).copied().flatten();
            cache.counters = Some(Box::new(counters(&sum, known, grown, told)));
            cache.counters_inferred = true;
        }
        if own {
            let text =
                "paths: this kernel counts them itself (CONFIG_SLUB_STATS), those of slabctl too";
            snapshot
                .warnings
                .push(Warning::new(WarningCode::Note, text));
            return Ok(());
        }
        let missed = self.missed()?;
        say(
            &missed,
            (
                self.since.elapsed(),
                [self.kmalloc, self.gone],
                self.unplaced,
            ),
            &mut snapshot.warnings,
        );
        Ok(())
    }

    /// Events that passed uncounted, since the programs were attached.
    fn missed(&mut self) -> Result<Missed, Refusal> {
        let mut missed = Missed {
            interrupted: interrupted(&mut self.ebpf, &EVENTS)?,
            elsewhere: 0,
        };
        let failed = |error| refused("the counts", &error);
        let map = self.ebpf.map("here").ok_or_else(no_map)?;
        let here: PerCpuArray<_, [u64; HERE_WORDS]> = PerCpuArray::try_from(map).map_err(failed)?;
        for cpu in here.get(&0, 0).map_err(failed)?.iter() {
            // Those of kmalloc and kfree are mostly large ones, which are of no cache.
            missed.elsewhere += cpu[ELSEWHERE] + cpu[ELSEWHERE + 2];
        }
        Ok(missed)
    }
}

/// A source whose snapshots have counters of paths too.
#[derive(Debug)]
pub struct WithPaths<S> {
    source: S,
    paths: Paths,
}

impl<S: Source> WithPaths<S> {
    /// Counts from now on what the running kernel does, beside what `source`
    /// reads of it; or says why that cannot be. What the calling thread does is
    /// left out, so it should be the one that samples.
    pub fn new(source: S) -> Result<Self, Refusal> {
        Ok(Self {
            source,
            paths: Paths::open()?,
        })
    }
}

impl<S: Source> Source for WithPaths<S> {
    fn describe(&self) -> String {
        self.source.describe()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        let mut snapshot = self.source.sample(demand)?;
        if (demand.counters || demand.focus.is_some())
            && let Err(refusal) = self.paths.fill(&mut snapshot)
        {
            let warning = format!("paths are not counted: {refusal}");
            snapshot
                .warnings
                .push(Warning::new(WarningCode::NotInSource, warning));
        }
        Ok(snapshot)
    }
}

fn load(machine: &Machine, slots: &Slots, key: Option<PageKey>) -> Result<Ebpf, Refusal> {
    let mask = slots.count() - 1;
    let words = PageKey::words(key);
    let shift = machine.page_size.trailing_zeros();
    machine.load(PATHS, |loader| {
        loader
            .override_global("slot_mask", &mask, true)
            .override_global("page_key", &words[0], true)
            .override_global("page_descriptor", &words[1], true)
            .override_global("page_shift", &shift, true)
            .map_max_entries("slots", slots.count())
            .map_max_entries("counts", slots.room());
    })
}

/// Tells the programs who reads them: what this thread does is not counted.
fn observe(machine: &Machine, ebpf: &mut Ebpf) -> Result<(), Refusal> {
    machine.load_iterator(ebpf, OBSERVE, "bpf_map")?;
    let mut pass = iterate(ebpf, OBSERVE)?;
    pass.read_to_end(&mut Vec::new())
        .map_err(|error| refused("the iterator", &error))?;
    Ok(())
}

pub(super) fn program(event: &str) -> String {
    format!("on_{event}")
}

/// Loads the program of a tracepoint and runs it until the link is dropped.
pub(super) fn attach(ebpf: &mut Ebpf, event: &str) -> Result<RawTracePointLink, Refusal> {
    let failed = |error| refused(&format!("the tracepoint {event}"), &error);
    let program = named::<RawTracePoint>(ebpf, &program(event))?;
    program.load().map_err(failed)?;
    let link = program.attach(event).map_err(failed)?;
    program.take_link(link).map_err(failed)
}

pub(super) fn no_map() -> Refusal {
    Refusal::Refused {
        what: "a map of the programs".to_owned(),
        why: "it is not in the object".to_owned(),
    }
}

/// The caches as they are now, without their lists.
pub(super) fn look(snapshots: &mut Snapshots) -> Result<Vec<Seen>, Refusal> {
    let mut demand = Demand::names();
    demand.walk_limit = 1;
    snapshots.seen(&demand, &mut Warnings::default())
}

/// Addresses by name; a name of two caches is none.
fn unique(seen: &[Seen]) -> BTreeMap<&str, u64> {
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    let mut twice = Vec::new();
    for cache in seen {
        if names.insert(&cache.cache.name, cache.address).is_some() {
            twice.push(&*cache.cache.name);
        }
    }
    for name in twice {
        names.remove(name);
    }
    names
}

fn slabs(cache: &Cache) -> Option<u64> {
    Some(cache.get(Quantity::Slabs)?.value)
}

fn has_sheaves(cache: &Cache) -> Option<bool> {
    let capacity = cache.get(Quantity::SheafCapacity)?;
    Some(capacity.value > 0)
}

/// Whether a slab's descriptor still names its cache when its pages are given back: on older
/// kernels the name is where the page allocator wants nothing (`slab_cache` of 6.1 is `mapping`),
/// moved by 6.12. A release that cannot be read is taken for a new one, as everywhere here.
fn names_cache_at_its_end() -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    version(&release).is_none_or(|found| found >= (6, 12))
}

/// The words of all processors as the kernel's own counters.
fn counters(words: &[u64; WORDS], known: &Known, slabs: Option<u64>, told: Told) -> Counters {
    let sides = |from: usize| {
        let all = words[from].wrapping_add(words[from + 1]);
        let slow = words[SLOW + from].wrapping_add(words[SLOW + from + 1]);
        // Without sheaves those kernels have no other path.
        if told.era == Era::Sheaves && known.sheaves == Some(false) {
            return (0, all);
        }
        (all.saturating_sub(slow), slow.min(all))
    };
    let ((alloc_fast, alloc_slow), (free_fast, free_slow)) = (sides(0), sides(2));
    let mut list = Vec::new();
    let mut count = |id, total| {
        list.push(Counter {
            id,
            total,
            // One reading of all of them has no 32-bit counters that wrap.
            cpus: Vec::new(),
        });
    };
    // From 7.0 on the sheaf is what the fast paths' counters count.
    let sheaves = known.sheaves == Some(true);
    let apart = sheaves && told.era != Era::Sheaves;
    let main = |fast: u64| if apart { 0 } else { fast };
    count(CounterId::AllocFastpath, main(alloc_fast));
    count(CounterId::AllocSlowpath, alloc_slow);
    // Whose slab an object is of tells the path of a free where there is no sheaf.
    if sheaves || told.pages || told.era == Era::Sheaves {
        count(CounterId::FreeFastpath, main(free_fast));
        count(CounterId::FreeSlowpath, free_slow);
    }
    if told.slabs {
        let gone = words[GONE];
        if let (Some(before), Some(now)) = (known.slabs, slabs) {
            let made = now.saturating_add(gone).saturating_sub(before);
            count(CounterId::AllocSlab, made);
        }
        count(CounterId::FreeSlab, gone);
    }
    if apart {
        count(CounterId::AllocCpuSheaf, alloc_fast);
        count(CounterId::FreeCpuSheaf, free_fast);
    }
    list.sort_by_key(|counter| counter.id);
    Counters(list)
}

/// What was not counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Missed {
    /// Events that interrupted the same program; `None` where the kernel does not tell.
    interrupted: Option<u64>,
    /// Events of caches that have no slot.
    elsewhere: u64,
}

/// Events that passed since they interrupted the same program on their processor; `None` where
/// the kernel does not tell.
pub(super) fn interrupted(ebpf: &mut Ebpf, events: &[&str]) -> Result<Option<u64>, Refusal> {
    let mut sum = Some(0u64);
    for event in events {
        let program = named::<RawTracePoint>(ebpf, &program(event))?;
        let fd = program.fd().map_err(|error| refused(event, &error))?;
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd()));
        let misses = text.ok().and_then(|text| recursion(&text));
        sum = sum.zip(misses).map(|(sum, n)| sum.saturating_add(n));
    }
    Ok(sum)
}

/// Such a number for people.
pub(super) fn events(n: Option<u64>) -> String {
    n.map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string())
}

fn recursion(fdinfo: &str) -> Option<u64> {
    let line = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("recursion_misses:"))?;
    line.trim().parse().ok()
}

fn say(missed: &Missed, how: (Duration, [bool; 2], usize), warnings: &mut Warnings) {
    let (elapsed, [kmalloc, gone], unplaced) = how;
    let mut tell = |code, text| warnings.push(Warning::new(code, text));
    tell(
        WarningCode::Note,
        format!(
            "paths by BPF since {:.2} s: allocations and frees are counted, fast and slow are inferred; \
             those of slabctl itself are left out, frees in bulk and by kfree_rcu are not seen; {} events missed in interrupts, {} of unknown caches",
            elapsed.as_secs_f64(),
            events(missed.interrupted),
            missed.elsewhere
        ),
    );
    if !kmalloc {
        tell(
            WarningCode::Incomplete,
            "paths: where pages are described was not found out, so kmalloc and kfree are not counted, nor the paths of frees without sheaves"
                .to_owned(),
        );
    }
    if !gone {
        tell(
            WarningCode::Note,
            "paths: slabs that come and go are not told on this kernel, whose slabs do not name their cache at their end"
                .to_owned(),
        );
    }
    if unplaced > 0 {
        tell(
            WarningCode::Incomplete,
            format!("paths: {unplaced} caches found no place and are not counted"),
        );
    }
}

#[cfg(test)]
mod tests;
