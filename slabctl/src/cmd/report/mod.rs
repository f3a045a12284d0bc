//! `slabctl report`: tables of caches, in every mode of the kernel's slabinfo.

mod activity;
mod aliases;
mod debug;
mod families;
mod list;
mod notes;
mod numa;
mod totals;
pub(crate) mod tracking;

use std::io::Write;
use std::time::{Duration, Instant};

use collectors::columns;
use collectors::filter::Filter;
use collectors::model::{Flag, Snapshot};
use collectors::source::{Demand, Source};

use super::select::{Selection, column};
use super::{Context, show};
use crate::cli::{Cli, Command, Format, Report, Select};
use crate::fail::{Failure, Status};
use crate::output::table::Table;
use crate::output::{json, jsonl};
use crate::{interval, open};

/// The report that `slabctl` alone gives.
pub(crate) fn plain() -> Report {
    let cli = <Cli as clap::Parser>::parse_from(["slabctl", "report"]);
    match cli.command {
        Some(Command::Report(report)) => *report,
        _ => unreachable!("the words above are the report command"),
    }
}

/// How long paths are counted where the user does not say.
const COUNTED: Duration = Duration::from_secs(1);

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Aliases,
    Names,
    Activity,
    Numa,
    Totals,
    Xtotals,
    Detail,
    Tracking,
    Families,
    Debug,
}

/// The options after they were understood.
struct Plan {
    kind: Kind,
    columns: Vec<&'static columns::Column>,
    /// The columns are the mode's own, so that those without a figure may go.
    own_columns: bool,
    /// Columns added to them with `+`.
    added: Vec<&'static str>,
    selection: Selection,
    /// Limit of lines, where not every cache has one or some have several.
    lines: Option<usize>,
    demand: Demand,
}

impl Plan {
    /// Whether the user asked for the column with `+`.
    fn is_added(&self, column: &columns::Column) -> bool {
        self.added.contains(&column.key)
    }
}

/// Runs the command, once or with `--watch` again and again.
pub(crate) fn run(context: &Context, args: &Report) -> anyhow::Result<Status> {
    if args.list_columns {
        return list::columns(context);
    }
    let plan = plan(context, args)?;
    let mut source = open::counted(&context.global, args.paths.how)?;
    if args.exact && !source.is_live() {
        context.note("--exact is for a live kernel: a saved file has what it has");
    }
    let Some(every) = &args.watch else {
        if args.paths.how.is_some() {
            let time = args.interval.as_deref().map(interval::parse).transpose()?;
            std::thread::sleep(time.unwrap_or(COUNTED));
        }
        let snapshot = source.last_sample(&plan.demand).map_err(open::with_hints)?;
        let mut out = Context::out();
        show_once(context, args, &plan, &snapshot, source.is_live(), &mut out)?;
        out.flush()?;
        say_warnings(context, &plan, &snapshot);
        // One-shot: the kernel closes the attribute files at exit, all at once.
        std::mem::forget(source);
        return Ok(Status::Ok);
    };
    watch(context, args, &plan, &mut *source, interval::parse(every)?)
}

fn watch(
    context: &Context,
    args: &Report,
    plan: &Plan,
    source: &mut dyn Source,
    every: Duration,
) -> anyhow::Result<Status> {
    if !source.is_live() {
        return Err(
            Failure::usage("--watch needs a live source: a saved file does not change").into(),
        );
    }
    if args.count == Some(0) {
        return Err(Failure::usage("--count 0 would show nothing").into());
    }
    let start = Instant::now();
    for round in 1u32.. {
        let snapshot = source.sample(&plan.demand).map_err(open::with_hints)?;
        let mut out = Context::out();
        if context.screen.terminal && context.global.format() == Format::Table {
            // Home, then clear below: no flicker, and nothing in the scroll-back.
            write!(out, "\x1b[H\x1b[J")?;
        }
        if context.global.format() == Format::Table {
            let now = jiff::ZonedDateTime::now();
            writeln!(out, "{}", now.strftime("%Y-%m-%d %H:%M:%S %z"))?;
        }
        show_once(context, args, plan, &snapshot, true, &mut out)?;
        if context.global.format() == Format::Table && !context.screen.terminal {
            writeln!(out)?;
        }
        out.flush()?;
        drop(out);
        if round == 1 {
            say_warnings(context, plan, &snapshot);
        }
        if args.count.is_some_and(|count| u64::from(round) >= count) {
            break;
        }
        std::thread::sleep(interval::until_next(start.elapsed(), every));
    }
    Ok(Status::Ok)
}

