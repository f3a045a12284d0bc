//! Checks of slots that another thread may be using.
//!
//! A slice promises that nobody writes to it, so a slot with a live object cannot be one: its owner writes the object
//! whenever it likes. [`copy_guards`] copies what the checks read, leaving the live bytes out, and [`restore`] repairs
//! only what was damaged. The other functions of [`super`] are for slots that the caller has for himself.
//!
//! Rules of the unsafe code: pointers are to whole slots of the given layout; only bytes that no correct program
//! writes are read, one volatile byte at a time, since an incorrect one may be at it just then.

use core::ops::Range;

use super::check::{Damage, Fill};
use super::layout::ObjectLayout;
use super::poison::{self, State};

/// Copies a slot into a buffer without the bytes that a live object's owner may write, which become 0.
///
/// Returns the copied slot, for [`super::check::check_object`] and the tracks, or `None` if the buffer is too small.
///
/// # Safety
///
/// `slot` must be valid for reads of `layout.slab_size()` bytes, and what the allocator itself writes there (free
/// pointer, tracks, sizes, state) must not change meanwhile: hold the lock of the cache's node.
pub unsafe fn copy_guards<'b>(
    slot: *const u8,
    state: State,
    layout: &ObjectLayout,
    buffer: &'b mut [u8],
) -> Option<&'b mut [u8]> {
    let copy = buffer.get_mut(..layout.slab_size())?;
    // SAFETY: every range of the layout lies within the slot, which is valid for reads.
    unsafe { copy_range(slot, layout.orig_size(), copy) };
    let object = layout.object();
    let hidden = match state {
        State::Live => object.start..object.start + poison::orig_size(copy, layout),
        State::Free => object.start..object.start,
    };
    copy.get_mut(hidden.clone())?.fill(0);
    // SAFETY: as above; the hidden bytes lie within the object.
    unsafe {
        copy_range(slot, 0..hidden.start, copy);
        copy_range(slot, hidden.end..layout.slab_size(), copy);
    }
    Some(copy)
}

/// # Safety
///
/// `from` must be valid for reads of `range.end` bytes.
unsafe fn copy_range(from: *const u8, range: Range<usize>, into: &mut [u8]) {
    let start = range.start;
    for (at, to) in into
        .get_mut(range)
        .unwrap_or(&mut [])
        .iter_mut()
        .enumerate()
    {
        // SAFETY: `start + at` is below `range.end`.
        *to = unsafe { from.add(start + at).read_volatile() };
    }
}

/// Repairs damage in place, touching the damaged bytes only.
///
/// # Safety
///
/// `memory` must be the slot that the damage was found in (or the slab, for slab padding), valid for writes, with the
/// lock of the cache's node held.
pub unsafe fn restore(damage: &Damage, memory: *mut u8) {
    let word = match damage.fill() {
        Fill::Byte(value) => [value; 8],
        Fill::Word(word) => word.to_ne_bytes(),
    };
    // A word is as long as its damage; a byte repeats.
    for (at, value) in damage.range().zip(word.into_iter().cycle()) {
        // SAFETY: damage lies within the memory that it was found in.
        unsafe { memory.add(at).write_volatile(value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::check::{AnyLink, DamageKind, check_object};
    use crate::debug::flags::DebugFlags;
    use crate::debug::poison::{init_slab, on_alloc};

    #[test]
    fn a_live_object_is_checked_and_repaired_around_its_bytes() {
        let layout = ObjectLayout::new(32, 8, DebugFlags::DEFAULT, false, true).unwrap();
        let mut slot = vec![0; layout.slab_size()];
        init_slab(&mut slot, 1, &layout);
        on_alloc(&mut slot, &layout, 18);
        slot[layout.object()][..20].fill(0xee);
        let mut buffer = [0xff; 256];
        // SAFETY: the slot is as long as its layout and nobody else has it.
        let copy =
            unsafe { copy_guards(slot.as_ptr(), State::Live, &layout, &mut buffer) }.unwrap();
        assert_eq!(
            copy[layout.object()][..20],
            [&[0; 18][..], &[0xee; 2]].concat()
        );
        let damage = check_object(copy, State::Live, &layout, &AnyLink).unwrap();
        assert_eq!(
            (damage.kind(), damage.from_object(&layout)),
            (DamageKind::KmallocRedzone, 18)
        );
        // SAFETY: as above.
        unsafe { restore(&damage, slot.as_mut_ptr()) };
        assert_eq!(check_object(&slot, State::Live, &layout, &AnyLink), None);
        assert_eq!(slot[layout.object()][..18], [0xee; 18]);
    }

    #[test]
    fn a_free_object_is_copied_whole() {
        let layout = ObjectLayout::new(64, 8, DebugFlags::DEFAULT, false, false).unwrap();
        let mut slot = vec![0; layout.slab_size()];
        init_slab(&mut slot, 1, &layout);
        let never = |_: u64| false;
        let mut buffer = vec![0; layout.slab_size()];
        // SAFETY: the slot is as long as its layout and nobody else has it.
        let copy =
            unsafe { copy_guards(slot.as_ptr(), State::Free, &layout, &mut buffer) }.unwrap();
        assert_eq!(copy, slot);
        let damage = check_object(copy, State::Free, &layout, &never).unwrap();
        // SAFETY: as above.
        unsafe { restore(&damage, slot.as_mut_ptr()) };
        assert_eq!(poison::free_pointer(&slot, &layout), 0);
        let small = &mut buffer[..9];
        // SAFETY: as above.
        assert!(unsafe { copy_guards(slot.as_ptr(), State::Free, &layout, small) }.is_none());
    }
}
