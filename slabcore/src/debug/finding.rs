//! A failure as data: what validation of a cache hands on, and one line of text for it.
//!
//! What it does not do: decide whether a finding is real; who validates a running program confirms it first.

use core::fmt;

use super::check::{Damage, DamageKind, Found};
use super::layout::ObjectLayout;
use super::reason::Reason;
use super::track::{Track, TrackKind};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// Damaged bytes.
    Damage(DamageKind),
    /// Anything that a report names.
    Reason(Reason),
    /// A list of slabs is longer or shorter than its counter says.
    SlabCount {
        /// Which list.
        list: SlabList,
        /// Slabs on the list.
        counted: u64,
        /// What the counter says.
        counter: u64,
    },
    /// A slab is on a list where its state does not belong, or on none.
    WrongList,
}

/// A list of slabs with a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlabList {
    /// Slabs with free objects.
    Partial,
    /// All slabs.
    All,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage(kind) => write!(f, "{kind}"),
            Self::Reason(reason) => write!(f, "{reason}"),
            Self::SlabCount {
                list: SlabList::Partial,
                counted,
                counter,
            } => {
                write!(f, "{counted} partial slabs counted but counter={counter}")
            }
            Self::SlabCount {
                list: SlabList::All,
                counted,
                counter,
            } => {
                write!(f, "{counted} slabs counted but counter={counter}")
            }
            Self::WrongList => f.write_str("slab is not on the list where it belongs"),
        }
    }
}

/// One failure of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding<'a> {
    /// What was found.
    pub kind: FindingKind,
    /// The name of the cache.
    pub cache: &'a str,
    /// The address of the slab's memory, if it is about a slab.
    pub slab: Option<u64>,
    /// The index of the object in the slab, if it is about an object.
    pub object: Option<u32>,
    /// The first wrong byte, counted from the object, or from the slab where no object is named.
    pub offset: Option<i64>,
    /// How many bytes from the first to the last wrong one; 0 where it is not about bytes.
    pub len: u64,
    /// The expected byte.
    pub expected: Option<u8>,
    /// The first wrong bytes.
    pub found: Option<Found>,
    /// Who allocated the object.
    pub allocated: Option<Track>,
    /// Who freed the object.
    pub freed: Option<Track>,
}

impl<'a> Finding<'a> {
    /// A finding about a cache, to be filled in.
    pub const fn new(cache: &'a str, kind: FindingKind) -> Self {
        Self {
            kind,
            cache,
            slab: None,
            object: None,
            offset: None,
            len: 0,
            expected: None,
            found: None,
            allocated: None,
            freed: None,
        }
    }

    /// Damaged bytes of an object, with the tracks that its slot holds.
    pub fn of_object(
        cache: &'a str,
        slab: u64,
        object: u32,
        damage: &Damage,
        slot: &[u8],
        layout: &ObjectLayout,
    ) -> Self {
        Self {
            slab: Some(slab),
            object: Some(object),
            offset: Some(damage.from_object(layout) as i64),
            len: damage.len() as u64,
            expected: damage.expected(),
            found: Some(*damage.found()),
            allocated: Track::load(slot, layout, TrackKind::Allocated),
            freed: Track::load(slot, layout, TrackKind::Freed),
            ..Self::new(cache, FindingKind::Damage(damage.kind()))
        }
    }

    /// Damaged bytes behind the last object of a slab.
    pub fn of_slab_padding(cache: &'a str, slab: u64, damage: &Damage) -> Self {
        Self {
            slab: Some(slab),
            offset: i64::try_from(damage.first()).ok(),
            len: damage.len() as u64,
            expected: damage.expected(),
            found: Some(*damage.found()),
            ..Self::new(cache, FindingKind::Damage(damage.kind()))
        }
    }
}

impl fmt::Display for Finding<'_> {
    /// One line, for example `sb-test: slab 0x7f0000001000, object 3, byte 64: Right Redzone overwritten, 2 bytes, 12 34
    /// instead of cc; allocated by thread 7 in 0x401000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cache)?;
        let mut separator = ": ";
        if let Some(slab) = self.slab {
            write!(f, "{separator}slab 0x{slab:x}")?;
            separator = ", ";
        }
        if let Some(object) = self.object {
            write!(f, "{separator}object {object}")?;
            separator = ", ";
        }
        if let Some(offset) = self.offset {
            write!(f, "{separator}byte {offset}")?;
        }
        write!(f, ": {}", self.kind)?;
        if let Some(found) = &self.found {
            write!(
                f,
                ", {} byte{}, ",
                self.len,
                if self.len == 1 { "" } else { "s" }
            )?;
            for (index, byte) in found.bytes().iter().enumerate() {
                write!(f, "{}{byte:02x}", if index == 0 { "" } else { " " })?;
            }
            if self.len > found.bytes().len() as u64 {
                f.write_str(" ..")?;
            }
        }
        if let Some(expected) = self.expected {
            write!(f, " instead of {expected:02x}")?;
        }
        for (word, track) in [("allocated", &self.allocated), ("freed", &self.freed)] {
            if let Some(track) = track {
                write!(
                    f,
                    "; {word} by thread {} in 0x{:x}",
                    track.thread, track.caller
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::check::{AnyLink, check_object, check_slab_padding};
    use crate::debug::flags::DebugFlags;
    use crate::debug::poison::{State, init_slab, on_alloc};

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
        let damage = check_object(&slot, State::Live, &layout, &AnyLink).unwrap();
        let finding = Finding::of_object("sb-test", 0x7f00_0000_1000, 3, &damage, &slot, &layout);
        assert_eq!(finding.allocated, Some(track));
        insta::assert_snapshot!(finding, @"sb-test: slab 0x7f0000001000, object 3, byte 64: Right Redzone overwritten, 2 bytes, 12 34 instead of cc; allocated by thread 7 in 0x401000");
    }

    #[test]
    fn long_damage_is_shortened_and_counts_are_told() {
        let layout = ObjectLayout::new(64, 8, DebugFlags::DEFAULT, false, false).unwrap();
        let mut slab = vec![0x5a; 4096];
        slab[4000..4090].fill(0);
        let damage = check_slab_padding(&slab, 25, &layout).unwrap();
        let finding = Finding::of_slab_padding("a", 0x1000, &damage);
        insta::assert_snapshot!(finding, @"a: slab 0x1000, byte 4000: Padding overwritten, 90 bytes, 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 .. instead of 5a");
        let kind = FindingKind::SlabCount {
            list: SlabList::Partial,
            counted: 3,
            counter: 4,
        };
        insta::assert_snapshot!(Finding::new("a", kind), @"a: 3 partial slabs counted but counter=4");
    }
}
