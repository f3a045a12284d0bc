//! `slabctl bench threads` and `slabctl bench thread YEAR`: a kernel thread asked again.
//!
//! Source of truth: `loads::seed` for what was published, counted and modelled. What is
//! measured runs as every other bench: a process a contender, in turns.

use std::io::Write;

use loads::bench::Workload;
use loads::figure::median;
use loads::seed::{Kind, Published, SEEDS, Seed, Sheet, Value};

use super::{Plan, WorkloadResult, rounds, table};
use crate::cli::{Format, Thread};
use crate::cmd::{Context, report};
use crate::fail::{Failure, Status};
use crate::output::machine::Machine;
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_thread};
use crate::screen::Screen;

/// Said of every model.
pub(crate) const MODEL: &str = "A model: the engine's code on logical processors, one after the other on one thread. \
What is counted is what it did; costs and waiting are assumed (docs/BENCH.md). The same numbers each time.";

/// Lists the threads.
pub(super) fn list(context: &Context) -> anyhow::Result<Status> {
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => json::write(&mut out, &json_thread::list())?,
        Format::Jsonl => return Err(no_lines().into()),
        _ => {
            let heads = ["Year", "Subject", "What it asked", "Command"].map(Head::left);
            let mut table = Table::new(heads.to_vec());
            for seed in SEEDS {
                let command = command(seed);
                let cells = [
                    &seed.year.to_string(),
                    seed.subject,
                    seed.question,
                    &command,
                ];
                table.row(cells.map(Cell::text).to_vec());
            }
            report::write_table(context, &table, &mut out)?;
        }
    }
    out.flush()?;
    Ok(Status::Ok)
}

/// The command that runs a thread.
pub(crate) fn command(seed: &Seed) -> String {
    format!("slabctl bench thread {}", seed.year)
}

fn no_lines() -> Failure {
    Failure::usage("bench has no json lines; use --json")
}

/// A thread that was run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) seed: &'static Seed,
    pub(crate) machine: Machine,
    pub(crate) rounds: usize,
    pub(crate) cpus: usize,
    pub(crate) sheets: Vec<Sheet>,
    /// Mistakes that a workload noticed.
    pub(crate) wrong: Vec<String>,
}

/// Runs a thread.
pub(super) fn run(context: &Context, args: &Thread) -> anyhow::Result<Status> {
    let seed = Seed::of(args.year).ok_or_else(|| {
        let years: Vec<String> = SEEDS.iter().map(|seed| seed.year.to_string()).collect();
        Failure::usage(format!("no thread of {}", args.year))
            .hint(format!("there are those of {}", years.join(", ")))
    })?;
    if context.global.format() == Format::Jsonl {
        return Err(no_lines().into());
    }
    let file = args.write.as_deref().map(super::create).transpose()?;
    super::note_debug(context);
    let mut ran = Ran {
        seed,
        machine: Machine::here(),
        rounds: usize::from(args.rounds),
        cpus: usize::from(args.cpus),
        sheets: seed.published.iter().map(Published::sheet).collect(),
        wrong: Vec::new(),
    };
    let sheets = seed.sheets(ran.cpus);
    ran.sheets.extend(sheets.ok_or_else(|| {
        Failure::new(
            Status::Failed,
            "no memory, or too few slots, for so many processors",
        )
    })?);
    measure(context, &mut ran, &args.cases)?;
    match file {
        Some(mut file) => write(context, &ran, &Screen::plain(None), &mut file)?,
        None => write(context, &ran, &context.screen, &mut Context::out())?,
    }
    let status = if ran.wrong.is_empty() {
        Status::Ok
    } else {
        Status::Failed
    };
    for wrong in ran.wrong {
        context.note(&format!("error: {wrong}"));
    }
    Ok(status)
}

/// Runs what is measured on this machine's processors.
fn measure(context: &Context, ran: &mut Ran, only: &[usize]) -> anyhow::Result<()> {
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().max(2));
    for measure in ran.seed.measured {
        let chosen = |case: &&usize| only.is_empty() || only.contains(case);
        let cases: Vec<usize> = measure.cases.iter().filter(chosen).copied().collect();
        let Some(workload) = Workload::named(measure.workload).filter(|_| !cases.is_empty()) else {
            continue;
        };
        let plan = Plan {
            workloads: vec![(workload, cases)],
            contenders: measure
                .contenders
                .iter()
                .map(|it| (*it).to_owned())
                .collect(),
            threads,
            rounds: ran.rounds,
        };
        for result in rounds::run(context, &plan)? {
            ran.sheets.push(times(&plan, &result));
            ran.sheets.push(counted(&plan, &result));
            let wrong = result.cases.iter().flat_map(|case| &case.wrong);
            ran.wrong
                .extend(wrong.map(|(who, what)| format!("{who}: {what}")));
        }
    }
    Ok(())
}

