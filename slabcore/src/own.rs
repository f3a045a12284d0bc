//! The own objects of an owned slab, as bits: free, taken out of the word, not given out.
//!
//! Bits are out of band, so neither filling an array from a slab nor flushing
//! one to it touches an object, and the next free object is known without a
//! chain of loads. A slab of up to 64 objects has its bits in the descriptor;
//! others borrow words of the cache's pool while they are owned. Only the owner
//! writes them; others may look, but see no moment of them.

use crate::core::{CacheCore, Cx};
use crate::slab::{Chain, Links, NONE};
use crate::sync::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

const BITS: usize = u64::BITS as usize;

impl CacheCore {
    /// The bits of a slab that is owned.
    #[inline]
    fn own_bits(&self, slab: u32) -> &[AtomicU64] {
        let own = &self.desc(slab).own;
        if self.own_words == 1 {
            return std::slice::from_ref(own);
        }
        match own.load(Relaxed) as usize {
            0 => &[],
            // SAFETY: a non-zero address is that of `own_words` words from `new_bits`, which are
            // never unmapped while the engine lives.
            at => unsafe {
                std::slice::from_raw_parts(at as *const AtomicU64, self.own_words as usize)
            },
        }
    }

    /// Words that no slab uses, with whatever is in them.
    fn new_bits(&self) -> Option<usize> {
        {
            let _held = self.pool_lock.lock();
            let first = self.own_pool.load(Relaxed);
            if first != 0 {
                // SAFETY: bits in the pool are words of `meta`, used by nobody else.
                let next = unsafe { AtomicUsize::from_ptr(first as *mut usize) };
                self.own_pool.store(next.load(Relaxed), Relaxed);
                return Some(first);
            }
        }
        self.engine
            .meta(self.own_words as usize * size_of::<u64>(), 64)
    }

    /// Number of own objects of an owned slab.
    #[inline]
    pub fn own_free(&self, slab: u32) -> u16 {
        self.desc(slab).own_free.load(Relaxed) as u16
    }

    fn set_own_free(&self, slab: u32, n: u16) {
        self.desc(slab).own_free.store(u32::from(n), Relaxed);
    }

    /// The own objects of an owned slab, as another thread sees them now.
    pub fn own_objects(&self, slab: u32) -> impl Iterator<Item = u16> + '_ {
        let desc = self.desc(slab);
        let own = desc.own.load(Relaxed);
        fence(Acquire);
        // Read after it and still ours: then it is not what another cache's slab has there.
        let ours = desc.cache.load(Relaxed) == self.id + 1;
        let bits = match ours {
            true if self.own_words == 1 => std::slice::from_ref(&desc.own),
            // SAFETY: by the pairing with `own_begin` it is of a slab of this cache, so the
            // address of `own_words` words, which are never unmapped while the engine lives.
            true if own != 0 => unsafe {
                std::slice::from_raw_parts(own as *const AtomicU64, self.own_words as usize)
            },
            _ => &[],
        };
        let bits = bits.iter().enumerate();
        bits.flat_map(|(at, bits)| {
            let mut word = bits.load(Relaxed);
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some((at * BITS + bit) as u16)
            })
        })
    }

    /// Adds objects to the bits, as `next` gives them, until it gives none; gives their number.
    #[inline(always)]
    pub fn own_add(&self, slab: u32, mut next: impl FnMut() -> Option<u16>) -> u16 {
        let bits = self.own_bits(slab);
        let (mut n, mut at, mut word) = (0, 0, 0u64);
        if let [bits] = bits {
            while let Some(object) = next() {
                word |= 1 << (usize::from(object) % BITS);
                n += 1;
            }
            bits.store(bits.load(Relaxed) | word, Relaxed);
            self.set_own_free(slab, self.own_free(slab) + n);
            return n;
        }
        while let Some(object) = next() {
            let of = usize::from(object) / BITS;
            if of != at {
                or(bits, at, word);
                (at, word) = (of, 0);
            }
            word |= 1 << (usize::from(object) % BITS);
            n += 1;
        }
        or(bits, at, word);
        self.set_own_free(slab, self.own_free(slab) + n);
        n
    }

    /// Adds a chain that ends after `n` objects, or before where a hardened link is broken:
    /// what is behind it stays out of use.
    pub fn own_add_list(&self, slab: u32, mut head: u16, mut n: u16) {
        let links = self.links(slab);
        self.own_add(slab, || {
            n = n.checked_sub(1)?;
            let object = head;
            if object == NONE {
                return None;
            }
            head = links.get(object);
            Some(object)
        });
    }

    /// Takes up to `want` objects out of the bits, lowest first: `put` gets the number of
    /// each, counted from 0, and its index. Gives how many.
    #[inline(always)]
    pub fn own_take(&self, slab: u32, want: usize, mut put: impl FnMut(usize, usize)) -> usize {
        let mut got = 0;
        for (at, bits) in self.own_bits(slab).iter().enumerate() {
            let mut word = bits.load(Relaxed);
            if word == 0 {
                continue;
            }
            while word != 0 && got < want {
                put(got, at * BITS + word.trailing_zeros() as usize);
                word &= word - 1;
                got += 1;
            }
            bits.store(word, Relaxed);
            if got == want {
                break;
            }
        }
        self.set_own_free(slab, self.own_free(slab) - got as u16);
        got
    }
}

#[inline(always)]
fn or(bits: &[AtomicU64], at: usize, word: u64) {
    if let Some(bits) = bits.get(at) {
        bits.store(bits.load(Relaxed) | word, Relaxed);
    }
}

impl Cx<'_> {
    /// Gives a slab bits without any set; false if there is no memory for them.
    pub fn own_begin(self, slab: u32) -> bool {
        let (core, desc) = (self.core, self.core.desc(slab));
        core.set_own_free(slab, 0);
        // The slab's cache is told before anything is found in `own` (`own_objects`).
        fence(Release);
        desc.own.store(0, Relaxed);
        if core.own_words == 1 {
            return true;
        }
        let Some(at) = core.new_bits() else {
            return false;
        };
        desc.own.store(at as u64, Relaxed);
        for word in core.own_bits(slab) {
            word.store(0, Relaxed);
        }
        true
    }

    /// Takes a slab's bits away; the objects are chained for the word.
    pub fn own_end(self, slab: u32) -> Option<Chain> {
        let (core, desc) = (self.core, self.core.desc(slab));
        let links = core.links(slab);
        let mut chain: Option<Chain> = None;
        core.own_take(slab, usize::MAX, |_, object| {
            let object = object as u16;
            match &mut chain {
                None => chain = Some(Chain::one(object)),
                Some(chain) => {
                    links.set(chain.tail, object);
                    chain.tail = object;
                    chain.len += 1;
                }
            }
        });
        let at = desc.own.load(Relaxed) as usize;
        desc.own.store(0, Relaxed);
        if core.own_words > 1 && at != 0 {
            let _held = core.pool_lock.lock();
            // SAFETY: the words are the slab's, which uses them no more.
            let first = unsafe { AtomicUsize::from_ptr(at as *mut usize) };
            first.store(core.own_pool.load(Relaxed), Relaxed);
            core.own_pool.store(at, Relaxed);
        }
        chain
    }
}
