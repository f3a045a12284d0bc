//! Page runs: ranges of addresses, a descriptor and a map entry for each page.
//!
//! Descriptors and map are out of band and touched lazily, so a pointer is
//! classified without reading what it points to. How runs are found is in
//! `runs`, how their memory goes back in `decommit`.
//!
//! One range is reserved when the engine is made, as large as was asked for or
//! as the system grants, and with a limit on the process's addresses only a part
//! of what that allows. When it is used up, further ones follow, as large as all
//! before. Pages have consecutive numbers within a range; number 0 means "none".
//! With one range a page's place is a sum; the others are looked for after it.

mod decommit;
mod range;
mod resize;
mod runs;
#[cfg(test)]
mod tests;

#[cfg(not(shuttle))]
pub(crate) use range::LAYOUT as RANGE_LAYOUT;

pub use decommit::Decommit;
pub use runs::{Run, state, unpack};

use crate::slab::{Desc, NIL, Table};
use crate::sync::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Lock, Ordering, Ordering::Relaxed};
use crate::sys::{self, PAGE};
use range::Range;
use runs::ORDERS;

/// Pages of the smallest range worth having: 16 MiB.
const SMALLEST: u32 = 12;
/// Pages of the largest one: 4 TiB.
const LARGEST: u32 = 30;
/// Ranges beside the first. Each is as large as all before, if the system grants it.
const MORE: usize = 63;
/// Part of the process's limit on addresses that one range takes at most.
const SHARE: usize = 8;

/// The ranges and what is known of their pages.
#[derive(Debug)]
pub struct Pages {
    range: Range,
    /// Addresses of further ranges, in the order of their page numbers; 0 ends them.
    more: [AtomicUsize; MORE],
    huge: bool,
    /// Protects ranges, free lists, frontiers, `Desc::run`, `Desc::cache` and slab totals.
    pub lock: Lock,
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

#[cfg(not(shuttle))]
crate::segment::layout::fields!(Pages, "pages": range, more, used, peak, failed, decommitted);

impl Table for Pages {
    #[inline]
    fn desc(&self, index: u32) -> &Desc {
        let (range, page) = self.range_of(index);
        range.desc(page)
    }
}

/// Order of the largest range of up to `bytes` that may be had under the process's limit.
fn order_within(bytes: usize) -> u32 {
    let share = sys::address_limit().map_or(usize::MAX, |limit| limit / SHARE);
    let pages = (bytes.min(share) / PAGE).max(1);
    pages.ilog2().clamp(SMALLEST, LARGEST)
}

impl Pages {
    /// Reserves a range of up to `bytes`; less when the system refuses, `None` below 16 MiB.
    pub fn new(bytes: usize, limit: u64, decommit: Decommit, huge_pages: bool) -> Option<Self> {
        let orders = (SMALLEST..=order_within(bytes)).rev();
        let range = { orders }.find_map(|order| Range::reserve(NIL, order, huge_pages))?;
        Some(Self {
            range,
            more: [const { AtomicUsize::new(0) }; MORE],
            huge: huge_pages,
            lock: Lock::new(),
            free: [const { AtomicU32::new(NIL) }; 2 * ORDERS],
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            limit: AtomicU64::new(limit / PAGE as u64),
            failed: AtomicU64::new(0),
            decommitted: AtomicU64::new(0),
            decommit,
            last_tick: AtomicU64::new(0),
        })
    }

    /// Reserves one more range, for a run of 2^order pages at least. The page lock is held.
    fn add_range(&self, order: u32) -> Option<&Range> {
        let (mut total, mut end) = (0, 0);
        for range in self.ranges() {
            total += range.count as usize * PAGE;
            end = range.end()?;
        }
        let place = self.more.iter().find(|place| place.load(Relaxed) == 0)?;
        let at = sys::map_lazy(size_of::<Range>());
        let least = order.max(SMALLEST);
        let mut orders = (least..=order_within(total).max(least)).rev();
        let range = orders.find_map(|order| {
            let first = end.checked_next_multiple_of(1u32.checked_shl(order)?)?;
            first.checked_add(1 << order)?;
            Range::reserve(first, order, self.huge)
        });
        let Some(range) = range.filter(|_| at != 0) else {
            // SAFETY: our own mapping, or nothing, used by nobody.
            unsafe { sys::unmap(at, size_of::<Range>()) };
            return None;
        };
        // SAFETY: a fresh, page-aligned mapping, large enough; it lives until `release`.
        unsafe { (at as *mut Range).write(range) };
        place.store(at, Ordering::Release);
        // SAFETY: just written.
        Some(unsafe { &*(at as *const Range) })
    }

