//! Limits on one look, so that no process can keep a reader busy for ever, or fill its memory.
//!
//! Everything that a look costs is paid here: bytes and pieces that are read, steps of loops
//! whose ends another process tells, room that is held meanwhile, and time. Once reading or
//! time is spent nothing more is read and every step says so; room that is given back can be
//! taken again. What it does not do: end a read that the system does not end; who must go on
//! whatever happens looks from a thread of its own.

use super::Refusal;
use super::memory::{Memory, Part};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// What one look may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that are read; each piece and each step counts as some.
    pub bytes: u64,
    /// Bytes of memory that are held at one time.
    pub held: usize,
    /// How long it takes.
    pub time: Duration,
    /// Several looks in a row end by then, if it is told.
    pub until: Option<Instant>,
}

impl Limits {
    /// The descriptors of a terabyte of slabs, lists of a few million slabs and objects, and
    /// as long as somebody waits for a command.
    pub const DEFAULT: Self = Self {
        bytes: 16 << 30,
        held: 32 << 20,
        time: Duration::from_secs(2),
        until: None,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a piece costs at least.
const LEAST: u64 = 256;
/// What a step costs.
const STEP: u64 = 16;
/// Steps between two looks at the clock.
const UNSEEN: u64 = 4096;

/// Memory, and how much of the limits is left.
#[derive(Debug)]
pub(super) struct Budget<M: ?Sized> {
    limits: Cell<Limits>,
    left: Cell<u64>,
    held: Cell<usize>,
    unseen: Cell<u64>,
    end: Cell<Option<Instant>>,
    memory: M,
}

/// Any memory within its limits: what a look reads.
pub(super) type Bounded<'m> = Budget<dyn Memory + 'm>;

impl<M> Budget<M> {
    pub const fn new(memory: M) -> Self {
        Self {
            limits: Cell::new(Limits::DEFAULT),
            left: Cell::new(0),
            held: Cell::new(0),
            unseen: Cell::new(0),
            end: Cell::new(None),
            memory,
        }
    }

    pub fn limit(&self, limits: Limits) {
        self.limits.set(limits);
    }

    /// A new look begins.
    pub fn renew(&self) {
        let limits = self.limits.get();
        self.left.set(limits.bytes);
        self.unseen.set(0);
        let end = Instant::now().checked_add(limits.time);
        self.end.set(end.into_iter().chain(limits.until).min());
        self.look_at_the_clock();
    }

    pub const fn inner(&self) -> &M {
        &self.memory
    }
}

impl<M: ?Sized> Budget<M> {
    /// The look came to its limit.
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    fn pay(&self, cost: u64) -> bool {
        let left = self.left.get().saturating_sub(cost);
        self.left.set(left);
        left > 0
    }

    fn look_at_the_clock(&self) {
        self.unseen.set(0);
        if self.end.get().is_some_and(|end| Instant::now() >= end) {
            self.left.set(0);
        }
    }

    /// One step of a loop that another process could make long.
    pub fn step(&self) -> Result<(), Refusal> {
        self.steps(1)
    }

    /// So many steps.
    pub fn steps(&self, n: usize) -> Result<(), Refusal> {
        let n = n as u64;
        let unseen = self.unseen.get().saturating_add(n);
        self.unseen.set(unseen);
        let paid = self.pay(n.saturating_mul(STEP));
        if unseen >= UNSEEN {
            self.look_at_the_clock();
        }
        if paid && !self.is_spent() {
            Ok(())
        } else {
            Err(Refusal::TooMuch)
        }
    }

    /// Why what is at an address did not come.
    pub fn missing(&self, at: u64) -> Refusal {
        if self.is_spent() {
            Refusal::TooMuch
        } else {
            Refusal::Memory(at)
        }
    }

    /// Room for so many values, until the answer is dropped.
    pub fn hold<T>(&self, values: usize) -> Result<Held<'_>, Refusal> {
        let mut held = Held {
            of: &self.held,
            limit: self.limits.get().held,
            bytes: 0,
        };
        held.more::<T>(values)?;
        Ok(held)
    }
}

impl<M: Memory + ?Sized> Budget<M> {
    /// Reads pieces, in as few steps as possible; nothing once the look is spent.
    pub fn read(&self, parts: &mut [Part<'_>]) {
        let cost = parts.iter().map(|part| LEAST.max(part.into.len() as u64));
        if !self.pay(cost.sum()) {
            return;
        }
        self.memory.read(parts);
        self.look_at_the_clock();
    }

    /// Reads all of one piece.
    pub fn get(&self, at: u64, into: &mut [u8]) -> Result<(), Refusal> {
        let mut part = [Part::new(at, into)];
        self.read(&mut part);
        let [part] = part;
        if part.whole() {
            Ok(())
        } else {
            Err(self.missing(at))
        }
    }

    /// It may change between two reads.
    pub fn is_live(&self) -> bool {
        self.memory.is_live()
    }
}

/// Room that is held.
#[derive(Debug)]
pub(super) struct Held<'b> {
    of: &'b Cell<usize>,
    limit: usize,
    bytes: usize,
}

impl Held<'_> {
    /// Room for more values.
    pub fn more<T>(&mut self, values: usize) -> Result<(), Refusal> {
        let bytes = values.checked_mul(size_of::<T>());
        let all = bytes.and_then(|bytes| self.of.get().checked_add(bytes));
        let all = all.filter(|all| *all <= self.limit);
        self.of.set(all.ok_or(Refusal::TooMuch)?);
        self.bytes += bytes.unwrap_or(0);
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.of.set(self.of.get().saturating_sub(self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeroes everywhere.
    #[derive(Debug)]
    struct Zeroes;

    impl Memory for Zeroes {
        fn read(&self, parts: &mut [Part<'_>]) {
            for part in parts {
                part.into.fill(0);
                part.got = part.into.len();
            }
        }
        fn is_live(&self) -> bool {
            false
        }
    }

    fn small(bytes: u64, time: Duration) -> Budget<Zeroes> {
        let budget = Budget::new(Zeroes);
        let held = 100;
        let until = None;
        budget.limit(Limits {
            bytes,
            held,
            time,
            until,
        });
        budget.renew();
        budget
    }

    #[test]
    fn reads_and_steps_end_with_the_budget_and_a_new_look_has_a_new_one() {
        let budget = small(4096, Duration::MAX);
        let read = || (0..100).filter(|_| budget.get(0, &mut [0; 8]).is_ok());
        assert_eq!(read().count(), 15);
        assert_eq!(budget.get(0, &mut [0; 8]), Err(Refusal::TooMuch));
        assert_eq!(budget.step(), Err(Refusal::TooMuch));
        budget.renew();
        assert_eq!((0..1000).filter(|_| budget.step().is_ok()).count(), 255);
        assert!(budget.get(0, &mut [0; 8]).is_err() && budget.is_spent());
    }

    #[test]
    fn loops_and_reads_end_with_the_time() {
        let budget = small(u64::MAX, Duration::from_millis(5));
        let began = Instant::now();
        while budget.step().is_ok() {}
        assert!(began.elapsed() < Duration::from_secs(2));
        budget.renew();
        while budget.get(0, &mut [0; 8]).is_ok() {}
        assert!(budget.is_spent());
    }

    #[test]
    fn looks_in_a_row_end_together() {
        let budget = small(u64::MAX, Duration::MAX);
        let began = Instant::now();
        budget.limit(Limits {
            until: Some(began + Duration::from_millis(5)),
            ..budget.limits.get()
        });
        for _ in 0..10 {
            budget.renew();
            while budget.step().is_ok() {}
        }
        assert!(began.elapsed() < Duration::from_secs(2) && budget.is_spent());
        // What is over is not begun.
        budget.renew();
        assert!(budget.is_spent() && budget.get(0, &mut [0; 8]).is_err());
    }

    #[test]
    fn room_is_bounded_and_comes_back() {
        let budget = small(u64::MAX, Duration::MAX);
        let mut some = budget.hold::<u64>(10).unwrap();
        assert_eq!(some.more::<u64>(3), Err(Refusal::TooMuch));
        assert!(some.more::<u64>(2).is_ok() && budget.hold::<u64>(1).is_err());
        assert!(budget.hold::<u64>(usize::MAX / 4).is_err());
        drop(some);
        assert!(budget.hold::<u64>(12).is_ok());
    }
}
