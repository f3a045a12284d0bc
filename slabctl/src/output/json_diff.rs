//! The document `slabctl.diff/1`, and one changed cache as a JSON line.
//!
//! Source of truth: two `Snapshot`s and the `Diff` of them; the rows are those
//! the caller left in it, in its order. Nothing is computed or chosen here.

use std::collections::BTreeMap;
use std::io::{self, Write};

use collectors::analysis::diff::{Change, Changes, CounterDelta, Diff, DiffRow};
use collectors::model::{Snapshot, Warnings};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::envelope::{Source, SystemInfo, WarningOut, moment};
use super::escape::Escaping;

/// What changed in the slab caches from one moment to a later one.
///
/// Integers are exact and in the unit their description names; nothing is
/// scaled. What is unknown is null, never 0. What is an estimate or a bound is
/// named in the `approx` list beside it. Later versions of this document may
/// add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.diff/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset. Null when both sides
    /// are saved, so that the same captures give the same document every time.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// Where the later figures are from; the same as `after.source`.
    source: Source<'a>,
    /// The machine the later figures are of; the same as `after.system`.
    system: SystemInfo<'a>,
    /// The earlier side.
    before: Side<'a>,
    /// The later side.
    after: Side<'a>,
    /// Seconds from the earlier side to the later one: as the user gave it, or
    /// measured, or from `taken_at` of both. Null when unknown; then so is every
    /// `per_hour`.
    elapsed_seconds: Option<f64>,
    /// The caches chosen, in the order chosen: those that changed, unless all
    /// were asked for. Two caches may have one name; each is a row of its own.
    #[schemars(with = "Vec<Row>")]
    caches: Rows<'a>,
    /// Sums over all caches of each side, chosen or not.
    totals: TotalsRow,
    /// What could not be read, and what to know about the figures and about
    /// comparing them.
    warnings: Vec<SideWarning>,
}

/// The document on `diff`, which compares `before` with the later `after`.
///
/// `generated_at` is the current time when a side is live, else `None`.
pub(crate) fn document<'a>(
    before: &'a Snapshot,
    after: &'a Snapshot,
    diff: &'a Diff,
    generated_at: Option<Timestamp>,
) -> Document<'a> {
    Document {
        schema: "slabctl.diff/1",
        generated_at: moment(generated_at),
        source: Source::of(&after.origin),
        system: SystemInfo::of(&after.system),
        before: Side::of(before),
        after: Side::of(after),
        elapsed_seconds: diff.elapsed.map(|e| e.as_secs_f64()),
        caches: Rows(&diff.rows),
        totals: TotalsRow::of(diff),
        warnings: all_warnings(before, after, diff),
    }
}

/// What is to be known about both sides and about comparing them.
pub(super) fn all_warnings(before: &Snapshot, after: &Snapshot, diff: &Diff) -> Vec<SideWarning> {
    let sides = [
        (Some("before"), &before.warnings),
        (Some("after"), &after.warnings),
        (None, &diff.warnings),
    ];
    let all = sides.into_iter();
    all.flat_map(|(side, list)| SideWarning::all(side, list))
        .collect()
}

/// Writes one changed cache as a line: the object that is in `caches` of the
/// document. `out` is not flushed.
pub(crate) fn write_line(out: &mut impl Write, row: &DiffRow) -> io::Result<()> {
    let mut out = Escaping::new(out);
    serde_json::to_writer(&mut out, &Row::of(row))?;
    out.write_all(b"\n")
}

/// One side of the comparison.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Side<'a> {
    /// Where its figures are from.
    source: Source<'a>,
    /// The machine they are of.
    system: SystemInfo<'a>,
}

impl<'a> Side<'a> {
    pub(super) fn of(snapshot: &'a Snapshot) -> Self {
        Self {
            source: Source::of(&snapshot.origin),
            system: SystemInfo::of(&snapshot.system),
        }
    }
}

/// Rows that are made while they are written.
#[derive(Debug)]
struct Rows<'a>(&'a [DiffRow]);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Row::of))
    }
}

/// One cache on both sides.
///
/// Null is unknown: the side does not give the figure, or does not have the
/// cache (see `status`).
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Row<'a> {
    /// Name of the cache on the later side, on the earlier one if it vanished.
    /// Not unique.
    name: &'a str,
    /// Its name on the earlier side where that was another, as with merged
    /// caches; else null.
    renamed_from: Option<&'a str>,
    /// Directory in /sys/kernel/slab, a merge id such as ":aA-0000192" where
    /// caches of one layout may share it.
    id: Option<&'a str>,
    /// Control group of a row from memory.kmem.slabinfo.
    cgroup: Option<&'a str>,
    /// On which sides the cache is. One that is on one side only held nothing on
    /// the other, so its deltas are known; where that side lists only some of
    /// its caches they are named in `approx`.
    #[schemars(extend("enum" = ["both", "appeared", "vanished"]))]
    status: &'static str,
    #[serde(flatten)]
    figures: Figures,
    /// How far each event counter went on, by name in the kernel's order. Null
    /// when the cache has none on both sides, and when the kernels count
    /// differently (another `era`).
    #[schemars(with = "Option<BTreeMap<String, CounterStep>>")]
    counters: Option<Steps<'a>>,
    /// Names of the figures, and of those in `counters`, that are an estimate or
    /// a bound on a side, and so are their deltas.
    approx: Vec<&'static str>,
}

