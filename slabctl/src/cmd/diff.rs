//! `slabctl diff`: what grew or shrank, by how much and how fast.

mod table;

pub(crate) use table::{exact, mark};

use std::io::Write;
use std::time::Duration;

use collectors::analysis::diff::{self, Change, Changes, Diff, DiffRow, Presence};
use collectors::columns::{self, Row};
use collectors::model::{Cache, OriginKind, Snapshot};
use collectors::source::Demand;
use collectors::units;
use jiff::SignedDuration;

use super::select::Selection;
use super::sides::Sides;
use super::{Context, report};
use crate::cli::{Diff as Args, Format};
use crate::fail::{Failure, Status};
use crate::output::{json, json_diff, text};
use crate::{interval, open};

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    let sort = args.select.sort.as_deref();
    let selection = Selection::new(&[], &args.select.without_order(), None)?;
    let threshold = args.threshold.as_deref().map(threshold).transpose()?;
    let order = sort.map(Order::parse).transpose()?.unwrap_or(Order::Memory);
    let elapsed = args.elapsed.as_deref().map(interval::parse).transpose()?;
    let sides = Sides {
        before: args.before.as_deref(),
        after: args.after.as_deref(),
        interval: args.interval.as_deref(),
        paths: args.paths.how,
    };
    let (before, after, passed) = sides.read(context, "diff", &demand(context, &selection))?;
    let elapsed = passed.or(elapsed);
    let mut diff = diff::diff(&before, &after, elapsed);
    diff.rows
        .retain(|row| keep(row, &selection, &before, &after));
    let unknown = diff
        .rows
        .iter()
        .filter(|r| r.changes.memory.delta.is_none());
    let unknown = unknown.count();
    diff.rows.retain(|row| {
        (args.all || is_changed(row)) && threshold.is_none_or(|t| diff::exceeds(row, &t))
    });
    // Before --top, which only shortens what is shown.
    let found = threshold.map_or_else(
        || diff.rows.iter().any(is_changed),
        |_| !diff.rows.is_empty(),
    );
    order.sort(&mut diff.rows, args.select.reverse, |row| row);
    let total = diff.rows.len();
    if let Some(top) = args.select.top {
        diff.rows.truncate(top);
    }
    write(context, &before, &after, &diff)?;
    if threshold.is_some() && unknown > 0 {
        context.note(&format!(
            "memory not known on both sides, so not held against the threshold: {unknown} of the caches"
        ));
    }
    say(context, &diff, total, &before, &after);
    let found = args.exit_code && found;
    Ok(if found { Status::Findings } else { Status::Ok })
}

