//! The document `slabctl.dump/1`: slabs and objects of an engine's caches, or
//! attributes and call sites of a kernel's.
//!
//! Source of truth: `collectors::model::Dump`; `cmd::dump::kernel::Dumped`.

use std::borrow::Cow;
use std::fmt::Write as _;

use collectors::analysis::sites::GroupChange;
use collectors::model::{
    Dump, DumpCache, DumpObject, DumpSlab, DumpTrack, Holder, OriginKind, Place, Quantity, Snapshot,
};
use collectors::source::kernel::raw::RawAttribute;
use schemars::JsonSchema;
use serde::Serialize;

use super::dump::address;
use super::envelope::{Source, SystemInfo, WarningOut, moment};
use super::json_sites::SiteOut;
use super::row::CacheRow;
use crate::cmd::dump::kernel::{Dumped, debug_letters};

/// Slabs of an engine's caches, and where each of their objects is; or all that
/// a kernel tells of its caches, which is no single slabs.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.dump/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// What was looked at.
    source: Source<'a>,
    /// What it runs on.
    system: SystemInfo<'a>,
    /// Number of slabs of these caches that are left out of this document.
    cut_slabs: u64,
    /// The look came to its limit: there may be more slabs and caches.
    limited: bool,
    /// The caches, in the order of their making; a kernel's in its own order.
    caches: Vec<CacheOut<'a>>,
    /// What to know about the source.
    warnings: Vec<WarningOut>,
}

/// One cache.
#[derive(Debug, Serialize, JsonSchema)]
struct CacheOut<'a> {
    /// Name of the cache.
    name: &'a str,
    /// How it allocates; null for a debug cache, and for a kernel's.
    policy: Option<&'a str>,
    /// Debug flags as letters of `slab_debug`, or "-"; null when not known.
    debug: Option<Cow<'a, str>>,
    /// Bytes of an object; null when not known.
    object_size: Option<u64>,
    /// Bytes from one object to the next; null when not known.
    slab_size: Option<u64>,
    /// Number of objects in a slab of the usual order; null when not known.
    objs_per_slab: Option<u64>,
    /// Number of slabs, also of those left out; null when not known.
    slabs_total: Option<u64>,
    /// Number of objects in use by the counters; null when not known.
    objects: Option<u64>,
    /// True when everything is of one moment and adds up to the counters; never
    /// of a kernel.
    exact: bool,
    /// Number of objects of all slabs, by where they are; null for a kernel.
    places: Option<Places>,
    /// The slabs in order of address, without those left out; none of a kernel.
    slabs: Vec<SlabOut<'a>>,
    /// What only a kernel tells; null for the engine.
    kernel: Option<KernelOut<'a>>,
}

/// What a kernel tells of a cache.
#[derive(Debug, Serialize, JsonSchema)]
struct KernelOut<'a> {
    /// Its figures, with nodes, processors and counters, as in `slabctl.report/1`.
    figures: CacheRow<'a>,
    /// Its attribute files by name; without files, its figures under the same names.
    attributes: Vec<AttributeOut<'a>>,
    /// True when `attributes` are files and not only figures.
    attributes_read: bool,
    /// Who allocated the objects, by stack, most first; null when that is not
    /// recorded, or not in the source.
    allocated_by: Option<Vec<SiteOut<'a>>>,
    /// Who freed their slots' previous objects; null likewise.
    freed_by: Option<Vec<SiteOut<'a>>>,
    /// Why there are no sites, and what to do; empty when there are.
    sites_missing: &'a [String],
}

/// One attribute.
#[derive(Debug, Serialize, JsonSchema)]
struct AttributeOut<'a> {
    /// Name of its file.
    name: &'a str,
    /// Its text; null when it was not read.
    value: Option<&'a str>,
    /// Why it could not be read; null when it was, or when it is not for reading.
    error: Option<&'a str>,
    /// What it is; null when this program does not know it.
    meaning: Option<&'a str>,
}

/// Numbers of objects by where they are.
#[derive(Debug, Serialize, JsonSchema)]
struct Places {
    /// With the program.
    allocated: u64,
    /// In the free list of a slab that nobody holds.
    free: u64,
    /// In the free list of a slab that a slot holds.
    remote: u64,
    /// In the own list of the slot that holds the slab.
    own: u64,
    /// In main sheaves of slots.
    main: u64,
    /// In spare sheaves of slots.
    spare: u64,
    /// In barns of nodes.
    barn: u64,
    /// Out of use after damage.
    quarantined: u64,
    /// Not known, since they moved meanwhile.
    unknown: u64,
}

