//! Writes all slab state of a kernel into one file, to be read anywhere.
//!
//! What is collected is what the other sources read, as the files it came
//! from: the archive is a tree of /proc and /sys below one directory, and
//! [`super::capture`] opens it like any other saved copy. Nothing is
//! interpreted on the way, so that a later version can read more out of it.

mod collect;
pub mod manifest;
mod pack;
mod race;

pub use collect::collect;
pub use pack::{Form, pack, save};

use jiff::Timestamp;

use super::tree::MemTree;

/// What to collect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Also the call sites of tracked caches: the kernel walks every object.
    pub traces: bool,
    /// Partial slabs above which `objects` and `objects_partial` are left out,
    /// since reading them walks the list under a lock.
    pub walk_limit: u64,
    /// The page size of the running kernel.
    pub page_size: Option<u64>,
    /// Name and version of the program, for the MANIFEST.
    pub program: String,
}

/// A file with the reason why it is not in the capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The path below the root.
    pub path: String,
    /// Why.
    pub why: String,
}

/// Caches that were not the same in the readings of one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Other slab counts in /proc/slabinfo before and after sysfs was read.
    pub changed: Vec<String>,
    /// The same before and after, but sysfs says otherwise.
    pub unlike: Vec<String>,
    /// Caches compared.
    pub compared: usize,
    /// How often the figures were read.
    pub attempts: u32,
}

impl Changes {
    fn count(&self) -> usize {
        self.changed.len() + self.unlike.len()
    }
}

/// The files of a capture, in memory.
#[derive(Debug, Clone)]
pub struct Collected {
    /// The files, MANIFEST included.
    pub files: MemTree,
    /// When, in whole seconds.
    pub taken_at: Timestamp,
    /// Directories of /sys/kernel/slab with figures, or else rows of /proc/slabinfo.
    pub caches: usize,
    /// What could not be read.
    pub unread: Vec<Absent>,
    /// What was not read on purpose.
    pub left_out: Vec<Absent>,
    /// How far the figures are of one moment; `None` without both sources.
    pub changes: Option<Changes>,
}
