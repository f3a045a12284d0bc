//! The document `slabctl.advise/1`: what the figures suggest.
//!
//! Source of truth: the remarks of `collectors::analysis::advise`.

use std::time::Duration;

use collectors::analysis::advise::{Advice, Amount, Evidence};
use collectors::model::Snapshot;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Source, SystemInfo, WarningOut, moment};

/// What the figures of one snapshot, or the growth between two, suggest.
///
/// Later versions of this document may add fields and rules, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.advise/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset. Null for a saved
    /// source, so that the same capture gives the same document every time.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// Where the figures, or the later ones, are from.
    source: Source<'a>,
    /// The machine they are of.
    system: SystemInfo<'a>,
    /// Seconds between the two snapshots; null for one snapshot, or when unknown.
    elapsed_seconds: Option<f64>,
    /// The remarks: growth first, then by falling bytes.
    advice: Vec<AdviceOut<'a>>,
    /// What could not be read, and what to know about the figures.
    warnings: Vec<WarningOut>,
}

/// One remark.
#[derive(Debug, Serialize, JsonSchema)]
struct AdviceOut<'a> {
    /// What it is about. Programs should pass over rules they do not know.
    rule: &'static str,
    /// The cache's shown name; null when it is about all caches.
    cache: Option<&'a str>,
    /// The cache's directory in /sys/kernel/slab; null when unknown.
    id: Option<&'a str>,
    /// Bytes at stake; null when unknown.
    bytes: Option<u64>,
    /// Whether `bytes` is an estimate or a bound.
    approx: bool,
    /// The remark, for people.
    says: &'a str,
    /// What it rests on.
    evidence: Vec<EvidenceOut<'a>>,
    /// What would confirm it, or what to do, for people.
    next: &'a str,
}

/// A figure that a remark rests on.
#[derive(Debug, Serialize, JsonSchema)]
struct EvidenceOut<'a> {
    /// What it is.
    what: &'a str,
    /// In what `value` is measured; null for names.
    #[schemars(extend("enum" = ["bytes", "count", "ratio", "bytes_per_hour", null]))]
    unit: Option<&'static str>,
    /// The figure; null for names.
    value: Option<Number>,
    /// Names; empty for a figure.
    names: &'a [String],
    /// Whether the figure is an estimate or a bound.
    approx: bool,
}

/// A whole number, or one with a fraction.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    Fraction(f64),
}

impl<'a> EvidenceOut<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let (unit, value, approx) = match &evidence.amount {
            Amount::Bytes(b) => (Some("bytes"), Some(Number::Whole(b.value)), b.approx),
            Amount::Count(n) => (Some("count"), Some(Number::Whole(n.value)), n.approx),
            Amount::Ratio(r) => (Some("ratio"), Some(Number::Fraction(r.value)), r.approx),
            Amount::BytesPerHour(r) => {
                let value = Number::Fraction(r.value);
                (Some("bytes_per_hour"), Some(value), r.approx)
            }
            Amount::Names(_) => (None, None, false),
        };
        let names: &[String] = match &evidence.amount {
            Amount::Names(names) => names,
            _ => &[],
        };
        Self {
            what: evidence.what,
            unit,
            value,
            names,
            approx,
        }
    }
}

/// The document on these remarks about `snapshot`.
///
/// `generated_at` is the current time when the source is live, else `None`.
pub(crate) fn document<'a>(
    snapshot: &'a Snapshot,
    elapsed: Option<Duration>,
    list: &'a [Advice],
    generated_at: Option<Timestamp>,
) -> Document<'a> {
    Document {
        schema: "slabctl.advise/1",
        generated_at: moment(generated_at),
        source: Source::of(&snapshot.origin),
        system: SystemInfo::of(&snapshot.system),
        elapsed_seconds: elapsed.map(|e| e.as_secs_f64()),
        advice: list
            .iter()
            .map(|advice| AdviceOut {
                rule: advice.rule.name(),
                cache: advice.cache.as_deref(),
                id: advice.sysfs_id.as_deref(),
                bytes: advice.bytes.map(|b| b.value),
                approx: advice.bytes.is_some_and(|b| b.approx),
                says: &advice.says,
                evidence: advice.evidence.iter().map(EvidenceOut::of).collect(),
                next: &advice.next,
            })
            .collect(),
        warnings: WarningOut::all(&snapshot.warnings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{check, samples, schema};
    use collectors::analysis::advise::Rule;
    use collectors::model::Approx;

    #[test]
    fn every_kind_of_figure_is_in_the_schema() {
        let figures = [
            Amount::Bytes(Approx::exact(7)),
            Amount::Count(Approx::estimate(7)),
            Amount::Ratio(Approx::exact(0.5)),
            Amount::BytesPerHour(Approx::exact(-1.5)),
            Amount::Names(vec!["a".into()]),
        ];
        let list = [Advice {
            rule: Rule::Fragmentation,
            cache: None,
            sysfs_id: None,
            bytes: Some(Approx::estimate(9)),
            says: "says".into(),
            evidence: figures
                .into_iter()
                .map(|amount| Evidence { what: "x", amount })
                .collect(),
            next: "next".into(),
        }];
        let snapshot = samples::snapshot();
        let value = serde_json::to_value(document(&snapshot, None, &list, None)).unwrap();
        assert_eq!(value["advice"][0]["evidence"][3]["value"], -1.5);
        assert_eq!(value["generated_at"], serde_json::Value::Null);
        let schema = schema::schema("advise").unwrap();
        assert_eq!(check::errors(&schema, &value), Vec::<String>::new());
    }
}