/// The warnings, without those about caches that were not chosen.
fn say_warnings(context: &Context, plan: &Plan, snapshot: &Snapshot) {
    let chosen = plan.selection.rows(snapshot);
    let shown: Vec<_> = chosen.rows.iter().map(|row| row.cache).collect();
    open::say_warnings_about(&context.global, snapshot, &shown);
}

fn kind(args: &Report) -> Kind {
    let mode = &args.mode;
    let table = [
        (mode.aliases, Kind::Aliases),
        (mode.names, Kind::Names),
        (mode.activity, Kind::Activity),
        (mode.numa, Kind::Numa),
        (mode.totals, Kind::Totals),
        (mode.xtotals, Kind::Xtotals),
        (mode.detail, Kind::Detail),
        (mode.tracking, Kind::Tracking),
        (mode.families, Kind::Families),
        (mode.debug, Kind::Debug),
    ];
    table
        .into_iter()
        .find_map(|(on, kind)| on.then_some(kind))
        .unwrap_or(Kind::List)
}

fn plan(context: &Context, args: &Report) -> Result<Plan, Failure> {
    let mode = &args.mode;
    let kind = kind(args);
    let sort = match kind {
        Kind::Activity => "activity",
        Kind::Numa | Kind::Families | Kind::Totals | Kind::Xtotals => "memory",
        _ if mode.loss => "loss",
        _ if mode.partial => "partial",
        _ if mode.size || mode.unreclaimable => "memory",
        _ => "name",
    };
    let mut selection = Selection::new(&args.patterns, &args.select, Some(sort))?;
    if mode.unreclaimable {
        selection = selection.and(Filter::parse("reclaim=no")?);
    }
    if mode.empty {
        selection = selection.and(Filter::parse("slabs=0")?);
    }
    let format = context.global.format();
    let people = matches!(format, Format::Table | Format::Md);
    let named = args.select.filter.is_some() || !args.patterns.is_empty();
    // Sums are over all caches, as the kernel's own sums are.
    let whole = matches!(kind, Kind::Aliases | Kind::Totals | Kind::Xtotals);
    selection.hide_empty = people && !args.all && !mode.empty && !named && !whole;
    let lines = match (kind, format) {
        (_, Format::Json | Format::Jsonl) => None,
        (Kind::Names | Kind::Aliases | Kind::Tracking | Kind::Families, _) => selection.take_top(),
        _ => None,
    };
    let columns = columns_of(args, kind)?;
    let mut demand = demand(context, kind, &columns);
    selection.ask(&mut demand);
    demand.exact = args.exact;
    demand.skip_empty = selection.hide_empty;
    demand.walk_limit = args.walk_limit;
    demand.counters |= args.paths.how.is_some();
    Ok(Plan {
        kind,
        columns,
        own_columns: people && args.columns.iter().all(|c| c.starts_with('+')),
        added: added(args),
        selection,
        lines,
        demand,
    })
}

/// The mode's columns, or the ones named; `+name` adds one to the mode's.
fn columns_of(args: &Report, kind: Kind) -> Result<Vec<&'static columns::Column>, Failure> {
    const LOSS: &[&str] = &[
        "name",
        "objects",
        "object_size",
        "slab_size",
        "memory",
        "used",
        "loss",
        "slack",
        "free",
        "padding",
        "utilization",
    ];
    if !args.columns.is_empty() && !matches!(kind, Kind::List | Kind::Names) {
        return Err(Failure::usage(
            "--columns goes with the list, not with this mode",
        ));
    }
    let own = if args.mode.loss {
        LOSS
    } else {
        columns::DEFAULT
    };
    let adds = args.columns.iter().all(|c| c.starts_with('+'));
    let own = own.iter().copied().filter(|_| adds);
    let names = own.chain(args.columns.iter().map(|c| c.trim_start_matches('+')));
    let mut columns: Vec<&'static columns::Column> = Vec::new();
    for name in names.filter(|name| !name.is_empty()) {
        let one = column(name)?;
        if !columns.iter().any(|c| c.key == one.key) {
            columns.push(one);
        }
    }
    Ok(columns)
}

