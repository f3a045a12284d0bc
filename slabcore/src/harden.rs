//! Free lists that show when they were written to, and new slabs in random order.
//!
//! Source of truth: `CONFIG_SLAB_FREELIST_HARDENED` and `CONFIG_SLAB_FREELIST_RANDOM` of mm/slub.c in
//! Linux 6.12 (`freelist_ptr_encode`, `set_freepointer`, `init_cache_random_seq`, `shuffle_freelist`).
//! Differences: a link is an index, so it is xored with 16 bits that depend on a secret of the cache
//! and on the link's address; one that leads out of the slab after decoding was damaged. A slab has
//! N objects, so N + 1 of 65536 wrong values go unseen. What is found is reported after the operation;
//! the list ends there, and the objects behind it stay out of use. The kernel stops instead.
//!
//! What it does not do: look at debug caches, whose links are checked anyway.

use crate::core::CacheCore;
use crate::debug::operation::{self, OnFault, Operation};
use crate::debug::reason::{Fix, Reason};
use crate::debug::report::{NOT_TAINTED, TAINTED, write_banner};
use crate::dump::State;
use crate::engine::EngineCore;
use crate::finding::{Fault, Finding};
use crate::order::MAX_OBJECTS;
use crate::slab::NONE;
use crate::sync::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::fmt::Write as _;

/// Bits of the secret that are left out before it meets the address.
pub(crate) const KEY_SHIFT: u32 = 7;

/// What a link at an address is xored with.
pub(crate) const fn key(secret: u64, at: usize) -> u16 {
    ((at as u64 ^ secret >> KEY_SHIFT).wrapping_mul(secret) >> 48) as u16
}

/// What a hardened cache keeps.
#[derive(Debug)]
pub(crate) struct Hard {
    secret: u64,
    /// The broken link not reported yet: its address, and the object it was found with.
    broken: AtomicU64,
    /// What it held, after decoding.
    link: AtomicU64,
}

impl Hard {
    pub fn new() -> Self {
        Self {
            // An even factor would leave the lowest bits of addresses out.
            secret: random() | 1,
            broken: AtomicU64::new(0),
            link: AtomicU64::new(0),
        }
    }

    /// The secret, for readers from outside.
    pub const fn secret(&self) -> u64 {
        self.secret
    }

    fn key(&self, at: usize) -> u16 {
        key(self.secret, at)
    }

    /// The link as it is stored.
    #[cold]
    pub fn encode(&self, at: usize, link: u16) -> u16 {
        link ^ self.key(at)
    }

    /// The link as it is meant, whatever it is.
    #[cold]
    pub fn decode(&self, at: usize, stored: u16) -> u16 {
        stored ^ self.key(at)
    }

    /// The link of an object of a slab of `objects`, or the end of the list if it is damaged.
    #[cold]
    pub fn follow(&self, at: usize, stored: u16, object: u16, objects: u16) -> u16 {
        let link = self.decode(at, stored);
        if link == NONE || (link < objects && link != object) {
            return link;
        }
        self.note(at, link);
        NONE
    }

    /// Notes damage; reported by the next operation that ends.
    pub fn note(&self, at: usize, link: u16) {
        self.link.store(u64::from(link), Relaxed);
        self.broken.store(at as u64, Relaxed);
    }
}

impl CacheCore {
    /// Reports a broken link, if one was found. No lock is held.
    #[inline]
    pub fn report_broken(&self) {
        if let Some(hard) = &self.hard
            && hard.broken.load(Relaxed) != 0
        {
            self.report_link(hard);
        }
    }

