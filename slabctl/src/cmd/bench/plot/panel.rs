//! One figure of one workload: lines over cases, or bars where there is one case.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::{FONT, bars, colour};

/// A contender's rounds on one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dot {
    pub(super) middle: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A contender; `None` where it has no figure.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) dots: Vec<Option<Dot>>,
}

/// What one panel shows.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) unit: String,
    /// What the cases are a number of; empty where there is one only.
    pub(super) of: &'static str,
    pub(super) cases: Vec<usize>,
    pub(super) series: Vec<Series>,
}

impl Panel {
    /// Draws it into its place.
    pub(super) fn draw<B: DrawingBackend>(
        &self,
        place: &DrawingArea<B, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        if self.cases.len() < 2 {
            return bars::draw(self, place);
        }
        let Some((low, high)) = self.reach() else {
            return place.draw(&Text::new(
                format!("{}: no figure", self.title),
                (12, 12),
                (FONT, 15),
            ));
        };
        // Zero has no logarithm.
        if low > 0.0 && high / low > 20.0 {
            self.lines(place, (low / 1.3..high * 1.3).log_scale(), ", log scale")
        } else {
            self.lines(place, 0.0..high * 1.08, "")
        }
    }

    /// The lowest and the highest of what is shown.
    pub(super) fn reach(&self) -> Option<(f64, f64)> {
        let dots = || self.series.iter().flat_map(|one| one.dots.iter().flatten());
        let low = dots().map(|dot| dot.low).reduce(f64::min)?;
        let high = dots().map(|dot| dot.high).reduce(f64::max)?;
        (low.is_finite() && high.is_finite() && high > 0.0).then_some((low, high))
    }

    fn lines<B, Y>(
        &self,
        place: &DrawingArea<B, Shift>,
        y: Y,
        scale: &str,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>>
    where
        B: DrawingBackend,
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let last = self.cases.len() - 1;
        let x: Range<f64> = -0.3..last as f64 + 0.3;
        let mut chart = ChartBuilder::on(place)
            .caption(&self.title, (FONT, 16))
            .margin(10)
            .x_label_area_size(42)
            .y_label_area_size(66)
            .build_cartesian_2d(x, y)?;
        let case = |at: &f64| self.case_at(*at);
        let value = |value: &f64| number(*value);
        chart
            .configure_mesh()
            .x_labels(self.cases.len().min(12))
            .x_label_formatter(&case)
            .y_label_formatter(&value)
            .x_desc(self.of)
            .y_desc(format!("{}{scale}", self.unit))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 13))
            .light_line_style(WHITE)
            .draw()?;
        for (n, series) in self.series.iter().enumerate() {
            let colour = colour(n);
            let dots: Vec<(f64, Dot)> = { series.dots.iter().enumerate() }
                .filter_map(|(at, dot)| Some((at as f64, (*dot)?)))
                .collect();
            let middles = dots.iter().map(|(at, dot)| (*at, dot.middle));
            chart.draw_series(LineSeries::new(middles, colour.stroke_width(2)))?;
            chart.draw_series(dots.iter().map(|(at, dot)| {
                PathElement::new(vec![(*at, dot.low), (*at, dot.high)], colour)
            }))?;
            chart.draw_series(
                dots.iter()
                    .map(|(at, dot)| Circle::new((*at, dot.middle), 3, colour.filled())),
            )?;
        }
        Ok(())
    }

    /// The label below a place of the axis; nothing between cases.
    fn case_at(&self, at: f64) -> String {
        let near = at.round();
        if (at - near).abs() > 0.05 || near < 0.0 {
            return String::new();
        }
        let case = self.cases.iter().enumerate();
        let mut case = case.filter(|(n, _)| (*n as f64 - near).abs() < 0.5);
        case.next().map_or_else(String::new, |(_, c)| c.to_string())
    }
}

/// A figure in few characters.
pub(super) fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 || v == 0.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
