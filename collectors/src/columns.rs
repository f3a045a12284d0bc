//! One table of columns: names, titles, units, meaning and how to get the value.
//!
//! Tables, CSV, sorting, filters, the help text and the live screen are all
//! drawn from it. A column also knows what a live source must read for it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::LazyLock;

use crate::analysis::Usage;
use crate::model::{Approx, Bytes, Cache, CounterId, Ctor, Flag, Quantity, Unit};
use crate::source::Demand;

/// A cache with its derived figures: what a column looks at.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The cache.
    pub cache: &'a Cache,
    /// Its derived figures.
    pub usage: Usage,
}

impl<'a> Row<'a> {
    /// Derives the figures of a cache.
    pub fn new(cache: &'a Cache, page_size: u64) -> Self {
        Self {
            cache,
            usage: Usage::of(cache, page_size),
        }
    }
}

/// The value of one column for one cache.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Not known; shown as `-`, never as 0.
    Missing,
    /// A whole number in the column's unit.
    Int(Approx<u64>),
    /// A ratio, 1.0 being 100 %.
    Ratio(Approx<f64>),
    /// Text.
    Text(Cow<'a, str>),
}

impl Value<'_> {
    /// The number behind the value, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(figure) => Some(figure.value as f64),
            Self::Ratio(figure) => Some(figure.value),
            Self::Missing | Self::Text(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Getter {
    Quantity(Quantity),
    Flag(Flag),
    Counter(CounterId),
    Usage(fn(&Usage) -> Option<Approx<Bytes>>, &'static [Quantity]),
    Ratio(fn(&Row<'_>) -> Option<Approx<f64>>, &'static [Quantity]),
    Text(for<'a> fn(&Row<'a>) -> Option<Cow<'a, str>>, TextNeed),
    Activity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextNeed {
    Names,
    AllFlags,
    Reclaim,
    Ctor,
    Nodes,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The name in options, filters, CSV headers and configuration.
    pub key: &'static str,
    /// The heading in tables.
    pub title: &'static str,
    /// What its numbers count.
    pub unit: Unit,
    /// One line on what it means.
    pub doc: &'static str,
    getter: Getter,
}

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

static FIXED: &[Column] = &[
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
                    .map(crate::model::Layer::name)
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

static ALL: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let counters = CounterId::ALL.iter().map(|id| Column {
        key: id.name(),
        title: id.name(),
        unit: Unit::Count,
        doc: id.doc(),
        getter: Getter::Counter(*id),
    });
    let flags = Flag::ALL.iter().map(|flag| Column {
        key: flag.name(),
        title: flag.name(),
        unit: Unit::Text,
        doc: flag.doc(),
        getter: Getter::Flag(*flag),
    });
    FIXED.iter().copied().chain(flags).chain(counters).collect()
});

/// Other words for columns, from habit.
const SYNONYMS: &[(&str, &str)] = &[
    ("size", "memory"),
    ("space", "memory"),
    ("objsize", "object_size"),
    ("part", "partial"),
    ("cpu", "cpu_slabs"),
    ("use", "object_use"),
    ("total", "total_objects"),
    ("slot", "slab_size"),
    ("fr", "partial_ratio"),
    ("ef", "utilization"),
    ("flg", "flags"),
];

/// Columns of a plain report.
pub const DEFAULT: &[&str] = &[
    "name",
    "objects",
    "object_size",
    "memory",
    "slabs",
    "partial",
    "cpu_slabs",
    "objs_per_slab",
    "order",
    "partial_ratio",
    "utilization",
    "reclaim",
];

/// Every column.
pub fn all() -> &'static [Column] {
    &ALL
}

/// The column of that name, or of a synonym. Case does not matter.
pub fn find(name: &str) -> Option<&'static Column> {
    let name = name.to_ascii_lowercase();
    let key = SYNONYMS
        .iter()
        .find(|(word, _)| *word == name)
        .map_or(name.as_str(), |(_, key)| key);
    all().iter().find(|c| c.key == key)
}

/// The names closest to one that does not exist, for messages.
pub fn similar(name: &str) -> Vec<&'static str> {
    let words = SYNONYMS.iter().map(|(word, _)| *word);
    crate::similar::closest(name, all().iter().map(|c| c.key).chain(words))
}