    #[cold]
    fn report_link(&self, hard: &Hard) {
        let at = hard.broken.swap(0, Relaxed) as usize;
        let link = hard.link.load(Relaxed) as u16;
        let pages = &self.engine.pages;
        if at == 0 || pages.page_of(at).is_none() {
            return;
        }
        let (slab, object) = self.locate(at - self.link as usize);
        let slab = pages.address(slab);
        let fault = if link == object {
            let place = State::Free;
            Fault::FreedTwice {
                object,
                first: place,
                second: place,
            }
        } else {
            Fault::BadLink { object, link }
        };
        let mut op = Operation::new();
        op.identify(None, self.engine.config.own_code);
        op.found(Finding::new(self.id, 0, fault).in_slab(slab));
        let tainted = self.engine.faults.fetch_add(1, Relaxed) > 0;
        let taint = if tainted { TAINTED } else { NOT_TAINTED };
        let reason = match fault {
            Fault::FreedTwice { .. } => Reason::AlreadyFree,
            _ => Reason::FreechainCorrupt,
        };
        // Writing to a text does not fail; what does not fit is cut.
        let _ = write_banner(&mut op.text, self.name, taint, format_args!("{reason}"));
        let address = at - self.link as usize;
        let _ = writeln!(
            op.text,
            "Object 0x{address:016x} @offset={} in slab 0x{slab:016x}, its link is {link}",
            address - slab
        );
        let fix = match fault {
            Fault::FreedTwice { .. } => Fix::NotFreed {
                pointer: address as u64,
            },
            _ => Fix::Isolated,
        };
        let _ = writeln!(op.text, "FIX {}: {fix}", self.name);
        op.send(self.engine.config.report);
        if self.engine.config.on_fault == OnFault::Abort {
            operation::stop();
        }
    }
}

/// A random order of the objects of a new slab.
pub(crate) fn sequence(engine: &EngineCore, objects: usize) -> Option<&'static [u16]> {
    let n = objects.min(MAX_OBJECTS);
    let at = engine.meta(n * size_of::<u16>(), 8)?;
    // SAFETY: fresh zeroed metadata of that size, nobody else's yet, kept as long as the engine.
    let order = unsafe { std::slice::from_raw_parts_mut(at as *mut u16, n) };
    let mut state = random();
    for i in 0..n {
        state = step(state);
        let j = (state % (i as u64 + 1)) as usize;
        // Fisher-Yates, inside out.
        if let Some(other) = order.get(j).copied() {
            order[i] = other;
            order[j] = i as u16;
        }
    }
    Some(order)
}

/// Where in the cache's sequence a new slab begins.
pub(crate) fn start(page: u32, seed: u64, objects: usize) -> usize {
    (step(seed ^ u64::from(page) << 20) % objects.max(1) as u64) as usize
}

/// Puts what is in `places` in random order; `turn` differs from call to call.
pub(crate) fn shuffle(places: &[AtomicUsize], seed: u64, turn: u64) {
    let mut state = seed ^ turn;
    for last in (1..places.len()).rev() {
        state = step(state);
        let other = (state % (last as u64 + 1)) as usize;
        let (a, b) = (places[last].load(Relaxed), places[other].load(Relaxed));
        places[last].store(b, Relaxed);
        places[other].store(a, Relaxed);
    }
}

/// One step of splitmix64 (Steele, Lea, Flood 2014).
fn step(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A number that others cannot guess; weaker where the system gives none.
pub(crate) fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is writable for its length.
    let got =
        unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    if got == 8 {
        return u64::from_ne_bytes(bytes);
    }
    step(crate::debug::operation::now_ns() ^ std::ptr::from_ref(&bytes) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_read_back_and_look_different_everywhere() {
        let hard = Hard::new();
        let mut stored = std::collections::BTreeSet::new();
        for at in (0x7f00_0000usize..).step_by(64).take(1000) {
            let code = hard.encode(at, 3);
            assert_eq!(hard.follow(at, code, 0, 64), 3);
            stored.insert(code);
        }
        assert!(stored.len() > 900, "{}", stored.len());
        assert_eq!(hard.broken.load(Relaxed), 0);
    }

    #[test]
    fn damage_ends_the_list_and_is_noted() {
        let hard = Hard::new();
        let at = 0x7f00_0000;
        let unseen = (0..=u16::MAX).filter(|raw| hard.follow(at, *raw, 0, 64) != NONE);
        assert_eq!(unseen.count(), 63, "the other objects of the slab");
        assert_eq!(hard.broken.load(Relaxed), at as u64);
    }
}