/// One slab.
#[derive(Debug, Serialize, JsonSchema)]
struct SlabOut<'a> {
    /// Address, in hexadecimal.
    address: String,
    /// Page order.
    order: u32,
    /// Node number.
    node: u32,
    /// Number of objects that are not in the slab's free list.
    inuse: u64,
    /// Who has the slab: nobody, a slot that allocates from it, a slot's list
    /// of slabs with free objects, or a slot that owns it and found it full.
    #[schemars(extend("enum" = ["nobody", "in-hand", "partial", "full"]))]
    holder: &'static str,
    /// Number of the slot that has it; null when nobody has.
    holder_slot: Option<u32>,
    /// Place on the node's partial list, from 0; null when it is not there.
    partial_position: Option<u32>,
    /// True when it is in its holder's queue of slabs that others freed to.
    queued: bool,
    /// True when its lists are of one moment.
    settled: bool,
    /// Indices of the objects of its free list, in order.
    free_list: &'a [u16],
    /// Indices of the objects of its holder's own list, in order.
    own_list: &'a [u16],
    /// Its objects by index.
    objects: Vec<ObjectOut<'a>>,
}

/// One object.
#[derive(Debug, Serialize, JsonSchema)]
struct ObjectOut<'a> {
    /// Address, in hexadecimal.
    address: String,
    /// Where it is, as in `places`. Programs should pass over names they do not know.
    state: &'static str,
    /// Number of the slot (or node, for a barn) that has it; null when none has.
    at: Option<u32>,
    /// Bytes that were asked for; null when that is not kept.
    requested: Option<u64>,
    /// Who allocated it; null when that is not kept.
    allocated: Option<TrackOut<'a>>,
    /// Who freed it last; null when that is not kept or never happened.
    freed: Option<TrackOut<'a>>,
    /// Bytes of the object itself, in hexadecimal; null when they were not asked for.
    bytes: Option<String>,
}

/// Who allocated or freed an object.
#[derive(Debug, Serialize, JsonSchema)]
struct TrackOut<'a> {
    /// Thread id.
    thread: u32,
    /// Number of the CPU.
    cpu: u32,
    /// Milliseconds from then to the look.
    age_ms: u64,
    /// The stack, innermost frame first.
    stack: Vec<FrameOut<'a>>,
}

/// One frame of a stack.
#[derive(Debug, Serialize, JsonSchema)]
struct FrameOut<'a> {
    /// Address, in hexadecimal.
    address: String,
    /// Function or file with an offset; null when not known.
    symbol: Option<&'a str>,
}

fn track(of: &DumpTrack) -> TrackOut<'_> {
    let frames = of.stack.iter().map(|frame| FrameOut {
        address: format!("{:#x}", frame.address),
        symbol: frame.symbol.as_deref(),
    });
    TrackOut {
        thread: of.thread,
        cpu: of.cpu,
        age_ms: of.age_ms,
        stack: frames.collect(),
    }
}

fn object<'a>(
    cache: &DumpCache,
    slab: &DumpSlab,
    index: usize,
    of: &'a DumpObject,
) -> ObjectOut<'a> {
    let start = index * cache.slab_size as usize + cache.object_offset as usize;
    let bytes = slab.bytes.as_deref();
    let bytes = bytes.and_then(|b| b.get(start..start + cache.object_size as usize));
    ObjectOut {
        address: format!("{:#x}", address(cache, slab, index)),
        state: of.place.name(),
        at: match of.place {
            Place::Barn(node) => Some(node),
            place => place.slot(),
        },
        requested: of.requested,
        allocated: of.allocated.as_ref().map(track),
        freed: of.freed.as_ref().map(track),
        bytes: bytes.map(hex),
    }
}

/// Two digits a byte.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn slab<'a>(cache: &DumpCache, of: &'a DumpSlab) -> SlabOut<'a> {
    let (holder, holder_slot) = match of.holder {
        Holder::Nobody => ("nobody", None),
        Holder::InHand(slot) => ("in-hand", Some(slot)),
        Holder::Partial(slot) => ("partial", Some(slot)),
        Holder::Full(slot) => ("full", Some(slot)),
    };
    let objects = of.objects.iter().enumerate();
    SlabOut {
        address: format!("{:#x}", of.address),
        order: of.order,
        node: of.node,
        inuse: of.inuse,
        holder,
        holder_slot,
        partial_position: of.listed,
        queued: of.queued,
        settled: of.settled,
        free_list: &of.chain,
        own_list: &of.own,
        objects: objects.map(|(i, it)| object(cache, of, i, it)).collect(),
    }
}

