//! `slabctl validate --demo` and `--pid`: checks an engine while it is used.

use std::io::Write;
use std::time::Duration;

use collectors::source::{Demand, Engines, Verdict};

use super::{Row, page, table};
use crate::cli::Format;
use crate::cmd::{Context, report};
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::{json, json_validate};

/// How long a process is waited for that was asked to check itself.
const WAIT: Duration = Duration::from_secs(2);

/// Runs the command; `ask`: the process is to check itself.
pub(super) fn run(context: &Context, ask: bool) -> anyhow::Result<Status> {
    let mut source = open::engine(&context.global)?;
    let verdict = if ask {
        let answer = source.ask(WAIT).map_err(open::with_hints)?;
        answer.ok_or_else(|| not_acknowledged(&*source))?
    } else {
        source.validate().map_err(open::with_hints)?
    };
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
    Ok(status(&verdict))
}

/// Findings are findings; without any, what nothing is known of is not clean.
pub(crate) fn status(verdict: &Verdict) -> Status {
    if !verdict.faults.is_empty() || verdict.more > 0 {
        Status::Findings
    } else if verdict.moving >= verdict.caches * u64::from(verdict.passes.max(1))
        && verdict.caches > 0
        || verdict.cut
    {
        Status::Failed
    } else {
        Status::Ok
    }
}

fn not_acknowledged(source: &dyn Engines) -> Failure {
    let error = format!(
        "{}: not acknowledged within {} s",
        source.describe(),
        WAIT.as_secs()
    );
    Failure::new(Status::Failed, error)
        .hint("a process answers when an allocation or free leaves its fast path: one that waits does not, nor one that takes and gives back the same few objects")
        .hint("without --ask its structures are checked from outside")
}

/// A line for each finding, and one that says what was checked.
pub(crate) fn lines(verdict: &Verdict, out: &mut impl Write) -> std::io::Result<()> {
    for fault in &verdict.faults {
        page::line(&Row::of_engine(fault), out)?;
    }
    writeln!(
        out,
        "{} caches, {} slabs checked, {}: {}{}{}{}",
        verdict.caches,
        verdict.slabs,
        match verdict.passes {
            1 => "once".to_owned(),
            n => format!("{n} times while the load ran"),
        },
        page::found(verdict.faults.len(), verdict.more),
        match verdict.unchecked {
            0 => String::new(),
            n => format!("; {n} looks at slabs did not hold still"),
        },
        match verdict.moving {
            0 => String::new(),
            n => format!("; {n} looks at caches told nothing, since they moved all the time"),
        },
        if verdict.cut {
            "; there is more of it than one look takes: the rest is not checked"
        } else {
            ""
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::source::Fault;

    #[test]
    fn what_never_held_still_is_not_clean() {
        let mut verdict = Verdict {
            caches: 2,
            passes: 1,
            ..Verdict::default()
        };
        assert_eq!(status(&verdict), Status::Ok);
        verdict.cut = true;
        assert_eq!(status(&verdict), Status::Failed);
        (verdict.cut, verdict.moving) = (false, 2);
        assert_eq!(status(&verdict), Status::Failed);
        verdict.more = 1;
        assert_eq!(status(&verdict), Status::Findings);
    }

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
            code: "cycle".into(),
            message: "object 7 is free twice".into(),
        });
        let line = "demo_leak: node 1: slab 0x7000: object 7 is free twice (cycle)\n";
        assert_eq!(shown(&verdict), format!("{line}{end}1 finding\n"));
    }
}
