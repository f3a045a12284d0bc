//! What one slot keeps of one cache: arrays, the slab in hand, lists, counters.
//!
//! Only the slot's owner writes a row, except for the wake queue, which has a
//! lock. Others may read single fields (all are atomics) but must not conclude
//! anything from two of them. All zero is a valid row that holds nothing: its
//! arrays have no capacity, so both fast paths leave it at once.

use crate::stats::{Stat, StatRow};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::wake::WakeQueue;

/// A row.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Row {
    /// Objects in the main array.
    pub n: AtomicU32,
    /// Objects the main array can hold; 0 while there is none.
    pub cap: AtomicU32,
    /// Address of the main array.
    pub main: AtomicUsize,
    /// First object of the own free list of the slab in hand, inverted: 0 is none.
    head: AtomicU32,
    /// Bytes of the slab in hand that hold objects; 0 without one, and for hybrid.
    bytes: AtomicU32,
    /// Address of the slab in hand, with `bytes`.
    base: AtomicUsize,
    /// Counters; the two fast ones share the first cache line.
    pub stats: StatRow,
    /// The slab in hand.
    pub slab: AtomicU32,
    /// Address of the second array.
    pub spare: AtomicUsize,
    /// Objects in it.
    pub spare_n: AtomicU32,
    /// First slab of the slot's list of partial slabs.
    pub partial: AtomicU32,
    /// Slabs on it.
    pub nr_partial: AtomicU32,
    /// First slab of the slot's list of full slabs (hybrid).
    pub full: AtomicU32,
    /// Slabs on it.
    pub nr_full: AtomicU32,
    /// The fewest slabs on the list of partial ones since `aged`.
    pub low: AtomicU32,
    /// When the row was last looked through for slabs that it does not need, in milliseconds.
    pub aged: AtomicU64,
    /// The request to shrink that this row has followed.
    pub epoch: AtomicU32,
    /// Slabs of this slot that others have freed to.
    pub queue: Apart<WakeQueue>,
}

/// On cache lines of its own, because other threads write it.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Apart<T>(pub T);

impl Row {
    #[inline(always)]
    pub fn inc(&self, stat: Stat) {
        self.stats.add(stat, 1);
    }

    /// First object of the own free list.
    #[inline(always)]
    pub fn head(&self) -> u16 {
        !(self.head.load(Relaxed) as u16)
    }

    /// Sets it.
    #[inline(always)]
    pub fn set_head(&self, object: u16) {
        self.head.store(u32::from(!object), Relaxed);
    }

    /// Makes a slab the one in hand, with the own free list beginning at `head`.
    pub fn set_in_hand(&self, slab: u32, base: usize, bytes: usize, head: u16) {
        self.slab.store(slab, Relaxed);
        self.base.store(base, Relaxed);
        self.bytes.store(bytes as u32, Relaxed);
        self.set_head(head);
    }

    /// Address of an object of the slab in hand.
    #[inline(always)]
    pub fn address(&self, object: u16, size: u32) -> usize {
        self.base.load(Relaxed) + usize::from(object) * size as usize
    }

    /// Offset of an address in the slab in hand, if it is in there.
    #[inline(always)]
    pub fn offset_in_hand(&self, address: usize) -> Option<u64> {
        let offset = address.wrapping_sub(self.base.load(Relaxed));
        (offset < self.bytes.load(Relaxed) as usize).then_some(offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::NONE;

    #[test]
    fn a_zero_row_holds_nothing() {
        // SAFETY: a row consists of atomics and locks, for which zero is valid.
        let row: Row = unsafe { std::mem::zeroed() };
        assert!(row.head() == NONE && row.queue.0.is_empty());
        assert_eq!(row.offset_in_hand(0), None);
        row.set_head(0);
        assert_eq!(row.head(), 0);
        row.set_head(NONE);
        assert_eq!(row.head(), NONE);
    }

    #[test]
    fn the_fast_counters_are_on_the_first_line() {
        assert!(std::mem::offset_of!(Row, stats) + 2 * 8 <= 64);
    }
}
