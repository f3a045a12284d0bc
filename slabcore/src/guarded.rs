//! Sampled allocations on pages of their own, between pages that nobody may touch.
//!
//! Source of truth: KFENCE, mm/kfence/core.c and report.c of Linux 6.12, and its text in
//! Documentation/dev-tools/kfence.rst. One allocation in N of a cache goes to a slot of the
//! pool: a page with an inaccessible one on each side. The object is put at the page's start
//! or end in turn; the rest of the page holds a pattern that is checked when it is freed. A freed
//! slot is inaccessible until all others have been used, the oldest is taken first.
//! Differences: allocations are counted by slot, not timed; after a fault the program gets the
//! signal that it would have got, where the kernel lets the access pass.
//!
//! What it costs: a cache of an engine that samples has no inlined fast path, since each free has
//! to look at the address; two system calls for each sampled object; one page each.
//! What it does not do: debug caches, objects of more than a page. The handler of
//! [`Engine::catch_guard_faults`](crate::Engine::catch_guard_faults) is for accesses by the program;
//! it names code by way of the loader, as reports do.

mod fault;
mod report;

pub(crate) use fault::catch;

use crate::core::{CacheCore, Cx};
use crate::debug::depot::MAX_FRAMES;
use crate::debug::operation::{self, OnFault, Operation};
use crate::debug::track::Track;
use crate::engine::EngineCore;
use crate::finding::{Fault, Finding};
use crate::stats::Stat;
use crate::sync::{AtomicU32, AtomicU64, Lock, Ordering::Relaxed};
use crate::sys;
use report::What;

/// Slots of a pool, as many as the kernel's.
pub(crate) const SLOTS: usize = 255;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Unused,
    Live,
    Freed,
}

/// Who did it: the track and its frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub track: Track,
    pub frames: [usize; MAX_FRAMES],
    pub len: usize,
}

impl Who {
    const NOBODY: Self = Self {
        track: Track {
            caller: 0,
            stack: None,
            cpu: 0,
            thread: 0,
            time_ns: 0,
        },
        frames: [0; MAX_FRAMES],
        len: 0,
    };

    fn of(op: &Operation) -> Self {
        let mut who = Self {
            track: op.track,
            ..Self::NOBODY
        };
        for (to, from) in who.frames.iter_mut().zip(op.frames()) {
            *to = *from;
            who.len += 1;
        }
        who
    }
}

/// What is known of a slot; protected by the pool's lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    pub life: Life,
    pub cache: u32,
    pub name: &'static str,
    pub at: usize,
    pub size: usize,
    /// When it was freed, counted in frees.
    turn: u64,
    pub allocated: Who,
    pub freed: Who,
}

impl Meta {
    const UNUSED: Self = Self {
        life: Life::Unused,
        cache: 0,
        name: "",
        at: 0,
        size: 0,
        turn: 0,
        allocated: Who::NOBODY,
        freed: Who::NOBODY,
    };
}

/// The pool of an engine.
#[derive(Debug)]
pub(crate) struct Pool {
    base: usize,
    /// Bytes of a page of the system.
    page: usize,
    every: u64,
    lock: Lock,
    turns: AtomicU64,
    live: [AtomicU32; crate::engine::MAX_CACHES as usize],
    /// Address of the slots' records.
    slots: usize,
}

#[cfg(not(shuttle))]
crate::segment::layout::fields!(Pool, "guarded": live);

/// Bytes of the pattern around an object; differs from byte to byte, as the kernel's.
fn canary(at: usize) -> u8 {
    0xaa ^ (at & 7) as u8
}

