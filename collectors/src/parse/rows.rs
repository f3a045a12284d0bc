//! What the parsers of pasted tables share: log prefixes, numbers, cut rows.
//!
//! Purpose: people paste tool output into mails, tickets and logs, where every
//! line may be quoted and carry a log prefix. Source of truth: the prefixes of
//! printk, dmesg(1), journalctl(1) and syslog as found in public threads. It
//! knows no table and decides nothing about columns.

use super::{Parsed, clean};
use crate::model::{Warning, WarningCode};

/// How much of a text is looked at to tell what it is.
const HEAD: usize = 64 << 10;

/// The part of a text that `recognise` may look at.
pub(super) fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(HEAD)]
}

/// The line without mail quoting and log prefix; what is left keeps its indent.
pub(super) fn bare(line: &str) -> &str {
    without_log_prefix(clean::unquoted(line))
}

fn without_log_prefix(line: &str) -> &str {
    const SYSLOG: &str = "kernel: ";
    let mut rest = match line.find(SYSLOG) {
        Some(at) => &line[at + SYSLOG.len()..],
        None => line,
    };
    loop {
        let trimmed = rest.trim_start();
        let inner = after_stamp(trimmed, '[', ']').or_else(|| after_stamp(trimmed, '<', '>'));
        match inner {
            Some(inner) => rest = inner,
            None => return rest,
        }
    }
}

/// What follows a time stamp, thread mark or log level at the start of `text`.
fn after_stamp(text: &str, open: char, close: char) -> Option<&str> {
    let (stamp, rest) = text.strip_prefix(open)?.split_once(close)?;
    let stamp = stamp.trim();
    let numeric = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let known = if open == '<' {
        stamp.len() <= 3 && numeric(stamp)
    } else {
        (stamp.contains('.') && numeric(stamp))
            || stamp.strip_prefix(['T', 'C']).is_some_and(numeric)
            || is_wall_clock(stamp)
    };
    known.then_some(rest)
}

/// `Tue Oct 10 12:00:00 2023`, as `dmesg -T` prints it.
fn is_wall_clock(stamp: &str) -> bool {
    let parts: Vec<&str> = stamp.split_whitespace().take(6).collect();
    matches!(parts.as_slice(), [_, _, _, time, year]
        if time.split(':').count() == 3 && year.parse::<u16>().is_ok())
}

/// A number with a decimal point or comma, in hundredths; more digits are cut.
pub(super) fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    let mut bytes = part.bytes();
    let mut digit = || u64::from(bytes.next().map_or(0, |b| b - b'0'));
    let fraction = digit() * 10 + digit();
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(100)?
        .checked_add(fraction)
}

/// Bytes of a number of kibibytes with two decimals, rounded.
pub(super) fn kib_bytes(hundredths: u64) -> Option<u64> {
    let bytes = (u128::from(hundredths) * 1024 + 50) / 100;
    u64::try_from(bytes).ok()
}

/// The last `N` blank-separated words of a line, and what is before them.
pub(super) fn last_words<const N: usize>(line: &str) -> Option<(&str, [&str; N])> {
    let mut rest = line.trim_end();
    let mut words = [""; N];
    for word in words.iter_mut().rev() {
        let start = rest.rfind(char::is_whitespace).map_or(0, |at| {
            at + rest[at..].chars().next().map_or(1, char::len_utf8)
        });
        *word = &rest[start..];
        if word.is_empty() {
            return None;
        }
        rest = rest[..start].trim_end();
    }
    Some((rest.trim(), words))
}

/// Rows that could not be read: the last one of a text counts as cut off.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    pending: Option<u64>,
}

impl Suspects {
    /// Notes that a row on `line` could not be read.
    pub(super) fn add(&mut self, line: u64, parsed: &mut Parsed) {
        self.flush(WarningCode::BrokenRow, parsed);
        self.pending = Some(line);
    }

    /// Notes that more text followed, so that the pending row was not cut off.
    pub(super) fn more_text(&mut self, parsed: &mut Parsed) {
        self.flush(WarningCode::BrokenRow, parsed);
    }

    /// Reports what is pending at the end of the text.
    pub(super) fn finish(mut self, parsed: &mut Parsed) {
        self.flush(WarningCode::Truncated, parsed);
    }

    fn flush(&mut self, code: WarningCode, parsed: &mut Parsed) {
        let Some(line) = self.pending.take() else {
            return;
        };
        let message = if code == WarningCode::Truncated {
            "the last row is cut off, left out"
        } else {
            "row not understood, left out"
        };
        parsed.broken_rows += 1;
        parsed
            .warnings
            .push(Warning::new(code, message).at_line(line));
    }
}

/// Says that the text goes on with another table.
pub(super) fn note_more_tables(line: u64, parsed: &mut Parsed) {
    parsed.warnings.push(
        Warning::new(
            WarningCode::Note,
            "the text holds more tables; only the first was read",
        )
        .at_line(line),
    );
}

/// An id for the next cache; texts with more caches than ids have none.
pub(super) fn next_id(parsed: &Parsed) -> crate::model::CacheId {
    crate::model::CacheId(u32::try_from(parsed.caches.len()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_mails_and_logs_go_away() {
        let row = "kmalloc-64   1KB   2KB";
        for prefix in [
            "[49689.329363] ",
            "[    4.857565] ",
            "[  803.586639][  T524] ",
            "<6>[  803.586639] ",
            "Oct 10 12:00:00 host kernel: ",
            "Oct 10 12:00:00 host kernel: [49689.329363] ",
            "2023-10-10T12:00:00.000000+00:00 host kernel: ",
            "[Tue Oct 10 12:00:00 2023] ",
            ">>>    [    4.857565] ",
            "> > ",
        ] {
            assert_eq!(bare(&format!("{prefix}{row}")).trim(), row, "{prefix}");
        }
        // An object in brackets, as crash prints it, is no time stamp.
        assert_eq!(bare("  [ffff9d363c8a30c0]"), "  [ffff9d363c8a30c0]");
    }

    #[test]
    fn numbers_keep_two_decimals() {
        assert_eq!(hundredths("0.19"), Some(19));
        assert_eq!(hundredths("0,06"), Some(6));
        assert_eq!(hundredths("7"), Some(700));
        assert_eq!(hundredths("1.2.3"), None);
        assert_eq!(hundredths("nan"), None);
        assert_eq!(hundredths("99999999999999999999"), None);
        assert_eq!(kib_bytes(19), Some(195));
        assert_eq!(kib_bytes(u64::MAX), None);
    }

    #[test]
    fn words_are_taken_from_the_right() {
        assert_eq!(
            last_words("file lock cache  1\t 2 "),
            Some(("file lock cache", ["1", "2"]))
        );
        assert_eq!(last_words::<3>("1 2"), None);
        assert_eq!(last_words("1 2"), Some(("", ["1", "2"])));
    }
}