fn write(
    context: &Context,
    before: &Snapshot,
    after: &Snapshot,
    diff: &Diff,
) -> anyhow::Result<()> {
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => {
            let live = |side: &Snapshot| side.origin.kind != OriginKind::Capture;
            let now = (live(before) || live(after)).then(jiff::Timestamp::now);
            json::write(&mut out, &json_diff::document(before, after, diff, now))?;
        }
        Format::Jsonl => {
            for row in &diff.rows {
                json_diff::write_line(&mut out, row)?;
            }
        }
        Format::Csv => report::write_table(context, &exact(diff), &mut out)?,
        Format::Table | Format::Md => {
            let table = table::people(diff, context.global.scale());
            report::write_table(context, &table, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// What a live side must read: the compared figures, what the filter looks at,
/// and the counters where they are written.
fn demand(context: &Context, selection: &Selection) -> Demand {
    let mut demand = Demand::names();
    for key in ["loss", "partial", "objects", "total_objects"] {
        if let Some(column) = columns::find(key) {
            column.ask(&mut demand);
        }
    }
    selection.ask(&mut demand);
    demand.counters |= matches!(context.global.format(), Format::Json | Format::Jsonl);
    demand
}

/// What to sort by: a change, not a column of one side.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    Name,
    Objects,
    TotalObjects,
    Slabs,
    Partial,
    Memory,
    Used,
    Loss,
}

impl Order {
    pub(crate) fn parse(name: &str) -> Result<Self, Failure> {
        let key = columns::find(name).map_or("", |c| c.key);
        Ok(match key {
            "name" => Self::Name,
            "objects" => Self::Objects,
            "total_objects" => Self::TotalObjects,
            "slabs" => Self::Slabs,
            "partial" => Self::Partial,
            "memory" => Self::Memory,
            "used" => Self::Used,
            "loss" => Self::Loss,
            _ => {
                return Err(Failure::usage(format!("cannot sort changes by {name:?}"))
                    .hint("name, objects, total_objects, slabs, partial, memory, used and loss can be compared"));
            }
        })
    }

    fn change(self, changes: &Changes) -> Option<i128> {
        let change: &Change = match self {
            Self::Name => return None,
            Self::Objects => &changes.objects,
            Self::TotalObjects => &changes.total_objects,
            Self::Slabs => &changes.slabs,
            Self::Partial => &changes.partial,
            Self::Memory => &changes.memory,
            Self::Used => &changes.used,
            Self::Loss => &changes.loss,
        };
        change.delta.map(|d| d.value)
    }

    /// Largest growth first; the unknown last; ties by name.
    pub(crate) fn sort<T>(self, rows: &mut [T], reverse: bool, of: impl Fn(&T) -> &DiffRow) {
        rows.sort_by(|a, b| {
            let (a, b) = (of(a), of(b));
            let key = |row: &DiffRow| self.change(&row.changes);
            let order = match (key(a), key(b)) {
                (Some(a), Some(b)) if reverse => a.cmp(&b),
                (Some(a), Some(b)) => b.cmp(&a),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            let names = a.name.cmp(&b.name);
            let by_name = matches!(self, Self::Name);
            order.then(if by_name && reverse {
                names.reverse()
            } else {
                names
            })
        });
    }
}

/// `10M` and `500` are bytes, `10%` is relative.
fn threshold(text: &str) -> Result<diff::Threshold, Failure> {
    let mut threshold = diff::Threshold::default();
    if let Some(number) = text.strip_suffix('%') {
        let percent: Option<f64> = number.trim().parse().ok();
        let percent = percent.filter(|p| p.is_finite() && *p >= 0.0);
        threshold.percent = Some(percent.ok_or_else(|| bad_threshold(text))?);
    } else {
        threshold.bytes = Some(units::parse_size(text).ok_or_else(|| bad_threshold(text))?);
    }
    Ok(threshold)
}

fn bad_threshold(text: &str) -> Failure {
    Failure::usage(format!("{text:?} is no growth: write 10M, 500 or 10%"))
}

/// Whether a figure is known to differ, or the cache came or went.
pub(crate) fn is_changed(row: &DiffRow) -> bool {
    row.presence != Presence::Both
        || json_diff::named(&row.changes)
            .iter()
            .any(|(_, change)| change.delta.is_some_and(|d| d.value != 0))
}

/// A filter holds when it holds for either side.
pub(crate) fn keep(
    row: &DiffRow,
    selection: &Selection,
    before: &Snapshot,
    after: &Snapshot,
) -> bool {
    let accepts = |index: Option<usize>, snapshot: &Snapshot| {
        let cache: Option<&Cache> = index.and_then(|i| snapshot.caches.get(i));
        cache.is_some_and(|c| selection.accepts(&Row::new(c, snapshot.system.page_size)))
    };
    accepts(row.after, after) || accepts(row.before, before)
}

fn say(context: &Context, diff: &Diff, total: usize, before: &Snapshot, after: &Snapshot) {
    if let Some(elapsed) = diff.elapsed {
        context.note(&format!("{} between the two", time(elapsed)));
    } else {
        context.note("the time between the two is not known (--elapsed gives growth per hour)");
    }
    let cut = total - diff.rows.len();
    if cut > 0 {
        context.note(&format!("{cut} more not shown (--top)"));
    }
    if total == 0 {
        context.note("nothing to show");
    }
    if before.warnings == after.warnings {
        open::say_warnings(&context.global, after);
    } else {
        for side in [before, after] {
            if !side.warnings.is_empty() {
                let name = text::one_line(&side.origin.detail);
                context.note(&format!("about {name}:"));
                open::say_warnings(&context.global, side);
            }
        }
    }
    for warning in &diff.warnings {
        context.note(&format!(
            "warning: {}",
            text::one_line(&warning.to_string())
        ));
    }
}

/// `9.8 s` or `1h 30m`.
fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let whole = Duration::from_secs(elapsed.as_secs());
    SignedDuration::try_from(whole).map_or_else(|_| format!("{seconds:.0} s"), |d| format!("{d:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_size_or_a_percentage() {
        assert_eq!(threshold("10M").unwrap().bytes, Some(10 << 20));
        assert_eq!(threshold("500").unwrap().bytes, Some(500));
        assert_eq!(threshold("0").unwrap().bytes, Some(0));
        assert_eq!(threshold("2.5%").unwrap().percent, Some(2.5));
        for bad in ["", "%", "lots", "-1", "-5%", "nan%", "inf%", "10X"] {
            let status = threshold(bad).unwrap_err().status;
            assert_eq!(status, Status::Usage, "{bad}");
        }
    }

    #[test]
    fn times_for_people() {
        assert_eq!(time(Duration::from_millis(10_040)), "10.0 s");
        assert_eq!(time(Duration::from_secs(5400)), "1h 30m");
        assert_eq!(time(Duration::from_millis(86_400_700)), "24h");
        assert!(time(Duration::MAX).ends_with(" s"));
    }
}
