//! Runs of 2^order pages, aligned to their size within the range.
//!
//! They come from one free list per order, are split when a larger one is at
//! hand and merged with their buddy when freed.

use super::{Decommit, Pages};
use crate::slab::{NIL, Table};
use crate::sync::{AtomicU32, Guard, Ordering::Relaxed};
use crate::sys::{HUGE, PAGE};

/// Orders of runs: up to 2^(ORDERS-1) pages.
pub(super) const ORDERS: usize = 24;
/// Order of a huge page.
pub(super) const HUGE_ORDER: u32 = (HUGE / PAGE).trailing_zeros();

/// Order of the largest run that is taken so that what is in it may grow: 64 MiB. More would count
/// where the system limits what is promised.
const WIDEST: u32 = 14;

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

pub(super) const DIRTY: u32 = 1 << 16;
pub(super) const AGED: u32 = 1 << 17;

/// A page run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Index of its first page.
    pub page: u32,
    /// Its pages read as zeroes.
    pub clean: bool,
}

pub(super) fn pack(state: u32, order: u32, flags: u32) -> u32 {
    state | order << 8 | flags
}

/// State and order of a run.
pub fn unpack(run: u32) -> (u32, u32) {
    (run & 0xff, run >> 8 & 0xff)
}

impl Pages {
    /// A run of 2^order pages in the given state; `publish` runs under the page lock.
    pub fn alloc(&self, order: u32, as_state: u32, publish: impl FnOnce(Run)) -> Option<Run> {
        self.alloc_with_room(order, 0, as_state, publish)
    }

    /// As [`Pages::alloc`], at the beginning of a free run of 2^(order + room) pages, if there is one.
    pub fn alloc_with_room(
        &self,
        order: u32,
        room: u32,
        as_state: u32,
        publish: impl FnOnce(Run),
    ) -> Option<Run> {
        let held = self.lock.lock();
        let count = 1u64.checked_shl(order)?;
        let used = self.used.load(Relaxed) + count;
        let run = if used > self.limit.load(Relaxed) || order as usize >= ORDERS {
            None
        } else {
            let wide = (order + room).min(WIDEST).max(order);
            (wide > order)
                .then(|| self.take_wide(&held, order, wide))
                .flatten()
                .or_else(|| self.take(&held, order))
                .map(|page| self.split(&held, page, order))
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

    pub(super) fn list(&self, order: u32, flags: u32) -> &AtomicU32 {
        let dirty = usize::from(flags & DIRTY != 0);
        &self.free[order as usize + dirty * ORDERS]
    }

    /// A free run of at least an order, after growing if needed.
    fn take(&self, held: &Guard<'_>, order: u32) -> Option<u32> {
        let orders = || order..ORDERS as u32;
        self.at_hand(orders(), DIRTY)
            .or_else(|| self.at_hand(orders(), 0))
            .or_else(|| {
                self.grow(held, order);
                self.at_hand(orders(), 0)
            })
    }

    /// The largest free run that was used before, or a fresh one of order `wide`, without more ranges.
    fn take_wide(&self, held: &Guard<'_>, order: u32, wide: u32) -> Option<u32> {
        let orders = || wide..ORDERS as u32;
        self.at_hand((order..ORDERS as u32).rev(), DIRTY)
            .or_else(|| self.at_hand(orders(), 0))
            .or_else(|| {
                self.grow_ranges(held, wide);
                self.at_hand(orders(), 0)
            })
    }

    /// Takes a run off its list; what is more than asked for goes back.
    fn split(&self, held: &Guard<'_>, page: u32, order: u32) -> Run {
        let run = self.desc(page).run.load(Relaxed);
        let (from, dirty) = (unpack(run).1, run & (DIRTY | AGED));
        self.unlink(held, page);
        for order in (order..from).rev() {
            self.link(held, page + (1 << order), order, dirty);
        }
        Run {
            page,
            clean: dirty == 0,
        }
    }

    /// The first run on the lists of some orders.
    fn at_hand(&self, mut orders: impl Iterator<Item = u32>, flags: u32) -> Option<u32> {
        orders.find_map(|order| {
            let page = self.list(order, flags).load(Relaxed);
            (page != NIL).then_some(page)
        })
    }

    /// Adds fresh pages for a run of `order` to the lists.
    fn grow(&self, held: &Guard<'_>, order: u32) {
        let order = order.max(HUGE_ORDER);
        if !self.grow_ranges(held, order)
            && let Some(grown) = self.add_range(order).and_then(|range| range.grow(order))
        {
            self.put_grown(held, grown, order);
        }
    }

    /// The same from the ranges that there are.
    fn grow_ranges(&self, held: &Guard<'_>, order: u32) -> bool {
        let order = order.max(HUGE_ORDER);
        let grown = self.ranges().find_map(|range| range.grow(order));
        grown
            .map(|grown| self.put_grown(held, grown, order))
            .is_some()
    }

    fn put_grown(&self, held: &Guard<'_>, (mut gap, page): (u32, u32), order: u32) {
        // What alignment skipped is free too, in the largest aligned pieces.
        while gap < page {
            let order = gap.trailing_zeros().min((page - gap).ilog2());
            self.put(held, gap, order, 0);
            gap += 1 << order;
        }
        self.put(held, page, order, 0);
    }

    /// Frees a run to the lists, merged with free buddies.
    pub(super) fn put(&self, held: &Guard<'_>, mut page: u32, mut order: u32, mut dirty: u32) {
        let (range, _) = self.range_of(page);
        while order < range.order().min(ORDERS as u32 - 1) {
            let buddy = page ^ (1 << order);
            if buddy >= range.frontier() {
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

    pub(super) fn unlink(&self, _held: &Guard<'_>, page: u32) {
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
