//! Layouts against the kernel's figures, and in general.

use super::*;
use proptest::prelude::*;

/// `struct track` of 6.1 to 7.3 on x86_64: address 8, stack handle 4, CPU 4, pid 4, gap 4, time 8.
const KERNEL_TRACK: usize = 32;

#[test]
fn real_kernels_have_the_predicted_slot_sizes() {
    let table = include_str!("../../tests/data/kernel-layouts.tsv");
    let mut rows = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, _, size, align, flags, kind, expected] = columns[..] else {
            panic!("{line}")
        };
        let number = |text: &str| text.parse::<usize>().unwrap();
        let spec = LayoutSpec {
            size: number(size),
            align: number(align),
            flags: flags.parse().unwrap(),
            has_ctor: kind.contains('c'),
            kmalloc: kind.contains('k'),
            typesafe_by_rcu: kind.contains('r'),
            free_pointer_at: kind.contains('i').then_some(0),
            track_size: KERNEL_TRACK,
        };
        assert_eq!(
            spec.layout().unwrap().slab_size(),
            number(expected),
            "{line}"
        );
        rows += 1;
    }
    assert!(rows > 400, "{rows}");
}

#[test]
fn a_64_byte_object_under_fzpu() {
    let layout = ObjectLayout::new(64, 8, DebugFlags::DEFAULT, false, false).unwrap();
    assert_eq!(layout.object(), 8..72);
    assert_eq!(layout.right(), 72..80);
    assert_eq!(layout.free_pointer(), 80..88);
    assert_eq!(layout.alloc_track(), 88..120);
    assert_eq!(layout.free_track(), 120..152);
    assert_eq!(layout.orig_size(), 152..152);
    assert_eq!(layout.padding(), 152..160);
    assert_eq!(layout.slab_size(), 160);
    assert_eq!(layout.region_of(79), Some(Region::Right));
    assert_eq!(layout.region_of(160), None);
}

#[test]
fn no_flags_cost_nothing() {
    let layout = ObjectLayout::new(96, 8, DebugFlags::NONE, false, true).unwrap();
    assert_eq!(
        (
            layout.slab_size(),
            layout.object_at(),
            layout.free_pointer_offset()
        ),
        (96, 0, 48)
    );
    assert!(!layout.free_pointer_outside());
    let ctor = ObjectLayout::new(96, 8, DebugFlags::NONE, true, false).unwrap();
    assert_eq!((ctor.slab_size(), ctor.free_pointer_offset()), (104, 96));
}

#[test]
fn a_red_zone_that_may_begin_inside_the_object_moves_the_free_pointer_out() {
    let outside = |size, flags: &str, kmalloc| {
        let flags = flags.parse().unwrap();
        ObjectLayout::new(size, 8, flags, false, kmalloc)
            .unwrap()
            .free_pointer_outside()
    };
    assert!(outside(64, "ZU", true));
    assert!(outside(4, "Z", false));
    assert!(!outside(64, "Z", true));
    assert!(!outside(64, "ZU", false));
}

#[test]
fn impossible_layouts_are_refused() {
    let plain = LayoutSpec::new(64, 8, DebugFlags::NONE);
    assert_eq!(
        LayoutSpec { size: 0, ..plain }.layout(),
        Err(LayoutError::EmptyObject)
    );
    assert_eq!(
        LayoutSpec { align: 24, ..plain }.layout(),
        Err(LayoutError::Alignment(24))
    );
    assert_eq!(
        LayoutSpec { align: 0, ..plain }.layout(),
        Err(LayoutError::Alignment(0))
    );
    assert_eq!(
        LayoutSpec {
            size: usize::MAX,
            ..plain
        }
        .layout(),
        Err(LayoutError::TooLarge)
    );
    for at in [4, 60, 64, usize::MAX & !7] {
        let spec = LayoutSpec {
            free_pointer_at: Some(at),
            ..plain
        };
        assert_eq!(spec.layout(), Err(LayoutError::FreePointer(at)));
    }
}

proptest! {
    #[test]
    fn regions_cover_the_slot_once(
        size in 1usize..10_000,
        shift in 0u32..13,
        bits in 0u8..64,
        (has_ctor, kmalloc, typesafe_by_rcu) in any::<(bool, bool, bool)>(),
        track in 0usize..25,
    ) {
        let flags = DebugFlags::from_bits_truncate(bits);
        let spec = LayoutSpec {
            has_ctor, kmalloc, typesafe_by_rcu, track_size: track * WORD,
            ..LayoutSpec::new(size, 1 << shift, flags)
        };
        let layout = spec.layout().unwrap();
        let mut at = 0;
        for (_, range) in layout.regions() {
            prop_assert_eq!(range.start, at);
            prop_assert!(range.end >= range.start);
            at = range.end;
        }
        prop_assert_eq!(at, layout.slab_size());
        prop_assert_eq!(layout.slab_size() % layout.align(), 0);
        prop_assert_eq!(layout.object_at() % layout.align(), 0);
        prop_assert_eq!(layout.free_pointer().start % WORD, 0);
        prop_assert!(layout.free_pointer().end <= layout.info_end());
    }
}
