//! The table itself: every column that is not one flag or one counter.

use std::borrow::Cow;

use super::value::{aliases, ctor, flags, nodes, partial_ratio, reclaim};
use super::{Column, Getter, Row, TextNeed};
use crate::analysis::Usage;
use crate::model::{Approx, Bytes, Layer, Quantity, Unit};

const MEMORY: &[Quantity] = &[
    Quantity::Slabs,
    Quantity::Order,
    Quantity::PagesPerSlab,
    Quantity::ObjsPerSlab,
    Quantity::TotalObjects,
];
const USED: &[Quantity] = &[Quantity::Objects, Quantity::ObjectSize, Quantity::SlabSize];
const LOSS: &[Quantity] = &[
    Quantity::Slabs,
    Quantity::Order,
    Quantity::PagesPerSlab,
    Quantity::ObjsPerSlab,
    Quantity::TotalObjects,
    Quantity::Objects,
    Quantity::ObjectSize,
    Quantity::SlabSize,
];

const fn quantity(key: &'static str, title: &'static str, q: Quantity) -> Column {
    Column {
        key,
        title,
        unit: q.unit(),
        doc: q.doc(),
        getter: Getter::Quantity(q),
    }
}

const fn bytes(
    key: &'static str,
    title: &'static str,
    doc: &'static str,
    get: fn(&Usage) -> Option<Approx<Bytes>>,
    needs: &'static [Quantity],
) -> Column {
    Column {
        key,
        title,
        unit: Unit::Bytes,
        doc,
        getter: Getter::Usage(get, needs),
    }
}

const fn ratio(
    key: &'static str,
    title: &'static str,
    doc: &'static str,
    get: fn(&Row<'_>) -> Option<Approx<f64>>,
    needs: &'static [Quantity],
) -> Column {
    Column {
        key,
        title,
        unit: Unit::Percent,
        doc,
        getter: Getter::Ratio(get, needs),
    }
}

const fn text(
    key: &'static str,
    title: &'static str,
    doc: &'static str,
    get: for<'a> fn(&Row<'a>) -> Option<Cow<'a, str>>,
    need: TextNeed,
) -> Column {
    Column {
        key,
        title,
        unit: Unit::Text,
        doc,
        getter: Getter::Text(get, need),
    }
}

pub(super) static FIXED: &[Column] = &[
    text(
        "name",
        "Name",
        "The name shown: the first-created one, as in /proc/slabinfo.",
        |r| Some(Cow::Borrowed(&*r.cache.name)),
        TextNeed::Names,
    ),
    quantity("objects", "Objects", Quantity::Objects),
    quantity("total_objects", "Total", Quantity::TotalObjects),
    quantity("objects_partial", "ObjPart", Quantity::ObjectsPartial),
    quantity("object_size", "Objsize", Quantity::ObjectSize),
    quantity("slab_size", "Slot", Quantity::SlabSize),
    bytes(
        "memory",
        "Space",
        "Bytes held: slabs x pages per slab x page size.",
        |u| u.memory,
        MEMORY,
    ),
    bytes(
        "used",
        "Used",
        "Bytes of payload in use: objects x object_size.",
        |u| u.used,
        USED,
    ),
    bytes(
        "loss",
        "Loss",
        "Bytes held and not used: memory - used.",
        |u| u.loss,
        LOSS,
    ),
    bytes(
        "slack",
        "Slack",
        "Lost to metadata and alignment in the slots in use.",
        |u| u.slack,
        USED,
    ),
    bytes(
        "free",
        "Free",
        "Lost to slots without an object in use.",
        |u| u.free,
        &[
            Quantity::Objects,
            Quantity::TotalObjects,
            Quantity::SlabSize,
        ],
    ),
    bytes(
        "padding",
        "Padding",
        "Lost at the end of each slab.",
        |u| u.padding,
        LOSS,
    ),
    quantity("slabs", "Slabs", Quantity::Slabs),
    quantity("partial", "Part", Quantity::Partial),
    quantity("cpu_slabs", "Cpu", Quantity::CpuSlabs),
    quantity("slabs_cpu_partial", "CpuPart", Quantity::SlabsCpuPartial),
    quantity(
        "objects_cpu_partial",
        "ObjCpuPart",
        Quantity::ObjectsCpuPartial,
    ),
    quantity("parked", "Parked", Quantity::Parked),
    quantity("objs_per_slab", "O/S", Quantity::ObjsPerSlab),
    quantity("order", "O", Quantity::Order),
    quantity("pages_per_slab", "P/S", Quantity::PagesPerSlab),
    ratio(
        "partial_ratio",
        "%Fr",
        "Share of the slabs that is on partial lists.",
        partial_ratio,
        &[Quantity::Partial, Quantity::Slabs],
    ),
    ratio(
        "utilization",
        "%Ef",
        "Payload in use as a share of the bytes held.",
        |r| r.usage.utilization,
        LOSS,
    ),
    ratio(
        "object_use",
        "%Use",
        "Objects in use as a share of those there is room for.",
        |r| r.usage.object_use,
        &[Quantity::Objects, Quantity::TotalObjects],
    ),
    ratio(
        "fragmentation",
        "%Free",
        "Slots without an object in use as a share of all.",
        |r| r.usage.fragmentation,
        &[Quantity::Objects, Quantity::TotalObjects],
    ),
    text(
        "reclaim",
        "Rcl",
        "Whether the cache counts as reclaimable: yes or no.",
        reclaim,
        TextNeed::Reclaim,
    ),
    text(
        "flags",
        "Flg",
        "All flags by slabinfo's letters: * aliases, d DMA, A aligned, P poison, a reclaimable, Z red zone, F checks, U users, T trace; ? where one is unknown.",
        flags,
        TextNeed::AllFlags,
    ),
    quantity("align", "Align", Quantity::Align),
    quantity("usersize", "Usersize", Quantity::Usersize),
    text("ctor", "Ctor", "The constructor.", ctor, TextNeed::Ctor),
    quantity("min_partial", "MinPart", Quantity::MinPartial),
    quantity("cpu_partial", "CpuPartMax", Quantity::CpuPartial),
    quantity("sheaf_capacity", "Sheaf", Quantity::SheafCapacity),
    quantity(
        "remote_node_defrag_ratio",
        "Defrag",
        Quantity::RemoteNodeDefragRatio,
    ),
    quantity("active_slabs", "Active", Quantity::ActiveSlabs),
    text(
        "id",
        "Id",
        "The directory in /sys/kernel/slab.",
        |r| r.cache.sysfs_id.as_deref().map(Cow::Borrowed),
        TextNeed::Names,
    ),
    text(
        "aliases",
        "Aliases",
        "Other names merged into the cache.",
        aliases,
        TextNeed::Names,
    ),
    text(
        "nodes",
        "Nodes",
        "Slabs per NUMA node.",
        nodes,
        TextNeed::Nodes,
    ),
    text(
        "cgroup",
        "Cgroup",
        "The control group, for memory.kmem.slabinfo.",
        |r| r.cache.cgroup.as_deref().map(Cow::Borrowed),
        TextNeed::Names,
    ),
    text(
        "source",
        "Source",
        "The layers the figures came from.",
        |r| {
            Some(Cow::Owned(
                r.cache
                    .layers
                    .iter()
                    .map(Layer::name)
                    .collect::<Vec<_>>()
                    .join("+"),
            ))
        },
        TextNeed::Names,
    ),
    Column {
        key: "activity",
        title: "Activity",
        unit: Unit::Count,
        doc: "Allocations and frees over all paths (needs CONFIG_SLUB_STATS).",
        getter: Getter::Activity,
    },
];
