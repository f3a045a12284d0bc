//! How much memory an allocator holds: each in a process of its own.
//!
//! What the loads themselves need is there and touched before they begin.

use super::free_sized;
use crate::rng::Rng;
use crate::{Heap, Pool, rss};
use std::time::Duration;

const MIB: f64 = (1 << 20) as f64;
const OBJECTS: usize = 200_000;

/// What the loads keep their objects in; every page of it is there from the start.
fn table() -> Vec<*mut u8> {
    // Not zero, or the pages would not be touched.
    let mut table = vec![std::ptr::dangling_mut(); OBJECTS];
    table.fill(std::ptr::null_mut());
    std::hint::black_box(&mut table);
    table
}

/// An object of which every page is touched and the first word is the size.
fn new<H: Heap>(heap: &H, size: usize) -> *mut u8 {
    let object = heap.alloc(size);
    // SAFETY: the object has `size` bytes, at least 8.
    unsafe {
        object.write_bytes(1, size);
        object.cast::<usize>().write(size);
    }
    object
}

/// Six times over: fill the table with one range of sizes, free nine of ten at random.
/// Gives the live bytes.
fn leave_holes<H: Heap>(heap: &H, table: &mut [*mut u8]) -> usize {
    const RANGES: [(usize, usize); 6] = [
        (16, 64),
        (64, 256),
        (24, 100),
        (200, 1000),
        (16, 512),
        (100, 140),
    ];
    let mut rng = Rng::new(5);
    for (low, high) in RANGES {
        for place in table.iter_mut().filter(|place| place.is_null()) {
            *place = new(heap, low + rng.below(high - low));
        }
        for place in table.iter_mut() {
            if rng.percent(90) {
                // SAFETY: the object is ours; the place is empty afterwards.
                unsafe { free_sized(heap, *place) };
                *place = std::ptr::null_mut();
            }
        }
    }
    let live = table.iter().filter(|place| !place.is_null());
    // SAFETY: objects of the table are in use and begin with their size.
    live.map(|place| unsafe { place.cast::<usize>().read() })
        .sum()
}

/// Some time with little to do, as a program has it after its load.
fn idle<H: Heap>(heap: &H) {
    for turn in 0..12 {
        std::thread::sleep(Duration::from_millis(250));
        let few: Vec<_> = (0..500)
            .map(|at| new(heap, 16 + (at + turn) % 900))
            .collect();
        for object in few {
            // SAFETY: allocated just now.
            unsafe { free_sized(heap, object) };
        }
    }
}

/// Resident bytes for each live byte.
pub fn held<H: Heap>(heap: &H) -> Option<f64> {
    let mut table = table();
    idle(heap);
    let before = rss::now()?;
    let live = leave_holes(heap, &mut table);
    idle(heap);
    let held = rss::now()?.saturating_sub(before);
    Some(held as f64 / live as f64)
}

/// MiB that are left after everything was freed.
pub fn after<H: Heap>(heap: &H) -> Option<f64> {
    let mut table = table();
    // SAFETY: as below: what is in the table is ours.
    unsafe { free_sized(heap, new(heap, 64)) };
    let before = rss::now()?;
    leave_holes(heap, &mut table);
    for place in &mut table {
        // SAFETY: the object is ours; the table is not used again.
        unsafe { free_sized(heap, *place) };
    }
    idle(heap);
    Some(rss::now()?.saturating_sub(before) as f64 / MIB)
}

/// MiB at the highest point while one thread allocates 200,000 objects after the other,
/// another frees them as many at a time, and at most twice as many are live.
pub fn peak_of_stream<P: Pool>(pool: &P, size: usize) -> Option<f64> {
    const TURNS: usize = 10;
    let mut tables = [table(), table()];
    let before = rss::now()?;
    rss::reset_peak()?;
    for _ in 0..TURNS {
        let [fresh, old] = &mut tables;
        let (fresh, old) = (Table(fresh), Table(old));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let fresh = fresh;
                for place in fresh.0.iter_mut() {
                    *place = pool.alloc();
                    // SAFETY: the object has `size` bytes.
                    unsafe { place.write_bytes(1, size) };
                }
            });
            scope.spawn(move || {
                let old = old;
                for place in old.0.iter_mut().filter(|place| !place.is_null()) {
                    // SAFETY: the object was allocated in the turn before, and is freed once.
                    unsafe { pool.free(*place) };
                    *place = std::ptr::null_mut();
                }
            });
        });
        tables.swap(0, 1);
    }
    let peak = rss::peak()?.saturating_sub(before) as f64 / MIB;
    for place in tables.iter().flatten().filter(|place| !place.is_null()) {
        // SAFETY: as above.
        unsafe { pool.free(*place) };
    }
    Some(peak)
}

/// A table that one thread works on.
struct Table<'t>(&'t mut Vec<*mut u8>);
// SAFETY: whoever has the value owns the objects of the table.
unsafe impl Send for Table<'_> {}
