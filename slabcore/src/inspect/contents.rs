//! The bytes of some slabs, between two looks at their descriptors.

use super::Refusal;
use super::budget::Held;
use super::marks::Look;
use super::memory::{Part, u16_at, u64_at};
use super::slabs::{self, SlabImage};
use crate::harden;
use crate::slab::{Links, NONE, Word};

/// Bytes that are copied in one step.
pub(super) const AT_ONCE: u64 = 1 << 20;
/// Words of a slab's own bits at most: a slab has up to 32767 objects.
const MOST_OWN: usize = 512;

/// A slab and what is in it.
#[derive(Debug)]
pub(super) struct Contents {
    pub slab: SlabImage,
    pub word: Word,
    /// All its bytes, or none if they could not be read.
    pub bytes: Vec<u8>,
    /// The bits of its owner's free objects.
    own: Vec<u64>,
    /// Its word was the same after they were copied, and it was the cache's still.
    pub same: bool,
}

/// How many slabs of a list are copied in one step.
pub(super) fn batch(look: &Look<'_>, slabs: &[SlabImage]) -> usize {
    let mut bytes = 0;
    let fits = slabs.iter().take_while(|of| {
        bytes += of.bytes(look.shape);
        bytes <= AT_ONCE
    });
    fits.count().clamp(1, slabs.len().max(1))
}

/// Copies of some slabs, and the room that they take.
#[derive(Debug)]
pub(super) struct Copies<'b> {
    pub list: Vec<Contents>,
    _held: Held<'b>,
}

/// Copies some slabs.
pub(super) fn copy<'b>(look: &Look<'b>, slabs: &[SlabImage]) -> Result<Copies<'b>, Refusal> {
    let mut held = look.memory.hold::<Contents>(slabs.len())?;
    let before = slabs::again(look.memory, look.shape, look.engine, slabs)?;
    let ours = before.iter().filter(|of| of.cache == look.cache.id + 1);
    let mut list: Vec<Contents> = Vec::with_capacity(slabs.len());
    for slab in ours {
        let (bytes, own) = (room(look, slab), own_words(look, slab));
        held.more::<u8>(bytes)?;
        // And once more as bytes.
        held.more::<[u64; 2]>(own)?;
        list.push(Contents {
            word: slab.word(look.shape),
            bytes: vec![0; bytes],
            own: vec![0; own],
            slab: *slab,
            same: false,
        });
    }
    let mut parts: Vec<Part<'_>> = { list.iter_mut() }
        .map(|of| Part::new(of.slab.address, &mut of.bytes))
        .collect();
    look.memory.read(&mut parts);
    let whole: Vec<bool> = parts.iter().map(Part::whole).collect();
    for (of, whole) in list.iter_mut().zip(whole) {
        if !whole {
            of.bytes.clear();
        }
    }
    own_bits(look, &mut list);
    let then: Vec<SlabImage> = list.iter().map(|of| of.slab).collect();
    let after = slabs::again(look.memory, look.shape, look.engine, &then)?;
    for (of, after) in list.iter_mut().zip(after) {
        let slab = of.slab;
        of.same = (slab.raw, slab.cache, slab.own) == (after.raw, after.cache, after.own);
    }
    Ok(Copies { list, _held: held })
}

/// Bytes of a slab that are copied: nothing is beyond an order that slabs can have.
fn room(look: &Look<'_>, slab: &SlabImage) -> usize {
    match slab.bytes(look.shape) {
        bytes if bytes > slabs::MOST_BYTES => 0,
        bytes => bytes as usize,
    }
}

fn own_words(look: &Look<'_>, slab: &SlabImage) -> usize {
    let owned = look.has_owners() && slab.owner >> 32 == u64::from(look.cache.id + 1);
    match look.cache.own_words as usize {
        _ if !owned => 0,
        words => words.min(MOST_OWN),
    }
}

fn own_bits(look: &Look<'_>, list: &mut [Contents]) {
    let beside = look.cache.own_words > 1;
    let mut room: Vec<Vec<u8>> = { list.iter() }
        .map(|of| {
            let there = beside && of.slab.own != 0;
            vec![0; if there { of.own.len() * 8 } else { 0 }]
        })
        .collect();
    let mut parts: Vec<Part<'_>> = { room.iter_mut() }
        .zip(list.iter())
        .map(|(into, of)| Part::new(of.slab.own, into))
        .collect();
    look.memory.read(&mut parts);
    for (bytes, of) in room.iter().zip(list) {
        if !beside && let [word] = &mut *of.own {
            *word = of.slab.own;
            continue;
        }
        for (word, bytes) in of.own.iter_mut().zip(bytes.chunks(8)) {
            *word = u64_at(bytes, 0);
        }
    }
}

impl Contents {
    /// The links of its free objects, as its cache keeps them.
    pub fn links<'c>(&'c self, look: &Look<'c>) -> CopiedLinks<'c> {
        CopiedLinks {
            bytes: &self.bytes,
            at: self.slab.address,
            link: look.cache.link as usize,
            size: look.cache.size as usize,
            secret: look.cache.secret,
        }
    }

    /// The bytes of an object's slot.
    pub fn slot(&self, look: &Look<'_>, object: u16) -> Option<&[u8]> {
        let size = look.cache.size as usize;
        let at = usize::from(object) * size;
        self.bytes.get(at..at + size)
    }

    /// The address of an object.
    pub fn object(&self, look: &Look<'_>, object: u16) -> u64 {
        let slot = u64::from(object) * u64::from(look.cache.size);
        let place = slot + u64::from(look.cache.object_offset);
        self.slab.address.wrapping_add(place)
    }

    /// The objects that its owner has as bits.
    pub fn own(&self) -> impl Iterator<Item = u16> {
        let words = self.own.iter().enumerate();
        words.flat_map(|(at, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 != 0);
            bits.map(move |bit| (at * 64 + bit) as u16)
        })
    }
}

/// Links in a copy of a slab.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopiedLinks<'c> {
    bytes: &'c [u8],
    at: u64,
    link: usize,
    size: usize,
    secret: u64,
}

impl Links for CopiedLinks<'_> {
    fn get(&self, object: u16) -> u16 {
        let place = self.link + usize::from(object) * self.size;
        if place + 2 > self.bytes.len() {
            return NONE;
        }
        let stored = u16_at(self.bytes, place);
        match self.secret {
            0 => stored,
            secret => stored ^ harden::key(secret, self.at.wrapping_add(place as u64) as usize),
        }
    }

    fn set(&self, _: u16, _: u16) {}
}
