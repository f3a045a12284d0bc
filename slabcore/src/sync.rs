//! Atomics and the one lock of the crate; `cfg(loom)` swaps both for loom's, `cfg(shuttle)`
//! for ones at which threads are switched.
//!
//! The lock is a futex word of which zero means free, so that it may lie in
//! freshly mapped memory. It allocates nothing, knows no poisoning and starts
//! no thread. It is not fair and not reentrant.

// What is only loaded and stored, by itself, needs no schedule.
pub use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(not(any(loom, shuttle)))]
pub use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence};

#[cfg(shuttle)]
mod scheduled;
#[cfg(shuttle)]
pub use scheduled::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Guard, Lock, fence};

#[cfg(not(shuttle))]
pub use lock::{Guard, Lock};

#[cfg(not(any(loom, shuttle)))]
pub(crate) use lock::LAYOUT;

#[cfg(not(any(loom, shuttle)))]
mod lock {
    use super::{AtomicU32, AtomicU64, Ordering};

    const FREE: u32 = 0;
    const HELD: u32 = 1;
    const CONTENDED: u32 = 2;
    /// Looks at a held lock this often before sleeping.
    const SPINS: u32 = 100;

    /// A mutual exclusion lock without data; what it protects is said where it is declared.
    ///
    /// It knows how often it was taken and how often somebody had to wait; whoever
    /// holds it counts, so that no locked instruction is needed.
    #[derive(Debug, Default)]
    #[repr(C)]
    pub struct Lock {
        word: AtomicU32,
        taken: AtomicU64,
        contended: AtomicU64,
    }

    crate::segment::layout::fields!(Lock, "lock": word, taken, contended);

    /// Holds a [`Lock`] until dropped.
    #[derive(Debug)]
    pub struct Guard<'a>(&'a Lock);

    impl Lock {
        /// A free lock.
        pub const fn new() -> Self {
            Self {
                word: AtomicU32::new(FREE),
                taken: AtomicU64::new(0),
                contended: AtomicU64::new(0),
            }
        }

        /// Waits for the lock.
        #[inline]
        pub fn lock(&self) -> Guard<'_> {
            if self.take().is_err() {
                self.wait();
                count(&self.contended);
            }
            count(&self.taken);
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
            if self.word.load(Ordering::Relaxed) != FREE {
                self.word.store(FREE, Ordering::Release);
            }
        }

        /// Takes the lock if it is free at this moment.
        #[inline]
        pub fn try_lock(&self) -> Option<Guard<'_>> {
            // Not `then_some`: a guard made in vain would release somebody else's lock.
            self.take().is_ok().then(|| {
                count(&self.taken);
                Guard(self)
            })
        }

        /// How often it was taken so far, and how often of these somebody had to wait.
        pub fn counts(&self) -> (u64, u64) {
            let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            (of(&self.taken), of(&self.contended))
        }

        /// Whether somebody sleeps until it is free.
        #[cfg(test)]
        pub fn is_waited_for(&self) -> bool {
            self.word.load(Ordering::Relaxed) == CONTENDED
        }

        #[inline]
        fn take(&self) -> Result<u32, u32> {
            self.word
                .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
        }

        #[cold]
        fn wait(&self) {
            for _ in 0..SPINS {
                if self.word.load(Ordering::Relaxed) == FREE && self.take().is_ok() {
                    return;
                }
                std::hint::spin_loop();
            }
            while self.word.swap(CONTENDED, Ordering::Acquire) != FREE {
                // SAFETY: FUTEX_WAIT reads one aligned word that outlives the call.
                unsafe {
                    libc::syscall(
                        libc::SYS_futex,
                        self.word.as_ptr(),
                        libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                        CONTENDED,
                        std::ptr::null::<libc::timespec>(),
                    );
                }
            }
        }
    }

    /// Counts; the caller holds the lock.
    #[inline]
    fn count(counter: &AtomicU64) {
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    impl Drop for Guard<'_> {
        #[inline]
        fn drop(&mut self) {
            if self.0.word.swap(FREE, Ordering::Release) == CONTENDED {
                // SAFETY: FUTEX_WAKE uses the address as a key only.
                unsafe {
                    libc::syscall(
                        libc::SYS_futex,
                        self.0.word.as_ptr(),
                        libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                        1,
                    );
                }
            }
        }
    }
}

#[cfg(loom)]
mod lock {
    /// A mutual exclusion lock without data.
    #[derive(Debug)]
    pub struct Lock(loom::sync::Mutex<()>);

    /// Holds a [`Lock`] until dropped.
    #[derive(Debug)]
    #[allow(dead_code)]
    pub struct Guard<'a>(loom::sync::MutexGuard<'a, ()>);

    impl Default for Lock {
        fn default() -> Self {
            Self::new()
        }
    }

    impl Lock {
        /// A free lock.
        pub fn new() -> Self {
            Self(loom::sync::Mutex::new(()))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> Guard<'_> {
            Guard(self.0.lock().unwrap())
        }

        /// Takes the lock if it is free at this moment.
        pub fn try_lock(&self) -> Option<Guard<'_>> {
            self.0.try_lock().ok().map(Guard)
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_refused_attempt_leaves_the_lock_held() {
        let lock = Lock::new();
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        assert!(lock.try_lock().is_none(), "still held");
        drop(held);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn who_waits_is_counted_and_who_is_refused_is_not() {
        let lock = Lock::new();
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        assert_eq!(lock.counts(), (1, 0));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(lock.lock()));
            while !lock.is_waited_for() {
                std::thread::yield_now();
            }
            drop(held);
            waiting.join().unwrap();
        });
        assert_eq!(lock.counts(), (2, 1));
    }

    #[test]
    fn holders_exclude_each_other() {
        let (lock, shared) = (Lock::new(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let _held = lock.lock();
                        let n = shared.load(Ordering::Relaxed);
                        shared.store(n + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(shared.load(Ordering::Relaxed), 80_000);
        assert_eq!(lock.counts().0, 80_000);
    }
}