impl Pool {
    /// The lock, for `fork`.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// A pool in new memory; `None` when the system refuses.
    pub fn make(every: u32) -> Option<&'static Self> {
        let page = sys::page_size();
        let base = sys::reserve((2 * SLOTS + 1) * page, page);
        let at = sys::map_lazy(size_of::<Self>());
        let slots = sys::map_lazy(SLOTS * size_of::<Meta>());
        if base == 0 || at == 0 || slots == 0 {
            // SAFETY: new mappings that nobody uses.
            unsafe {
                sys::unmap(base, (2 * SLOTS + 1) * page);
                sys::unmap(at, size_of::<Self>());
                sys::unmap(slots, SLOTS * size_of::<Meta>());
            }
            return None;
        }
        for slot in 0..SLOTS {
            // SAFETY: the new mapping has room for that many records.
            unsafe { (slots as *mut Meta).add(slot).write(Meta::UNUSED) };
        }
        let at = at as *mut Self;
        // SAFETY: a fresh mapping, page-aligned and large enough; it stays until `release`.
        unsafe {
            at.write(Self {
                base,
                page,
                every: u64::from(every.max(1)),
                lock: Lock::new(),
                turns: AtomicU64::new(0),
                live: [const { AtomicU32::new(0) }; crate::engine::MAX_CACHES as usize],
                slots,
            });
            Some(&*at)
        }
    }

    /// Unmaps everything.
    ///
    /// # Safety
    /// No object of the pool and no handle of a sampled cache is left.
    pub unsafe fn release(&'static self) {
        // SAFETY: our own mappings, unused by the contract; `self` last.
        unsafe {
            sys::unmap(self.base, self.bytes());
            sys::unmap(self.slots, SLOTS * size_of::<Meta>());
            sys::unmap(std::ptr::from_ref(self) as usize, size_of::<Self>());
        }
    }

    fn bytes(&self) -> usize {
        (2 * SLOTS + 1) * self.page
    }

    /// Whether an address is of the pool, in constant time.
    #[inline]
    pub fn owns(&self, address: usize) -> bool {
        address.wrapping_sub(self.base) < self.bytes()
    }

    /// The slot whose page an address is in.
    fn slot_of(&self, address: usize) -> Option<usize> {
        let page = address.wrapping_sub(self.base) / self.page;
        (page % 2 == 1 && self.owns(address)).then_some(page / 2)
    }

    fn page_at(&self, slot: usize) -> usize {
        self.base + (2 * slot + 1) * self.page
    }

    /// Objects of a cache that are in use here.
    pub fn live(&self, cache: u32) -> u64 {
        let live = self.live.get(cache as usize);
        live.map_or(0, |n| n.load(Relaxed).into())
    }

    fn with<R>(&self, work: impl FnOnce(&mut [Meta]) -> R) -> R {
        let _held = self.lock.lock();
        // SAFETY: that many records, written by `make`; the lock is held, so this is the only reference.
        work(unsafe { std::slice::from_raw_parts_mut(self.slots as *mut Meta, SLOTS) })
    }

    /// A copy of a slot's record, and its number; for faults, which may interrupt anything.
    fn peek(&self, slot: usize) -> Option<Meta> {
        let held = (0..1 << 20).find_map(|_| self.lock.try_lock());
        let _held = held?;
        // SAFETY: that many records, written by `make`; the lock is held.
        let slots = unsafe { std::slice::from_raw_parts(self.slots as *const Meta, SLOTS) };
        slots.get(slot).copied()
    }

    /// What an address is in: the cache, the object's start and its bytes.
    pub fn object(&self, address: usize) -> Option<(u32, usize, usize)> {
        let slot = self.slot_of(address)?;
        let meta = self.with(|slots| slots.get(slot).copied())?;
        (meta.life == Life::Live).then_some((meta.cache, meta.at, meta.size))
    }

    /// Takes a slot for an object: an unused one, or the one that was freed first.
    fn take(&self, core: &CacheCore, who: &Who) -> Option<usize> {
        self.with(|slots| {
            let free = slots
                .iter()
                .enumerate()
                .filter(|(_, m)| m.life != Life::Live);
            let (slot, _) = free.min_by_key(|(_, m)| m.turn)?;
            let page = self.page_at(slot);
            if !sys::commit(page, self.page) {
                return None;
            }
            let turn = self.turns.fetch_add(1, Relaxed);
            let size = (core.object_size as usize).max(1);
            // At the end as close as the alignment allows.
            let room = (self.page - size) & !(core.align as usize - 1);
            let at = if turn.is_multiple_of(2) {
                page + room
            } else {
                page
            };
            for byte in (page..at).chain(at + size..page + self.page) {
                // SAFETY: the slot's page is accessible now and nobody else's.
                unsafe { (byte as *mut u8).write(canary(byte)) };
            }
            *slots.get_mut(slot)? = Meta {
                life: Life::Live,
                cache: core.id,
                name: core.name,
                at,
                size,
                turn: 0,
                allocated: *who,
                freed: Who::NOBODY,
            };
            self.live[core.id as usize].fetch_add(1, Relaxed);
            Some(at)
        })
    }

    /// Ends an object's life; what is wrong with that, and the slot as it was.
    fn give(&self, core: &CacheCore, address: usize, who: &Who) -> (Option<What>, Meta) {
        self.with(|slots| {
            let meta = self.slot_of(address).and_then(|slot| slots.get_mut(slot));
            let Some(meta) = meta else {
                return (Some(What::InvalidFree), Meta::UNUSED);
            };
            let before = *meta;
            if meta.life != Life::Live || meta.at != address || meta.cache != core.id {
                return (Some(What::InvalidFree), before);
            }
            let page = address & !(self.page - 1);
            let around = (page..address).chain(address + meta.size..page + self.page);
            // SAFETY: the page is accessible while the object lives.
            let wrong = |at: &usize| unsafe { (*at as *const u8).read_volatile() } != canary(*at);
            let damage = around.into_iter().find(wrong);
            meta.life = Life::Freed;
            meta.freed = *who;
            meta.turn = self.turns.fetch_add(1, Relaxed) + 1;
            self.live[core.id as usize].fetch_sub(1, Relaxed);
            sys::forbid(page, self.page);
            (damage.map(What::Corruption), before)
        })
    }

    /// The object that an address is next to, its number, and how far it is:
    /// below 0 to its left, above 0 to its right, 0 in its page.
    fn nearest(&self, address: usize) -> Option<(usize, Meta, isize)> {
        let page = address.wrapping_sub(self.base) / self.page;
        let slots = match page % 2 {
            1 => [Some(page / 2), None],
            _ => [(page / 2).checked_sub(1), Some(page / 2)],
        };
        let near = slots.into_iter().flatten().filter_map(|slot| {
            let meta = self.peek(slot).filter(|meta| meta.life != Life::Unused)?;
            let end = meta.at + meta.size;
            let by = if address < meta.at {
                address.cast_signed() - meta.at.cast_signed()
            } else if address >= end {
                (address - end).cast_signed() + 1
            } else {
                0
            };
            Some((slot, meta, by))
        });
        near.min_by_key(|(_, meta, by)| (meta.life != Life::Live, by.unsigned_abs()))
    }
}

