//! A workload of one case: a bar for each contender, with its number.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::panel::{Dot, Panel, number};
use super::{FONT, colour};

/// Draws the bars from the top down, in the order of the contenders.
pub(super) fn draw<B: DrawingBackend>(
    panel: &Panel,
    place: &DrawingArea<B, Shift>,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let title = format!("{} ({})", panel.title, panel.unit);
    place.draw(&Text::new(title, (12, 12), (FONT, 16)))?;
    let high = panel.reach().map_or(1.0, |(_, high)| high);
    let (width, height) = place.dim_in_pixel();
    let rows = u32::try_from(panel.series.len()).unwrap_or(1).max(1);
    let tall = ((height.saturating_sub(60)) / rows).clamp(8, 44);
    let room = f64::from(width.saturating_sub(NAMES + NUMBERS));
    let long = |value: f64| i32_of(value / high * room) + i32_of(f64::from(NAMES));
    for (n, series) in panel.series.iter().enumerate() {
        let top = 44 + i32_of(f64::from(tall)) * i32::try_from(n).unwrap_or(0);
        let middle = top + i32_of(f64::from(tall) / 2.0);
        place.draw(&Text::new(
            series.name.clone(),
            (12, middle - 8),
            (FONT, 14),
        ))?;
        let start = i32_of(f64::from(NAMES));
        let Some(dot) = series.dots.first().copied().flatten() else {
            place.draw(&Text::new("-", (start, middle - 8), (FONT, 14)))?;
            continue;
        };
        let Dot {
            middle: value,
            low,
            high: top_value,
        } = dot;
        let bottom = top + i32_of(f64::from(tall)) - 6;
        place.draw(&Rectangle::new(
            [(start, top), (long(value), bottom)],
            colour(n).filled(),
        ))?;
        let whisker = vec![(long(low), middle - 3), (long(top_value), middle - 3)];
        place.draw(&PathElement::new(whisker, BLACK))?;
        let at = (long(value.max(top_value)) + 6, middle - 10);
        place.draw(&Text::new(number(value), at, (FONT, 13)))?;
    }
    Ok(())
}

/// Room for the names, and for the numbers behind the bars.
const NAMES: u32 = 130;
const NUMBERS: u32 = 80;

/// A pixel; what is too far is at the edge.
fn i32_of(value: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "it is clamped")]
    let pixel = value.round().clamp(0.0, 100_000.0) as i32;
    pixel
}
