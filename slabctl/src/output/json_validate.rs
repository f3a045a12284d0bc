//! The document `slabctl.validate/1`: what is wrong in an engine's structures or
//! in a kernel's caches.
//!
//! Source of truth: a `Verdict` of `collectors::source`, or what came of
//! the kernel's own checks.

use collectors::analysis::validate::Verdict as CacheVerdict;
use collectors::model::Snapshot;
use collectors::source::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Source, SystemInfo, WarningOut, moment};
use crate::cmd::validate::Row;
use crate::cmd::validate::kernel::{Checked, Outcome, Unchecked};
use crate::cmd::validate::plan::Candidate;

/// What a check of all slabs, free lists and barns of an engine found, or the
/// kernel's own check of its caches.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Validation<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.validate/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// What was checked.
    source: Source<'a>,
    /// What it runs on.
    system: SystemInfo<'a>,
    /// True when nothing is wrong; null when that is not known: the kernel's log
    /// has gaps, nothing was checked, or there is more than one look takes.
    clean: Option<bool>,
    /// Number of caches checked.
    caches: u64,
    /// Number of slabs checked in the last pass; of a kernel, those within reach
    /// by its counters, null when they are not known.
    slabs: Option<u64>,
    /// How often everything was checked while the load ran; of a kernel, how
    /// often the cache that was checked most.
    passes: u32,
    /// Looks at a slab, over all passes, that came to nothing since it did not hold still.
    unchecked: u64,
    /// What is wrong, each once.
    findings: Vec<FindingOut<'a>>,
    /// Number of findings that are not listed, over all passes.
    more_findings: u64,
    /// The kernel's caches that were checked; empty for the engine.
    checked: Vec<CheckedOut<'a>>,
    /// The caches that were asked for and that the kernel does not check.
    not_checked: Vec<NotCheckedOut<'a>>,
    /// What to know about the source.
    warnings: Vec<WarningOut>,
}

/// One thing that is wrong.
#[derive(Debug, Serialize, JsonSchema)]
struct FindingOut<'a> {
    /// Name of the cache.
    cache: &'a str,
    /// Node number; null when it is not known.
    node: Option<u32>,
    /// Address of the slab (of a kernel, of its descriptor, which may be hashed),
    /// in hexadecimal; null when it is not about one slab.
    slab: Option<String>,
    /// Stable code, for example "cycle"; of a kernel the class of `slabctl
    /// explain`. Programs should pass over codes they do not know.
    code: &'a str,
    /// One line for people.
    message: &'a str,
    /// Bytes from the start of the slab to the first wrong byte or the object;
    /// null when not known.
    offset_in_slab: Option<u64>,
    /// The kernel's own words; null for the engine.
    reason: Option<&'a str>,
    /// What the kernel did about it, in its own words.
    repairs: &'a [String],
    /// Whether the check found it; false when it was found while the cache was
    /// used, null when that is not known.
    found_by_check: Option<bool>,
    /// Number of the check of that cache, from 1; null for the engine.
    pass: Option<u32>,
    /// True when it follows from an earlier finding of the same slab or list of slabs.
    follows: bool,
    /// Why it is likely a false positive; null when it is not.
    likely_false_positive: Option<&'a str>,
}

impl<'a> FindingOut<'a> {
    fn of(row: Row<'a>) -> Self {
        let fault = row.fault;
        Self {
            cache: row.cache,
            node: row.node,
            slab: row.slab.map(|at| format!("{at:#x}")),
            code: row.code,
            message: row.message,
            offset_in_slab: fault.and_then(|f| f.offset),
            reason: fault.and_then(|f| f.reason.as_deref()),
            repairs: fault.map_or(&[], |f| &f.repairs),
            found_by_check: fault.map_or(Some(true), |f| f.by_validation),
            pass: fault.map(|f| f.pass),
            follows: fault.is_some_and(|f| f.follows),
            likely_false_positive: fault.and_then(|f| f.false_positive.as_deref()),
        }
    }
}

/// A cache that the kernel checked, or would check.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckedOut<'a> {
    /// What it was called.
    cache: &'a str,
    /// Every name that shares the cache.
    names: Vec<String>,
    /// Which slabs the kernel looks at: without `store_user` only those with a
    /// free object.
    #[schemars(extend("enum" = ["all-slabs", "partial-slabs"]))]
    reach: &'static str,
    /// What it looks at: "free-lists", "counters", "red-zones", "poison".
    /// Programs should pass over names they do not know.
    checks: Vec<&'static str>,
    /// Number of slabs within reach, by the counters; null when not known.
    slabs: Option<u64>,
    /// How often it was checked.
    passes: u32,
    /// What came of it; null when it was not checked.
    #[schemars(extend("enum" = ["clean", "findings", "unknown", null]))]
    verdict: Option<&'static str>,
    /// Why the findings may not be all, or why nothing is known; null otherwise.
    incomplete: Option<&'a str>,
}

