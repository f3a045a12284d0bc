//! Atomics and the lock under shuttle: the real ones, with points at which another thread may
//! go on.
//!
//! Shuttle's own atomics cannot lie in zeroed memory, where the engine keeps rows and
//! descriptors. All threads of a run are coroutines of one real thread, so memory is
//! sequentially consistent: orderings are loom's business (`tests/loom`).
//!
//! There is a point before each access that orders something and before each access to a
//! link. Relaxed accesses to other words have none: those are counters and words of the
//! thread's own row, or hints that are checked again behind a point.

use std::sync::atomic::{self as real, Ordering, Ordering::Relaxed};
use std::time::Duration;

/// Another thread may go on here.
fn point() {
    // Locks are released while a failed test unwinds, too.
    if !std::thread::panicking() {
        // No time passes; it is a plain switch.
        shuttle::thread::sleep(Duration::ZERO);
    }
}

fn point_unless(relaxed: bool) {
    if !relaxed {
        point();
    }
}

/// A fence, and a point.
pub fn fence(order: Ordering) {
    point();
    real::fence(order);
}

macro_rules! atomics {
    ($($name:ident of $int:ty, relaxed accesses have points: $always:literal;)*) => {$(
        /// As in the standard library.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(real::$name);

        impl $name {
            /// As in the standard library.
            pub const fn new(value: $int) -> Self {
                Self(real::$name::new(value))
            }
            /// As in the standard library.
            ///
            /// # Safety
            /// As there.
            pub const unsafe fn from_ptr<'a>(at: *mut $int) -> &'a Self {
                // SAFETY: by the contract; the layout is that of the real one.
                unsafe { &*at.cast::<Self>() }
            }
            /// As in the standard library.
            pub fn load(&self, order: Ordering) -> $int {
                point_unless(order == Relaxed && !$always);
                self.0.load(order)
            }
            /// As in the standard library.
            pub fn store(&self, value: $int, order: Ordering) {
                point_unless(order == Relaxed && !$always);
                self.0.store(value, order);
            }
            /// As in the standard library.
            pub fn get_mut(&mut self) -> &mut $int {
                self.0.get_mut()
            }
            /// As in the standard library.
            pub fn swap(&self, value: $int, order: Ordering) -> $int {
                point();
                self.0.swap(value, order)
            }
            /// As in the standard library.
            pub fn compare_exchange(
                &self,
                old: $int,
                new: $int,
                done: Ordering,
                failed: Ordering,
            ) -> Result<$int, $int> {
                point();
                self.0.compare_exchange(old, new, done, failed)
            }
            /// As in the standard library.
            pub fn fetch_add(&self, n: $int, order: Ordering) -> $int {
                point();
                self.0.fetch_add(n, order)
            }
            /// As in the standard library.
            pub fn fetch_sub(&self, n: $int, order: Ordering) -> $int {
                point();
                self.0.fetch_sub(n, order)
            }
            /// As in the standard library.
            pub fn fetch_max(&self, n: $int, order: Ordering) -> $int {
                point();
                self.0.fetch_max(n, order)
            }
        }
    )*};
}

atomics! {
    AtomicU16 of u16, relaxed accesses have points: true;
    AtomicU32 of u32, relaxed accesses have points: false;
    AtomicU64 of u64, relaxed accesses have points: false;
    AtomicUsize of usize, relaxed accesses have points: false;
}

/// A mutual exclusion lock without data.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Lock(real::AtomicU32);

/// Holds a [`Lock`] until dropped.
#[derive(Debug)]
pub struct Guard<'a>(&'a Lock);

impl Lock {
    /// A free lock.
    pub const fn new() -> Self {
        Self(real::AtomicU32::new(0))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_> {
        point();
        while self.0.swap(1, Ordering::Acquire) != 0 {
            shuttle::thread::yield_now();
        }
        Guard(self)
    }

    /// Waits for the lock and has it until [`Lock::release`].
    pub(crate) fn keep(&self) {
        std::mem::forget(self.lock());
    }

    /// As [`Lock::keep`], if the lock is free at this moment.
    pub(crate) fn try_keep(&self) -> bool {
        self.try_lock().map(std::mem::forget).is_some()
    }

    /// Ends [`Lock::keep`].
    pub(crate) fn release(&self) {
        drop(Guard(self));
    }

    /// Makes the lock free, whoever had it: a thread that is gone.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Nothing is counted in these runs.
    pub fn counts(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Takes the lock if it is free at this moment.
    pub fn try_lock(&self) -> Option<Guard<'_>> {
        point();
        (self.0.swap(1, Ordering::Acquire) == 0).then(|| Guard(self))
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        point();
        self.0.0.store(0, Ordering::Release);
    }
}
