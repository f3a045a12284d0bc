//! The objects of one cache that were allocated since a moment and are not
//! freed yet, by the stack that allocated them: collectors/bpf/live.bpf.c.
//!
//! The result is call sites as a kernel with slab_debug=U records them, but of
//! a running kernel and any cache. What was there before is not in it, and
//! what was allocated in bulk is not seen, what was freed in bulk or by kfree_rcu stays in it until its place is
//! allocated again.

use std::collections::BTreeMap;

use aya::Ebpf;
use aya::maps::{HashMap, MapData, PerCpuArray, StackTraceMap};
use aya::programs::raw_trace_point::RawTracePointLink;

use super::address::PageKey;
use super::object::{LIVE, Machine, refused};
use super::paths::{attach, events, interrupted, look, no_map};
use super::preflight::Refusal;
use super::record::Seen;
use super::snapshot::Snapshots;
use super::symbols::Symbols;
use crate::model::{AgeUnit, CallSite, Objects, SiteKind, Warning, WarningCode, Warnings};

/// Words of an object, and of the tally; see live.h.
const OBJECT_WORDS: usize = 4;
const TALLY_WORDS: usize = 5;
type Object = [u64; OBJECT_WORDS];

/// Objects that are followed at once, and stacks that are kept.
const OBJECTS: u32 = 1 << 17;
const STACKS: u32 = 1 << 13;

/// The attached programs.
pub struct LiveSites {
    ebpf: Ebpf,
    links: Vec<RawTracePointLink>,
    sample: u64,
    /// Objects that kmalloc gives are followed.
    kmalloc: bool,
}

impl std::fmt::Debug for LiveSites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveSites")
            .field("sample", &self.sample)
            .finish_non_exhaustive()
    }
}