impl<'a> CheckedOut<'a> {
    fn of(one: &'a Checked) -> Self {
        let (verdict, why) = match &one.verdict {
            CacheVerdict::Clean => ("clean", None),
            CacheVerdict::Faults => ("findings", one.examination.incomplete()),
            CacheVerdict::Unknown(why) => ("unknown", Some(&**why)),
            CacheVerdict::Refused => ("unknown", Some("the kernel refused")),
        };
        Self {
            cache: &one.name,
            names: one.names.clone(),
            reach: one.reach.name(),
            checks: one.checks.clone(),
            slabs: one.slabs,
            passes: one.examination.passes,
            verdict: Some(verdict),
            incomplete: why,
        }
    }

    fn planned(one: &'a Candidate<'_>) -> Option<Self> {
        let reach = one.reach?;
        Some(Self {
            cache: &one.called,
            names: one.names(),
            reach: reach.name(),
            checks: one.checks(),
            slabs: reach.slabs(one.cache),
            passes: 0,
            verdict: None,
            incomplete: None,
        })
    }
}

/// A cache that the kernel does not check.
#[derive(Debug, Serialize, JsonSchema)]
struct NotCheckedOut<'a> {
    /// What it was called.
    cache: &'a str,
    /// Every name that shares the cache.
    names: &'a [String],
    /// Why not, and what would change it.
    why: &'a str,
    /// The option for the kernel's command line with which it can be checked in full.
    boot_option: &'a str,
}

impl<'a> NotCheckedOut<'a> {
    fn of(one: &'a Unchecked) -> Self {
        Self {
            cache: &one.name,
            names: &one.names,
            why: &one.why,
            boot_option: &one.boot_option,
        }
    }
}

/// The document on a verdict about the engine that is the source of `snapshot`.
pub(crate) fn of_engine<'a>(snapshot: &'a Snapshot, verdict: &'a Verdict) -> Validation<'a> {
    let rows = verdict.faults.iter().map(Row::of_engine);
    Validation {
        // What was not checked may be anything.
        clean: Some(verdict.faults.is_empty()).filter(|clean| !(*clean && verdict.cut)),
        caches: verdict.caches,
        slabs: Some(verdict.slabs),
        passes: verdict.passes,
        unchecked: verdict.unchecked,
        findings: rows.map(FindingOut::of).collect(),
        more_findings: verdict.more,
        ..empty(snapshot)
    }
}

/// The document on what the kernel's checks came to.
pub(crate) fn of_kernel<'a>(snapshot: &'a Snapshot, outcome: &'a Outcome) -> Validation<'a> {
    let passes = outcome.looked_at().map(|one| one.examination.passes);
    let rows = outcome.faults().map(Row::of_kernel);
    Validation {
        clean: outcome.clean(),
        caches: outcome.looked_at().count() as u64,
        slabs: outcome.slabs(),
        passes: passes.max().unwrap_or(0),
        findings: rows.map(FindingOut::of).collect(),
        more_findings: outcome.more(),
        checked: outcome.checked.iter().map(CheckedOut::of).collect(),
        not_checked: outcome.unchecked.iter().map(NotCheckedOut::of).collect(),
        ..empty(snapshot)
    }
}

/// The document on what the kernel would check.
pub(crate) fn of_plan<'a>(
    snapshot: &'a Snapshot,
    can: &[&'a Candidate<'_>],
    outcome: &'a Outcome,
) -> Validation<'a> {
    let planned = can.iter().filter_map(|one| CheckedOut::planned(one));
    Validation {
        checked: planned.collect(),
        not_checked: outcome.unchecked.iter().map(NotCheckedOut::of).collect(),
        ..empty(snapshot)
    }
}

/// A document that says nothing yet.
fn empty(snapshot: &Snapshot) -> Validation<'_> {
    Validation {
        schema: "slabctl.validate/1",
        generated_at: moment(snapshot.origin.taken_at),
        source: Source::of(&snapshot.origin),
        system: SystemInfo::of(&snapshot.system),
        clean: None,
        caches: 0,
        slabs: None,
        passes: 0,
        unchecked: 0,
        findings: Vec::new(),
        more_findings: 0,
        checked: Vec::new(),
        not_checked: Vec::new(),
        warnings: WarningOut::all(&snapshot.warnings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{check, samples, schema};
    use collectors::source::Fault;

    #[test]
    fn findings_follow_the_schema() {
        let fault = |slab| Fault {
            cache: "demo_leak".into(),
            node: 1,
            slab,
            code: "cycle".into(),
            message: "object 7 is free twice".into(),
        };
        let verdict = Verdict {
            faults: vec![fault(Some(0x7000)), fault(None)],
            ..Verdict::default()
        };
        let snapshot = samples::snapshot();
        let value = serde_json::to_value(of_engine(&snapshot, &verdict)).unwrap();
        assert_eq!(value["findings"][0]["slab"], "0x7000");
        assert_eq!(value["findings"][1]["slab"], serde_json::Value::Null);
        assert_eq!(value["clean"], false);
        let schema = schema::schema("validate").unwrap();
        assert_eq!(check::errors(&schema, &value), Vec::<String>::new());
    }
}
