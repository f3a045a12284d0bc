//! `slabctl validate --demo`: checks the built-in engine while its load runs.

use std::io::Write;

use collectors::source::demo::{Fault, Verdict};
use collectors::source::{Demand, Source as _};

use super::{Context, report};
use crate::cli::Format;
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_validate, text};

/// Runs the command.
pub(crate) fn run(context: &Context) -> anyhow::Result<Status> {
    let Some(policy) = context.global.demo else {
        return Err(refusal().into());
    };
    if context.global.format() == Format::Jsonl {
        return Err(Failure::usage("validate has no json lines; use --json").into());
    }
    let mut source = open::demo(&context.global, policy)?;
    let verdict = source.validate();
    let snapshot = source.sample(&Demand::names())?;
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => json::write(&mut out, &json_validate::document(&snapshot, &verdict))?,
        Format::Csv | Format::Md => {
            report::write_table(context, &table(&verdict.faults), &mut out)?;
        }
        _ => lines(&verdict, &mut out)?,
    }
    out.flush()?;
    open::say_warnings(&context.global, &snapshot);
    let clean = verdict.faults.is_empty();
    Ok(if clean { Status::Ok } else { Status::Findings })
}

fn refusal() -> Failure {
    Failure::new(
        Status::Unavailable,
        "validate: only the built-in engine can be validated, not the kernel's caches nor a saved file",
    )
    .hint("slabctl validate --demo")
}

/// A line for each finding, or one that says what was checked.
fn lines(verdict: &Verdict, out: &mut impl Write) -> std::io::Result<()> {
    for fault in &verdict.faults {
        let name = text::safe(&fault.cache);
        write!(out, "{name}: node {}: ", fault.node)?;
        if let Some(slab) = fault.slab {
            write!(out, "slab {slab:#x}: ")?;
        }
        writeln!(out, "{} ({})", fault.message, fault.code)?;
    }
    let found = match (verdict.faults.len(), verdict.more) {
        (0, _) => "no findings".to_owned(),
        (1, 0) => "1 finding".to_owned(),
        (n, 0) => format!("{n} findings"),
        (n, more) => format!("{n} findings and {more} more not listed"),
    };
    writeln!(
        out,
        "{} caches, {} slabs checked, {} times while the load ran: {found}",
        verdict.caches, verdict.slabs, verdict.passes
    )
}

fn table(faults: &[Fault]) -> Table {
    let mut table = Table::new(vec![
        Head::left("Cache"),
        Head::right("Node"),
        Head::left("Slab"),
        Head::left("Code"),
        Head::left("Finding"),
    ]);
    for fault in faults {
        let slab = fault.slab.map(|at| Cell::text(format!("{at:#x}")));
        table.row(vec![
            Cell::text(&*fault.cache),
            Cell::text(fault.node.to_string()),
            slab.unwrap_or_else(Cell::missing),
            Cell::text(fault.code),
            Cell::text(&*fault.message),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_a_line() {
        let mut verdict = Verdict {
            caches: 2,
            slabs: 9,
            passes: 10,
            ..Verdict::default()
        };
        let shown = |verdict: &Verdict| {
            let mut out = Vec::new();
            lines(verdict, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let end = "2 caches, 9 slabs checked, 10 times while the load ran: ";
        assert_eq!(shown(&verdict), format!("{end}no findings\n"));
        verdict.faults.push(Fault {
            cache: "demo_leak".into(),
            node: 1,
            slab: Some(0x7000),
            code: "cycle",
            message: "object 7 is free twice".into(),
        });
        let line = "demo_leak: node 1: slab 0x7000: object 7 is free twice (cycle)\n";
        assert_eq!(shown(&verdict), format!("{line}{end}1 finding\n"));
    }
}
