//! Structural checks that work while the program runs.
//!
//! Each finding is confirmed before it is told: under the lock that protects
//! what it is about, or on a slab word that did not change from before to after
//! (a word's tag advances with every change). What never held still is counted
//! as not checked. Arrays and own lists of other threads' slots are not looked
//! into; their owners change them without a trace.

mod debug;
#[cfg(test)]
mod planted;
mod slabs;

pub(crate) use crate::walk::Seen;
pub(crate) use debug::report_remaining;

use crate::core::CacheCore;
use crate::debug::check::{DamageKind, Found};
use crate::debug::operation::{OnFault, Operation};
use crate::debug::track::Track;
use crate::engine::{self, Engine};

/// Findings told in full at most; more are counted.
pub const MOST: usize = 64;

/// Damaged bytes of a debug cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes {
    /// The object; 0xffff is the memory behind the last one.
    pub object: u16,
    /// The damaged part.
    pub part: DamageKind,
    /// The first wrong byte, counted from the object, or from the slab behind the last one.
    pub offset: isize,
    /// Bytes from the first to the last wrong one.
    pub len: usize,
    /// What each should be; `None` for a free pointer.
    pub expected: Option<u8>,
    /// The first bytes found instead.
    pub found: Found,
    /// Who allocated the object.
    pub allocated: Option<Track>,
    /// Who freed it.
    pub freed: Option<Track>,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Slabs on a node's partial list against its counter.
    PartialCount {
        /// Slabs found on the list.
        found: u32,
        /// What the counter says.
        counted: u32,
    },
    /// Links of the partial list do not fit each other.
    ListBroken,
    /// A slab on the list is not marked as being there, or one not there is.
    OnNodeFlag,
    /// A slab on the list belongs to another cache or node.
    ForeignSlab,
    /// A slab on a node's list is frozen.
    ListedFrozen,
    /// More objects in use than the slab has, or not as many objects as fit.
    Counts {
        /// In use by the word.
        inuse: u16,
        /// Objects by the word.
        objects: u16,
    },
    /// A link leads out of the slab.
    BadLink {
        /// The object whose link it is; 0xffff is the list's head.
        object: u16,
        /// Where it leads.
        link: u16,
    },
    /// An object is in the free list twice.
    Cycle {
        /// The object.
        object: u16,
    },
    /// Length of the free list against the counts.
    FreeCount {
        /// Objects found in the list.
        found: u16,
        /// Objects that should be there.
        counted: u16,
    },
    /// A page of the slab does not lead to it.
    PageMap {
        /// The page's number within the slab.
        page: u32,
    },
    /// Slabs found against the nodes' counters.
    SlabCount {
        /// Slabs found.
        found: u64,
        /// What the counters say.
        counted: u64,
    },
    /// A full array of a barn holds something that is no object of the cache.
    BarnObject,
    /// An object of a barn's array is also in its slab's free list.
    BarnObjectFree {
        /// The object.
        object: u16,
    },
    /// Bytes of a debug cache are damaged; they have been repaired.
    Bytes(Bytes),
}

/// One fault and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// Id of the cache.
    pub cache: u32,
    /// Node.
    pub node: u32,
    /// Address of the slab, or 0.
    pub slab: usize,
    /// The fault.
    pub fault: Fault,
}

/// What a validation found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation {
    /// Faults, up to [`MOST`].
    pub findings: Vec<Finding>,
    /// Faults beyond these.
    pub more: u64,
    /// Slabs looked at.
    pub slabs: u64,
    /// Slabs whose words did not hold still.
    pub unchecked: u64,
}

impl Validation {
    fn new() -> Self {
        // The room is taken now: under a lock nothing is allocated.
        Self {
            findings: Vec::with_capacity(MOST),
            more: 0,
            slabs: 0,
            unchecked: 0,
        }
    }

    fn tell(&mut self, finding: Finding) {
        if self.findings.len() < MOST {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// Nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl Engine {
    /// Checks all caches. What is damaged in debug caches is reported and repaired, too.
    pub fn validate(&self) -> Validation {
        let mut found = Validation::new();
        let mut op = Operation::new();
        // No cache is destroyed and no slot flushed meanwhile; operations go on.
        engine::with_registry(|| {
            let caches: Vec<&CacheCore> = self.core.caches().collect();
            for cache in &caches {
                debug::check_bytes(cache, &mut found, &mut op);
                for node in 0..self.core.nodes() {
                    slabs::check_list(cache, node, &mut found);
                    slabs::check_barn(cache, node, &mut found);
                }
            }
            slabs::check_all(self.core, &caches, &mut found);
        });
        op.send(self.core.config.report);
        if op.fault && self.core.config.on_fault == OnFault::Abort {
            std::process::abort();
        }
        found
    }
}
