//! What a line of a saved text is, when it is not a whole row.
//!
//! Only asked about lines that did not parse, so it may take its time. The
//! point is to be silent about text around a table and loud about rows in it.

use super::cursor::is_blank;
use super::row::Format;

const GROUPS: [&str; 4] = ["tunables", "slabdata", "globalstat", "cpustat"];

/// Version and marks of a line `slabinfo - version: 1.1 (statistics) (SMP)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Before the point.
    pub major: u16,
    /// After it.
    pub minor: u16,
}

impl Version {
    /// The layout of its rows; an unknown newer version is tried as 2.1.
    pub const fn format(self) -> Format {
        match (self.major, self.minor) {
            (0 | 1, 0) => Format::V1_0,
            (0 | 1, _) => Format::V1_1,
            _ => Format::V2,
        }
    }

    /// Whether its layout is known.
    pub const fn is_known(self) -> bool {
        matches!((self.major, self.minor), (1 | 2, 0 | 1))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Splits a version line into the version and the marks after it.
pub(super) fn version_line(line: &str) -> Option<(Version, &str)> {
    let rest = line.trim_start_matches(is_blank);
    let rest = rest.strip_prefix("slabinfo - version:")?;
    let rest = rest.trim_start_matches(is_blank);
    let (number, marks) = rest.split_once(is_blank).unwrap_or((rest, ""));
    let (major, minor) = number.split_once('.')?;
    let version = Version {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    };
    Some((version, marks))
}

/// Whether the line is the line of column names, or a piece of a wrapped one.
pub(super) fn is_column_names(line: &str) -> bool {
    let line = line.trim_start_matches(is_blank);
    line.starts_with("# name")
        || line.starts_with("#name")
        || line.starts_with("#! ")
        || (line.starts_with(['#', '<', ':']) && line.contains('<'))
}

/// Whether the line can only be the rest of the row before it: numbers,
/// colons and names of groups, nothing else.
pub(super) fn is_continuation(line: &str) -> bool {
    let mut words = words(line).peekable();
    words.peek().is_some() && words.all(|w| w == ":" || is_number(w) || is_group(w))
}

/// Whether a continuation adds groups to a row that is whole without them.
pub(super) fn starts_with_group(line: &str, format: Format) -> bool {
    let mut words = words(line);
    match (words.next(), format) {
        (Some(":"), Format::V2) => matches!(words.next(), Some("globalstat" | "cpustat")),
        (Some(":" | "globalstat" | "cpustat"), _) => true,
        _ => false,
    }
}

/// Whether a line that is no row was meant to be one. `inside`: it follows a
/// row or a header directly.
pub(super) fn starts_like_row(line: &str, format: Format, inside: bool) -> bool {
    let first = words(line).next().unwrap_or_default();
    if is_column_names(line) || first.is_empty() {
        return false;
    }
    if line.contains(": tunables") || line.contains(": slabdata") {
        return words(line).any(is_number);
    }
    if !inside || !is_name(first) || is_number(first) {
        return false;
    }
    let trailing = words(line).rev().take_while(|w| is_number(w)).count();
    match format {
        Format::V2 => (2..=5).contains(&trailing) || ends_in_group(line),
        Format::V1_1 => trailing >= 2 || line.ends_with(" :"),
        Format::V1_0 => trailing >= 1,
    }
}

/// Whether the last line of a text, without an end of line, may be the start
/// of a row: a name, perhaps with its first number.
pub(super) fn may_be_cut_name(line: &str) -> bool {
    let mut words = words(line);
    let first = words.next().unwrap_or_default();
    is_name(first)
        && first.contains(|c: char| c.is_ascii_alphanumeric())
        && words.all(is_number)
        && line.trim_start_matches(is_blank) == line
}

/// A row that ends in a colon or in the middle of a group's name.
fn ends_in_group(line: &str) -> bool {
    let mut words = words(line).rev();
    let last = words.next().unwrap_or_default();
    let numbers = |mut rest: std::iter::Rev<Words<'_>>| {
        rest.next().is_some_and(is_number) && rest.next().is_some_and(is_number)
    };
    if last == ":" {
        return numbers(words);
    }
    words.next() == Some(":") && GROUPS.iter().any(|g| g.starts_with(last)) && numbers(words)
}

fn is_name(word: &str) -> bool {
    !word.ends_with([':', '$', '#', '%', ',', '='])
        && !word.contains('@')
        && !word.starts_with(['-', '=', '#', '$', '<'])
}

fn is_group(word: &str) -> bool {
    GROUPS.contains(&word)
}

fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

type Words<'a> = std::iter::Filter<std::str::Split<'a, [char; 2]>, fn(&&'a str) -> bool>;

fn words(line: &str) -> Words<'_> {
    line.split([' ', '\t']).filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_around_a_table_is_not_a_row() {
        for line in [
            "MemTotal:       131831052 kB",
            "...",
            "/proc/zoneinfo   -> zone information",
            "$ vmstat 5",
            "Mem:  261668 251968 9700 0 7368 8192",
            "root@pi4:~# uname -a",
            " 2  0  12000 192384  57708",
            "<pagesperslab> : tunables <batchcount> <limit>",
            "look at the : tunables column",
        ] {
            assert!(!starts_like_row(line, Format::V2, true), "{line}");
        }
        assert!(!starts_like_row("dentry 12 34", Format::V2, false));
    }

    #[test]
    fn a_row_cut_anywhere_after_two_numbers_is_seen() {
        let row = "dentry  12 34 192 21 1 : tunables 0 0 0 : slabdata 2 2 0";
        for end in 13..row.len() - 2 {
            assert!(
                starts_like_row(&row[..end], Format::V2, true),
                "{}",
                &row[..end]
            );
        }
    }

    #[test]
    fn continuations_hold_nothing_but_columns() {
        assert!(is_continuation(" 0   25 : cpustat    360    184"));
        assert!(is_continuation("slabdata 1 1 0"));
        assert!(!is_continuation("dentry 1 1 0"));
        assert!(!is_continuation("   "));
    }
}
