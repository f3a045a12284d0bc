//! Remarks on one snapshot: where the memory is. Nothing here speaks of growth.

use crate::analysis::Usage;
use crate::analysis::groups::size_class;
use crate::analysis::reconcile::{Verdict, reconcile};
use crate::analysis::totals::Totals;
use crate::model::{Approx, Bytes, Cache, Flag, Objects, Quantity, Slabs, Snapshot};
use crate::units::percent;

use super::{Advice, Amount, Limits, Rule, bytes};

/// Share of slots without an object from which a cache counts as fragmented.
const HOLES: f64 = 0.25;
/// Share of all slab memory without an object from which that is said.
const ALL_HOLES: f64 = 0.1;
/// Partial slabs for each one that the kernel would keep empty.
const LONG: u64 = 10;
/// Share of a cache's memory that slack may take.
const SLACK: f64 = 0.2;
/// Share of a cache's memory that the ends of slabs may take.
const TAIL: f64 = 0.1;
/// Share of slab memory from which a cache dominates it.
const DOMINANT: f64 = 0.25;
/// Share of slab memory from which a merged cache is worth a remark.
const LARGE: f64 = 0.05;
/// Names that are listed.
const NAMES: usize = 12;

/// What one snapshot suggests.
pub fn of_snapshot(snapshot: &Snapshot, limits: Limits) -> Vec<Advice> {
    let look = Look::new(snapshot, limits);
    let mut list = Vec::new();
    list.extend(look.share());
    list.extend(look.all_holes());
    list.extend(look.debug_sizes());
    for cache in snapshot.caches.iter().filter(|c| c.cgroup.is_none()) {
        let usage = Usage::of(cache, snapshot.system.page_size);
        list.extend(look.dominant(cache, &usage));
        // Holes tell of the list, too.
        let holes = look.holes(cache, &usage);
        list.extend(holes.or_else(|| look.partial_list(cache)));
        list.extend(look.slack(cache, &usage));
        list.extend(look.tail(cache, &usage));
        list.extend(look.fallback(cache, &usage));
        list.extend(look.merged(cache, &usage));
    }
    super::sort(&mut list);
    list
}

struct Look<'s> {
    snapshot: &'s Snapshot,
    limit: u64,
    totals: Totals,
}

fn count(cache: &Cache, q: Quantity) -> Option<Amount> {
    cache.get(q).map(Amount::Count)
}

fn amount(bytes: Option<Approx<Bytes>>) -> Option<Amount> {
    bytes.map(|b| Amount::Bytes(b.map(Bytes::get)))
}

fn share(part: Approx<u64>, whole: Approx<u64>) -> Option<Approx<f64>> {
    (whole.value > 0).then(|| part.zip_with(whole, |p, w| (p as f64 / w as f64).min(1.0)))
}

/// Whether debugging makes the cache's slots larger: by its flags, or, where
/// those are not read, by a size class whose slot is larger than the class.
fn is_debugged(cache: &Cache) -> Option<bool> {
    let flags = [Flag::RedZone, Flag::Poison, Flag::StoreUser];
    if flags.iter().any(|f| cache.flags.get(*f) == Some(true)) {
        return Some(true);
    }
    let slot = cache.slab_size()?.value.get();
    match size_class(&cache.name) {
        Some(class) => Some(slot > class.size),
        None => cache.flags.get(Flag::RedZone).map(|_| false),
    }
}

impl<'s> Look<'s> {
    fn new(snapshot: &'s Snapshot, limits: Limits) -> Self {
        let listed = snapshot.caches.iter().filter(|c| c.cgroup.is_none());
        Self {
            snapshot,
            limit: limits.bytes,
            totals: Totals::of(listed, snapshot.system.page_size),
        }
    }

    fn held(&self) -> Option<Approx<u64>> {
        let total = self.totals.memory.total?;
        Some(total.map(Bytes::get))
    }

