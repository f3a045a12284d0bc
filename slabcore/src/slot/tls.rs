//! What a thread knows of its slot, and how it is told that it ends.
//!
//! Three words without a destructor. Rust's thread-locals are one load in an executable,
//! but a call of `__tls_get_addr` in a shared object. With the feature `initial-exec` they are
//! a symbol of our own (`initial_exec`), which is as fast in both.

#[cfg_attr(
    all(
        feature = "initial-exec",
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(shuttle, miri))
    ),
    path = "tls/initial_exec.rs"
)]
#[cfg_attr(
    not(all(
        feature = "initial-exec",
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(shuttle, miri))
    )),
    path = "tls/local.rs"
)]
mod words;

pub(super) use self::words::{
    heap_offset, is_capturing, row, set_capturing, set_slot, set_state, slot, state,
};

#[cfg(shuttle)]
use std::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum State {
    New,
    /// Between asking for a slot and having it; an allocation in between is shared.
    Asking,
    Owner,
    /// Ended, or no slot was left.
    Without,
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
