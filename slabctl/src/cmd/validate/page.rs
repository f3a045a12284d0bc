//! Findings of a validation as lines for people.

use std::io::{self, Write};

use collectors::analysis::validate::{Reach, Verdict};

use super::Row;
use super::kernel::Outcome;
use super::plan::Candidate;
use crate::output::text;

/// Repairs of one finding that are written out.
const REPAIRS: usize = 3;

/// One finding.
pub(super) fn line(row: &Row<'_>, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{}: ", text::safe(row.cache))?;
    if let Some(node) = row.node {
        write!(out, "node {node}: ")?;
    }
    if let Some(slab) = row.slab {
        write!(out, "slab {slab:#x}: ")?;
    }
    if let Some(offset) = row.fault.and_then(|f| f.offset) {
        write!(out, "offset {offset}: ")?;
    }
    writeln!(
        out,
        "{} ({})",
        text::safe(row.message),
        text::safe(row.code)
    )?;
    let Some(fault) = row.fault else {
        return Ok(());
    };
    if fault.follows {
        writeln!(out, "    it follows from an earlier finding")?;
    }
    if let Some(why) = &fault.false_positive {
        writeln!(out, "    likely false positive: {why}")?;
    }
    if fault.by_validation == Some(false) {
        writeln!(out, "    found while the cache was used, not by the check")?;
    }
    for repair in fault.repairs.iter().take(REPAIRS) {
        writeln!(out, "    repaired: {}", text::safe(repair))?;
    }
    Ok(())
}

/// How much was found.
pub(super) fn found(listed: usize, more: u64) -> String {
    match (listed, more) {
        (0, 0) => "no findings".to_owned(),
        (1, 0) => "1 finding".to_owned(),
        (n, 0) => format!("{n} findings"),
        (n, more) => format!("{n} findings and {more} more not listed"),
    }
}

/// All findings, then each cache of which nobody can tell, then the sum.
pub(super) fn outcome(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    for fault in outcome.faults() {
        line(&Row::of_kernel(fault), out)?;
    }
    for checked in &outcome.checked {
        let name = text::safe(&checked.name);
        match &checked.verdict {
            Verdict::Unknown(why) => writeln!(out, "{name}: not known: {}", text::safe(why))?,
            Verdict::Refused => writeln!(out, "{name}: the kernel refused to check it")?,
            Verdict::Faults => {
                if let Some(why) = checked.examination.incomplete() {
                    writeln!(out, "{name}: there may be more: {}", text::safe(why))?;
                }
            }
            Verdict::Clean => {}
        }
    }
    let checked = outcome.looked_at().count();
    let slabs = match outcome.slabs() {
        Some(1) => "1 slab".to_owned(),
        Some(n) => format!("{n} slabs"),
        None => "an unknown number of slabs".to_owned(),
    };
    let unknown = outcome.unknown();
    let known = if unknown == 0 {
        String::new()
    } else {
        format!(", {unknown} not known")
    };
    writeln!(
        out,
        "{checked} {} checked, {slabs} within reach: {}{known}",
        caches(checked),
        found(outcome.faults().count(), outcome.more())
    )
}

/// The caches that the kernel checks, and how far.
pub(super) fn plan(can: &[&Candidate<'_>], out: &mut impl Write) -> io::Result<()> {
    for one in can {
        let reach = match one.reach {
            Some(Reach::AllSlabs) => "all slabs",
            _ => "slabs with free objects only (no store_user)",
        };
        let checks = one.checks().join(", ");
        writeln!(out, "{}: {reach}: {checks}", text::safe(&one.called))?;
    }
    Ok(())
}

/// The word for so many.
pub(super) const fn caches(count: usize) -> &'static str {
    if count == 1 { "cache" } else { "caches" }
}
