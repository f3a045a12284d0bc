//! Every corruption that the byte checks are for, planted on a real slot.

use super::*;
use crate::debug::layout::{LayoutSpec, Region};
use crate::debug::poison::{init_slab, on_alloc, on_free, set_free_pointer};
use proptest::prelude::*;

/// The link that these tests store and accept.
const LINK: u64 = 0x1234_5678_9abc_def0;

struct Stored;

impl LinkRule for Stored {
    fn is_valid(&self, stored: u64) -> bool {
        stored == LINK || stored == self.end()
    }
    fn end(&self) -> u64 {
        0xffff_0000_ffff_0000
    }
}

struct Slot {
    layout: ObjectLayout,
    bytes: Vec<u8>,
    state: State,
}

impl Slot {
    fn new(size: usize, flags: &str, kmalloc: bool) -> Self {
        Self::of(ObjectLayout::new(size, 8, flags.parse().unwrap(), false, kmalloc).unwrap())
    }

    fn of(layout: ObjectLayout) -> Self {
        let mut bytes = vec![0x11; layout.slab_size()];
        init_slab(&mut bytes, 1, &layout);
        set_free_pointer(&mut bytes, &layout, LINK);
        Self {
            layout,
            bytes,
            state: State::Free,
        }
    }

    fn alloc(mut self, requested: usize) -> Self {
        on_alloc(&mut self.bytes, &self.layout, requested);
        self.state = State::Live;
        self
    }

    fn free(mut self) -> Self {
        on_free(&mut self.bytes, &self.layout);
        set_free_pointer(&mut self.bytes, &self.layout, LINK);
        self.state = State::Free;
        self
    }

    /// Writes a byte at an offset from the object, as a stray pointer would.
    fn poke(mut self, at: isize, value: u8) -> Self {
        let at = self.layout.object_at().checked_add_signed(at).unwrap();
        self.bytes[at] = value;
        self
    }

    fn check(&self) -> Option<Damage> {
        check_object(&self.bytes, self.state, &self.layout, &Stored)
    }

    /// The one damage there is; restoring it leaves the slot clean and a second restoring changes nothing.
    fn only_damage(mut self) -> Damage {
        let damage = self.check().expect("damage");
        damage.restore(&mut self.bytes);
        assert_eq!(self.check(), None);
        let once = self.bytes.clone();
        damage.restore(&mut self.bytes);
        assert_eq!(self.bytes, once);
        damage
    }

    #[track_caller]
    fn expect(self, kind: DamageKind, first: isize, len: usize, expected: u8, found: &[u8]) {
        let layout = self.layout;
        let damage = self.only_damage();
        assert_eq!(damage.kind(), kind);
        assert_eq!(damage.from_object(&layout), first);
        assert_eq!(damage.len(), len);
        assert_eq!(damage.expected(), Some(expected));
        assert_eq!(damage.found().bytes(), found);
        assert_eq!(
            damage.in_slab(layout.slab_size() * 3),
            layout.slab_size() * 3 + damage.first()
        );
    }
}

use DamageKind as K;

#[test]
fn overflow_by_one_of_a_live_object() {
    Slot::new(64, "Z", false).alloc(64).poke(64, 0x12).expect(
        K::RightRedzone,
        64,
        1,
        0xcc,
        &[0x12],
    );
    Slot::new(61, "FZPU", false)
        .alloc(61)
        .poke(61, 0)
        .expect(K::RightRedzone, 61, 1, 0xcc, &[0]);
}

#[test]
fn underflow_by_one_of_a_live_object() {
    Slot::new(64, "FZPU", false)
        .alloc(64)
        .poke(-1, 0x56)
        .expect(K::LeftRedzone, -1, 1, 0xcc, &[0x56]);
}

#[test]
fn a_red_zone_is_damaged_from_the_first_to_the_last_wrong_byte() {
    let slot = Slot::new(64, "Z", false).alloc(64).poke(65, 1).poke(67, 2);
    slot.expect(K::RightRedzone, 65, 3, 0xcc, &[1, 0xcc, 2]);
}

#[test]
fn overflow_through_a_dangling_pointer() {
    Slot::new(64, "Z", false)
        .alloc(64)
        .free()
        .poke(64, 0xab)
        .expect(K::RightRedzone, 64, 1, 0xbb, &[0xab]);
}

#[test]
fn overflow_inside_the_slack_of_a_kmalloc_object() {
    let slot = Slot::new(32, "ZU", true)
        .alloc(18)
        .poke(18, 0xab)
        .poke(19, 0xab);
    slot.expect(K::KmallocRedzone, 18, 2, 0xcc, &[0xab, 0xab]);
    assert_eq!(
        Slot::new(32, "ZU", true).alloc(18).poke(17, 0xab).check(),
        None
    );
    assert_eq!(
        Slot::new(32, "Z", true).alloc(18).poke(18, 0xab).check(),
        None,
        "no size is kept without U"
    );
}

