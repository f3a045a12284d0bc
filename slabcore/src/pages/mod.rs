//! Page runs: one reserved range of addresses, a descriptor and a map entry for each page.
//!
//! Descriptors and map are out of band and touched lazily, so a pointer is
//! classified without reading what it points to. Page 0 of the range is never
//! handed out: index 0 means "none". How runs are found is in `runs`, how
//! their memory goes back in `decommit`.
//!
//! It does not grow by further ranges: when the range is used up, allocation fails.

mod decommit;
mod runs;
#[cfg(test)]
mod tests;

pub use decommit::Decommit;
pub use runs::{Run, state, unpack};

use crate::slab::{Desc, NIL, Table};
use crate::sync::{AtomicU32, AtomicU64, Lock, Ordering::Relaxed};
use crate::sys::{self, HUGE, PAGE};
use runs::ORDERS;

/// The smallest range worth having.
const SMALLEST: usize = 16 << 20;

/// The range and what is known of its pages.
#[derive(Debug)]
pub struct Pages {
    base: usize,
    count: u32,
    descs: usize,
    map: usize,
    /// Protects free lists, frontier, `Desc::run`, `Desc::cache` and slab totals.
    pub lock: Lock,
    frontier: AtomicU32,
    committed: AtomicU32,
    /// Clean runs by order, then dirty ones: memory that is warm is used first.
    free: [AtomicU32; 2 * ORDERS],
    used: AtomicU64,
    peak: AtomicU64,
    limit: AtomicU64,
    failed: AtomicU64,
    decommitted: AtomicU64,
    decommit: Decommit,
    last_tick: AtomicU64,
}

impl Table for Pages {
    #[inline]
    fn desc(&self, index: u32) -> &Desc {
        debug_assert!(index < self.count);
        // SAFETY: `descs` maps `pages` zeroed descriptors, valid as they are, for as long as
        // `self` lives; indices come from descriptors and the map, which hold pages of the range.
        unsafe { &*(self.descs as *const Desc).add(index as usize) }
    }
}

impl Pages {
    /// Reserves a range of up to `bytes`; less when the system refuses, `None` below 16 MiB.
    pub fn new(bytes: usize, limit: u64, decommit: Decommit) -> Option<Self> {
        let mut bytes = bytes.clamp(SMALLEST, 1 << 43);
        if let Some(limit) = sys::address_limit() {
            bytes = bytes.min(limit / 2);
        }
        let mut bytes = 1 << bytes.max(SMALLEST).ilog2();
        while bytes >= SMALLEST {
            if let Some(pages) = Self::reserve(bytes, limit, decommit) {
                return Some(pages);
            }
            bytes /= 2;
        }
        None
    }

    fn reserve(bytes: usize, limit: u64, decommit: Decommit) -> Option<Self> {
        let pages = bytes / PAGE;
        let base = sys::reserve(bytes, HUGE);
        let descs = sys::map_lazy(pages * size_of::<Desc>());
        let map = sys::map_lazy(pages * size_of::<u32>());
        let made = Self {
            base,
            count: u32::try_from(pages).ok()?,
            descs,
            map,
            lock: Lock::new(),
            frontier: AtomicU32::new((HUGE / PAGE) as u32),
            committed: AtomicU32::new((HUGE / PAGE) as u32),
            free: [const { AtomicU32::new(NIL) }; 2 * ORDERS],
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            limit: AtomicU64::new(limit / PAGE as u64),
            failed: AtomicU64::new(0),
            decommitted: AtomicU64::new(0),
            decommit,
            last_tick: AtomicU64::new(0),
        };
        if base != 0 && descs != 0 && map != 0 {
            return Some(made);
        }
        // SAFETY: nothing of the new mappings is in use.
        unsafe { made.release() };
        None
    }

    /// Unmaps everything.
    ///
    /// # Safety
    /// No object, descriptor or map entry is used any more.
    pub unsafe fn release(&self) {
        // SAFETY: these are the mappings made in `reserve`, unused by the contract.
        unsafe {
            sys::unmap(self.base, self.count as usize * PAGE);
            sys::unmap(self.descs, self.count as usize * size_of::<Desc>());
            sys::unmap(self.map, self.count as usize * size_of::<u32>());
        }
    }

    /// Address of a page.
    #[inline]
    pub fn address(&self, page: u32) -> usize {
        self.base + page as usize * PAGE
    }

    /// The page of an address of the range.
    #[inline]
    pub fn page_of(&self, address: usize) -> Option<u32> {
        let page = address.wrapping_sub(self.base) / PAGE;
        (page < self.count as usize).then_some(page as u32)
    }

    /// First page of the run that an address of the range is in; [`NIL`] if in none.
    ///
    /// The address must be of the range.
    #[inline]
    pub fn head_of(&self, address: usize) -> u32 {
        self.head_entry(((address - self.base) / PAGE) as u32)
            .load(Relaxed)
    }

    /// Bytes of the run that begins at a page.
    pub fn run_bytes(&self, page: u32) -> usize {
        PAGE << unpack(self.desc(page).run.load(Relaxed)).1
    }

    /// The map entry of a page.
    #[inline]
    pub fn head_entry(&self, page: u32) -> &AtomicU32 {
        debug_assert!(page < self.count);
        // SAFETY: `map` maps one zeroed entry for each page, and `page` is of the range.
        unsafe { &*(self.map as *const AtomicU32).add(page as usize) }
    }

    /// Pages from 0 to here have been handed out at some time.
    pub fn frontier(&self) -> u32 {
        self.frontier.load(Relaxed)
    }

    /// Bytes reserved, in use, highest in use, and given back so far.
    pub fn bytes(&self) -> [u64; 4] {
        let of = |n: &AtomicU64| n.load(Relaxed) * PAGE as u64;
        [
            u64::from(self.count) * PAGE as u64,
            of(&self.used),
            of(&self.peak),
            of(&self.decommitted),
        ]
    }

    /// Allocations refused.
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Changes the limit.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes / PAGE as u64, Relaxed);
    }
}
