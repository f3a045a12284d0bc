//! Stacks, kept once each in memory that the caller provides.
//!
//! A depot is an append-only table in a region of zeroed 64-bit words, made to be read from another process too:
//!
//! ```text
//! word 0   magic "slabdep1"
//! word 1   buckets (a power of two)
//! word 2   words used, from the start of the region
//! word 3   stacks that found no room
//! word 4   stacks kept
//! word 8   buckets: index of the newest record with this hash, or 0
//! then     records: [hash << 32 | frames] [next record or 0] [frame addresses ...]
//! ```
//!
//! The handle of a stack is the word index of its record, so it fits in 32 bits and is never 0. Saving is lock-free
//! and survives fork: a record is written whole before the bucket points to it, and never changes afterwards. Two
//! threads that save the same new stack at once agree on one record; the loser gives its room back if it was the last
//! taken, or else leaves it unused.
//!
//! A reader trusts nothing: indices and lengths are bounded by the region, chains by a step count. What it does not
//! do: forget stacks, or name the functions.

use crate::slot;
use core::ffi::{c_int, c_void};
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU64, Ordering};

/// The most frames of one stack that are kept; deeper ones are cut.
pub const MAX_FRAMES: usize = 32;

const MAGIC: u64 = u64::from_le_bytes(*b"slabdep1");
const BUCKETS: usize = 1;
pub(crate) const USED: usize = 2;
const DROPPED: usize = 3;
const KEPT: usize = 4;
const FIRST_BUCKET: usize = 8;
const RECORD_HEAD: usize = 2;

/// Names a stack of a depot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(NonZeroU32);

impl Handle {
    /// A handle from its number; `None` for 0.
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    fn index(self) -> usize {
        self.get() as usize
    }
}

/// The frames of a kept stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    frames: [u64; MAX_FRAMES],
    len: usize,
}

impl Frames {
    /// The addresses, innermost first.
    pub fn as_slice(&self) -> &[u64] {
        self.frames.get(..self.len).unwrap_or(&[])
    }
}

/// A table of stacks.
#[derive(Clone, Copy, Debug)]
pub struct StackDepot<'r> {
    region: &'r [AtomicU64],
    buckets: usize,
}

impl<'r> StackDepot<'r> {
    /// Makes an empty depot in zeroed memory. `None` if the region is smaller than 64 words.
    ///
    /// About one word in eight becomes buckets. Only what is used is touched, so a large region costs address space.
    pub fn create(region: &'r [AtomicU64]) -> Option<Self> {
        if region.len() < 64 {
            return None;
        }
        let buckets = 1 << (region.len().min(1 << 20) / 8).ilog2();
        region
            .get(BUCKETS)?
            .store(buckets as u64, Ordering::Relaxed);
        region
            .get(USED)?
            .store((FIRST_BUCKET + buckets) as u64, Ordering::Relaxed);
        region.first()?.store(MAGIC, Ordering::Release);
        Some(Self { region, buckets })
    }

    /// Uses a depot that exists, for example one copied from another process. `None` if it is none.
    pub fn attach(region: &'r [AtomicU64]) -> Option<Self> {
        if region.first()?.load(Ordering::Acquire) != MAGIC {
            return None;
        }
        let buckets = usize::try_from(region.get(BUCKETS)?.load(Ordering::Relaxed)).ok()?;
        let fits =
            buckets.is_power_of_two() && buckets < region.len() - FIRST_BUCKET.min(region.len());
        fits.then_some(Self { region, buckets })
    }

