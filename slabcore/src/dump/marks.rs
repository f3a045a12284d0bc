//! Where the rows and barns of one cache have objects and slabs: gathered, sorted, looked up.
//!
//! Nothing is allocated while gathering; what finds no room makes the marks incomplete.
//! The caller holds the registry's lock, so that rows stay and no slot is flushed.

use super::{Holder, State};
use crate::core::{CacheCore, Path};
use crate::fork;
use crate::policy::Policy;
use crate::row::{Row, Stamp};
use crate::slab::{NIL, Table};
use crate::slot;
use crate::sync::Ordering::Relaxed;

/// How much there was to mark at some moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    objects: usize,
    slabs: usize,
    listed: usize,
    rows: usize,
}

/// What there is to mark now.
pub(crate) fn wanted(core: &'static CacheCore) -> Wanted {
    let mut sum = Wanted {
        rows: slot::used() as usize,
        ..Wanted::default()
    };
    for row in core.used_rows() {
        sum.objects += (row.n.load(Relaxed) + row.spare_n.load(Relaxed)) as usize;
        sum.slabs += 1 + row.nr_partial.load(Relaxed) as usize;
    }
    for part in core.nodes.iter().take(core.engine.nodes()) {
        sum.objects += part.barn.counts().0 as usize * core.sheaf_capacity as usize;
        sum.listed += part.node.nr_partial() as usize;
    }
    sum
}

/// The marks.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Addresses in arrays, and which, in order of address.
    arrays: Vec<(usize, State)>,
    /// Slabs of slots, in order of slab.
    held: Vec<(u32, Holder)>,
    /// Slabs of nodes' lists and their places there, in order of slab.
    listed: Vec<(u32, u32)>,
    /// Of all rows, from the shared one on.
    stamps: Vec<Stamp>,
    /// Everything found room and no row was being changed.
    complete: bool,
}

fn push<T>(to: &mut Vec<T>, value: T) -> bool {
    let room = to.len() < to.capacity();
    if room {
        to.push(value);
    }
    room
}

/// Slots whose rows can be read: not those that a fork left torn.
fn slots() -> impl Iterator<Item = u32> {
    (slot::SHARED..slot::used()).filter(|slot| !fork::is_lost(*slot))
}

impl Marks {
    /// Takes room, with some to spare. No lock is held.
    pub fn reserve(&mut self, wanted: Wanted) {
        fn room<T>(of: &mut Vec<T>, n: usize) {
            of.clear();
            of.reserve(n + n / 2 + 256);
        }
        room(&mut self.arrays, wanted.objects);
        room(&mut self.held, wanted.slabs);
        room(&mut self.listed, wanted.listed);
        room(&mut self.stamps, wanted.rows);
    }

    /// Marks everything; false if there was no room for it.
    pub fn gather(&mut self, core: &CacheCore) -> bool {
        self.arrays.clear();
        self.held.clear();
        self.listed.clear();
        self.stamps.clear();
        self.complete = true;
        let mut room = true;
        for slot in slots() {
            let row = core.row(slot);
            let Some(stamp) = row.stamp() else {
                self.complete = false;
                continue;
            };
            room &= push(&mut self.stamps, stamp);
            room &= self.row(core, row, slot, stamp);
        }
        for (part, node) in core.nodes.iter().take(core.engine.nodes()).zip(0..) {
            part.barn.each_full(|sheaf| {
                for place in core.places(sheaf) {
                    let mark = (place.load(Relaxed), State::Barn { node });
                    room &= push(&mut self.arrays, mark);
                }
            });
            room &= self.list(core, node as usize);
        }
        self.complete &= room;
        self.arrays.sort_unstable_by_key(|mark| mark.0);
        self.held.sort_unstable_by_key(|mark| mark.0);
        self.listed.sort_unstable_by_key(|mark| mark.0);
        room
    }

    fn row(&mut self, core: &CacheCore, row: &Row, slot: u32, stamp: Stamp) -> bool {
        let mut room = true;
        let arrays = [
            (stamp.main, stamp.n, State::Main { slot }),
            (stamp.spare, stamp.spare_n, State::Spare { slot }),
        ];
        for (sheaf, n, state) in arrays.into_iter().filter(|of| of.0 != 0) {
            for place in core.places(sheaf).iter().take(n as usize) {
                room &= push(&mut self.arrays, (place.load(Relaxed), state));
            }
        }
        if stamp.slab != NIL {
            room &= push(&mut self.held, (stamp.slab, Holder::InHand { slot }));
        }
        if has_cpu_slab(core) {
            let mut at = row.partial.load(Relaxed);
            for _ in 0..row.nr_partial.load(Relaxed) {
                if at == NIL || at >= core.engine.pages.frontier() {
                    break;
                }
                room &= push(&mut self.held, (at, Holder::Partial { slot }));
                at = core.desc(at).next.load(Relaxed);
            }
        }
        room
    }

    fn list(&mut self, core: &CacheCore, node: usize) -> bool {
        let list = &core.nodes[node].node;
        let _held = list.list_lock.lock();
        let (mut at, mut position, mut room) = (list.first(), 0, true);
        while at != NIL && position < list.nr_partial() && at < core.engine.pages.frontier() {
            room &= push(&mut self.listed, (at, position));
            position += 1;
            at = core.engine.pages.desc(at).next.load(Relaxed);
        }
        room
    }

    /// Whether all rows are as they were when gathered, and everything was.
    pub fn still(&self, core: &CacheCore) -> bool {
        // Threads may have come since; most have nothing to do with this cache.
        let then = self.stamps.iter().copied();
        let mut then = then.chain(std::iter::repeat(Stamp::UNUSED));
        let mut now = slots().map(|slot| core.row(slot).stamp());
        self.complete && now.all(|now| now == then.next())
    }

    /// The marks of addresses in a range, in order.
    pub fn arrays_in(&self, range: std::ops::Range<usize>) -> &[(usize, State)] {
        let from = self.arrays.partition_point(|mark| mark.0 < range.start);
        let to = self.arrays.partition_point(|mark| mark.0 < range.end);
        self.arrays.get(from..to).unwrap_or(&[])
    }

    /// All marks of addresses, in order.
    pub fn arrays(&self) -> &[(usize, State)] {
        &self.arrays
    }

    /// Slabs that slots allocate from.
    pub fn in_hand(&self) -> impl Iterator<Item = u32> + '_ {
        let held = self.held.iter();
        let in_hand = held.filter(|mark| matches!(mark.1, Holder::InHand { .. }));
        in_hand.map(|mark| mark.0)
    }

    /// Which slot has a slab, by the slots.
    pub fn holder(&self, slab: u32) -> Holder {
        find(&self.held, slab).unwrap_or(Holder::Nobody)
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

/// Whether a slot's own list is that of the slab in hand, kept in the row.
pub(super) fn has_cpu_slab(core: &CacheCore) -> bool {
    matches!(core.path, Path::Policy(policy) if !policy.has_sheaves())
}

/// Whether slabs are owned, and say by whom.
pub(super) fn has_owners(core: &CacheCore) -> bool {
    core.path == Path::Policy(Policy::Hybrid)
}
