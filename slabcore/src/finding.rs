//! What is wrong, as data: one type for validation and for reports of operations.
//!
//! What it does not do: decide whether a finding is real; who makes one has confirmed it.

use core::fmt;

use crate::debug::check::{Damage, DamageKind, Found};
use crate::debug::layout::ObjectLayout;
use crate::debug::track::{Track, TrackKind};
use crate::dump::State;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Slabs on a node's partial list against its counter.
    PartialCount {
        /// Slabs found on the list.
        found: u32,
        /// What the counter says.
        counted: u32,
    },
    /// Links of the partial list do not fit each other.
    ListBroken,
    /// A slab on the list is not marked as being there, or one not there is.
    OnNodeFlag,
    /// A slab on the list belongs to another cache or node.
    ForeignSlab,
    /// A slab on a node's list is frozen.
    ListedFrozen,
    /// More objects in use than the slab has, or not as many objects as fit.
    Counts {
        /// In use by the word.
        inuse: u16,
        /// Objects by the word.
        objects: u16,
    },
    /// A link leads out of the slab.
    BadLink {
        /// The object whose link it is; 0xffff is the list's head.
        object: u16,
        /// Where it leads.
        link: u16,
    },
    /// An object is in the free list twice.
    Cycle {
        /// The object.
        object: u16,
    },
    /// Length of the free list against the counts.
    FreeCount {
        /// Objects found in the list.
        found: u16,
        /// Objects that should be there.
        counted: u16,
    },
    /// A page of the slab does not lead to it.
    PageMap {
        /// The page's number within the slab.
        page: u32,
    },
    /// Slabs found against the nodes' counters.
    SlabCount {
        /// Slabs found.
        found: u64,
        /// What the counters say.
        counted: u64,
    },
    /// An array holds something that is no object of the cache.
    NotAnObject {
        /// Which array.
        place: State,
    },
    /// An object is in two places, so it was freed twice.
    FreedTwice {
        /// The object.
        object: u16,
        /// One place.
        first: State,
        /// The other place.
        second: State,
    },
    /// Bytes of a debug cache were damaged; they have been repaired.
    Damage(DamageKind),
    /// An object was freed that is free, or out of use.
    AlreadyFree,
    /// A pointer into a slab was freed, but not to the start of an object.
    InvalidPointer {
        /// The pointer.
        pointer: usize,
    },
    /// A pointer to memory that is no slab was freed.
    OutsideSlab {
        /// The pointer.
        pointer: usize,
    },
    /// An object of another cache was freed.
    OtherCache {
        /// The pointer.
        pointer: usize,
    },
    /// Bytes beside a sampled object were overwritten.
    Guarded,
    /// The cache ended with objects of this slab in use.
    Remaining {
        /// How many.
        objects: u16,
    },
}

/// One fault, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub kind: Fault,
    /// Id of the cache.
    pub cache: u32,
    /// Node.
    pub node: u32,
    /// Address of the slab, if it is about one.
    pub slab: Option<usize>,
    /// Index of the object, if it is about one.
    pub object: Option<u16>,
    /// The first wrong byte, counted from the object, or from the slab where no object is named.
    pub offset: Option<isize>,
    /// Bytes from the first to the last wrong one; 0 where it is not about bytes.
    pub len: usize,
    /// What each should be; `None` for a free pointer.
    pub expected: Option<u8>,
    /// The first bytes found instead.
    pub found: Option<Found>,
    /// Who allocated the object.
    pub allocated: Option<Track>,
    /// Who freed it.
    pub freed: Option<Track>,
}

impl Finding {
    /// A finding about a cache on a node, to be filled in.
    pub const fn new(cache: u32, node: u32, kind: Fault) -> Self {
        let object = match kind {
            Fault::Cycle { object }
            | Fault::FreedTwice { object, .. }
            | Fault::BadLink { object, .. }
                if object != crate::slab::NONE =>
            {
                Some(object)
            }
            _ => None,
        };
        Self {
            kind,
            cache,
            node,
            slab: None,
            object,
            offset: None,
            len: 0,
            expected: None,
            found: None,
            allocated: None,
            freed: None,
        }
    }

