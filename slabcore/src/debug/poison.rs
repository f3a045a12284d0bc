//! The bytes that debugging writes into slots.
//!
//! Source of truth: `include/linux/poison.h` and the object initialisation of `mm/slub.c`, Linux 6.12.
//!
//! ```text
//!                  free object     live object
//! left red zone    bb              cc
//! object           6b .. 6b a5     6b .. 6b a5 on allocation, then the user's
//! kmalloc slack    6b .. 6b a5     cc (from the requested size to the end of the object)
//! right red zone   bb              cc
//! padding          5a              5a (alignment padding too, where there is no red zone)
//! ```
//!
//! What it does not do: write free pointers at large (see [`set_free_pointer`] for one) or tracks (see
//! [`super::track`]). A slot that is shorter than its layout says is left alone where bytes are missing.

use core::ops::Range;

use super::flags::DebugFlags;
use super::layout::{ObjectLayout, WORD};

/// Red zone of a free object.
pub const RED_INACTIVE: u8 = 0xbb;
/// Red zone of a live object.
pub const RED_ACTIVE: u8 = 0xcc;
/// Memory of the slab that belongs to no object, and padding.
pub const POISON_INUSE: u8 = 0x5a;
/// Body of a free object.
pub const POISON_FREE: u8 = 0x6b;
/// Last byte of a free object.
pub const POISON_END: u8 = 0xa5;

/// Whether an object is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Handed out to the program.
    Live,
    /// On a free list, or never handed out.
    Free,
}

impl State {
    /// The byte of the red zones in this state.
    pub const fn red(self) -> u8 {
        match self {
            Self::Live => RED_ACTIVE,
            Self::Free => RED_INACTIVE,
        }
    }
}

fn fill(slot: &mut [u8], range: Range<usize>, value: u8) {
    if let Some(bytes) = slot.get_mut(range) {
        bytes.fill(value);
    }
}

/// Prepares a new slab: padding everywhere if `P` is set, then `objects` free slots from its start.
///
/// The memory behind the last slot is filled too. Free pointers are left to the caller, who writes them afterwards.
pub fn init_slab(slab: &mut [u8], objects: usize, layout: &ObjectLayout) {
    if layout.flags().contains(DebugFlags::POISON) {
        slab.fill(POISON_INUSE);
    }
    for slot in slab.chunks_exact_mut(layout.slab_size()).take(objects) {
        init_slot(slot, layout);
    }
}

/// Prepares the slot of an object that was never handed out: red zones and poison of a free object, no tracks.
pub fn init_slot(slot: &mut [u8], layout: &ObjectLayout) {
    init_object(slot, layout, State::Free);
    fill(slot, layout.alloc_track(), 0);
    fill(slot, layout.free_track(), 0);
    fill(slot, layout.orig_size(), 0);
}

/// Writes red zones and poison of a state. For [`State::Live`] the requested size must be set before.
pub fn init_object(slot: &mut [u8], layout: &ObjectLayout, state: State) {
    let red = layout.flags().contains(DebugFlags::RED_ZONE);
    let object = layout.object();
    let used = match state {
        State::Live if red => orig_size(slot, layout),
        _ => layout.object_size(),
    };
    let used_end = object.start + used;
    if red {
        fill(slot, 0..object.start, state.red());
        fill(slot, used_end..layout.right().end, state.red());
    }
    if layout.poisons_objects() && used > 0 {
        fill(slot, object.start..used_end - 1, POISON_FREE);
        fill(slot, used_end - 1..used_end, POISON_END);
    }
}

/// Marks a slot live for a request of `requested` bytes, which counts in kmalloc caches with `U` only.
pub fn on_alloc(slot: &mut [u8], layout: &ObjectLayout, requested: usize) {
    set_orig_size(slot, layout, requested);
    init_object(slot, layout, State::Live);
}

/// Marks a slot free. The free pointer is untouched.
pub fn on_free(slot: &mut [u8], layout: &ObjectLayout) {
    init_object(slot, layout, State::Free);
}

/// Changes the requested size of a live object in place and returns the former one.
///
/// The slack behind the new size becomes red zone, so growing again must not read what was there; bytes between
/// the former and a larger new size are left for the caller to zero or leave.
pub fn on_resize(slot: &mut [u8], layout: &ObjectLayout, requested: usize) -> usize {
    let former = orig_size(slot, layout);
    set_orig_size(slot, layout, requested);
    if layout.keeps_orig_size() && layout.flags().contains(DebugFlags::RED_ZONE) {
        let object = layout.object();
        fill(
            slot,
            object.start + orig_size(slot, layout)..object.end,
            RED_ACTIVE,
        );
    }
    former
}

/// Remembers the size that was asked for, at most the object's size. Does nothing where no size is kept.
pub fn set_orig_size(slot: &mut [u8], layout: &ObjectLayout, requested: usize) {
    if let Some(bytes) = slot
        .get_mut(layout.orig_size())
        .filter(|bytes| bytes.len() == WORD)
    {
        let kept = requested.min(layout.object_size()) as u64;
        bytes.copy_from_slice(&kept.to_ne_bytes());
    }
}