    fn word(&self, at: usize) -> u64 {
        self.region
            .get(at)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// How many stacks are kept.
    pub fn kept(&self) -> u64 {
        self.word(KEPT)
    }

    /// How many times a stack found no room.
    pub fn dropped(&self) -> u64 {
        self.word(DROPPED)
    }

    /// The bytes used, out of the bytes there are.
    pub fn used_bytes(&self) -> (u64, u64) {
        (
            self.word(USED).saturating_mul(8),
            self.region.len() as u64 * 8,
        )
    }

    /// Keeps a stack, or finds it if it is kept already. `None` for an empty stack or a full depot.
    ///
    /// At most [`MAX_FRAMES`] frames count.
    pub fn save(&self, frames: &[usize]) -> Option<Handle> {
        let frames = frames.get(..MAX_FRAMES).unwrap_or(frames);
        if frames.is_empty() {
            return None;
        }
        let hash = hash(frames);
        let head = (hash << 32) | frames.len() as u64;
        let bucket = self
            .region
            .get(FIRST_BUCKET + (usize::try_from(hash).ok()? & (self.buckets - 1)))?;
        let mut newest = bucket.load(Ordering::Acquire);
        if let Some(handle) = self.find(newest, 0, head, frames) {
            return Some(handle);
        }
        let Some(record) = self.reserve(frames.len() + RECORD_HEAD) else {
            self.region.get(DROPPED)?.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let at = record.index();
        self.region.get(at)?.store(head, Ordering::Relaxed);
        for (word, &frame) in self.region.get(at + RECORD_HEAD..)?.iter().zip(frames) {
            word.store(frame as u64, Ordering::Relaxed);
        }
        loop {
            self.region.get(at + 1)?.store(newest, Ordering::Relaxed);
            let taken = bucket.compare_exchange(
                newest,
                u64::from(record.get()),
                Ordering::Release,
                Ordering::Acquire,
            );
            let Err(now) = taken else {
                self.region.get(KEPT)?.fetch_add(1, Ordering::Relaxed);
                return Some(record);
            };
            if let Some(handle) = self.find(now, newest, head, frames) {
                self.give_back(at, frames.len() + RECORD_HEAD);
                return Some(handle);
            }
            newest = now;
        }
    }

    /// Looks along a chain from `from` until `until`.
    fn find(&self, from: u64, until: u64, head: u64, frames: &[usize]) -> Option<Handle> {
        let mut at = from;
        // No more records fit, so only a damaged region has a longer chain.
        for _ in 0..self.region.len() / (RECORD_HEAD + 1) {
            if at == 0 || at == until {
                return None;
            }
            let index = usize::try_from(at).ok()?;
            if self.word(index) == head {
                let kept = self.region.get(index + RECORD_HEAD..)?.iter();
                if kept
                    .zip(frames)
                    .all(|(word, &frame)| word.load(Ordering::Relaxed) == frame as u64)
                {
                    return Handle::new(u32::try_from(at).ok()?);
                }
            }
            at = self.word(index + 1);
        }
        None
    }

    fn reserve(&self, words: usize) -> Option<Handle> {
        let limit = self.region.len().min(u32::MAX as usize) as u64;
        let used = self.region.get(USED)?;
        let at = used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(words as u64).filter(|&end| end <= limit)
            })
            .ok()?;
        Handle::new(u32::try_from(at).ok()?)
    }

