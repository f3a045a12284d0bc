//! The document `slabctl.sites/1`: who holds the objects of caches.
//!
//! Source of truth: the groups of `collectors::analysis::sites`.

use collectors::analysis::sites::GroupChange;
use collectors::model::{SiteKind, Snapshot};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Source, SystemInfo, WarningOut, moment};
use crate::cmd::sites::CacheSites;

/// Who allocated the objects that are in use, or freed their slots before.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.sites/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset. Null for a saved
    /// source, so that the same capture gives the same document every time.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// Where the figures, or the later ones, are from.
    source: Source<'a>,
    /// The machine they are of.
    system: SystemInfo<'a>,
    /// Sites that allocated, or that freed.
    #[schemars(extend("enum" = ["alloc", "free"]))]
    kind: &'static str,
    /// One object in so many was followed: counts and bytes are that many times
    /// what was seen, so estimates where it is not 1.
    sampled: u32,
    /// The caches that have sites; with two samples, those whose sites changed.
    caches: Vec<CacheOut<'a>>,
    /// What could not be read, and what to know about the figures.
    warnings: Vec<WarningOut>,
}

/// The sites of one cache.
#[derive(Debug, Serialize, JsonSchema)]
struct CacheOut<'a> {
    /// Its shown name; "unnamed" for a list of sites that does not tell.
    name: &'a str,
    /// Every name that shares the cache.
    names: &'a [String],
    /// The sites, most objects or most growth first.
    sites: Vec<SiteOut<'a>>,
    /// How many more there are.
    more_sites: u64,
}

/// One site, or one stack.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SiteOut<'a> {
    /// Function with offset and size; null where the kernel did not know.
    symbol: Option<&'a str>,
    /// Frames, innermost first; empty where none is recorded, or for several stacks together.
    stack: &'a [String],
    /// Stacks together here; 0 where none is recorded.
    stacks: u64,
    /// Objects.
    count: u64,
    /// Objects in the earlier sample; null with one sample.
    before: Option<u64>,
    /// Growth from the earlier sample; null with one sample.
    delta: Option<i64>,
    /// Bytes of their slots; null when the slot's size is unknown.
    bytes: Option<u64>,
    /// Bytes lost to size-class rounding; null when not recorded.
    waste_bytes: Option<u64>,
    /// Unit of the ages: the kernel's jiffies, or milliseconds.
    #[schemars(extend("enum" = ["jiffies", "ms"]))]
    age_unit: &'static str,
    /// Youngest; null when not recorded.
    age_min: Option<u64>,
    /// Mean over the objects.
    age_mean: Option<u64>,
    /// Oldest.
    age_max: Option<u64>,
    /// Free bytes of sparse slabs that its objects keep alive; null when not looked at.
    pinned_bytes: Option<u64>,
    /// Those slabs; null when not looked at.
    pinned_slabs: Option<u64>,
    /// Its objects there; null when not looked at.
    pinned_objects: Option<u64>,
    /// Smallest process id; null when not recorded.
    pid_min: Option<i64>,
    /// Largest process id.
    pid_max: Option<i64>,
    /// Processors; empty when not recorded.
    cpus: &'a [u32],
    /// Nodes; empty when not recorded.
    nodes: &'a [u32],
}

impl<'a> SiteOut<'a> {
    pub(super) fn of(change: &'a GroupChange, differs: bool) -> Self {
        let group = &change.group;
        Self {
            symbol: group.symbol.as_deref(),
            stack: &group.stack,
            stacks: group.stacks,
            count: change.after,
            before: differs.then_some(change.before),
            delta: i64::try_from(change.delta).ok().filter(|_| differs),
            bytes: group.bytes,
            waste_bytes: group.waste,
            age_unit: group.age_unit.name(),
            age_min: group.age.map(|age| age.0),
            age_mean: group.age.map(|age| age.1),
            age_max: group.age.map(|age| age.2),
            pinned_bytes: group.pinned.map(|of| of.bytes),
            pinned_slabs: group.pinned.map(|of| of.slabs),
            pinned_objects: group.pinned.map(|of| of.objects),
            pid_min: group.pids.map(|pids| pids.0),
            pid_max: group.pids.map(|pids| pids.1),
            cpus: &group.cpus,
            nodes: &group.nodes,
        }
    }
}

/// The document on these sites; `differs` when they are of two samples.
pub(crate) fn document<'a>(
    snapshot: &'a Snapshot,
    kind: SiteKind,
    differs: bool,
    list: &'a [CacheSites],
    generated_at: Option<Timestamp>,
) -> Document<'a> {
    let cache = |cache: &'a CacheSites| CacheOut {
        name: &cache.name,
        names: &cache.names,
        sites: cache
            .groups
            .iter()
            .map(|group| SiteOut::of(group, differs))
            .collect(),
        more_sites: cache.cut as u64,
    };
    Document {
        schema: "slabctl.sites/1",
        generated_at: moment(generated_at),
        source: Source::of(&snapshot.origin),
        system: SystemInfo::of(&snapshot.system),
        kind: match kind {
            SiteKind::Alloc => "alloc",
            SiteKind::Free => "free",
        },
        sampled: 1,
        caches: list.iter().map(cache).collect(),
        warnings: WarningOut::all(&snapshot.warnings),
    }
}

impl Document<'_> {
    /// Tells that one object in so many was followed.
    pub(crate) fn following(mut self, one_in: u32) -> Self {
        self.sampled = one_in;
        self
    }
}
