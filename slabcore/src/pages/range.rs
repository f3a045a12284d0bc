//! One range of addresses: pages, a descriptor and a map entry for each of them.
//!
//! Addresses are reserved at once and made usable in steps of 2 MiB, as are
//! descriptors and map, of which the rest reads as zero. So a reservation
//! counts for nothing where the system limits memory, and any page of the
//! range may be asked for at any time. Unused parts are left out of core dumps.

use super::runs::unpack;
use crate::slab::{Desc, NIL};
use crate::sync::{AtomicU8, AtomicU32, Ordering::Relaxed};
use crate::sys::{self, HUGE, PAGE};

/// Parts of descriptors and map become usable in multiples of this: any system's page size.
const STEP: usize = 64 << 10;

/// A range. Its number of pages is a power of two and divides the number of its first
/// page, so that runs and their buddies never reach out of it.
#[derive(Debug)]
pub(super) struct Range {
    /// Where page 0 would be if the range went down to it; so the next three.
    base: usize,
    descs: usize,
    map: usize,
    kinds: usize,
    first: u32,
    pub count: u32,
    frontier: AtomicU32,
}

#[cfg(not(shuttle))]
crate::segment::layout::fields!(Range, "range": base, descs, map, first, count, frontier);

impl Range {
    /// Reserves 2^order pages, to be numbered from `first` on.
    pub fn reserve(first: u32, order: u32, huge_pages: bool) -> Option<Self> {
        let count = 1u32.checked_shl(order)?;
        let base = sys::reserve(count as usize * PAGE, HUGE);
        let descs = sys::map_for_reading(Self::descs_bytes(count));
        let map = sys::map_for_reading(Self::map_bytes(count));
        let kinds = sys::map_for_reading(Self::kinds_bytes(count));
        let at = first as usize;
        let made = Self {
            base: base.wrapping_sub(at * PAGE),
            descs: descs.wrapping_sub(at * size_of::<Desc>()),
            map: map.wrapping_sub(at * size_of::<u32>()),
            kinds: kinds.wrapping_sub(at),
            first,
            count,
            frontier: AtomicU32::new(first),
        };
        let whole = base != 0 && descs != 0 && map != 0 && kinds != 0;
        // Number 0 stands for no page, but its descriptor is there.
        if !whole || (first == NIL && !made.commit_metadata(0, (HUGE / PAGE) as u32)) {
            // SAFETY: nothing of the new mappings is in use.
            unsafe { made.release() };
            return None;
        }
        if first == NIL {
            made.frontier.store((HUGE / PAGE) as u32, Relaxed);
        }
        if huge_pages {
            sys::prefer_huge_pages(base, count as usize * PAGE);
        }
        Some(made)
    }

    fn descs_bytes(count: u32) -> usize {
        (count as usize * size_of::<Desc>()).next_multiple_of(STEP)
    }

    fn map_bytes(count: u32) -> usize {
        (count as usize * size_of::<u32>()).next_multiple_of(STEP)
    }

    fn kinds_bytes(count: u32) -> usize {
        (count as usize).next_multiple_of(STEP)
    }

    /// Unmaps everything.
    ///
    /// # Safety
    /// No object, descriptor or map entry is used any more.
    pub unsafe fn release(&self) {
        // SAFETY: these are the mappings made in `reserve`, unused by the contract.
        unsafe {
            sys::unmap(self.address(self.first), self.count as usize * PAGE);
            sys::unmap(self.desc_at(self.first), Self::descs_bytes(self.count));
            sys::unmap(self.entry_at(self.first), Self::map_bytes(self.count));
            sys::unmap(self.kind_at(self.first), Self::kinds_bytes(self.count));
        }
    }

    /// Whether a page is of the range.
    #[inline]
    pub fn has(&self, page: u32) -> bool {
        page.wrapping_sub(self.first) < self.count
    }

    /// Order of the whole range.
    pub fn order(&self) -> u32 {
        self.count.trailing_zeros()
    }

    /// The number after that of the last page.
    pub fn end(&self) -> Option<u32> {
        self.first.checked_add(self.count)
    }

    /// Pages before this one have been handed out at some time.
    pub fn frontier(&self) -> u32 {
        self.frontier.load(Relaxed)
    }

