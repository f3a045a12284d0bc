//! Handles on caches: allocate, free, shrink, destroy. In bulk: `policy/bulk.rs`.

use crate::core::{CacheCore, Cx};
use crate::debug::operation::Operation;
use crate::engine::{self, Engine};
use crate::fork::{self, SlowPath};
use crate::guarded;
use crate::policy::{self, cpu_slab};
use crate::row::{self, Row};
use crate::segment::{self, Event};
use crate::slot;
use crate::stats::{Counters, Stat};
use crate::sync::{AtomicUsize, Ordering::Relaxed};
use crate::sys;
use crate::validate;
use std::ptr::NonNull;

/// A cache of objects of one size.
///
/// Dropping it destroys the cache; objects that are still in use then live on
/// and their memory is never given back.
#[derive(Debug)]
pub struct Cache {
    pub(crate) core: &'static CacheCore,
    rows: usize,
}

/// Objects that were in use when their cache was destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leak {
    /// How many.
    pub objects: u64,
}

impl Cache {
    pub(crate) fn of(core: &'static CacheCore) -> Self {
        // Neither a sampled cache nor one of a heap has a fast path here.
        let blind = core.sampled || core.kind != 0;
        Self {
            core,
            rows: if blind {
                row::blind() as usize
            } else {
                core.rows
            },
        }
    }

    #[inline(always)]
    pub(crate) fn row(&self) -> &Row {
        let row = in_register(slot::row(self.rows));
        // SAFETY: the offset is that of a row below MAX_SLOTS, and `rows` maps as many while the
        // cache has a handle. The row belongs to this thread, or is the empty one at offset 0.
        unsafe { &*(row as *const Row) }
    }

    /// Allocates one object; `None` when memory is short. Its contents are what the
    /// constructor or the last user left, or anything.
    #[inline(always)]
    pub fn alloc(&self) -> Option<NonNull<u8>> {
        // SAFETY: this thread's row.
        if let Some(object) = unsafe { pop_fast(self.row()) } {
            return Some(object);
        }
        NonNull::new(self.alloc_more() as *mut u8)
    }

    /// Frees one object.
    ///
    /// # Safety
    /// `object` came from this cache, is not in use, and is not freed again.
    #[inline(always)]
    pub unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: this thread's row, and an object of its cache.
        if !unsafe { push_fast(self.row(), object.as_ptr() as usize) } {
            self.free_more(object.as_ptr() as usize);
        }
    }

    /// Without an array to pop from: the slab in hand, or the slow path.
    #[inline(never)]
    fn alloc_more(&self) -> usize {
        // The empty row of a thread without a slot has no slab in hand.
        cpu_slab::alloc_fast(self.core, self.row()).unwrap_or_else(|| alloc_slow(self.core))
    }

    /// As [`Cache::alloc`], for `requested` bytes of the object. Only debug caches care.
    #[inline(always)]
    pub fn alloc_sized(&self, requested: usize) -> Option<NonNull<u8>> {
        // SAFETY: this thread's row.
        if let Some(object) = unsafe { pop_fast(self.row()) } {
            return Some(object);
        }
        NonNull::new(self.alloc_more_sized(requested) as *mut u8)
    }

    /// As `alloc_more`, for a debug cache that keeps requested sizes.
    #[inline(never)]
    fn alloc_more_sized(&self, requested: usize) -> usize {
        cpu_slab::alloc_fast(self.core, self.row()).unwrap_or_else(|| {
            let Some(hooks) = self.core.hooks else {
                return alloc_slow(self.core);
            };
            policy::debug::alloc(self.core, hooks, requested)
        })
    }

    /// The requested size of a live object changes within its class.
    #[inline]
    pub(crate) fn resize(&self, object: NonNull<u8>, requested: usize) {
        if self.core.hooks.is_some() {
            policy::debug::resize(self.core, object.as_ptr() as usize, requested);
        }
    }

    /// Without room in an array.
    #[inline(never)]
    fn free_more(&self, object: usize) {
        if !cpu_slab::free_fast(self.core, self.row(), object) {
            free_slow(self.core, object);
        }
    }

    /// The number by which the engine knows the cache.
    pub fn id(&self) -> u32 {
        self.core.id
    }

    /// Bytes that may be used of each object.
    pub fn object_size(&self) -> usize {
        self.core.object_size as usize
    }

    /// Sums of the counters of all slots.
    pub fn counters(&self) -> Counters {
        self.core.counters()
    }

    /// Changes how many partial slabs a node keeps before empty ones are discarded.
    pub fn set_min_partial(&self, slabs: u32) {
        self.core.min_partial.store(slabs, Relaxed);
    }

    /// Gives back what is not used: this thread's part and the nodes' at once, other
    /// threads' parts at their next slow path.
    pub fn shrink(&self) {
        self.core.epoch.fetch_add(1, Relaxed);
        segment::event(Event::Shrink, self.core.id + 1, [0, 0]);
        with_slot(self.core, |cx| {
            cx.follow_shrink();
            policy::flush_barns(cx);
            for node in 0..self.core.engine.nodes() {
                cx.shrink_node(node);
            }
        });
    }

    /// Ends the cache. With objects still in use the memory is kept and their number told.
    pub fn destroy(self) -> Result<(), Leak> {
        // Dropping would do the same once more.
        let this = std::mem::ManuallyDrop::new(self);
        this.core.put()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // Who wants to know of live objects calls `destroy`.
        let _ = self.core.put();
    }
}

