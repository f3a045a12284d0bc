//! The document `slabctl.report/1`, and how JSON documents are written.
//!
//! Source of truth: a `Snapshot` and the caches somebody chose from it. Rows
//! are made while they are written, so that a million caches cost no more
//! memory than the snapshot itself.

use std::io::{self, BufWriter, Write};

use collectors::model::{Cache, Snapshot};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::envelope::{Source, SystemInfo, WarningOut, moment};
use super::escape::Escaping;
use super::row::CacheRow;
use super::totals::Totals;
use super::unknown;

/// Slab caches of one source at one moment.
///
/// Integers are exact and in the unit their description names; nothing is
/// scaled. What is unknown is null, never 0. What is an estimate or a bound is
/// named in the `approx` list beside it. Later versions of this document may
/// add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Report<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.report/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset. Null for a saved
    /// source, so that the same capture gives the same document every time;
    /// `source.taken_at` then tells when the figures were read.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// Where the figures are from.
    source: Source<'a>,
    /// The machine they are of.
    system: SystemInfo<'a>,
    /// The caches chosen, in the order chosen. Two caches may have one name;
    /// each is a row of its own.
    #[schemars(with = "Vec<CacheRow>")]
    caches: Rows<'a>,
    /// Sums over the caches of this document.
    totals: Totals,
    /// What could not be read, and what to know about the figures.
    warnings: Vec<WarningOut>,
}

/// The report on `caches`, a choice from `snapshot`.
///
/// `generated_at` is the current time for a live source and `None` for a saved
/// one.
pub(crate) fn report<'a>(
    snapshot: &'a Snapshot,
    caches: &'a [&'a Cache],
    generated_at: Option<Timestamp>,
) -> Report<'a> {
    let page_size = snapshot.system.page_size;
    Report {
        schema: "slabctl.report/1",
        generated_at: moment(generated_at),
        source: Source::of(&snapshot.origin),
        system: SystemInfo::of(&snapshot.system),
        caches: Rows { caches, page_size },
        totals: Totals::of(caches, page_size),
        warnings: warnings(snapshot, caches),
    }
}

/// The snapshot's warnings, and why fields of the chosen caches are null.
fn warnings(snapshot: &Snapshot, caches: &[&Cache]) -> Vec<WarningOut> {
    let mut all = snapshot.warnings.clone();
    all.extend(unknown::warnings(caches));
    WarningOut::all(&all)
}

/// Caches that become rows when they are serialised.
#[derive(Debug)]
struct Rows<'a> {
    caches: &'a [&'a Cache],
    page_size: u64,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            self.caches
                .iter()
                .map(|cache| CacheRow::of(cache, self.page_size)),
        )
    }
}

/// Writes `document` indented, with a line end, and flushes `out`.
///
/// An error of `out` keeps its kind, so that a closed pipe can be told.
pub(crate) fn write(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    let mut out = Escaping::new(BufWriter::new(out));
    serde_json::to_writer_pretty(&mut out, document)?;
    out.write_all(b"\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples;
    use serde_json::Value;

    #[test]
    fn a_closed_pipe_is_told_apart() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let long = vec!["x"; 10_000];
        let error = write(&mut Closed, &long).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn the_time_of_a_live_report_is_given_by_the_caller() {
        let snapshot = samples::snapshot();
        let now = report(&snapshot, &[], Some(Timestamp::UNIX_EPOCH));
        let value = serde_json::to_value(now).unwrap();
        assert_eq!(value["generated_at"], "1970-01-01T00:00:00Z");
        let saved = serde_json::to_value(report(&snapshot, &[], None)).unwrap();
        assert_eq!(saved["generated_at"], Value::Null);
        assert_eq!(saved["source"]["taken_at"], "2026-01-31T12:00:00Z");
    }

    #[test]
    fn every_null_is_explained() {
        // Null where there is nothing to tell, or computed from what is named.
        const PLAIN: [&str; 12] = [
            "parked",
            "id",
            "ctor",
            "cgroup",
            "active_slabs",
            "reported_used",
            "reported_total",
            "tunables",
            "slab_statistics",
            "memory_bytes",
            "used_bytes",
            "loss_bytes",
        ];
        let snapshot = samples::snapshot();
        let caches: Vec<_> = snapshot.caches.iter().collect();
        let value = serde_json::to_value(report(&snapshot, &caches, None)).unwrap();
        let told: String = value["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|w| w["code"] == "not-in-source")
            .map(|w| w["message"].as_str().unwrap().to_owned() + " ")
            .collect();
        let mut checked = 0;
        for cache in value["caches"].as_array().unwrap() {
            let flags = cache["flags"].as_object().unwrap();
            let limits = cache["limits"].as_object().unwrap();
            for (name, field) in cache.as_object().unwrap().iter().chain(flags).chain(limits) {
                if field.is_null() && name != "utilization" && !PLAIN.contains(&name.as_str()) {
                    assert!(
                        told.contains(name.as_str()),
                        "{name} is null without a reason: {told}"
                    );
                    checked += 1;
                }
            }
        }
        assert!(checked > 20, "{checked}");
    }
}
