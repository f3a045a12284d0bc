//! Page runs: one reserved range of addresses, a descriptor and a map entry for each page.
//!
//! Runs of 2^order pages are aligned to their size within the range, come from
//! one free list per order, are split when a larger one is at hand and merged
//! with their buddy when freed. Descriptors and map are out of band and touched
//! lazily, so a pointer is classified without reading what it points to.
//! Page 0 of the range is never handed out: index 0 means "none".
//!
//! It does not grow by further ranges: when the range is used up, allocation fails.

use crate::slab::{Desc, NIL, Table};
use crate::sync::{AtomicU32, AtomicU64, Guard, Lock, Ordering, Ordering::Relaxed};
use crate::sys::{self, HUGE, PAGE};

/// Orders of runs: up to 2^(ORDERS-1) pages.
pub const ORDERS: usize = 24;
const HUGE_ORDER: u32 = (HUGE / PAGE).trailing_zeros();
/// The smallest range worth having.
const SMALLEST: usize = 16 << 20;

/// States of a run, in the low byte of `Desc::run`.
pub mod state {
    /// Part of another run, or never handed out.
    pub const NOTHING: u32 = 0;
    /// On a free list.
    pub const FREE: u32 = 1;
    /// A slab.
    pub const SLAB: u32 = 2;
    /// A large object.
    pub const LARGE: u32 = 3;
}

const DIRTY: u32 = 1 << 16;
const AGED: u32 = 1 << 17;
/// Runs given back between two looks at a list.
const AGED_AT_ONCE: usize = 256;

/// When the memory of freed runs goes back to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decommit {
    /// At once.
    Immediate,
    /// When a run has been free for this many milliseconds, looked at when
    /// another one is freed, and by `Engine::tick`.
    AfterMs(u64),
}

/// A page run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Index of its first page.
    pub page: u32,
    /// Its pages read as zeroes.
    pub clean: bool,
}

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

fn pack(state: u32, order: u32, flags: u32) -> u32 {
    state | order << 8 | flags
}

