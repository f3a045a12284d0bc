//! Event counters: one row for each slot and cache, written by the slot's owner only.
//!
//! Names are those of `enum stat_item` in mm/slub.c (6.12, and 7.0 for sheaves),
//! and a few of the engine's own. Difference to the kernel: `alloc_fastpath` +
//! `alloc_slowpath` counts every object handed out exactly once and the two
//! free counters every object taken back exactly once, so their difference is
//! the number of live objects. Objects moved between arrays and slabs are not
//! counted there.

use crate::sync::{AtomicU64, Ordering::Relaxed};

macro_rules! stats {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal),* $(,)?) => {
        /// An event that is counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Stat { $($(#[doc = $doc])* $variant),* }

        impl Stat {
            /// All events, in the order of a row.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name, as in the kernel's attribute where there is one.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// What is counted, in one line.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*)),* }
            }
        }
    };
}

stats! {
    /// Allocations from the slot's own list or array.
    AllocFastpath = "alloc_fastpath",
    /// Frees to the slot's own list or array.
    FreeFastpath = "free_fastpath",
    /// Allocations that needed more.
    AllocSlowpath = "alloc_slowpath",
    /// Frees that needed more.
    FreeSlowpath = "free_slowpath",
    /// Frees into a slab that a slot holds.
    FreeFrozen = "free_frozen",
    /// Frees that put a full slab on the node's list.
    FreeAddPartial = "free_add_partial",
    /// Frees that took an empty slab off the node's list.
    FreeRemovePartial = "free_remove_partial",
    /// Slabs taken from the node's list to allocate from.
    AllocFromPartial = "alloc_from_partial",
    /// New slabs.
    AllocSlab = "alloc_slab",
    /// Slabs in hand of which the word's list was taken again.
    AllocRefill = "alloc_refill",
    /// Slabs given back to the page allocator.
    FreeSlab = "free_slab",
    /// Slabs in hand flushed because of shrinking, exit or destruction.
    CpuslabFlush = "cpuslab_flush",
    /// Slabs let go when all objects were in use.
    DeactivateFull = "deactivate_full",
    /// Slabs let go when no object was in use, and discarded.
    DeactivateEmpty = "deactivate_empty",
    /// Slabs let go to the head of the node's list.
    DeactivateToHead = "deactivate_to_head",
    /// Slabs let go to the tail of the node's list.
    DeactivateToTail = "deactivate_to_tail",
    /// Slabs made with the smaller order.
    OrderFallback = "order_fallback",
    /// Changes of a slab word that lost against another thread and were repeated.
    CmpxchgDoubleFail = "cmpxchg_double_fail",
    /// Slabs taken from the slot's partial list.
    CpuPartialAlloc = "cpu_partial_alloc",
    /// Slabs put on the slot's partial list by a free.
    CpuPartialFree = "cpu_partial_free",
    /// Slabs moved from the node's to the slot's partial list.
    CpuPartialNode = "cpu_partial_node",
    /// Times the slot's partial list was moved to the node.
    CpuPartialDrain = "cpu_partial_drain",
    /// Objects flushed from arrays to slabs.
    SheafFlush = "sheaf_flush",
    /// Objects filled from slabs into arrays.
    SheafRefill = "sheaf_refill",
    /// Arrays made.
    SheafAlloc = "sheaf_alloc",
    /// Arrays given up.
    SheafFree = "sheaf_free",
    /// Full arrays got from the barn.
    BarnGet = "barn_get",
    /// Times the barn had no full array.
    BarnGetFail = "barn_get_fail",
    /// Full arrays put into the barn.
    BarnPut = "barn_put",
    /// Times the barn took none.
    BarnPutFail = "barn_put_fail",
    /// Slabs frozen: taken to be held by a slot.
    Freeze = "freeze",
    /// Slabs thawed: let go by a slot.
    Thaw = "thaw",
    /// Runs of objects freed to a slab of another slot.
    RemoteFree = "remote_free",
    /// Owners told of a full slab that has free objects again.
    RemoteWake = "remote_wake",
    /// Locked instructions on slow paths: changes of slab words and locks taken.
    AtomicOps = "atomic_ops",
    /// Times a node's list lock was taken. Counted by the lock: not told of single slots.
    ListLock = "list_lock",
    /// Times a thread had to wait for it.
    ListLockContended = "list_lock_contended",
    /// Allocations that failed.
    AllocFailed = "alloc_failed",
}

/// Number of counters.
pub const STATS: usize = Stat::ALL.len();

/// Sums or a row of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters([u64; STATS]);

impl Default for Counters {
    fn default() -> Self {
        Self([0; STATS])
    }
}

impl Counters {
    /// One counter.
    pub const fn get(&self, stat: Stat) -> u64 {
        self.0[stat as usize]
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Stat::ALL.iter().map(|stat| (stat.name(), self.get(*stat)))
    }

    /// Objects handed out so far.
    pub const fn allocs(&self) -> u64 {
        self.get(Stat::AllocFastpath)
            .wrapping_add(self.get(Stat::AllocSlowpath))
    }

    /// Objects taken back so far.
    pub const fn frees(&self) -> u64 {
        self.get(Stat::FreeFastpath)
            .wrapping_add(self.get(Stat::FreeSlowpath))
    }

    /// Objects in use; exact when no thread is in an operation.
    pub const fn live(&self) -> u64 {
        self.allocs().saturating_sub(self.frees())
    }

    /// Adds what another process has counted, whatever that is.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) const fn add_wrapping(&mut self, stat: Stat, n: u64) {
        self.0[stat as usize] = self.0[stat as usize].wrapping_add(n);
    }

    /// Adds another process's sums.
    #[cfg(not(any(loom, shuttle)))]
    pub fn add_all(&mut self, other: &Self) {
        for (sum, n) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(n);
        }
    }

    /// Adds to a counter that is not kept in rows.
    pub(crate) const fn add(&mut self, stat: Stat, n: u64) {
        self.0[stat as usize] += n;
    }

    pub(crate) fn add_row(&mut self, row: &StatRow) {
        for (sum, counter) in self.0.iter_mut().zip(&row.0) {
            *sum += counter.load(Relaxed);
        }
    }
}

/// Counters of one slot and cache.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct StatRow([AtomicU64; STATS]);

impl StatRow {
    /// Adds to a counter; the caller owns the row, so no locked instruction is needed.
    #[inline(always)]
    pub fn add(&self, stat: Stat, n: u64) {
        let counter = &self.0[stat as usize];
        counter.store(counter.load(Relaxed) + n, Relaxed);
    }

    /// One counter.
    pub fn get(&self, stat: Stat) -> u64 {
        self.0[stat as usize].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_row_order() {
        let names: std::collections::BTreeSet<_> = Stat::ALL.iter().map(|s| s.name()).collect();
        assert_eq!(names.len(), STATS);
        assert!(Stat::ALL.iter().enumerate().all(|(i, s)| *s as usize == i));
    }
}
