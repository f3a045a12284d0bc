//! The document `slabctl.stat/1`: what the caches did while a command ran.
//!
//! Source of truth: `cmd::stat::Seen`; rows are those that it left, in its
//! order. A row is one of `slabctl.diff/1` with the highest figures beside it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Source, SystemInfo, moment};
use super::json_diff::{Row, Side, SideWarning, TotalsRow, all_warnings};
use crate::cmd::stat::{Peak, Seen};

/// What the slab caches did while a command ran: everything that happened on
/// the machine meanwhile, not only what the command did.
///
/// Integers are exact and in the unit their description names; nothing is
/// scaled. What is unknown is null, never 0. What is an estimate or a bound is
/// named in the `approx` list beside it. Later versions of this document may
/// add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.stat/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// Where the later figures are from; the same as `after.source`.
    source: Source<'a>,
    /// The machine.
    system: SystemInfo<'a>,
    /// What was run.
    command: CommandOut<'a>,
    /// Seconds from the command's start to its end.
    elapsed_seconds: f64,
    /// Samples taken, the first and the last included.
    samples: u64,
    /// Seconds between two samples.
    interval_seconds: f64,
    /// Before the command was started.
    before: Side<'a>,
    /// After it had ended.
    after: Side<'a>,
    /// The caches chosen, in the order chosen: those of which something is known
    /// to have happened, unless all were asked for.
    caches: Vec<StatRow<'a>>,
    /// Sums over all caches before and after, chosen or not.
    totals: TotalsRow,
    /// What could not be read, and what to know about the figures.
    warnings: Vec<SideWarning>,
}

/// The command and how it ended.
#[derive(Debug, Serialize, JsonSchema)]
struct CommandOut<'a> {
    /// The program, as it was named.
    program: &'a str,
    /// Its exit status; null when a signal ended it.
    exit_status: Option<i32>,
    /// The number of the signal that ended it; null when none did.
    signal: Option<i32>,
}

/// One cache.
#[derive(Debug, Serialize, JsonSchema)]
struct StatRow<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    /// The highest figures of all samples.
    highest: Highest,
}

/// The highest figures that any sample had: what came and went between two
/// samples is not in them. Null when no sample had the figure.
#[derive(Debug, Serialize, JsonSchema)]
struct Highest {
    /// Objects in use. Includes free ones parked near CPUs.
    objects: Option<u64>,
    /// Slabs held.
    slabs: Option<u64>,
    /// Slabs on the nodes' partial lists.
    partial: Option<u64>,
    /// Bytes of memory held.
    memory_bytes: Option<u64>,
}

impl Highest {
    const fn of(peak: &Peak) -> Self {
        Self {
            objects: peak.objects,
            slabs: peak.slabs,
            partial: peak.partial,
            memory_bytes: peak.memory,
        }
    }
}

/// The document on what was seen.
pub(crate) fn document(seen: &Seen, now: Timestamp) -> Document<'_> {
    let rows = seen.diff.rows.iter().zip(&seen.peaks);
    Document {
        schema: "slabctl.stat/1",
        generated_at: moment(Some(now)),
        source: Source::of(&seen.after.origin),
        system: SystemInfo::of(&seen.after.system),
        command: CommandOut {
            program: &seen.outcome.name,
            exit_status: seen.outcome.code,
            signal: seen.outcome.signal,
        },
        elapsed_seconds: seen.diff.elapsed.unwrap_or_default().as_secs_f64(),
        samples: seen.samples,
        interval_seconds: seen.interval.as_secs_f64(),
        before: Side::of(&seen.before),
        after: Side::of(&seen.after),
        caches: rows
            .map(|(row, peak)| StatRow {
                row: Row::of(row),
                highest: Highest::of(peak),
            })
            .collect(),
        totals: TotalsRow::of(&seen.diff),
        warnings: all_warnings(&seen.before, &seen.after, &seen.diff),
    }
}