    fn give_back(&self, at: usize, words: usize) {
        if let Some(used) = self.region.get(USED) {
            // Fails if another record was reserved behind this one; then the room stays unused.
            let _ = used.compare_exchange(
                (at + words) as u64,
                at as u64,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// The frames of a kept stack. `None` for a handle that names none.
    pub fn get(&self, handle: Handle) -> Option<Frames> {
        let at = handle.index();
        if at < FIRST_BUCKET + self.buckets {
            return None;
        }
        let head = self.region.get(at)?.load(Ordering::Relaxed);
        let len = usize::try_from(head & 0xffff_ffff).ok()?;
        if len == 0 || len > MAX_FRAMES {
            return None;
        }
        let mut frames = [0; MAX_FRAMES];
        let words = self.region.get(at + RECORD_HEAD..at + RECORD_HEAD + len)?;
        for (to, word) in frames.iter_mut().zip(words) {
            *to = word.load(Ordering::Relaxed);
        }
        // A stale or damaged handle may point into the middle of a record.
        let hash_fits = hash_words(frames.iter().take(len).copied()) == head >> 32;
        hash_fits.then_some(Frames { frames, len })
    }
}

fn hash(frames: &[usize]) -> u64 {
    hash_words(frames.iter().map(|&frame| frame as u64))
}

/// A 32-bit hash: multiply and fold each address.
fn hash_words(words: impl Iterator<Item = u64>) -> u64 {
    let mut hash: u64 = 0x9e37_79b9_7f4a_7c15;
    for word in words {
        hash = (hash ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
        hash ^= hash >> 32;
    }
    hash & 0xffff_ffff
}

// The unwinder of the C runtime, which std links in any case. It reads the tables of loaded objects and does not
// allocate for them (glibc and libgcc; `tests/no_allocation.rs` watches that).
unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        state: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_FindEnclosingFunction(pc: *mut c_void) -> *mut c_void;
}

struct Walk<'f> {
    skip: usize,
    frames: &'f mut [usize],
    len: usize,
}

extern "C" fn step(context: *mut c_void, state: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 5;
    // SAFETY: `state` is the `Walk` that `capture` passed, alive and not otherwise used until the unwinder returns.
    let walk = unsafe { &mut *state.cast::<Walk<'_>>() };
    // SAFETY: `context` is the unwinder's own, valid during this call.
    let address = unsafe { _Unwind_GetIP(context) };
    if walk.skip > 0 {
        walk.skip -= 1;
        return GO_ON;
    }
    match walk.frames.get_mut(walk.len) {
        Some(frame) if address != 0 => {
            *frame = address;
            walk.len += 1;
            GO_ON
        }
        _ => STOP,
    }
}

/// Fills `frames` with the return addresses of the calling thread, innermost first, and returns how many there are.
///
/// The first `skip` callers are left out; 0 starts with the caller of this function. It takes about a microsecond,
/// needs unwind tables in the program's objects and stops where there are none. It does not allocate, but the dynamic
/// loader may take its own locks: call it without holding locks of the allocator.
#[inline(never)]
pub fn capture(skip: usize, frames: &mut [usize]) -> usize {
    // One more frame is this function's own.
    let mut walk = Walk {
        skip: skip.saturating_add(1),
        frames,
        len: 0,
    };
    if slot::begin_capture() {
        // SAFETY: the callback only touches `walk`, which outlives the call.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
        slot::end_capture();
    }
    walk.len
}

/// The start of the function that an address is in, or 0. As [`capture`], not to be called with locks held.
pub fn function_of(address: usize) -> usize {
    // SAFETY: the unwinder looks the address up in its tables and does not read what is there.
    unsafe { _Unwind_FindEnclosingFunction(address as *mut c_void) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region(words: usize) -> Vec<AtomicU64> {
        (0..words).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn equal_stacks_are_kept_once() {
        let memory = region(256);
        let depot = StackDepot::create(&memory).unwrap();
        let a = depot.save(&[1, 2, 3]).unwrap();
        let b = depot.save(&[1, 2, 4]).unwrap();
        assert_eq!(depot.save(&[1, 2, 3]), Some(a));
        assert_ne!(a, b);
        assert_eq!(depot.get(b).unwrap().as_slice(), [1, 2, 4]);
        assert_eq!((depot.kept(), depot.save(&[])), (2, None));
        let reader = StackDepot::attach(&memory).unwrap();
        assert_eq!(reader.get(a).unwrap().as_slice(), [1, 2, 3]);
    }

    #[test]
    fn deep_stacks_are_cut() {
        let memory = region(256);
        let depot = StackDepot::create(&memory).unwrap();
        let deep: Vec<usize> = (1..100).collect();
        let handle = depot.save(&deep).unwrap();
        assert_eq!(depot.get(handle).unwrap().as_slice().len(), MAX_FRAMES);
        assert_eq!(depot.save(&deep[..MAX_FRAMES]), Some(handle));
    }

    #[test]
    fn a_full_depot_says_so_and_keeps_what_it_has() {
        let memory = region(64);
        let depot = StackDepot::create(&memory).unwrap();
        let handles: Vec<_> = (1..40usize).map(|n| depot.save(&[n])).collect();
        assert_eq!(handles.iter().flatten().count() as u64, depot.kept());
        assert_eq!(depot.kept() + depot.dropped(), 39);
        assert!(depot.dropped() > 0);
        assert_eq!(depot.save(&[1]), handles[0]);
        assert!(depot.used_bytes().0 <= depot.used_bytes().1);
        assert!(StackDepot::create(&memory[..63]).is_none());
    }

    #[test]
    fn threads_that_save_the_same_stack_at_once_agree() {
        const ROUNDS: usize = 2000;
        let memory = region(1 << 16);
        let depot = StackDepot::create(&memory).unwrap();
        // Spinning lets both threads start each round within a few instructions of each other.
        let arrived = AtomicU64::new(0);
        let save = || -> Vec<Handle> {
            let rounds = 1..=ROUNDS;
            rounds
                .map(|round| {
                    arrived.fetch_add(1, Ordering::AcqRel);
                    while arrived.load(Ordering::Acquire) < 2 * round as u64 {
                        std::thread::yield_now();
                    }
                    depot.save(&[round, round * 3]).unwrap()
                })
                .collect()
        };
        let (ours, theirs) = std::thread::scope(|scope| {
            let other = scope.spawn(save);
            (save(), other.join().unwrap())
        });
        assert_eq!(ours, theirs);
        assert_eq!(depot.kept(), ROUNDS as u64);
        for (round, handle) in (1..).zip(ours) {
            assert_eq!(depot.get(handle).unwrap().as_slice(), [round, round * 3]);
        }
    }

    #[test]
    fn a_captured_stack_starts_at_the_caller() {
        #[inline(never)]
        fn outer(frames: &mut [usize]) -> usize {
            std::hint::black_box(capture(0, frames))
        }
        let mut frames = [0; MAX_FRAMES];
        let len = outer(&mut frames);
        assert!(len >= 2, "{len}");
        let start = outer as fn(&mut [usize]) -> usize as usize;
        assert!(
            (start..start + 4096).contains(&frames[0]),
            "{:x} in {start:x}",
            frames[0]
        );
        let mut fewer = [0; 1];
        assert_eq!(capture(1, &mut fewer), 1);
    }

    proptest! {
        #[test]
        fn a_damaged_region_is_survived(words in prop::collection::vec(0u64..128, 16..128), handle in 0u32..200) {
            let memory: Vec<_> = words.into_iter().map(AtomicU64::new).collect();
            memory[0].store(MAGIC, Ordering::Relaxed);
            memory[BUCKETS].store(4, Ordering::Relaxed);
            if let Some(depot) = StackDepot::attach(&memory) {
                let _ = Handle::new(handle).and_then(|handle| depot.get(handle));
                let _ = depot.save(&[1, 2]);
            }
        }
    }
}
