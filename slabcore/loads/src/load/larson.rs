//! larson of mimalloc-bench: a server whose threads come and go and inherit each other's objects.
//!
//! There, each thread makes replacements, starts its successor on its array and
//! ends, for some seconds. Here the work is fixed instead: as many generations.

use super::per_op;
use crate::Heap;
use crate::rng::Rng;
use std::thread;

const THREADS: usize = 2;
const OBJECTS: usize = 5000;
const GENERATIONS: usize = 20;
const REPLACEMENTS: usize = 20_000;
const SIZES: std::ops::Range<usize> = 8..1000;

/// An object and its size.
struct Entry(*mut u8, usize);
// SAFETY: whoever has the value owns the object.
unsafe impl Send for Entry {}

fn new<H: Heap>(heap: &H, rng: &mut Rng) -> Entry {
    let size = SIZES.start + rng.below(SIZES.len());
    let object = heap.alloc(size);
    // SAFETY: the object has `size` bytes, at least 8.
    unsafe {
        object.write_volatile(1);
        object.add(size - 1).write_volatile(2);
    }
    Entry(object, size)
}

/// Time of a replacement, for each thread.
pub fn run<H: Heap>(heap: &H) -> f64 {
    let mut arrays: Vec<Vec<Entry>> = (0..THREADS)
        .map(|seed| {
            let mut rng = Rng::new(seed as u64 + 1);
            let mut array: Vec<_> = (0..OBJECTS).map(|_| new(heap, &mut rng)).collect();
            for at in (1..OBJECTS).rev() {
                array.swap(at, rng.below(at + 1));
            }
            array
        })
        .collect();
    let time = per_op(GENERATIONS * REPLACEMENTS, || {
        thread::scope(|scope| {
            for (seed, array) in arrays.iter_mut().enumerate() {
                scope.spawn(move || line(heap, array, seed as u64));
            }
        });
    });
    for Entry(object, size) in arrays.into_iter().flatten() {
        // SAFETY: each is freed once, with its size.
        unsafe { heap.free(object, size) };
    }
    time
}

/// One line of threads, each of which hands the array to the next.
fn line<H: Heap>(heap: &H, array: &mut [Entry], seed: u64) {
    for generation in 0..GENERATIONS {
        thread::scope(|scope| {
            let array = &mut *array;
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 1000 + generation as u64 + 7);
                for _ in 0..REPLACEMENTS {
                    let entry = &mut array[rng.below(OBJECTS)];
                    // SAFETY: the object is ours and is replaced at once.
                    unsafe { heap.free(entry.0, entry.1) };
                    *entry = new(heap, &mut rng);
                }
            });
        });
    }
}
