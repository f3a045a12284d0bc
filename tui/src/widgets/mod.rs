//! Small drawings: a bar, a chart in a line.
//!
//! Both never hide a small value: what is more than nothing is drawn as more
//! than nothing.

use crate::glyphs::Glyphs;

/// A share of 0 to 1 as a bar of `cells`.
pub fn bar(share: f64, cells: usize, glyphs: &Glyphs) -> String {
    let steps = glyphs.widths.len() - 1;
    let all = cells * steps;
    let mut filled = scaled(share.clamp(0.0, 1.0), all);
    if share > 0.0 {
        filled = filled.max(1);
    }
    let mut text = String::with_capacity(cells * 3);
    for cell in 0..cells {
        let here = filled.saturating_sub(cell * steps).min(steps);
        text.push(match here {
            0 => glyphs.empty,
            part => glyphs.widths[part],
        });
    }
    text
}

/// Values as a chart in one line, oldest first, in `cells`; a gap is empty.
/// The scale goes from the smallest to the largest of them.
pub fn chart(values: &[Option<u64>], cells: usize, glyphs: &Glyphs) -> String {
    let values = &values[values.len().saturating_sub(cells)..];
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
    let steps = glyphs.heights.len() - 1;
    let mut text = " ".repeat(cells - values.len());
    for value in values {
        text.push(match value {
            None | Some(0) => ' ',
            Some(_) if low == high => glyphs.heights[1],
            Some(value) => {
                let share = (value - low) as f64 / (high - low) as f64;
                glyphs.heights[1 + scaled(share, steps - 1)]
            }
        });
    }
    text
}

/// A share of 0 to 1 as one sign; more than nothing is seen.
pub fn shade(share: f64, glyphs: &Glyphs) -> char {
    let steps = glyphs.heights.len() - 1;
    let step = scaled(share.clamp(0.0, 1.0), steps);
    glyphs.heights[if share > 0.0 { step.max(1) } else { 0 }]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of 0 to 1"
)]
fn scaled(share: f64, steps: usize) -> usize {
    ((share * steps as f64).round() as usize).min(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Glyphs = Glyphs::ASCII;
    const U: Glyphs = Glyphs::UNICODE;

    #[test]
    fn a_small_share_is_still_seen() {
        assert_eq!(bar(0.0, 4, &A), "....");
        assert_eq!(bar(0.000_1, 4, &A), "#...");
        assert_eq!(bar(0.5, 4, &A), "##..");
        assert_eq!(bar(7.0, 4, &A), "####");
        assert_eq!(bar(0.000_1, 2, &U), "▏·");
        assert_eq!(bar(0.5, 1, &U), "▌");
    }

    #[test]
    fn a_shade_is_seen_for_anything_but_nothing() {
        let shades: String = [0.0, 0.000_1, 0.5, 1.0, 9.0]
            .iter()
            .map(|share| shade(*share, &A))
            .collect();
        assert_eq!(shades, " .=##");
    }

    #[test]
    fn a_chart_shows_the_shape_and_the_gaps() {
        let some = |list: &[u64]| list.iter().map(|v| Some(*v)).collect::<Vec<_>>();
        assert_eq!(chart(&some(&[5, 5, 5]), 4, &A), " ...");
        assert_eq!(chart(&some(&[1, 1000]), 2, &A), ".#");
        assert_eq!(chart(&[None, Some(3), Some(4)], 3, &U), " ▁█");
        assert_eq!(chart(&some(&[1, 2, 3]), 2, &A), ".#");
        assert_eq!(chart(&[], 2, &A), "  ");
    }
}
