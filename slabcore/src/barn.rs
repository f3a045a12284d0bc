//! A barn: full and empty sheaves of one node, exchanged whole.
//!
//! Source of truth: `struct node_barn` of mm/slub.c in Linux 7.0. A sheaf is an
//! array of object pointers; here the barn knows its address only, since what
//! it keeps is either full or empty. Nothing is filled under its lock.

use crate::sync::{AtomicU32, AtomicUsize, Guard, Lock, Ordering::Relaxed};

/// Full sheaves kept at most, and empty ones.
pub const MAX_SHEAVES: usize = 10;

/// Sheaves of a node.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Barn {
    lock: Lock,
    nr_full: AtomicU32,
    nr_empty: AtomicU32,
    full: [AtomicUsize; MAX_SHEAVES],
    empty: [AtomicUsize; MAX_SHEAVES],
}

#[cfg(not(any(loom, shuttle)))]
crate::segment::layout::fields!(Barn, "barn": nr_full, nr_empty, full, empty);

/// A sheaf that changed hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// The barn gave this sheaf for the one it got.
    Swapped(usize),
    /// There is room, but no sheaf to give in exchange: bring one.
    NoEmpty,
    /// Nothing changed.
    Refused,
}

impl Barn {
    /// The lock, for `fork`.
    pub(crate) fn lock(&self) -> &Lock {
        &self.lock
    }

    fn enter(&self, wait: bool) -> Option<Guard<'_>> {
        if wait {
            Some(self.lock.lock())
        } else {
            self.lock.try_lock()
        }
    }

    /// Gives an empty sheaf for a full one. `wait`: for the lock.
    pub fn full_for_empty(&self, empty: usize, wait: bool) -> Exchange {
        if self.nr_full.load(Relaxed) == 0 {
            return Exchange::Refused;
        }
        let Some(_held) = self.enter(wait) else {
            return Exchange::Refused;
        };
        let Some(full) = pop(&self.full, &self.nr_full) else {
            return Exchange::Refused;
        };
        // A place is free: of empty sheaves that do not fit, the caller keeps its own.
        if push(&self.empty, &self.nr_empty, empty) {
            return Exchange::Swapped(full);
        }
        push(&self.full, &self.nr_full, full);
        Exchange::Refused
    }

    /// Gives a full sheaf for an empty one.
    pub fn empty_for_full(&self, full: usize, wait: bool) -> Exchange {
        if self.nr_full.load(Relaxed) as usize >= MAX_SHEAVES {
            return Exchange::Refused;
        }
        let Some(_held) = self.enter(wait) else {
            return Exchange::Refused;
        };
        if self.nr_full.load(Relaxed) as usize >= MAX_SHEAVES {
            return Exchange::Refused;
        }
        let Some(empty) = pop(&self.empty, &self.nr_empty) else {
            return Exchange::NoEmpty;
        };
        push(&self.full, &self.nr_full, full);
        Exchange::Swapped(empty)
    }

    /// Puts a full sheaf in; false if there is no room.
    pub fn put_full(&self, full: usize) -> bool {
        let _held = self.lock.lock();
        push(&self.full, &self.nr_full, full)
    }

    /// Takes any full sheaf out.
    pub fn take_full(&self) -> Option<usize> {
        let _held = self.lock.lock();
        pop(&self.full, &self.nr_full)
    }

    /// Takes any empty sheaf out.
    pub fn take_empty(&self) -> Option<usize> {
        if self.nr_empty.load(Relaxed) == 0 {
            return None;
        }
        let _held = self.lock.lock();
        pop(&self.empty, &self.nr_empty)
    }

    /// Full and empty sheaves at this moment.
    pub fn counts(&self) -> (u32, u32) {
        (self.nr_full.load(Relaxed), self.nr_empty.load(Relaxed))
    }

    /// Calls `see` with each full sheaf while none can leave.
    pub fn each_full(&self, mut see: impl FnMut(usize)) {
        let _held = self.lock.lock();
        let n = self.nr_full.load(Relaxed) as usize;
        for sheaf in self.full.iter().take(n) {
            see(sheaf.load(Relaxed));
        }
    }
}

fn pop(stack: &[AtomicUsize; MAX_SHEAVES], len: &AtomicU32) -> Option<usize> {
    let n = len.load(Relaxed).checked_sub(1)?;
    len.store(n, Relaxed);
    stack.get(n as usize).map(|place| place.load(Relaxed))
}

fn push(stack: &[AtomicUsize; MAX_SHEAVES], len: &AtomicU32, sheaf: usize) -> bool {
    let n = len.load(Relaxed);
    let Some(place) = stack.get(n as usize) else {
        return false;
    };
    place.store(sheaf, Relaxed);
    len.store(n + 1, Relaxed);
    true
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sheaves_are_swapped_one_for_one() {
        let barn = Barn::default();
        assert_eq!(barn.full_for_empty(1, true), Exchange::Refused);
        assert_eq!(barn.empty_for_full(100, true), Exchange::NoEmpty);
        assert!(barn.put_full(100));
        assert_eq!(barn.full_for_empty(1, true), Exchange::Swapped(100));
        assert_eq!(barn.empty_for_full(100, true), Exchange::Swapped(1));
        assert_eq!(barn.counts(), (1, 0));
    }

    #[test]
    fn a_full_barn_refuses() {
        let barn = Barn::default();
        for sheaf in 1..=MAX_SHEAVES {
            assert!(barn.put_full(sheaf));
        }
        assert!(!barn.put_full(98));
        assert_eq!(barn.empty_for_full(99, false), Exchange::Refused);
        assert_eq!(barn.counts().0 as usize, MAX_SHEAVES);
    }
}
