//! The document `slabctl.validate/1`: what is wrong in an engine's structures.
//!
//! Source of truth: a `Verdict` of `collectors::source::demo`.

use collectors::model::Snapshot;
use collectors::source::demo::{Fault, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Source, SystemInfo, WarningOut, moment};

/// What a check of all slabs, free lists and barns of an engine found.
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
    /// True when nothing is wrong.
    clean: bool,
    /// Number of caches checked.
    caches: u64,
    /// Number of slabs checked in the last pass.
    slabs: u64,
    /// How often everything was checked while the load ran.
    passes: u32,
    /// Looks at a slab, over all passes, that came to nothing since it did not hold still.
    unchecked: u64,
    /// What is wrong, each once.
    findings: Vec<FindingOut<'a>>,
    /// Number of findings that are not listed, over all passes.
    more_findings: u64,
    /// What to know about the source.
    warnings: Vec<WarningOut>,
}

/// One thing that is wrong.
#[derive(Debug, Serialize, JsonSchema)]
struct FindingOut<'a> {
    /// Name of the cache.
    cache: &'a str,
    /// Node number.
    node: u32,
    /// Address of the slab, in hexadecimal; null when it is not about one slab.
    slab: Option<String>,
    /// Stable code, for example "cycle". Programs should pass over codes they do not know.
    code: &'a str,
    /// One line for people.
    message: &'a str,
}

impl<'a> FindingOut<'a> {
    fn of(fault: &'a Fault) -> Self {
        Self {
            cache: &fault.cache,
            node: fault.node,
            slab: fault.slab.map(|at| format!("{at:#x}")),
            code: fault.code,
            message: &fault.message,
        }
    }
}

/// The document on a verdict about the source of `snapshot`.
pub(crate) fn document<'a>(snapshot: &'a Snapshot, verdict: &'a Verdict) -> Validation<'a> {
    Validation {
        schema: "slabctl.validate/1",
        generated_at: moment(snapshot.origin.taken_at),
        source: Source::of(&snapshot.origin),
        system: SystemInfo::of(&snapshot.system),
        clean: verdict.faults.is_empty(),
        caches: verdict.caches,
        slabs: verdict.slabs,
        passes: verdict.passes,
        unchecked: verdict.unchecked,
        findings: verdict.faults.iter().map(FindingOut::of).collect(),
        more_findings: verdict.more,
        warnings: WarningOut::all(&snapshot.warnings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{check, samples, schema};

    #[test]
    fn findings_follow_the_schema() {
        let fault = |slab| Fault {
            cache: "demo_leak".into(),
            node: 1,
            slab,
            code: "cycle",
            message: "object 7 is free twice".into(),
        };
        let verdict = Verdict {
            faults: vec![fault(Some(0x7000)), fault(None)],
            ..Verdict::default()
        };
        let snapshot = samples::snapshot();
        let value = serde_json::to_value(document(&snapshot, &verdict)).unwrap();
        assert_eq!(value["findings"][0]["slab"], "0x7000");
        assert_eq!(value["findings"][1]["slab"], serde_json::Value::Null);
        assert_eq!(value["clean"], false);
        let schema = schema::schema("validate").unwrap();
        assert_eq!(check::errors(&schema, &value), Vec::<String>::new());
    }
}
