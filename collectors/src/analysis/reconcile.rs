//! The caches against the kernel's own total, and slab against all memory.
//!
//! Source of the totals: `Slab`, `SReclaimable` and `SUnreclaim` of
//! /proc/meminfo, or `nr_slab_*` of /proc/vmstat (pages; fs/proc/meminfo.c,
//! mm/vmstat.c). A cache counts as reclaimable by its `reclaim_account` flag;
//! nothing is guessed from names.
//!
//! What is in the totals and in no cache: kmalloc requests larger than two
//! pages, which go straight to the page allocator and count as unreclaimable,
//! and the copies of caches that control groups had before Linux 5.9, where a
//! listing leaves them out. The rest is the time between the reads.

use std::cmp::Ordering;

use crate::model::{Approx, Bytes, Cache, Flag, Layer, Snapshot, WarningCode};
use crate::units::{Scale, percent, size};

use super::Usage;
use super::consistency::is_partial;
use super::totals::{Sum, Totals};

/// One kind of slab memory: the caches' sum beside the kernel's figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Side {
    /// Bytes in the caches. Caches of unknown kind are missing in it.
    pub caches: Sum<Bytes>,
    /// The kernel's figure.
    pub meminfo: Option<Bytes>,
    /// The kernel's figure minus the caches'; negative when the caches were
    /// read later, or when their memory is an upper bound.
    pub difference: Option<Approx<i128>>,
}

impl Side {
    fn new(caches: Sum<Bytes>, meminfo: Option<Bytes>) -> Self {
        let difference = meminfo.zip(caches.total).map(|(kernel, caches)| {
            caches.map(|caches| i128::from(kernel.get()) - i128::from(caches.get()))
        });
        Self {
            caches,
            meminfo,
            difference,
        }
    }
}

/// How large slab is beside all memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Less than a tenth of memory: whatever fills the machine is not slab.
    Minor,
    /// A tenth to three tenths: worth a look, common on file servers.
    Notable,
    /// Three tenths or more.
    Major,
}

impl Verdict {
    /// The name in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minor => "minor",
            Self::Notable => "notable",
            Self::Major => "major",
        }
    }

    fn of(share: f64) -> Self {
        if share < 0.1 {
            Self::Minor
        } else if share < 0.3 {
            Self::Notable
        } else {
            Self::Major
        }
    }
}

/// The caches of a snapshot against the kernel's totals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reconcile {
    /// All slab memory.
    pub all: Side,
    /// Memory of caches that the kernel counts as reclaimable.
    pub reclaimable: Side,
    /// The other caches, with large kmallocs in the kernel's figure.
    pub unreclaimable: Side,
    /// `all.difference` over the kernel's figure; negative as it is.
    pub difference_share: Option<Approx<f64>>,
    /// Slab over `MemTotal`, 0 to 1. By the kernel's figure, else by the
    /// caches, marked.
    pub memory_share: Option<Approx<f64>>,
    /// What `memory_share` says about a leak.
    pub verdict: Option<Verdict>,
    /// What to know about the figures, one sentence each.
    pub notes: Vec<String>,
}

/// Compares the caches of `snapshot` with the totals in it.
pub fn reconcile(snapshot: &Snapshot) -> Reconcile {
    let page_size = snapshot.system.page_size;
    let listed = || snapshot.caches.iter().filter(|c| c.cgroup.is_none());
    let some = listed().next().is_some();
    // An OOM table lists unreclaimable caches only, so it has no sum of all.
    let only_oom = some && listed().all(is_oom_row);
    let mut all = Side::new(
        Totals::of(listed(), page_size).memory,
        kernel_slab(snapshot),
    );
    all.difference = all
        .difference
        .filter(|_| some && !only_oom)
        .map(|d| Approx {
            approx: d.approx || is_partial(snapshot),
            ..d
        });
    let info = &snapshot.system.meminfo;
    let side = |reclaimable, kernel: Option<Bytes>, counter| {
        let sum = kind_sum(listed(), reclaimable, page_size);
        let mut side = Side::new(sum, kernel.or_else(|| vmstat(snapshot, counter)));
        side.difference = side.difference.filter(|_| some);
        side
    };
    let mut result = Reconcile {
        reclaimable: side(true, info.s_reclaimable, "nr_slab_reclaimable"),
        unreclaimable: side(false, info.s_unreclaim, "nr_slab_unreclaimable"),
        difference_share: all.difference.zip(all.meminfo).and_then(|(d, kernel)| {
            (kernel.get() > 0).then(|| d.map(|d| d as f64 / kernel.get() as f64))
        }),
        memory_share: memory_share(&all, info.mem_total, some && !only_oom),
        all,
        ..Reconcile::default()
    };
    result.verdict = result.memory_share.map(|share| Verdict::of(share.value));
    result.notes = notes(&result, snapshot, only_oom);
    result
}