impl LiveSites {
    /// Begins to follow the objects of the cache that has one of these names:
    /// one in `sample`, rounded up to a power of two.
    pub fn open<'a>(names: impl Iterator<Item = &'a str>, sample: u32) -> Result<Self, Refusal> {
        let names: Vec<&str> = names.collect();
        let machine = Machine::look()?;
        let seen = look(&mut Snapshots::open()?)?;
        let wanted = |seen: &&Seen| names.contains(&&*seen.cache.name);
        let mut found = seen.iter().filter(wanted);
        let (Some(target), None) = (found.next(), found.next()) else {
            return Err(Refusal::Refused {
                what: format!("the cache {}", names.first().copied().unwrap_or_default()),
                why: "the programs do not see one, and only one, of that name".to_owned(),
            });
        };
        let sample = u64::from(sample.max(1)).next_power_of_two();
        let key = PageKey::learn(&seen, machine.page_size);
        let mut ebpf = load(&machine, target.address, sample, key)?;
        if target.cache.name.contains("kmalloc") && key.is_none() {
            return Err(Refusal::Refused {
                what: "finding the caches of kmalloc".to_owned(),
                why: "where pages are described was not found out".to_owned(),
            });
        }
        // Frees first, so that none of a followed object is missed.
        let events = ["kfree", "kmem_cache_free", "kmem_cache_alloc", "kmalloc"];
        // Caches with other names are kmalloc's, too: the buckets of kmem_buckets_create.
        let wanted = if key.is_some() {
            &events[..]
        } else {
            &events[..3]
        };
        let links = wanted.iter().map(|event| attach(&mut ebpf, event));
        let links = links.collect::<Result<_, _>>()?;
        Ok(Self {
            ebpf,
            links,
            sample,
            kmalloc: key.is_some(),
        })
    }

    /// How many objects one that is followed stands for.
    pub const fn sample(&self) -> u64 {
        self.sample
    }

    /// Ends, and gives the sites of what is outstanding. Counts are estimates
    /// where not every object is followed; the warnings tell what was missed.
    pub fn sites(mut self, warnings: &mut Warnings) -> Result<Vec<CallSite>, Refusal> {
        self.missed(warnings)?;
        // A map that changes while it is read leads back to its beginning.
        // Allocations end first, frees last.
        while let Some(last) = self.links.pop() {
            drop(last);
        }
        let failed = |error| refused("the objects", &error);
        let map = self.ebpf.map("objects").ok_or_else(no_map)?;
        let objects: HashMap<_, u64, Object> = HashMap::try_from(map).map_err(failed)?;
        let now = monotonic();
        let mut sums: BTreeMap<(u64, u64), Sum> = BTreeMap::new();
        for (_, [stack, since, pid, site]) in objects.iter().filter_map(Result::ok) {
            let sum = sums.entry((stack, site)).or_default();
            sum.add(now.saturating_sub(since) / 1_000_000, pid);
        }
        let map = self.ebpf.map("stacks").ok_or_else(no_map)?;
        let stacks = StackTraceMap::try_from(map).map_err(failed)?;
        let symbols = Symbols::read();
        if symbols.is_empty() && !sums.is_empty() {
            warnings.push(Warning::new(
                WarningCode::NotInSource,
                "functions have no names: /proc/kallsyms shows no addresses (needs CAP_SYSLOG, and kernel.kptr_restrict below 2)",
            ));
        }
        let list = sums.into_iter().map(|((stack, site), sum)| {
            let frames = frames(&stacks, stack);
            self.site(&symbols, site, below(&frames, site), &sum)
        });
        let list = list.collect();
        self.say(warnings)?;
        Ok(list)
    }

    fn site(&self, symbols: &Symbols, site: u64, frames: &[u64], sum: &Sum) -> CallSite {
        CallSite {
            kind: SiteKind::Alloc,
            count: Objects(sum.count.saturating_mul(self.sample)),
            symbol: Some(symbols.name(site)),
            waste: None,
            age: Some((sum.youngest, sum.ages / sum.count.max(1), sum.oldest)),
            age_unit: AgeUnit::Milliseconds,
            pinned: None,
            pids: Some(sum.pids),
            cpus: Vec::new(),
            nodes: Vec::new(),
            stack: frames.iter().map(|at| symbols.name(*at)).collect(),
        }
    }

    /// What passed the programs. A free that did leaves its object in the list.
    fn missed(&mut self, warnings: &mut Warnings) -> Result<(), Refusal> {
        let attached = &["kmem_cache_alloc", "kmalloc"][..if self.kmalloc { 2 } else { 1 }];
        let allocs = interrupted(&self.ebpf, attached)?;
        let frees = interrupted(&self.ebpf, &["kfree", "kmem_cache_free"])?;
        if allocs != Some(0) || frees != Some(0) {
            let text = format!(
                "live sites: {} allocations and {} frees of all caches were missed in interrupts",
                events(allocs),
                events(frees)
            );
            warnings.push(Warning::new(WarningCode::Incomplete, text));
        }
        if !self.kmalloc {
            warnings.push(Warning::new(
                WarningCode::Incomplete,
                "live sites: where pages are described was not found out, so what kmalloc allocates is not seen",
            ));
        }
        Ok(())
    }

    fn say(&self, warnings: &mut Warnings) -> Result<(), Refusal> {
        let failed = |error| refused("the tally", &error);
        let map = self.ebpf.map("tally").ok_or_else(no_map)?;
        let tally: PerCpuArray<_, [u64; TALLY_WORDS]> =
            PerCpuArray::try_from(map).map_err(failed)?;
        let mut sum = [0u64; TALLY_WORDS];
        for cpu in tally.get(&0, 0).map_err(failed)?.iter() {
            for (total, word) in sum.iter_mut().zip(cpu) {
                *total = total.saturating_add(*word);
            }
        }
        for (code, text) in said(&sum, self.sample) {
            warnings.push(Warning::new(code, text));
        }
        Ok(())
    }
}

/// What can be said of one stack's objects.
#[derive(Debug)]
struct Sum {
    count: u64,
    ages: u64,
    youngest: u64,
    oldest: u64,
    pids: (i64, i64),
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            count: 0,
            ages: 0,
            youngest: u64::MAX,
            oldest: 0,
            pids: (i64::MAX, i64::MIN),
        }
    }
}

impl Sum {
    fn add(&mut self, age: u64, pid: u64) {
        let pid = i64::try_from(pid).unwrap_or(i64::MAX);
        self.count += 1;
        self.ages = self.ages.saturating_add(age);
        self.youngest = self.youngest.min(age);
        self.oldest = self.oldest.max(age);
        self.pids = (self.pids.0.min(pid), self.pids.1.max(pid));
    }
}

