//! What a front end needs, so that a live source reads no more than that.

use std::time::Duration;

use crate::model::{Flag, Quantity, QuantitySet};

/// The figures a caller will use.
///
/// On a live kernel each attribute costs a file per cache, and `objects` and
/// `objects_partial` cost a list walk under a spinlock (mm/slub.c,
/// `count_partial`); a capture gives everything it has anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one independent kind of file to read"
)]
pub struct Demand {
    /// Quantities wanted.
    pub quantities: QuantitySet,
    /// Flags wanted.
    pub flags: Vec<Flag>,
    /// The constructor's symbol.
    pub ctor: bool,
    /// Per-node parts.
    pub nodes: bool,
    /// Per-CPU parts.
    pub cpus: bool,
    /// Event counters, where the kernel has them.
    pub counters: bool,
    /// Call sites from debugfs; opening those files walks every object.
    pub sites: bool,
    /// Call sites of this cache only, by a name or its directory.
    pub sites_of: Option<String>,
    /// Command line and build options of the machine, and what `memory` names.
    pub machine: bool,
    /// vmstat, memory pressure and free blocks of the machine.
    pub memory: bool,
    /// Caches without slabs will not be shown: nothing more is read of one that
    /// /proc/slabinfo shows to be empty.
    pub skip_empty: bool,
    /// Walk lists of any length for an exact count of objects.
    pub exact: bool,
    /// Partial slabs above which `objects` is not read but taken from
    /// /proc/slabinfo and marked as an estimate.
    pub walk_limit: u64,
    /// For how long the figures of a cache whose row in /proc/slabinfo stays the
    /// same are taken from an earlier sample of this source; zero: not at all.
    /// Not of the cache in focus, and not where counters are wanted.
    pub unchanged_for: Duration,
    /// Only caches for which this holds are read in detail; `None` is all.
    /// Names and aliases are matched by the caller's filter later all the same.
    pub only: Option<Vec<String>>,
    /// A cache, by a name or its directory, of which everything is read on a
    /// live kernel, whatever is asked of the others.
    pub focus: Option<String>,
}

impl Demand {
    /// The kernel's own bound for its scan of partial lists (`MAX_PARTIAL_TO_SCAN`, Linux 6.10).
    pub const WALK_LIMIT: u64 = 10_000;

    /// Everything but call sites: what JSON and `show` need.
    pub fn everything() -> Self {
        Self {
            quantities: QuantitySet::ALL,
            flags: Flag::ALL.to_vec(),
            ctor: true,
            nodes: true,
            cpus: true,
            counters: true,
            sites: false,
            sites_of: None,
            machine: false,
            memory: false,
            skip_empty: false,
            exact: false,
            walk_limit: Self::WALK_LIMIT,
            unchanged_for: Duration::ZERO,
            only: None,
            focus: None,
        }
    }

    /// Nothing but the list of caches.
    pub fn names() -> Self {
        Self {
            quantities: QuantitySet::EMPTY,
            flags: Vec::new(),
            ctor: false,
            nodes: false,
            cpus: false,
            counters: false,
            sites: false,
            sites_of: None,
            machine: false,
            memory: false,
            skip_empty: false,
            exact: false,
            walk_limit: Self::WALK_LIMIT,
            unchanged_for: Duration::ZERO,
            only: None,
            focus: None,
        }
    }

    /// Adds quantities.
    #[must_use]
    pub fn with(mut self, list: &[Quantity]) -> Self {
        self.quantities = self.quantities.union(QuantitySet::of(list));
        self
    }

    /// Adds what `other` asks for.
    pub fn merge(&mut self, other: &Self) {
        self.quantities = self.quantities.union(other.quantities);
        for flag in &other.flags {
            if !self.flags.contains(flag) {
                self.flags.push(*flag);
            }
        }
        self.ctor |= other.ctor;
        self.nodes |= other.nodes;
        self.cpus |= other.cpus;
        self.counters |= other.counters;
        self.sites |= other.sites;
        self.machine |= other.machine;
        self.memory |= other.memory;
        self.exact |= other.exact;
        if self.sites_of.is_none() {
            self.sites_of.clone_from(&other.sites_of);
        }
        if self.focus.is_none() {
            self.focus.clone_from(&other.focus);
        }
    }
}
