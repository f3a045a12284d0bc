//! The document `slabctl.doctor/1`: what can be read, what is missing, and why.
//!
//! Source of truth: the findings of `collectors::source::doctor`.

use std::path::Path;

use collectors::source::doctor::{Finding, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::moment;

/// What slabctl can read on a machine or in a capture.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Doctor<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.doctor/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset. Null for a saved
    /// source, so that the same capture gives the same document every time.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// What was looked at.
    source: Looked,
    /// True when one of the needed findings is readable: reports then work,
    /// with what the others give.
    usable: bool,
    /// What was looked for, one by one.
    findings: Vec<FindingRow<'a>>,
}

/// The machine or capture that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
struct Looked {
    /// The running kernel, or a saved file or directory.
    #[schemars(extend("enum" = ["kernel", "capture"]))]
    kind: &'static str,
    /// The root directory of /proc and /sys, or the capture's path.
    detail: String,
}

/// One thing that was looked for.
#[derive(Debug, Serialize, JsonSchema)]
struct FindingRow<'a> {
    /// A file, or what it is about.
    what: &'a str,
    /// Whether it can be read; permission is missing; it is not there; it is
    /// there with nothing in it; the kernel could do it and does not.
    #[schemars(extend("enum" = ["readable", "denied", "missing", "empty", "off"]))]
    state: &'static str,
    /// What it is good for.
    gives: &'a str,
    /// What was seen, why it is missing and what to do, for people; null when
    /// there is nothing to say.
    remark: Option<&'a str>,
    /// One of the needed findings has to be readable, or nothing can be shown.
    needed: bool,
}

/// The document on these findings, of the capture `from`, or of the machine
/// whose files are below `root`.
pub(crate) fn document<'a>(
    findings: &'a [Finding],
    from: Option<&Path>,
    root: Option<&Path>,
) -> Doctor<'a> {
    let kind = if from.is_some() { "capture" } else { "kernel" };
    let detail = from.or(root).unwrap_or("/".as_ref());
    Doctor {
        schema: "slabctl.doctor/1",
        generated_at: moment(from.is_none().then(Timestamp::now)),
        source: Looked {
            kind,
            detail: detail.display().to_string(),
        },
        usable: findings
            .iter()
            .any(|f| f.needed && f.state == State::Readable),
        findings: findings.iter().map(FindingRow::of).collect(),
    }
}

impl<'a> FindingRow<'a> {
    fn of(finding: &'a Finding) -> Self {
        Self {
            what: &finding.what,
            state: finding.state.name(),
            gives: &finding.gives,
            remark: Some(&*finding.remark).filter(|text| !text.is_empty()),
            needed: finding.needed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{check, schema};

    #[test]
    fn every_state_is_in_the_schema() {
        let findings: Vec<Finding> = State::ALL
            .into_iter()
            .map(|state| Finding {
                what: "/proc/slabinfo".into(),
                state,
                gives: "rows".into(),
                remark: String::new(),
                needed: state == State::Denied,
            })
            .collect();
        let document = document(&findings, None, None);
        assert!(!document.usable, "a denied file is not usable");
        let value = serde_json::to_value(document).unwrap();
        assert_eq!(value["findings"][0]["remark"], serde_json::Value::Null);
        let schema = schema::schema("doctor").unwrap();
        assert_eq!(check::errors(&schema, &value), Vec::<String>::new());
    }

    #[test]
    fn a_capture_gives_the_same_document_every_time() {
        let value = serde_json::to_value(document(&[], Some("x.tar".as_ref()), None)).unwrap();
        assert_eq!(value["generated_at"], serde_json::Value::Null);
        assert_eq!(value["source"]["kind"], "capture");
    }
}