/// State and order of a run.
pub fn unpack(run: u32) -> (u32, u32) {
    (run & 0xff, run >> 8 & 0xff)
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

    /// A run of 2^order pages in the given state; `publish` runs under the page lock.
    pub fn alloc(&self, order: u32, as_state: u32, publish: impl FnOnce(Run)) -> Option<Run> {
        let held = self.lock.lock();
        let count = 1u64.checked_shl(order)?;
        let used = self.used.load(Relaxed) + count;
        let run = if used > self.limit.load(Relaxed) || order as usize >= ORDERS {
            None
        } else {
            self.take(&held, order)
        };
        let Some(run) = run else {
            self.failed.store(self.failed() + 1, Relaxed);
            return None;
        };
        self.used.store(used, Relaxed);
        self.peak.fetch_max(used, Relaxed);
        self.desc(run.page)
            .run
            .store(pack(as_state, order, 0), Relaxed);
        for page in run.page..run.page + count as u32 {
            self.head_entry(page).store(run.page, Relaxed);
        }
        publish(run);
        Some(run)
    }

    /// Frees a run; `retire` runs under the page lock, before it can be reused.
    ///
    /// # Safety
    /// The run came from [`Pages::alloc`] and nobody uses its memory any more.
    pub unsafe fn free(&self, page: u32, retire: impl FnOnce()) {
        let (_, order) = unpack(self.desc(page).run.load(Relaxed));
        let mut dirty = DIRTY;
        if self.decommit == Decommit::Immediate {
            // SAFETY: the run is the caller's until it is on a free list.
            dirty = unsafe { self.give_back(page, order) };
        }
        let held = self.lock.lock();
        retire();
        let count = 1u32 << order;
        for page in page..page + count {
            self.head_entry(page).store(NIL, Relaxed);
        }
        self.used
            .store(self.used.load(Relaxed) - u64::from(count), Relaxed);
        self.put(&held, page, order, dirty);
        drop(held);
        self.tick_if_due();
    }

    /// Ticks if the time has come.
    pub fn tick_if_due(&self) {
        if let Decommit::AfterMs(ms) = self.decommit {
            let now = sys::coarse_ms();
            let last = self.last_tick.load(Relaxed);
            if now.saturating_sub(last) >= ms.max(1)
                && self
                    .last_tick
                    .compare_exchange(last, now, Ordering::AcqRel, Relaxed)
                    .is_ok()
            {
                self.tick();
            }
        }
    }

    /// # Safety
    /// The run's memory is unused and the run is on no list.
    unsafe fn give_back(&self, page: u32, order: u32) -> u32 {
        // SAFETY: by the contract; the run is inside the committed part.
        if unsafe { sys::decommit(self.address(page), PAGE << order) } {
            self.decommitted.fetch_add(1 << order, Relaxed);
            0
        } else {
            DIRTY
        }
    }

    /// Gives back what was free already at the tick before; returns the number of pages.
    pub fn tick(&self) -> u64 {
        let before = self.decommitted.load(Relaxed);
        for order in 0..ORDERS as u32 {
            // Bounded: each turn makes aged runs clean, or finds none, or is refused.
            loop {
                let mut aged = [NIL; AGED_AT_ONCE];
                let n = self.take_aged(order, &mut aged);
                let mut refused = false;
                for page in &aged[..n] {
                    // SAFETY: the run was taken off its list and belongs to this call.
                    let dirty = unsafe { self.give_back(*page, order) };
                    refused |= dirty != 0;
                    let held = self.lock.lock();
                    self.put(&held, *page, order, dirty);
                }
                if n == 0 || refused {
                    break;
                }
            }
            let _held = self.lock.lock();
            let mut page = self.list(order, DIRTY).load(Relaxed);
            while page != NIL {
                let desc = self.desc(page);
                desc.run.store(desc.run.load(Relaxed) | AGED, Relaxed);
                page = desc.next.load(Relaxed);
            }
        }
        self.decommitted.load(Relaxed) - before
    }

    /// Takes aged runs off a list; gives their number.
    fn take_aged(&self, order: u32, out: &mut [u32; AGED_AT_ONCE]) -> usize {
        let held = self.lock.lock();
        let mut page = self.list(order, DIRTY).load(Relaxed);
        let mut n = 0;
        while page != NIL && n < AGED_AT_ONCE {
            let next = self.desc(page).next.load(Relaxed);
            if self.desc(page).run.load(Relaxed) & AGED != 0 {
                self.unlink(&held, page);
                out[n] = page;
                n += 1;
            }
            page = next;
        }
        n
    }

    fn list(&self, order: u32, flags: u32) -> &AtomicU32 {
        let dirty = usize::from(flags & DIRTY != 0);
        &self.free[order as usize + dirty * ORDERS]
    }

    /// Takes a run off the lists, splitting or growing as needed.
    fn take(&self, held: &Guard<'_>, order: u32) -> Option<Run> {
        let at_hand = |pages: &Self, flags| {
            (order..ORDERS as u32)
                .map(|order| pages.list(order, flags).load(Relaxed))
                .find(|page| *page != NIL)
        };
        let page = at_hand(self, DIRTY)
            .or_else(|| at_hand(self, 0))
            .or_else(|| {
                self.grow(held, order);
                at_hand(self, 0)
            })?;
        let run = self.desc(page).run.load(Relaxed);
        let (from, dirty) = (unpack(run).1, run & (DIRTY | AGED));
        self.unlink(held, page);
        for order in (order..from).rev() {
            self.link(held, page + (1 << order), order, dirty);
        }
        Some(Run {
            page,
            clean: dirty == 0,
        })
    }

    /// Adds fresh pages for a run of `order` to the lists.
    fn grow(&self, held: &Guard<'_>, order: u32) {
        let order = order.max(HUGE_ORDER);
        let size = 1u32 << order;
        let frontier = self.frontier();
        let Some(page) = frontier.checked_next_multiple_of(size) else {
            return;
        };
        let Some(end) = page.checked_add(size).filter(|end| *end <= self.count) else {
            return;
        };
        let committed = self.committed.load(Relaxed);
        let bytes = (end - committed) as usize * PAGE;
        if !sys::commit(self.address(committed), bytes) {
            return;
        }
        self.committed.store(end, Relaxed);
        self.frontier.store(end, Relaxed);
        // What alignment skipped is free too, in the largest aligned pieces.
        let mut gap = frontier;
        while gap < page {
            let order = gap.trailing_zeros().min((page - gap).ilog2());
            self.put(held, gap, order, 0);
            gap += 1 << order;
        }
        self.put(held, page, order, 0);
    }

    /// Frees a run to the lists, merged with free buddies.
    fn put(&self, held: &Guard<'_>, mut page: u32, mut order: u32, mut dirty: u32) {
        while (order as usize) < ORDERS - 1 {
            let buddy = page ^ (1 << order);
            if buddy >= self.frontier() {
                break;
            }
            let run = self.desc(buddy).run.load(Relaxed);
            if unpack(run) != (state::FREE, order) {
                break;
            }
            // Clean and dirty stay apart from 2 MiB on, so that large clean runs stay clean.
            if order >= HUGE_ORDER && (run & DIRTY != 0) != (dirty != 0) {
                break;
            }
            self.unlink(held, buddy);
            dirty |= run & DIRTY;
            self.desc(page.max(buddy))
                .run
                .store(state::NOTHING, Relaxed);
            page = page.min(buddy);
            order += 1;
        }
        self.link(held, page, order, dirty);
    }

    fn link(&self, _held: &Guard<'_>, page: u32, order: u32, flags: u32) {
        let list = self.list(order, flags);
        let first = list.load(Relaxed);
        let desc = self.desc(page);
        desc.run.store(pack(state::FREE, order, flags), Relaxed);
        desc.prev.store(NIL, Relaxed);
        desc.next.store(first, Relaxed);
        if first != NIL {
            self.desc(first).prev.store(page, Relaxed);
        }
        list.store(page, Relaxed);
    }

    fn unlink(&self, _held: &Guard<'_>, page: u32) {
        let desc = self.desc(page);
        let run = desc.run.load(Relaxed);
        let (prev, next) = (desc.prev.load(Relaxed), desc.next.load(Relaxed));
        match prev {
            NIL => self.list(unpack(run).1, run).store(next, Relaxed),
            _ => self.desc(prev).next.store(next, Relaxed),
        }
        if next != NIL {
            self.desc(next).prev.store(prev, Relaxed);
        }
        desc.run.store(state::NOTHING, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(limit: u64, decommit: Decommit) -> Pages {
        Pages::new(64 << 20, limit, decommit).unwrap()
    }

    fn free(pages: &Pages, page: u32) {
        // SAFETY: the tests free each run once and do not use it afterwards.
        unsafe { pages.free(page, || ()) };
    }

    #[test]
    fn runs_are_aligned_apart_and_reused() {
        let pages = pages(u64::MAX, Decommit::Immediate);
        let mut seen = std::collections::BTreeSet::new();
        let mut runs = vec![];
        for order in [0, 3, 0, 5, 9, 1, 10, 0] {
            let run = pages.alloc(order, state::LARGE, |_| ()).unwrap();
            assert_eq!(run.page % (1 << order), 0);
            assert!(run.page != NIL && run.clean);
            assert!((run.page..run.page + (1 << order)).all(|p| seen.insert(p)));
            runs.push(run.page);
        }
        let frontier = pages.frontier();
        for _ in 0..100 {
            runs.drain(..).for_each(|page| free(&pages, page));
            for order in [10, 9, 5, 3, 1, 0, 0, 0] {
                runs.push(pages.alloc(order, state::LARGE, |_| ()).unwrap().page);
            }
        }
        assert_eq!(pages.frontier(), frontier, "nothing leaks");
        // SAFETY: nothing of the range is used any more.
        unsafe { pages.release() };
    }

    #[test]
    fn the_limit_is_a_clean_counted_failure() {
        let pages = pages(3 * PAGE as u64, Decommit::Immediate);
        let one = pages.alloc(1, state::LARGE, |_| ()).unwrap();
        assert_eq!(pages.alloc(1, state::LARGE, |_| ()), None);
        assert!(pages.alloc(0, state::LARGE, |_| ()).is_some());
        assert_eq!(pages.alloc(60, state::LARGE, |_| ()), None);
        assert_eq!(pages.failed(), 2);
        free(&pages, one.page);
        assert!(pages.alloc(1, state::LARGE, |_| ()).is_some());
        // SAFETY: nothing of the range is used any more.
        unsafe { pages.release() };
    }

    #[test]
    fn a_used_up_range_fails_and_recovers() {
        let pages = pages(u64::MAX, Decommit::AfterMs(u64::MAX));
        let runs: Vec<_> = std::iter::from_fn(|| pages.alloc(8, state::LARGE, |_| ())).collect();
        assert_eq!(runs.len(), (64 - 2), "all but the first 2 MiB, in MiB");
        for run in &runs {
            free(&pages, run.page);
        }
        assert_eq!(pages.bytes()[1], 0);
        assert!(pages.alloc(12, state::LARGE, |_| ()).is_some());
        // SAFETY: nothing of the range is used any more.
        unsafe { pages.release() };
    }

    #[test]
    fn memory_goes_back_after_two_ticks_and_reads_as_zero() {
        let pages = pages(u64::MAX, Decommit::AfterMs(u64::MAX));
        let run = pages.alloc(2, state::LARGE, |_| ()).unwrap();
        let byte = pages.address(run.page) as *mut u8;
        // SAFETY: the run is this test's.
        unsafe { byte.write(7) };
        free(&pages, run.page);
        assert_eq!(pages.tick(), 0);
        assert!(pages.tick() >= 4);
        let run = pages.alloc(2, state::LARGE, |_| ()).unwrap();
        assert!(run.clean);
        // SAFETY: as above.
        assert_eq!(unsafe { (pages.address(run.page) as *const u8).read() }, 0);
        // SAFETY: nothing of the range is used any more.
        unsafe { pages.release() };
    }
}