fn is_oom_row(cache: &Cache) -> bool {
    cache.layers.contains(Layer::OomTable) && cache.layers.iter().count() == 1
}

fn vmstat(snapshot: &Snapshot, counter: &str) -> Option<Bytes> {
    let pages = snapshot.system.vmstat.get(counter)?;
    pages.checked_mul(snapshot.system.page_size).map(Bytes)
}

fn kernel_slab(snapshot: &Snapshot) -> Option<Bytes> {
    let info = &snapshot.system.meminfo;
    let sum = |a: Option<Bytes>, b: Option<Bytes>| Some(a?.saturating_add(b?));
    info.slab
        .or_else(|| sum(info.s_reclaimable, info.s_unreclaim))
        .or_else(|| {
            let part = |name| vmstat(snapshot, name);
            sum(part("nr_slab_reclaimable"), part("nr_slab_unreclaimable"))
        })
}

/// Whether the kernel counts the cache as reclaimable.
fn kind(cache: &Cache) -> Option<bool> {
    let flag = cache.flags.get(Flag::ReclaimAccount);
    flag.or_else(|| is_oom_row(cache).then_some(false))
}

fn kind_sum<'a>(
    caches: impl Iterator<Item = &'a Cache>,
    reclaimable: bool,
    page_size: u64,
) -> Sum<Bytes> {
    let (mut of_kind, mut known, mut unknown) = (Vec::new(), 0u64, 0u64);
    for cache in caches {
        if let Some(kind) = kind(cache) {
            known += 1;
            if kind == reclaimable {
                of_kind.push(cache);
            }
        } else {
            // A cache that holds nothing adds nothing to either side.
            let memory = Usage::of(cache, page_size).memory;
            unknown += u64::from(memory != Some(Approx::exact(Bytes(0))));
        }
    }
    let mut sum = Totals::of(of_kind, page_size).memory;
    sum.missing += unknown;
    if unknown > 0 {
        sum.total = sum
            .total
            .filter(|_| known > 0)
            .map(|t| Approx::estimate(t.value));
    }
    sum
}

fn memory_share(all: &Side, mem_total: Option<Bytes>, whole_list: bool) -> Option<Approx<f64>> {
    let whole = mem_total.filter(|total| total.get() > 0)?;
    let caches = all.caches.total.filter(|_| whole_list);
    let part = all
        .meminfo
        .map(Approx::exact)
        .or_else(|| caches.map(|c| Approx::estimate(c.value)))?;
    Some(part.map(|part| (part.get() as f64 / whole.get() as f64).min(1.0)))
}

fn notes(result: &Reconcile, snapshot: &Snapshot, only_oom: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if only_oom {
        notes.push(
            "the source lists unreclaimable caches only, so only those can be compared".into(),
        );
    } else if is_partial(snapshot) {
        notes.push("the source holds only a part of the caches; the rest is missing here".into());
    }
    let side = if only_oom {
        &result.unreclaimable
    } else {
        &result.all
    };
    notes.extend(side.difference.zip(side.meminfo).and_then(difference_note));
    if snapshot.caches.iter().any(|c| c.cgroup.is_some()) {
        notes.push("rows of control groups are not added: they repeat their caches".into());
    }
    if snapshot.warnings.has(WarningCode::NotSimultaneous) {
        notes.push("the parts of the source were not read at the same moment".into());
    }
    if let Some(verdict) = result.verdict {
        let share = percent(result.memory_share.map_or(0.0, |s| s.value));
        notes.push(match verdict {
            Verdict::Minor => {
                format!("slab is {share} % of memory: too little to be what fills the machine")
            }
            Verdict::Notable => format!("slab is {share} % of memory"),
            Verdict::Major => format!("slab is {share} % of memory: a large part of it"),
        });
    }
    notes
}