/// Takes an object out of the main array, if there is one.
///
/// # Safety
/// The row is the calling thread's own, or one that stays empty.
#[inline(always)]
pub(crate) unsafe fn pop_fast(row: &Row) -> Option<NonNull<u8>> {
    let n = row.n.load(Relaxed);
    if n == 0 {
        return None;
    }
    row.n.store(n - 1, Relaxed);
    row.inc(Stat::AllocFastpath);
    // SAFETY: `n` is between 1 and the capacity of the main array.
    let place = unsafe { place(row, n - 1) };
    // SAFETY: arrays hold objects, and none is at 0.
    Some(unsafe { NonNull::new_unchecked(place.load(Relaxed) as *mut u8) })
}

/// Puts an object into the main array, if there is room.
///
/// # Safety
/// As [`pop_fast`]; the object is of the row's cache and in nobody's hands.
#[inline(always)]
pub(crate) unsafe fn push_fast(row: &Row, object: usize) -> bool {
    let n = row.n.load(Relaxed);
    if n == row.cap.load(Relaxed) {
        return false;
    }
    // SAFETY: `n` is below the capacity of the main array.
    let place = unsafe { place(row, n) };
    place.store(object, Relaxed);
    row.n.store(n + 1, Relaxed);
    row.inc(Stat::FreeFastpath);
    true
}

/// Place of the main array.
///
/// # Safety
/// `at` is below the array's capacity.
#[inline(always)]
unsafe fn place(row: &Row, at: u32) -> &AtomicUsize {
    let place = in_register(row.main.load(Relaxed) + at as usize * size_of::<usize>());
    // SAFETY: by the contract; arrays are never unmapped while their cache lives.
    unsafe { &*(place as *const AtomicUsize) }
}

/// Has the sum in a register of its own: with a base and an index, processors do not forward
/// a store to the next load as fast (measured: 4.0 against 1.6 ns for a pair).
#[inline(always)]
pub(crate) fn in_register(address: usize) -> usize {
    let mut address = address;
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) address, options(pure, nomem, nostack, preserves_flags));
    }
    address
}

#[cold]
#[inline(never)]
fn alloc_slow(core: &CacheCore) -> usize {
    if let Some(hooks) = core.hooks {
        return policy::debug::alloc(core, hooks, core.object_size as usize);
    }
    with_slot(core, |cx| {
        if core.sampled
            && let Some(object) = guarded::alloc(core, cx)
        {
            return object;
        }
        cx.follow_shrink();
        match cx.pop() {
            // The shared row has no other fast path.
            Some(object) => {
                cx.inc(Stat::AllocFastpath);
                object
            }
            None => policy::alloc(cx),
        }
    })
}

#[cold]
#[inline(never)]
fn free_slow(core: &CacheCore, object: usize) {
    if let Some(hooks) = core.hooks {
        policy::debug::free(core, hooks, object);
        return;
    }
    if core.sampled
        && let Some(pool) = core.engine.guarded
        && pool.owns(object)
    {
        return guarded::free(core, pool, object);
    }
    with_slot(core, |cx| {
        cx.follow_shrink();
        if cx.push(object) {
            cx.inc(Stat::FreeFastpath);
        } else {
            policy::free(cx, object);
        }
    });
}

/// Whether a function that starts here is of the way into a debug cache: not to be shown
/// as who allocated or freed.
pub(crate) fn is_entry(start: usize) -> bool {
    [
        Cache::alloc_more as fn(&Cache) -> usize as usize,
        Cache::alloc_more_sized as fn(&Cache, usize) -> usize as usize,
        Cache::free_more as fn(&Cache, usize) as usize,
        alloc_slow as fn(&CacheCore) -> usize as usize,
        free_slow as fn(&CacheCore, usize) as usize,
        policy::debug::alloc as *const () as usize,
        policy::debug::free as *const () as usize,
    ]
    .contains(&start)
}

