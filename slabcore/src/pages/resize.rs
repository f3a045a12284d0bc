//! A run gets another order where it is: free runs behind it join it, or its end becomes free.
//!
//! What it does not do: move anything, or look before the run.

use super::runs::{DIRTY, HUGE_ORDER, ORDERS, pack, state, unpack};
use super::{Decommit, Pages, Range};
use crate::slab::{NIL, Table};
use crate::sync::{Guard, Ordering::Relaxed};

/// The runs that a run of one order and one of another, larger one differ by.
fn between(page: u32, from: u32, to: u32) -> impl Iterator<Item = (u32, u32)> {
    (from..to).map(move |order| (page + (1 << order), order))
}

impl Pages {
    /// Gives a run in use another order; false, and nothing is different, where it cannot grow.
    ///
    /// # Safety
    /// The run came from [`Pages::alloc`] and is the caller's; nobody uses what is cut off.
    pub unsafe fn resize(&self, page: u32, order: u32) -> bool {
        let (_, before) = unpack(self.desc(page).run.load(Relaxed));
        if order > before {
            return self.extend(page, before, order);
        }
        // SAFETY: by the contract.
        unsafe { self.cut(page, before, order) };
        true
    }

    fn extend(&self, page: u32, before: u32, order: u32) -> bool {
        let (range, _) = self.range_of(page);
        if order > range.order().min(ORDERS as u32 - 1) || !page.is_multiple_of(1 << order) {
            return false;
        }
        let held = self.lock.lock();
        let used = self.used.load(Relaxed) + (1 << order) - (1 << before);
        let mut behind = between(page, before, order);
        if used > self.limit.load(Relaxed)
            || !behind.all(|(page, order)| self.is_free(&held, range, page, order))
        {
            return false;
        }
        for (page, _) in between(page, before, order) {
            self.unlink(&held, page);
        }
        self.used.store(used, Relaxed);
        self.peak.fetch_max(used, Relaxed);
        self.set(page, order, page + (1 << before)..page + (1 << order), page);
        true
    }

    /// Whether a run is on a free list; pages that were never used come to one.
    fn is_free(&self, held: &Guard<'_>, range: &Range, page: u32, order: u32) -> bool {
        // The frontier is at a multiple of a huge page, so smaller runs are not beyond it.
        if page >= range.frontier() {
            if order < HUGE_ORDER || range.grow(order).is_none() {
                return false;
            }
            self.put(held, page, order, 0);
        }
        unpack(self.desc(page).run.load(Relaxed)) == (state::FREE, order)
    }

    /// # Safety
    /// As [`Pages::resize`].
    unsafe fn cut(&self, page: u32, before: u32, order: u32) {
        let mut dirty = DIRTY;
        if self.decommit == Decommit::Immediate {
            dirty = 0;
            for (page, order) in between(page, order, before) {
                // SAFETY: by the contract unused, and the caller's until it is on a free list.
                dirty |= unsafe { self.give_back(page, order) };
            }
        }
        let held = self.lock.lock();
        let freed = (1 << before) - (1 << order);
        self.used.store(self.used.load(Relaxed) - freed, Relaxed);
        self.set(page, order, page + (1 << order)..page + (1 << before), NIL);
        for (page, order) in between(page, order, before) {
            self.put(&held, page, order, dirty);
        }
        drop(held);
        self.tick_if_due();
    }