    /// At least the limit, with the share of the memory it is of.
    fn enough(
        &self,
        part: Option<Approx<Bytes>>,
        whole: Option<Approx<Bytes>>,
        least: f64,
    ) -> Option<(Approx<u64>, Approx<f64>)> {
        let part = part?.map(Bytes::get);
        let share = share(part, whole?.map(Bytes::get))?;
        (part.value >= self.limit && share.value >= least).then_some((part, share))
    }

    fn share(&self) -> Option<Advice> {
        let sums = reconcile(self.snapshot);
        let part = sums.memory_share?;
        let held = match sums.all.meminfo {
            Some(kernel) => Approx::exact(kernel.get()),
            None => self.held()?,
        };
        let reclaimable = sums.reclaimable.meminfo.map(|b| Approx::exact(b.get()));
        let of_slab = reclaimable.and_then(|r| share(r, held));
        let percentage = percent(part.value);
        let (says, next) = match (sums.verdict?, of_slab) {
            (Verdict::Minor, _) => (
                format!(
                    "slab holds {} of this machine's memory, {percentage}%: what fills the machine, if anything does, is elsewhere",
                    bytes(held)
                ),
                "look at anonymous memory, page cache, page tables and pages that drivers allocate themselves (/proc/meminfo, /proc/vmstat)",
            ),
            (_, Some(r)) if r.value >= 0.5 => (
                format!(
                    "slab holds {} of this machine's memory, {percentage}%, and the kernel counts {}% of it as reclaimable",
                    bytes(held),
                    percent(r.value)
                ),
                "reclaimable slab (dentries, inodes) is given back under memory pressure, as far as its slabs become empty: a large figure alone is no fault",
            ),
            _ => (
                format!(
                    "slab holds {} of this machine's memory, {percentage}%, most of which memory pressure does not give back",
                    bytes(held)
                ),
                "slabctl report --unreclaimable -n 10 names the caches; slabctl diff --interval 60s tells which of them grow",
            ),
        };
        let advice = Advice::about(Rule::Share, None, held, says)
            .with("memory_share", Some(Amount::Ratio(part)))
            .with("reclaimable_bytes", reclaimable.map(Amount::Bytes));
        Some(advice.next(next))
    }

    fn all_holes(&self) -> Option<Advice> {
        let (free, part) =
            self.enough(self.totals.free.total, self.totals.memory.total, ALL_HOLES)?;
        let held = self.held()?;
        let says = format!(
            "{} of {} slab memory ({}%) holds no object in use",
            bytes(free),
            bytes(held),
            percent(part.value)
        );
        let advice = Advice::about(Rule::Fragmentation, None, free, says)
            .with("memory_bytes", Some(Amount::Bytes(held)))
            .with(
                "partial",
                self.totals
                    .partial
                    .total
                    .map(|p| Amount::Count(p.map(Slabs::get))),
            );
        Some(advice.next("slabctl report --loss -n 10 names the caches"))
    }

    fn dominant(&self, cache: &Cache, usage: &Usage) -> Option<Advice> {
        let (memory, part) = self.enough(usage.memory, self.totals.memory.total, DOMINANT)?;
        let used = usage.object_use?;
        let says = format!(
            "holds {}, {}% of slab memory; {}% of its slots have an object in use",
            bytes(memory),
            percent(part.value),
            percent(used.value)
        );
        let next = match cache.flags.get(Flag::ReclaimAccount) {
            Some(true) => {
                "memory pressure shrinks it; whether it grows on, a second sample tells (slabctl advise --interval 60s)"
            }
            _ => {
                "one sample cannot tell a leak from a large working set: sample again (slabctl advise --interval 60s, or two captures)"
            }
        };
        let advice = Advice::about(Rule::Dominant, Some(cache), memory, says)
            .with("objects", count(cache, Quantity::Objects))
            .with("slabs", count(cache, Quantity::Slabs));
        Some(advice.next(next))
    }

