//! Loads of one thread.

use super::{per_op, touch};
use crate::Pool;
use crate::rng::Rng;
use std::hint::black_box;
use std::ptr::null_mut;

pub fn pair<P: Pool>(pool: &P) -> f64 {
    const N: usize = 400_000;
    per_op(N, || {
        for _ in 0..N {
            let object = black_box(pool.alloc());
            // SAFETY: allocated just now.
            unsafe { pool.free(object) };
        }
    })
}

/// Time for an allocation and a free.
pub fn batch<P: Pool>(pool: &P) -> f64 {
    const N: usize = 10_000;
    let mut objects = vec![null_mut(); N];
    per_op(N, || {
        for place in &mut objects {
            *place = pool.alloc();
            touch(*place);
        }
        for object in &objects {
            touch(*object);
            // SAFETY: each is freed once.
            unsafe { pool.free(*object) };
        }
    })
}

pub fn churn<P: Pool>(pool: &P) -> f64 {
    const N: usize = 100_000;
    const OPS: usize = 2 * N;
    let mut objects: Vec<_> = (0..N).map(|_| pool.alloc()).collect();
    let mut rng = Rng::new(1);
    let mut replace = |times| {
        for _ in 0..times {
            let place = &mut objects[rng.below(N)];
            // SAFETY: the object is ours and is replaced at once.
            unsafe { pool.free(*place) };
            *place = pool.alloc();
            touch(*place);
        }
    };
    replace(OPS);
    let time = per_op(OPS, || replace(OPS));
    for object in objects {
        // SAFETY: each is freed once.
        unsafe { pool.free(object) };
    }
    time
}

const BULK_OPS: usize = 200_000;

pub fn bulk<P: Pool>(pool: &P, n: usize) -> f64 {
    let mut objects = vec![null_mut(); n];
    per_op(BULK_OPS / n * n, || {
        for _ in 0..BULK_OPS / n {
            pool.alloc_bulk(black_box(&mut objects));
            // SAFETY: allocated just now, and all of them, since memory does not end here.
            unsafe { pool.free_bulk(black_box(&objects)) };
        }
    })
}

pub fn one_by_one<P: Pool>(pool: &P, n: usize) -> f64 {
    let mut objects = vec![null_mut(); n];
    per_op(BULK_OPS / n * n, || {
        for _ in 0..BULK_OPS / n {
            for place in black_box(&mut objects) {
                *place = pool.alloc();
            }
            for object in black_box(&objects) {
                // SAFETY: allocated just now.
                unsafe { pool.free(*object) };
            }
        }
    })
}
