//! The document `slabctl.ps/1`: processes on slabcore's engine.

use collectors::source::process::{Listed, Listing};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::moment;
use crate::cmd::ps::access;

/// The processes on slabcore's engine that may be looked into.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.ps/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// The processes, by number.
    processes: Vec<ProcessOut<'a>>,
    /// Number of processes that may not be looked at; some of them may be on the engine.
    hidden: u64,
    /// Number of processes that there was no time for; some of them may be on the engine.
    left_out: u64,
}

/// One process.
#[derive(Debug, Serialize, JsonSchema)]
struct ProcessOut<'a> {
    /// Process id.
    pid: u32,
    /// Name of its program; null when not known.
    program: Option<&'a str>,
    /// User id, as the system tells it; null when not known.
    uid: Option<u32>,
    /// The engine, with its version; null when its segment is refused.
    engine: Option<&'a str>,
    /// Number of its caches; null when nothing is known yet.
    caches: Option<u64>,
    /// Objects in use in them; null when nothing is known yet.
    objects: Option<u64>,
    /// Bytes of slabs and large objects; null when nothing is known yet.
    used_bytes: Option<u64>,
    /// Reports about damage in debug caches; null when nothing is known yet.
    reports: Option<u64>,
    /// Whether its memory is read, or only the sums that it published, or nothing.
    #[schemars(extend("enum" = ["read", "published", "refused"]))]
    access: &'static str,
    /// Why it is refused; null when it is not.
    refusal: Option<&'a str>,
}

impl<'a> ProcessOut<'a> {
    fn of(of: &'a Listed) -> Self {
        Self {
            pid: of.pid,
            program: of.program.as_deref(),
            uid: of.uid,
            engine: of.engine.as_deref(),
            caches: of.caches,
            objects: of.objects,
            used_bytes: of.used_bytes,
            reports: of.faults,
            access: access(of),
            refusal: of.refused.as_deref(),
        }
    }
}

/// The document on a listing.
pub(crate) fn document(listing: &Listing, now: Timestamp) -> Document<'_> {
    Document {
        schema: "slabctl.ps/1",
        generated_at: moment(Some(now)),
        processes: listing.processes.iter().map(ProcessOut::of).collect(),
        hidden: listing.hidden,
        left_out: listing.left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{check, schema};

    #[test]
    fn processes_follow_the_schema() {
        let known = Listed {
            pid: 7,
            program: Some("redis".into()),
            uid: Some(1000),
            engine: Some("slabcore 0.1.0".into()),
            caches: Some(3),
            objects: Some(4),
            used_bytes: Some(4096),
            faults: Some(0),
            readable: true,
            refused: None,
        };
        let refused = Listed {
            caches: None,
            refused: Some("no".into()),
            ..known.clone()
        };
        let listing = Listing {
            processes: vec![known, refused],
            left_out: 0,
            hidden: 2,
        };
        let value = serde_json::to_value(document(&listing, Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(value["processes"][1]["caches"], serde_json::Value::Null);
        assert_eq!(value["processes"][1]["access"], "refused");
        let schema = schema::schema("ps").unwrap();
        assert_eq!(check::errors(&schema, &value), Vec::<String>::new());
    }
}
