use super::*;
use crate::debug::operation::Report;
use crate::policy::Policy;
use std::sync::{Mutex, PoisonError};

fn heap(debug: Option<&'static str>, policy: Policy) -> &'static Heap {
    Heap::make(EngineConfig {
        debug,
        policy,
        report: Report::Call(note),
        reserve: 1 << 30,
        ..EngineConfig::new()
    })
    .unwrap()
}

static LOG: Mutex<String> = Mutex::new(String::new());

fn note(text: &str) {
    LOG.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push_str(text);
}

fn get(heap: &Heap, size: usize) -> NonNull<u8> {
    heap.alloc_fast(size)
        .unwrap_or_else(|| heap.alloc(size).unwrap().at)
}

fn free(heap: &Heap, object: NonNull<u8>) -> Freed {
    // SAFETY: the tests free what they got, or what a debug heap reports.
    unsafe {
        if heap.free_fast(object.as_ptr()) {
            return Freed::Done;
        }
        heap.free(object)
    }
}

#[test]
fn a_freed_pointer_finds_its_class() {
    for policy in Policy::ALL {
        let heap = heap(None, policy);
        let sizes = || (1..=LARGEST + 5000).step_by(321);
        let objects: Vec<_> = sizes().map(|size| (size, get(heap, size))).collect();
        for (size, object) in &objects {
            let usable = heap.usable(*object).unwrap();
            assert!(usable >= *size);
            // SAFETY: so many bytes are there.
            unsafe { object.as_ptr().write_bytes(*size as u8, usable) };
        }
        let engine = heap.engine().unwrap();
        let live = || {
            let caches = engine.core.caches();
            caches.map(|cache| cache.counters().live()).sum::<u64>()
        };
        let large = || engine.core.large_count.load(Relaxed);
        assert_eq!(live() + large(), objects.len() as u64);
        for (size, object) in objects {
            // SAFETY: as above.
            assert_eq!(unsafe { object.as_ptr().read() }, size as u8);
            assert_eq!(free(heap, object), Freed::Done);
        }
        assert_eq!((live(), large()), (0, 0));
    }
}

#[test]
fn pages_lose_their_kind_with_their_slab() {
    let heap = heap(None, Policy::Hybrid);
    let objects: Vec<_> = (0..5000).map(|_| get(heap, 1000)).collect();
    let last = objects[4000];
    assert_ne!(heap.kind_at(last.as_ptr() as usize), 0);
    for object in objects {
        free(heap, object);
    }
    heap.trim();
    assert_eq!(heap.kind_at(last.as_ptr() as usize), 0);
    // The run may come back as something else.
    let large = get(heap, 8 << 20);
    assert_eq!(heap.kind_at(large.as_ptr() as usize), 0);
    assert_eq!(free(heap, large), Freed::Done);
}

#[test]
fn what_is_not_of_the_heap_is_told_and_left_alone() {
    let (heap, other) = (heap(None, Policy::Hybrid), heap(None, Policy::Sheaves));
    let mut here = 7u64;
    let theirs = get(other, 100);
    for pointer in [NonNull::from(&mut here).cast(), theirs, NonNull::dangling()] {
        assert_eq!(free(heap, pointer), Freed::Foreign);
        assert_eq!(heap.usable(pointer), None);
        // SAFETY: nothing is done to it.
        assert_eq!(unsafe { heap.resize(pointer, 10) }, Resized::Foreign);
    }
    let nothing = Heap::nothing();
    assert!(nothing.alloc_fast(8).is_none() && nothing.alloc(8).is_none());
    assert_eq!(free(nothing, theirs), Freed::Foreign);
    // SAFETY: a null pointer is of no heap.
    assert!(unsafe {
        !heap.free_fast(std::ptr::null_mut()) && !nothing.free_fast(theirs.as_ptr())
    });
    assert_eq!(free(other, theirs), Freed::Done);
    assert_eq!(here, 7);
}

#[test]
fn sizes_change_in_place_within_a_class_and_are_moved_elsewhere() {
    let heap = heap(None, Policy::Hybrid);
    // SAFETY: the object is of the heap and not freed.
    let resize = |object, size| unsafe { heap.resize(object, size) };
    let small = get(heap, 100);
    assert_eq!(resize(small, 112), Resized::InPlace);
    assert_eq!(resize(small, 60), Resized::InPlace);
    assert_eq!(resize(small, 40), Resized::Move(40));
    assert_eq!(resize(small, 113), Resized::Move(112));
    let large = get(heap, 100_000);
    let room = heap.usable(large).unwrap();
    assert_eq!(resize(large, room), Resized::InPlace);
    assert_eq!(resize(large, 1000), Resized::Move(1000));
    assert!(heap.fits(small, 112) && heap.fits(small, 60));
    assert!(!heap.fits(small, 113) && !heap.fits(small, 56) && !heap.fits(small, 0));
    // SAFETY: inside of the object.
    let inside = unsafe { large.add(4096) };
    assert_eq!(resize(inside, 10), Resized::Bad);
    assert_eq!(free(heap, inside), Freed::Refused);
    assert_eq!(free(heap, large), Freed::Done);
}

#[test]
fn what_grows_gets_room_and_moves_seldom() {
    let heap = heap(None, Policy::Hybrid);
    let (mut object, mut size, mut moves) = (get(heap, 100), 100, 0);
    let whole = 20 << 20;
    while size < whole {
        let more = size + 1 + size / 8;
        // SAFETY: the object is of the heap and not freed.
        match unsafe { heap.resize(object, more) } {
            Resized::InPlace => {}
            Resized::Move(bytes) => {
                assert_eq!(bytes, heap.usable(object).unwrap());
                let to = heap.alloc_growing(more).unwrap();
                assert_eq!(free(heap, object), Freed::Done);
                (object, moves) = (to, moves + 1);
            }
            other => panic!("{other:?}"),
        }
        size = more;
        assert!(heap.usable(object).unwrap() >= size);
    }
    assert!(moves < 15, "{moves}");
    // And what gets less gives its end back where it is.
    let bytes = || heap.engine().unwrap().core.large_bytes.load(Relaxed);
    // SAFETY: as above.
    assert_eq!(unsafe { heap.resize(object, 1 << 20) }, Resized::InPlace);
    assert_eq!((heap.usable(object), bytes()), (Some(1 << 20), 1 << 20));
    assert_eq!((free(heap, object), bytes()), (Freed::Done, 0));
}

#[test]
fn an_aligned_large_object_keeps_its_alignment_and_its_room_is_told() {
    let heap = heap(None, Policy::Hybrid);
    let object = heap.alloc_aligned(3 << 20, 8 << 20).unwrap().at;
    for size in [1 << 20, 5 << 20, 300_000] {
        // SAFETY: the object is of the heap and not freed.
        if unsafe { heap.resize(object, size) } == Resized::InPlace {
            let usable = heap.usable(object).unwrap();
            assert!(usable >= size);
            // SAFETY: so many bytes are there.
            unsafe { object.as_ptr().write_bytes(1, usable) };
        }
    }
    assert_eq!(free(heap, object), Freed::Done);
}

#[test]
fn a_debug_heap_keeps_sizes_and_reports_wrong_pointers() {
    let heap = heap(Some("FZPU"), Policy::Hybrid);
    let object = get(heap, 100);
    let grown = heap.alloc_growing(5000).unwrap();
    assert_eq!(
        (heap.usable(object), heap.usable(grown)),
        (Some(100), Some(5000)),
        "as asked for"
    );
    assert_eq!(free(heap, grown), Freed::Done);
    assert!(!heap.fits(object, 100));
    // SAFETY: the object is of the heap and not freed.
    assert_eq!(unsafe { heap.resize(object, 60) }, Resized::Move(60));
    // SAFETY: inside of the object.
    let inside = unsafe { object.add(8) };
    // SAFETY: nothing is done to it.
    assert_eq!(unsafe { heap.resize(inside, 60) }, Resized::Bad);
    let mut here = 7u64;
    assert_eq!(free(heap, NonNull::from(&mut here).cast()), Freed::Foreign);
    let log = LOG.lock().unwrap().clone();
    let pointer = &raw const here as usize;
    assert!(
        log.contains(&format!("No slab cache for object 0x{pointer:016x}")),
        "{log}"
    );
    assert!(log.contains("FIX <unknown>: Object at 0x"), "{log}");
    free(heap, object);
}

#[test]
fn all_alignments_are_met() {
    let heap = heap(None, Policy::Hybrid);
    for align in (0..=23).map(|bit| 1usize << bit) {
        for size in [1, 24, 4000, 40_000, 3 << 20] {
            let got = heap.alloc_aligned(size, align).unwrap();
            assert!(
                (got.at.as_ptr() as usize).is_multiple_of(align),
                "{size} {align}"
            );
            assert!(heap.usable(got.at).unwrap() >= size);
            assert_eq!(free(heap, got.at), Freed::Done, "{size} {align}");
        }
    }
}

/// Whether there is memory at an address.
fn resident(at: usize) -> bool {
    let mut there = 0u8;
    let page = at & !(PAGE - 1);
    // SAFETY: asks about one page, which is mapped.
    let asked = unsafe { libc::mincore(page as *mut _, PAGE, &raw mut there) };
    assert_eq!(asked, 0);
    there & 1 == 1
}

#[test]
fn a_class_that_grows_gets_memory_for_whole_slabs() {
    let heap = heap(None, Policy::Hybrid);
    // Allocated and not touched: 32 KiB for a slab.
    let objects: Vec<_> = (0..2000).map(|_| get(heap, 512)).collect();
    let at = |n: usize| objects[n].as_ptr() as usize;
    assert!(!resident(at(60)), "the first slab may stay almost unused");
    // SAFETY: the objects are mapped and nobody else's.
    let supported = unsafe {
        libc::madvise(
            (at(60) & !(PAGE - 1)) as *mut _,
            PAGE,
            libc::MADV_POPULATE_WRITE,
        )
    } == 0;
    assert_eq!(resident(at(1000)), supported);
    // But not for room to grow.
    let rooms = (0..50).map(|_| heap.alloc_growing(9000).unwrap());
    let rooms: Vec<_> = rooms.collect();
    for object in &rooms {
        assert!(!resident(object.as_ptr() as usize + 20_000));
    }
    for object in rooms.into_iter().chain(objects) {
        assert_eq!(free(heap, object), Freed::Done);
    }
}