fn difference_note((difference, kernel): (Approx<i128>, Bytes)) -> Option<String> {
    let bytes = u64::try_from(difference.value.unsigned_abs()).unwrap_or(u64::MAX);
    let text = size(bytes, Scale::Iec);
    match difference.value.cmp(&0) {
        Ordering::Greater => {
            let share = percent(bytes as f64 / kernel.get().max(1) as f64);
            Some(format!(
                "{text} ({share} %) of the kernel's total is in no cache listed: kmalloc requests \
                 over two pages, and what changed between the reads"
            ))
        }
        Ordering::Less => {
            let why = if difference.approx {
                "the sum is an estimate or an upper bound, or was read at another moment"
            } else {
                "the two were read at different moments"
            };
            Some(format!(
                "the caches hold {text} more than the kernel's total: {why}"
            ))
        }
        Ordering::Equal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing;
    use crate::model::{CacheId, MemInfo, Quantity, Warning};

    const KIB: u64 = 1024;

    fn snapshot(caches: Vec<Cache>, meminfo: MemInfo) -> Snapshot {
        let mut snapshot = testing::snapshot(caches);
        snapshot.system.meminfo = meminfo;
        snapshot
    }

    fn cache(name: &str, kib: u64, reclaimable: Option<bool>) -> Cache {
        let mut cache = Cache::new(CacheId(0), name);
        cache.set_exact(Quantity::Slabs, kib / 4, Layer::Slabinfo);
        cache.set_exact(Quantity::PagesPerSlab, 1, Layer::Slabinfo);
        if let Some(value) = reclaimable {
            cache.flags.put(Flag::ReclaimAccount, value);
        }
        cache
    }

    #[allow(clippy::unnecessary_wraps, reason = "every use wants an option")]
    fn kib(n: u64) -> Option<Bytes> {
        Some(Bytes(n * KIB))
    }

    #[test]
    fn an_exact_sum_leaves_nothing_to_explain() {
        // A 128 GB host: slabinfo sums to meminfo's 1,452,008 kB exactly.
        let rows = [652_868, 338_528, 102_944, 357_668];
        let caches = rows.iter().map(|k| cache("x", *k, None)).collect();
        let info = MemInfo {
            slab: kib(1_452_008),
            s_reclaimable: kib(1_242_872),
            s_unreclaim: kib(209_136),
            mem_total: kib(131_922_120),
            ..MemInfo::default()
        };
        let r = reconcile(&snapshot(caches, info));
        assert_eq!(r.all.difference, Some(Approx::exact(0)));
        assert_eq!(
            r.reclaimable.caches.total, None,
            "slabinfo does not tell the kind"
        );
        assert_eq!(r.reclaimable.caches.missing, 4);
        assert_eq!(r.verdict, Some(Verdict::Minor));
        assert_eq!(r.notes.len(), 1, "{:?}", r.notes);
    }

    #[test]
    fn the_rest_is_told_with_its_share() {
        // A CoreOS host: 196,400 KiB in caches, 199,948 kB in meminfo.
        let info = MemInfo {
            slab: kib(199_948),
            ..MemInfo::default()
        };
        let r = reconcile(&snapshot(vec![cache("all", 196_400, None)], info));
        assert_eq!(r.all.difference, Some(Approx::exact(3_548 * 1024)));
        assert!(r.notes[0].starts_with("3.46M (1.8 %)"), "{}", r.notes[0]);
        assert_eq!(r.verdict, None, "MemTotal is not known");
    }

    #[test]
    fn more_in_the_caches_than_in_the_total_is_negative_not_huge() {
        // A small ARM board: 13,276 KiB in caches, 13,264 kB in meminfo.
        let info = MemInfo {
            s_reclaimable: kib(6_508),
            s_unreclaim: kib(6_756),
            ..MemInfo::default()
        };
        let r = reconcile(&snapshot(vec![cache("all", 13_276, None)], info));
        assert_eq!(r.all.meminfo, kib(13_264));
        assert_eq!(r.all.difference, Some(Approx::exact(-12 * 1024)));
        assert!(r.notes[0].contains("12.0K more"), "{}", r.notes[0]);
    }

    #[test]
    fn kinds_are_compared_apart_and_unknown_ones_are_counted() {
        let info = MemInfo {
            slab: kib(120),
            s_reclaimable: kib(40),
            s_unreclaim: kib(80),
            ..MemInfo::default()
        };
        let mut caches = vec![
            cache("dentry", 40, Some(true)),
            cache("filp", 60, Some(false)),
            cache("empty", 0, None),
        ];
        let r = reconcile(&snapshot(caches.clone(), info));
        assert_eq!(r.reclaimable.difference, Some(Approx::exact(0)));
        assert_eq!(r.unreclaimable.difference, Some(Approx::exact(20 * 1024)));
        caches.push(cache("other", 8, None));
        let r = reconcile(&snapshot(caches, info));
        assert_eq!(r.reclaimable.difference, Some(Approx::estimate(0)));
        assert_eq!(r.reclaimable.caches.missing, 1);
    }

    #[test]
    fn an_oom_table_is_compared_with_the_unreclaimable_total() {
        // A 1 GB ARM server whose leak was in whole pages, not in slab.
        let mut row = Cache::new(CacheId(0), "kernfs_node_cache");
        row.set_exact(Quantity::ReportedTotal, 13_919 * KIB, Layer::OomTable);
        let info = MemInfo {
            mem_total: kib(1_011_988),
            s_reclaimable: kib(54_720),
            s_unreclaim: kib(17_400),
            ..MemInfo::default()
        };
        let r = reconcile(&snapshot(vec![row], info));
        assert_eq!(r.all.difference, None);
        assert_eq!(
            r.unreclaimable.difference,
            Some(Approx::exact(3_481 * 1024))
        );
        assert_eq!(r.verdict, Some(Verdict::Minor));
        assert!(r.notes.last().unwrap().contains("7.1 %"), "{:?}", r.notes);
    }

    #[test]
    fn totals_may_come_from_vmstat_and_partial_sources_say_so() {
        let mut s = snapshot(vec![cache("grep", 100, None)], MemInfo::default());
        s.system.vmstat.insert("nr_slab_reclaimable".into(), 20);
        s.system.vmstat.insert("nr_slab_unreclaimable".into(), 30);
        s.warnings
            .push(Warning::new(WarningCode::Incomplete, "part"));
        let r = reconcile(&s);
        assert_eq!(r.all.meminfo, kib(200));
        assert_eq!(r.all.difference, Some(Approx::estimate(100 * 1024)));
        assert!(r.notes[0].contains("only a part"), "{:?}", r.notes);
    }

    #[test]
    fn a_source_without_caches_is_not_compared() {
        let info = MemInfo {
            mem_total: kib(1000),
            s_reclaimable: kib(100),
            s_unreclaim: kib(200),
            ..MemInfo::default()
        };
        let r = reconcile(&snapshot(Vec::new(), info));
        let sides = [r.all, r.reclaimable, r.unreclaimable];
        assert_eq!(sides.map(|s| s.difference), [None; 3]);
        assert_eq!(r.verdict, Some(Verdict::Major), "meminfo tells the share");
    }

    #[test]
    fn nothing_known_says_nothing() {
        let r = reconcile(&snapshot(Vec::new(), MemInfo::default()));
        assert_eq!(
            (r.all.difference, r.memory_share, r.verdict),
            (None, None, None)
        );
        assert!(r.notes.is_empty());
    }
}
