//! Planted faults in real memory: each is detected, named and located to the byte, and the engine goes on.
//!
//! The list is that of the kernel's `slub_kunit`, and what it leaves out. Everything runs under each policy, which a
//! debug cache must not be able to tell apart.
#![cfg(not(loom))]

mod support;

use slabcore::debug::check::DamageKind;
use slabcore::validate::Fault;
use slabcore::{Address, Engine};
use std::ptr::NonNull;
use support::{
    cache, each, faults, free, from_object, goes_on, log, one_byte, only_bytes, peek, poke,
};

#[test]
fn a_write_outside_a_live_object_is_found_and_the_object_retired() {
    for (flags, at, part) in [
        ("FZPU", 64, DamageKind::RightRedzone),
        ("Z", 64, DamageKind::RightRedzone),
        ("FZPU", -1, DamageKind::LeftRedzone),
        ("FZ", -1, DamageKind::LeftRedzone),
    ] {
        each(flags, |engine, cache| {
            let object = cache.alloc().unwrap();
            poke(object, at, 0x12);
            let bytes = one_byte(engine, part, at, 0x12, 0xcc);
            assert_eq!(bytes.allocated.is_some(), flags.contains('U'));
            assert_eq!(bytes.freed, None);
            assert_eq!(peek(object, at), 0xcc);
            goes_on(engine, cache, &[object]);
            free(cache, object);
            goes_on(engine, cache, &[object]);
            let snapshot = engine.snapshot();
            assert_eq!(snapshot.caches[0].debug.unwrap().quarantined, 1);
            assert_eq!(
                (
                    snapshot.caches[0].debug.unwrap().faults,
                    snapshot.caches[0].objects
                ),
                (1, 5)
            );
        });
    }
}

#[test]
fn a_write_after_the_free_is_found() {
    for (at, part, expected) in [
        (0, DamageKind::Poison, 0x6b),
        (50, DamageKind::Poison, 0x6b),
        (63, DamageKind::EndPoison, 0xa5),
        (64, DamageKind::RightRedzone, 0xbb),
        (-1, DamageKind::LeftRedzone, 0xbb),
    ] {
        each("FZPU", |engine, cache| {
            let object = cache.alloc().unwrap();
            free(cache, object);
            poke(object, at, 0x9a);
            let bytes = one_byte(engine, part, at, 0x9a, expected);
            assert!(bytes.allocated.is_some() && bytes.freed.is_some());
            goes_on(engine, cache, &[object]);
        });
    }
}

#[test]
fn operations_find_damage_themselves() {
    each("FZPU", |engine, cache| {
        let object = cache.alloc().unwrap();
        poke(object, 64, 0x12);
        free(cache, object);
        let text = log();
        assert!(text.contains("[Right Redzone overwritten] 0x"), "{text}");
        assert!(text.contains("Allocated in debug") && text.contains("Call Trace:"));
        assert!(text.contains(&format!(
            "FIX sb-64: Object at 0x{:016x} not freed",
            object.addr()
        )));
        goes_on(engine, cache, &[object]);
        // A second free of it is a second free.
        free(cache, object);
        assert!(log().contains("): Object already free\n"));

        let object = cache.alloc().unwrap();
        free(cache, object);
        poke(object, 7, 0x9a);
        let other = cache.alloc().unwrap();
        assert_ne!(object, other, "the damaged one is next in turn");
        let text = log();
        assert!(
            text.contains("[Poison overwritten] 0x") && text.contains("Freed in debug"),
            "{text}"
        );
        goes_on(engine, cache, &[object]);
        free(cache, other);
    });
}

#[test]
fn freeing_twice_or_what_is_no_object_is_refused() {
    each("FZPU", |engine, cache| {
        let object = cache.alloc().unwrap();
        free(cache, object);
        let live = cache.counters().live();
        free(cache, object);
        assert!(log().contains("BUG sb-64 (Not tainted): Object already free\n"));

        let object = cache.alloc().unwrap();
        let inside = NonNull::new(object.as_ptr().wrapping_add(8)).unwrap();
        free(cache, inside);
        let address = inside.addr();
        assert!(log().contains(&format!("): Invalid object pointer 0x{address:016x}\n")));

        let mut outside = Box::new(0u64);
        let foreign = NonNull::from(&mut *outside).cast::<u8>();
        free(cache, foreign);
        let address = foreign.addr();
        let text = log();
        assert!(text.contains(&format!(
            "): Attempt to free object(0x{address:016x}) outside of slab\n"
        )));
        assert!(text.contains(&format!(
            "FIX sb-64: Object at 0x{address:016x} not freed\n"
        )));

        let second = self::cache(engine, "sb-other", 64, "FZPU");
        let others = second.alloc().unwrap();
        free(cache, others);
        assert!(
            log()
                .contains("BUG sb-64 (Tainted: G    B             ): page slab pointer corrupt.\n")
        );
        free(&second, others);
        assert_eq!(log(), "", "it was left alone");
        second.destroy().unwrap();

        assert_eq!(cache.counters().live(), live + 1);
        goes_on(engine, cache, &[]);
        free(cache, object);
    });
}

