//! `slabctl ps`: the processes on slabcore's engine.

use std::io::Write as _;

use collectors::source::process::{self, Listed, Listing};
use collectors::units::size;

use super::{Context, report};
use crate::cli::Format;
use crate::fail::{Failure, Status};
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_ps};

/// Runs the command.
pub(crate) fn run(context: &Context) -> anyhow::Result<Status> {
    let global = &context.global;
    if global.from.is_some()
        || global.root.is_some()
        || global.demo.is_some()
        || global.core.is_some()
    {
        let error = "ps lists this machine's processes; --from, --root and --demo are none";
        return Err(Failure::usage(error).into());
    }
    if global.format() == Format::Jsonl {
        return Err(Failure::usage("ps has no json lines; use --json").into());
    }
    let mut listing = process::list()?;
    if let Some(pid) = global.pid {
        listing.processes.retain(|of| of.pid == pid);
    }
    let mut out = Context::out();
    if global.format() == Format::Json {
        let document = json_ps::document(&listing, jiff::Timestamp::now());
        json::write(&mut out, &document)?;
    } else {
        report::write_table(context, &table(context, &listing), &mut out)?;
    }
    out.flush()?;
    for of in &listing.processes {
        if let Some(why) = &of.refused {
            context.note(&format!("warning: process {}: {why}", of.pid));
        }
    }
    if listing.hidden > 0 {
        let n = listing.hidden;
        context.note(&format!(
            "note: {n} processes of others could not be looked at (as root they can)"
        ));
    }
    Ok(Status::Ok)
}

fn table(context: &Context, listing: &Listing) -> Table {
    let mut table = Table::new(vec![
        Head::right("Pid"),
        Head::left("Program"),
        Head::right("User"),
        Head::right("Caches"),
        Head::right("Objects"),
        Head::right("Used"),
        Head::right("Reports"),
        Head::left("Memory"),
        Head::left("Engine"),
    ]);
    let scale = context.global.scale();
    let number = |n: Option<u64>| n.map_or_else(Cell::missing, |n| Cell::text(n.to_string()));
    for of in &listing.processes {
        let used = of.used_bytes.map(|n| Cell::text(size(n, scale)));
        table.row(vec![
            Cell::text(of.pid.to_string()),
            Cell::text(&*of.program),
            Cell::text(of.uid.to_string()),
            number(of.caches),
            number(of.objects),
            used.unwrap_or_else(Cell::missing),
            number(of.faults),
            Cell::text(access(of)),
            Cell::text(&*of.engine),
        ]);
    }
    table
}

/// How much of a process can be seen.
pub(crate) const fn access(of: &Listed) -> &'static str {
    if of.refused.is_some() {
        "refused"
    } else if of.readable {
        "read"
    } else {
        "published"
    }
}
