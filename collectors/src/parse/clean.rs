//! Cleaning of saved and pasted text, one line at a time, before it is parsed.
//!
//! Terminals, mail programs, web pages and `grep` leave carriage returns,
//! no-break spaces, quote marks, file names and thousands separators in a
//! table. Everything here works on one line and keeps the line's number, so
//! that a message names the line a person sees. Broken rows are not joined
//! here: only the parser of a format knows when its row is complete.

use std::borrow::Cow;

/// The longest line a reader of streams keeps; longer ones are not tables.
pub const MAX_LINE: usize = 64 * 1024;

const NBSP: char = '\u{a0}';
const BOM: char = '\u{feff}';

/// The lines of `text`, cleaned by [`line()`], with their numbers from 1.
pub fn lines(text: &[u8]) -> impl Iterator<Item = (u64, Cow<'_, str>)> {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let count = if text.is_empty() { 0 } else { usize::MAX };
    body.split(|b| *b == b'\n')
        .take(count)
        .zip(1..)
        .map(|(raw, number)| (number, line(raw)))
}

/// One line as text: without carriage returns at its end or a byte order mark
/// at its start, no-break spaces as blanks, bytes that are not UTF-8 replaced.
/// A carriage return inside becomes a blank, so that columns stay apart.
pub fn line(raw: &[u8]) -> Cow<'_, str> {
    let raw = without_line_end(raw);
    match std::str::from_utf8(raw) {
        Ok(text) if is_clean(text) => Cow::Borrowed(text),
        Ok(text) => Cow::Owned(scrub(text)),
        Err(_) => Cow::Owned(scrub(&lossy(raw))),
    }
}

/// As [`line()`], for a buffer that is used again: a clean line is not copied.
pub fn owned_line(mut raw: Vec<u8>) -> String {
    let len = without_line_end(&raw).len();
    raw.truncate(len);
    match String::from_utf8(raw) {
        Ok(text) if is_clean(&text) => text,
        Ok(text) => scrub(&text),
        Err(error) => scrub(&lossy(error.as_bytes())),
    }
}

/// The line without the quote marks mail programs put before it: `>`, `> `,
/// `>> `, `> > ` and `| `, in any depth. A name such as `page->ptl` is left alone.
pub fn unquoted(line: &str) -> &str {
    let mut rest = line;
    let mut quoted = false;
    loop {
        let inner = rest.strip_prefix(' ').unwrap_or(rest);
        if let Some(after) = inner.strip_prefix('>') {
            rest = after;
        } else if let Some(after) = inner.strip_prefix("| ") {
            // Keeps the blank: it may be the one before the next mark.
            rest = &inner[inner.len() - after.len() - 1..];
        } else if inner == "|" {
            return "";
        } else {
            break;
        }
        quoted = true;
    }
    if quoted {
        rest.strip_prefix(' ').unwrap_or(rest)
    } else {
        line
    }
}

/// Splits the file name that `grep` puts before a line of a slabinfo file:
/// `/sys/fs/cgroup/memory/a.slice/memory.kmem.slabinfo:dentry 1 2 ...` gives
/// the file and the row.
///
/// Names of caches have colons too (`iwl_cmd_pool:0000:04:00.0`), so only
/// `slabinfo:` ends a file name, and only in the line's first word.
pub fn split_file_name(line: &str) -> Option<(&str, &str)> {
    const MARK: &str = "slabinfo:";
    let word = first_word(line);
    // Most names have no colon; looking for a byte is cheaper than for a word.
    if !word.as_bytes().contains(&b':') {
        return None;
    }
    let at = word.find(MARK)?;
    let file = &line[..at + MARK.len() - 1];
    let own_name = at == 0 || matches!(line.as_bytes().get(at - 1), Some(b'/' | b'.'));
    own_name.then(|| (file, &line[at + MARK.len()..]))
}

/// Whether `grep` took the line from another file than slabinfo: its first
/// word is an absolute path, a colon and the beginning of the line.
pub fn is_from_other_file(line: &str) -> bool {
    let word = first_word(line);
    word.starts_with('/') && word.contains(':') && split_file_name(line).is_none()
}

/// The line with `1,234,567` as `1234567`. Other commas stay.
pub fn without_separators(line: &str) -> Cow<'_, str> {
    if !line.contains(',') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    for piece in line.split_inclusive([' ', '\t']) {
        let word = piece.trim_end_matches([' ', '\t']);
        if is_grouped_number(word) {
            out.extend(piece.chars().filter(|c| *c != ','));
        } else {
            out.push_str(piece);
        }
    }
    Cow::Owned(out)
}

fn first_word(line: &str) -> &str {
    line.split([' ', '\t']).next().unwrap_or_default()
}

fn is_grouped_number(word: &str) -> bool {
    let mut groups = word.split(',');
    let digits = |g: &str| g.bytes().all(|b| b.is_ascii_digit());
    let head = groups.next().unwrap_or_default();
    let mut tail = groups.peekable();
    (1..=3).contains(&head.len())
        && digits(head)
        && tail.peek().is_some()
        && tail.all(|g| g.len() == 3 && digits(g))
}

