//! A limit on what one look reads, so that no process can keep a reader busy for ever.

use super::memory::{Memory, Part};
use std::cell::Cell;

/// Bytes that one look reads at most: the descriptors of a terabyte of slabs.
const MOST: u64 = 16 << 30;
/// What a piece costs at least.
const LEAST: u64 = 256;

/// Memory, and how much of it may still be read.
#[derive(Debug)]
pub(super) struct Budget<M> {
    memory: M,
    left: Cell<u64>,
}

impl<M> Budget<M> {
    pub const fn new(memory: M) -> Self {
        Self {
            memory,
            left: Cell::new(MOST),
        }
    }

    /// A new look begins.
    pub fn renew(&self) {
        self.left.set(MOST);
    }

    /// The look came to its limit.
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    pub const fn inner(&self) -> &M {
        &self.memory
    }
}

impl<M: Memory> Memory for Budget<M> {
    fn read(&self, parts: &mut [Part<'_>]) {
        let cost = parts.iter().map(|part| LEAST.max(part.into.len() as u64));
        let left = self.left.get().saturating_sub(cost.sum());
        self.left.set(left);
        if left > 0 {
            self.memory.read(parts);
        }
    }

    fn is_live(&self) -> bool {
        self.memory.is_live()
    }
}