    /// Unmaps everything.
    ///
    /// # Safety
    /// No object, descriptor or map entry is used any more.
    pub unsafe fn release(&self) {
        // SAFETY: by the contract; the ranges were made by `new` and `add_range`.
        unsafe {
            self.range.release();
            for place in &self.more {
                let at = place.swap(0, Relaxed);
                if at != 0 {
                    (*(at as *const Range)).release();
                    sys::unmap(at, size_of::<Range>());
                }
            }
        }
    }

    /// The ranges beside the first.
    fn further(&self) -> impl Iterator<Item = &Range> {
        let places = self.more.iter().map(|place| place.load(Ordering::Acquire));
        // SAFETY: published by `add_range` after it was written; it lives until `release`.
        { places.take_while(|at| *at != 0) }.map(|at| unsafe { &*(at as *const Range) })
    }

    fn ranges(&self) -> impl Iterator<Item = &Range> {
        std::iter::once(&self.range).chain(self.further())
    }

    /// The range that a page is of, and the page. What is no page becomes [`NIL`].
    #[inline]
    fn range_of(&self, page: u32) -> (&Range, u32) {
        // As `has`, for the range that begins with 0.
        if page < self.range.count {
            return (&self.range, page);
        }
        self.further_of(page)
    }

    #[cold]
    #[inline(never)]
    fn further_of(&self, page: u32) -> (&Range, u32) {
        let range = self.further().find(|range| range.has(page));
        range.map_or((&self.range, NIL), |range| (range, page))
    }

    /// Address of a page.
    #[inline]
    pub fn address(&self, page: u32) -> usize {
        let (range, page) = self.range_of(page);
        range.address(page)
    }

    /// The range that an address is in, and its page.
    #[inline]
    fn range_at(&self, address: usize) -> Option<(&Range, u32)> {
        // As `Range::page_of`, for the range that begins with page 0.
        let page = address.wrapping_sub(self.range.address(0)) / PAGE;
        if page < self.range.count as usize {
            return Some((&self.range, page as u32));
        }
        self.further_at(address)
    }

    #[cold]
    #[inline(never)]
    fn further_at(&self, address: usize) -> Option<(&Range, u32)> {
        self.further()
            .find_map(|range| Some((range, range.page_of(address)?)))
    }

    /// The page of an address of the engine.
    #[inline]
    pub fn page_of(&self, address: usize) -> Option<u32> {
        self.range_at(address).map(|(_, page)| page)
    }

    /// First page of the run that an address is in, [`NIL`] if in none, and how far the
    /// address is into the run.
    #[inline]
    pub fn run_of(&self, address: usize) -> (u32, usize) {
        let Some((range, page)) = self.range_at(address) else {
            return (NIL, 0);
        };
        let head = range.head_entry(page).load(Relaxed);
        (head, address.wrapping_sub(range.address(head)))
    }

    /// Bytes of the run that begins at a page.
    pub fn run_bytes(&self, page: u32) -> usize {
        PAGE << unpack(self.desc(page).run.load(Relaxed)).1
    }

    /// The map entry of a page.
    #[inline]
    pub fn head_entry(&self, page: u32) -> &AtomicU32 {
        let (range, page) = self.range_of(page);
        range.head_entry(page)
    }

    /// Address and number of the pages of the first range, and where their kinds are.
    pub(crate) fn first_span(&self) -> (usize, usize, *const AtomicU8) {
        self.range.span()
    }

    /// Sets what the pages of a run are for [`crate::heap`]: 0 is nothing. The page lock is held.
    pub(crate) fn set_kind(&self, page: u32, kind: u8) {
        let order = unpack(self.desc(page).run.load(Relaxed)).1;
        let (range, page) = self.range_of(page);
        for page in page..page + (1 << order) {
            range.kind(page).store(kind, Relaxed);
        }
    }

    /// Pages from here on have never been handed out.
    pub fn frontier(&self) -> u32 {
        self.ranges().last().map_or(0, Range::frontier)
    }

    /// First pages of all runs that are handed out, in rising order, while runs come and go.
    pub fn heads(&self) -> impl Iterator<Item = u32> + '_ {
        self.heads_from(NIL)
    }

    /// The same from a page on.
    pub fn heads_from(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        self.ranges().flat_map(move |range| range.heads_from(page))
    }

    /// Ranges that have been reserved.
    pub fn nr_ranges(&self) -> usize {
        self.ranges().count()
    }

    /// Bytes reserved, in use, highest in use, and given back so far.
    pub fn bytes(&self) -> [u64; 4] {
        let of = |n: &AtomicU64| n.load(Relaxed) * PAGE as u64;
        let reserved = self.ranges().map(|range| u64::from(range.count));
        [
            reserved.sum::<u64>() * PAGE as u64,
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
