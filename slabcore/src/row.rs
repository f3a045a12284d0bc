//! What one slot keeps of one cache: arrays, the slab in hand, lists, counters.
//!
//! Only the slot's owner writes a row, except for the wake queue, which has a
//! lock. Others may read single fields (all are atomics) but must not conclude
//! anything from two of them, unless two [`Row::stamp`]s around them are equal. All zero is a valid row that holds nothing: its
//! arrays have no capacity, so both fast paths leave it at once.

use crate::slot::MAX_SLOTS;
use crate::stats::{Stat, StatRow};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use crate::wake::WakeQueue;
use std::cell::UnsafeCell;
use std::sync::atomic::fence;

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
    /// Odd while more than a fast path changes the row or what it holds.
    changing: AtomicU32,
    /// Slabs of this slot that others have freed to.
    pub queue: Apart<WakeQueue>,
}

/// Rows that are always empty: no fast path works on them. In a cell, so that the linker puts them
/// where zeroes take no room in the file.
#[repr(align(128))]
#[expect(dead_code, reason = "read as rows")]
struct Blind(UnsafeCell<[u8; MAX_SLOTS as usize * size_of::<Row>()]>);

// SAFETY: nobody writes them.
unsafe impl Sync for Blind {}

static BLIND: Blind = Blind(UnsafeCell::new([0; MAX_SLOTS as usize * size_of::<Row>()]));

/// Address of rows for all slots that are always empty.
pub(crate) const fn blind() -> *const Row {
    (&raw const BLIND).cast()
}

/// What a row looked like: two equal stamps mean that it did not change in between.
///
/// A fast path changes one place and one number and counts itself; everything else
/// happens between two changes of `changing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    changing: u32,
    fast: [u64; 2],
    pub n: u32,
    pub spare_n: u32,
    pub main: usize,
    pub spare: usize,
    pub slab: u32,
    pub head: u16,
}

impl Stamp {
    /// That of a row which no thread has used.
    pub const UNUSED: Self = Self {
        changing: 0,
        fast: [0; 2],
        n: 0,
        spare_n: 0,
        main: 0,
        spare: 0,
        slab: 0,
        head: crate::slab::NONE,
    };
}

/// The row is being changed until this is dropped.
pub(crate) struct Changing<'r>(Option<&'r Row>);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if let Some(row) = self.0 {
            let now = row.changing.load(Relaxed);
            row.changing.store(now.wrapping_add(1), Ordering::Release);
        }
    }
}

/// On cache lines of its own, because other threads write it.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Apart<T>(pub T);

#[cfg(not(shuttle))]
crate::segment::layout::fields!(Row, "row": n, cap, main, head, bytes, base, stats, slab, spare, spare_n,
    partial, nr_partial, full, nr_full, changing);

impl Row {
    #[inline(always)]
    pub fn inc(&self, stat: Stat) {
        self.stats.add(stat, 1);
    }

    /// The owner begins to change the row; inside of another change that goes on.
    #[inline]
    pub fn change(&self) -> Changing<'_> {
        let now = self.changing.load(Relaxed);
        if now % 2 == 1 {
            return Changing(None);
        }
        self.changing.store(now.wrapping_add(1), Relaxed);
        fence(Ordering::Release);
        Changing(Some(self))
    }

    /// What the row looks like; `None` while it is being changed.
    pub fn stamp(&self) -> Option<Stamp> {
        // What was read before is not to be read after.
        fence(Ordering::Acquire);
        let changing = self.changing.load(Ordering::Acquire);
        let fast = [Stat::AllocFastpath, Stat::FreeFastpath];
        changing.is_multiple_of(2).then(|| Stamp {
            changing,
            fast: fast.map(|stat| self.stats.get(stat)),
            n: self.n.load(Relaxed),
            spare_n: self.spare_n.load(Relaxed),
            main: self.main.load(Relaxed),
            spare: self.spare.load(Relaxed),
            slab: self.slab.load(Relaxed),
            head: self.head(),
        })
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
    fn a_stamp_shows_every_change() {
        // SAFETY: as above.
        let row: Row = unsafe { std::mem::zeroed() };
        let first = row.stamp().unwrap();
        assert_eq!(first, Stamp::UNUSED);
        assert_eq!(row.stamp(), Some(first));
        let outer = row.change();
        assert_eq!(row.stamp(), None);
        drop(row.change());
        assert_eq!(row.stamp(), None, "the outer change goes on");
        drop(outer);
        let second = row.stamp().unwrap();
        assert_ne!(second, first);
        row.inc(Stat::FreeFastpath);
        assert_ne!(row.stamp(), Some(second));
    }

    #[test]
    fn the_fast_counters_are_on_the_first_line() {
        assert!(std::mem::offset_of!(Row, stats) + 2 * 8 <= 64);
    }
}
