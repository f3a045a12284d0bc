//! Where the rows and barns of one cache have objects and slabs, copied and looked up.
//!
//! Source of truth: `dump/marks.rs`, which does the same inside the process. Rows are read
//! again afterwards; equal stamps show that nothing moved in between.

use super::Refusal;
use super::budget::{Bounded, Held};
use super::image::{self, CacheImage, EngineImage, NodeImage};
use super::memory::{Part, u32_at, u64_at};
use super::shape::Shape;
use super::slabs::{self, SlabImage};
use crate::dump::{Holder, State};
use crate::policy::Policy;

/// What one look at a row gives: equal stamps, equal contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowImage {
    changing: u32,
    fast: [u64; 2],
    pub n: u32,
    pub spare_n: u32,
    pub main: u64,
    pub spare: u64,
    pub slab: u32,
    /// First object of the own list, or none.
    pub head: u16,
    partial: u32,
    nr_partial: u32,
}

impl RowImage {
    fn read(shape: &Shape, fast: [Option<usize>; 2], bytes: &[u8]) -> Self {
        let of = &shape.row;
        let number = |at| u32_at(bytes, at);
        let counter = |at: Option<usize>| at.map_or(0, |n| u64_at(bytes, of.stats + n * 8));
        Self {
            changing: number(of.changing),
            fast: fast.map(counter),
            n: number(of.n),
            spare_n: number(of.spare_n),
            main: u64_at(bytes, of.main),
            spare: u64_at(bytes, of.spare),
            slab: number(of.slab),
            head: !(number(of.head) as u16),
            partial: number(of.partial),
            nr_partial: number(of.nr_partial),
        }
    }

    const fn is_steady(&self) -> bool {
        self.changing.is_multiple_of(2)
    }
}

/// Everything that is read with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look<'l> {
    pub memory: &'l Bounded<'l>,
    pub shape: &'l Shape,
    pub engine: &'l EngineImage,
    pub cache: &'l CacheImage,
    /// Which numbers of a row are the two fast counters.
    pub fast: [Option<usize>; 2],
}

impl Look<'_> {
    /// Whether there are arrays in front of slabs.
    pub fn has_arrays(&self) -> bool {
        self.cache.policy.is_some_and(Policy::has_sheaves)
    }

    /// Whether slabs are owned, and say by whom.
    pub fn has_owners(&self) -> bool {
        self.cache.policy == Some(Policy::Hybrid)
    }

    /// Whether a slot has a slab in hand with a list of its own.
    pub fn has_cpu_slab(&self) -> bool {
        self.cache
            .policy
            .is_some_and(|policy| !policy.has_sheaves())
    }

    /// The rows of all slots, from 1 on.
    fn rows(&self) -> Result<Vec<RowImage>, Refusal> {
        let each = self.shape.row.sizeof;
        let n = self.engine.slots.saturating_sub(1) as usize;
        let _held = self.memory.hold::<RowImage>(n)?;
        let mut bytes = vec![0; each * n.min(image::AT_ONCE / each + 1)];
        let mut rows = Vec::with_capacity(n);
        let mut slot = 1;
        while slot < self.engine.slots {
            let some = ((self.engine.slots - slot) as usize).min(bytes.len() / each);
            let into = bytes.get_mut(..some * each).unwrap_or_default();
            image::rows(self.memory, self.shape, self.cache, slot, into)?;
            self.memory.steps(some)?;
            rows.extend({ into.chunks(each) }.map(|of| RowImage::read(self.shape, self.fast, of)));
            slot += some as u32;
        }
        Ok(rows)
    }

    /// Slots, from 1 on, whose rows a fork left torn.
    fn lost(&self) -> Result<Vec<bool>, Refusal> {
        let each = self.shape.inside_size.max(4);
        let slots = self.engine.slots as usize;
        let mut lost = Vec::with_capacity(slots);
        let mut bytes = vec![0; each * slots.min(image::AT_ONCE / each)];
        while lost.len() < slots {
            let some = (slots - lost.len()).min(bytes.len() / each);
            let into = bytes.get_mut(..some * each).unwrap_or_default();
            let at = (lost.len() * each) as u64;
            self.memory
                .get(self.shape.root_inside.wrapping_add(at), into)?;
            let marks = into.chunks(each).map(|of| u32_at(of, 0) == self.shape.lost);
            lost.extend(marks);
        }
        // Slot 0 is the empty one.
        lost.drain(..1.min(slots));
        Ok(lost)
    }

    /// Reads the addresses in some arrays, which are all of the cache's; false if not all came.
    fn arrays(&self, arrays: &[Array], out: &mut Vec<(u64, State)>) -> Result<bool, Refusal> {
        let mut whole = true;
        let mut rest = arrays;
        let mut room: Vec<u8> = Vec::new();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|of| {
                bytes += of.bytes();
                bytes <= image::AT_ONCE
            });
            let (some, after) = rest.split_at(fits.count().max(1).min(rest.len()));
            rest = after;
            room.resize(some.iter().map(Array::bytes).sum(), 0);
            let mut free = &mut *room;
            let mut parts = Vec::with_capacity(some.len());
            for of in some {
                let (into, after) = free.split_at_mut(of.bytes().min(free.len()));
                parts.push(Part::new(of.at, into));
                free = after;
            }
            self.memory.read(&mut parts);
            self.memory.steps(parts.len())?;
            for (part, of) in parts.iter().zip(some) {
                whole &= part.whole();
                let places = { part.into.chunks(8) }.filter(|_| part.whole());
                out.extend(places.map(|word| (u64_at(word, 0), of.state)));
            }
        }
        Ok(whole)
    }
}

