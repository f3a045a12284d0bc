//! Fork: the child may use every engine at once, whatever other threads were doing.
//!
//! Handlers of `pthread_atfork`, registered with the first engine:
//! * before: no thread exits, validates or makes an engine (registry); threads
//!   at the entry of slow paths wait, those inside are waited for, but not for
//!   long, since they may wait for something that the forking thread has; then
//!   every lock is taken, in the order of `engine.rs`;
//! * after, in parent and child: every lock is released. A lock that another
//!   thread held at the fork is so never held in the child.
//!
//! In the child the other threads are gone at some instruction each. What they
//! wrote before it is there, in their order (x86-64; the system copies pages
//! while they are write-protected). So for each of their slots the handler, while
//! it is the child's only thread, asks [`INSIDE`]: outside of slow paths a row changes by one store that comes last
//! (the array's count, the list's head), so it is whole, and is flushed as if the
//! thread had ended. A slot caught inside a slow path is **lost**: its rows may be
//! torn, nobody looks at them again, and its slot is not used again. What it held,
//! two arrays and its slabs, stays in use for ever in the child; destroying such
//! a cache tells of the objects and keeps the memory. Objects that threads had in
//! their hands are in use, too, as the child's program must expect.
//!
//! The flush waits for the child's first slow path, so that a child that runs
//! another program at once copies nothing. Not for `vfork`, or `clone` called
//! directly, which run no handlers. A child cannot rely on `std::thread` if other
//! threads began or ended at the fork: Rust's own list of threads has a lock that
//! nobody resets. A run that is being given back to the system
//! by another thread is not found again in the child.

use crate::core::CacheCore;
use crate::engine::{self, EngineCore};
use crate::segment;
use crate::slot::{self, MAX_SLOTS};
use crate::sync::{AtomicU32, AtomicU64, Lock, Ordering, Ordering::Relaxed};
use std::ptr;
use std::sync::atomic::compiler_fence;
use std::time::Duration;

/// Nothing special.
const CALM: u32 = 0;
/// A thread is forking: stay out of slow paths if possible.
const FORKING: u32 = 1;
/// This is a child, and the slots of threads that are gone wait to be flushed.
const CHILD: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(CALM);

/// Waits of this length, and how many at most.
const WAIT: Duration = Duration::from_micros(50);
const WAITS: u32 = 400;

/// Forks from the first process of the program to this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Forks from the first process of the program to this one: not the same in a child.
#[cfg(not(shuttle))]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Marks a lost slot.
pub(crate) const LOST: u32 = u32::MAX;

/// Slots, a bit each, of threads that a child does not have and whose rows are whole: they
/// wait to be flushed. Set by the child's only thread.
static GONE: [AtomicU64; MAX_SLOTS as usize / 64] =
    [const { AtomicU64::new(0) }; MAX_SLOTS as usize / 64];

/// Slow paths of a thread from one look at the time to the next, after as many of which each
/// was one: a small program has few.
const LOOK_AT_TIME: u32 = 64;

/// How many slow paths a slot's thread is in (a constructor may use other caches), or
/// [`LOST`]; and how many it has been in.
#[repr(align(64))]
struct Inside(AtomicU32, AtomicU32);

static INSIDE: [Inside; MAX_SLOTS as usize] =
    [const { Inside(AtomicU32::new(0), AtomicU32::new(0)) }; MAX_SLOTS as usize];

/// Bytes from one slot's entry to the next.
#[cfg(not(shuttle))]
pub(crate) const INSIDE_BYTES: usize = size_of::<Inside>();

/// Address of the first slot's entry.
#[cfg(not(shuttle))]
pub(crate) fn root() -> usize {
    &raw const INSIDE as usize
}

fn inside(slot: u32) -> &'static AtomicU32 {
    &INSIDE[slot as usize % INSIDE.len()].0
}

