//! Damaged bytes, one row a fault and one column a policy: each is found by validation and,
//! where the flags have checks (`F`), by the operation that meets it; named, and located to the
//! byte; after that the process goes on without the object.
//!
//! Where each case of the kernel's `slub_kunit`, and what it leaves out, is covered:
//!
//! | case | where |
//! |---|---|
//! | clobber_zone, clobber_redzone_free, first_word, clobber_50th_byte | `BYTES` |
//! | left red zone, end poison, object padding, several bytes | `BYTES` |
//! | kmalloc_redzone_access, krealloc_redzone_zeroing | `BYTES`, `debug_caches.rs` |
//! | next_pointer | `debug.rs`: a damaged free list is cut; `BYTES`: the upper bytes of the word |
//! | padding behind the last object | `debug.rs`: padding of objects and slabs |
//! | double free; interior, foreign and other cache's pointer | `REFUSED` |
//! | cycle, link to a live object, lost objects | `debug.rs`: links in a circle |
//! | leak_destroy | `debug_caches.rs`: a leak is told when the cache ends |
//! | kfree_rcu and destruction under load | `storm.rs`: caches that come and go |
//! | inuse > objects, objects > max, cycle, broken link, object twice, partial and slab counts, frozen slab, page map, barn, without debug flags | `src/validate/planted.rs` |
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

mod support;

use slabcore::debug::check::DamageKind as Part;
use slabcore::debug::layout::ObjectLayout;
use slabcore::finding::Fault;
use slabcore::{Cache, Engine, Policy};
use std::ptr::NonNull;
use support::{cache, config, free, from_object, goes_on, log, only_bytes, peek, poke};

/// When the damage is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Live,
    Freed,
}
use When::{Freed, Live};

struct Row {
    name: &'static str,
    flags: &'static str,
    when: When,
    /// The first byte, from the start of the slot.
    at: fn(&ObjectLayout) -> usize,
    len: usize,
    part: Part,
    /// What should be there.
    expected: u8,
}

const fn row(
    name: &'static str,
    flags: &'static str,
    when: When,
    at: fn(&ObjectLayout) -> usize,
    len: usize,
    part: Part,
    expected: u8,
) -> Row {
    Row {
        name,
        flags,
        when,
        at,
        len,
        part,
        expected,
    }
}

fn first(layout: &ObjectLayout) -> usize {
    layout.object_at()
}

fn behind(layout: &ObjectLayout) -> usize {
    layout.object_at() + 64
}

/// Objects have 64 bytes.
const BYTES: &[Row] = &[
    row(
        "clobber_zone",
        "Z",
        Live,
        behind,
        1,
        Part::RightRedzone,
        0xcc,
    ),
    row(
        "clobber_zone, all flags",
        "FZPU",
        Live,
        behind,
        1,
        Part::RightRedzone,
        0xcc,
    ),
    row(
        "a word behind a live object",
        "FZ",
        Live,
        behind,
        8,
        Part::RightRedzone,
        0xcc,
    ),
    row(
        "end of the right red zone",
        "FZPU",
        Live,
        |it| it.right().end - 1,
        1,
        Part::RightRedzone,
        0xcc,
    ),
    row(
        "before a live object",
        "FZPU",
        Live,
        |it| it.object_at() - 1,
        1,
        Part::LeftRedzone,
        0xcc,
    ),
    row(
        "start of the slot",
        "FZU",
        Live,
        |_| 0,
        1,
        Part::LeftRedzone,
        0xcc,
    ),
    row(
        "padding of a live object",
        "FZPU",
        Live,
        |it| it.padding().start,
        2,
        Part::ObjectPadding,
        0x5a,
    ),
    row("first_word", "FP", Freed, first, 1, Part::Poison, 0x6b),
    row(
        "first_word, all flags",
        "FZPU",
        Freed,
        first,
        1,
        Part::Poison,
        0x6b,
    ),
    row(
        "clobber_50th_byte",
        "FP",
        Freed,
        |it| it.object_at() + 50,
        1,
        Part::Poison,
        0x6b,
    ),
    row(
        "a run in a freed object",
        "FZPU",
        Freed,
        |it| it.object_at() + 7,
        40,
        Part::Poison,
        0x6b,
    ),
    row(
        "one before the last byte",
        "FZPU",
        Freed,
        |it| it.object_at() + 62,
        1,
        Part::Poison,
        0x6b,
    ),
    row(
        "last byte of a freed object",
        "FZPU",
        Freed,
        |it| it.object_at() + 63,
        1,
        Part::EndPoison,
        0xa5,
    ),
    row(
        "clobber_redzone_free",
        "FZ",
        Freed,
        behind,
        1,
        Part::RightRedzone,
        0xbb,
    ),
    row(
        "before a freed object",
        "FZPU",
        Freed,
        |it| it.object_at() - 1,
        1,
        Part::LeftRedzone,
        0xbb,
    ),
    row(
        "padding of a freed object",
        "FZPU",
        Freed,
        |it| it.padding().end - 1,
        1,
        Part::ObjectPadding,
        0x5a,
    ),
];

/// Runs a test under each policy, in a cache of 64-byte objects some of which are live.
fn each(flags: &str, test: impl Fn(&Engine, &Cache)) {
    for policy in Policy::ALL {
        let engine = Engine::new(config(policy)).unwrap();
        let cache = cache(&engine, "sb-64", 64, flags);
        let bystanders = [(); 5].map(|()| cache.alloc().unwrap());
        test(&engine, &cache);
        for object in bystanders {
            free(&cache, object);
        }
        assert_eq!(log(), "", "{policy:?}: bystanders are whole");
    }
}

