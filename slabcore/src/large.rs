//! Large objects: page runs of their own, counted as the kernel's `kmalloc_large`.

use crate::engine::Engine;
use crate::order::order_of;
use crate::pages::{state, unpack};
use crate::slab::{NIL, Table};
use crate::sync::Ordering::Relaxed;
use crate::sys::{HUGE, PAGE};
use std::ptr::NonNull;

/// So much larger may an object become that has moved because it grows.
const ROOM: u32 = 8;

/// A large object just allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Large {
    /// Its address.
    pub at: NonNull<u8>,
    /// All its bytes read as zero.
    pub zeroed: bool,
}

impl Engine {
    /// Allocates a run of pages.
    pub fn large_alloc(&self, size: usize, align: usize) -> Option<Large> {
        // Runs are aligned to their size up to 2 MiB, as the range itself is.
        let bytes = if align > HUGE {
            size.checked_add(align)?
        } else {
            size.max(align)
        };
        if bytes > isize::MAX as usize / 2 {
            return None;
        }
        self.large(bytes, 0, align)
    }

    /// As [`Engine::large_alloc`], where the object may become 8 times as large
    /// without moving, if there is such a place and nobody else takes it before.
    pub fn large_alloc_growing(&self, size: usize) -> Option<Large> {
        if size > isize::MAX as usize / 2 {
            return None;
        }
        self.large(size, ROOM.trailing_zeros(), 1)
    }

    fn large(&self, bytes: usize, room: u32, align: usize) -> Option<Large> {
        let order = order_of(bytes);
        let pages = &self.core.pages;
        let run = pages.alloc_with_room(order, room, state::LARGE, |_| ())?;
        self.core.large_count.fetch_add(1, Relaxed);
        self.core
            .large_bytes
            .fetch_add((PAGE as u64) << order, Relaxed);
        let at = pages.address(run.page).next_multiple_of(align.max(1));
        Some(Large {
            at: NonNull::new(at as *mut u8)?,
            zeroed: run.clean,
        })
    }

    /// Frees a large object; false if the pointer is in none.
    ///
    /// # Safety
    /// `object` came from [`Engine::large_alloc`] and is not used any more.
    pub unsafe fn large_free(&self, object: NonNull<u8>) -> bool {
        let pages = &self.core.pages;
        let Some(head) = self.large_head(object) else {
            return false;
        };
        let bytes = pages.run_bytes(head) as u64;
        // SAFETY: the run is a large object's, unused by the contract.
        unsafe { pages.free(head, || ()) };
        self.core.large_count.fetch_sub(1, Relaxed);
        self.core.large_bytes.fetch_sub(bytes, Relaxed);
        true
    }

    /// Gives a large object the smallest run that holds `size` bytes, where it is; false, and
    /// nothing is different, where that cannot be.
    ///
    /// # Safety
    /// As [`Engine::large_free`], but the object's first `size` bytes may be used further.
    pub unsafe fn large_resize(&self, object: NonNull<u8>, size: usize) -> bool {
        let pages = &self.core.pages;
        let Some(head) = self.large_head(object) else {
            return false;
        };
        let before = pages.run_bytes(head);
        let skipped = object.as_ptr() as usize - pages.address(head);
        let Some(bytes) = size.checked_add(skipped) else {
            return false;
        };
        // SAFETY: the run is a large object's; what is cut off is unused by the contract.
        if bytes > isize::MAX as usize / 2 || !unsafe { pages.resize(head, order_of(bytes)) } {
            return false;
        }
        let change = (pages.run_bytes(head) as u64).wrapping_sub(before as u64);
        self.core.large_bytes.fetch_add(change, Relaxed);
        true
    }

    /// Bytes from `object` to the end of its run, if it is in a large object.
    pub fn large_usable(&self, object: NonNull<u8>) -> Option<usize> {
        let pages = &self.core.pages;
        let head = self.large_head(object)?;
        let end = pages.address(head) + pages.run_bytes(head);
        Some(end - object.as_ptr() as usize)
    }

    /// Bytes of the large object whose run begins with `object`.
    #[inline]
    pub(crate) fn large_whole(&self, object: NonNull<u8>) -> Option<usize> {
        let pages = &self.core.pages;
        let head = self.large_head(object)?;
        (pages.address(head) == object.as_ptr() as usize).then(|| pages.run_bytes(head))
    }

    #[inline]
    fn large_head(&self, object: NonNull<u8>) -> Option<u32> {
        let pages = &self.core.pages;
        let page = pages.page_of(object.as_ptr() as usize)?;
        let head = pages.head_entry(page).load(Relaxed);
        let run = pages.desc(head).run.load(Relaxed);
        (head != NIL && unpack(run).0 == state::LARGE).then_some(head)
    }
}