fn added(args: &Report) -> Vec<&'static str> {
    let names = args.columns.iter().filter_map(|c| c.strip_prefix('+'));
    names.filter_map(|n| Some(columns::find(n)?.key)).collect()
}

fn demand(context: &Context, kind: Kind, columns: &[&columns::Column]) -> Demand {
    if matches!(context.global.format(), Format::Json | Format::Jsonl) {
        return Demand::everything();
    }
    let mut demand = Demand::names();
    let ask = |names: &[&str], demand: &mut Demand| {
        for name in names {
            if let Some(column) = columns::find(name) {
                column.ask(demand);
            }
        }
    };
    match kind {
        Kind::List | Kind::Names => columns.iter().for_each(|c| c.ask(&mut demand)),
        Kind::Aliases => {}
        Kind::Activity => ask(&["activity", "order", "objects"], &mut demand),
        Kind::Numa => {
            demand.nodes = true;
            ask(
                &["slabs", "partial", "objects", "total_objects", "memory"],
                &mut demand,
            );
        }
        Kind::Totals | Kind::Families => {
            ask(
                &["loss", "slack", "free", "padding", "partial", "reclaim"],
                &mut demand,
            );
        }
        Kind::Xtotals => ask(&["loss", "partial", "objects_partial"], &mut demand),
        Kind::Detail => demand = Demand::everything(),
        Kind::Tracking => {
            demand.sites = true;
            ask(&["store_user"], &mut demand);
        }
        Kind::Debug => {
            demand.flags = Flag::ALL.to_vec();
            ask(&["object_size", "slab_size"], &mut demand);
        }
    }
    demand
}

/// A snapshot that was taken just now, the largest cache first if nothing else is asked for: for
/// a command that reports on its way.
pub(crate) fn write_plain(
    context: &Context,
    snapshot: &Snapshot,
    select: &Select,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut args = plain();
    args.mode.size = true;
    args.select = select.clone();
    let plan = plan(context, &args)?;
    show_once(context, &args, &plan, snapshot, true, out)
}

fn show_once(
    context: &Context,
    args: &Report,
    plan: &Plan,
    snapshot: &Snapshot,
    live: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let chosen = plan.selection.rows(snapshot);
    let caches: Vec<_> = chosen.rows.iter().map(|row| row.cache).collect();
    match context.global.format() {
        Format::Json => {
            let now = live.then(jiff::Timestamp::now);
            json::write(out, &json::report(snapshot, &caches, now))?;
            return Ok(());
        }
        Format::Jsonl => {
            jsonl::write(out, &caches, snapshot.system.page_size)?;
            return Ok(());
        }
        Format::Table | Format::Csv | Format::Md => {}
    }
    let table = match plan.kind {
        Kind::Detail => return show::details(context, snapshot, &caches, out),
        Kind::Tracking => return tracking::write(context, plan.lines, &chosen, out),
        Kind::List => list::table(context, plan, snapshot, &chosen),
        Kind::Names => list::by_name(context, plan, snapshot, &chosen),
        Kind::Aliases => aliases::table(plan.lines, snapshot, &chosen),
        Kind::Activity => activity::table(context, snapshot, &chosen),
        Kind::Numa => numa::table(context, snapshot, &chosen),
        Kind::Totals => totals::table(context, snapshot, &caches),
        Kind::Xtotals => totals::extended(context, snapshot, &caches),
        Kind::Families => families::table(context, plan.lines, snapshot, &caches),
        Kind::Debug => debug::table(&chosen),
    };
    write_table(context, &table, out)?;
    // On one terminal the notes come after what they are about.
    out.flush()?;
    if args.watch.is_none() {
        table.notes.iter().for_each(|note| context.note(note));
        notes::say(context, plan, &args.patterns, snapshot, &chosen);
    }
    Ok(())
}

/// Writes a table in the form asked for.
pub(crate) fn write_table(
    context: &Context,
    table: &Table,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    match context.global.format() {
        Format::Csv => table.write_csv(out)?,
        Format::Md => table.write_markdown(out)?,
        _ => {
            let hidden = table.write(out, &context.screen)?;
            if !hidden.is_empty() {
                out.flush()?;
                context.note(&format!(
                    "the terminal is too narrow for {} (--columns chooses)",
                    hidden.join(", ")
                ));
            }
        }
    }
    Ok(())
}