/// An array of addresses.
#[derive(Debug, Clone, Copy)]
struct Array {
    at: u64,
    n: u32,
    state: State,
}

impl Array {
    const fn bytes(&self) -> usize {
        self.n as usize * 8
    }
}

/// The marks.
#[derive(Debug)]
pub(super) struct Marks<'l> {
    /// Addresses in arrays, and which, in order of address.
    arrays: Vec<(u64, State)>,
    /// Slabs of slots, in order of slab.
    held: Vec<(u32, Holder)>,
    /// Slabs of nodes' lists and their places there, in order of slab.
    listed: Vec<(u32, u32)>,
    rows: Vec<RowImage>,
    lost: Vec<bool>,
    complete: bool,
    room: Held<'l>,
}

impl<'l> Marks<'l> {
    /// Copies everything once. What cannot be read makes them not complete.
    pub fn gather(look: &Look<'l>, slabs: &[SlabImage]) -> Result<Self, Refusal> {
        let mut this = Self::none(look)?;
        match this.copy(look, slabs) {
            // There, or not readable: the first is complete.
            Ok(()) | Err(Refusal::Memory(_)) => {}
            Err(other) => return Err(other),
        }
        this.arrays.sort_unstable_by_key(|mark| mark.0);
        this.held.sort_unstable_by_key(|mark| mark.0);
        this.listed.sort_unstable_by_key(|mark| mark.0);
        Ok(this)
    }

    fn none(look: &Look<'l>) -> Result<Self, Refusal> {
        Ok(Self {
            arrays: Vec::new(),
            held: Vec::new(),
            listed: Vec::new(),
            rows: Vec::new(),
            lost: Vec::new(),
            complete: false,
            room: look.memory.hold::<u8>(0)?,
        })
    }

    /// Copies everything once more; the room of the first copies is given back before.
    pub fn again(&mut self, look: &Look<'l>, slabs: &[SlabImage]) -> Result<(), Refusal> {
        *self = Self::none(look)?;
        *self = Self::gather(look, slabs)?;
        Ok(())
    }

    fn copy(&mut self, look: &Look<'l>, slabs: &[SlabImage]) -> Result<(), Refusal> {
        self.lost = look.lost()?;
        self.rows = look.rows()?;
        self.room.more::<(RowImage, bool)>(self.rows.len())?;
        let steady = self.kept().all(|(_, row)| row.is_steady());
        // After the rows: who changes a barn or a list is between two marks of its row.
        let nodes = image::nodes(look.memory, look.shape, look.engine, look.cache)?;
        let arrays = self.places(look, &nodes)?;
        let addresses = arrays.iter().map(|of| of.n as usize).sum();
        self.room.more::<(u64, State)>(addresses)?;
        self.arrays.reserve_exact(addresses);
        let whole = look.arrays(&arrays, &mut self.arrays)?;
        self.hold(look, slabs)?;
        self.list(look, &nodes, slabs)?;
        self.complete = steady && whole;
        Ok(())
    }

    /// The arrays of slots and barns.
    fn places(&mut self, look: &Look<'l>, nodes: &[NodeImage]) -> Result<Vec<Array>, Refusal> {
        let most = look.cache.sheaf_capacity;
        let barns = nodes.iter().map(|of| of.full.len()).sum::<usize>();
        self.room.more::<Array>(2 * self.rows.len() + barns)?;
        let mut arrays = Vec::new();
        for (slot, row) in self.kept() {
            let of = [
                (row.main, row.n.min(most), State::Main { slot }),
                (row.spare, row.spare_n.min(most), State::Spare { slot }),
            ];
            let of = of.map(|(at, n, state)| Array { at, n, state });
            arrays.extend(of.into_iter().filter(|of| of.at != 0 && of.n != 0));
        }
        for (node, number) in nodes.iter().zip(0..) {
            let state = State::Barn { node: number };
            let full = node.full.iter().map(|at| Array {
                at: *at,
                n: most,
                state,
            });
            arrays.extend(full.filter(|_| look.has_arrays()));
        }
        Ok(arrays)
    }