    /// Address of a page of the range.
    #[inline]
    pub fn address(&self, page: u32) -> usize {
        self.base.wrapping_add(page as usize * PAGE)
    }

    /// The page of an address, if it is of the range.
    #[inline]
    pub fn page_of(&self, address: usize) -> Option<u32> {
        let page = address.wrapping_sub(self.base) / PAGE;
        let inside = page.wrapping_sub(self.first as usize) < self.count as usize;
        inside.then_some(page as u32)
    }

    #[inline]
    fn desc_at(&self, page: u32) -> usize {
        self.descs.wrapping_add(page as usize * size_of::<Desc>())
    }

    #[inline]
    fn entry_at(&self, page: u32) -> usize {
        self.map.wrapping_add(page as usize * size_of::<u32>())
    }

    #[inline]
    fn kind_at(&self, page: u32) -> usize {
        self.kinds.wrapping_add(page as usize)
    }

    /// Address and number of the pages, and where their kinds are: a byte for each.
    pub fn span(&self) -> (usize, usize, *const AtomicU8) {
        let kinds = self.kind_at(self.first) as *const AtomicU8;
        (self.address(self.first), self.count as usize, kinds)
    }

    /// The kind of a page of the range.
    #[inline]
    pub fn kind(&self, page: u32) -> &AtomicU8 {
        debug_assert!(self.has(page));
        // SAFETY: as in `desc`.
        unsafe { &*(self.kind_at(page) as *const AtomicU8) }
    }

    /// The descriptor of a page of the range.
    #[inline]
    pub fn desc(&self, page: u32) -> &Desc {
        debug_assert!(self.has(page));
        // SAFETY: there are `count` descriptors, zeroed at first and valid as they are, mapped as
        // long as `self` lives, and the page is of the range. Only those below the frontier are
        // written, which may be; the others are only loaded from.
        unsafe { &*(self.desc_at(page) as *const Desc) }
    }

    /// The map entry of a page of the range.
    #[inline]
    pub fn head_entry(&self, page: u32) -> &AtomicU32 {
        debug_assert!(self.has(page));
        // SAFETY: as in `desc`.
        unsafe { &*(self.entry_at(page) as *const AtomicU32) }
    }

    /// Makes fresh pages for a run of 2^order usable: those from the old frontier, the
    /// first of the run, and how many pages follow it. The page lock is held.
    pub fn grow(&self, order: u32) -> Option<(u32, u32)> {
        if order > self.order() {
            return None;
        }
        let from = self.frontier();
        let page = from.checked_next_multiple_of(1 << order)?;
        let end = page.checked_add(1 << order)?;
        if end - self.first > self.count {
            return None;
        }
        let bytes = (end - from) as usize * PAGE;
        if !self.commit_metadata(from, end) || !sys::commit(self.address(from), bytes) {
            return None;
        }
        self.frontier.store(end, Relaxed);
        Some((from, page))
    }

    /// Makes the descriptors, map entries and kinds of pages writable, from the frontier on.
    fn commit_metadata(&self, from: u32, to: u32) -> bool {
        let commit = |at: fn(&Self, u32) -> usize| {
            let start = at(self, self.first);
            // Up to the frontier it was done before, in whole steps.
            let [from, to] = [from, to].map(|page| (at(self, page) - start).next_multiple_of(STEP));
            from == to || sys::commit(start + from, to - from)
        };
        let places: [fn(&Self, u32) -> usize; 3] = [Self::desc_at, Self::entry_at, Self::kind_at];
        places.into_iter().all(commit)
    }

    /// First pages, from `page` on, of the runs that are handed out, while others come and go.
    pub fn heads_from(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        let mut page = page.max(self.first).max(NIL + 1);
        std::iter::from_fn(move || {
            while page < self.frontier() {
                let at = page;
                let head = self.head_entry(at).load(Relaxed) == at;
                let (_, order) = unpack(self.desc(at).run.load(Relaxed));
                page = page.saturating_add(if head {
                    1 << order.min(self.order())
                } else {
                    1
                });
                if head {
                    return Some(at);
                }
            }
            None
        })
    }
}
