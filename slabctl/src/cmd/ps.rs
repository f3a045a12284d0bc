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
    let listing = process::list(global.pid)?;
    if let Some(pid) = global.pid
        && listing == process::Listing::default()
        && process::start_of(pid).is_none()
    {
        let error = format!("process {pid}: no process has this number");
        return Err(Failure::new(Status::Unavailable, error).into());
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
    if listing.left_out > 0 {
        let n = listing.left_out;
        context.note(&format!(
            "warning: there was no time to look at {n} processes"
        ));
    }
    if listing.hidden > 0 {
        let n = listing.hidden;
        context.note(&format!(
            "note: {n} processes could not be looked at: the system does not allow it{}",
            if rustix::process::geteuid().is_root() {
                ""
            } else {
                "; root may"
            }
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
        let named = |name: &Option<String>| name.as_deref().map_or_else(Cell::missing, Cell::text);
        let used = of.used_bytes.map(|n| Cell::text(size(n, scale)));
        table.row(vec![
            Cell::text(of.pid.to_string()),
            named(&of.program),
            number(of.uid.map(u64::from)),
            number(of.caches),
            number(of.objects),
            used.unwrap_or_else(Cell::missing),
            number(of.faults),
            Cell::text(access(of)),
            named(&of.engine),
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
