//! Descriptors of slabs: which an engine has, in one pass, and those of one cache, again and again.
//!
//! One pass costs what the heap has in descriptors, so it is made once, and slabs are looked
//! at again in batches: what counts is that a word was the same before and after.

use super::Refusal;
use super::budget::{Bounded, Held};
use super::image::{EngineImage, RangeImage};
use super::memory::{Part, u32_at, u64_at};
use super::shape::Shape;
use super::snapshot::each_slab;
use crate::order::MAX_ORDER;
use crate::slab::Word;

/// Descriptors that are read again in one step.
const AT_ONCE: usize = 256;
/// Slabs that room is taken for in one step.
const ROOM: usize = 4096;

/// Where a slab is, and whose it was in the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    /// Id of the cache.
    cache: u32,
    pub page: u32,
    order: u8,
}

/// The slabs of an engine.
#[derive(Debug)]
pub(super) struct Spots<'b> {
    list: Vec<Spot>,
    _held: Held<'b>,
}

impl Spots<'_> {
    /// Those of a cache, in order of their pages.
    pub fn of(&self, cache: u32) -> &[Spot] {
        let from = self.list.partition_point(|of| of.cache < cache);
        let to = self.list.partition_point(|of| of.cache <= cache);
        self.list.get(from..to).unwrap_or_default()
    }
}

/// A slab, by its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlabImage {
    pub page: u32,
    pub order: u32,
    /// Id of the cache + 1, as the descriptor has it; 0 if it could not be read.
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
    /// Where one is, before it is read.
    fn at(range: Option<&RangeImage>, shape: &Shape, page: u32, order: u32) -> Self {
        let base = range.map_or(0, |range| range.base);
        Self {
            page,
            order,
            cache: 0,
            raw: 0,
            owner: 0,
            own: 0,
            own_free: 0,
            prev: 0,
            next: 0,
            node: 0,
            place: 0,
            queued: false,
            on_node: 0,
            address: base.wrapping_add(u64::from(page).wrapping_mul(shape.page)),
        }
    }

    fn read(self, shape: &Shape, desc: &[u8]) -> Self {
        let of = &shape.desc;
        let number = |at| u32_at(desc, at);
        Self {
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
            ..self
        }
    }

    pub fn word(&self, shape: &Shape) -> Word {
        shape.word.read(self.raw)
    }

    /// Bytes of its run.
    pub const fn bytes(&self, shape: &Shape) -> u64 {
        shape.page << self.order
    }

    /// The address behind it.
    pub const fn end(&self, shape: &Shape) -> u64 {
        self.address.saturating_add(self.bytes(shape))
    }
}

/// All slabs of an engine, by cache and in order of their pages.
pub(super) fn collect<'b>(
    memory: &'b Bounded<'_>,
    shape: &Shape,
    engine: &EngineImage,
) -> Result<Spots<'b>, Refusal> {
    let mut list = Vec::new();
    let mut held = memory.hold::<Spot>(0)?;
    let mut room = Ok(());
    each_slab(memory, shape, engine, &mut |slab| {
        if list.len() % ROOM == 0 {
            // A list that grows is there twice for a moment.
            room = held.more::<[Spot; 2]>(ROOM);
        }
        list.push(Spot {
            cache: slab.cache,
            page: slab.page,
            order: slab.order as u8,
        });
        room.is_ok()
    })?;
    room?;
    list.sort_unstable();
    Ok(Spots { list, _held: held })
}

/// The slabs of one cache as they are now; several lists of them have room.
pub(super) fn images<'b>(
    memory: &'b Bounded<'_>,
    shape: &Shape,
    engine: &EngineImage,
    spots: &[Spot],
) -> Result<(Vec<SlabImage>, Held<'b>), Refusal> {
    let held = memory.hold::<[SlabImage; 2]>(spots.len())?;
    let image = |spot: &Spot| {
        let order = u32::from(spot.order);
        SlabImage::at(engine.range_of(spot.page), shape, spot.page, order)
    };
    let slabs: Vec<_> = spots.iter().map(image).collect();
    let slabs = again(memory, shape, engine, &slabs)?;
    Ok((slabs, held))
}

/// What is at a page now, whatever it is.
pub(super) fn one(
    memory: &Bounded<'_>,
    shape: &Shape,
    engine: &EngineImage,
    page: u32,
) -> Result<SlabImage, Refusal> {
    let there = SlabImage::at(engine.range_of(page), shape, page, 0);
    let now = again(memory, shape, engine, &[there])?;
    Ok(now.first().copied().unwrap_or(there))
}

/// Reads the descriptors of some slabs again; what cannot be read has no cache.
pub(super) fn again(
    memory: &Bounded<'_>,
    shape: &Shape,
    engine: &EngineImage,
    slabs: &[SlabImage],
) -> Result<Vec<SlabImage>, Refusal> {
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
        memory.steps(some.len())?;
        for (part, (of, range)) in parts.iter().zip(some.iter().zip(&ranges)) {
            out.push(match range.filter(|_| part.whole()) {
                Some(_) => of.read(shape, part.into),
                None => SlabImage { cache: 0, ..*of },
            });
        }
    }
    Ok(out)
}

/// A slab of the list by its page.
pub(super) fn find(slabs: &[SlabImage], page: u32) -> Option<&SlabImage> {
    let at = slabs.binary_search_by_key(&page, |of| of.page).ok()?;
    slabs.get(at)
}

/// Which slab an address is in; ranges may lie in any order.
#[derive(Debug)]
pub(super) struct ByAddress<'s> {
    shape: &'s Shape,
    slabs: &'s [SlabImage],
    /// Places in the list, in order of address.
    order: Vec<u32>,
    _held: Held<'s>,
}

impl<'s> ByAddress<'s> {
    pub fn new(
        memory: &'s Bounded<'_>,
        shape: &'s Shape,
        slabs: &'s [SlabImage],
    ) -> Result<Self, Refusal> {
        let held = memory.hold::<u32>(slabs.len())?;
        let mut order: Vec<u32> = (0..slabs.len() as u32).collect();
        order.sort_unstable_by_key(|at| slabs.get(*at as usize).map(|of| of.address));
        Ok(Self {
            shape,
            slabs,
            order,
            _held: held,
        })
    }

    /// The slab's place in the list.
    pub fn find(&self, address: u64) -> Option<usize> {
        let slab = |at: &u32| self.slabs.get(*at as usize);
        let begins = |at: &u32| slab(at).is_some_and(|of| of.address <= address);
        let after = self.order.partition_point(begins);
        let near = after.checked_sub(1).and_then(|at| self.order.get(at))?;
        let within = slab(near).is_some_and(|of| address < of.end(self.shape));
        within.then_some(*near as usize)
    }
}

/// Bytes of the largest slab that there can be.
pub(super) const MOST_BYTES: u64 = (crate::sys::PAGE as u64) << MAX_ORDER;
