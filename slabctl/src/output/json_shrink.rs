//! The document `slabctl.shrink/1`: caches before and after they were shrunk.

use collectors::model::Snapshot;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Source, SystemInfo, WarningOut, moment};
use crate::cmd::shrink::Shrunk;

/// What became of caches that were shrunk. Others allocate and free meanwhile,
/// so the difference is not all the shrinking's.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.shrink/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// Where the figures are from.
    source: Source<'a>,
    /// The machine they are of.
    system: SystemInfo<'a>,
    /// The caches, in the order asked for.
    caches: Vec<ShrunkOut<'a>>,
    /// What could not be read, and what to know about the figures.
    warnings: Vec<WarningOut>,
}

/// One cache.
#[derive(Debug, Serialize, JsonSchema)]
struct ShrunkOut<'a> {
    /// The name that was asked for.
    name: &'a str,
    /// Its directory in /sys/kernel/slab.
    id: &'a str,
    /// Before.
    before: Held,
    /// After.
    after: Held,
}

/// What a cache holds.
#[derive(Debug, Serialize, JsonSchema)]
struct Held {
    /// Slabs; null when unknown, as the others.
    slabs: Option<u64>,
    /// Slabs on partial lists.
    partial: Option<u64>,
    /// Objects in use.
    objects: Option<u64>,
    /// Objects that the slabs have room for.
    total_objects: Option<u64>,
    /// Bytes.
    memory_bytes: Option<u64>,
}

impl Held {
    fn of([slabs, partial, objects, total_objects]: [Option<u64>; 4], memory: Option<u64>) -> Self {
        Self {
            slabs,
            partial,
            objects,
            total_objects,
            memory_bytes: memory,
        }
    }
}

/// The document on caches of which `snapshot` is the state afterwards.
pub(crate) fn document<'a>(
    snapshot: &'a Snapshot,
    list: &'a [Shrunk],
    now: Timestamp,
) -> Document<'a> {
    Document {
        schema: "slabctl.shrink/1",
        generated_at: moment(Some(now)),
        source: Source::of(&snapshot.origin),
        system: SystemInfo::of(&snapshot.system),
        caches: list
            .iter()
            .map(|one| ShrunkOut {
                name: &one.name,
                id: &one.id,
                before: Held::of(one.before, one.memory[0]),
                after: Held::of(one.after, one.memory[1]),
            })
            .collect(),
        warnings: WarningOut::all(&snapshot.warnings),
    }
}
