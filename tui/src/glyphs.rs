//! The signs that are drawn, in Unicode and in ASCII.
//!
//! Every sign is one cell wide in both sets, so that a screen has the same
//! shape in either.

/// A set of signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    /// The heights of a small chart, from nothing to full.
    pub heights: &'static [char],
    /// The widths of the last cell of a bar, from nothing to full.
    pub widths: &'static [char],
    /// What the rest of a bar is drawn with.
    pub empty: char,
    /// Stands for what was cut out of a text.
    pub cut: char,
    /// A line across.
    pub line: char,
    /// Before what belongs to the mark.
    pub mark: char,
    /// Between two parts of a line.
    pub dot: char,
    /// More above.
    pub above: char,
    /// More below.
    pub below: char,
}

impl Glyphs {
    /// Block elements and punctuation of Unicode.
    pub const UNICODE: Self = Self {
        heights: &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        widths: &[' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'],
        empty: '·',
        cut: '…',
        line: '─',
        mark: '◆',
        dot: '·',
        above: '↑',
        below: '↓',
    };

    /// Seven-bit signs only.
    pub const ASCII: Self = Self {
        heights: &[' ', '.', ':', '-', '=', '+', '*', '#'],
        widths: &[' ', '#'],
        empty: '.',
        cut: '>',
        line: '-',
        mark: '*',
        dot: '|',
        above: '^',
        below: 'v',
    };

    /// The set for a locale, from LC_ALL, LC_CTYPE and LANG in this order.
    pub fn for_locale(names: [Option<&str>; 3]) -> Self {
        let name = names.into_iter().flatten().find(|name| !name.is_empty());
        let utf8 = name.is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            name.contains("utf-8") || name.contains("utf8")
        });
        if utf8 { Self::UNICODE } else { Self::ASCII }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthChar as _;

    #[test]
    fn every_sign_is_one_cell_wide() {
        for set in [Glyphs::UNICODE, Glyphs::ASCII] {
            let single = [
                set.empty, set.cut, set.line, set.mark, set.dot, set.above, set.below,
            ];
            let all = set.heights.iter().chain(set.widths).chain(&single);
            for sign in all {
                assert_eq!(sign.width(), Some(1), "{sign}");
            }
        }
    }

    #[test]
    fn ascii_is_ascii() {
        let text = format!("{:?}", Glyphs::ASCII);
        assert!(text.is_ascii());
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        let unicode = |names| Glyphs::for_locale(names) == Glyphs::UNICODE;
        assert!(unicode([None, None, Some("en_GB.UTF-8")]));
        assert!(unicode([Some("C.utf8"), None, Some("C")]));
        assert!(!unicode([Some("C"), None, Some("en_GB.UTF-8")]));
        assert!(!unicode([Some("C"), Some(""), None]));
        assert!(unicode([Some(""), None, Some("en_GB.UTF-8")]));
        assert!(!unicode([None, None, None]));
    }
}
