//! Figures as people read them: scaled sizes, percentages, signed changes.
//!
//! An estimate starts with `~`; what is not known is `-`, never 0.

use std::borrow::Cow;

use super::Value;
use crate::model::{Approx, Unit};
use crate::units::{self, Scale};

/// What stands for a figure that is not known.
pub const UNKNOWN: &str = "-";

/// The value of a column.
pub fn value(value: Value<'_>, unit: Unit, scale: Scale) -> Cow<'_, str> {
    match value {
        Value::Missing => Cow::Borrowed(UNKNOWN),
        Value::Int(figure) => Cow::Owned(number(figure, unit, scale)),
        Value::Ratio(ratio) => Cow::Owned(percent(ratio)),
        Value::Text(text) => text,
    }
}

/// A number in its unit.
pub fn number(figure: Approx<u64>, unit: Unit, scale: Scale) -> String {
    // Sizes of single objects stay exact: nobody looks for 0.19K.
    if unit == Unit::Bytes && figure.value >= 10_000 {
        return mark(figure.approx, units::size(figure.value, scale));
    }
    mark(figure.approx, figure.value.to_string())
}

/// A ratio in percent with one decimal.
pub fn percent(ratio: Approx<f64>) -> String {
    mark(ratio.approx, units::percent(ratio.value))
}

/// A change with its sign.
pub fn delta(change: Approx<i128>, unit: Unit, scale: Scale) -> String {
    let size = u64::try_from(change.value.unsigned_abs()).unwrap_or(u64::MAX);
    let sign = match change.value {
        0 => "",
        v if v > 0 => "+",
        _ => "-",
    };
    let shown = number(Approx::exact(size), unit, scale);
    mark(change.approx, format!("{sign}{shown}"))
}

fn mark(approx: bool, mut text: String) -> String {
    if approx {
        text.insert(0, '~');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_marked_and_changes_signed() {
        let scale = Scale::Iec;
        let number = |figure, unit| number(figure, unit, scale);
        assert_eq!(number(Approx::estimate(5), Unit::Objects), "~5");
        assert_eq!(number(Approx::exact(192), Unit::Bytes), "192");
        assert_eq!(number(Approx::exact(1 << 20), Unit::Bytes), "1.00M");
        assert_eq!(percent(Approx::exact(0.749)), "74.9");
        let change = Approx::estimate(-(3 << 20));
        assert_eq!(delta(change, Unit::Bytes, scale), "~-3.00M");
        assert_eq!(delta(Approx::exact(0), Unit::Slabs, scale), "0");
        assert_eq!(value(Value::Missing, Unit::Bytes, scale), "-");
    }
}