/// The size that was asked for, or the object's size where none is kept or the kept one is impossible.
pub fn orig_size(slot: &[u8], layout: &ObjectLayout) -> usize {
    let kept = if layout.keeps_orig_size() {
        word(slot, layout.orig_size())
    } else {
        None
    };
    kept.and_then(|size| usize::try_from(size).ok())
        .map_or(layout.object_size(), |size| size.min(layout.object_size()))
}

/// The word that holds the free pointer, as it is stored.
pub fn free_pointer(slot: &[u8], layout: &ObjectLayout) -> u64 {
    word(slot, layout.free_pointer()).unwrap_or(0)
}

/// Stores the word that holds the free pointer.
pub fn set_free_pointer(slot: &mut [u8], layout: &ObjectLayout, value: u64) {
    if let Some(bytes) = slot.get_mut(layout.free_pointer()) {
        bytes.copy_from_slice(&value.to_ne_bytes());
    }
}

fn word(slot: &[u8], range: Range<usize>) -> Option<u64> {
    let bytes: [u8; WORD] = slot.get(range)?.try_into().ok()?;
    Some(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kmalloc_32() -> ObjectLayout {
        ObjectLayout::new(32, 8, "ZU".parse().unwrap(), false, true).unwrap()
    }

    #[test]
    fn a_live_kmalloc_object_is_red_behind_its_request() {
        let layout = kmalloc_32();
        let mut slot = vec![0; layout.slab_size()];
        init_slab(&mut slot, 1, &layout);
        on_alloc(&mut slot, &layout, 18);
        assert_eq!(orig_size(&slot, &layout), 18);
        assert!(slot[..8].iter().all(|&b| b == 0xcc));
        assert!(slot[layout.object()][18..].iter().all(|&b| b == 0xcc));
        assert!(slot[layout.right()].iter().all(|&b| b == 0xcc));
        on_free(&mut slot, &layout);
        assert!(slot[layout.right()].iter().all(|&b| b == 0xbb));
    }

    #[test]
    fn without_red_zones_the_whole_object_is_poisoned() {
        let layout = ObjectLayout::new(32, 8, "PU".parse().unwrap(), false, true).unwrap();
        let mut slot = vec![0; layout.slab_size()];
        init_slab(&mut slot, 1, &layout);
        slot[layout.object()].fill(0);
        on_alloc(&mut slot, &layout, 18);
        assert_eq!(slot[layout.object()], [&[0x6b; 31][..], &[0xa5]].concat());
    }

    #[test]
    fn resizing_keeps_the_content_and_moves_the_red_zone() {
        let layout = ObjectLayout::new(64, 8, "ZU".parse().unwrap(), false, true).unwrap();
        let mut slot = vec![0; layout.slab_size()];
        init_slab(&mut slot, 1, &layout);
        on_alloc(&mut slot, &layout, 48);
        slot[layout.object()][..48].fill(7);
        assert_eq!(on_resize(&mut slot, &layout, 40), 48);
        assert!(slot[layout.object()][40..].iter().all(|&b| b == 0xcc));
        assert_eq!(on_resize(&mut slot, &layout, 56), 40);
        assert!(slot[layout.object()][..40].iter().all(|&b| b == 7));
        assert!(slot[layout.object()][56..].iter().all(|&b| b == 0xcc));
    }

    #[test]
    fn a_request_of_nothing_is_all_red() {
        let layout = ObjectLayout::new(8, 8, DebugFlags::DEFAULT, false, true).unwrap();
        let mut slot = vec![0; layout.slab_size()];
        init_slab(&mut slot, 1, &layout);
        on_alloc(&mut slot, &layout, 0);
        assert!(slot[layout.object()].iter().all(|&b| b == 0xcc));
    }

    #[test]
    fn poison_only_fills_alignment_and_tail_with_padding() {
        let layout = ObjectLayout::new(12, 8, DebugFlags::POISON, false, false).unwrap();
        let mut slab = vec![0; layout.slab_size() * 2 + 5];
        init_slab(&mut slab, 2, &layout);
        assert_eq!(slab[..12], [&[0x6b; 11][..], &[0xa5]].concat());
        assert_eq!(slab[12..16], [0x5a; 4]);
        assert_eq!(slab[layout.slab_size() * 2..], [0x5a; 5]);
    }

    #[test]
    fn a_short_slot_is_survived() {
        let layout = kmalloc_32();
        let mut slot = [0; 20];
        init_slot(&mut slot, &layout);
        on_alloc(&mut slot, &layout, 5);
        set_free_pointer(&mut slot, &layout, 1);
        assert_eq!(free_pointer(&slot, &layout), 0);
        on_free(&mut slot, &layout);
    }
}
