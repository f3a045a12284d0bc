//! Who allocated or freed an object: a small record in the slot.
//!
//! The record has the size and order of the kernel's `struct track` on 64-bit machines with a stack depot (5.19 and
//! later), so that slots of equal size hold equal objects in both:
//!
//! ```text
//! 0        8        12       16       20       24       32
//! | caller | stack  | cpu    | thread | unused | time   |     native byte order
//! ```
//!
//! The time is in nanoseconds of a clock that the caller chooses, where the kernel keeps jiffies. What it does not do:
//! read clocks, CPUs or stacks; see [`super::depot`] for the stacks.

use core::ops::Range;

use super::depot::Handle;
use super::layout::ObjectLayout;

/// The bytes of one track.
pub const TRACK_SIZE: usize = 32;

/// Which of the two tracks of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrackKind {
    /// The last allocation.
    Allocated,
    /// The last free.
    Freed,
}

impl TrackKind {
    /// The word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allocated => "Allocated",
            Self::Freed => "Freed",
        }
    }

    fn range(self, layout: &ObjectLayout) -> Range<usize> {
        match self {
            Self::Allocated => layout.alloc_track(),
            Self::Freed => layout.free_track(),
        }
    }
}

/// Who did it, where and when. An address of 0 means that nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Track {
    /// The address that called the allocator.
    pub caller: u64,
    /// The stack, if the depot had room for it.
    pub stack: Option<Handle>,
    /// The CPU it ran on.
    pub cpu: u32,
    /// The thread id.
    pub thread: u32,
    /// When, in nanoseconds.
    pub time_ns: u64,
}

impl Track {
    /// The record's bytes.
    pub fn encode(&self) -> [u8; TRACK_SIZE] {
        let mut bytes = [0; TRACK_SIZE];
        let mut put = |at: usize, part: &[u8]| {
            for (to, from) in bytes.iter_mut().skip(at).zip(part) {
                *to = *from;
            }
        };
        put(0, &self.caller.to_ne_bytes());
        put(8, &self.stack.map_or(0, Handle::get).to_ne_bytes());
        put(12, &self.cpu.to_ne_bytes());
        put(16, &self.thread.to_ne_bytes());
        put(24, &self.time_ns.to_ne_bytes());
        bytes
    }

    /// Reads a record; any bytes are one. `None` if the slice has another length or nothing was recorded.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; TRACK_SIZE] = bytes.try_into().ok()?;
        let u32_at = |at: usize| {
            bytes
                .get(at..at + 4)
                .and_then(|b| b.try_into().ok())
                .map_or(0, u32::from_ne_bytes)
        };
        let u64_at = |at: usize| {
            bytes
                .get(at..at + 8)
                .and_then(|b| b.try_into().ok())
                .map_or(0, u64::from_ne_bytes)
        };
        let track = Self {
            caller: u64_at(0),
            stack: Handle::new(u32_at(8)),
            cpu: u32_at(12),
            thread: u32_at(16),
            time_ns: u64_at(24),
        };
        (track.caller != 0).then_some(track)
    }

    /// Stores the record in a slot. Does nothing if the layout keeps no tracks, or tracks of another size.
    pub fn store(&self, slot: &mut [u8], layout: &ObjectLayout, kind: TrackKind) {
        if let Some(bytes) = slot
            .get_mut(kind.range(layout))
            .filter(|b| b.len() == TRACK_SIZE)
        {
            bytes.copy_from_slice(&self.encode());
        }
    }

    /// Reads a record from a slot.
    pub fn load(slot: &[u8], layout: &ObjectLayout, kind: TrackKind) -> Option<Self> {
        Self::decode(slot.get(kind.range(layout))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::flags::DebugFlags;
    use crate::debug::poison::init_slab;
    use proptest::prelude::*;

    #[test]
    fn both_tracks_have_their_own_place() {
        let layout = ObjectLayout::new(40, 16, DebugFlags::DEFAULT, false, true).unwrap();
        let mut slot = vec![0xff; layout.slab_size()];
        init_slab(&mut slot, 1, &layout);
        assert_eq!(
            Track::load(&slot, &layout, TrackKind::Allocated),
            None,
            "a new slot has no history"
        );
        let allocated = Track {
            caller: 1,
            stack: Handle::new(7),
            cpu: 2,
            thread: 3,
            time_ns: 4,
        };
        let freed = Track {
            caller: 9,
            stack: None,
            ..allocated
        };
        allocated.store(&mut slot, &layout, TrackKind::Allocated);
        freed.store(&mut slot, &layout, TrackKind::Freed);
        assert_eq!(
            Track::load(&slot, &layout, TrackKind::Allocated),
            Some(allocated)
        );
        assert_eq!(Track::load(&slot, &layout, TrackKind::Freed), Some(freed));
    }

    #[test]
    fn without_u_nothing_is_kept() {
        let layout = ObjectLayout::new(40, 16, DebugFlags::POISON, false, true).unwrap();
        let mut slot = vec![0; layout.slab_size()];
        Track {
            caller: 1,
            ..Track::default()
        }
        .store(&mut slot, &layout, TrackKind::Freed);
        assert!(slot.iter().all(|&b| b == 0));
        assert_eq!(Track::load(&slot, &layout, TrackKind::Freed), None);
    }

    proptest! {
        #[test]
        fn records_read_back(caller in 1u64.., stack: u32, cpu: u32, thread: u32, time_ns: u64) {
            let track = Track { caller, stack: Handle::new(stack), cpu, thread, time_ns };
            prop_assert_eq!(Track::decode(&track.encode()), Some(track));
        }
    }
}
