//! The reports of KASAN, KFENCE and kmemleak, as far as they can be told apart.
//!
//! Purpose: these name caches and objects too, and must not be read as reports
//! of the allocator. Source of truth: mm/kasan/report.c, mm/kfence/report.c,
//! mm/kmemleak.c. It reads what is in their sentences, not their dumps.

use super::item::{Item, Read, clip};
use super::report::{Foreign, Tool};
use super::template::scan;

/// A line inside such a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// `Read of size 6 at addr ffff by task a/1`
    Access {
        access: String,
        size: Option<u64>,
        address: Option<u64>,
        by: Option<String>,
    },
    Cache {
        name: String,
        size: Option<u64>,
    },
    Place(String),
    AllocatedBy(Option<u64>),
    FreedBy(Option<u64>),
    /// `comm "insmod", pid 1234, ..` of kmemleak.
    Comm {
        comm: String,
        pid: Option<u64>,
    },
    /// `backtrace:` of kmemleak.
    Backtrace,
}

/// Reads a line; `None` for other lines.
pub(super) fn line(text: &str) -> Option<Read> {
    heading(text).or_else(|| {
        part(text).map(|part| Read {
            item: Item::Part(part),
            complete: true,
        })
    })
}

/// The first line of such a report.
fn heading(text: &str) -> Option<Read> {
    if let Some(v) = scan("unreferenced object {p} (size {d}):", text) {
        return Some(Read {
            item: Item::Foreign {
                tool: Tool::Kmemleak,
                kind: "unreferenced object".to_owned(),
                function: None,
                size: v.dec(1),
                address: v.pointer(0),
            },
            complete: v.complete,
        });
    }
    let (tool, rest) = [
        ("BUG: KASAN: ", Tool::Kasan),
        ("BUG: KFENCE: ", Tool::Kfence),
    ]
    .iter()
    .find_map(|(start, tool)| Some((*tool, text.strip_prefix(start)?)))?;
    let (kind, function) = match rest.split_once(" in ") {
        Some((kind, function)) => (kind, Some(clip(function))),
        None => (rest, None),
    };
    Some(Read {
        item: Item::Foreign {
            tool,
            kind: clip(kind),
            function,
            size: None,
            address: None,
        },
        complete: true,
    })
}

/// A line inside such a report.
fn part(text: &str) -> Option<Part> {
    match text.as_bytes().first()? {
        b'R' | b'W' => access(text),
        b'T' => {
            let rest = text.strip_prefix("The buggy address ")?;
            if let Some(rest) = rest.strip_prefix("is located ") {
                return Some(Part::Place(clip(rest)));
            }
            cache(rest)
        }
        b'w' => cache(text),
        b'A' => Some(Part::AllocatedBy(task(
            text.strip_prefix("Allocated by task ")?,
        ))),
        b'F' => Some(Part::FreedBy(task(text.strip_prefix("Freed by task ")?))),
        b'a' => Some(Part::AllocatedBy(task(
            text.strip_prefix("allocated by task ")?,
        ))),
        b'f' => Some(Part::FreedBy(task(text.strip_prefix("freed by task ")?))),
        b'k' => {
            let (_, rest) = text.strip_prefix("kfence-#")?.split_once("size=")?;
            let (size, name) = rest.split_once(", cache=")?;
            let name = name.split([',', ' ']).next()?;
            Some(Part::Cache {
                name: clip(name),
                size: size.parse().ok(),
            })
        }
        b'c' => {
            let v = scan("comm \"{s}\", pid {d}", text)?;
            Some(Part::Comm {
                comm: clip(v.text(0)?),
                pid: v.dec(1),
            })
        }
        b'b' => text.starts_with("backtrace").then_some(Part::Backtrace),
        _ => None,
    }
}

fn access(text: &str) -> Option<Part> {
    let v = scan("{w} of size {d} at addr {p} by task {r}", text)?;
    Some(Part::Access {
        access: clip(v.text(0)?),
        size: v.dec(1),
        address: v.pointer(2),
        by: v.text(3).map(clip),
    })
}

fn cache(text: &str) -> Option<Part> {
    let (_, rest) = text.split_once("belongs to the cache ")?;
    let (name, size) = rest.rsplit_once(" of size ").unwrap_or((rest, ""));
    Some(Part::Cache {
        name: clip(name),
        size: size.parse().ok(),
    })
}

/// `6797:` or `4786 on cpu 0 at 35.5s:`
fn task(text: &str) -> Option<u64> {
    text.split([':', ' ']).next()?.parse().ok()
}

impl Foreign {
    /// A report of which only the heading was read.
    pub(super) const fn new(tool: Tool, kind: String, function: Option<String>) -> Self {
        Self {
            tool,
            kind,
            function,
            access: None,
            size: None,
            address: None,
            cache: None,
            object_size: None,
            place: None,
            allocated: None,
            freed: None,
        }
    }
}
