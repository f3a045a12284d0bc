//! mstress of mimalloc-bench: many sizes, much kept, some exchanged between threads.
//!
//! Every word of an object is a stamp that is checked before the free, but for
//! the first, which holds the size.

use super::{free_sized, per_op};
use crate::Heap;
use crate::rng::Rng;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

const THREADS: usize = 2;
const SCALE: usize = 50;
const ITERATIONS: usize = 4;
const EXCHANGED: usize = 1000;
const WORD: usize = size_of::<usize>();

fn stamp(word: usize) -> usize {
    word ^ 0x5bd1_e995
}

fn new<H: Heap>(heap: &H, mut words: usize, rng: &mut Rng) -> *mut u8 {
    if rng.percent(1) {
        words *= match (rng.percent(1), rng.percent(10)) {
            (true, _) => 10_000,
            (_, true) => 1000,
            _ => 100,
        };
    }
    let object = heap.alloc(words * WORD);
    // SAFETY: the object has that many words.
    unsafe {
        object.cast::<usize>().write(words * WORD);
        for word in 1..words {
            object.cast::<usize>().add(word).write(stamp(word));
        }
    }
    object
}

fn check_and_free<H: Heap>(heap: &H, object: *mut u8) {
    if object.is_null() {
        return;
    }
    // SAFETY: the object is ours; its first word is its size.
    unsafe {
        let words = object.cast::<usize>().read() / WORD;
        for word in 1..words {
            assert_eq!(object.cast::<usize>().add(word).read(), stamp(word));
        }
        free_sized(heap, object);
    }
}

fn stress<H: Heap>(heap: &H, thread: usize, exchange: &[AtomicPtr<u8>]) {
    let mut rng = Rng::new(thread as u64 * 43 + 43);
    let mut left = 100 * SCALE * (thread % 8 + 1);
    let mut keep = left / 2;
    let mut kept = Vec::with_capacity(keep);
    let mut held: Vec<*mut u8> = Vec::with_capacity(left);
    while left > 0 || keep > 0 {
        if keep == 0 || (rng.percent(50) && left > 0) {
            left -= 1;
            let words = 1 << rng.below(5);
            held.push(new(heap, words, &mut rng));
        } else {
            keep -= 1;
            let words = 1 << rng.below(7);
            kept.push(new(heap, words, &mut rng));
        }
        if rng.percent(66) && !held.is_empty() {
            let at = rng.below(held.len());
            check_and_free(heap, std::mem::replace(&mut held[at], null_mut()));
        }
        if rng.percent(25) && !held.is_empty() {
            let at = rng.below(held.len());
            let place = &exchange[rng.below(EXCHANGED)];
            held[at] = place.swap(held[at], Ordering::AcqRel);
        }
    }
    for object in kept.into_iter().chain(held) {
        check_and_free(heap, object);
    }
}

/// Time for each small allocation, its threads running beside each other.
pub fn run<H: Heap>(heap: &H) -> f64 {
    let exchange: Vec<_> = (0..EXCHANGED).map(|_| AtomicPtr::new(null_mut())).collect();
    let allocations = 150 * SCALE * (1..=THREADS).sum::<usize>() * ITERATIONS;
    let mut rng = Rng::new(99);
    let time = per_op(allocations, || {
        for _ in 0..ITERATIONS {
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let exchange = &exchange;
                    scope.spawn(move || stress(heap, thread, exchange));
                }
            });
            for place in &exchange {
                if rng.percent(50) {
                    check_and_free(heap, place.swap(null_mut(), Ordering::AcqRel));
                }
            }
        }
    });
    for place in &exchange {
        check_and_free(heap, place.swap(null_mut(), Ordering::AcqRel));
    }
    time
}
