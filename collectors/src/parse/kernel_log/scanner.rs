//! Reads a log of any length in bounded memory, and gives its reports.
//!
//! Purpose: nearly all of a log is of no interest. While no report is in
//! progress, only lines with one of [`MARKS`] are looked at; the search for
//! these runs over whole blocks. Lines are counted all the same.

use std::io::{self, Read};

use aho_corasick::AhoCorasick;

use super::assemble::Assembler;
use super::report::Report;
use crate::parse::clean::MAX_LINE;

/// Bytes read at once.
const BLOCK: u64 = 256 << 10;

/// Texts of which one is in the first line of every report. Wrapped lines are
/// whole up to here; a report that lost its first lines has one further on.
const MARKS: &[&str] = &[
    "BUG ",
    "FIX ",
    "KASAN: ",
    "KFENCE: ",
    "overwritten]",
    "Slab 0x",
    " @offset=",
    "Slab corruption",
    "slab error in ",
    "SLUB",
    ": slabs: ",
    "slab info:",
    "invoked oom-killer",
    "Mem-Info:",
    "kmem_cache_destroy ",
    "Wrong slab cache",
    "kmem_cache_free(",
    "usercopy",
    "unreferenced object",
    "TRACE ",
    "_debug option '",
    "kmem_cache of name",
];

/// Gives the reports of a log, one after the other.
#[derive(Debug)]
pub struct Scanner<R> {
    reader: R,
    marks: Option<AhoCorasick>,
    buffer: Vec<u8>,
    /// Where the next line begins in the buffer.
    at: usize,
    /// The number of that line.
    number: u64,
    /// The line was longer than [`MAX_LINE`]: passes over its rest.
    skipping: bool,
    ended: bool,
    assembler: Assembler,
}

impl<R: Read> Scanner<R> {
    /// Reads from `reader`, in large pieces: it needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            // Without the search every line is looked at, which is only slower.
            marks: AhoCorasick::new(MARKS).ok(),
            buffer: Vec::new(),
            at: 0,
            number: 1,
            skipping: false,
            ended: false,
            assembler: Assembler::default(),
        }
    }

    /// Lines read so far.
    pub fn lines(&self) -> u64 {
        self.number - 1
    }

    /// Reads on. At the end, what is left counts as a line.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let mut block = self.reader.by_ref().take(BLOCK);
        let read = block.read_to_end(&mut self.buffer)?;
        self.ended = read == 0;
        Ok(())
    }

    /// Uses all whole lines of the buffer.
    fn drain(&mut self) {
        loop {
            if self.assembler.is_idle() {
                self.pass_over();
            }
            let rest = &self.buffer[self.at..];
            let (len, next) = match memchr::memchr(b'\n', rest) {
                Some(len) => (len, len + 1),
                None if rest.is_empty() => return,
                None if self.ended || rest.len() > MAX_LINE => (rest.len(), rest.len()),
                None => return,
            };
            let whole = next > len || self.ended;
            let line = &rest[..len.min(MAX_LINE)];
            if !self.skipping {
                self.assembler.line(self.number, line);
            }
            self.skipping = !whole;
            self.number += u64::from(whole);
            self.at += next;
        }
    }

    /// Moves on to the first line with a mark, or to the end of what is read.
    fn pass_over(&mut self) {
        let Some(marks) = &self.marks else { return };
        let rest = &self.buffer[self.at..];
        // The last line may go on in the next block.
        let end = match memchr::memrchr(b'\n', rest) {
            Some(last) => last + 1,
            None => return,
        };
        let found = marks.find(&rest[..end]).map(|m| m.start());
        let start = match found {
            Some(at) => memchr::memrchr(b'\n', &rest[..at]).map_or(0, |before| before + 1),
            None => end,
        };
        if start > 0 {
            let passed = memchr::memchr_iter(b'\n', &rest[..start]).count();
            self.number += passed as u64;
            self.at += start;
            self.skipping = false;
        }
    }
}

impl<R: Read> Iterator for Scanner<R> {
    type Item = io::Result<Report>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(report) = self.assembler.next_report() {
                return Some(Ok(report));
            }
            if self.ended {
                return None;
            }
            let read = self.fill();
            self.drain();
            if let Err(error) = read {
                // What was read is given first, then the error, then the end.
                self.ended = true;
                self.assembler.finish();
                return Some(Err(error));
            }
            if self.ended {
                self.assembler.finish();
            }
        }
    }
}
