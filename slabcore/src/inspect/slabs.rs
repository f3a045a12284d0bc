//! Descriptors of slabs: all of an engine in one pass, and some of them again.
//!
//! One pass costs what the heap has in descriptors, so it is made once, and slabs are looked
//! at again in batches: what counts is that a word was the same before and after.

use super::Refusal;
use super::image::{EngineImage, RangeImage};
use super::memory::{Memory, Part, u32_at, u64_at};
use super::shape::Shape;
use super::snapshot::{Slab, each_slab};
use crate::slab::Word;

/// Slabs of a look at most.
const MOST: usize = 2 << 20;
/// Descriptors that are read again in one step.
const AT_ONCE: usize = 256;

/// A slab, by its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlabImage {
    pub page: u32,
    pub order: u32,
    /// Id of the cache + 1, as the descriptor has it.
    pub cache: u32,
    /// The word as it is, with its tag.
    pub raw: u64,
    pub owner: u64,
    pub own: u64,
    pub own_free: u32,
    pub prev: u32,
    pub next: u32,
    pub node: u32,
    pub place: u32,
    pub queued: bool,
    pub on_node: u32,
    /// Address of the slab.
    pub address: u64,
}

impl SlabImage {
    fn of(shape: &Shape, slab: &Slab<'_>) -> Self {
        Self::read(shape, slab.range, slab.page, slab.order, slab.desc)
    }

    fn read(shape: &Shape, range: &RangeImage, page: u32, order: u32, desc: &[u8]) -> Self {
        let of = &shape.desc;
        let number = |at| u32_at(desc, at);
        Self {
            page,
            order,
            cache: number(of.cache),
            raw: u64_at(desc, of.word),
            owner: u64_at(desc, of.owner),
            own: u64_at(desc, of.own),
            own_free: number(of.own_free),
            prev: number(of.prev),
            next: number(of.next),
            node: number(of.node),
            place: number(of.place),
            queued: number(of.queued) == 1,
            on_node: number(of.on_node),
            address: range
                .base
                .wrapping_add(u64::from(page).wrapping_mul(shape.page)),
        }
    }

    pub fn word(&self, shape: &Shape) -> Word {
        shape.word.read(self.raw)
    }

    /// Bytes of its run.
    pub const fn bytes(&self, shape: &Shape) -> u64 {
        shape.page << self.order
    }
}

/// All slabs of an engine that are of caches that it has, in order of their pages.
pub(super) fn collect(
    memory: &dyn Memory,
    shape: &Shape,
    engine: &EngineImage,
) -> Result<Vec<SlabImage>, Refusal> {
    let mut list = Vec::new();
    let mut all = true;
    each_slab(memory, shape, engine, &mut |slab| {
        all = list.len() < MOST;
        if all {
            list.push(SlabImage::of(shape, &slab));
        }
        all
    })?;
    if all { Ok(list) } else { Err(Refusal::TooMuch) }
}

/// The slabs of each cache, by its place in the engine's list.
pub(super) fn by_cache(engine: &EngineImage, slabs: Vec<SlabImage>) -> Vec<Vec<SlabImage>> {
    let mut lists = vec![Vec::new(); engine.caches.len()];
    for slab in slabs {
        let id = slab.cache.wrapping_sub(1);
        let place = engine.caches.binary_search_by_key(&id, |of| of.id);
        if let Some(list) = place.ok().and_then(|place| lists.get_mut(place)) {
            list.push(slab);
        }
    }
    lists
}

/// Reads the descriptors of some slabs again; what cannot be read has no cache.
pub(super) fn again(
    memory: &dyn Memory,
    shape: &Shape,
    engine: &EngineImage,
    slabs: &[SlabImage],
) -> Vec<SlabImage> {
    let each = shape.desc.sizeof;
    let mut out = Vec::with_capacity(slabs.len());
    let mut room = vec![0; each * slabs.len().min(AT_ONCE)];
    for some in slabs.chunks(AT_ONCE) {
        let ranges: Vec<_> = some.iter().map(|of| engine.range_of(of.page)).collect();
        let mut parts: Vec<Part<'_>> = { room.chunks_mut(each) }
            .zip(some.iter().zip(&ranges))
            .map(|(into, (of, range))| {
                let descs = range.map_or(0, |range| range.descs);
                let at = u64::from(of.page).wrapping_mul(each as u64);
                Part::new(descs.wrapping_add(at), into)
            })
            .collect();
        memory.read(&mut parts);
        for (part, (of, range)) in parts.iter().zip(some.iter().zip(&ranges)) {
            out.push(match range.filter(|_| part.whole()) {
                Some(range) => SlabImage::read(shape, range, of.page, of.order, part.into),
                None => SlabImage { cache: 0, ..*of },
            });
        }
    }
    out
}

/// A slab of the list by its page.
pub(super) fn find(slabs: &[SlabImage], page: u32) -> Option<&SlabImage> {
    let at = slabs.binary_search_by_key(&page, |of| of.page).ok()?;
    slabs.get(at)
}