fn load(
    machine: &Machine,
    target: u64,
    sample: u64,
    key: Option<PageKey>,
) -> Result<Ebpf, Refusal> {
    let mask = sample - 1;
    let words = PageKey::words(key);
    let shift = machine.page_size.trailing_zeros();
    machine.load(LIVE, |loader| {
        loader
            .override_global("target", &target, true)
            .override_global("sample_mask", &mask, true)
            .override_global("page_key", &words[0], true)
            .override_global("page_descriptor", &words[1], true)
            .override_global("page_shift", &shift, true)
            .map_max_entries("objects", OBJECTS)
            .map_max_entries("stacks", STACKS);
    })
}

/// The frames of a stack, innermost first; none where it was not kept.
fn frames(stacks: &StackTraceMap<&MapData>, stack: u64) -> Vec<u64> {
    let Ok(id) = u32::try_from(stack) else {
        return Vec::new();
    };
    let trace = stacks.get(&id, 0);
    trace.map_or_else(
        |_| Vec::new(),
        |trace| trace.frames().iter().map(|frame| frame.ip).collect(),
    )
}

/// Without the frames of the programs and of the allocator, which are above the
/// function that allocated.
fn below(frames: &[u64], site: u64) -> &[u64] {
    let from = frames.iter().position(|at| *at == site).unwrap_or(0);
    frames.get(from..).unwrap_or_default()
}

fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    part(now.tv_sec)
        .saturating_mul(1_000_000_000)
        .saturating_add(part(now.tv_nsec))
}

/// What the counts do not hold, one line each.
fn said(tally: &[u64; TALLY_WORDS], sample: u64) -> Vec<(WarningCode, String)> {
    let [allocs, dropped, again, stackless, kept] = *tally;
    let mut list = Vec::new();
    if sample > 1 {
        list.push((
            WarningCode::Note,
            format!("live sites: one object in {sample} was followed, counts are estimates"),
        ));
    }
    let unseen = match again {
        0 => String::new(),
        n => format!(" ({n} were found so)"),
    };
    list.push((
        WarningCode::Note,
        format!(
            "live sites: {allocs} allocations seen; what was freed in bulk or by kfree_rcu stays in the list until it is allocated again{unseen}"
        ),
    ));
    let troubles = [
        (
            dropped,
            "objects found no room and are not in the list: --sample follows fewer",
        ),
        (
            stackless,
            "allocations have no stack: there are too many different ones",
        ),
        (kept, "objects may be in the list that were freed"),
    ];
    let met = troubles.into_iter().filter(|(count, _)| *count > 0);
    list.extend(met.map(|(n, what)| (WarningCode::Incomplete, format!("live sites: {n} {what}"))));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_above_the_caller_are_left_out() {
        assert_eq!(below(&[1, 2, 3, 4], 3), [3, 4]);
        assert_eq!(below(&[1, 2], 9), [1, 2], "a stack that was cut keeps all");
        assert!(below(&[], 9).is_empty());
    }

    #[test]
    fn what_was_lost_is_told_and_nothing_else() {
        let lines = |tally, sample| -> Vec<String> {
            said(&tally, sample)
                .into_iter()
                .map(|(_, text)| text)
                .collect()
        };
        let quiet = lines([1000, 0, 0, 0, 0], 1);
        assert_eq!(quiet.len(), 1);
        assert!(quiet[0].contains("1000 allocations") && !quiet[0].contains("found so"));
        let loud = lines([1000, 5, 6, 7, 8], 16);
        assert_eq!(loud.len(), 5);
        assert!(loud[0].contains("one object in 16") && loud[1].contains("6 were found so"));
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        let header = include_str!("../../../bpf/live.h");
        let count = |prefix: &str| {
            let names = header.lines().map(str::trim);
            names.filter(|line| line.starts_with(prefix)).count()
        };
        // The last is the number of words.
        assert_eq!(count("OBJECT_"), OBJECT_WORDS + 1);
        assert_eq!(count("TALLY_"), TALLY_WORDS + 1);
        let order = ["OBJECT_STACK", "OBJECT_SINCE", "OBJECT_PID", "OBJECT_SITE"];
        let places = order.map(|name| header.find(name).unwrap());
        assert!(places.is_sorted());
    }
}