/// Whether the calling thread was interrupted in a slow path of its own slot, as a signal handler
/// may find it: it may hold locks then.
pub(crate) fn is_interrupted(slot: u32) -> bool {
    inside(slot).load(Relaxed) != 0
}

/// A thread is in a slow path while it has this.
pub(crate) struct SlowPath(u32);

impl SlowPath {
    /// Enters; `slot` is the calling thread's own.
    #[inline]
    pub fn enter(slot: u32) -> Self {
        let depth = inside(slot).load(Relaxed);
        inside(slot).store(depth + 1, Relaxed);
        // Nothing of the slow path is written before. On x86-64 that costs nothing. A thread that
        // forks may not see it at once and not wait; the child sees it, and the slot is lost.
        compiler_fence(Ordering::SeqCst);
        if STATE.load(Relaxed) != CALM {
            return Self::enter_later(slot, depth);
        }
        Self(slot)
    }

    #[cold]
    fn enter_later(slot: u32, depth: u32) -> Self {
        inside(slot).store(depth, Relaxed);
        if STATE.load(Relaxed) == CHILD {
            engine::with_registry(|| ());
        }
        // Who is inside already is waited for, so must not wait.
        let mut waits = if depth == 0 { WAITS } else { 0 };
        while waits > 0 && STATE.load(Relaxed) == FORKING {
            std::thread::sleep(WAIT);
            waits -= 1;
        }
        inside(slot).store(depth + 1, Relaxed);
        compiler_fence(Ordering::SeqCst);
        Self(slot)
    }
}

impl Drop for SlowPath {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        let depth = inside(self.0).load(Relaxed);
        inside(self.0).store(depth - 1, Relaxed);
    }
}

/// Counts a slow path; tells whether it is time to look at the time.
#[inline]
pub(crate) fn time_to_look(slot: u32) -> bool {
    let count = &INSIDE[slot as usize % INSIDE.len()].1;
    let now = count.load(Relaxed).wrapping_add(1);
    count.store(now, Relaxed);
    now < LOOK_AT_TIME || now.is_multiple_of(LOOK_AT_TIME)
}

/// Whether a slot has been in more than a few slow paths.
pub(crate) fn is_settled(slot: u32) -> bool {
    let count = &INSIDE[slot as usize % INSIDE.len()].1;
    count.load(Relaxed) >= LOOK_AT_TIME
}

/// Whether the calling thread, whose slot it is, is in no slow path.
pub(crate) fn is_outside(slot: u32) -> bool {
    inside(slot).load(Relaxed) == 0
}

/// Whether a slot's rows are torn and must be left alone.
pub(crate) fn is_lost(slot: u32) -> bool {
    inside(slot).load(Relaxed) == LOST
}

/// Registers the handlers, once. No lock is held.
pub(crate) fn register() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    if ASKED.swap(1, Ordering::AcqRel) == 0 {
        // SAFETY: the handlers are functions of this program; without memory for them the
        // child is as it would be without this module.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

extern "C" fn before() {
    engine::registry_lock().keep();
    recover_held();
    STATE.store(FORKING, Ordering::SeqCst);
    let own = slot::own();
    let mut waits = WAITS;
    let others = |slot: &u32| {
        Some(*slot) != own && !matches!(inside(*slot).load(Ordering::Acquire), 0 | LOST)
    };
    while waits > 0 && slot::dealt().any(|slot| others(&slot)) {
        std::thread::sleep(WAIT);
        waits -= 1;
    }
    slot::lock().keep();
    keep_outer_locks();
    each_lock(own, Lock::keep);
}

/// A constructor may use another cache, or make one, in any order, with the first one's
/// shared row locked. So takes the locks of tables and shared rows all or none.
fn keep_outer_locks() {
    loop {
        let Some(held) = outer_locks().position(|lock| !lock.try_keep()) else {
            return;
        };
        release_outer(held);
        std::thread::sleep(WAIT);
    }
}

/// Caches come under their table's lock, which is before them here, and go under the registry's.
fn outer_locks() -> impl Iterator<Item = &'static Lock> {
    engine::registered().flat_map(|engine| {
        let shared = engine.caches().map(|cache| &cache.shared);
        std::iter::once(&engine.table_lock).chain(shared)
    })
}