impl<'a> Row<'a> {
    pub(super) fn of(row: &'a DiffRow) -> Self {
        let guessed = row
            .counters
            .iter()
            .filter(|c| c.delta.is_some_and(|d| d.approx))
            .map(|c| c.id.name());
        Self {
            name: &row.name,
            renamed_from: row.renamed_from.as_deref(),
            id: row.sysfs_id.as_deref(),
            cgroup: row.cgroup.as_deref(),
            status: row.presence.name(),
            figures: Figures::of(&row.changes),
            counters: (!row.counters.is_empty()).then_some(Steps(&row.counters)),
            approx: inexact(&row.changes).chain(guessed).collect(),
        }
    }
}

/// The compared figures of a cache, or their sums.
#[derive(Debug, Serialize, JsonSchema)]
struct Figures {
    /// Objects in use. Includes free ones parked near CPUs.
    objects: ChangeOut,
    /// Objects the slabs have room for.
    total_objects: ChangeOut,
    /// Slabs held.
    slabs: ChangeOut,
    /// Slabs on the nodes' partial lists.
    partial: ChangeOut,
    /// Bytes of memory held.
    memory_bytes: ChangeOut,
    /// Bytes of payload in use.
    used_bytes: ChangeOut,
    /// Bytes held and not used.
    loss_bytes: ChangeOut,
}

impl Figures {
    fn of(changes: &Changes) -> Self {
        let [objects, total_objects, slabs, partial, memory, used, loss] =
            named(changes).map(|(_, change)| ChangeOut::of(change));
        Self {
            objects,
            total_objects,
            slabs,
            partial,
            memory_bytes: memory,
            used_bytes: used,
            loss_bytes: loss,
        }
    }
}

/// The figures under their field names, in the order of the document.
pub(crate) const fn named(changes: &Changes) -> [(&'static str, &Change); 7] {
    [
        ("objects", &changes.objects),
        ("total_objects", &changes.total_objects),
        ("slabs", &changes.slabs),
        ("partial", &changes.partial),
        ("memory_bytes", &changes.memory),
        ("used_bytes", &changes.used),
        ("loss_bytes", &changes.loss),
    ]
}

fn inexact(changes: &Changes) -> impl Iterator<Item = &'static str> {
    let guessed = |c: &Change| {
        c.delta.is_some_and(|d| d.approx)
            || c.before.is_some_and(|b| b.approx)
            || c.after.is_some_and(|a| a.approx)
    };
    named(changes)
        .into_iter()
        .filter(move |(_, change)| guessed(change))
        .map(|(name, _)| name)
}

/// One figure on both sides.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangeOut {
    /// On the earlier side; null when unknown or when the cache is not there.
    before: Option<u64>,
    /// On the later side; null when unknown or when the cache is not there.
    after: Option<u64>,
    /// Later minus earlier, negative when it shrank; null when a side is
    /// unknown. The sign makes it 65 bits wide at most.
    delta: Option<i128>,
    /// The delta scaled to one hour; null when it or the time is unknown.
    per_hour: Option<f64>,
}

impl ChangeOut {
    fn of(change: &Change) -> Self {
        Self {
            before: change.before.map(|f| f.value),
            after: change.after.map(|f| f.value),
            delta: change.delta.map(|f| f.value),
            per_hour: change.per_hour.map(|f| f.value),
        }
    }
}

/// Counters as an object, in the kernel's order.
#[derive(Debug)]
struct Steps<'a>(&'a [CounterDelta]);

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|c| (c.id.name(), CounterStep::of(c))))
    }
}

/// How far one event counter went on.
#[derive(Debug, Serialize, JsonSchema)]
struct CounterStep {
    /// Steps over all CPUs, wraps of the 32-bit counters undone; null when
    /// nothing can be said: the sum fell and not all CPUs are listed.
    delta: Option<u64>,
    /// Steps by CPU; empty where a side does not list them.
    cpus: Vec<CpuStep>,
}

/// How far an event counter went on, on one CPU.
#[derive(Debug, Serialize, JsonSchema)]
struct CpuStep {
    /// Processor number.
    cpu: u32,
    /// Steps on this processor.
    delta: u64,
}

impl CounterStep {
    fn of(counter: &CounterDelta) -> Self {
        let cpus = counter.cpus.iter();
        Self {
            delta: counter.delta.map(|d| d.value),
            cpus: cpus
                .map(|(cpu, steps)| CpuStep {
                    cpu: cpu.0,
                    delta: steps.value,
                })
                .collect(),
        }
    }
}

/// Sums over all caches of each side. A sum is null when no cache of the side
/// has the figure.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TotalsRow {
    #[serde(flatten)]
    figures: Figures,
    /// Names of the sums that are not exact on a side: an addend is an estimate,
    /// a cache lacks the figure, or the sum is too large for 64 bits.
    approx: Vec<&'static str>,
}

impl TotalsRow {
    pub(super) fn of(diff: &Diff) -> Self {
        Self {
            figures: Figures::of(&diff.totals),
            approx: inexact(&diff.totals).collect(),
        }
    }
}

/// Something that could not be read, or that a reader of the figures must know.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SideWarning {
    /// Stable code, for example "broken-row". Programs should pass over codes
    /// they do not know; "suppressed" says how many warnings were left out.
    code: &'static str,
    /// One line for people, without the file and line.
    message: String,
    /// The file inside the source; null when there is none.
    file: Option<String>,
    /// The line in that file, from 1; null when there is none.
    line: Option<u64>,
    /// The side it is about; null when it is about comparing the two.
    #[schemars(extend("enum" = ["before", "after", null]))]
    side: Option<&'static str>,
}

impl SideWarning {
    fn all(side: Option<&'static str>, warnings: &Warnings) -> impl Iterator<Item = Self> {
        WarningOut::all(warnings).into_iter().map(move |w| Self {
            code: w.code,
            message: w.message,
            file: w.file,
            line: w.line,
            side,
        })
    }
}

#[cfg(test)]
mod tests;