#[test]
fn write_after_free_first_middle_and_last_byte() {
    let freed = || Slot::new(64, "P", false).alloc(64).free();
    freed().poke(0, 0x78).expect(K::Poison, 0, 1, 0x6b, &[0x78]);
    freed()
        .poke(50, 0x9a)
        .expect(K::Poison, 50, 1, 0x6b, &[0x9a]);
    freed()
        .poke(62, 0x9a)
        .expect(K::Poison, 62, 1, 0x6b, &[0x9a]);
    freed().poke(63, 0).expect(K::EndPoison, 63, 1, 0xa5, &[0]);
    Slot::new(1, "P", false)
        .alloc(1)
        .free()
        .poke(0, 1)
        .expect(K::EndPoison, 0, 1, 0xa5, &[1]);
}

#[test]
fn padding_behind_the_object_and_the_metadata() {
    let slot = || Slot::new(12, "P", false);
    slot()
        .alloc(12)
        .poke(14, 1)
        .expect(K::AlignmentPadding, 14, 1, 0x5a, &[1]);
    slot()
        .poke(14, 1)
        .expect(K::AlignmentPadding, 14, 1, 0x5a, &[1]);
    let padded = || Slot::new(64, "FZPU", false).alloc(64);
    let at = padded().layout.padding().start.cast_signed() - 8;
    padded()
        .poke(at, 9)
        .expect(K::ObjectPadding, at, 1, 0x5a, &[9]);
    padded()
        .poke(at + 7, 9)
        .expect(K::ObjectPadding, at + 7, 1, 0x5a, &[9]);
}

#[test]
fn a_broken_free_pointer_ends_the_list() {
    let slot = Slot::new(64, "P", false).alloc(64).free();
    let at = slot.layout.free_pointer_offset().cast_signed();
    let mut slot = slot.poke(at, 0xff);
    let damage = slot.check().unwrap();
    assert_eq!(
        (
            damage.kind(),
            damage.from_object(&slot.layout),
            damage.len()
        ),
        (K::FreePointer, at, 8)
    );
    assert_eq!(damage.expected(), None);
    damage.restore(&mut slot.bytes);
    assert_eq!(slot.check(), None);
    assert_eq!(
        poison::free_pointer(&slot.bytes, &slot.layout),
        Stored.end()
    );
}

#[test]
fn a_pointer_inside_the_object_is_checked_while_free_only() {
    let plain = || Slot::new(64, "-", false);
    let at = plain().layout.free_pointer_offset().cast_signed();
    assert_eq!(
        plain().poke(at, 0xff).check().map(|d| d.kind()),
        Some(K::FreePointer)
    );
    assert_eq!(plain().alloc(64).poke(at, 0xff).check(), None);
}

#[test]
fn slab_padding_behind_the_last_slot() {
    let layout = ObjectLayout::new(64, 8, DebugFlags::DEFAULT, false, false).unwrap();
    let mut slab = vec![0; 4096];
    init_slab(&mut slab, 25, &layout);
    assert_eq!(check_slab_padding(&slab, 25, &layout), None);
    slab[4001] = 1;
    slab[4095] = 2;
    let damage = check_slab_padding(&slab, 25, &layout).unwrap();
    assert_eq!(
        (damage.kind(), damage.first(), damage.last()),
        (K::SlabPadding, 4001, 4095)
    );
    assert_eq!(damage.found().bytes().len(), FOUND_BYTES);
    damage.restore(&mut slab);
    assert_eq!(check_slab_padding(&slab, 25, &layout), None);
    assert_eq!(check_slab_padding(&slab, usize::MAX, &layout), None);
}

#[test]
fn a_second_free_shows_in_the_red_zones() {
    let freed = Slot::new(64, "Z", false).alloc(64).free();
    assert_eq!(looks(&freed.bytes, &freed.layout), Looks::Free);
    let damage = check_object(&freed.bytes, State::Live, &freed.layout, &AnyLink).unwrap();
    assert_eq!(
        (damage.kind(), damage.len(), damage.found().first()),
        (K::LeftRedzone, 8, 0xbb)
    );
    let live = freed.alloc(64);
    assert_eq!(looks(&live.bytes, &live.layout), Looks::Live);
    let hurt = live.poke(-1, 0);
    assert_eq!(looks(&hurt.bytes, &hurt.layout), Looks::Unclear);
    let poisoned = Slot::new(64, "P", false);
    assert_eq!(looks(&poisoned.bytes, &poisoned.layout), Looks::Unclear);
}