/// Does the damage; gives the object and the offset of the first byte from it.
fn plant(cache: &Cache, row: &Row) -> (NonNull<u8>, isize) {
    let at = from_object(row.flags, row.at);
    let object = cache.alloc().unwrap();
    if row.when == Freed {
        free(cache, object);
    }
    for byte in 0..row.len.cast_signed() {
        poke(object, at + byte, 0x12);
    }
    (object, at)
}

/// The report names the part, its first and last byte, and what was done.
fn reported(row: &Row, object: NonNull<u8>, at: isize) {
    let text = log();
    let first = object.addr().get().wrapping_add_signed(at);
    let last = first + row.len - 1;
    let what = row.part.what();
    for line in [
        format!("[{}] 0x{first:016x}-0x{last:016x} @offset=", row.part),
        format!("First byte 0x12 instead of 0x{:x}\n", row.expected),
        "BUG sb-64 (".into(),
        format!(
            "FIX sb-64: Restoring {what} 0x{first:016x}-0x{last:016x}=0x{:x}\n",
            row.expected
        ),
    ] {
        assert!(
            text.contains(&line),
            "{}: {line} is not in\n{text}",
            row.name
        );
    }
    let tracked = row.flags.contains('U');
    assert_eq!(text.contains("Allocated in "), tracked, "{}", row.name);
    let freed = tracked && row.when == Freed;
    assert_eq!(text.contains("Freed in "), freed, "{}", row.name);
}

#[test]
fn validation_finds_each() {
    for row in BYTES {
        each(row.flags, |engine: &Engine, cache: &Cache| {
            let (object, at) = plant(cache, row);
            let found = only_bytes(engine);
            assert_eq!(
                (found.kind, found.offset, found.len, found.expected),
                (
                    Fault::Damage(row.part),
                    Some(at),
                    row.len,
                    Some(row.expected)
                ),
                "{}",
                row.name
            );
            let bytes = found.found.unwrap();
            assert!(bytes.bytes().iter().all(|byte| *byte == 0x12));
            reported(row, object, at);
            assert_eq!(peek(object, at), row.expected, "repaired");
            if row.when == Live {
                free(cache, object);
            }
            goes_on(engine, cache, &[object]);
            assert_eq!(
                engine.snapshot().caches[0].debug.unwrap().quarantined,
                1,
                "{}",
                row.name
            );
        });
    }
}

#[test]
fn the_next_operation_finds_each() {
    for row in BYTES.iter().filter(|row| row.flags.contains('F')) {
        each(row.flags, |engine, cache| {
            let (object, at) = plant(cache, row);
            match row.when {
                Live => free(cache, object),
                Freed => {
                    let other = cache.alloc().unwrap();
                    assert_ne!(object, other, "{}: it is next in turn", row.name);
                    free(cache, other);
                }
            }
            reported(row, object, at);
            goes_on(engine, cache, &[object]);
            let snapshot = engine.snapshot();
            assert_eq!(
                snapshot.caches[0].debug.unwrap().quarantined,
                1,
                "{}",
                row.name
            );
        });
    }
}

/// A pointer that must not be freed, and what is said of it.
type Refused = (
    &'static str,
    fn(&Engine, &Cache) -> NonNull<u8>,
    &'static str,
);

const REFUSED: &[Refused] = &[
    (
        "double free",
        |_, cache| {
            let object = cache.alloc().unwrap();
            free(cache, object);
            object
        },
        "): Object already free\n",
    ),
    (
        "double free after others were freed",
        |_, cache| {
            let objects: Vec<_> = (0..10).map(|_| cache.alloc().unwrap()).collect();
            for object in &objects {
                free(cache, *object);
            }
            objects[4]
        },
        "): Object already free\n",
    ),
    (
        "double free of the last object of a slab that is gone",
        |_, cache| {
            cache.set_min_partial(0);
            let objects: Vec<_> = (0..500).map(|_| cache.alloc().unwrap()).collect();
            for object in &objects {
                free(cache, *object);
            }
            objects[400]
        },
        "): Attempt to free object(",
    ),
    (
        "a pointer into an object",
        |_, cache| {
            let object = cache.alloc().unwrap();
            NonNull::new(object.as_ptr().wrapping_add(8)).unwrap()
        },
        "): Invalid object pointer 0x",
    ),
    (
        "a pointer into the guard before an object",
        |_, cache| {
            let object = cache.alloc().unwrap();
            NonNull::new(object.as_ptr().wrapping_sub(8)).unwrap()
        },
        "): Invalid object pointer 0x",
    ),
    (
        "a pointer to the stack",
        |_, _| NonNull::from(&mut 0u64).cast(),
        "): Attempt to free object(",
    ),
    (
        "a pointer to address 8",
        |_, _| NonNull::new(std::ptr::without_provenance_mut(8)).unwrap(),
        "): Attempt to free object(",
    ),
    (
        "an object of another cache",
        |engine, _| {
            let other = cache(engine, "sb-other", 64, "FZPU");
            let object = other.alloc().unwrap();
            // It lives on.
            assert_eq!(other.destroy().unwrap_err().objects, 1);
            log();
            object
        },
        "): page slab pointer corrupt.\n",
    ),
];

#[test]
fn what_must_not_be_freed_is_refused() {
    for (name, pointer, says) in REFUSED {
        each("FZPU", |engine, cache| {
            let pointer = pointer(engine, cache);
            let before = cache.counters();
            free(cache, pointer);
            let text = log();
            assert!(text.contains(says), "{name}: {text}");
            let not_freed = format!("FIX sb-64: Object at 0x{:016x} not freed\n", pointer.addr());
            assert!(text.contains(&not_freed), "{name}: {text}");
            assert_eq!(
                before.frees(),
                cache.counters().frees(),
                "{name}: not counted"
            );
            goes_on(engine, cache, &[]);
        });
    }
}