    /// The same about a slab.
    #[must_use]
    pub const fn in_slab(mut self, slab: usize) -> Self {
        self.slab = Some(slab);
        self
    }

    /// The same about an object, with the tracks that its slot holds.
    #[must_use]
    pub fn of_object(mut self, object: u16, slot: &[u8], layout: &ObjectLayout) -> Self {
        self.object = Some(object);
        self.allocated = Track::load(slot, layout, TrackKind::Allocated);
        self.freed = Track::load(slot, layout, TrackKind::Freed);
        self
    }

    /// The same about damaged bytes, of an object with a layout or behind the last one.
    #[must_use]
    pub fn with_damage(mut self, damage: &Damage, layout: Option<&ObjectLayout>) -> Self {
        let first = damage.first().cast_signed();
        self.offset = Some(layout.map_or(first, |layout| damage.from_object(layout)));
        self.len = damage.len();
        self.expected = damage.expected();
        self.found = Some(*damage.found());
        self
    }
}

impl fmt::Display for Finding {
    /// One line, for example `slab 0x7f0000001000, object 3, byte 64: Right Redzone overwritten, 2 bytes, 12 34
    /// instead of cc; allocated by thread 7 in 0x401000`. The cache is for the caller to name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(slab) = self.slab {
            write!(f, "slab 0x{slab:x}, ")?;
        } else {
            write!(f, "node {}, ", self.node)?;
        }
        if let Some(object) = self.object {
            write!(f, "object {object}")?;
        } else {
            f.write_str("all of it")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", byte {offset}")?;
        }
        write!(f, ": {}", self.kind)?;
        if let Some(found) = &self.found {
            let s = if self.len == 1 { "" } else { "s" };
            write!(f, ", {} byte{s},", self.len)?;
            for byte in found.bytes() {
                write!(f, " {byte:02x}")?;
            }
            if self.len > found.bytes().len() {
                f.write_str(" ..")?;
            }
        }
        if let Some(expected) = self.expected {
            write!(f, " instead of {expected:02x}")?;
        }
        for (word, track) in [("allocated", &self.allocated), ("freed", &self.freed)] {
            if let Some(Track { thread, caller, .. }) = track {
                write!(f, "; {word} by thread {thread} in 0x{caller:x}")?;
            }
        }
        Ok(())
    }
}

impl Fault {
    /// Stable name of the kind.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::PartialCount { .. } => "partial-count",
            Self::ListBroken => "list-broken",
            Self::OnNodeFlag => "on-node-flag",
            Self::ForeignSlab => "foreign-slab",
            Self::ListedFrozen => "listed-frozen",
            Self::Counts { .. } => "counts",
            Self::BadLink { .. } => "bad-link",
            Self::Cycle { .. } => "cycle",
            Self::FreeCount { .. } => "free-count",
            Self::PageMap { .. } => "page-map",
            Self::SlabCount { .. } => "slab-count",
            Self::NotAnObject { .. } => "not-an-object",
            Self::FreedTwice { .. } => "freed-twice",
            Self::Damage(_) => "damage",
            Self::AlreadyFree => "already-free",
            Self::InvalidPointer { .. } => "invalid-pointer",
            Self::OutsideSlab { .. } => "outside-slab",
            Self::OtherCache { .. } => "other-cache",
            Self::Guarded => "guarded",
            Self::Remaining { .. } => "remaining",
        }
    }
}

