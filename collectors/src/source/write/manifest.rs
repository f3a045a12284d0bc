//! The MANIFEST of a capture: what it holds, what it lacks, and why.
//!
//! Source of truth: this file. Version 1 is a line `slabctl-capture 1`, a head
//! of `key: value` lines, an empty line, and then one line for each fact that
//! starts with its kind: `file`, `link`, `unread`, `left-out`, `changed`,
//! `unlike`. Readers pass over keys and kinds that they do not know.

use std::fmt::Write as _;

use super::{Collected, Options};
use crate::source::tree::{Node, Tree};

/// The file's name in a capture.
pub const NAME: &str = "MANIFEST";

const FORMAT: &str = "slabctl-capture 1";

/// How the files were read, for whoever compares them.
const ORDER: &str = "all other attributes; proc/slabinfo; the counts of one cache after the other; proc/slabinfo again (the one nearer to sysfs is kept); meminfo, vmstat and the like; traces";

/// The page size that the MANIFEST of a capture states.
pub(in crate::source) fn page_size(tree: &dyn Tree) -> Option<u64> {
    let text = tree.read_text(NAME).ok()?;
    let mut lines = text.lines();
    lines
        .next()
        .filter(|line| line.starts_with("slabctl-capture "))?;
    let size: u64 = lines
        .take_while(|line| !line.is_empty())
        .find_map(|line| line.strip_prefix("page-size: "))?
        .trim()
        .parse()
        .ok()?;
    // Linux has page sizes from 4 KiB to 256 KiB.
    (size.is_power_of_two() && (4096..=262_144).contains(&size)).then_some(size)
}

/// The text for everything in `collected` but the MANIFEST itself.
pub(super) fn text(collected: &Collected, options: &Options, kernel: Option<&str>) -> String {
    let mut out = format!("{FORMAT}\n");
    let mut head = |key: &str, value: &str| {
        out.push_str(key);
        out.push_str(": ");
        out.push_str(&clean(value));
        out.push('\n');
    };
    head("program", &options.program);
    head("kernel", kernel.unwrap_or("unknown"));
    head("taken", &collected.taken_at.to_string());
    if let Some(size) = options.page_size {
        head("page-size", &size.to_string());
    }
    head("caches", &collected.caches.to_string());
    head("traces", if options.traces { "yes" } else { "no" });
    head("walk-limit", &options.walk_limit.to_string());
    head("order", ORDER);
    if let Some(changes) = &collected.changes {
        head("compared", &changes.compared.to_string());
        head("attempts", &changes.attempts.to_string());
        head("changed", &changes.changed.len().to_string());
        head("unlike", &changes.unlike.len().to_string());
    }
    out.push('\n');
    facts(collected, &mut out);
    out
}

fn facts(collected: &Collected, out: &mut String) {
    // Writing to a String cannot fail.
    let mut line = |kind: &str, rest: std::fmt::Arguments<'_>| {
        let _ = writeln!(out, "{kind} {}", clean(&rest.to_string()));
    };
    for (path, node) in collected.files.nodes() {
        match node {
            Node::File(bytes) => line("file", format_args!("{} {path}", bytes.len())),
            Node::Link(target) => line("link", format_args!("{path} -> {target}")),
        }
    }
    for absent in &collected.unread {
        line("unread", format_args!("{}: {}", absent.path, absent.why));
    }
    for absent in &collected.left_out {
        line("left-out", format_args!("{}: {}", absent.path, absent.why));
    }
    if let Some(moved) = &collected.changes {
        for name in &moved.changed {
            line("changed", format_args!("{name}"));
        }
        for name in &moved.unlike {
            line("unlike", format_args!("{name}"));
        }
    }
}

/// A name with a line end in it must not look like another line.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