    fn holes(&self, cache: &Cache, usage: &Usage) -> Option<Advice> {
        let (free, _) = self.enough(usage.free, usage.memory, 0.0)?;
        let holes = usage.fragmentation.filter(|f| f.value >= HOLES)?;
        let says = format!(
            "{}% of its slots, {}, hold no object in use",
            percent(holes.value),
            bytes(free)
        );
        let on_lists = cache
            .partial()
            .zip(cache.objs_per_slab())
            .and_then(|(n, per)| {
                let slots = n.value.get().checked_mul(per.value.get())?;
                share(
                    cache.objects_partial()?.map(Objects::get),
                    Approx::exact(slots),
                )
            });
        let advice = Advice::about(Rule::Fragmentation, Some(cache), free, says)
            .with("objects", count(cache, Quantity::Objects))
            .with("total_objects", count(cache, Quantity::TotalObjects))
            .with("partial", count(cache, Quantity::Partial))
            .with("min_partial", count(cache, Quantity::MinPartial))
            .with("use_of_partial_slabs", on_lists.map(Amount::Ratio));
        Some(advice.next(
            "a slab goes back only when its last object does; if the figure stays over days while the load repeats, few long-lived objects keep many slabs",
        ))
    }

    fn partial_list(&self, cache: &Cache) -> Option<Advice> {
        let partial = cache.partial()?.map(Slabs::get);
        let min_partial = cache.get(Quantity::MinPartial)?;
        let nodes = match cache.nodes.len() {
            0 => u64::from(self.snapshot.system.nodes?),
            n => n as u64,
        };
        let kept = min_partial.value.max(1).checked_mul(nodes.max(1))?;
        let slab = cache
            .pages_per_slab()?
            .checked_mul(self.snapshot.system.page_size)?;
        let held = partial.map(|p| p.saturating_mul(slab));
        if partial.value <= kept.saturating_mul(LONG) || held.value < self.limit {
            return None;
        }
        let says = format!(
            "{} partial slabs, {} of memory, where at most {kept} empty ones are kept",
            partial.value,
            bytes(held)
        );
        let advice = Advice::about(Rule::PartialList, Some(cache), held, says)
            .with("partial", Some(Amount::Count(partial)))
            .with("min_partial", Some(Amount::Count(min_partial)))
            .with("objects_partial", count(cache, Quantity::ObjectsPartial));
        Some(advice.next(
            "allocations are served from these slabs first; if partial does not fall while objects are stable, the slabs are sparse, and reading the list takes the list's lock for long",
        ))
    }

    /// One remark for all: debugging is mostly turned on for every cache.
    fn debug_sizes(&self) -> Option<Advice> {
        let page_size = self.snapshot.system.page_size;
        let debugged = self
            .snapshot
            .caches
            .iter()
            .filter(|c| is_debugged(c) == Some(true));
        let mut costs: Vec<(u64, &Cache)> = debugged
            .filter_map(|cache| {
                let total = cache.total_objects()?.value.get();
                let slot = cache.slab_size()?.value.get();
                let needs = match size_class(&cache.name) {
                    Some(class) => class.size,
                    None => cache.object_size()?.value.get(),
                };
                Some((slot.saturating_sub(needs).saturating_mul(total), cache))
            })
            .collect();
        costs.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
        let (worst, worst_cache) = *costs.first()?;
        let sum = costs
            .iter()
            .fold(0u64, |sum, (cost, _)| sum.saturating_add(*cost));
        if sum < self.limit {
            return None;
        }
        let held = Usage::of(worst_cache, page_size).memory;
        let cost = Approx::estimate(sum);
        let says = format!(
            "slab debugging makes the slots of {} caches larger and takes {} for it",
            costs.len(),
            bytes(cost)
        );
        let names = costs
            .iter()
            .take(3)
            .map(|(_, c)| c.name.to_string())
            .collect();
        let advice = Advice::about(Rule::DebugSizes, None, cost, says)
            .with("most_in", Some(Amount::Names(names)))
            .with("of_its_memory_bytes", amount(held))
            .with("added_bytes", Some(Amount::Bytes(Approx::estimate(worst))));
        Some(advice.next(
            "sizes under debugging are not those of production; slab_debug on the kernel's command line, or CONFIG_SLUB_DEBUG_ON, turns it on",
        ))
    }

