//! One text with several files in it, split into its files.
//!
//! Purpose: supportconfig's `memory.txt` and its like (`#==[ Command ]===#`,
//! then `# /proc/slabinfo`), the output of head and tail on several files
//! (`==> path <==`), and pastes that name a file of /proc or /sys in a comment
//! line. Source of truth: supportutils, GNU coreutils. Bodies are borrowed and
//! not changed; text before the first mark is not given.

use std::ops::Range;

use super::rows;

/// One file of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<'a> {
    /// The path as in the text, or the command line of a command.
    pub path: String,
    /// The line of the text on which the body begins, from 1.
    pub line: u64,
    /// The body, as it is.
    pub body: &'a [u8],
}

/// Whether a mark of a file is near the beginning.
pub fn recognise(text: &[u8]) -> bool {
    let mut after_rule = false;
    lines(rows::head(text)).any(|(_, range)| {
        let mark = Mark::read(&text[range], after_rule);
        after_rule = matches!(mark, Some(Mark::Rule));
        mark.is_some()
    })
}

/// Splits the text; a path that comes twice is given twice.
pub fn split(text: &[u8]) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    // Path, first line and first byte of the section that is being read.
    let mut open: Option<(String, u64, usize)> = None;
    let mut after_rule = false;
    for (number, range) in lines(text) {
        let Some(mark) = Mark::read(&text[range.clone()], after_rule) else {
            after_rule &= text[range].trim_ascii().is_empty();
            continue;
        };
        after_rule = matches!(mark, Mark::Rule);
        if let Some((path, line, start)) = open.take() {
            let mut body = &text[start..range.start];
            if matches!(mark, Mark::Arrow(_)) {
                body = without_gap(body);
            }
            sections.push(Section { path, line, body });
        }
        open = match mark {
            Mark::Rule | Mark::Missing => None,
            Mark::Arrow(path) | Mark::Comment(path) => Some((path, number + 1, range.end)),
        };
    }
    if let Some((path, line, start)) = open {
        let body = &text[start..];
        sections.push(Section { path, line, body });
    }
    sections
}

/// Lines with their numbers and byte ranges, line ends included.
fn lines(text: &[u8]) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut at = 0;
    (1..).zip(text.split_inclusive(|b| *b == b'\n').map(move |line| {
        let start = at;
        at += line.len();
        start..at
    }))
}

/// The blank line that head and tail put before the next file is not of the file.
fn without_gap(body: &[u8]) -> &[u8] {
    for (end, gap) in [(&b"\n\r\n"[..], 2), (b"\n\n", 1)] {
        if body.ends_with(end) {
            return &body[..body.len() - gap];
        }
    }
    if matches!(body, b"\n" | b"\r\n") {
        b""
    } else {
        body
    }
}

enum Mark {
    /// `#==[ Configuration File ]===#`: the next line names the file.
    Rule,
    /// `# /etc/x - File not found` behind a rule.
    Missing,
    /// `==> path <==`.
    Arrow(String),
    /// `# path`.
    Comment(String),
}

impl Mark {
    fn read(raw: &[u8], after_rule: bool) -> Option<Self> {
        // Most lines are rows; a look at the first bytes spares their copying.
        let start = raw.iter().take(16).find(|b| !b"> \t|".contains(b))?;
        if !b"#=".contains(start) && !raw.starts_with(b"\xef\xbb\xbf") {
            return None;
        }
        let line = super::clean::line(raw);
        let line = super::clean::unquoted(&line).trim();
        if line.starts_with("#==[ ") && line.contains(" ]==") {
            return Some(Self::Rule);
        }
        if let Some(path) = line.strip_prefix("==> ") {
            let path = path.strip_suffix(" <==")?.trim();
            return (!path.is_empty()).then(|| Self::Arrow(path.to_owned()));
        }
        let path = line.strip_prefix('#')?.trim();
        if after_rule {
            return Some(if path.is_empty() || path.ends_with(" - File not found") {
                Self::Missing
            } else {
                Self::Comment(path.to_owned())
            });
        }
        let of_kernel = path.starts_with("/proc/") || path.starts_with("/sys/");
        (of_kernel && !path.contains(char::is_whitespace)).then(|| Self::Comment(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SUPPORTCONFIG: &str = "\
=============================================================================
                     Support Utilities - Supportconfig
=============================================================================

#==[ Command ]======================================#
# /usr/bin/free -k
Mem:       16303432     1253404
#==[ Configuration File ]===========================#
# /proc/slabinfo
slabinfo - version: 2.1
dentry 1 2 3

#==[ Configuration File ]===========================#
# /etc/missing - File not found

#==[ Configuration File ]===========================#

# /proc/meminfo
MemTotal:       16303432 kB
# a comment of the file stays
";

    fn paths<'a>(sections: &'a [Section<'_>]) -> Vec<&'a str> {
        sections.iter().map(|s| s.path.as_str()).collect()
    }

    #[test]
    fn a_supportconfig_is_split_at_its_rules() {
        let sections = split(SUPPORTCONFIG.as_bytes());
        assert_eq!(
            paths(&sections),
            ["/usr/bin/free -k", "/proc/slabinfo", "/proc/meminfo"]
        );
        assert_eq!(sections[1].line, 10);
        assert_eq!(
            sections[1].body,
            b"slabinfo - version: 2.1\ndentry 1 2 3\n\n"
        );
        assert!(sections[2].body.ends_with(b"stays\n"));
    }

    #[test]
    fn head_and_tail_add_one_blank_line_that_is_not_of_the_file() {
        let text = b"==> a/slabs <==\n3\n\n==> a/ctor <==\n\n==> a/order <==\r\n0";
        let sections = split(text);
        assert_eq!(paths(&sections), ["a/slabs", "a/ctor", "a/order"]);
        assert_eq!(sections[0].body, b"3\n");
        assert_eq!(sections[1].body, b"");
        assert_eq!((sections[2].body, sections[2].line), (&b"0"[..], 7));
    }

    #[test]
    fn a_table_is_not_split_at_its_own_comments() {
        let text =
            b"slabinfo - version: 2.1\n# name            <active_objs> <num_objs>\ndentry 1 2\n";
        assert!(!recognise(text));
        assert!(split(text).is_empty());
        assert!(!recognise(b"# /etc/fstab\n# see /proc/mounts\n#!/bin/sh\n"));
    }

    #[test]
    fn quoted_marks_are_found() {
        let text = b"> # /proc/slabinfo\r\n> slabinfo - version: 2.1\r\n";
        assert!(recognise(text));
        let sections = split(text);
        assert_eq!(paths(&sections), ["/proc/slabinfo"]);
        assert_eq!(sections[0].body, b"> slabinfo - version: 2.1\r\n");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            recognise(&bytes);
            for section in split(&bytes) {
                prop_assert!(section.body.len() <= bytes.len());
            }
        }

        #[test]
        fn bodies_are_parts_of_the_text_in_order(
            parts in proptest::collection::vec("(==> [a-z/]{1,5} <==|# /proc/[a-z]{1,4}|#==\\[ X \\]==#|[a-z #=]{0,8}|)\n", 0..60)
        ) {
            let text = parts.concat();
            let sections = split(text.as_bytes());
            let mut before = 0;
            for section in &sections {
                let lines = text.split_inclusive('\n').take(usize::try_from(section.line).unwrap() - 1);
                let start: usize = lines.map(str::len).sum();
                prop_assert!(start >= before);
                prop_assert!(text.as_bytes()[start..].starts_with(section.body));
                before = start + section.body.len();
            }
        }
    }
}
