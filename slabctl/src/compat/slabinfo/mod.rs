//! `slabinfo`: the options and columns of the kernel's tools/mm/slabinfo.
//!
//! Source of truth: slabinfo.c of Linux 6.12 and 7.0, and its output on a live
//! kernel. Options that write to the kernel are refused. The differences are
//! listed in docs/COMPAT.md.

mod aliases;
mod bre;
mod list;
mod notes;
mod numa;
mod options;
mod perf;
mod report;
mod row;
mod select;
#[cfg(test)]
mod tests;
mod totals;
mod tracking;

use std::io::{self, Write};

use collectors::model::{Cache, Flag, Quantity, Snapshot};
use collectors::source::Demand;

use super::Outcome;
use super::printable::Printable;
use list::Columns;
use notes::Notes;
use options::{Mode, Sort, Switch};
use row::Row;

pub(crate) use options::Options;

/// What the columns of the list are made of.
const LISTED: [Quantity; 9] = [
    Quantity::ObjectSize,
    Quantity::Objects,
    Quantity::TotalObjects,
    Quantity::ObjsPerSlab,
    Quantity::Order,
    Quantity::Slabs,
    Quantity::Partial,
    Quantity::CpuSlabs,
    Quantity::AliasCount,
];

/// The flags with a letter in the list.
const LETTERS: [Flag; 8] = [
    Flag::CacheDma,
    Flag::HwcacheAlign,
    Flag::Poison,
    Flag::ReclaimAccount,
    Flag::RedZone,
    Flag::SanityChecks,
    Flag::StoreUser,
    Flag::Trace,
];

/// What a command line needs of a source.
pub(crate) fn demand(options: &Options) -> Demand {
    let mut demand = Demand::names();
    match options.mode() {
        Mode::Aliases => return demand,
        Mode::Numa => {
            demand = demand.with(&[Quantity::Slabs]);
            demand.nodes = true;
        }
        Mode::Tracking => {
            demand = demand.with(&[Quantity::Slabs]);
            demand.flags = vec![Flag::StoreUser];
            demand.sites = true;
        }
        Mode::List => listed(&mut demand),
        Mode::Report => reported(&mut demand),
        Mode::Totals | Mode::Xtotals => {
            listed(&mut demand);
            demand = demand.with(&[Quantity::SlabSize, Quantity::ObjectsPartial]);
        }
    }
    if options.has(Switch::Unreclaim) && !demand.flags.contains(&Flag::ReclaimAccount) {
        demand.flags.push(Flag::ReclaimAccount);
    }
    demand = demand.with(match options.sort() {
        Sort::Name | Sort::Activity => &[],
        Sort::Size => &[Quantity::Slabs, Quantity::Order],
        Sort::Partial => &[Quantity::Partial],
        Sort::Loss => &LISTED,
    });
    demand.counters |= options.sort() == Sort::Activity || options.has(Switch::DisplayActivity);
    demand
}

fn listed(demand: &mut Demand) {
    demand.quantities = demand.clone().with(&LISTED).quantities;
    demand.flags = LETTERS.to_vec();
}

fn reported(demand: &mut Demand) {
    listed(demand);
    let more = [Quantity::SlabSize, Quantity::Align];
    demand.quantities = demand.clone().with(&more).quantities;
    demand.flags.push(Flag::DestroyByRcu);
    demand.nodes = true;
    demand.counters = true;
    demand.sites = true;
}

/// What to sample first when a pattern is given: the names, so that the rest
/// is read of the caches that match and of no other.
pub(crate) fn first_demand(options: &Options) -> Demand {
    if options.pattern.is_some() {
        Demand::names()
    } else {
        demand(options)
    }
}

/// What to sample after [`first_demand`]. `None`: the first sample is enough.
pub(crate) fn second_demand(options: &Options, snapshot: &Snapshot) -> Option<Demand> {
    let single = is_single(options, snapshot);
    if options.pattern.is_none() && !single {
        return None;
    }
    let mut demand = demand(options);
    if single {
        reported(&mut demand);
    }
    let id = |c: &Cache| c.sysfs_id.as_ref().unwrap_or(&c.name).to_string();
    demand.only = Some(select::matching(options, snapshot).map(id).collect());
    Some(demand)
}

/// Whether a list is left with one cache, whose report is printed instead.
fn is_single(options: &Options, snapshot: &Snapshot) -> bool {
    let mut left = select::matching(options, snapshot);
    options.mode() == Mode::List && left.next().is_some() && left.next().is_none()
}

/// Prints what the command line asks for, from a snapshot with at least the
/// figures of [`demand`].
pub(crate) fn run(
    options: &Options,
    snapshot: &Snapshot,
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let mut notes = Notes::beside(snapshot);
    let out = &mut Printable(out);
    if let Some(pattern) = &options.pattern
        && select::matching(options, snapshot).next().is_none()
    {
        notes.say(format!("no cache matches '{}'", pattern.text()));
    }
    match options.mode() {
        Mode::Aliases => aliases::print(options, snapshot, &mut notes, out)?,
        mode => run_on_rows(options, snapshot, mode, &mut notes, out)?,
    }
    Ok(Outcome {
        code: 0,
        notes: notes.lines(),
    })
}