#[test]
fn a_damaged_free_list_is_cut_and_lost_objects_retired() {
    for flags in ["P", "FZPU", "F", "Z"] {
        let at = from_object(flags, |layout| layout.free_pointer().start);
        each(flags, |engine, cache| {
            let (a, b) = (cache.alloc().unwrap(), cache.alloc().unwrap());
            free(cache, b);
            free(cache, a);
            // The list is a, b, ...; the link of a now leads out of the slab.
            let link = peek(a, at + 1);
            poke(a, at + 1, link ^ 0x7f);
            let found = faults(engine);
            assert!(
                matches!(found[..], [Fault::BadLink { link: 0x7f00.., .. }]),
                "{found:?}"
            );
            let text = log();
            assert!(text.contains("): Freechain corrupt\n"), "{text}");
            assert!(text.contains("FIX sb-64: Isolate corrupted freechain\n"));
            assert!(
                text.contains("): Wrong object count. Counter is ")
                    && text.contains("FIX sb-64: Object count adjusted\n")
            );
            goes_on(engine, cache, &[b]);
        });
    }
}

#[test]
fn an_allocation_does_not_follow_a_damaged_link() {
    let at = from_object("FZPU", |layout| layout.free_pointer().start);
    each("FZPU", |engine, cache| {
        let (a, b) = (cache.alloc().unwrap(), cache.alloc().unwrap());
        free(cache, b);
        free(cache, a);
        poke(a, at + 1, 0x55);
        let first = cache.alloc().unwrap();
        assert_eq!(first, a, "it is whole but for its link");
        assert!(log().contains("): Freechain corrupt\n"));
        goes_on(engine, cache, &[a, b]);
        free(cache, first);
    });
}

#[test]
fn links_in_a_circle_or_to_a_live_object_are_found() {
    let at = from_object("FZPU", |layout| layout.free_pointer().start);
    let index = |engine: &Engine, object: NonNull<u8>| match engine.classify(object.as_ptr()) {
        Address::Slab { index, .. } => index,
        other => panic!("{other:?}"),
    };
    each("FZPU", |engine, cache| {
        // The list is b, a, ...; a shall lead back to b.
        let (a, b) = (cache.alloc().unwrap(), cache.alloc().unwrap());
        free(cache, a);
        free(cache, b);
        let object = index(engine, b);
        poke(a, at, object as u8);
        poke(a, at + 1, (object >> 8) as u8);
        let found = faults(engine);
        assert_eq!(found, [Fault::Cycle { object }]);
        assert!(log().contains("): Freelist cycle detected\n"));
        goes_on(engine, cache, &[]);

        let live = cache.alloc().unwrap();
        let (a, link) = (cache.alloc().unwrap(), index(engine, live));
        poke(live, 3, 0x42);
        free(cache, a);
        let object = index(engine, a);
        poke(a, at, link as u8);
        poke(a, at + 1, (link >> 8) as u8);
        // Found by the next allocation, which would have handed it out after a.
        let other = cache.alloc().unwrap();
        assert!(log().contains("): Freechain corrupt\n"));
        assert_eq!((other, index(engine, other)), (a, object));
        assert_eq!(peek(live, 3), 0x42, "the live object is left alone");
        free(cache, live);
        free(cache, other);
        goes_on(engine, cache, &[]);
    });
}

#[test]
fn padding_of_objects_and_slabs_is_checked() {
    let at = from_object("FZPU", |layout| layout.padding().start);
    each("FZPU", |engine, cache| {
        let object = cache.alloc().unwrap();
        poke(object, at + 2, 0x12);
        one_byte(engine, DamageKind::ObjectPadding, at + 2, 0x12, 0x5a);
        free(cache, object);
        goes_on(engine, cache, &[object]);

        let object = cache.alloc().unwrap();
        let snapshot = &engine.snapshot().caches[0];
        let bytes = 4096usize << snapshot.order;
        let tail_at = snapshot.objs_per_slab as usize * snapshot.slab_size as usize;
        assert!(tail_at < bytes, "this size leaves a tail");
        let slab = object.addr().get() & !(bytes - 1);
        let last = (slab + bytes - 1).cast_signed() - object.addr().get().cast_signed();
        poke(object, last, 0x34);
        let found = only_bytes(engine);
        let kind = Fault::Damage(DamageKind::SlabPadding);
        assert_eq!((found.object, found.kind), (None, kind));
        assert_eq!(
            (found.offset, found.len),
            (Some(bytes.cast_signed() - 1), 1)
        );
        let text = log();
        assert!(
            text.contains("): Padding overwritten. 0x")
                && text.contains("FIX sb-64: Restoring slab padding 0x")
        );
        assert_eq!(peek(object, last), 0x5a);
        free(cache, object);
    });
}
