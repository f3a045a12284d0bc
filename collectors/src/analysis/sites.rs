//! Who holds what: call sites grouped, and what accumulates between two samples.
//!
//! Source: `alloc_traces` and `free_traces` (or `alloc_calls`, `free_calls`) of
//! a cache that records users. A count is of objects that are in use now; only
//! the difference of two samples tells what accumulates.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::{AgeUnit, Cache, CallSite, Flag, Layer, OriginKind, Pinned, SiteKind, Snapshot};
use crate::source::doctor::boot_words;
use crate::units::{Scale, size};

/// What records are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// The function that called the allocator.
    #[default]
    Site,
    /// The whole stack; without recorded stacks, the function.
    Stack,
}

/// Records of one site or stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The function as printed; `None` where the kernel says `<not-available>`.
    pub symbol: Option<String>,
    /// The stack, innermost first; empty where none is recorded, or where
    /// records of several stacks are in the group.
    pub stack: Vec<String>,
    /// How many stacks are in the group; 0 where none is recorded.
    pub stacks: u64,
    /// Objects.
    pub count: u64,
    /// Bytes of their slots, where the slot's size is known.
    pub bytes: Option<u64>,
    /// Bytes lost to size-class rounding.
    pub waste: Option<u64>,
    /// Age: smallest, mean over the objects, largest.
    pub age: Option<(u64, u64, u64)>,
    /// Unit of the age.
    pub age_unit: AgeUnit,
    /// What it keeps alive, where that was looked at.
    pub pinned: Option<Pinned>,
    /// Smallest and largest process id.
    pub pids: Option<(i64, i64)>,
    /// Processors, sorted.
    pub cpus: Vec<u32>,
    /// Nodes, sorted.
    pub nodes: Vec<u32>,
}

impl Group {
    /// For people, what is known besides the count: `3.20M`, `waste 1.00K`,
    /// `age 1/2/3 jiffies`, `pid 5-9`, `cpus 0-3,8`; nothing for what is not.
    pub fn details(&self, scale: Scale) -> Vec<String> {
        let waste = self.waste.filter(|w| *w > 0);
        let parts = [
            self.bytes.map(|b| size(b, scale)),
            waste.map(|w| format!("waste {}", size(w, scale))),
            self.age
                .map(|(min, mean, max)| format!("age {min}/{mean}/{max} {}", self.age_unit.name())),
            self.pinned.filter(|of| of.slabs > 0).map(|of| {
                let bytes = size(of.bytes, scale);
                format!(
                    "pins {bytes} in {} sparse slabs by {} objects",
                    of.slabs, of.objects
                )
            }),
            self.pids.map(|(low, high)| {
                if low == high {
                    format!("pid {low}")
                } else {
                    format!("pid {low}-{high}")
                }
            }),
            ids("cpus", &self.cpus),
            ids("nodes", &self.nodes),
            (self.stacks > 1).then(|| format!("{} stacks", self.stacks)),
        ];
        parts.into_iter().flatten().collect()
    }
}

/// `cpus 0-3,8`.
fn ids(what: &str, list: &[u32]) -> Option<String> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for id in list {
        match runs.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(*id) => *end = *id,
            _ => runs.push((*id, *id)),
        }
    }
    let part = |(a, b): &(u32, u32)| {
        if a == b {
            a.to_string()
        } else {
            format!("{a}-{b}")
        }
    };
    let parts: Vec<String> = runs.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("{what} {}", parts.join(",")))
}

type Key<'a> = (Option<&'a str>, &'a [String]);

fn key(site: &CallSite, by: By) -> Key<'_> {
    let stack: &[String] = match by {
        By::Site => &[],
        By::Stack => &site.stack,
    };
    (site.symbol.as_deref(), stack)
}