fn without_line_end(raw: &[u8]) -> &[u8] {
    let mut raw = raw.strip_suffix(b"\n").unwrap_or(raw);
    // A terminal may have added one to the one of the file.
    while let Some(shorter) = raw.strip_suffix(b"\r") {
        raw = shorter;
    }
    raw
}

fn is_clean(text: &str) -> bool {
    // Almost every line is plain ASCII, which is quick to see.
    !text.as_bytes().contains(&b'\r')
        && (text.is_ascii() || !(text.contains(NBSP) || text.starts_with(BOM)))
}

fn scrub(text: &str) -> String {
    text.strip_prefix(BOM)
        .unwrap_or(text)
        .replace([NBSP, '\r'], " ")
}

/// As `String::from_utf8_lossy`, but a no-break space of Latin-1 is kept as one.
fn lossy(raw: &[u8]) -> String {
    let mut out = String::with_capacity(raw.len());
    for chunk in raw.utf8_chunks() {
        out.push_str(chunk.valid());
        match chunk.invalid() {
            [] => {}
            [0xa0] => out.push(NBSP),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &[u8]) -> Vec<(u64, String)> {
        lines(text).map(|(n, l)| (n, l.into_owned())).collect()
    }

    #[test]
    fn lines_keep_their_numbers_and_lose_carriage_returns() {
        let got = all(b"slabinfo - version: 2.1\r\n\r\r\ndentry 1\r 2\r");
        let want = ["slabinfo - version: 2.1", "", "dentry 1  2"];
        assert_eq!(got.len(), 3);
        for (i, (number, line)) in got.iter().enumerate() {
            assert_eq!((*number, line.as_str()), (i as u64 + 1, want[i]));
        }
        assert!(all(b"").is_empty());
        assert_eq!(all(b"\n"), [(1, String::new())]);
    }

    #[test]
    fn no_break_spaces_of_both_encodings_are_blanks() {
        assert_eq!(line("\u{feff}dentry\u{a0} 7".as_bytes()), "dentry  7");
        assert_eq!(line(b"dentry\xa0 7\xff"), "dentry  7\u{fffd}");
        assert!(matches!(line(b"dentry 7\r\n"), Cow::Borrowed("dentry 7")));
    }

    #[test]
    fn quote_marks_go_and_names_stay() {
        for quoted in ["> row 1", ">> row 1", "> > row 1", "| row 1", "> | row 1"] {
            assert_eq!(unquoted(quoted), "row 1", "{quoted}");
        }
        assert_eq!(unquoted(">row 1"), "row 1");
        assert_eq!(unquoted("page->ptl 1 2"), "page->ptl 1 2");
        assert_eq!(unquoted("  12 34"), "  12 34");
        assert_eq!(unquoted(">"), "");
        assert_eq!(unquoted("|"), "");
    }

    #[test]
    fn the_file_name_of_grep_ends_at_slabinfo() {
        assert_eq!(
            split_file_name("/sys/fs/cgroup/memory//a.slice/memory.kmem.slabinfo:dentry 1"),
            Some((
                "/sys/fs/cgroup/memory//a.slice/memory.kmem.slabinfo",
                "dentry 1"
            ))
        );
        assert_eq!(
            split_file_name("proc/slabinfo:iwl_cmd_pool:0000:04:00.0 1"),
            Some(("proc/slabinfo", "iwl_cmd_pool:0000:04:00.0 1"))
        );
        assert_eq!(split_file_name("iwl_cmd_pool:0000:04:00.0 1"), None);
        assert_eq!(split_file_name("see /proc/slabinfo: below"), None);
        assert_eq!(split_file_name("myslabinfo:x 1"), None);
        assert!(is_from_other_file("/sys/fs/cgroup/memory.stat:cache 1"));
        assert!(!is_from_other_file("iwl_cmd_pool:0000:04:00.0 1"));
    }

    #[test]
    fn only_well_formed_groups_lose_their_commas() {
        assert_eq!(
            without_separators("dentry 1,234,567  12,34 1,2345,"),
            "dentry 1234567  12,34 1,2345,"
        );
        assert_eq!(without_separators("a,b ,123 1,"), "a,b ,123 1,");
    }

    proptest! {
        #[test]
        fn any_bytes_give_clean_lines(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            for (i, (number, line)) in lines(&text).enumerate() {
                prop_assert_eq!(number, i as u64 + 1);
                prop_assert!(!line.contains(['\r', '\n', NBSP]));
                let inner = unquoted(&line);
                prop_assert!(line.ends_with(inner));
                let _ = (split_file_name(inner), is_from_other_file(inner));
                prop_assert!(without_separators(inner).len() <= inner.len());
            }
        }

        #[test]
        fn both_forms_agree(raw in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(line(&raw).into_owned(), owned_line(raw.clone()));
        }
    }
}
