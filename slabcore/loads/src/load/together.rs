//! Loads of two threads that the kernel's concurrent test has.

use super::{Passed, per_op, touch};
use crate::Pool;
use std::sync::Barrier;
use std::thread;

const N: usize = 10_000;
const THREADS: usize = 2;
/// Repetitions in one measurement, so that the start of threads does not count.
const TURNS: usize = 10;

/// Time for an allocation and a free, the mean of the threads.
pub fn concurrent<P: Pool>(pool: &P) -> f64 {
    let barrier = Barrier::new(THREADS);
    let one = || {
        let mut objects = vec![std::ptr::null_mut(); N];
        let mut times = 0.0;
        for turn in 0..=TURNS {
            barrier.wait();
            let alloc = per_op(N, || {
                for place in &mut objects {
                    *place = pool.alloc();
                    touch(*place);
                }
            });
            barrier.wait();
            let free = per_op(N, || {
                for object in &objects {
                    touch(*object);
                    // SAFETY: each is freed once.
                    unsafe { pool.free(*object) };
                }
            });
            // The first turn makes the slabs.
            if turn > 0 {
                times += alloc + free;
            }
        }
        times / TURNS as f64
    };
    thread::scope(|scope| {
        let threads: [_; THREADS] = std::array::from_fn(|_| scope.spawn(one));
        let times = threads.map(|thread| thread.join().unwrap_or(f64::NAN));
        times.iter().sum::<f64>() / THREADS as f64
    })
}

/// Time of a free on another thread than the one that allocates.
pub fn remote<P: Pool>(pool: &P) -> f64 {
    let (to, from) = std::sync::mpsc::sync_channel::<Vec<Passed>>(1);
    let (back, returned) = std::sync::mpsc::sync_channel::<Vec<Passed>>(1);
    thread::scope(|scope| {
        let freeing = scope.spawn(move || {
            let mut times = 0.0;
            for turn in 0..=TURNS {
                let Ok(objects) = from.recv() else { break };
                let time = per_op(N, || {
                    for object in &objects {
                        touch(object.0);
                        // SAFETY: each is freed once.
                        unsafe { pool.free(object.0) };
                    }
                });
                if turn > 0 {
                    times += time;
                }
                if back.send(objects).is_err() {
                    break;
                }
            }
            times / TURNS as f64
        });
        let mut objects = Vec::with_capacity(N);
        for _ in 0..=TURNS {
            objects.clear();
            for _ in 0..N {
                let object = pool.alloc();
                touch(object);
                objects.push(Passed(object));
            }
            if to.send(objects).is_err() {
                break;
            }
            objects = returned.recv().unwrap_or_default();
        }
        freeing.join().unwrap_or(f64::NAN)
    })
}
