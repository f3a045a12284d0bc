//! Objects whose every word carries a stamp that their holder checks.
// Helpers of tests fail by panicking; no test program uses all of them.
#![allow(clippy::unwrap_used, dead_code)]

use slabcore::Cache;
use std::ptr::NonNull;

/// An object and its stamp.
pub struct Object(pub NonNull<u8>, pub u64);
// SAFETY: an object is owned by whoever holds this value.
unsafe impl Send for Object {}

impl Object {
    /// Allocates and stamps one; `None` when memory is short.
    pub fn new(cache: &Cache, stamp: u64) -> Option<Self> {
        let object = Self(cache.alloc()?, stamp);
        object.stamp(cache);
        Some(object)
    }

    /// Writes the stamp.
    pub fn stamp(&self, cache: &Cache) {
        for word in 0..cache.object_size() / 8 {
            // SAFETY: the object is ours and has that many words.
            unsafe { self.0.cast::<u64>().add(word).write(self.1 ^ word as u64) };
        }
    }

    /// Checks the stamp.
    pub fn check(&self, cache: &Cache) {
        for word in 0..cache.object_size() / 8 {
            // SAFETY: as above.
            let found = unsafe { self.0.cast::<u64>().add(word).read() };
            assert_eq!(found, self.1 ^ word as u64, "stamp of word {word}");
        }
    }

    /// Checks the stamp and frees.
    pub fn free(self, cache: &Cache) {
        self.check(cache);
        // SAFETY: the object is ours, and gone with this value.
        unsafe { cache.free(self.0) };
    }
}

/// Pseudo-random numbers.
pub struct Rng(u64);

impl Rng {
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub const fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Milliseconds for each stress: `SLABCORE_STRESS_MS`, or a short time.
pub fn stress_ms(short: u64) -> u64 {
    let given = std::env::var("SLABCORE_STRESS_MS").ok();
    given.and_then(|ms| ms.parse().ok()).unwrap_or(short)
}