/// Medians, and how the first compares with the best other.
fn times(plan: &Plan, result: &WorkloadResult) -> Sheet {
    let workload = result.workload;
    let first = plan.contenders.first().map_or("", String::as_str);
    let columns = [workload.of, "figure", "unit"]
        .map(str::to_owned)
        .into_iter();
    let columns = columns.chain(plan.contenders.iter().cloned());
    let columns = columns.chain([format!("{first} needs")]);
    let title = format!("{}: medians, rounds: {}", workload.name, plan.rounds);
    let mut sheet = Sheet::new(Kind::Measured, title, columns);
    for case in &result.cases {
        for (figure, unit) in &case.figures {
            let of = [&case.case.to_string(), figure, unit].map(|it| Value::of(it));
            let mut row = of.to_vec();
            for contender in &plan.contenders {
                let value = median(case.of(contender, figure));
                row.push(value.map_or(Value::Unknown, |value| Value::Number(value, 2)));
            }
            row.push(Value::Text(table::comparison(plan, case, figure)));
            sheet.rows.push(row);
        }
    }
    sheet
}

/// What the engine counted, in the last round.
fn counted(plan: &Plan, result: &WorkloadResult) -> Sheet {
    let table = table::counters(plan, result);
    let mut columns: Vec<String> = table.heads.iter().map(|head| head.title.clone()).collect();
    if let Some(first) = columns.first_mut() {
        result.workload.of.clone_into(first);
    }
    let title = format!(
        "{}: what the engine counted, /k for 1000 allocations",
        result.workload.name
    );
    let mut sheet = Sheet::new(Kind::Counted, title, columns);
    let rows = table.rows.iter().map(|row| row.iter());
    let value = |cell: &Cell| match cell.exact() {
        "" => Value::Unknown,
        text => Value::of(text),
    };
    sheet.rows = rows.map(|row| row.map(value).collect()).collect();
    sheet
}

fn write(
    context: &Context,
    ran: &Ran,
    screen: &Screen,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    match context.global.format() {
        Format::Json => json::write(out, &json_thread::document(ran, jiff::Timestamp::now()))?,
        Format::Csv => long(ran).write_csv(out)?,
        format => {
            let hidden = text(ran, format == Format::Md, screen, out)?;
            if !hidden.is_empty() {
                out.flush()?;
                let titles = hidden.join(", ");
                context.note(&format!("the terminal is too narrow for {titles}"));
            }
        }
    }
    Ok(out.flush()?)
}

/// One table of all figures, a line each.
fn long(ran: &Ran) -> Table {
    let heads = ["thread", "kind", "table", "row", "column", "value"].map(Head::left);
    let mut table = Table::new(heads.to_vec());
    for sheet in &ran.sheets {
        for (number, row) in sheet.rows.iter().enumerate() {
            for (column, value) in sheet.columns.iter().zip(row) {
                let mut cells: Vec<Cell> =
                    [ran.seed.year.to_string(), sheet.kind.name().to_owned()]
                        .map(Cell::text)
                        .to_vec();
                cells.push(Cell::text(&sheet.title));
                cells.push(Cell::text((number + 1).to_string()));
                cells.push(Cell::text(column));
                cells.push(cell(value));
                table.row(cells);
            }
        }
    }
    table
}

fn cell(value: &Value) -> Cell {
    value.shown().map_or_else(Cell::missing, Cell::text)
}

/// For people: what was asked, by whom, and every table with where it is from. Gives the
/// headings for which there was no room.
fn text(
    ran: &Ran,
    markdown: bool,
    screen: &Screen,
    out: &mut impl Write,
) -> anyhow::Result<Vec<String>> {
    let mut hidden = Vec::new();
    let seed = ran.seed;
    let mark = if markdown { "## " } else { "" };
    writeln!(out, "{mark}{}: {}", seed.year, seed.subject)?;
    writeln!(out, "{}", seed.question)?;
    writeln!(out)?;
    writeln!(out, "published: {}", seed.machine)?;
    let (machine, nodes) = (ran.machine.line(), ran.machine.nodes_in_words());
    writeln!(out, "here: {machine}, {nodes}, in user space")?;
    writeln!(out, "{}", seed.differs)?;
    for sheet in &ran.sheets {
        let mark = if markdown { "### " } else { "" };
        writeln!(out, "\n{mark}{}: {}", sheet.kind.name(), sheet.title)?;
        if markdown {
            writeln!(out)?;
        }
        let table = shown(sheet);
        if markdown {
            table.write_markdown(out)?;
        } else {
            hidden.extend(table.write(out, screen)?);
        }
    }
    writeln!(out)?;
    if ran.sheets.iter().any(|sheet| sheet.kind == Kind::Model) {
        writeln!(out, "{MODEL}")?;
    }
    for reading in seed.reading {
        writeln!(out, "{reading}")?;
    }
    Ok(hidden)
}

fn shown(sheet: &Sheet) -> Table {
    let is_text = |at: usize| {
        let cells = sheet.rows.iter().filter_map(|row| row.get(at));
        cells.clone().any(|cell| matches!(cell, Value::Text(_)))
    };
    let heads = sheet.columns.iter().enumerate().map(|(at, title)| {
        if is_text(at) {
            Head::left(title)
        } else {
            Head::right(title)
        }
    });
    let mut table = Table::new(heads.collect());
    for row in &sheet.rows {
        table.row(row.iter().map(cell).collect());
    }
    table
}