fn run_on_rows(
    options: &Options,
    snapshot: &Snapshot,
    mode: Mode,
    notes: &mut Notes,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut rows = select::selected(options, snapshot);
    say_what_is_unknown(options, &rows, notes);
    match mode {
        Mode::Totals => return totals::print(&rows, options.exact(), notes, out),
        Mode::Xtotals => return extended(options, &mut rows, notes, out),
        _ => {}
    }
    select::sort(&mut rows, options.sort(), options.has(Switch::Inverted));
    let single = is_single(options, snapshot);
    match mode {
        Mode::Tracking => {
            for row in first(options, &rows, false) {
                tracking::print(row, out)?;
            }
            Ok(())
        }
        Mode::Numa => per_node(options, snapshot, &rows, notes, out),
        Mode::Report => reports(options, snapshot, &rows, notes, out),
        _ if single => reports(options, snapshot, &rows, notes, out),
        _ => listing(options, &rows, options.has(Switch::Loss), notes, out),
    }
}

/// The rows that are shown: -e and -z first, then -N. A report and a list of
/// call sites show empty caches unless told otherwise.
fn first<'a, 'b>(
    options: &Options,
    rows: &'b [Row<'a>],
    hide_empty: bool,
) -> impl Iterator<Item = &'b Row<'a>> + use<'a, 'b> {
    let limit = options
        .lines
        .map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let all = !hide_empty && !options.has(Switch::Empty);
    let shown: Vec<&Row<'a>> = rows
        .iter()
        .filter(|row| all || select::is_visible(options, row))
        .take(limit)
        .collect();
    shown.into_iter()
}

fn listing(
    options: &Options,
    rows: &[Row<'_>],
    loss: bool,
    notes: &mut Notes,
    out: &mut dyn Write,
) -> io::Result<()> {
    let columns = Columns {
        activity: options.has(Switch::DisplayActivity),
        loss,
        exact: options.exact(),
    };
    let shown: Vec<&Row<'_>> = first(options, rows, true).collect();
    for row in &shown {
        notes.check(row);
    }
    list::print(shown, columns, out)
}

fn per_node(
    options: &Options,
    snapshot: &Snapshot,
    rows: &[Row<'_>],
    notes: &mut Notes,
    out: &mut dyn Write,
) -> io::Result<()> {
    let node_ids = numa::nodes(snapshot);
    if node_ids.is_empty() {
        notes.say("-n: no figures of nodes here: a kernel without NUMA, or a source that does not keep them");
        return Ok(());
    }
    let shown: Vec<&Row<'_>> = first(options, rows, true).collect();
    numa::print(&shown, &node_ids, options.exact(), out)
}

fn reports(
    options: &Options,
    snapshot: &Snapshot,
    rows: &[Row<'_>],
    notes: &mut Notes,
    out: &mut dyn Write,
) -> io::Result<()> {
    let node_ids = numa::nodes(snapshot);
    for row in first(options, rows, false) {
        notes.check(row);
        report::print(row, &node_ids, options.exact(), out)?;
    }
    Ok(())
}

/// The sums, then the first caches by size, by loss and by partial slabs.
fn extended(
    options: &Options,
    rows: &mut [Row<'_>],
    notes: &mut Notes,
    out: &mut dyn Write,
) -> io::Result<()> {
    totals::print(rows, true, notes, out)?;
    let lists = [
        (Sort::Size, "size"),
        (Sort::Loss, "loss"),
        (Sort::Partial, "number of partial slabs"),
    ];
    for (by, words) in lists {
        let heading = format!("Slabs sorted by {words}");
        writeln!(out, "\n{heading}\n{}", "-".repeat(heading.len()))?;
        select::sort(rows, by, options.has(Switch::Inverted));
        listing(options, rows, by == Sort::Loss, notes, out)?;
    }
    writeln!(out)
}

/// Names what the command line asks for and no row has.
fn say_what_is_unknown(options: &Options, rows: &[Row<'_>], notes: &mut Notes) {
    if rows.is_empty() {
        return;
    }
    let none = |figure: fn(&Row<'_>) -> bool| !rows.iter().any(figure);
    let activity = options.sort() == Sort::Activity || options.has(Switch::DisplayActivity);
    if activity && none(|r| r.activity().is_some()) {
        let sorted = if options.sort() == Sort::Activity {
            "; sorted by name"
        } else {
            ""
        };
        notes.say(format!(
            "no event counters: the kernel has no CONFIG_SLUB_STATS, or the source does not keep \
             them{sorted}"
        ));
    }
    let unknown_key = match options.sort() {
        Sort::Size => none(|r| r.memory.is_some()),
        Sort::Loss => none(|r| r.loss.is_some()),
        Sort::Partial => none(|r| r.partial.is_some()),
        Sort::Activity | Sort::Name => false,
    };
    if unknown_key {
        notes.say("this source lacks what the order is made of; sorted by name");
    }
    if options.has(Switch::Unreclaim) && none(|r| r.cache.flags.get(Flag::ReclaimAccount).is_some())
    {
        notes.say("-U: this source does not tell which caches are reclaimable; none is left out");
    }
}