impl fmt::Display for Fault {
    /// What is wrong, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::PartialCount { found, counted } => {
                write!(
                    f,
                    "{found} slabs on the partial list, {counted} by its counter"
                )
            }
            Self::ListBroken => f.write_str("the partial list's links do not fit"),
            Self::OnNodeFlag => f.write_str("the mark of being on the partial list is wrong"),
            Self::ForeignSlab => {
                f.write_str("a slab of another cache or node is on the partial list")
            }
            Self::ListedFrozen => f.write_str("a slab on the partial list is held by a slot"),
            Self::Counts { inuse, objects } => {
                write!(f, "{inuse} objects in use of {objects}, which cannot be")
            }
            Self::BadLink {
                object: 0xffff,
                link,
            } => {
                write!(f, "the free list begins outside the slab ({link})")
            }
            Self::BadLink { object, link } => {
                write!(
                    f,
                    "the link of object {object} leads out of the slab ({link})"
                )
            }
            Self::Cycle { object } => write!(f, "object {object} is in the free list twice"),
            Self::FreeCount { found, counted } => {
                write!(
                    f,
                    "{found} objects in the free list, {counted} by the counts"
                )
            }
            Self::PageMap { page } => write!(f, "page {page} of the slab leads elsewhere"),
            Self::SlabCount { found, counted } => {
                write!(f, "{found} slabs found, {counted} by the counters")
            }
            Self::NotAnObject { place } => {
                write!(f, "what is {place} is no object of the cache")
            }
            Self::FreedTwice {
                object,
                first,
                second,
            } => {
                write!(
                    f,
                    "object {object} is {first} and {second}: it was freed twice"
                )
            }
            Self::Damage(kind) => write!(f, "{kind}"),
            Self::AlreadyFree => f.write_str("it was freed, but is free"),
            Self::InvalidPointer { pointer } => {
                write!(f, "0x{pointer:x} was freed, where no object begins")
            }
            Self::OutsideSlab { pointer } => {
                write!(f, "0x{pointer:x} was freed, which is in no slab")
            }
            Self::OtherCache { pointer } => {
                write!(f, "0x{pointer:x} was freed, which is of another cache")
            }
            Self::Guarded => f.write_str("bytes beside a sampled object were overwritten"),
            Self::Remaining { objects } => {
                write!(f, "the cache ended with {objects} objects in use")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::check::{AnyLink, check_object, check_slab_padding};
    use crate::debug::flags::DebugFlags;
    use crate::debug::poison::{self, init_slab, on_alloc};

    #[test]
    fn an_overflow_is_one_line() {
        let layout = ObjectLayout::new(64, 8, DebugFlags::DEFAULT, false, false).unwrap();
        let mut slot = vec![0; layout.slab_size()];
        init_slab(&mut slot, 1, &layout);
        on_alloc(&mut slot, &layout, 64);
        let track = Track {
            caller: 0x40_1000,
            thread: 7,
            ..Track::default()
        };
        track.store(&mut slot, &layout, TrackKind::Allocated);
        slot[layout.object().end..][..2].copy_from_slice(&[0x12, 0x34]);
        let damage = check_object(&slot, poison::State::Live, &layout, &AnyLink).unwrap();
        let finding = Finding::new(0, 0, Fault::Damage(damage.kind()))
            .in_slab(0x7f00_0000_1000)
            .of_object(3, &slot, &layout)
            .with_damage(&damage, Some(&layout));
        assert_eq!(finding.allocated, Some(track));
        insta::assert_snapshot!(finding, @"slab 0x7f0000001000, object 3, byte 64: Right Redzone overwritten, 2 bytes, 12 34 instead of cc; allocated by thread 7 in 0x401000");
    }

    #[test]
    fn long_damage_is_shortened_and_counts_are_told() {
        let layout = ObjectLayout::new(64, 8, DebugFlags::DEFAULT, false, false).unwrap();
        let mut slab = vec![0x5a; 4096];
        slab[4000..4090].fill(0);
        let damage = check_slab_padding(&slab, 25, &layout).unwrap();
        let finding = Finding::new(0, 0, Fault::Damage(damage.kind())).in_slab(0x1000);
        let finding = finding.with_damage(&damage, None);
        insta::assert_snapshot!(finding, @"slab 0x1000, all of it, byte 4000: Padding overwritten, 90 bytes, 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 .. instead of 5a");
        let kind = Fault::PartialCount {
            found: 3,
            counted: 4,
        };
        insta::assert_snapshot!(Finding::new(0, 1, kind), @"node 1, all of it: 3 slabs on the partial list, 4 by its counter");
    }
}
