//! `slabctl doctor`: what is readable here, what is missing, why, and what to do.

use std::io::Write;

use collectors::source::doctor::{self, Finding, State};

use super::{Context, report};
use crate::cli::Format;
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_doctor, text};

/// Runs the command.
pub(crate) fn run(context: &Context) -> anyhow::Result<Status> {
    open::no_demo(
        &context.global,
        "doctor looks at a machine or a capture; --demo is neither",
    )?;
    let findings = match &context.global.from {
        Some(path) => doctor::capture(path).map_err(open::with_hints)?,
        None => doctor::machine(context.global.root.as_deref().unwrap_or("/".as_ref())),
    };
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => {
            let from = context.global.from.as_deref();
            let root = context.global.root.as_deref();
            json::write(&mut out, &json_doctor::document(&findings, from, root))?;
        }
        Format::Jsonl => {
            return Err(Failure::usage("doctor has no json lines; use --json").into());
        }
        Format::Csv | Format::Md => report::write_table(context, &table(&findings), &mut out)?,
        Format::Table => lines(&findings, &mut out)?,
    }
    out.flush()?;
    Ok(status(&findings))
}

fn status(findings: &[Finding]) -> Status {
    let needed = |state| findings.iter().any(|f| f.state == state && f.needed);
    if needed(State::Readable) {
        Status::Ok
    } else if needed(State::Denied) {
        Status::Permission
    } else {
        Status::Unavailable
    }
}

/// A line for each finding and its remark below it: a remark is a sentence, and
/// as a column it would be the first to be left out on a narrow terminal.
fn lines(findings: &[Finding], out: &mut impl Write) -> std::io::Result<()> {
    let wide = findings.iter().map(|f| f.what.chars().count()).max();
    let wide = wide.unwrap_or(0).min(40);
    for finding in findings {
        let what = text::safe(&finding.what);
        let line = format!(
            "{:<9} {what:<wide$}  {}",
            finding.state.name(),
            text::safe(&finding.gives)
        );
        writeln!(out, "{}", line.trim_end())?;
        if !finding.remark.is_empty() {
            writeln!(out, "          {}", text::safe(&finding.remark))?;
        }
    }
    Ok(())
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new(vec![
        Head::left("What"),
        Head::left("State"),
        Head::left("Gives"),
        Head::left("Remark"),
    ]);
    for finding in findings {
        let remark = match &*finding.remark {
            "" => Cell::missing(),
            text => Cell::text(text),
        };
        table.row(vec![
            Cell::text(&*finding.what),
            Cell::text(finding.state.name()),
            Cell::text(&*finding.gives),
            remark,
        ]);
    }
    table
}
