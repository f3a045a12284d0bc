//! One line of a report, told from its form.
//!
//! Purpose: each line becomes one value, or nothing. Whether a line may stand
//! where it stands is for the report to know (`open.rs`). Source of truth: the
//! format strings of mm/slub.c, mm/slab.c, mm/slab_common.c, mm/usercopy.c,
//! mm/oom_kill.c, and the headings of KASAN, KFENCE and kmemleak.

mod failure;
mod machine;
mod remark;
mod slab;
mod slub;

use super::foreign;
use super::report::{
    DumpRow, MAX_TEXT, NodeSlabs, ObjectLine, Overwritten, Pointer, Remark, SlabLine, SlabRow,
    Tool, Track,
};
use super::template::Values;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// `====` or `----`
    Rule,
    Banner {
        cache: String,
        taint: Option<String>,
        reason: String,
    },
    Overwritten(Overwritten),
    Allocated(Track),
    Freed(Track),
    Slab(SlabLine),
    Object(ObjectLine),
    InvalidPointer(Pointer),
    Row(DumpRow),
    Fix {
        cache: String,
        action: String,
    },
    Cpu {
        cpu: Option<u64>,
        pid: Option<u64>,
        comm: String,
        taint: Option<String>,
        kernel: Option<String>,
    },
    /// `WARNING: ... at`, with who ran where the line tells it.
    Warning {
        cpu: Option<u64>,
        pid: Option<u64>,
        comm: Option<String>,
    },
    CutHere,
    CallTrace,
    EndTrace,
    Instruction(String),
    SlabError {
        function: String,
        cache: Option<String>,
        message: Option<String>,
    },
    RedzonePair {
        object: Pointer,
        words: (u64, u64),
    },
    Corruption {
        cache: Option<String>,
        taint: Option<String>,
        start: Pointer,
        len: Option<u64>,
    },
    Redzones(u64, u64),
    LastUser(String),
    Neighbour,
    SlabRow(SlabRow),
    SingleBit,
    Destroy {
        cache: String,
        from: Option<String>,
    },
    WrongCache {
        freed_to: String,
        object_of: Option<String>,
        object: Pointer,
    },
    Usercopy {
        exposure: bool,
        cache: String,
        offset: Option<u64>,
        size: Option<u64>,
    },
    Failure {
        node: Option<i64>,
        gfp: Option<String>,
    },
    FailureCache(FailureCache),
    FailureNode(NodeSlabs),
    FailureDebug,
    Validator {
        cache: String,
        partial: bool,
        counted: Option<i64>,
        counter: Option<i64>,
    },
    KernelBug(String),
    Remark(Remark),
    Oom {
        comm: Option<String>,
        order: Option<u32>,
    },
    MemInfo,
    SlabTable,
    EndOom,
    Foreign {
        tool: Tool,
        kind: String,
        function: Option<String>,
        size: Option<u64>,
        address: Pointer,
    },
    Part(foreign::Part),
}

/// `cache: NAME, object size: ..` of an allocation failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailureCache {
    pub cache: String,
    pub object_size: Option<u64>,
    pub slot_size: Option<u64>,
    pub order: Option<u32>,
    pub min_order: Option<u32>,
}

/// What a line is, and whether it goes on to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    pub item: Item,
    pub complete: bool,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "both end a function that may find nothing"
)]
impl Read {
    const fn whole(item: Item) -> Option<Self> {
        Some(Self {
            item,
            complete: true,
        })
    }

    const fn of(item: Item, values: &Values<'_>) -> Option<Self> {
        Some(Self {
            item,
            complete: values.complete,
        })
    }

    /// Whether `next`, a line without a prefix, may be the rest of this one.
    pub fn wants(&self, next: &str) -> bool {
        let next = next.trim_start();
        match &self.item {
            _ if self.complete => false,
            Item::Object(_) => next.starts_with("fp="),
            Item::Row(_) | Item::SlabRow(_) => hex_byte(next).is_some(),
            _ => !next.is_empty(),
        }
    }
}

/// A text of bounded length to keep.
pub(super) fn clip(text: &str) -> String {
    let text = text.trim();
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn clipped(text: Option<&str>) -> String {
    clip(text.unwrap_or_default())
}

/// Reads a line whose prefix was taken off.
pub(super) fn read(text: &str) -> Option<Read> {
    let text = text.trim();
    // Each begins with a look at one byte: most lines of a log are none of these.
    slub::line(text)
        .or_else(|| slab::line(text))
        .or_else(|| failure::line(text))
        .or_else(|| machine::line(text))
        .or_else(|| remark::line(text))
        .or_else(|| foreign::line(text))
}

/// Up to 16 bytes. They are followed by at least two blanks and as many
/// characters; without these the row is not complete.
fn hex_bytes(text: &str) -> Option<(Vec<u8>, bool)> {
    let mut bytes = Vec::with_capacity(16);
    let mut rest = text.trim_start();
    while bytes.len() < 16
        && let Some(byte) = hex_byte(rest)
    {
        bytes.push(byte);
        let after = &rest[2..];
        rest = after.trim_start();
        if after.len() - rest.len() > 1 {
            break;
        }
    }
    let complete = bytes.len() == 16 || !rest.is_empty();
    (!bytes.is_empty()).then_some((bytes, complete))
}

/// The byte that `text` begins with: two digits and then a blank or nothing.
fn hex_byte(text: &str) -> Option<u8> {
    let digits = text.get(..2)?;
    let alone = text.as_bytes().get(2).is_none_or(u8::is_ascii_whitespace);
    let known = alone && digits.bytes().all(|b| b.is_ascii_hexdigit());
    known.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}
