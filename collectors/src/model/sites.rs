//! Call sites: who allocated or freed the objects of a cache.

use super::{CpuId, NodeId, Objects};

/// Whether a site allocated or freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SiteKind {
    /// From `alloc_traces` (or `alloc_calls` before Linux 5.14).
    Alloc,
    /// From `free_traces`: the previous life of objects that are now in use.
    Free,
}

/// What ages are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgeUnit {
    /// The kernel's ticks, of which a second has 100 to 1000.
    #[default]
    Jiffies,
    /// Milliseconds.
    Milliseconds,
}

impl AgeUnit {
    /// The word behind a number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jiffies => "jiffies",
            Self::Milliseconds => "ms",
        }
    }
}

/// What the objects of a site keep alive: free memory in sparse slabs, of which at most half
/// is in use. A slab's free bytes are shared by its live objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pinned {
    /// Objects of the site in such slabs.
    pub objects: u64,
    /// The slabs.
    pub slabs: u64,
    /// The site's share of their free bytes.
    pub bytes: u64,
}

/// One record of a call-site list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// Allocation or free.
    pub kind: SiteKind,
    /// Objects attributed to this site.
    pub count: Objects,
    /// Symbol with offset and size as printed; `None` where the kernel says `<not-available>`,
    /// which has no age, process or processor either.
    pub symbol: Option<String>,
    /// Bytes lost to size-class rounding: all objects together, and each one.
    pub waste: Option<(u64, u64)>,
    /// Age: smallest, mean, largest; the same three times when one was printed.
    pub age: Option<(u64, u64, u64)>,
    /// Unit of the age.
    pub age_unit: AgeUnit,
    /// What it keeps alive, where that was looked at.
    pub pinned: Option<Pinned>,
    /// Smallest and largest process id.
    pub pids: Option<(i64, i64)>,
    /// Processors that used the site; empty when the list was not printed.
    pub cpus: Vec<CpuId>,
    /// Nodes that used the site; empty when the list was not printed.
    pub nodes: Vec<NodeId>,
    /// Stack frames from the innermost, as printed (Linux 5.19 and later).
    pub stack: Vec<String>,
}
