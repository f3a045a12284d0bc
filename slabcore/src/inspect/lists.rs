//! A node's list of partial slabs, checked from outside while nobody changed it.
//!
//! What it does not do: find out that nobody did; `validate` does, by the list's lock.

use super::Refusal;
use super::image::{self, NodeImage};
use super::marks::Look;
use super::slabs::{self, SlabImage};
use crate::finding::{Fault, Finding};
use crate::validate::MOST;

/// A node's list of partial slabs that held still, and what is wrong with it.
pub(super) struct List<'l> {
    look: Look<'l>,
    node: u32,
    image: &'l NodeImage,
    /// Up to [`MOST`].
    pub found: Vec<Finding>,
    /// Findings beyond these.
    pub more: u64,
}

impl<'l> List<'l> {
    pub fn new(look: Look<'l>, node: u32, image: &'l NodeImage) -> Self {
        Self {
            look,
            node,
            image,
            found: Vec::new(),
            more: 0,
        }
    }

    fn tell(&mut self, of: Option<&SlabImage>, fault: Fault) {
        let finding = Finding::new(self.look.cache.id, self.node, fault);
        let finding = of.map_or(finding, |of| finding.in_slab(of.address as usize));
        if self.found.len() < MOST {
            self.found.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// Follows it; false if a slab of it came later than the slabs are known.
    pub fn follow(&mut self, slabs: &[SlabImage]) -> Result<bool, Refusal> {
        let look = self.look;
        let counted = self.image.nr_partial;
        let (mut at, mut before, mut n) = (self.image.head, None::<&SlabImage>, 0);
        while at != 0 {
            look.memory.step()?;
            if n > counted || look.engine.range_of(at).is_none() {
                self.tell(before, Fault::ListBroken);
                return Ok(true);
            }
            let Some(slab) = slabs::find(slabs, at) else {
                return self.unknown(at);
            };
            if slab.prev != before.map_or(0, |of| of.page) {
                self.tell(Some(slab), Fault::ListBroken);
                return Ok(true);
            }
            if slab.on_node != 1 {
                self.tell(Some(slab), Fault::OnNodeFlag);
            }
            if slab.cache != look.cache.id + 1 || slab.node != self.node {
                self.tell(Some(slab), Fault::ForeignSlab);
                return Ok(true);
            }
            if slab.word(look.shape).frozen() {
                self.tell(Some(slab), Fault::ListedFrozen);
            }
            n += 1;
            before = Some(slab);
            at = slab.next;
        }
        if self.image.tail != before.map_or(0, |of| of.page) {
            self.tell(before, Fault::ListBroken);
        }
        if n != counted {
            self.tell(None, Fault::PartialCount { found: n, counted });
        }
        Ok(true)
    }

    /// A new slab, or one of another cache: if it is on the list still. It is read later than the
    /// rest, and a new slab may have become another cache's since.
    fn unknown(&mut self, page: u32) -> Result<bool, Refusal> {
        let look = self.look;
        let now = slabs::one(look.memory, look.shape, look.engine, page)?;
        let foreign = now.cache != 0 && now.cache != look.cache.id + 1;
        if !foreign {
            return Ok(false);
        }
        let nodes = image::nodes(look.memory, look.shape, look.engine, look.cache)?;
        let after = nodes.get(self.node as usize);
        let held_still = after.is_some_and(|after| self.image.held_still_until(after));
        if held_still {
            self.tell(Some(&now), Fault::ForeignSlab);
        }
        Ok(held_still)
    }
}
