//! Structural checks that work while the program runs.
//!
//! Each finding is confirmed before it is told: under the lock that protects
//! what it is about, or on a slab word that did not change from before to after
//! (a word's tag advances with every change), or on rows of slots whose stamps did not.
//! What never held still is counted as not checked.
//!
//! The registry's lock is held for one cache, or some slabs, at a time: threads may end and
//! caches may go while a large engine is checked.

mod arrays;
mod debug;
#[cfg(test)]
mod planted;
mod slabs;

pub(crate) use crate::walk::Seen;
pub(crate) use debug::report_remaining;

use crate::debug::operation::{self, OnFault, Operation};
use crate::dump::{Marks, wanted};
use crate::engine::{self, Engine};
use crate::segment::{Event, event};
use crate::slab::NIL;
use crate::sync::Ordering::Relaxed;

pub use crate::finding::{Fault, Finding};

/// Findings told in full at most; more are counted.
pub const MOST: usize = 64;

/// What a validation found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation {
    /// Faults, up to [`MOST`].
    pub findings: Vec<Finding>,
    /// Faults beyond these.
    pub more: u64,
    /// Caches looked at.
    pub caches: u64,
    /// Slabs looked at.
    pub slabs: u64,
    /// Slabs whose words did not hold still.
    pub unchecked: u64,
    /// Caches whose arrays and own lists did not hold still.
    pub moving: u64,
    /// A look from outside came to its limit: what is beyond was not checked.
    pub cut: bool,
}

impl Validation {
    pub(crate) fn new() -> Self {
        // The room is taken now: under a lock nothing is allocated.
        Self {
            findings: Vec::with_capacity(MOST),
            more: 0,
            caches: 0,
            slabs: 0,
            unchecked: 0,
            moving: 0,
            cut: false,
        }
    }

    pub(crate) fn tell(&mut self, finding: Finding) {
        // One fault may be seen from two sides.
        if self.findings.contains(&finding) {
            return;
        }
        if self.findings.len() < MOST {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// Nothing is wrong, in all that there is.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && !self.cut
    }
}

impl Engine {
    /// Checks all caches. What is damaged in debug caches is reported and repaired, too.
    pub fn validate(&self) -> Validation {
        let core = self.core;
        let mut found = Validation::new();
        let mut op = Operation::new();
        let mut marks = Marks::default();
        for id in 0..core.nr_caches.load(Relaxed) {
            // Room is taken while no lock is held.
            let Some(room) = engine::with_registry(|| core.cache(id).map(wanted)) else {
                continue;
            };
            marks.reserve(room);
            // The cache is not destroyed and no slot flushed meanwhile; operations go on.
            engine::with_registry(|| {
                let Some(cache) = core.cache(id) else {
                    return;
                };
                found.caches += 1;
                debug::check_bytes(cache, &mut found, &mut op);
                for node in 0..core.nodes() {
                    slabs::check_list(cache, node, &mut found);
                    slabs::check_barn(cache, node, &mut found);
                }
                arrays::check(cache, &mut marks, &mut found);
            });
        }
        let mut next = Some(NIL);
        while let Some(page) = next {
            next = engine::with_registry(|| slabs::check_some(core, page, &mut found));
        }
        engine::with_registry(|| slabs::check_counts(core, &mut found));
        op.send(core.config.report);
        let numbers = [found.findings.len() as u64, found.slabs];
        event(Event::Validate, 0, numbers);
        if op.fault && core.config.on_fault == OnFault::Abort {
            operation::stop();
        }
        found
    }
}
