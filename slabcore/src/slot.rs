//! Slots: virtual processors, each owned by one thread at a time.
//!
//! A thread gets a slot at its first slow path and gives it back when it ends,
//! through the destructor of a pthread key, after its caches have been flushed.
//! One slot serves all engines of the process: in thread-local storage lies the
//! byte offset of the slot's row, the same for every cache. Offset 0 leads to a
//! row that is always empty, so that no fast path asks whether there is a slot.
//!
//! Threads beyond [`MAX_SLOTS`], and threads whose slot is gone because they
//! are ending, share the row [`SHARED`] of each cache under that cache's lock.

#[cfg(not(shuttle))]
pub(crate) mod several;
mod tls;

use self::tls::State;
use crate::heap;
use crate::row::Row;
use crate::segment::{Event, event};
use crate::sync::{AtomicU32, Lock, Ordering::Relaxed};
use std::sync::atomic::AtomicU16;

/// Slots of a process, counting the empty and the shared one.
pub const MAX_SLOTS: u32 = 2048;
/// The slot of threads that have none.
pub const SHARED: u32 = 1;
const FIRST: u32 = 2;

/// Slots given back, as a stack; protected by `lock`.
struct Slots {
    lock: Lock,
    next_unused: AtomicU32,
    free: AtomicU32,
    below: [AtomicU16; MAX_SLOTS as usize],
    key: AtomicU32,
}

static SLOTS: Slots = Slots {
    lock: Lock::new(),
    next_unused: AtomicU32::new(FIRST),
    free: AtomicU32::new(0),
    below: [const { AtomicU16::new(0) }; MAX_SLOTS as usize],
    key: AtomicU32::new(0),
};

/// Address of this thread's row among `rows`; the first one if it has no slot.
#[inline(always)]
pub(crate) fn row(rows: usize) -> usize {
    tls::row(rows)
}

/// Bytes from the rows of slot 0 of a heap to those of this thread.
#[inline(always)]
pub(crate) fn heap_offset() -> usize {
    tls::heap_offset()
}

/// This thread is going to walk its stack; false if it does so already. What walks a stack may
/// allocate, with a lock of its own held (if code made at run time was registered with
/// `__register_frame`).
pub(crate) fn begin_capture() -> bool {
    let may = !tls::is_capturing();
    tls::set_capturing(true);
    may
}

/// Ends what [`begin_capture`] allowed.
pub(crate) fn end_capture() {
    tls::set_capturing(false);
}

/// This thread's slot, given at the first call; `None` if it must use [`SHARED`].
#[inline]
pub(crate) fn enter() -> Option<u32> {
    match tls::slot() {
        0 => ask(),
        slot => Some(slot),
    }
}

/// This thread's slot, if it has one already.
pub(crate) fn own() -> Option<u32> {
    let slot = tls::slot();
    (slot != 0).then_some(slot)
}

/// The lock of the slots, for `fork`.
pub(crate) fn lock() -> &'static Lock {
    &SLOTS.lock
}

/// Address of the word that counts the slots used so far.
#[cfg(not(shuttle))]
pub(crate) fn root() -> usize {
    &raw const SLOTS.next_unused as usize
}

/// Slots that are dealt out: those not on the stack of free ones. Without the lock, some
/// may be missing or free.
pub(crate) fn dealt() -> impl Iterator<Item = u32> {
    let mut free = [false; MAX_SLOTS as usize];
    let mut at = SLOTS.free.load(Relaxed);
    // Bounded, should the stack change meanwhile.
    for _ in 0..MAX_SLOTS {
        let Some(place) = free.get_mut(at as usize).filter(|_| at != 0) else {
            break;
        };
        *place = true;
        at = u32::from(SLOTS.below[at as usize].load(Relaxed));
    }
    (FIRST..used()).filter(move |slot| !free[*slot as usize])
}

/// Slots that have been used so far: their rows may hold something.
pub(crate) fn used() -> u32 {
    SLOTS.next_unused.load(Relaxed)
}

#[cold]
fn ask() -> Option<u32> {
    if tls::state() != State::New {
        return None;
    }
    tls::set_state(State::Asking);
    let slot = acquire();
    // Setting the key may allocate, if this process's malloc is ours.
    let armed = slot.is_some_and(|slot| {
        // The key exists since `acquire`.
        tls::arm(SLOTS.key.load(Relaxed) - 1, slot)
    });
    if !armed {
        if let Some(slot) = slot {
            release(slot);
        }
        tls::set_state(State::Without);
        return None;
    }
    let slot = slot?;
    tls::set_state(State::Owner);
    let of = |stride: usize| slot as usize * stride;
    tls::set_slot(slot, of(size_of::<Row>()), of(heap::STRIDE));
    Some(slot)
}

fn acquire() -> Option<u32> {
    let _held = SLOTS.lock.lock();
    if SLOTS.key.load(Relaxed) == 0 {
        let mut key = 0;
        // SAFETY: creates a key; the destructor may run on any thread.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(on_exit)) } != 0 {
            return None;
        }
        SLOTS.key.store(key + 1, Relaxed);
    }
    let free = SLOTS.free.load(Relaxed);
    if free != 0 {
        let below = SLOTS.below[free as usize].load(Relaxed);
        SLOTS.free.store(u32::from(below), Relaxed);
        return Some(free);
    }
    let unused = used();
    (unused < MAX_SLOTS).then(|| {
        SLOTS.next_unused.store(unused + 1, Relaxed);
        unused
    })
}

pub(crate) fn release(slot: u32) {
    let _held = SLOTS.lock.lock();
    let free = SLOTS.free.load(Relaxed);
    SLOTS.below[slot as usize].store(free as u16, Relaxed);
    SLOTS.free.store(slot, Relaxed);
}

/// Flushes the thread's rows in all engines and gives the slot back.
///
/// Runs after the destructors of Rust's thread-locals. What later destructors
/// of other keys allocate or free goes through the shared row.
extern "C" fn on_exit(slot: *mut libc::c_void) {
    tls::set_slot(0, 0, 0);
    tls::set_state(State::Without);
    give_back(slot as usize as u32);
}

fn give_back(slot: u32) {
    crate::engine::flush_slot(slot);
    event(Event::ThreadGone, 0, [slot.into(), 0]);
    release(slot);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_after_thread_exit() {
        let mine = enter().unwrap();
        assert_eq!(enter(), Some(mine));
        let before = used();
        for _ in 0..20 {
            let other = std::thread::spawn(|| enter().unwrap()).join().unwrap();
            assert_ne!(other, mine);
        }
        // Other tests run beside this one; twenty threads in turn need few slots.
        assert!(used() < before + 20);
    }
}
