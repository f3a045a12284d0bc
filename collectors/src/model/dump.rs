//! A look into caches: slabs, objects and where each of them is.
//!
//! The same for every source that can look inside an allocator. What was not
//! looked at, or changed meanwhile, is said: [`Place::Unknown`], `exact`, `cut`.

use std::ops::Range;

/// Where an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// With the program.
    Allocated,
    /// In its slab's free list.
    Free,
    /// In the free list of a slab that a slot holds: freed by others, not yet seen by the slot.
    Remote,
    /// In the own list of the slot that holds the slab.
    Own(u32),
    /// In the main sheaf of a slot.
    Main(u32),
    /// In the spare sheaf of a slot.
    Spare(u32),
    /// In a full sheaf of a node's barn.
    Barn(u32),
    /// Out of use after damage.
    Quarantined,
    /// It moved while it was looked at.
    Unknown,
}

impl Place {
    /// Every kind once, in the order of a legend.
    pub const KINDS: [Self; 9] = [
        Self::Allocated,
        Self::Free,
        Self::Remote,
        Self::Own(0),
        Self::Main(0),
        Self::Spare(0),
        Self::Barn(0),
        Self::Quarantined,
        Self::Unknown,
    ];

    /// Stable name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Free => "free",
            Self::Remote => "remote",
            Self::Own(_) => "own",
            Self::Main(_) => "main",
            Self::Spare(_) => "spare",
            Self::Barn(_) => "barn",
            Self::Quarantined => "quarantined",
            Self::Unknown => "unknown",
        }
    }

    /// The character of the kind in a map of a slab.
    pub const fn letter(self) -> char {
        match self {
            Self::Allocated => '#',
            Self::Free => '.',
            Self::Remote => 'r',
            Self::Own(_) => 'o',
            Self::Main(_) => 'm',
            Self::Spare(_) => 's',
            Self::Barn(_) => 'b',
            Self::Quarantined => 'q',
            Self::Unknown => '?',
        }
    }

    /// One line on the kind.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Free => "free in its slab",
            Self::Remote => "freed by another slot than the slab's",
            Self::Own(_) => "in the list of the slot that has the slab",
            Self::Main(_) => "in a slot's main sheaf",
            Self::Spare(_) => "in a slot's spare sheaf",
            Self::Barn(_) => "in a node's barn",
            Self::Quarantined => "out of use after damage",
            Self::Unknown => "not known, it moved",
        }
    }

    /// The number of the slot that has the object.
    pub const fn slot(self) -> Option<u32> {
        match self {
            Self::Own(slot) | Self::Main(slot) | Self::Spare(slot) => Some(slot),
            _ => None,
        }
    }
}

/// Who has a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    Nobody,
    /// A slot allocates from it.
    InHand(u32),
    /// It is on a slot's list of slabs with free objects.
    Partial(u32),
    /// A slot owns it and found it full.
    Full(u32),
}

/// A code address, with its name where the source knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The address.
    pub address: u64,
    /// Function or file, with an offset.
    pub symbol: Option<String>,
}

/// Who allocated or freed an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpTrack {
    /// Thread id.
    pub thread: u32,
    /// CPU.
    pub cpu: u32,
    /// Milliseconds from then to the look.
    pub age_ms: u64,
    /// Frames, innermost first; at least the caller.
    pub stack: Vec<Frame>,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpObject {
    /// Where it is.
    pub place: Place,
    /// Bytes asked for, where that is kept.
    pub requested: Option<u64>,
    /// Who allocated it, where that is kept.
    pub allocated: Option<DumpTrack>,
    /// Who freed it, where that is kept.
    pub freed: Option<DumpTrack>,
}

/// One slab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpSlab {
    /// Its address.
    pub address: u64,
    /// Page order.
    pub order: u32,
    /// Node.
    pub node: u32,
    /// Objects that are not in its free list, by its counter.
    pub inuse: u64,
    /// Who has it.
    pub holder: Holder,
    /// On its node's partial list, and where, counted from 0.
    pub listed: Option<u32>,
    /// In its holder's queue of slabs that others freed to.
    pub queued: bool,
    /// The lists are of one moment.
    pub settled: bool,
    /// Its objects by index.
    pub objects: Vec<DumpObject>,
    /// Its free list in order.
    pub chain: Vec<u16>,
    /// The holder's own list in order.
    pub own: Vec<u16>,
    /// Its bytes, if they were asked for.
    pub bytes: Option<Vec<u8>>,
}

impl DumpSlab {
    /// One character for each object.
    pub fn map(&self) -> String {
        self.objects.iter().map(|of| of.place.letter()).collect()
    }
}

/// A named part of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is, for example "left red zone".
    pub name: &'static str,
    /// Where in the slot.
    pub range: Range<usize>,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpCache {
    /// Name.
    pub name: String,
    /// Policy; `None` for a debug cache.
    pub policy: Option<&'static str>,
    /// Letters of `slab_debug`, or `-`.
    pub debug: String,
    /// Bytes of an object.
    pub object_size: u32,
    /// Bytes from one object to the next.
    pub slab_size: u32,
    /// Where in its slot an object begins.
    pub object_offset: u32,
    /// Objects in a slab of the usual order.
    pub objs_per_slab: u32,
    /// The parts of a slot that are not empty.
    pub parts: Vec<Part>,
    /// Slabs there are.
    pub slabs_total: u64,
    /// Objects of all slabs by place, in the order of [`Place::KINDS`].
    pub places: [u64; 9],
    /// Objects in use by the counters; `None` where they were not reached.
    pub counted: Option<u64>,
    /// Everything is of one moment, and adds up.
    pub exact: bool,
    /// The look came to its limit: there may be more slabs.
    pub limited: bool,
    /// The slabs that were kept, in order of address.
    pub slabs: Vec<DumpSlab>,
}

/// Several caches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dump {
    /// The caches.
    pub caches: Vec<DumpCache>,
    /// Slabs that were left out.
    pub cut: u64,
    /// The look came to its limit: there may be more slabs and caches.
    pub limited: bool,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpDemand {
    /// Slabs of each cache at most.
    pub slabs: usize,
    /// Objects of all slabs together at most.
    pub objects: usize,
    /// Copy bytes of slabs.
    pub bytes: bool,
    /// Only slabs that this address is in.
    pub address: Option<u64>,
}

impl DumpDemand {
    /// Objects kept at most, whatever is asked for.
    pub const OBJECTS: usize = 1_000_000;
}
