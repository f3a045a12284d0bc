//! The words as thread-locals of Rust.

use super::State;
use std::cell::Cell;

#[cfg(shuttle)]
use shuttle::thread_local;

thread_local! {
    // No destructor: a key sees to thread exit.
    static OFFSET: Cell<usize> = const { Cell::new(0) };
    static HEAP_OFFSET: Cell<usize> = const { Cell::new(0) };
    static SLOT: Cell<u32> = const { Cell::new(0) };
    static STATE: Cell<State> = const { Cell::new(State::New) };
    static CAPTURING: Cell<bool> = const { Cell::new(false) };
}

/// Address of this thread's row among `rows`.
#[inline(always)]
pub(in crate::slot) fn row(rows: usize) -> usize {
    rows + OFFSET.with(Cell::get)
}

#[inline(always)]
pub(in crate::slot) fn heap_offset() -> usize {
    HEAP_OFFSET.with(Cell::get)
}

#[inline(always)]
pub(in crate::slot) fn slot() -> u32 {
    SLOT.with(Cell::get)
}

pub(in crate::slot) fn state() -> State {
    STATE.with(Cell::get)
}

pub(in crate::slot) fn set_state(state: State) {
    STATE.with(|it| it.set(state));
}

pub(in crate::slot) fn is_capturing() -> bool {
    CAPTURING.with(Cell::get)
}

pub(in crate::slot) fn set_capturing(on: bool) {
    CAPTURING.with(|it| it.set(on));
}

pub(in crate::slot) fn set_slot(slot: u32, offset: usize, heap_offset: usize) {
    SLOT.with(|it| it.set(slot));
    HEAP_OFFSET.with(|it| it.set(heap_offset));
    OFFSET.with(|it| it.set(offset));
}