    /// Slots and their rows, but for those that a fork left torn.
    fn kept(&self) -> impl Iterator<Item = (u32, &RowImage)> {
        let lost = self.lost.iter().chain(std::iter::repeat(&false));
        let rows = (1u32..).zip(&self.rows).zip(lost);
        rows.filter(|(_, lost)| !**lost).map(|(row, _)| row)
    }

    /// Follows the lists of slots.
    fn hold(&mut self, look: &Look<'l>, slabs: &[SlabImage]) -> Result<(), Refusal> {
        // In truth a slab is held once: what says more of them is a circle.
        let most = slabs.len().saturating_add(self.rows.len());
        self.room.more::<(u32, Holder)>(most)?;
        let mut held = Vec::new();
        for (slot, row) in self.kept() {
            look.memory.step()?;
            if row.slab != 0 {
                held.push((row.slab, Holder::InHand { slot }));
            }
            let mut at = row.partial;
            for _ in 0..row.nr_partial {
                let Some(slab) = slabs::find(slabs, at).filter(|_| look.has_cpu_slab()) else {
                    break;
                };
                if held.len() >= most {
                    break;
                }
                held.push((at, Holder::Partial { slot }));
                let now = slabs::again(look.memory, look.shape, look.engine, &[*slab])?;
                at = now.first().map_or(0, |of| of.next);
            }
        }
        self.held = held;
        Ok(())
    }

    /// Follows the lists of nodes.
    fn list(
        &mut self,
        look: &Look<'l>,
        nodes: &[NodeImage],
        slabs: &[SlabImage],
    ) -> Result<(), Refusal> {
        let mut left = slabs.len();
        self.room.more::<(u32, u32)>(left)?;
        for node in nodes {
            let mut at = node.head;
            for position in 0..node.nr_partial {
                look.memory.step()?;
                let Some(slab) = slabs::find(slabs, at).filter(|_| left > 0) else {
                    break;
                };
                left -= 1;
                self.listed.push((at, position));
                at = slab.next;
            }
        }
        Ok(())
    }

    /// Whether all rows are as they were when they were copied, and everything was.
    pub fn still(&self, look: &Look<'l>) -> Result<bool, Refusal> {
        if !self.complete || !look.memory.is_live() {
            return Ok(self.complete);
        }
        match look.rows() {
            Ok(rows) => Ok(rows == self.rows),
            Err(Refusal::Memory(_)) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// The first object of the own list of a slot.
    pub fn head(&self, slot: u32) -> u16 {
        let row = slot.checked_sub(1).and_then(|n| self.rows.get(n as usize));
        row.map_or(crate::slab::NONE, |row| row.head)
    }

    /// The marks of addresses in a range, in order.
    pub fn arrays_in(&self, range: std::ops::Range<u64>) -> &[(u64, State)] {
        let from = self.arrays.partition_point(|mark| mark.0 < range.start);
        let to = self.arrays.partition_point(|mark| mark.0 < range.end);
        self.arrays.get(from..to).unwrap_or(&[])
    }

    /// All marks of addresses, in order.
    pub fn arrays(&self) -> &[(u64, State)] {
        &self.arrays
    }

    /// Who has a slab.
    pub fn holder(&self, look: &Look<'_>, slab: &SlabImage) -> Holder {
        if !look.has_owners() {
            return find(&self.held, slab.page).unwrap_or(Holder::Nobody);
        }
        let slot = slab.owner as u32;
        if slab.owner >> 32 != u64::from(look.cache.id + 1) || slot >= look.shape.max_slots {
            return Holder::Nobody;
        }
        match slab.place {
            place if place == look.shape.place_current => Holder::InHand { slot },
            place if place == look.shape.place_full => Holder::Full { slot },
            _ => Holder::Partial { slot },
        }
    }

    /// A slab's place in its node's list.
    pub fn position(&self, slab: u32) -> Option<u32> {
        find(&self.listed, slab)
    }
}

fn find<T: Copy>(marks: &[(u32, T)], slab: u32) -> Option<T> {
    let at = marks.binary_search_by_key(&slab, |mark| mark.0).ok()?;
    marks.get(at).map(|mark| mark.1)
}
