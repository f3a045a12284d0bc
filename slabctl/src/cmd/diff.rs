//! `slabctl diff`: what grew or shrank, by how much and how fast.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use collectors::analysis::diff::{self, Change, Changes, Diff, DiffRow, Presence};
use collectors::columns::{self, Row};
use collectors::model::{Cache, Snapshot, Unit};
use collectors::source::{Demand, Source as _, capture};
use collectors::units;

use super::select::Selection;
use super::{Context, cells, report};
use crate::cli::{Diff as Args, Format};
use crate::fail::{Failure, Status};
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_diff};
use crate::{interval, open};

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    let sort = args.select.sort.as_deref();
    let selection = Selection::new(&[], &without_order(args), None)?;
    let threshold = args.threshold.as_deref().map(threshold).transpose()?;
    let order = sort.map(Order::parse).transpose()?.unwrap_or(Order::Memory);
    let elapsed = args.elapsed.as_deref().map(interval::parse).transpose()?;
    let (before, after, elapsed) = snapshots(context, args, elapsed)?;
    let mut diff = diff::diff(&before, &after, elapsed);
    let grew = threshold.map(|t| diff.rows.iter().any(|row| diff::exceeds(row, &t)));
    let changed = diff.rows.iter().any(is_changed);
    diff.rows.retain(|row| {
        keep(row, &selection, &before, &after)
            && (args.all || is_changed(row))
            && threshold.is_none_or(|t| diff::exceeds(row, &t))
    });
    order.sort(&mut diff.rows, args.select.reverse);
    let total = diff.rows.len();
    if let Some(top) = args.select.top {
        diff.rows.truncate(top);
    }
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => json::write(&mut out, &json_diff::document(&before, &after, &diff))?,
        Format::Jsonl => {
            for row in &diff.rows {
                json_diff::write_line(&mut out, row)?;
            }
        }
        _ => report::write_table(context, &table(context, &diff), &mut out)?,
    }
    out.flush()?;
    say(context, &diff, total, &before, &after);
    let found = args.exit_code && grew.unwrap_or(changed);
    Ok(if found { Status::Findings } else { Status::Ok })
}

/// Sorting is by change, not by a column of one side.
fn without_order(args: &Args) -> crate::cli::Select {
    crate::cli::Select {
        sort: None,
        ..args.select.clone()
    }
}

fn snapshots(
    context: &Context,
    args: &Args,
    elapsed: Option<Duration>,
) -> anyhow::Result<(Snapshot, Snapshot, Option<Duration>)> {
    let demand = demand();
    if let Some(text) = &args.interval {
        let wait = interval::parse(text)?;
        let mut source = open::source(&context.global)?;
        if !source.is_live() {
            return Err(Failure::usage(
                "--interval needs a live source: a saved file does not change",
            )
            .into());
        }
        let before = source.sample(&demand).map_err(open::with_hints)?;
        let start = std::time::Instant::now();
        std::thread::sleep(wait);
        let after = source.sample(&demand).map_err(open::with_hints)?;
        return Ok((before, after, Some(start.elapsed())));
    }
    let Some(path) = &args.before else {
        return Err(Failure::usage("diff needs two captures, or --interval").into());
    };
    let before = saved(path)?;
    let after = match &args.after {
        Some(path) => saved(path)?,
        None => open::sample(&context.global, &demand)?,
    };
    Ok((before, after, elapsed))
}

fn saved(path: &Path) -> Result<Snapshot, Failure> {
    Ok(capture::open(path)?.sample(&Demand::everything())?)
}

fn demand() -> Demand {
    let mut demand = Demand::names();
    for key in ["loss", "partial", "objects", "total_objects"] {
        if let Some(column) = columns::find(key) {
            column.ask(&mut demand);
        }
    }
    demand
}

/// What to sort by.
#[derive(Debug, Clone, Copy)]
enum Order {
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
    fn parse(name: &str) -> Result<Self, Failure> {
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
    fn sort(self, rows: &mut [DiffRow], reverse: bool) {
        rows.sort_by(|a, b| {
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

fn is_changed(row: &DiffRow) -> bool {
    let c = &row.changes;
    row.presence != Presence::Both
        || [
            &c.objects,
            &c.total_objects,
            &c.slabs,
            &c.partial,
            &c.memory,
        ]
        .iter()
        .any(|change| change.delta.is_some_and(|d| d.value != 0))
}

/// A filter holds when it holds for either side.
fn keep(row: &DiffRow, selection: &Selection, before: &Snapshot, after: &Snapshot) -> bool {
    let accepts = |index: Option<usize>, snapshot: &Snapshot| {
        let cache: Option<&Cache> = index.and_then(|i| snapshot.caches.get(i));
        cache.is_some_and(|c| selection.accepts(&Row::new(c, snapshot.system.page_size)))
    };
    accepts(row.after, after) || accepts(row.before, before)
}

fn table(context: &Context, diff: &Diff) -> Table {
    let scale = context.global.scale();
    let timed = diff.elapsed.is_some_and(|e| !e.is_zero());
    let mut heads = vec![
        Head::left("Name"),
        Head::left("").key("status"),
        Head::right("Space").key("memory_before"),
        Head::right("Now").key("memory_after"),
        Head::right("Change").key("memory_delta"),
        Head::right("Objects").key("objects_delta"),
        Head::right("Slabs").key("slabs_delta"),
        Head::right("Part").key("partial_delta"),
    ];
    if timed {
        heads.push(Head::right("Space/h").key("memory_per_hour"));
    }
    let mut table = Table::new(heads);
    for row in &diff.rows {
        let mark = match row.presence {
            Presence::Both => "",
            Presence::Appeared => "new",
            Presence::Vanished => "gone",
        };
        table.row(line(&row.name, mark, &row.changes, timed, scale));
    }
    table.row(line("total, all caches", "", &diff.totals, timed, scale));
    table
}

fn line(name: &str, mark: &str, changes: &Changes, timed: bool, scale: units::Scale) -> Vec<Cell> {
    let memory = &changes.memory;
    let mut cells = vec![
        Cell::text(name),
        Cell::text(mark),
        cells::maybe(memory.before, Unit::Bytes, scale),
        cells::maybe(memory.after, Unit::Bytes, scale),
        cells::delta(memory.delta, Unit::Bytes, scale),
        cells::delta(changes.objects.delta, Unit::Objects, scale),
        cells::delta(changes.slabs.delta, Unit::Slabs, scale),
        cells::delta(changes.partial.delta, Unit::Slabs, scale),
    ];
    if timed {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a rate is rounded for people; floats saturate when cast"
        )]
        let rate = memory.per_hour.map(|r| r.map(|v| v.round() as i128));
        cells.push(cells::delta(rate, Unit::Bytes, scale));
    }
    cells
}

fn say(context: &Context, diff: &Diff, total: usize, before: &Snapshot, after: &Snapshot) {
    if let Some(elapsed) = diff.elapsed {
        context.note(&format!("{:.1} s between the two", elapsed.as_secs_f64()));
    } else {
        context.note("the time between the two is not known (--elapsed gives growth per hour)");
    }
    if diff.rows.len() < total {
        context.note(&format!(
            "{} more not shown (--top)",
            total - diff.rows.len()
        ));
    }
    if total == 0 {
        context.note("nothing to show");
    }
    open::say_warnings(&context.global, before);
    if before.warnings != after.warnings {
        open::say_warnings(&context.global, after);
    }
    for warning in &diff.warnings {
        context.note(&format!(
            "warning: {}",
            crate::output::text::one_line(&warning.to_string())
        ));
    }
}
