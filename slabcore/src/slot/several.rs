//! Slots beyond a thread's own, for which the thread may act.
//!
//! A slot is a virtual processor. Whoever wants to see what many of them do in an order
//! of his own choice, without as many threads, takes some and acts as one after the
//! other. It knows nothing of orders and times: those are the caller's.

use super::{SLOTS, State, acquire, give_back, tls};
use crate::cache::Cache;
use crate::engine::Engine;
use crate::fork;
use crate::heap;
use crate::pages::{state, unpack};
use crate::row::Row;
use crate::slab::{NIL, Table};
use crate::stats::{Counters, Stat};
use crate::sync::Ordering::Relaxed;
use std::marker::PhantomData;

/// Slots of which the thread that took them can be each in turn.
///
/// They are given back when this is dropped. A child of `fork` has none of them: they
/// were flushed there, and the thread acts as itself.
#[derive(Debug)]
pub struct Slots {
    numbers: Vec<u32>,
    /// The number of forks above this process when they were taken.
    born: u32,
    /// They belong to the thread.
    thread: PhantomData<*const ()>,
}

/// Makes the thread what it was before.
struct Back {
    slot: u32,
    born: u32,
}

fn become_slot(slot: u32) {
    let of = |stride: usize| slot as usize * stride;
    tls::set_slot(slot, of(size_of::<Row>()), of(heap::STRIDE));
}

impl Drop for Back {
    fn drop(&mut self) {
        if fork::generation() == self.born {
            become_slot(self.slot);
            return;
        }
        // A child, made in between: it has kept the slot that acted, and given the other one back.
        if tls::arm(SLOTS.key.load(Relaxed) - 1, tls::slot()) {
            tls::set_state(State::Owner);
        }
    }
}

impl Slots {
    /// Takes `n` slots; `None` if there are not as many left.
    pub fn take(n: usize) -> Option<Self> {
        let mut these = Self {
            numbers: Vec::new(),
            born: fork::generation(),
            thread: PhantomData,
        };
        these.numbers.try_reserve_exact(n).ok()?;
        for _ in 0..n {
            // Those that were taken are given back.
            these.numbers.push(acquire()?);
        }
        Some(these)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Does some work as slot `n` of these; as the thread itself if there is no such slot.
    pub fn act<R>(&self, n: usize, work: impl FnOnce() -> R) -> R {
        let slot = self.numbers.get(n).copied();
        let Some(slot) = slot.filter(|_| fork::generation() == self.born) else {
            return work();
        };
        let _back = Back {
            slot: tls::slot(),
            born: self.born,
        };
        become_slot(slot);
        work()
    }

    /// Slow paths of slot `n` in a cache, for allocations and frees; none if there is no such slot.
    pub fn slow_paths(&self, n: usize, cache: &Cache) -> u64 {
        self.numbers.get(n).map_or(0, |slot| {
            let stats = &cache.core.row(*slot).stats;
            stats.get(Stat::AllocSlowpath) + stats.get(Stat::FreeSlowpath)
        })
    }

    /// What slot `n` has counted of a cache; nothing if there is no such slot. Counters
    /// begin with the cache, and a slot may have had other owners since.
    pub fn counters(&self, n: usize, cache: &Cache) -> Counters {
        let mut counters = Counters::default();
        if let Some(slot) = self.numbers.get(n) {
            counters.add_row(&cache.core.row(*slot).stats);
        }
        counters
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        if fork::generation() == self.born {
            self.numbers.iter().copied().for_each(give_back);
        }
    }
}

impl Cache {
    /// How often the list locks of the cache's nodes were taken so far, and how often of
    /// these somebody had to wait.
    pub fn list_locks(&self) -> (u64, u64) {
        let parts = { &self.core.nodes }.iter().take(self.core.engine.nodes());
        let counts = parts.map(|part| part.node.list_lock.counts());
        counts.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
    }
}

impl Engine {
    /// Where the slab of an address begins, and how often its word has changed so far,
    /// modulo 2^15; `None` if the address is in no slab.
    pub fn slab_changes(&self, address: *const u8) -> Option<(usize, u16)> {
        let pages = &self.core.pages;
        let page = pages.page_of(address as usize)?;
        let head = pages.head_entry(page).load(Relaxed);
        let desc = (head != NIL).then(|| pages.desc(head))?;
        let is_slab = unpack(desc.run.load(Relaxed)).0 == state::SLAB;
        is_slab.then(|| (pages.address(head), desc.load().tag()))
    }
}