    fn slack(&self, cache: &Cache, usage: &Usage) -> Option<Advice> {
        if is_debugged(cache) == Some(true) {
            return None;
        }
        let (slack, part) = self.enough(usage.slack, usage.memory, SLACK)?;
        let says = format!(
            "{}% of its memory, {}, is alignment and metadata in slots in use",
            percent(part.value),
            bytes(slack)
        );
        let advice = Advice::about(Rule::Slack, Some(cache), slack, says)
            .with(
                "object_size",
                cache
                    .object_size()
                    .map(|b| Amount::Bytes(b.map(Bytes::get))),
            )
            .with(
                "slab_size",
                cache.slab_size().map(|b| Amount::Bytes(b.map(Bytes::get))),
            );
        Some(advice.next("a smaller alignment, or an object that fills its slot, would save it"))
    }

    fn tail(&self, cache: &Cache, usage: &Usage) -> Option<Advice> {
        let (tail, part) = self.enough(usage.padding, usage.memory, TAIL)?;
        let says = format!(
            "{}% of its memory, {}, is the ends of slabs, too short for an object",
            percent(part.value),
            bytes(tail)
        );
        let advice = Advice::about(Rule::Tail, Some(cache), tail, says)
            .with(
                "slab_size",
                cache.slab_size().map(|b| Amount::Bytes(b.map(Bytes::get))),
            )
            .with("objs_per_slab", count(cache, Quantity::ObjsPerSlab))
            .with("order", count(cache, Quantity::Order));
        Some(advice.next("slabs of another order, or another object size, would waste less"))
    }

    fn fallback(&self, cache: &Cache, usage: &Usage) -> Option<Advice> {
        let missing = usage.fallback_deficit.filter(|d| d.get() > 0)?;
        let slot = cache.slab_size()?.value.get();
        let stake = Approx::exact(missing.get().saturating_mul(slot));
        if stake.value < self.limit {
            return None;
        }
        let says = "some of its slabs are of a smaller order than the cache's: no larger pages were free when they were made".to_owned();
        let advice = Advice::about(Rule::OrderFallback, Some(cache), stake, says)
            .with("order", count(cache, Quantity::Order))
            .with("slabs", count(cache, Quantity::Slabs))
            .with("total_objects", count(cache, Quantity::TotalObjects))
            .with(
                "objects_less_than_full_order",
                Some(Amount::Count(Approx::exact(missing.get()))),
            );
        Some(advice.next("memory was fragmented then: see /proc/buddyinfo; the memory shown for the cache is an upper bound"))
    }

    fn merged(&self, cache: &Cache, usage: &Usage) -> Option<Advice> {
        let memory = usage.memory?.map(Bytes::get);
        let part = share(memory, self.held()?)?;
        let names: Vec<&str> = cache.names().collect();
        if names.len() < 2 || memory.value < self.limit || part.value < LARGE {
            return None;
        }
        let says = format!(
            "{} names share this cache; its {} may belong to any of them",
            names.len(),
            bytes(memory)
        );
        let mut listed: Vec<String> = names.iter().take(NAMES).map(|n| (*n).to_owned()).collect();
        if names.len() > NAMES {
            listed.push(format!("and {} more", names.len() - NAMES));
        }
        let advice = Advice::about(Rule::MergedNames, Some(cache), memory, says)
            .with("share_of_slab", Some(Amount::Ratio(part)))
            .with("names", Some(Amount::Names(listed)));
        Some(advice.next(
            "boot with slab_nomerge to keep them apart, or with slab_debug=U,NAME to record who allocates",
        ))
    }
}
