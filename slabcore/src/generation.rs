//! Words in memory that another process reads: moments of a record, and requests.
//!
//! Source of truth: the generations of PCP's MMV format and of seqlocks. One process writes
//! a record, one thread at a time; readers never make it wait. What it does not do: say
//! what is in the records.

use crate::sync::{AtomicU64, Ordering, Ordering::Relaxed, fence};

/// Two words around a record: equal and even, the record is of one moment.
#[derive(Debug, Clone, Copy)]
pub struct Generation<'a> {
    /// Odd while the record changes; what a reader looks at last.
    pub first: &'a AtomicU64,
    /// Set when the change is done; what a reader looks at first.
    pub second: &'a AtomicU64,
}

impl Generation<'_> {
    /// Runs a change of the record. Nobody else changes it meanwhile.
    pub fn change<R>(self, change: impl FnOnce() -> R) -> R {
        // A writer that ended in the middle has left it odd.
        let now = self.first.load(Relaxed) & !1;
        self.first.store(now + 1, Relaxed);
        // Nothing of the record is written before.
        fence(Ordering::Release);
        let result = change();
        self.second.store(now + 2, Ordering::Release);
        self.first.store(now + 2, Ordering::Release);
        result
    }

    /// What `look` sees of the record, if it is of one moment.
    pub fn read<R>(self, look: impl FnOnce() -> R) -> Option<R> {
        let before = self.second.load(Ordering::Acquire);
        let seen = look();
        // What was looked at is not read after this.
        fence(Ordering::Acquire);
        let after = self.first.load(Relaxed);
        whole(after, before).then_some(seen)
    }
}

/// Whether two words, read in the right order, are those of a record of one moment.
pub const fn whole(first: u64, second: u64) -> bool {
    first == second && first.is_multiple_of(2)
}

/// Requests of another process, one at a time, each with a number of its own.
#[derive(Debug, Clone, Copy)]
pub struct Requests<'a> {
    /// Written by who asks.
    pub request: &'a AtomicU64,
    /// The request that a thread took up.
    pub taken: &'a AtomicU64,
    /// The request that was answered.
    pub done: &'a AtomicU64,
}

impl Requests<'_> {
    /// A request that nobody has taken up, for this thread to answer.
    pub fn take(self) -> Option<u64> {
        let request = self.request.load(Ordering::Acquire);
        let taken = self.taken.load(Relaxed);
        if request == taken {
            return None;
        }
        let set = { self.taken }.compare_exchange(taken, request, Ordering::AcqRel, Relaxed);
        set.is_ok().then_some(request)
    }

    /// The request after another one; the lowest 8 bits say what is asked.
    pub const fn next(last: u64, what: u64) -> u64 {
        ((last >> 8).wrapping_add(1) << 8) | what & 0xff
    }

    /// The answer is there.
    pub fn finish(self, request: u64) {
        self.done.store(request, Ordering::Release);
    }
}
