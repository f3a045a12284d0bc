//! Texts for the screen: parts with roles, cut to a width, harmless.

use std::borrow::Cow;
use std::time::Duration;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::theme::Role;

/// A line of parts, each with what it means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line(pub Vec<(Role, String)>);

impl Line {
    /// An empty line.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a part.
    #[must_use]
    pub fn with(mut self, role: Role, text: impl Into<String>) -> Self {
        self.0.push((role, text.into()));
        self
    }

    /// A heading.
    pub fn heading(text: impl Into<String>) -> Self {
        Self::new().with(Role::Header, text)
    }

    /// Less important text.
    pub fn dim(text: impl Into<String>) -> Self {
        Self::new().with(Role::Dim, text)
    }

    /// Ordinary text.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new().with(Role::Normal, text)
    }

    /// The text without its roles.
    pub fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }
}

/// Cells that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text with signs that could command a terminal, or turn the direction of
/// writing round, replaced by `?`.
pub fn clean(text: &str) -> Cow<'_, str> {
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.chars().any(bad) {
        Cow::Owned(text.chars().map(|c| if bad(c) { '?' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The text in so many cells, its middle cut out where it is longer: names of
/// caches differ at both ends.
pub fn fit(text: &str, cells: usize, cut: char) -> Cow<'_, str> {
    if text.width() <= cells {
        return Cow::Borrowed(text);
    }
    let Some(room) = cells.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let head = take(text.chars(), room.div_ceil(2));
    let mut tail = take(text.chars().rev(), room - room.div_ceil(2));
    tail = tail.chars().rev().collect();
    Cow::Owned(format!("{head}{cut}{tail}"))
}

fn take(chars: impl Iterator<Item = char>, cells: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= cells
        })
        .collect()
}

/// Words in lines of at most `cells`, for texts that must not be cut.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines
            .last_mut()
            .filter(|l| l.is_empty() || l.width() + 1 + word.width() <= cells);
        match line {
            Some(line) => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A time as `42s`, `1m05s` or `2h03m`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_cut_in_the_middle() {
        assert_eq!(fit("kmalloc-64", 10, '…'), "kmalloc-64");
        assert_eq!(fit("kmalloc-rnd-01-1k", 10, '…'), "kmall…1-1k");
        assert_eq!(fit("abc", 1, '>'), ">");
        assert_eq!(fit("abc", 0, '>'), "");
    }

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(clean("ev\x1b[2Jil\u{9b}31m\u{202e}x"), "ev?[2Jil?31m?x");
        assert!(matches!(clean("dentry"), Cow::Borrowed(_)));
    }

    #[test]
    fn spans_are_short() {
        let span = |s| span(Duration::from_secs(s));
        assert_eq!([span(0), span(65), span(7380)], ["0s", "1m05s", "2h03m"]);
    }

    #[test]
    fn words_are_kept_whole() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 7), [""]);
    }

    proptest! {
        #[test]
        fn a_cut_text_fits(text in "\\PC{0,30}", cells in 0usize..20) {
            prop_assert!(width(&fit(&text, cells, '>')) <= cells);
        }
    }
}
