//! The document `slabctl.check/1`: rules and whether figures are within their limits.
//!
//! Source of truth: `collectors::analysis::check`.

use collectors::analysis::check::condition::Condition;
use collectors::analysis::check::{Judged, Outcome, Rule, Severity};
use collectors::model::OriginKind;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Source, SystemInfo, WarningOut, moment};
use crate::cmd::check::Checked;
use crate::cmd::check::rules::Broken;

/// Whether figures of caches are within the limits of rules.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.check/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// Where the figures are from; null when nothing was read.
    source: Option<Source<'a>>,
    /// The machine they are of; null when nothing was read.
    system: Option<SystemInfo<'a>>,
    /// The gravest answer.
    #[schemars(extend("enum" = ["ok", "unknown", "warning", "critical"]))]
    status: &'static str,
    /// The rules, in their order.
    rules: Vec<RuleOut<'a>>,
    /// Why nothing was checked; null when something was.
    error: Option<ErrorOut<'a>>,
    /// What could not be read, and what to know about the figures.
    warnings: Vec<WarningOut>,
}

/// One rule and what became of it.
#[derive(Debug, Serialize, JsonSchema)]
struct RuleOut<'a> {
    /// Its name.
    name: &'a str,
    /// What it says.
    #[schemars(extend("enum" = ["ok", "unknown", "warning", "critical"]))]
    status: &'static str,
    /// What is compared, such as "memory" or "objects/h" (its change in an hour).
    figure: String,
    /// Whether each cache is judged, or their sum.
    #[schemars(extend("enum" = ["each", "sum"]))]
    of: &'static str,
    /// The first limit as written; null when there is none.
    warning: Option<&'a str>,
    /// The second limit as written; null when there is none.
    critical: Option<&'a str>,
    /// Number of caches that it is about.
    caches: u64,
    /// Number of these whose figure is not known.
    unknown: u64,
    /// The value nearest to the limit or farthest beyond it; null when there is none.
    worst: Option<JudgedOut<'a>>,
    /// What is beyond a limit, the worst first.
    beyond: Vec<JudgedOut<'a>>,
    /// How many more are.
    more_beyond: u64,
    /// Why it is not known, or that there is no such cache; null otherwise.
    why: Option<&'a str>,
}

/// A cache or a sum, and how it was judged.
#[derive(Debug, Serialize, JsonSchema)]
struct JudgedOut<'a> {
    /// Name of the cache; null for a sum.
    cache: Option<&'a str>,
    /// The figure in its own unit: bytes, objects, slabs; a percentage as a ratio.
    value: f64,
    /// True when it is an estimate.
    approx: bool,
    /// How it was judged.
    #[schemars(extend("enum" = ["ok", "unknown", "warning", "critical"]))]
    status: &'static str,
    /// The first limit as a number; null when there is none, or it is not known.
    warning: Option<f64>,
    /// The second limit as a number; null likewise.
    critical: Option<f64>,
}

/// Why nothing was checked.
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorOut<'a> {
    /// One line.
    message: &'a str,
    /// The rule file; null when it is not about that.
    file: Option<&'a str>,
    /// The line in it, from 1; null when it is about no place.
    line: Option<u64>,
    /// The character in the line, from 1; null likewise.
    column: Option<u64>,
}

impl<'a> RuleOut<'a> {
    fn of(rule: &'a Rule, outcome: &'a Outcome) -> Self {
        let judged = |one: &'a Judged| JudgedOut {
            cache: one.cache.as_deref(),
            value: one.value,
            approx: one.approx,
            status: one.severity.name(),
            warning: number(rule.warning.as_ref(), one),
            critical: number(rule.critical.as_ref(), one),
        };
        Self {
            name: &rule.name,
            status: outcome.severity.name(),
            figure: rule.figure().map(|f| f.name()).unwrap_or_default(),
            of: if rule.sum { "sum" } else { "each" },
            warning: rule.warning.as_ref().map(|c| &*c.text),
            critical: rule.critical.as_ref().map(|c| &*c.text),
            caches: outcome.caches as u64,
            unknown: outcome.unknown as u64,
            worst: outcome.worst.as_ref().map(judged),
            beyond: outcome.hits.iter().map(judged).collect(),
            more_beyond: outcome.more as u64,
            why: outcome.why.as_deref(),
        }
    }
}

fn number(condition: Option<&Condition>, judged: &Judged) -> Option<f64> {
    condition?.number(judged.whole)
}

/// The document on rules that were judged.
pub(crate) fn document(checked: &Checked, severity: Severity) -> Document<'_> {
    let snapshot = &checked.snapshot;
    // A capture gives the same document every time.
    let live = snapshot.origin.kind != OriginKind::Capture;
    let rules = checked.rules.iter().zip(&checked.outcomes);
    Document {
        schema: "slabctl.check/1",
        generated_at: moment(live.then(Timestamp::now)),
        source: Some(Source::of(&snapshot.origin)),
        system: Some(SystemInfo::of(&snapshot.system)),
        status: severity.name(),
        rules: rules
            .map(|(rule, outcome)| RuleOut::of(rule, outcome))
            .collect(),
        error: None,
        warnings: WarningOut::all(&snapshot.warnings),
    }
}

/// The document that says why nothing was checked.
pub(crate) fn failure<'a>(message: &'a str, broken: Option<&'a Broken>) -> Document<'a> {
    let place = broken.and_then(|b| b.place.as_ref());
    Document {
        schema: "slabctl.check/1",
        generated_at: None,
        source: None,
        system: None,
        status: Severity::Unknown.name(),
        rules: Vec::new(),
        error: Some(ErrorOut {
            message,
            file: broken.map(|b| &*b.file),
            line: place.map(|p| p.line as u64),
            column: place.map(|p| p.column as u64),
        }),
        warnings: Vec::new(),
    }
}
