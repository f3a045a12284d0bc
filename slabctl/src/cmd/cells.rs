//! Figures as cells: shown for people, exact for CSV.

use collectors::columns::{Column, Row, Value, show};
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
    let (shown, exact) = (show::number(figure, unit, scale), figure.value.to_string());
    if shown == exact {
        return Cell::text(exact);
    }
    Cell::both(shown, exact)
}

/// A number that may be unknown.
pub(crate) fn maybe(figure: Option<Approx<u64>>, unit: Unit, scale: Scale) -> Cell {
    figure.map_or_else(Cell::missing, |f| number(f, unit, scale))
}

/// A ratio in percent with one decimal; four in CSV, as a ratio.
pub(crate) fn percent(ratio: Approx<f64>) -> Cell {
    Cell::both(show::percent(ratio), units::decimal(ratio.value, 4))
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
    Cell::both(show::delta(change, unit, scale), change.value.to_string())
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
