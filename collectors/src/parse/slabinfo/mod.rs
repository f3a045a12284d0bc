//! /proc/slabinfo of every version, and cgroup v1 memory.kmem.slabinfo.
//!
//! Source of truth: `get_slabinfo` and its successors in mm/slab.c (2.1 to
//! 6.7), mm/slub.c (2.6.23 on) and mm/slab_common.c. Reads what people paste
//! too: without headers, quoted, wrapped, with `grep`'s file names.
//! Does not guess object sizes: `objsize` is the slot, debug metadata included.

mod collect;
mod cursor;
mod legacy;
mod line;
mod reader;
mod row;
mod shape;

use std::io::{self, BufRead};

use collect::Collector;

pub use reader::{Entry, Head, Reader};
pub use row::{Columns, Format, PoolColumns, Row, RowError, parse_row};
pub use shape::Version;

use super::Parsed;
use crate::model::Allocator;

/// Rows that [`parse`] keeps; more than any kernel has, less than a gigabyte.
pub const MAX_ROWS: usize = 2_000_000;

/// Bytes that [`recognise`] looks at.
const LOOK: usize = 64 * 1024;

/// A whole slabinfo text.
#[expect(
    clippy::struct_excessive_bools,
    reason = "marks of the text, each on its own"
)]
#[derive(Debug, Clone, Default)]
pub struct Slabinfo {
    /// The caches, with ids in the order of the text.
    pub parsed: Parsed,
    /// The version of the last version line.
    pub version: Option<Version>,
    /// SLAB or SLUB, told from the tunables.
    pub allocator: Allocator,
    /// Marked `(statistics)`, or with statistics in a row.
    pub statistics: bool,
    /// Marked `(SMP)`.
    pub smp: bool,
    /// Whether there was a version line.
    pub header_seen: bool,
    /// Whether the text is from a kernel that is not Linux.
    pub look_alike: bool,
}

/// Parses a text.
pub fn parse(text: &[u8]) -> Slabinfo {
    infallible(run(text, Collector::new(MAX_ROWS)))
}

/// Parses a cgroup v1 memory.kmem.slabinfo file of the control group `cgroup`.
pub fn parse_memcg(text: &[u8], cgroup: &str) -> Slabinfo {
    infallible(run(text, Collector::new(MAX_ROWS).of_cgroup(cgroup)))
}

/// Parses a stream of any length and keeps at most `max_rows` rows.
pub fn parse_from(reader: impl BufRead, max_rows: usize) -> io::Result<Slabinfo> {
    run(reader, Collector::new(max_rows))
}

/// Whether the beginning of `text` has a version line or a row of any version.
pub fn recognise(text: &[u8]) -> bool {
    let mut reader = Reader::new(text.get(..LOOK).unwrap_or(text));
    let row = matches!(reader.next_row(), Ok(Some(_)));
    row || reader.head().seen
}

impl procfs::FromBufRead for Slabinfo {
    fn from_buf_read<R: BufRead>(reader: R) -> procfs::ProcResult<Self> {
        Ok(parse_from(reader, MAX_ROWS)?)
    }
}

/// Reading from memory does not fail.
fn infallible(result: io::Result<Slabinfo>) -> Slabinfo {
    result.unwrap_or_default()
}

fn run(input: impl BufRead, mut collector: Collector) -> io::Result<Slabinfo> {
    let mut reader = Reader::new(input);
    while let Some(entry) = reader.next_row()? {
        if collector.is_full() {
            collector.warn_full();
            break;
        }
        collector.add(&entry.row, entry.file);
    }
    Ok(collector.finish(&mut reader))
}
