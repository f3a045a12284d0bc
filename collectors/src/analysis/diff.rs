//! What changed from one snapshot to another.
//!
//! Deltas are signed and never wrap. A figure that one side lacks has no
//! delta; a cache that one side does not have held nothing there, unless that
//! side is known to list only a part of the caches, which marks its delta.
//! Counters are not compared across a change of their meaning (see
//! [`CounterId`](crate::model::CounterId)).

mod counters;
mod notes;
mod pair;

pub use counters::{CounterDelta, deltas as counter_steps};
pub use pair::pair;

use std::cmp::Reverse;
use std::time::Duration;

use crate::model::{
    Approx, Bytes, Cache, CountedBy, Counters, Objects, Quantity, Slabs, Snapshot, Warnings,
};

use super::Usage;
use super::consistency::is_partial;
use super::totals::Totals;

/// One figure on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Change {
    /// In the first snapshot.
    pub before: Option<Approx<u64>>,
    /// In the second snapshot.
    pub after: Option<Approx<u64>>,
    /// Second minus first.
    pub delta: Option<Approx<i128>>,
    /// The delta scaled to one hour, where the time between is known.
    pub per_hour: Option<Approx<f64>>,
}

/// The figures that are compared, of a cache or of all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Changes {
    /// Objects in use.
    pub objects: Change,
    /// Objects that the slabs have room for.
    pub total_objects: Change,
    /// Slabs held.
    pub slabs: Change,
    /// Slabs on partial lists.
    pub partial: Change,
    /// Bytes held.
    pub memory: Change,
    /// Bytes of payload in use.
    pub used: Change,
    /// Bytes held but not in use as payload.
    pub loss: Change,
}

/// On which sides a cache is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Presence {
    /// In both snapshots.
    Both,
    /// Only in the second.
    Appeared,
    /// Only in the first.
    Vanished,
}

impl Presence {
    /// The name in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Appeared => "appeared",
            Self::Vanished => "vanished",
        }
    }
}

/// One cache in both snapshots.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffRow {
    /// The name shown in the second snapshot, or in the first if it vanished.
    pub name: Box<str>,
    /// The name shown in the first snapshot, where it was another.
    pub renamed_from: Option<Box<str>>,
    /// Directory in /sys/kernel/slab.
    pub sysfs_id: Option<Box<str>>,
    /// Control group.
    pub cgroup: Option<Box<str>>,
    /// On which sides it is.
    pub presence: Presence,
    /// Index in the caches of the first snapshot.
    pub before: Option<usize>,
    /// Index in the caches of the second snapshot.
    pub after: Option<usize>,
    /// The figures.
    pub changes: Changes,
    /// Counters that both sides have; empty when they must not be compared.
    pub counters: Vec<CounterDelta>,
}

/// What changed from one snapshot to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// Every cache of both, by falling size of the memory delta, then by name.
    pub rows: Vec<DiffRow>,
    /// Sums over the caches of each side.
    pub totals: Changes,
    /// Time between the snapshots, given or from their times.
    pub elapsed: Option<Duration>,
    /// What to know when reading the rows.
    pub warnings: Warnings,
}

/// Compares snapshot `a` with the later `b`.
///
/// Without `elapsed` the times of the snapshots tell it, where both are known.
pub fn diff(a: &Snapshot, b: &Snapshot, elapsed: Option<Duration>) -> Diff {
    let elapsed = elapsed.or_else(|| time_between(a, b));
    let context = Context {
        a,
        b,
        hours: elapsed
            .filter(|e| !e.is_zero())
            .map(|e| e.as_secs_f64() / 3600.0),
        counters: a.system.era == b.system.era,
    };
    let partner = pair::pair(&a.caches, &b.caches);
    let mut rows = Vec::with_capacity(a.caches.len().max(b.caches.len()));
    let mut paired = vec![false; b.caches.len()];
    for (i, j) in partner.iter().enumerate() {
        if let Some(j) = j {
            paired[*j] = true;
        }
        rows.extend(context.row(Some(i), *j));
    }
    for j in (0..b.caches.len()).filter(|j| !paired[*j]) {
        rows.extend(context.row(None, Some(j)));
    }
    rows.sort_by(|x, y| sort_key(x).cmp(&sort_key(y)));
    Diff {
        totals: context.totals(),
        warnings: context.warnings(&rows),
        rows,
        elapsed,
    }
}

fn time_between(a: &Snapshot, b: &Snapshot) -> Option<Duration> {
    let (a, b) = (a.origin.taken_at?, b.origin.taken_at?);
    a.duration_until(b).try_into().ok()
}

type SortKey<'r> = (
    Reverse<Option<u128>>,
    &'r str,
    Option<&'r str>,
    bool,
    Option<usize>,
    Option<usize>,
);

/// Largest memory delta first, unknown ones last, ties by name and place.
fn sort_key(row: &DiffRow) -> SortKey<'_> {
    let size = row.changes.memory.delta.map(|d| d.value.unsigned_abs());
    (
        Reverse(size),
        &*row.name,
        row.cgroup.as_deref(),
        row.before.is_none(),
        row.before,
        row.after,
    )
}

/// Growth that is too much.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Threshold {
    /// More memory than this.
    pub bytes: Option<u64>,
    /// More memory than this many percent of what was held before.
    pub percent: Option<f64>,
    /// More objects in use than this.
    pub objects: Option<u64>,
}