#[test]
fn several_damages_come_in_the_kernels_order() {
    let mut slot = Slot::new(64, "FZPU", false)
        .poke(-3, 1)
        .poke(0, 1)
        .poke(63, 1)
        .poke(64, 1)
        .poke(72, 1);
    let mut kinds = Vec::new();
    let count = check_and_restore(
        &mut slot.bytes,
        slot.state,
        &slot.layout,
        &Stored,
        |d, _| kinds.push(d.kind()),
    );
    assert_eq!(
        kinds,
        [
            K::LeftRedzone,
            K::RightRedzone,
            K::Poison,
            K::EndPoison,
            K::FreePointer
        ]
    );
    assert_eq!((count, slot.check()), (5, None));
    let never = |_: u64| false;
    assert_eq!(
        check_and_restore(&mut slot.bytes, slot.state, &slot.layout, &never, |_, _| ()),
        8
    );
}

/// What a wrong byte in a region should be called; `None` where the flags do not cover it.
fn expected_kind(layout: &ObjectLayout, state: State, at: usize) -> Option<DamageKind> {
    let red = layout.flags().contains(DebugFlags::RED_ZONE);
    let poison = layout.flags().contains(DebugFlags::POISON);
    match layout.region_of(at)? {
        Region::LeftRedzone => Some(K::LeftRedzone),
        Region::Right if red => Some(K::RightRedzone),
        Region::Right if poison => Some(K::AlignmentPadding),
        Region::Object if state == State::Live => Some(K::KmallocRedzone),
        Region::Object if layout.poisons_objects() && at + 1 == layout.object().end => {
            Some(K::EndPoison)
        }
        Region::Object if layout.poisons_objects() => Some(K::Poison),
        Region::FreePointer => Some(K::FreePointer),
        Region::Padding if poison => Some(K::ObjectPadding),
        _ if state == State::Free && layout.free_pointer().contains(&at) => Some(K::FreePointer),
        _ => None,
    }
}

proptest! {
    #[test]
    fn one_wrong_byte_is_found_named_and_repaired(
        size in 1usize..300,
        shift in 0u32..8,
        bits in 0u8..64,
        (has_ctor, kmalloc, typesafe_by_rcu, live) in any::<(bool, bool, bool, bool)>(),
        (request, place, flip) in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1u8..),
    ) {
        let flags = DebugFlags::from_bits_truncate(bits);
        let spec = LayoutSpec { has_ctor, kmalloc, typesafe_by_rcu, ..LayoutSpec::new(size, 1 << shift, flags) };
        let layout = spec.layout().unwrap();
        let mut slot = Slot::of(layout);
        prop_assert_eq!(slot.check(), None);
        for _ in 0..2 {
            slot = slot.alloc(request.index(size + 1));
            prop_assert_eq!(slot.check(), None);
            let requested = poison::orig_size(&slot.bytes, &layout);
            slot.bytes[layout.object()][..requested].fill(0xee);
            if !layout.free_pointer_outside() || live {
                prop_assert_eq!(slot.check(), None);
            }
            if !live {
                slot = slot.free();
                prop_assert_eq!(slot.check(), None);
            }
        }

        let at = place.index(layout.slab_size());
        let used = layout.object().start + poison::orig_size(&slot.bytes, &layout);
        let payload = live && (layout.object().start..used).contains(&at);
        // A wrong size hides or invents slack; nothing says what it was.
        if payload || layout.region_of(at) == Some(Region::OrigSize) {
            return Ok(());
        }
        let before = slot.bytes.clone();
        slot.bytes[at] ^= flip;
        let expected = if live && !flags.contains(DebugFlags::RED_ZONE) && layout.object().contains(&at) {
            None
        } else {
            expected_kind(&layout, slot.state, at)
        };
        let damage = slot.check();
        prop_assert_eq!(damage.map(|d| d.kind()), expected);
        if let Some(damage) = damage {
            prop_assert!(damage.range().contains(&at));
            if damage.kind() != K::FreePointer {
                prop_assert_eq!((damage.first(), damage.last()), (at, at));
            }
            damage.restore(&mut slot.bytes);
            prop_assert_eq!(slot.check(), None);
            if damage.kind() != K::FreePointer {
                prop_assert_eq!(&slot.bytes, &before);
            }
        }
    }

    #[test]
    fn any_bytes_are_checked_and_repaired(
        size in 1usize..200, bits in 0u8..64, kmalloc: bool, live: bool,
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let layout = ObjectLayout::new(size, 8, DebugFlags::from_bits_truncate(bits), false, kmalloc).unwrap();
        let state = if live { State::Live } else { State::Free };
        let mut bytes = bytes;
        let _ = looks(&bytes, &layout);
        let _ = check_slab_padding(&bytes, 1, &layout);
        check_and_restore(&mut bytes, state, &layout, &Stored, |_, _| ());
        prop_assert_eq!(check_object(&bytes, state, &layout, &Stored), None);
    }
}