/// The groups of one kind among a cache's records, most objects first.
pub fn group(cache: &Cache, kind: SiteKind, by: By) -> Vec<Group> {
    let slot = cache.slab_size().map(|s| s.value.get());
    let sites = cache
        .sites
        .iter()
        .flat_map(|s| s.iter())
        .filter(|s| s.kind == kind);
    let mut groups: BTreeMap<Key<'_>, Vec<&CallSite>> = BTreeMap::new();
    for site in sites {
        groups.entry(key(site, by)).or_default().push(site);
    }
    let mut list: Vec<Group> = groups
        .into_iter()
        .map(|(key, sites)| merged(key, &sites, slot))
        .collect();
    // The map's order breaks ties.
    list.sort_by_key(|g| Reverse(g.count));
    list
}

fn merged((symbol, stack): Key<'_>, sites: &[&CallSite], slot: Option<u64>) -> Group {
    let count = sum(sites.iter().map(|s| s.count.get()));
    let waste: Vec<u64> = sites.iter().filter_map(|s| s.waste.map(|w| w.0)).collect();
    let pids = sites.iter().filter_map(|s| s.pids);
    let cpus = sites.iter().flat_map(|s| &s.cpus).map(|c| c.0);
    let nodes = sites.iter().flat_map(|s| &s.nodes).map(|n| n.0);
    let mut stacks: Vec<&[String]> = sites.iter().map(|s| &*s.stack).collect();
    stacks.retain(|s| !s.is_empty());
    stacks.sort_unstable();
    stacks.dedup();
    let one = match stacks[..] {
        [one] if stack.is_empty() => one,
        _ => stack,
    };
    Group {
        symbol: symbol.map(str::to_owned),
        stack: one.to_vec(),
        stacks: stacks.len() as u64,
        count,
        bytes: slot.and_then(|slot| slot.checked_mul(count)),
        waste: (!waste.is_empty()).then(|| sum(waste.iter().copied())),
        age: age(sites),
        pinned: pinned(sites),
        age_unit: sites.first().map_or(AgeUnit::Jiffies, |site| site.age_unit),
        pids: pids.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
        cpus: sorted(cpus),
        nodes: sorted(nodes),
    }
}

/// Two stacks may have objects in one slab, which then counts for each.
fn pinned(sites: &[&CallSite]) -> Option<Pinned> {
    let all = sites.iter().filter_map(|site| site.pinned);
    all.reduce(|a, b| Pinned {
        objects: a.objects.saturating_add(b.objects),
        slabs: a.slabs.saturating_add(b.slabs),
        bytes: a.bytes.saturating_add(b.bytes),
    })
}

/// The groups that keep sparse slabs alive, those that pin most bytes first.
pub fn pinning(mut groups: Vec<Group>) -> Vec<Group> {
    let bytes = |group: &Group| group.pinned.map_or(0, |of| of.bytes);
    groups.retain(|group| bytes(group) > 0);
    groups.sort_by_key(|group| Reverse(bytes(group)));
    groups
}

fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

fn sorted(values: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut list: Vec<u32> = values.collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// The mean weighs each record by its objects.
fn age(sites: &[&CallSite]) -> Option<(u64, u64, u64)> {
    let ages = || sites.iter().filter_map(|s| Some((s.age?, s.count.get())));
    let least = ages().map(|(age, _)| age.0).min()?;
    let most = ages().map(|(age, _)| age.2).max()?;
    let weight: u128 = ages().map(|(_, n)| u128::from(n.max(1))).sum();
    let total = ages().map(|(age, n)| u128::from(age.1) * u128::from(n.max(1)));
    let mean = total.fold(0u128, u128::saturating_add) / weight.max(1);
    Some((least, u64::try_from(mean).unwrap_or(u64::MAX), most))
}

/// A site or stack in two samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupChange {
    /// As in the later sample, or in the earlier one if it is gone.
    pub group: Group,
    /// Objects in the earlier sample.
    pub before: u64,
    /// Objects in the later sample.
    pub after: u64,
    /// Later minus earlier.
    pub delta: i128,
}