impl Column {
    /// The value for one cache.
    pub fn value<'a>(&self, row: &Row<'a>) -> Value<'a> {
        let value = match self.getter {
            Getter::Quantity(Quantity::Order) => order(row.cache).map(Value::Int),
            Getter::Quantity(q) => row.cache.get(q).map(Value::Int),
            Getter::Flag(flag) => row.cache.flags.get(flag).map(yes_no).map(Value::Text),
            Getter::Counter(id) => counter(row.cache, id).map(Value::Int),
            Getter::Usage(get, _) => get(&row.usage).map(|f| Value::Int(f.map(Bytes::get))),
            Getter::Ratio(get, _) => get(row).map(Value::Ratio),
            Getter::Text(get, _) => get(row).map(Value::Text),
            Getter::Activity => activity(row.cache).map(Value::Int),
        };
        value.unwrap_or(Value::Missing)
    }

    /// Adds to `demand` what a live source must read for this column.
    pub fn ask(&self, demand: &mut Demand) {
        match self.getter {
            Getter::Quantity(q) => demand.quantities.insert(q),
            Getter::Flag(flag) => ask_flag(demand, flag),
            Getter::Counter(_) | Getter::Activity => demand.counters = true,
            Getter::Usage(_, needs) | Getter::Ratio(_, needs) => {
                for q in needs {
                    demand.quantities.insert(*q);
                }
            }
            Getter::Text(_, TextNeed::Names) => {}
            Getter::Text(_, TextNeed::Reclaim) => ask_flag(demand, Flag::ReclaimAccount),
            Getter::Text(_, TextNeed::AllFlags) => {
                for flag in Flag::ALL.iter().filter(|f| f.letter().is_some()) {
                    ask_flag(demand, *flag);
                }
            }
            Getter::Text(_, TextNeed::Ctor) => demand.ctor = true,
            Getter::Text(_, TextNeed::Nodes) => {
                demand.nodes = true;
                demand.quantities.insert(Quantity::Slabs);
            }
        }
    }

    /// Numbers stand at the right edge, text at the left.
    pub fn is_numeric(&self) -> bool {
        self.unit != Unit::Text
    }
}

fn ask_flag(demand: &mut Demand, flag: Flag) {
    if !demand.flags.contains(&flag) {
        demand.flags.push(flag);
    }
}

/// Compares two caches by a column: numbers large to small, text a to z, the
/// unknown last either way; ties by name, then by place in the source.
pub fn compare(column: &Column, reverse: bool, a: &Row<'_>, b: &Row<'_>) -> Ordering {
    let turn = |order: Ordering| if reverse { order.reverse() } else { order };
    let order = match (column.value(a), column.value(b)) {
        (Value::Missing, Value::Missing) => Ordering::Equal,
        (Value::Missing, _) => Ordering::Greater,
        (_, Value::Missing) => Ordering::Less,
        (Value::Int(a), Value::Int(b)) => turn(b.value.cmp(&a.value)),
        (Value::Ratio(a), Value::Ratio(b)) => turn(b.value.total_cmp(&a.value)),
        (Value::Text(a), Value::Text(b)) => turn(a.cmp(&b)),
        // One column gives one kind of value.
        _ => Ordering::Equal,
    };
    order
        .then_with(|| a.cache.name.cmp(&b.cache.name))
        .then_with(|| a.cache.id.cmp(&b.cache.id))
}

fn order(cache: &Cache) -> Option<Approx<u64>> {
    cache.get(Quantity::Order).or_else(|| {
        let pages = cache.pages_per_slab()?;
        let order = u64::from(pages.trailing_zeros());
        pages.is_power_of_two().then(|| Approx::exact(order))
    })
}

fn partial_ratio(row: &Row<'_>) -> Option<Approx<f64>> {
    let partial = row.cache.partial()?;
    let slabs = row.cache.slabs()?;
    if slabs.value.get() == 0 {
        return None;
    }
    let raced = partial.value > slabs.value;
    let mut ratio = partial.zip_with(slabs, |p, s| (p.get() as f64 / s.get() as f64).min(1.0));
    ratio.approx |= raced;
    Some(ratio)
}

fn counter(cache: &Cache, id: CounterId) -> Option<Approx<u64>> {
    cache.counters.as_ref()?.total(id).map(Approx::exact)
}