/// Runs an operation for this thread's slot, or for the shared one under its lock.
pub(crate) fn with_slot<R>(core: &CacheCore, work: impl FnOnce(Cx<'_>) -> R) -> R {
    let slot = slot::enter();
    if slot.is_some_and(fork::time_to_look) {
        core.engine.pages.tick_if_due();
        if slot.is_some_and(fork::is_outside) {
            segment::look(slot.is_some_and(fork::is_settled));
        }
    }
    let _inside = slot.map(SlowPath::enter);
    let (held, cx) = match slot {
        Some(slot) => (None, Cx::new(core, slot)),
        None => (Some(core.shared.lock()), Cx::new(core, slot::SHARED)),
    };
    let changing = cx.row.change();
    let result = work(cx);
    drop(changing);
    drop(held);
    core.report_broken();
    result
}

impl Cx<'_> {
    /// Gives up what the row holds if there was a request to shrink.
    #[inline]
    pub(crate) fn follow_shrink(self) {
        let epoch = self.core.epoch.load(Relaxed);
        if self.row.epoch.load(Relaxed) != epoch {
            self.row.epoch.store(epoch, Relaxed);
            policy::flush(self);
        }
        policy::owned::age(self);
    }
}

impl CacheCore {
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for row in self.used_rows() {
            sum.add_row(&row.stats);
        }
        // A fork takes the locks of nodes that there are not, too.
        for part in self.nodes.iter().take(self.engine.nodes()) {
            let (taken, contended) = part.node.list_lock.counts();
            sum.add(Stat::ListLock, taken);
            sum.add(Stat::ListLockContended, contended);
        }
        sum
    }

    /// Gives a handle up; the last one ends the cache.
    pub fn put(&'static self) -> Result<(), Leak> {
        let engine = self.engine;
        let table = engine.table_lock.lock();
        let refs = self.refs.load(Relaxed) - 1;
        self.refs.store(refs, Relaxed);
        if refs > 0 {
            drop(table);
            engine.release();
            return Ok(());
        }
        drop(table);
        let mut op = Operation::new();
        let guarded = engine.guarded.map_or(0, |pool| pool.live(self.id));
        let result = engine::with_registry(|| {
            if self.flush_everything() == 0 && guarded == 0 {
                // A heap unmaps its rows itself.
                if self.kind == 0 {
                    // SAFETY: no handle is left, no slab refers to the cache, and threads that end,
                    // snapshots and validation look at it under the registry lock only.
                    unsafe { sys::unmap(self.rows, Self::rows_bytes()) };
                }
                engine.present[self.id as usize].store(0, std::sync::atomic::Ordering::Release);
                return Ok(());
            }
            engine.zombies.fetch_add(1, Relaxed);
            validate::report_remaining(self, &mut op);
            Err(Leak {
                objects: self.counters().live(),
            })
        });
        op.send(engine.config.report);
        engine.release();
        result
    }

    /// Bytes of a cache's rows.
    pub const fn rows_bytes() -> usize {
        slot::MAX_SLOTS as usize * size_of::<Row>()
    }

    /// Empties all rows, barns and lists; gives the slabs that are left. There is no
    /// other handle, so no thread is in an operation.
    fn flush_everything(&self) -> u64 {
        for slot in (slot::SHARED..slot::used()).filter(|slot| !fork::is_lost(*slot)) {
            policy::flush(Cx::new(self, slot));
        }
        let cx = Cx::new(self, slot::SHARED);
        policy::flush_barns(cx);
        for node in 0..self.engine.nodes() {
            cx.shrink_node(node);
        }
        let slabs = |part: &crate::core::NodePart| part.node.nr_slabs.load(Relaxed);
        self.nodes.iter().map(slabs).sum()
    }
}

impl Engine {
    /// Frees an object of whichever cache, found by its address; false if it is none.
    ///
    /// # Safety
    /// `object` is in use, came from this engine, and is not freed again.
    pub unsafe fn free(&self, object: NonNull<u8>) -> bool {
        let (cache, exact) = match self.classify(object.as_ptr()) {
            engine::Address::Slab { cache, offset, .. } => (cache, offset == 0),
            engine::Address::Tail { cache, .. } => (cache, false),
            engine::Address::Guarded { cache, start, .. } => {
                (cache, start == object.as_ptr() as usize)
            }
            _ => return false,
        };
        let Some(core) = self.core.cache(cache) else {
            return false;
        };
        // A debug cache reports the pointer.
        if exact || core.hooks.is_some() {
            free_slow(core, object.as_ptr() as usize);
        }
        exact
    }
}