/// Whether a cache grew by more than every limit that is given.
///
/// Shrinking and unknown deltas never exceed, nor does anything exceed a
/// threshold without limits. For "any limit", ask with one at a time. A cache
/// that held nothing grew by more than any percentage.
pub fn exceeds(row: &DiffRow, threshold: &Threshold) -> bool {
    let grown = |change: &Change| change.delta.map_or(0, |d| d.value.max(0));
    let memory = grown(&row.changes.memory);
    let checks = [
        threshold.bytes.map(|limit| memory > i128::from(limit)),
        threshold.percent.map(|limit| {
            let before = row.changes.memory.before.map_or(0, |b| b.value);
            memory > 0 && (before == 0 || memory as f64 * 100.0 / before as f64 > limit)
        }),
        threshold
            .objects
            .map(|limit| grown(&row.changes.objects) > i128::from(limit)),
    ];
    let mut given = checks.into_iter().flatten().peekable();
    given.peek().is_some() && given.all(|exceeded| exceeded)
}

/// The figures of one side, in the order of [`Changes`].
type Figures = [Option<Approx<u64>>; 7];

fn figures(cache: &Cache, page_size: u64) -> Figures {
    let usage = Usage::of(cache, page_size);
    let bytes = |b: Option<Approx<Bytes>>| b.map(|b| b.map(Bytes::get));
    [
        cache.get(Quantity::Objects),
        cache.get(Quantity::TotalObjects),
        cache.get(Quantity::Slabs),
        cache.get(Quantity::Partial),
        bytes(usage.memory),
        bytes(usage.used),
        bytes(usage.loss),
    ]
}

fn sums(snapshot: &Snapshot) -> Figures {
    let sum = Totals::of(&snapshot.caches, snapshot.system.page_size);
    let bytes = |b: Option<Approx<Bytes>>| b.map(|b| b.map(Bytes::get));
    [
        sum.objects.total.map(|t| t.map(Objects::get)),
        sum.total_objects.total.map(|t| t.map(Objects::get)),
        sum.slabs.total.map(|t| t.map(Slabs::get)),
        sum.partial.total.map(|t| t.map(Slabs::get)),
        bytes(sum.memory.total),
        bytes(sum.used.total),
        bytes(sum.loss.total),
    ]
}

struct Context<'s> {
    a: &'s Snapshot,
    b: &'s Snapshot,
    hours: Option<f64>,
    counters: bool,
}

impl Context<'_> {
    fn row(&self, before: Option<usize>, after: Option<usize>) -> Option<DiffRow> {
        let old = before.and_then(|i| self.a.caches.get(i));
        let new = after.and_then(|i| self.b.caches.get(i));
        let shown = new.or(old)?;
        let changes = self.changes(
            old.map(|c| figures(c, self.a.system.page_size)),
            new.map(|c| figures(c, self.b.system.page_size)),
        );
        let counters = match (old, new) {
            (Some(old), Some(new)) if self.counters => {
                let deltas = counter_deltas(old.counters.as_deref(), new.counters.as_deref());
                if new.counted_by == CountedBy::Inference {
                    inferred(deltas)
                } else {
                    deltas
                }
            }
            _ => Vec::new(),
        };
        Some(DiffRow {
            name: shown.name.clone(),
            renamed_from: old.map(|c| c.name.clone()).filter(|n| *n != shown.name),
            sysfs_id: shown.sysfs_id.clone(),
            cgroup: shown.cgroup.clone(),
            presence: match (old, new) {
                (Some(_), Some(_)) => Presence::Both,
                (None, _) => Presence::Appeared,
                (_, None) => Presence::Vanished,
            },
            before,
            after,
            changes,
            counters,
        })
    }

    fn totals(&self) -> Changes {
        self.changes(Some(sums(self.a)), Some(sums(self.b)))
    }

    /// `None` for a side without the cache.
    fn changes(&self, before: Option<Figures>, after: Option<Figures>) -> Changes {
        let old = before.unwrap_or_else(|| nothing(self.a));
        let new = after.unwrap_or_else(|| nothing(self.b));
        let [objects, total_objects, slabs, partial, memory, used, loss] =
            std::array::from_fn(|i| {
                let mut change = self.change(old[i], new[i]);
                change.before = change.before.filter(|_| before.is_some());
                change.after = change.after.filter(|_| after.is_some());
                change
            });
        Changes {
            objects,
            total_objects,
            slabs,
            partial,
            memory,
            used,
            loss,
        }
    }

    fn change(&self, before: Option<Approx<u64>>, after: Option<Approx<u64>>) -> Change {
        let delta = before
            .zip(after)
            .map(|(old, new)| new.zip_with(old, |new, old| i128::from(new) - i128::from(old)));
        Change {
            before,
            after,
            delta,
            per_hour: delta
                .zip(self.hours)
                .map(|(delta, hours)| delta.map(|d| d as f64 / hours)),
        }
    }
}

/// What a side holds of a cache that it does not list.
fn nothing(side: &Snapshot) -> Figures {
    [Some(Approx {
        value: 0,
        approx: is_partial(side),
    }); 7]
}

/// Marks what was not read but told from something else.
fn inferred(mut deltas: Vec<CounterDelta>) -> Vec<CounterDelta> {
    for delta in deltas.iter_mut().filter_map(|d| d.delta.as_mut()) {
        delta.approx = true;
    }
    deltas
}

fn counter_deltas(before: Option<&Counters>, after: Option<&Counters>) -> Vec<CounterDelta> {
    before
        .zip(after)
        .map(|(before, after)| counters::deltas(before, after))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