/// What changed between two samples of a cache, most growth first. A site that
/// a sample does not list held nothing then: the kernel lists all of them, but
/// for the files of one page before Linux 5.14, which may be cut.
///
/// `None` when one of them has no records at all: then nothing can be told.
pub fn changes(before: &Cache, after: &Cache, kind: SiteKind, by: By) -> Option<Vec<GroupChange>> {
    if before.sites.is_none() || after.sites.is_none() {
        return None;
    }
    let (old, new) = (group(before, kind, by), group(after, kind, by));
    let same = |g: &Group| {
        (
            g.symbol.clone(),
            if by == By::Stack {
                g.stack.clone()
            } else {
                Vec::new()
            },
        )
    };
    let mut earlier: BTreeMap<_, Group> = old.into_iter().map(|g| (same(&g), g)).collect();
    let mut list: Vec<GroupChange> = new
        .into_iter()
        .map(|group| {
            let before = earlier.remove(&same(&group)).map_or(0, |g| g.count);
            change(group, before, None)
        })
        .collect();
    list.extend(earlier.into_values().map(|group| {
        let before = group.count;
        change(group, before, Some(0))
    }));
    list.sort_by(|a, b| {
        b.delta
            .cmp(&a.delta)
            .then_with(|| a.group.symbol.cmp(&b.group.symbol))
            .then_with(|| a.group.stack.cmp(&b.group.stack))
    });
    Some(list)
}

fn change(group: Group, before: u64, after: Option<u64>) -> GroupChange {
    let after = after.unwrap_or(group.count);
    GroupChange {
        group,
        before,
        after,
        delta: i128::from(after) - i128::from(before),
    }
}

/// Why the caches have no call sites, and how to get them; `name` is what the
/// user called the cache, where it is one.
pub fn why_none(snapshot: &Snapshot, caches: &[&Cache], name: Option<&str>) -> Vec<String> {
    if caches.iter().any(|c| c.sites.is_some()) {
        return vec!["call sites are recorded, and there are none of this kind now".to_owned()];
    }
    if caches.iter().any(|c| c.flags.is_set(Flag::StoreUser)) {
        return vec![match snapshot.origin.kind {
            OriginKind::Kernel => "call sites are recorded, but could not be read: that needs root, and debugfs on /sys/kernel/debug".to_owned(),
            _ => "call sites are recorded, but not in this source: slabctl capture --traces saves them".to_owned(),
        }];
    }
    if snapshot.origin.kind == OriginKind::Process {
        return vec![
            "no call sites: a process keeps them in caches that it debugs with U (SLABCORE_DEBUG=U, or EngineConfig::debug)".to_owned(),
        ];
    }
    if caches.iter().any(|of| of.layers.contains(Layer::Engine))
        && snapshot.origin.kind != OriginKind::Demo
    {
        return vec![
            "no call sites: the last figures that a process left have none; a core has them"
                .to_owned(),
        ];
    }
    if snapshot.origin.kind == OriginKind::Demo {
        return vec![
            "no call sites: the caches of the demonstration do not record them".to_owned(),
        ];
    }
    let called = name.unwrap_or("CACHE");
    let (debug, nomerge) = boot_words(snapshot.system.kernel.as_deref());
    let mut list = vec![format!(
        "no call sites: a cache records them only when the kernel is booted with {debug}=U,{called}"
    )];
    for cache in caches.iter().filter(|_| name.is_some()) {
        let others: Vec<_> = cache.names().filter(|n| *n != called).collect();
        if !others.is_empty() {
            let others = others.join(", ");
            list.push(format!(
                "{called} shares its cache with {others}; one that records call sites is not merged, nor is any with {nomerge}"
            ));
        }
    }
    if snapshot.origin.kind == OriginKind::Kernel {
        list.push(
            "slabctl doctor tells whether /proc/allocinfo or page_owner can tell more on this machine"
                .to_owned(),
        );
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CacheId, Layer, Quantity};
    use crate::parse::traces;

    fn cache(text: &str) -> Cache {
        let mut cache = Cache::new(CacheId(0), "kmalloc-32");
        cache.set_exact(Quantity::SlabSize, 32, Layer::Sysfs);
        cache.sites = Some(Box::new(traces::parse(text.as_bytes(), SiteKind::Alloc).0));
        cache
    }

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(ids("cpus", &[]), None);
        assert_eq!(ids("cpus", &[0, 1, 2, 8]).as_deref(), Some("cpus 0-2,8"));
        assert_eq!(ids("nodes", &[3]).as_deref(), Some("nodes 3"));
        assert_eq!(ids("cpus", &[u32::MAX]).as_deref(), Some("cpus 4294967295"));
    }

    const STACKS: &str = "\
     30 foo+0x1/0x10 waste=60/2 age=10/20/30 pid=5-9 cpus=0,2 nodes=0
        foo+0x1/0x10
        bar+0x2/0x20

     10 foo+0x1/0x10 waste=20/2 age=1/60/99 pid=1 cpus=1-2 nodes=1
        foo+0x1/0x10
        baz+0x3/0x30

      7 other+0x1/0x10 age=5 pid=3
