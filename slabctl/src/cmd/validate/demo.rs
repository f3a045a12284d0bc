//! `slabctl validate --demo`: checks the built-in engine while its load runs.

use std::io::Write;

use collectors::source::demo::Verdict;
use collectors::source::{Demand, Source as _};

use super::{Row, page, table};
use crate::cli::{DemoPolicy, Format};
use crate::cmd::{Context, report};
use crate::fail::Status;
use crate::open;
use crate::output::{json, json_validate};

/// Runs the command on an engine with that policy.
pub(super) fn run(context: &Context, policy: Option<DemoPolicy>) -> anyhow::Result<Status> {
    let mut source = open::demo(&context.global, policy)?;
    let verdict = source.validate();
    let snapshot = source.sample(&Demand::names())?;
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => json::write(&mut out, &json_validate::of_engine(&snapshot, &verdict))?,
        Format::Csv | Format::Md => {
            let rows = verdict.faults.iter().map(Row::of_engine);
            report::write_table(context, &table(rows), &mut out)?;
        }
        _ => lines(&verdict, &mut out)?,
    }
    out.flush()?;
    open::say_warnings(&context.global, &snapshot);
    let clean = verdict.faults.is_empty();
    Ok(if clean { Status::Ok } else { Status::Findings })
}

/// A line for each finding, and one that says what was checked.
fn lines(verdict: &Verdict, out: &mut impl Write) -> std::io::Result<()> {
    for fault in &verdict.faults {
        page::line(&Row::of_engine(fault), out)?;
    }
    writeln!(
        out,
        "{} caches, {} slabs checked, {} times while the load ran: {}",
        verdict.caches,
        verdict.slabs,
        verdict.passes,
        page::found(verdict.faults.len(), verdict.more)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::source::demo::Fault;

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
