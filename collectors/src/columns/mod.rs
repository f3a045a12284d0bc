//! One table of columns: names, titles, units, meaning and how to get the value.
//!
//! Tables, CSV, sorting, filters, the help text and the live screen are all
//! drawn from it. A column also knows what a live source must read for it.

pub mod show;
mod table;
mod value;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::LazyLock;

use crate::analysis::Usage;
use crate::model::{Approx, Bytes, Cache, CounterId, Flag, Quantity, Unit};
use crate::source::Demand;

use table::FIXED;
use value::{activity, counter, order, yes_no};

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

    /// Whether it is an estimate.
    pub const fn is_approx(&self) -> bool {
        match self {
            Self::Int(figure) => figure.approx,
            Self::Ratio(figure) => figure.approx,
            Self::Missing | Self::Text(_) => false,
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