fn caches() -> impl Iterator<Item = &'static CacheCore> {
    engine::registered().flat_map(EngineCore::caches)
}

/// All locks but those of the registry, slots, tables and shared rows.
fn each_lock(own: Option<u32>, each: impl Fn(&Lock)) {
    for engine in engine::registered() {
        for cache in engine.caches() {
            // Others' wake queues: the child resets them.
            if let Some(own) = own {
                each(cache.row(own).queue.0.lock());
            }
            for part in &cache.nodes {
                each(&part.node.list_lock);
                each(part.barn.lock());
            }
            each(&cache.pool_lock);
            if let Some(lock) = cache.hooks.and_then(|hooks| hooks.lock()) {
                each(lock);
            }
        }
        if let Some(pool) = engine.guarded {
            each(pool.lock());
        }
        each(&engine.pages.lock);
        each(engine.meta_lock());
    }
}

fn release_all() {
    each_lock(slot::own(), Lock::release);
    release_outer(usize::MAX);
    slot::lock().release();
}

/// Releases the first `n` outer locks; tables last, since caches come while a table is free,
/// which would move what is behind.
fn release_outer(n: usize) {
    let is_table = |lock: &&'static Lock| {
        engine::registered().any(|it| ptr::eq(&raw const it.table_lock, *lock))
    };
    let tables = outer_locks().take(n).filter(is_table).count();
    let shared = outer_locks().take(n).filter(|lock| !is_table(lock));
    shared.for_each(Lock::release);
    engine::registered()
        .take(tables)
        .for_each(|it| it.table_lock.release());
}

extern "C" fn in_parent() {
    release_all();
    STATE.store(CALM, Ordering::SeqCst);
    engine::registry_lock().release();
}

extern "C" fn in_child() {
    GENERATION.store(GENERATION.load(Relaxed).wrapping_add(1), Relaxed);
    take_stock();
    release_all();
    segment::after_fork();
    STATE.store(CHILD, Ordering::SeqCst);
    engine::registry_lock().release();
}

/// Tells the slots of threads that the child does not have: to be flushed, or lost. The
/// calling thread is the only one.
fn take_stock() {
    let own = slot::own();
    for slot in slot::dealt().filter(|slot| Some(*slot) != own && !is_lost(*slot)) {
        if inside(slot).load(Relaxed) == 0 && cfg!(target_arch = "x86_64") {
            let word = &GONE[slot as usize / 64 % GONE.len()];
            word.store(word.load(Relaxed) | 1 << (slot % 64), Relaxed);
        } else {
            inside(slot).store(LOST, Relaxed);
        }
    }
    // Whoever held one of these is gone; slots that are lost or free have queues, too.
    for cache in caches() {
        let others = (slot::SHARED..slot::used()).filter(|slot| Some(*slot) != own);
        others.for_each(|slot| cache.row(slot).queue.0.lock().reset());
    }
}

/// Flushes the slots of threads that are gone, in a child. The registry lock is held.
pub(crate) fn recover_held() {
    if STATE.load(Relaxed) != CHILD {
        return;
    }
    // Allocations of this thread meanwhile must not come here again.
    STATE.store(CALM, Ordering::SeqCst);
    for (at, word) in GONE.iter().enumerate() {
        let mut bits = word.swap(0, Ordering::AcqRel);
        while bits != 0 {
            let slot = at as u32 * 64 + bits.trailing_zeros();
            bits &= bits - 1;
            engine::flush_slot_held(slot);
            slot::release(slot);
        }
    }
    segment::ready();
}
