//! `slabctl bench`: workloads on the engine's policies and on other allocators.
//!
//! Method: one process a contender, contenders in turns, each round beginning
//! with another one; medians with quartiles; ratios with an interval of 95 % by
//! bootstrap over rounds; a difference that the noise covers is not told.

mod child;
mod compare;
mod plot;
mod rounds;
mod switches;
mod table;
pub(crate) mod thread;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use loads::bench::{WORKLOADS, Workload};
use loads::contender::PEERS;

use self::plot::Plot;
use super::Context;
use crate::cli::{Bench as Args, BenchAction, Format};
use crate::fail::{Failure, Status};
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_bench};
use crate::screen::Screen;

pub(crate) use rounds::{CaseResult, Plan, WorkloadResult};

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    match &args.action {
        Some(BenchAction::Child(child)) => return child::run(child),
        Some(BenchAction::Compare { before, after }) => {
            return compare::run(context, before, after);
        }
        Some(BenchAction::Threads(_)) => return thread::list(context),
        Some(BenchAction::Thread(args)) => return thread::run(context, args),
        None => {}
    }
    if context.global.format() == Format::Jsonl {
        return Err(Failure::usage("bench has no json lines; use --json").into());
    }
    if args.list {
        list(context)?;
        return Ok(Status::Ok);
    }
    let plan = plan(args)?;
    let file = args.write.as_deref().map(create).transpose()?;
    let drawing = args.plot.as_deref().map(Plot::create).transpose()?;
    note_debug(context);
    let results = rounds::run(context, &plan)?;
    match file {
        Some(mut file) => write(context, args, &plan, &results, &mut file)?,
        None => write(context, args, &plan, &results, &mut Context::out())?,
    }
    if let Some(drawing) = drawing {
        drawing.write(&plan, &results)?;
    }
    let wrong = results
        .iter()
        .flat_map(|result| &result.cases)
        .flat_map(|case| &case.wrong);
    let mut status = Status::Ok;
    for (contender, what) in wrong {
        context.note(&format!("error: {contender}: {what}"));
        status = Status::Failed;
    }
    Ok(status)
}

/// A new file for the result.
fn create(path: &Path) -> Result<io::BufWriter<File>, Failure> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    let file =
        made.map_err(|e| Failure::new(Status::Failed, format!("{}: {e}", path.display())))?;
    Ok(io::BufWriter::new(file))
}

/// Says so where times would mislead.
fn note_debug(context: &Context) {
    if cfg!(debug_assertions) {
        context
            .note("this program was built without optimisation: times of the engine mean nothing");
    }
}

fn list(context: &Context) -> anyhow::Result<()> {
    let heads = ["Workload", "Cases", "What it does"].map(Head::left);
    let mut table = Table::new(heads.to_vec());
    for workload in WORKLOADS {
        let cases: Vec<String> = workload.cases.iter().map(ToString::to_string).collect();
        let cases = match workload.of {
            "" => "one".to_owned(),
            of => format!("{} {of}", cases.join(" ")),
        };
        table.row(
            [workload.name, &cases, workload.doc]
                .map(Cell::text)
                .to_vec(),
        );
    }
    super::report::write_table(context, &table, &mut Context::out())
}

/// What is to be run, with every name understood.
fn plan(args: &Args) -> Result<Plan, Failure> {
    if args.workloads.is_empty() {
        return Err(Failure::usage("bench needs a workload")
            .hint("slabctl bench --list shows them; all runs every one"));
    }
    let mut workloads: Vec<&'static Workload> = Vec::new();
    for name in &args.workloads {
        if name == "all" {
            workloads = WORKLOADS.iter().collect();
            break;
        }
        let known = Workload::named(name).ok_or_else(|| {
            let names: Vec<_> = WORKLOADS.iter().map(|w| w.name).collect();
            Failure::usage(format!("no workload {name:?}"))
                .hint(format!("there are {}, all", names.join(", ")))
        })?;
        if !workloads.iter().any(|w| w.name == known.name) {
            workloads.push(known);
        }
    }
    if args.processes {
        with_processes(&mut workloads)?;
    }
    for workload in &workloads {
        switches::check(workload, &args.switches)?;
    }
    let cases = |workload: &'static Workload| -> Vec<usize> {
        let chosen = |case: &&usize| args.cases.is_empty() || args.cases.contains(case);
        workload.cases.iter().filter(chosen).copied().collect()
    };
    let mut list = Vec::new();
    for workload in workloads {
        let cases = cases(workload);
        if cases.is_empty() {
            let has: Vec<String> = workload.cases.iter().map(ToString::to_string).collect();
            return Err(
                Failure::usage(format!("{} has none of these cases", workload.name))
                    .hint(format!("it has {}", has.join(","))),
            );
        }
        list.push((workload, cases));
    }
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Plan {
        workloads: list,
        contenders: contenders(args)?,
        threads: args.threads.map_or(cpus.max(2), usize::from),
        rounds: usize::from(args.rounds),
    })
}

/// hackbench with processes in place of the one with threads.
fn with_processes(workloads: &mut Vec<&'static Workload>) -> Result<(), Failure> {
    let processes = Workload::named("hackbench-processes");
    let threads = workloads.iter().any(|w| w.name == "hackbench");
    let Some(processes) = processes.filter(|_| threads) else {
        return Err(Failure::usage("--processes is for the workload hackbench"));
    };
    workloads.retain(|w| w.name != processes.name);
    let of = workloads.iter_mut().filter(|w| w.name == "hackbench");
    of.for_each(|w| *w = processes);
    Ok(())
}

fn contenders(args: &Args) -> Result<Vec<String>, Failure> {
    let mut list: Vec<String> = Vec::new();
    for name in &args.policy {
        if slabcore::Policy::from_name(name).is_none() {
            let known = slabcore::Policy::ALL.map(slabcore::Policy::name);
            return Err(Failure::usage(format!("no policy {name:?}"))
                .hint(format!("there are {}", known.join(", "))));
        }
        if !list.contains(name) {
            list.push(name.clone());
        }
    }
    let mut list = switches::contenders(&list, &args.switches)?;
    if args.peers {
        list.extend(PEERS.iter().map(|name| (*name).to_owned()));
    }
    Ok(list)
}

fn write(
    context: &Context,
    args: &Args,
    plan: &Plan,
    results: &[WorkloadResult],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    if context.global.format() == Format::Json {
        let document = json_bench::document(plan, results, jiff::Timestamp::now());
        json::write(out, &document)?;
        return Ok(out.flush()?);
    }
    let screen = if args.write.is_some() {
        Screen::plain(None)
    } else {
        context.screen
    };
    let mut first = true;
    for result in results {
        let mut tables = vec![table::times(plan, result)];
        if args.counters {
            tables.push(table::counters(plan, result));
        }
        for table in tables {
            if !std::mem::take(&mut first) && context.global.format() != Format::Csv {
                writeln!(out)?;
            }
            match context.global.format() {
                Format::Csv => table.write_csv(out)?,
                Format::Md => table.write_markdown(out)?,
                _ => {
                    table.write(out, &screen)?;
                }
            }
        }
    }
    out.flush()?;
    Ok(())
}
