//! What a command did to the caches, as a table.

use std::cmp::Reverse;
use std::time::Duration;

use collectors::analysis::diff::{self, DiffRow};
use collectors::model::{Approx, CounterId, Snapshot, Unit};
use collectors::units::Scale;

use super::Seen;
use crate::cmd::cells;
use crate::cmd::diff::mark;
use crate::output::table::{Cell, Head, Table};

/// Steps of a counter; `None`: not counted.
fn steps(row: &DiffRow, name: &str) -> Option<u64> {
    let id = CounterId::ALL.iter().find(|id| id.name() == name)?;
    let counter = row.counters.iter().find(|c| c.id == *id)?;
    counter.delta.map(|d| d.value)
}

/// Steps of one side.
#[derive(Clone, Copy)]
struct Side {
    all: Option<u64>,
    /// Sheaves of 6.18 and 6.19 are counted apart, and fast.
    fast: Option<u64>,
    slow: Option<u64>,
}

impl Side {
    fn of(row: &DiffRow, [all, fast, sheaf, slow]: [&str; 4]) -> Self {
        let sheaf = steps(row, sheaf).unwrap_or(0);
        let fast = steps(row, fast).map(|fast| fast.saturating_add(sheaf));
        let slow = steps(row, slow);
        let sum = || Some(fast?.saturating_add(slow?));
        Self {
            all: steps(row, all).or_else(sum),
            fast,
            slow,
        }
    }

    /// The share of the fast path. An estimate where it is inferred which was taken,
    /// or where it is the rest of what was not slow: that may be of events in bulk.
    fn fast_share(self, inferred: bool) -> Option<Approx<f64>> {
        let all = self.all.filter(|all| *all > 0)?;
        let rest = || Some(all.saturating_sub(self.slow?));
        let fast = self.fast.or_else(rest)?;
        Some(Approx {
            value: fast as f64 / all as f64,
            approx: inferred || self.fast.is_none(),
        })
    }
}

/// Whether counters of the row are marked as estimates.
fn inferred(row: &DiffRow) -> bool {
    let mut deltas = row.counters.iter().filter_map(|c| c.delta);
    deltas.any(|delta| delta.approx)
}

/// The counters of allocations, and of frees: all, fast, by a sheaf apart, slow.
const PATHS: [[&str; 4]; 2] = [
    [
        "allocs",
        "alloc_fastpath",
        "alloc_cpu_sheaf",
        "alloc_slowpath",
    ],
    ["frees", "free_fastpath", "free_cpu_sheaf", "free_slowpath"],
];
/// Slabs from the page allocator, and back.
const SLABS: [&str; 2] = ["alloc_slab", "free_slab"];

/// What people look at.
pub(super) fn people(seen: &Seen, scale: Scale) -> Table {
    let counted = seen.diff.rows.iter().any(|row| !row.counters.is_empty());
    let mut heads = vec![Head::left("Name"), Head::left("")];
    heads.extend(
        [
            "Space", "Change", "Highest", "Objects", "Highest", "Slabs", "Part",
        ]
        .map(Head::right),
    );
    if counted {
        heads.extend(["Allocs", "Fast", "Frees", "Fast"].map(Head::right));
    }
    let mut rows = seen.diff.rows.iter();
    let slabs = rows.any(|row| SLABS.iter().any(|name| steps(row, name).is_some()));
    if slabs {
        heads.extend(["Slabs in", "Slabs out"].map(Head::right));
    }
    let mut table = Table::new(heads);
    for (row, peak) in seen.diff.rows.iter().zip(&seen.peaks) {
        let changes = &row.changes;
        let highest =
            |figure: Option<u64>, unit| cells::maybe(figure.map(Approx::exact), unit, scale);
        let mut cells = vec![
            Cell::text(&*row.name),
            Cell::text(mark(row)),
            cells::maybe(changes.memory.after, Unit::Bytes, scale),
            cells::delta(changes.memory.delta, Unit::Bytes, scale),
            highest(peak.memory, Unit::Bytes),
            cells::delta(changes.objects.delta, Unit::Objects, scale),
            highest(peak.objects, Unit::Objects),
            cells::delta(changes.slabs.delta, Unit::Slabs, scale),
            cells::delta(changes.partial.delta, Unit::Slabs, scale),
        ];
        if counted {
            for names in PATHS {
                let side = Side::of(row, names);
                cells.push(number(side.all));
                cells.push(cells::maybe_percent(side.fast_share(inferred(row))));
            }
            if slabs {
                let approx = inferred(row);
                let told = |value| Approx { value, approx };
                cells.extend(
                    SLABS.map(|name| cells::maybe(steps(row, name).map(told), Unit::Slabs, scale)),
                );
            }
        }
        table.row(cells);
    }
    table
}

/// Every figure, under the same header whatever is known.
pub(super) fn exact(seen: &Seen) -> Table {
    let mut table = crate::cmd::diff::exact(&seen.diff);
    let heads = [
        "objects_highest",
        "slabs_highest",
        "partial_highest",
        "memory_highest",
        "allocs",
        "allocs_fast",
        "frees",
        "frees_fast",
        "slabs_in",
        "slabs_out",
        "allocs_slow",
        "frees_slow",
    ];
    let rows = seen.diff.rows.iter().zip(&seen.peaks);
    table.widen(
        &heads.map(Head::right),
        rows.map(|(row, peak)| {
            let mut figures = vec![peak.objects, peak.slabs, peak.partial, peak.memory];
            for names in PATHS {
                let side = Side::of(row, names);
                figures.extend([side.all, side.fast]);
            }
            figures.extend(SLABS.map(|name| steps(row, name)));
            figures.extend(PATHS.map(|names| Side::of(row, names).slow));
            let cells = figures.into_iter();
            cells.map(number).collect()
        }),
    );
    table
}

fn number(figure: Option<u64>) -> Cell {
    figure.map_or_else(Cell::missing, |n| Cell::text(n.to_string()))
}

/// One line about the time since the start.
pub(super) fn line(elapsed: Duration, before: &Snapshot, now: &Snapshot, scale: Scale) -> String {
    let mut diff = diff::diff(before, now, Some(elapsed));
    let bytes = |row: &DiffRow| row.changes.memory.delta.map_or(0, |d| d.value);
    diff.rows
        .sort_by_key(|row| Reverse(bytes(row).unsigned_abs()));
    let shown = diff.rows.iter().filter(|row| bytes(row) != 0).take(3);
    let delta = |figure| cells::delta(figure, Unit::Bytes, scale).shown().to_owned();
    let names: Vec<String> = shown
        .map(|row| format!("{} {}", row.name, delta(row.changes.memory.delta)))
        .collect();
    let rest = if names.is_empty() {
        "no cache changed".to_owned()
    } else {
        names.join(", ")
    };
    format!(
        "{:.1} s: {} in all; {rest}",
        elapsed.as_secs_f64(),
        delta(diff.totals.memory.delta)
    )
}