    /// Sets the order of a run, and what the map has for some pages. The page lock is held.
    fn set(&self, page: u32, order: u32, changed: std::ops::Range<u32>, head: u32) {
        let run = &self.desc(page).run;
        run.store(pack(unpack(run.load(Relaxed)).0, order, 0), Relaxed);
        for page in changed {
            self.head_entry(page).store(head, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::PAGE;
    use std::collections::BTreeMap;

    fn pages(limit: u64, decommit: Decommit) -> Pages {
        Pages::new(64 << 20, limit, decommit, false).unwrap()
    }

    fn get(pages: &Pages, order: u32, room: u32) -> u32 {
        let run = pages.alloc_with_room(order, room, state::LARGE, |_| ());
        run.unwrap().page
    }

    fn resize(pages: &Pages, page: u32, order: u32) -> bool {
        // SAFETY: the tests use only runs that are theirs.
        unsafe { pages.resize(page, order) }
    }

    fn free(pages: &Pages, page: u32) {
        // SAFETY: the tests free each run once and do not use it afterwards.
        unsafe { pages.free(page, || ()) };
    }

    #[test]
    fn a_run_with_room_grows_where_it_is_to_the_end_of_the_room() {
        let pages = pages(u64::MAX, Decommit::AfterMs(u64::MAX));
        let page = get(&pages, 4, 7);
        for order in [5, 8, 10] {
            assert!(resize(&pages, page, order), "{order}");
            assert_eq!(pages.run_bytes(page), PAGE << order);
            assert_eq!(pages.bytes()[1], (PAGE << order) as u64);
            let last = pages.address(page) + (PAGE << order) - 1;
            assert_eq!(pages.run_of(last).0, page);
            // SAFETY: the run is this test's.
            unsafe { (last as *mut u8).write(1) };
        }
        let behind = get(&pages, 10, 0);
        assert_eq!(behind, page + (1 << 10));
        assert!(!resize(&pages, page, 11), "somebody is there");
        free(&pages, behind);
        assert!(
            resize(&pages, page, 11) && !resize(&pages, page, 12),
            "what lies before is not looked at"
        );
        free(&pages, page);
        assert_eq!(pages.bytes()[1], 0);
        // SAFETY: nothing of the range is used any more.
        unsafe { pages.release() };
    }

    #[test]
    fn a_run_grows_into_pages_that_were_never_used() {
        let pages = pages(u64::MAX, Decommit::Immediate);
        let runs = [get(&pages, 12, 0), get(&pages, 12, 0)];
        let last = runs[1];
        assert_eq!((last % (1 << 13), pages.frontier()), (0, last + (1 << 12)));
        assert!(resize(&pages, last, 13));
        assert_eq!(pages.frontier(), last + (1 << 13));
        // SAFETY: the run is this test's.
        unsafe { (pages.address(last) as *mut u8).write_bytes(1, PAGE << 13) };
        assert!(!resize(&pages, last, 14), "the range ends there");
        for page in runs {
            free(&pages, page);
        }
        assert_eq!(pages.bytes()[1], 0);
        // SAFETY: nothing of the range is used any more.
        unsafe { pages.release() };
    }

    #[test]
    fn the_limit_holds_for_what_grows() {
        let pages = pages(12 * PAGE as u64, Decommit::Immediate);
        let page = get(&pages, 2, 3);
        assert!(resize(&pages, page, 3) && !resize(&pages, page, 4));
        assert_eq!(pages.bytes()[1], 8 * PAGE as u64);
        free(&pages, page);
        // SAFETY: nothing of the range is used any more.
        unsafe { pages.release() };
    }

    #[test]
    fn what_is_cut_off_is_free_and_goes_back() {
        for decommit in [Decommit::Immediate, Decommit::AfterMs(u64::MAX)] {
            let pages = pages(u64::MAX, decommit);
            let page = get(&pages, 9, 0);
            let at = pages.address(page) as *mut u8;
            // SAFETY: the run is this test's.
            unsafe { at.write_bytes(7, PAGE << 9) };
            assert!(resize(&pages, page, 2));
            assert_eq!(pages.bytes()[1], 4 * PAGE as u64);
            assert_eq!(pages.run_of(at as usize + (PAGE << 2)).0, NIL);
            let ticked = pages.tick() + pages.tick();
            assert_eq!(ticked > 0, decommit != Decommit::Immediate);
            let again = pages.alloc(8, state::LARGE, |_| ()).unwrap();
            assert_eq!((again.page, again.clean), (page + (1 << 8), true));
            // SAFETY: both runs are this test's.
            unsafe {
                assert_eq!(at.add((PAGE << 2) - 1).read(), 7);
                assert_eq!(at.add(PAGE << 8).read(), 0);
            }
            free(&pages, page);
            free(&pages, again.page);
            assert_eq!(get(&pages, 9, 0), page, "all are one again");
            // SAFETY: nothing of the range is used any more.
            unsafe { pages.release() };
        }
    }

    #[test]
    fn runs_that_come_go_and_change_never_share_a_page() {
        let pages = pages(48 << 20, Decommit::Immediate);
        let mut runs = BTreeMap::new();
        let mut seed = 7u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % n
        };
        let mut grown = 0;
        for _ in 0..6000 {
            let (order, room) = (next(11) as u32, next(4) as u32);
            let run = runs.keys().nth(next(40) as usize).copied();
            match (next(3), run) {
                (0, Some(page)) => {
                    free(&pages, page);
                    runs.remove(&page);
                }
                (1, Some(page)) => {
                    if resize(&pages, page, order) {
                        grown += u32::from(runs[&page] < order);
                        runs.insert(page, order);
                    }
                }
                _ => {
                    if let Some(run) = pages.alloc_with_room(order, room, state::LARGE, |_| ()) {
                        assert_eq!(runs.insert(run.page, order), None);
                    }
                }
            }
            let used: u64 = runs.values().map(|order| (PAGE as u64) << order).sum();
            assert_eq!(pages.bytes()[1], used);
            let mut end = 0;
            for (page, order) in &runs {
                assert!(*page >= end && page.is_multiple_of(1 << order));
                end = page + (1 << order);
            }
        }
        assert!(grown > 100, "{grown}");
        assert!(pages.heads().eq(runs.keys().copied()));
        for (page, order) in &runs {
            let run = *page..page + (1 << order);
            assert!({ run }.all(|of| pages.head_entry(of).load(Relaxed) == *page));
            free(&pages, *page);
        }
        assert_eq!((pages.bytes()[1], pages.heads().count()), (0, 0));
        // SAFETY: nothing of the ranges is used any more.
        unsafe { pages.release() };
    }
}
