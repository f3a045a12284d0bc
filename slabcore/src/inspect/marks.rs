//! Where the rows and barns of one cache have objects and slabs, copied and looked up.
//!
//! Source of truth: `dump/marks.rs`, which does the same inside the process. Rows are read
//! again afterwards; equal stamps show that nothing moved in between.

use super::image::{self, CacheImage, EngineImage, NodeImage};
use super::memory::{Memory, Part, u32_at, u64_at};
use super::shape::Shape;
use super::slabs::{self, SlabImage};
use crate::dump::{Holder, State};
use crate::policy::Policy;

/// Marks of a cache at most; beyond them they are not complete.
const MOST: usize = 4 << 20;

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
    pub memory: &'l dyn Memory,
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

    /// The rows of all slots, from 1 on; nothing where they cannot be read.
    fn rows(&self) -> Option<Vec<RowImage>> {
        let each = self.shape.row.sizeof;
        let n = self.engine.slots.saturating_sub(1) as usize;
        let mut bytes = vec![0; each * n.min(image::AT_ONCE / each + 1)];
        let mut rows = Vec::with_capacity(n);
        let mut slot = 1;
        while slot < self.engine.slots {
            let some = ((self.engine.slots - slot) as usize).min(bytes.len() / each);
            let into = bytes.get_mut(..some * each)?;
            image::rows(self.memory, self.shape, self.cache, slot, into).ok()?;
            rows.extend({ into.chunks(each) }.map(|of| RowImage::read(self.shape, self.fast, of)));
            slot += some as u32;
        }
        Some(rows)
    }

    /// Slots whose rows a fork left torn.
    fn lost(&self) -> Vec<bool> {
        let each = self.shape.inside_size.max(4);
        let mut bytes = vec![0; each * self.engine.slots as usize];
        let whole = self.memory.get(self.shape.root_inside, &mut bytes).is_ok();
        let marks = bytes.chunks(each).skip(1);
        marks
            .map(|of| whole && u32_at(of, 0) == self.shape.lost)
            .collect()
    }

    /// Reads the addresses in some arrays, which are all of the cache's.
    fn arrays(&self, arrays: &[(u64, u32, State)], out: &mut Vec<(u64, State)>) -> bool {
        let bytes = arrays.iter().map(|of| of.1 as usize * 8).sum();
        if out.len() + bytes / 8 > MOST {
            return false;
        }
        let mut room = vec![0u8; bytes];
        let mut rest = &mut *room;
        let mut parts = Vec::with_capacity(arrays.len());
        for (at, n, _) in arrays {
            let (into, after) = rest.split_at_mut((*n as usize * 8).min(rest.len()));
            parts.push(Part::new(*at, into));
            rest = after;
        }
        self.memory.read(&mut parts);
        let mut whole = true;
        for (part, (_, _, state)) in parts.iter().zip(arrays) {
            whole &= part.whole();
            let places = part.into.chunks(8).map(|word| u64_at(word, 0));
            out.extend(places.map(|address| (address, *state)));
        }
        whole
    }
}

/// The marks.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Addresses in arrays, and which, in order of address.
    arrays: Vec<(u64, State)>,
    /// Slabs of slots, in order of slab.
    held: Vec<(u32, Holder)>,
    /// Slabs of nodes' lists and their places there, in order of slab.
    listed: Vec<(u32, u32)>,
    rows: Vec<RowImage>,
    lost: Vec<bool>,
    complete: bool,
}

impl Marks {
    /// Copies everything once.
    pub fn gather(look: &Look<'_>, slabs: &[SlabImage]) -> Self {
        let mut this = Self {
            lost: look.lost(),
            ..Self::default()
        };
        let Some(rows) = look.rows() else {
            return this;
        };
        this.rows = rows;
        let steady = this.kept().all(|(_, row)| row.is_steady());
        this.complete = steady;
        // After the rows: who changes a barn or a list is between two marks of its row.
        let of = (look.memory, look.shape, look.engine, look.cache);
        let Ok(nodes) = image::nodes(of.0, of.1, of.2, of.3) else {
            this.complete = false;
            return this;
        };
        let mut arrays = Vec::new();
        let most = look.cache.sheaf_capacity;
        for (slot, row) in this.kept() {
            let of = [
                (row.main, row.n.min(most), State::Main { slot }),
                (row.spare, row.spare_n.min(most), State::Spare { slot }),
            ];
            arrays.extend(of.into_iter().filter(|of| of.0 != 0 && of.1 != 0));
        }
        for (node, number) in nodes.iter().zip(0..) {
            let full = node
                .full
                .iter()
                .map(|at| (*at, most, State::Barn { node: number }));
            arrays.extend(full.filter(|_| look.has_arrays()));
        }
        this.complete &= look.arrays(&arrays, &mut this.arrays);
        this.hold(look, slabs);
        this.list(&nodes, slabs);
        this.arrays.sort_unstable_by_key(|mark| mark.0);
        this.held.sort_unstable_by_key(|mark| mark.0);
        this.listed.sort_unstable_by_key(|mark| mark.0);
        this
    }

    /// Slots and their rows, but for those that a fork left torn.
    fn kept(&self) -> impl Iterator<Item = (u32, &RowImage)> {
        let lost = self.lost.iter().chain(std::iter::repeat(&false));
        let rows = (1u32..).zip(&self.rows).zip(lost);
        rows.filter(|(_, lost)| !**lost).map(|(row, _)| row)
    }

    fn hold(&mut self, look: &Look<'_>, slabs: &[SlabImage]) {
        let mut held = Vec::new();
        for (slot, row) in self.kept() {
            if row.slab != 0 {
                held.push((row.slab, Holder::InHand { slot }));
            }
            let mut at = row.partial;
            for _ in 0..row.nr_partial.min(slabs.len() as u32) {
                let Some(slab) = slabs::find(slabs, at).filter(|_| look.has_cpu_slab()) else {
                    break;
                };
                // In truth a slab is held once: what says more of them is a circle.
                if held.len() > 2 * slabs.len() {
                    break;
                }
                held.push((at, Holder::Partial { slot }));
                let now = slabs::again(look.memory, look.shape, look.engine, &[*slab]);
                at = now.first().map_or(0, |of| of.next);
            }
        }
        self.held = held;
    }

    fn list(&mut self, nodes: &[NodeImage], slabs: &[SlabImage]) {
        for node in nodes {
            let mut at = node.head;
            for position in 0..node.nr_partial.min(slabs.len() as u32) {
                let Some(slab) = slabs::find(slabs, at) else {
                    break;
                };
                self.listed.push((at, position));
                at = slab.next;
            }
        }
    }

    /// Whether all rows are as they were when they were copied, and everything was.
    pub fn still(&self, look: &Look<'_>) -> bool {
        self.complete && (!look.memory.is_live() || look.rows().as_ref() == Some(&self.rows))
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
