//! How an engine is made, and why one could not be.

use crate::debug::operation::{OnFault, Report};
use crate::pages::Decommit;
use crate::policy::Policy;
use crate::segment::Place;

/// How an engine is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct EngineConfig {
    /// Bytes of addresses to reserve at first; less is taken when the system refuses,
    /// and more when they are used up.
    pub reserve: usize,
    /// Bytes that may be in use at a time.
    pub limit: u64,
    /// Simulated NUMA nodes, 1 to 8; slots are dealt out in turn.
    pub nodes: usize,
    /// When freed memory goes back.
    pub decommit: Decommit,
    /// Whether to ask the system for huge pages: fewer misses in its tables, more memory.
    pub huge_pages: bool,
    /// Policy of caches that do not name one.
    pub policy: Policy,
    /// Whether caches that do not say may share slabs with others of like kind.
    pub merge: bool,
    /// Processors that the slab order counts; 0 asks the system.
    pub cpus: u32,
    /// Debugging of caches that do not say, in the syntax of the kernel's `slab_debug`.
    pub debug: Option<&'static str>,
    /// Allocations until one fails in a debug cache with the flag `A`; 0 is never.
    pub fail_every: u32,
    /// Whether caches that do not say harden their free lists.
    pub harden_freelist: bool,
    /// Whether caches that do not say hand a new slab's objects out in random order.
    pub randomise_freelist: bool,
    /// Allocations of a cache until one goes to a page of its own between inaccessible ones;
    /// 0 is never. Caches have no inlined fast path then.
    pub sample_every: u32,
    /// Where reports go.
    pub report: Report,
    /// What happens after a report.
    pub on_fault: OnFault,
    /// First address and end of the code that the engine is in, if that is a library of its own: its
    /// frames are not shown as who allocated or freed. By default the engine knows its own functions.
    pub own_code: (usize, usize),
    /// Where other processes find this one. The first engine that wants a segment decides
    /// for the process.
    pub segment: Place,
    /// The process that wants to look at this one at its end, if that is its parent: it is
    /// waited for, but not for long. 0: nobody.
    pub watcher: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl EngineConfig {
    /// 64 GiB of addresses, no limit, one node, memory back after a second.
    pub const fn new() -> Self {
        Self {
            reserve: 64 << 30,
            limit: u64::MAX,
            nodes: 1,
            decommit: Decommit::AfterMs(1000),
            huge_pages: false,
            policy: Policy::Hybrid,
            merge: false,
            cpus: 0,
            debug: None,
            fail_every: 0,
            harden_freelist: false,
            randomise_freelist: false,
            sample_every: 0,
            report: Report::Stderr,
            on_fault: OnFault::Quarantine,
            own_code: (0, 0),
            segment: Place::Memfd,
            watcher: 0,
        }
    }
}

/// Why an engine or a cache could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The system gave no addresses or no memory.
    NoMemory,
    /// The table of caches is full.
    TooManyCaches,
    /// No slab can hold an object of this size and alignment.
    BadLayout,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoMemory => "the system gave no memory",
            Self::TooManyCaches => "the engine's table of caches is full",
            Self::BadLayout => "no slab can hold an object of this size and alignment",
        })
    }
}

impl std::error::Error for Error {}
