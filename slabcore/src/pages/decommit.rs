//! Memory of freed runs goes back to the system: at once, or when it was free for a while.
//!
//! What stays: runs in use, which are live objects' slabs, `min_partial` empty slabs of a
//! node and cache, and what threads hold: arrays, the slab in hand and, under the hybrid
//! policy, slabs of theirs that others have emptied, until the owner's next slow path, its
//! end or a request to shrink that it follows. Addresses stay reserved.

use super::Pages;
use super::runs::{AGED, DIRTY, ORDERS};
use crate::slab::{NIL, Table};
use crate::sync::{Ordering, Ordering::Relaxed};
use crate::sys::{self, PAGE};

/// Runs given back between two looks at a list.
const AGED_AT_ONCE: usize = 256;

/// When the memory of freed runs goes back to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decommit {
    /// At once.
    Immediate,
    /// When a run has been free for one to two times this many milliseconds. There is no
    /// thread for it: the time is looked at when a run is freed and at every 64th slow
    /// path of a thread, and by `Engine::tick`. A process that does nothing at all keeps
    /// what it had when it went quiet.
    AfterMs(u64),
}

impl Pages {
    /// # Safety
    /// The run's memory is unused and the run is on no list.
    pub(super) unsafe fn give_back(&self, page: u32, order: u32) -> u32 {
        // SAFETY: by the contract; the run is inside the committed part.
        if unsafe { sys::decommit(self.address(page), PAGE << order) } {
            self.decommitted.fetch_add(1 << order, Relaxed);
            0
        } else {
            DIRTY
        }
    }

    /// Ticks if the time has come. No lock is held.
    pub fn tick_if_due(&self) {
        let Decommit::AfterMs(ms) = self.decommit else {
            return;
        };
        let now = sys::coarse_ms();
        let last = self.last_tick.load(Relaxed);
        let due = now.saturating_sub(last) >= ms.max(1);
        let won = |last| {
            let set = { &self.last_tick }.compare_exchange(last, now, Ordering::AcqRel, Relaxed);
            set.is_ok()
        };
        if due && won(last) {
            self.tick();
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
}
