//! What a thread knows of its slot, and how it is told that it ends.

use std::cell::Cell;

#[cfg(shuttle)]
use shuttle::thread_local;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    New,
    /// Between asking for a slot and having it; an allocation in between is shared.
    Asking,
    Owner,
    /// Ended, or no slot was left.
    Without,
}

thread_local! {
    // No destructor: a key sees to thread exit.
    static OFFSET: Cell<usize> = const { Cell::new(0) };
    static SLOT: Cell<u32> = const { Cell::new(0) };
    static STATE: Cell<State> = const { Cell::new(State::New) };
}

#[inline(always)]
pub(super) fn offset() -> usize {
    OFFSET.with(Cell::get)
}

#[inline(always)]
pub(super) fn slot() -> u32 {
    SLOT.with(Cell::get)
}

pub(super) fn state() -> State {
    STATE.with(Cell::get)
}

pub(super) fn set_state(state: State) {
    STATE.with(|it| it.set(state));
}

pub(super) fn set_slot(slot: u32, offset: usize) {
    SLOT.with(|it| it.set(slot));
    OFFSET.with(|it| it.set(offset));
}

/// Has the key's destructor called with the slot when this thread ends.
#[cfg(not(shuttle))]
pub(super) fn arm(key: u32, slot: u32) -> bool {
    // SAFETY: the caller made the key; the value is a number, never dereferenced.
    unsafe { libc::pthread_setspecific(key, slot as usize as *const _) == 0 }
}

/// Threads of a shuttle run are coroutines of one thread and have destructors of their own.
#[cfg(shuttle)]
pub(super) fn arm(_key: u32, slot: u32) -> bool {
    struct Exit(Cell<u32>);
    impl Drop for Exit {
        fn drop(&mut self) {
            super::give_back(self.0.get());
        }
    }
    shuttle::thread_local!(static EXIT: Exit = Exit(Cell::new(0)));
    EXIT.with(|exit| exit.0.set(slot));
    true
}
