//! The columns of the live table: those of `collectors::columns`, the change
//! of each that is a number, and the trend.
//!
//! Names: a column's own key; with `/s` behind it, its change in a second or,
//! when changes since the mark are shown, since then; `trend`.

use std::borrow::Cow;
use std::time::Duration;

use collectors::columns::{self, Column, Row, Value, show};
use collectors::model::{Approx, Cache, Unit};
use collectors::source::Demand;
use collectors::units::Scale;

/// A column of the live table.
#[derive(Debug, Clone, Copy)]
pub enum Shown {
    /// A figure.
    Plain(&'static Column),
    /// Its change.
    Change(&'static Column),
    /// A small chart of the slabs held in the last samples.
    Trend,
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// Cells of the trend.
pub const TREND: usize = 16;

/// The columns without a configuration, the most important first: on a narrow
/// terminal the last ones are left out.
pub const STANDARD: [&str; 13] = [
    "name",
    "memory",
    "memory/s",
    "object_use",
    "objects",
    "slabs",
    "trend",
    "partial",
    "cpu_slabs",
    "slabs_cpu_partial",
    "loss",
    "slabs/s",
    "reclaim",
];

impl Shown {
    /// The column of that name.
    pub fn find(name: &str) -> Option<Self> {
        if name == "trend" {
            return Some(Self::Trend);
        }
        if let Some(key) = name.strip_suffix("/s") {
            let column = columns::find(key)?;
            let countable = !matches!(column.unit, Unit::Text | Unit::Percent);
            return countable.then_some(Self::Change(column));
        }
        columns::find(name).map(Self::Plain)
    }

    /// Its name.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Plain(column) => Cow::Borrowed(column.key),
            Self::Change(column) => Cow::Owned(format!("{}/s", column.key)),
            Self::Trend => Cow::Borrowed("trend"),
        }
    }

    /// The heading; `since_mark` says what changes are shown.
    pub fn title(&self, since_mark: bool) -> Cow<'static, str> {
        match self {
            Self::Plain(column) => Cow::Borrowed(column.title),
            Self::Change(column) if since_mark => Cow::Owned(format!("+{}", column.title)),
            Self::Change(column) => Cow::Owned(format!("{}/s", column.title)),
            Self::Trend => Cow::Borrowed("Trend"),
        }
    }

    /// One line on what it means.
    pub fn doc(&self) -> Cow<'static, str> {
        match self {
            Self::Plain(column) => Cow::Borrowed(column.doc),
            Self::Change(column) => Cow::Owned(format!("Change in a second of: {}", column.doc)),
            Self::Trend => {
                Cow::Borrowed("Slabs held in the last samples, each cache to its own scale.")
            }
        }
    }

    /// Adds what a live source must read for it.
    pub fn ask(&self, demand: &mut Demand) {
        match self {
            Self::Plain(column) | Self::Change(column) => column.ask(demand),
            Self::Trend => {
                if let Some(slabs) = columns::find("slabs") {
                    slabs.ask(demand);
                }
            }
        }
    }

    /// Whether it stands at the right edge of its column.
    pub fn is_right(&self) -> bool {
        match self {
            Self::Plain(column) => column.is_numeric(),
            Self::Change(_) => true,
            Self::Trend => false,
        }
    }
}

/// A change of a figure from one cache to its later self.
pub fn change(
    column: &Column,
    before: Option<&Cache>,
    now: &Row<'_>,
    page_size: u64,
) -> Option<Approx<i128>> {
    let old = Row::new(before?, page_size);
    match (column.value(&old), column.value(now)) {
        (Value::Int(old), Value::Int(new)) => {
            Some(new.zip_with(old, |new, old| i128::from(new) - i128::from(old)))
        }
        _ => None,
    }
}

/// A change scaled to one second.
pub fn per_second(change: Approx<i128>, elapsed: Duration) -> Option<Approx<i128>> {
    let nanos = i128::try_from(elapsed.as_nanos()).ok().filter(|n| *n > 0)?;
    let scaled = change.value.checked_mul(1_000_000_000)?;
    // Half away from zero, so that a slow leak is not rounded away too soon.
    let half = nanos / 2 * scaled.signum();
    Some(change.map(|_| (scaled + half) / nanos))
}

/// A change as people read it.
pub fn text(change: Option<Approx<i128>>, unit: Unit, scale: Scale) -> String {
    change.map_or_else(
        || show::UNKNOWN.to_owned(),
        |change| show::delta(change, unit, scale),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cache;

    #[test]
    fn the_standard_columns_exist_and_keep_their_names() {
        for name in STANDARD {
            let shown = Shown::find(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(shown.name(), name);
        }
        assert_eq!(Shown::find("name/s"), None);
        assert_eq!(Shown::find("object_use/s"), None);
        assert_eq!(Shown::find("size/s").unwrap().name(), "memory/s");
        assert!(Shown::find("nothing").is_none());
    }

    #[test]
    fn a_change_of_an_unknown_figure_is_unknown() {
        let memory = columns::find("memory").unwrap();
        let old = cache("a", 10);
        let now = cache("a", 7);
        let row = Row::new(&now, 4096);
        let change = change(memory, Some(&old), &row, 4096).unwrap();
        assert_eq!(change, Approx::exact(-3 * 4096));
        assert_eq!(super::change(memory, None, &row, 4096), None);
        let blank = Cache::new(collectors::model::CacheId(0), "a");
        assert_eq!(super::change(memory, Some(&blank), &row, 4096), None);
    }

    #[test]
    fn rates_are_by_the_time_that_really_passed() {
        let rate = |value, millis| {
            per_second(Approx::exact(value), Duration::from_millis(millis)).map(|a| a.value)
        };
        assert_eq!(rate(4096, 1000), Some(4096));
        assert_eq!(rate(4096, 2000), Some(2048));
        assert_eq!(rate(-3, 2000), Some(-2));
        assert_eq!(rate(1, 0), None);
        assert_eq!(rate(i128::MAX, 1000), None);
    }
}