/// A guarded object, if it is the turn of one; the slot's row counts.
pub(crate) fn alloc(core: &CacheCore, cx: Cx<'_>) -> Option<usize> {
    let pool = core.engine.guarded.filter(|_| core.sampled)?;
    let stats = &cx.row.stats;
    let n = stats.get(Stat::AllocFastpath) + stats.get(Stat::AllocSlowpath) + 1;
    if !n.is_multiple_of(pool.every) {
        return None;
    }
    let mut op = Operation::new();
    op.identify(None, core.engine.config.own_code);
    let at = pool.take(core, &Who::of(&op))?;
    if let Some(ctor) = core.ctor {
        ctor(at as *mut u8);
    }
    cx.inc(Stat::AllocSlowpath);
    Some(at)
}

/// Frees an object of the pool, or what claims to be one. No lock is held.
pub(crate) fn free(core: &CacheCore, pool: &Pool, address: usize) {
    let mut op = Operation::new();
    op.identify(None, core.engine.config.own_code);
    let who = Who::of(&op);
    let (wrong, meta) = pool.give(core, address, &who);
    if wrong != Some(What::InvalidFree) {
        crate::cache::with_slot(core, |cx| cx.inc(Stat::FreeSlowpath));
    }
    let Some(wrong) = wrong else {
        return;
    };
    let (slot, fault) = (
        pool.slot_of(address).unwrap_or(0),
        match wrong {
            What::InvalidFree if meta.life == Life::Freed && meta.at == address => {
                Fault::AlreadyFree
            }
            What::InvalidFree => Fault::InvalidPointer { pointer: address },
            _ => Fault::Guarded,
        },
    );
    op.found(Finding::new(core.id, 0, fault));
    report::write(&mut op.text, wrong, address, slot, &meta, 0, &who);
    core.engine.faults.fetch_add(1, Relaxed);
    op.send(core.engine.config.report);
    if core.engine.config.on_fault == OnFault::Abort {
        operation::stop();
    }
}

/// Whether a cache's allocations are sampled.
pub(crate) fn takes(engine: &EngineCore, object_size: usize, align: usize) -> bool {
    engine
        .guarded
        .is_some_and(|pool| object_size <= pool.page && align <= pool.page)
}
