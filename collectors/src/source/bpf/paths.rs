//! Allocations and frees of every cache since the programs were attached, by
//! path: collectors/bpf/paths.bpf.c.
//!
//! [`WithPaths`] adds them to the snapshots of another source as the counters
//! that a kernel with CONFIG_SLUB_STATS has; what counts them there is left as
//! it is. How many allocations and frees there were is measured. Which path
//! they took, and how many slabs came and went, is inferred, and marked. What
//! passed unseen is told with every snapshot.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Instant;

use aya::Ebpf;
use aya::maps::{Array, PerCpuArray};
use aya::programs::RawTracePoint;
use aya::programs::raw_trace_point::RawTracePointLink;

use super::CountPaths;
use super::address::PageKey;
use super::object::{Machine, PATHS, iterate, named, refused};
use super::preflight::{Refusal, version};
use super::record::Seen;
use super::slots::{Slot, Slots};
use super::snapshot::Snapshots;
use crate::error::Error;
use crate::model::{CountedBy, Snapshot, Warning, WarningCode, Warnings};
use crate::source::{Demand, Source};

mod counters;
mod functions;
mod missed;
mod table;

pub(super) use missed::{events, interrupted};

use counters::{Told, UNSURE, WORDS, counters, slabs};
use functions::Functions;
use missed::Missed;
use table::Table;

/// Tracepoints, in the order of the words that their programs count in.
const EVENTS: [&str; 4] = ["kmem_cache_alloc", "kmalloc", "kmem_cache_free", "kfree"];
const PAGES: &str = "mm_page_free";
const OBSERVE: &str = "observe";

/// See `enum here_word` of slots.h.
const HERE_WORDS: usize = 5;
const ELSEWHERE: usize = 1;

/// The attached programs.
pub struct Paths {
    how: CountPaths,
    ebpf: Ebpf,
    links: Vec<RawTracePointLink>,
    functions: Functions,
    /// Why there are none, though they were asked for.
    refused: Option<Refusal>,
    snapshots: Snapshots,
    table: Table,
    /// Caches of kmalloc are counted.
    kmalloc: bool,
    /// Slabs that are given back are counted.
    gone: bool,
    since: Instant,
}

impl std::fmt::Debug for Paths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paths")
            .field("how", &self.how)
            .field("caches", &self.table.len())
            .field("kmalloc", &self.kmalloc)
            .finish_non_exhaustive()
    }
}

impl Paths {
    /// Begins to count, or says why that cannot be.
    pub fn open(mut how: CountPaths) -> Result<Self, Refusal> {
        let mut snapshots = Snapshots::open()?;
        let seen = look(&mut snapshots)?;
        let machine = snapshots.machine();
        let slots = Slots::for_caches(seen.len());
        let key = PageKey::learn(&seen, machine.page_size);
        let mut ebpf = load(machine, how, &slots, key)?;
        let (mut functions, mut refused) = (Functions::default(), None);
        if how == CountPaths::Fentry {
            match Functions::attach(machine, &mut ebpf) {
                Ok(attached) => functions = attached,
                Err(refusal) => {
                    how = CountPaths::Inferred;
                    refused = Some(refusal);
                    ebpf = load(machine, how, &slots, key)?;
                }
            }
        }
        observe(machine, &mut ebpf)?;
        let inferred = how == CountPaths::Inferred;
        let mut paths = Self {
            how,
            ebpf,
            links: Vec::new(),
            functions,
            refused,
            snapshots,
            table: Table::new(slots),
            kmalloc: key.is_some(),
            gone: inferred && names_cache_at_its_end(),
            since: Instant::now(),
        };
        paths.add(&seen)?;
        let pages = paths.gone.then_some(&PAGES);
        for event in EVENTS.iter().chain(pages) {
            let link = attach(&mut paths.ebpf, event)?;
            paths.links.push(link);
        }
        paths.since = Instant::now();
        Ok(paths)
    }