";

    #[test]
    fn records_of_one_site_are_put_together() {
        let groups = group(&cache(STACKS), SiteKind::Alloc, By::Site);
        let foo = &groups[0];
        assert_eq!(foo.symbol.as_deref(), Some("foo+0x1/0x10"));
        assert_eq!(
            (foo.count, foo.bytes, foo.waste),
            (40, Some(1280), Some(80))
        );
        assert_eq!((foo.stacks, foo.stack.len()), (2, 0));
        // (30 * 20 + 10 * 60) / 40.
        assert_eq!(foo.age, Some((1, 30, 99)));
        assert_eq!(foo.pids, Some((1, 9)));
        assert_eq!((&*foo.cpus, &*foo.nodes), (&[0, 1, 2][..], &[0, 1][..]));
        assert_eq!((groups[1].count, groups[1].waste), (7, None));
    }

    #[test]
    fn stacks_are_kept_apart_on_demand() {
        let groups = group(&cache(STACKS), SiteKind::Alloc, By::Stack);
        let counts: Vec<_> = groups.iter().map(|g| (g.count, g.stack.len())).collect();
        assert_eq!(counts, [(30, 2), (10, 2), (7, 0)]);
        assert_eq!(group(&cache(STACKS), SiteKind::Free, By::Site), []);
    }

    #[test]
    fn only_the_difference_tells_what_accumulates() {
        // A directory listing of NFS, before and after its cache was dropped:
        // of 120 more objects 10 stay.
        let of = |n: u64| {
            cache(&format!(
                "{n} nfs_readdir_add_to_array+0x73/0xd0 age=1/2/3 pid=370-1048386 cpus=0-47 nodes=0-1\n"
            ))
        };
        let delta = |a, b| changes(&of(a), &of(b), SiteKind::Alloc, By::Site).unwrap()[0].delta;
        assert_eq!(delta(30_564_391, 30_564_511), 120);
        assert_eq!(delta(30_564_391, 30_564_401), 10);
    }

    #[test]
    fn without_records_on_one_side_nothing_is_told() {
        let (with, without) = (cache(STACKS), Cache::new(CacheId(0), "kmalloc-32"));
        for (a, b) in [(&with, &without), (&without, &with), (&without, &without)] {
            assert_eq!(changes(a, b, SiteKind::Alloc, By::Site), None);
        }
    }

    #[test]
    fn sites_that_came_and_went_are_in_the_list() {
        let before = cache("5 gone+0x1/0x2 age=1\n 5 stays+0x1/0x2 age=1\n");
        let after = cache("9 came+0x1/0x2 age=1\n 5 stays+0x1/0x2 age=1\n");
        let list = changes(&before, &after, SiteKind::Alloc, By::Stack).unwrap();
        let seen: Vec<_> = list
            .iter()
            .map(|c| {
                (
                    c.group.symbol.as_deref().unwrap(),
                    c.before,
                    c.after,
                    c.delta,
                )
            })
            .collect();
        let expected = [
            ("came+0x1/0x2", 0, 9, 9),
            ("stays+0x1/0x2", 5, 5, 0),
            ("gone+0x1/0x2", 5, 0, -5),
        ];
        assert_eq!(seen, expected);
    }
}
