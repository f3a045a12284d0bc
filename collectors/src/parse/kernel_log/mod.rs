//! Reports about slab memory in kernel logs of any kernel, in any wrapping.
//!
//! Purpose: finds every report of SLUB and SLAB and its neighbours (usercopy,
//! failed allocations, out of memory, KASAN, KFENCE, kmemleak) in a text, and
//! reads what it prints. Source of truth: the format strings of mm/slub.c from
//! 2.6.22 to 7.3, mm/slab.c up to 6.7, and what mail programs make of them.
//! Versions are told by shape, since stable kernels carry later changes.
//! It says nothing about what a report means: see `analysis::explain`.
//!
//! The way of a line: [`transport`] takes its prefix off, `item` tells what it
//! is (by templates, see `template`), `assemble` joins wrapped lines and finds
//! the report it belongs to (`open`), [`Scanner`] does this for a stream.

mod assemble;
mod foreign;
mod frame;
mod item;
mod oom;
mod open;
pub mod reason;
pub mod report;
mod scanner;
mod template;
pub mod transport;

pub use scanner::Scanner;

use report::Report;

/// All reports of a text in memory.
pub fn parse(text: &[u8]) -> Vec<Report> {
    // Reading from memory does not fail.
    Scanner::new(text).filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests;