    /// Caches that came meanwhile are counted from now on.
    fn add(&mut self, seen: &[Seen]) -> Result<(), Refusal> {
        let fresh = self.table.add(seen);
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
        self.add(&seen)?;
        let by_name = unique(&seen);
        let slabs_now: BTreeMap<u64, Option<u64>> =
            seen.iter().map(|s| (s.address, slabs(&s.cache))).collect();
        let failed = |error| refused("the counts", &error);
        let map = self.ebpf.map("counts").ok_or_else(no_map)?;
        let counts: PerCpuArray<_, [u64; WORDS]> = PerCpuArray::try_from(map).map_err(failed)?;
        let told = Told {
            era: snapshot.system.era,
            paths: self.how == CountPaths::Inferred,
            pages: self.kmalloc,
            slabs: self.gone,
        };
        let (mut own, mut unsure) = (false, 0u64);
        for cache in &mut snapshot.caches {
            if cache.counters.is_some() {
                own = true;
                continue;
            }
            let Some(address) = cache.names().find_map(|name| by_name.get(name)) else {
                continue;
            };
            let Some(known) = self.table.get(*address) else {
                continue;
            };
            let words = counts.get(&known.index, 0).map_err(failed)?;
            let mut sum = [0u64; WORDS];
            for cpu in words.iter() {
                for (total, word) in sum.iter_mut().zip(cpu) {
                    *total = total.wrapping_add(*word);
                }
            }
            let grown = slabs_now.get(address).copied().flatten();
            unsure = unsure.saturating_add(sum[UNSURE]);
            cache.counters = counters(&sum, known, grown, told, &self.functions).map(Box::new);
            cache.counted_by = match self.how {
                CountPaths::Counts | CountPaths::Fentry => CountedBy::Programs,
                CountPaths::Inferred => CountedBy::Inference,
            };
        }
        if own {
            let text =
                "paths: this kernel counts them itself (CONFIG_SLUB_STATS), those of slabctl too";
            snapshot
                .warnings
                .push(Warning::new(WarningCode::Note, text));
            return Ok(());
        }
        let refused = self.refused.as_ref();
        self.missed(unsure)?.say(
            self.how,
            self.since.elapsed(),
            refused,
            &mut snapshot.warnings,
        );
        Ok(())
    }

    /// Events that passed uncounted, since the programs were attached.
    fn missed(&self, unsure: u64) -> Result<Missed, Refusal> {
        let events: Vec<&str> = EVENTS.into_iter().chain(self.functions.events()).collect();
        let functions = match self.how {
            CountPaths::Fentry => self.functions.missing(),
            CountPaths::Counts | CountPaths::Inferred => Vec::new(),
        };
        let mut missed = Missed {
            interrupted: interrupted(&self.ebpf, &events)?,
            elsewhere: 0,
            unsure,
            unplaced: self.table.unplaced,
            kmalloc: !self.kmalloc,
            slabs: self.how == CountPaths::Inferred && !self.gone,
            functions,
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
    pub fn new(source: S, how: CountPaths) -> Result<Self, Refusal> {
        Ok(Self {
            source,
            paths: Paths::open(how)?,
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

fn load(
    machine: &Machine,
    how: CountPaths,
    slots: &Slots,
    key: Option<PageKey>,
) -> Result<Ebpf, Refusal> {
    let paths = u32::from(how == CountPaths::Inferred);
    let mask = slots.count() - 1;
    let words = PageKey::words(key);
    let shift = machine.page_size.trailing_zeros();
    machine.load(PATHS, |loader| {
        loader
            .override_global("paths", &paths, true)
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

/// Whether a slab's descriptor still names its cache when its pages are given back: on older
/// kernels the name is where the page allocator wants nothing (`slab_cache` of 6.1 is `mapping`),
/// moved by 6.12. A release that cannot be read is taken for a new one, as everywhere here.
fn names_cache_at_its_end() -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    version(&release).is_none_or(|found| found >= (6, 12))
}

#[cfg(test)]
mod tests;
