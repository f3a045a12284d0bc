//! Figures as cells: shown for people, exact for CSV.

use collectors::columns::{Column, Row, Value};
use collectors::model::{Approx, Unit};
use collectors::units::{self, Scale};

use crate::output::table::Cell;

/// The cell of a column for one cache.
pub(crate) fn cell(column: &Column, row: &Row<'_>, scale: Scale) -> Cell {
    match column.value(row) {
        Value::Missing => Cell::missing(),
        Value::Int(figure) => number(figure, column.unit, scale),
        Value::Ratio(ratio) => percent(ratio),
        Value::Text(text) => Cell::text(text),
    }
}

/// A number in its unit; an estimate starts with `~`.
pub(crate) fn number(figure: Approx<u64>, unit: Unit, scale: Scale) -> Cell {
    // Sizes of single objects stay exact: nobody looks for 0.19K.
    let exact = figure.value.to_string();
    if unit == Unit::Bytes && figure.value >= 10_000 {
        return Cell::both(
            mark(figure.approx, &units::size(figure.value, scale)),
            exact,
        );
    }
    if figure.approx {
        return Cell::both(mark(true, &exact), exact);
    }
    Cell::text(exact)
}

/// A number that may be unknown.
pub(crate) fn maybe(figure: Option<Approx<u64>>, unit: Unit, scale: Scale) -> Cell {
    figure.map_or_else(Cell::missing, |f| number(f, unit, scale))
}

/// A ratio in percent with one decimal; four in CSV, as a ratio.
pub(crate) fn percent(ratio: Approx<f64>) -> Cell {
    Cell::both(
        mark(ratio.approx, &units::percent(ratio.value)),
        units::decimal(ratio.value, 4),
    )
}

/// A ratio that may be unknown.
pub(crate) fn maybe_percent(ratio: Option<Approx<f64>>) -> Cell {
    ratio.map_or_else(Cell::missing, percent)
}

/// A change with its sign.
pub(crate) fn delta(change: Option<Approx<i128>>, unit: Unit, scale: Scale) -> Cell {
    let Some(change) = change else {
        return Cell::missing();
    };
    let size = u64::try_from(change.value.unsigned_abs()).unwrap_or(u64::MAX);
    let sign = match change.value {
        0 => "",
        v if v > 0 => "+",
        _ => "-",
    };
    let shown = number(Approx::exact(size), unit, scale);
    Cell::both(
        mark(change.approx, &format!("{sign}{}", shown.shown())),
        change.value.to_string(),
    )
}

fn mark(approx: bool, text: &str) -> String {
    if approx {
        format!("~{text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_marked_and_changes_signed() {
        let scale = Scale::Iec;
        assert_eq!(
            number(Approx::estimate(5), Unit::Objects, scale).shown(),
            "~5"
        );
        assert_eq!(
            number(Approx::exact(192), Unit::Bytes, scale).shown(),
            "192"
        );
        assert_eq!(
            number(Approx::exact(1 << 20), Unit::Bytes, scale).shown(),
            "1.00M"
        );
        assert_eq!(percent(Approx::exact(0.749)).shown(), "74.9");
        let change = delta(Some(Approx::exact(-(3 << 20))), Unit::Bytes, scale);
        assert_eq!((change.shown(), change.exact()), ("-3.00M", "-3145728"));
        assert_eq!(delta(None, Unit::Bytes, scale).shown(), "-");
    }
}
