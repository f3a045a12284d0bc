//! Large objects: page runs of their own, counted as the kernel's `kmalloc_large`.

use crate::engine::Engine;
use crate::order::order_of;
use crate::pages::{state, unpack};
use crate::slab::{NIL, Table};
use crate::sync::Ordering::Relaxed;
use crate::sys::{HUGE, PAGE};
use std::ptr::NonNull;

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
        let order = order_of(bytes);
        let pages = &self.core.pages;
        let run = pages.alloc(order, state::LARGE, |_| ())?;
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

    /// Bytes from `object` to the end of its run, if it is in a large object.
    pub fn large_usable(&self, object: NonNull<u8>) -> Option<usize> {
        let pages = &self.core.pages;
        let head = self.large_head(object)?;
        let end = pages.address(head) + pages.run_bytes(head);
        Some(end - object.as_ptr() as usize)
    }

    fn large_head(&self, object: NonNull<u8>) -> Option<u32> {
        let pages = &self.core.pages;
        let page = pages.page_of(object.as_ptr() as usize)?;
        let head = pages.head_entry(page).load(Relaxed);
        let run = pages.desc(head).run.load(Relaxed);
        (head != NIL && unpack(run).0 == state::LARGE).then_some(head)
    }
}