/// All allocations and frees. On 6.18 and 6.19 sheaf traffic is counted apart
/// (`alloc_cpu_sheaf`, `free_cpu_sheaf`); elsewhere those two do not exist.
fn activity(cache: &Cache) -> Option<Approx<u64>> {
    let counters = cache.counters.as_ref()?;
    let paths = [
        CounterId::AllocFastpath,
        CounterId::AllocSlowpath,
        CounterId::FreeFastpath,
        CounterId::FreeSlowpath,
        CounterId::AllocCpuSheaf,
        CounterId::FreeCpuSheaf,
    ];
    let mut known = paths.iter().filter_map(|id| counters.total(*id)).peekable();
    known.peek()?;
    Some(Approx::exact(known.fold(0, u64::saturating_add)))
}

fn yes_no(value: bool) -> Cow<'static, str> {
    Cow::Borrowed(if value { "yes" } else { "no" })
}

fn reclaim<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    row.cache.flags.get(Flag::ReclaimAccount).map(yes_no)
}

fn ctor<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    match &row.cache.ctor {
        Ctor::Unknown => None,
        Ctor::None => Some(Cow::Borrowed("none")),
        Ctor::Symbol(symbol) => Some(Cow::Borrowed(symbol)),
    }
}

fn flags<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    if row.cache.flags.is_unknown() {
        return None;
    }
    let mut text = String::new();
    if row.cache.aliases.as_ref().is_some_and(|a| !a.is_empty()) {
        text.push('*');
    }
    let mut unknown = false;
    for flag in Flag::ALL {
        if let Some(letter) = flag.letter() {
            match row.cache.flags.get(*flag) {
                Some(true) => text.push(letter),
                Some(false) => {}
                None => unknown = true,
            }
        }
    }
    if unknown {
        text.push('?');
    }
    Some(Cow::Owned(text))
}

fn aliases<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    let names = row.cache.aliases.as_ref()?;
    Some(Cow::Owned(names.join(" ")))
}

fn nodes<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    let mut parts = Vec::new();
    for part in &row.cache.nodes {
        let slabs = part.slabs.map_or_else(|| "-".to_owned(), |s| s.to_string());
        parts.push(format!("N{}={slabs}", part.node.0));
    }
    (!parts.is_empty()).then(|| Cow::Owned(parts.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CacheId, Layer};

    fn cache(name: &str, id: u32, slabs: Option<u64>) -> Cache {
        let mut cache = Cache::new(CacheId(id), name);
        if let Some(slabs) = slabs {
            cache.set_exact(Quantity::Slabs, slabs, Layer::Sysfs);
        }
        cache
    }

    #[test]
    fn keys_are_unique_and_synonyms_lead_somewhere() {
        let mut keys: Vec<_> = all().iter().map(|c| c.key).collect();
        keys.sort_unstable();
        let count = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), count);
        for (word, key) in SYNONYMS {
            assert!(!keys.contains(word), "{word} would hide a column");
            assert!(keys.contains(key), "{key}");
        }
        for key in DEFAULT {
            assert!(find(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_slip_in_a_name_finds_the_column() {
        assert_eq!(similar("objcts"), ["objects"]);
        assert!(similar("partial_").contains(&"partial"));
        assert_eq!(similar("sise"), ["size"]);
        assert!(similar("zzz").is_empty());
    }

    #[test]
    fn reversing_turns_numbers_but_keeps_the_unknown_last() {
        let caches = [
            cache("b", 0, Some(1)),
            cache("a", 1, Some(5)),
            cache("d", 2, None),
            cache("c", 3, Some(1)),
        ];
        let sorted = |reverse| {
            let mut rows: Vec<_> = caches.iter().map(|c| Row::new(c, 4096)).collect();
            let column = find("slabs").unwrap();
            rows.sort_by(|a, b| compare(column, reverse, a, b));
            rows.iter()
                .map(|r| r.cache.name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(sorted(false), ["a", "b", "c", "d"]);
        assert_eq!(sorted(true), ["b", "c", "a", "d"]);
    }

    #[test]
    fn a_plain_report_asks_for_few_files() {
        let mut demand = Demand::names();
        for key in DEFAULT {
            find(key).unwrap().ask(&mut demand);
        }
        assert_eq!(demand.flags, [Flag::ReclaimAccount]);
        assert!(!demand.counters && !demand.ctor && !demand.nodes);
    }

    #[test]
    fn an_unknown_flag_is_not_shown_as_unset() {
        let mut one = cache("x", 0, None);
        assert_eq!(
            find("flags").unwrap().value(&Row::new(&one, 4096)),
            Value::Missing
        );
        one.flags.put(Flag::ReclaimAccount, true);
        assert_eq!(
            find("flags").unwrap().value(&Row::new(&one, 4096)),
            Value::Text("a?".into())
        );
    }
}
