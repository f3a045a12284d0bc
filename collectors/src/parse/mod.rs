//! Parsers: bytes in, typed rows and what was skipped out. Pure, no paths, no I/O.
//!
//! Every parser keeps what it can read, names what it cannot (with the line),
//! never panics and never holds more than a small multiple of its input.

pub mod alias_listing;
pub mod buddyinfo;
pub mod clean;
pub mod crash_kmem;
pub mod kernel_log;
pub mod meminfo;
pub mod oom_table;
pub mod pressure;
mod rows;
pub mod sections;
pub mod slabinfo;
mod slabinfo_report;
pub mod slabinfo_tool;
pub mod slabtop;
pub mod sysfs;
pub mod traces;

use crate::model::{Cache, Warnings};

/// What a parser of a whole text found.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// The caches, in the order of the text. Ids are given by the assembler.
    pub caches: Vec<Cache>,
    /// What was left out and why; lines count from 1, without a file name.
    pub warnings: Warnings,
    /// Rows that looked like rows and were not understood.
    pub broken_rows: u64,
}