fn cache(of: &DumpCache) -> CacheOut<'_> {
    let [
        allocated,
        free,
        remote,
        own,
        main,
        spare,
        barn,
        quarantined,
        unknown,
    ] = of.places;
    CacheOut {
        name: &of.name,
        policy: of.policy,
        debug: Some(Cow::Borrowed(&of.debug)),
        object_size: Some(of.object_size.into()),
        slab_size: Some(of.slab_size.into()),
        objs_per_slab: Some(of.objs_per_slab.into()),
        slabs_total: Some(of.slabs_total),
        objects: of.counted,
        exact: of.exact,
        places: Some(Places {
            allocated,
            free,
            remote,
            own,
            main,
            spare,
            barn,
            quarantined,
            unknown,
        }),
        slabs: of.slabs.iter().map(|it| slab(of, it)).collect(),
        kernel: None,
    }
}

fn of_one<'a>(dumped: &'a Dumped<'_>, page_size: u64) -> CacheOut<'a> {
    let cache = dumped.cache;
    let figure = |q| cache.get(q).map(|f| f.value);
    let sites = |list: &'a [GroupChange]| {
        let out = list.iter().map(|group| SiteOut::of(group, false)).collect();
        cache.sites.is_some().then_some(out)
    };
    let attribute = |a: &'a RawAttribute| AttributeOut {
        name: &a.name,
        value: a.value.as_deref(),
        error: a.error.as_deref(),
        meaning: a.meaning,
    };
    CacheOut {
        name: &cache.name,
        policy: None,
        debug: debug_letters(cache.flags).map(Cow::Owned),
        object_size: figure(Quantity::ObjectSize),
        slab_size: figure(Quantity::SlabSize),
        objs_per_slab: figure(Quantity::ObjsPerSlab),
        slabs_total: figure(Quantity::Slabs),
        objects: figure(Quantity::Objects),
        exact: false,
        places: None,
        slabs: Vec::new(),
        kernel: Some(KernelOut {
            figures: CacheRow::of(cache, page_size),
            attributes: dumped.attributes.iter().map(attribute).collect(),
            attributes_read: dumped.read,
            allocated_by: sites(&dumped.allocated),
            freed_by: sites(&dumped.freed),
            sites_missing: &dumped.missing,
        }),
    }
}

/// The document on caches of the kernel that is the source of `snapshot`.
pub(crate) fn of_kernel<'a>(snapshot: &'a Snapshot, list: &'a [Dumped<'_>]) -> Document<'a> {
    let page_size = snapshot.system.page_size;
    Document {
        schema: "slabctl.dump/1",
        generated_at: generated(snapshot),
        source: Source::of(&snapshot.origin),
        system: SystemInfo::of(&snapshot.system),
        cut_slabs: 0,
        limited: false,
        caches: list.iter().map(|one| of_one(one, page_size)).collect(),
        warnings: WarningOut::all(&snapshot.warnings),
    }
}

/// A capture gives the same document every time.
fn generated(snapshot: &Snapshot) -> Option<String> {
    let live = snapshot.origin.kind != OriginKind::Capture;
    moment(snapshot.origin.taken_at.filter(|_| live))
}

/// The document on a look into the engine that is the source of `snapshot`.
pub(crate) fn of_engine<'a>(snapshot: &'a Snapshot, dump: &'a Dump) -> Document<'a> {
    Document {
        schema: "slabctl.dump/1",
        generated_at: moment(snapshot.origin.taken_at),
        source: Source::of(&snapshot.origin),
        system: SystemInfo::of(&snapshot.system),
        cut_slabs: dump.cut,
        limited: dump.limited,
        caches: dump.caches.iter().map(cache).collect(),
        warnings: WarningOut::all(&snapshot.warnings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{check, dump, samples, schema};

    #[test]
    fn every_part_follows_the_schema() {
        let snapshot = samples::snapshot();
        let dump = dump::tests::sample();
        let value = serde_json::to_value(of_engine(&snapshot, &dump)).unwrap();
        let schema = schema::schema("dump").unwrap();
        assert_eq!(check::errors(&schema, &value), Vec::<String>::new());
        let slab = &value["caches"][0]["slabs"][0];
        assert_eq!(slab["objects"][0]["address"], "0x70000008");
        assert_eq!(slab["objects"][0]["bytes"].as_str().unwrap().len(), 48);
        assert_eq!(
            slab["objects"][1]["freed"]["stack"][0]["symbol"],
            serde_json::Value::Null
        );
        assert_eq!(slab["holder"], "in-hand");
        assert_eq!(value["cut_slabs"], 2);
    }
}
