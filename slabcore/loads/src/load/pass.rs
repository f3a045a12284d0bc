//! Loads in which objects are allocated on one thread and freed on another all the time.

use super::{Passed, per_op, touch};
use crate::Pool;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Places of the ring.
const RING: usize = 1024;
/// Looks at a place so often before the processor is given to others.
const SPINS: u32 = 1000;

/// A ring from one thread to another; a place is empty or holds an object.
struct Ring([AtomicPtr<u8>; RING]);

/// Waits until `done` gives something.
fn wait<T>(mut done: impl FnMut() -> Option<T>) -> T {
    loop {
        for _ in 0..SPINS {
            if let Some(value) = done() {
                return value;
            }
            std::hint::spin_loop();
        }
        thread::yield_now();
    }
}

impl Ring {
    fn put(&self, at: usize, object: *mut u8) {
        let place = &self.0[at % RING];
        wait(|| place.load(Ordering::Acquire).is_null().then_some(()));
        place.store(object, Ordering::Release);
    }

    fn take(&self, at: usize) -> *mut u8 {
        let place = &self.0[at % RING];
        let object = wait(|| {
            let object = place.load(Ordering::Acquire);
            (!object.is_null()).then_some(object)
        });
        place.store(null_mut(), Ordering::Release);
        object
    }
}

/// Passes `n` objects, of which `write` bytes are written and one word is read.
fn through_ring<P: Pool>(pool: &P, n: usize, write: usize) {
    let ring = Ring([const { AtomicPtr::new(null_mut()) }; RING]);
    thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..n {
                let object = ring.take(at);
                // SAFETY: the object was written before it was passed, and is freed once.
                unsafe {
                    object.cast::<u64>().read_volatile();
                    pool.free(object);
                }
            }
        });
        for at in 0..n {
            let object = pool.alloc();
            // SAFETY: `write` is not above the object's size.
            unsafe { object.write_bytes(1, write) };
            ring.put(at, object);
        }
    });
}

/// Time of an object from allocation to free.
pub fn stream<P: Pool>(pool: &P, _size: usize) -> f64 {
    const N: usize = 400_000;
    per_op(N, || through_ring(pool, N, 8))
}

/// Objects of a batch, and batches under way at most, as in xmalloc-test.
const BATCH: usize = 4096;
const MOST: usize = 100;

#[derive(Default)]
struct Queue {
    full: Vec<Vec<Passed>>,
    empty: Vec<Vec<Passed>>,
    /// Batches that are still to be allocated.
    left: usize,
}

/// Time of an object from allocation to free, all threads together.
pub fn xmalloc<P: Pool>(pool: &P, size: usize, pairs: usize) -> f64 {
    const BATCHES: usize = 200;
    let queue = Mutex::new(Queue {
        left: BATCHES,
        ..Queue::default()
    });
    let (filled, emptied) = (Condvar::new(), Condvar::new());
    let freed = AtomicUsize::new(0);
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let until = |of: &Condvar, held, go: fn(&Queue) -> bool| -> MutexGuard<'_, Queue> {
        of.wait_while(held, |queue| !go(queue))
            .unwrap_or_else(PoisonError::into_inner)
    };
    let produce = || loop {
        let mut held = until(&emptied, lock(), |q| q.full.len() < MOST || q.left == 0);
        if held.left == 0 {
            filled.notify_all();
            return;
        }
        held.left -= 1;
        let mut batch = held.empty.pop().unwrap_or_default();
        drop(held);
        for _ in 0..BATCH {
            let object = pool.alloc();
            // SAFETY: the object has `size` bytes.
            unsafe { object.write_bytes(3, size.min(128)) };
            batch.push(Passed(object));
        }
        lock().full.push(batch);
        filled.notify_one();
    };
    let consume = || loop {
        let mut held = until(&filled, lock(), |q| !q.full.is_empty() || q.left == 0);
        let Some(mut batch) = held.full.pop() else {
            drop(held);
            // The last batches may be in the hands of the producers.
            if freed.load(Ordering::Relaxed) == BATCHES * BATCH {
                return;
            }
            thread::yield_now();
            continue;
        };
        drop(held);
        for object in batch.drain(..) {
            // SAFETY: each is freed once.
            unsafe { pool.free(object.0) };
        }
        freed.fetch_add(BATCH, Ordering::Relaxed);
        lock().empty.push(batch);
        emptied.notify_one();
    };
    // So that the first turn is not about page faults.
    touch_once(pool);
    per_op(BATCHES * BATCH, || {
        thread::scope(|scope| {
            for _ in 0..pairs {
                scope.spawn(produce);
                scope.spawn(consume);
            }
        });
    })
}

fn touch_once<P: Pool>(pool: &P) {
    let object = pool.alloc();
    touch(object);
    // SAFETY: allocated just now.
    unsafe { pool.free(object) };
}
