//! Workloads of one thread.
//!
//! Source of truth: slab_test.c (Lameter, Desnoyers) and slab_bulk_test01.c
//! (Brouer) of the prototype-kernel repository; here with wall clock time.

use super::{Done, Figure};
use crate::Pool;
use crate::pin::Pinned;
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

/// Objects of a batch, as `TEST_COUNT`.
const N: usize = 10_000;
/// Batches of which the median counts.
const TIMES: usize = 7;

/// Nanoseconds of `work` for each of `ops`.
pub(super) fn per_op(ops: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / ops as f64
}

/// The middle of some runs, after one that does not count.
pub(super) fn middle(mut run: impl FnMut() -> [f64; 2]) -> [f64; 2] {
    run();
    let runs: Vec<[f64; 2]> = (0..TIMES).map(|_| run()).collect();
    [0, 1].map(|side| {
        let figures: Vec<f64> = runs.iter().map(|run| run[side]).collect();
        crate::figure::median(&figures).unwrap_or(f64::NAN)
    })
}

/// Writes a stamp into an object.
///
/// # Safety
/// The object is the caller's and has 8 bytes.
#[inline(always)]
pub(super) unsafe fn stamp(object: *mut u8, stamp: u64) {
    // SAFETY: by the contract; pools align to 8.
    unsafe { object.cast::<u64>().write_volatile(stamp) };
}

/// Whether a stamp is still there.
///
/// # Safety
/// As [`stamp`].
#[inline(always)]
pub(super) unsafe fn is_stamped(object: *mut u8, stamp: u64) -> bool {
    // SAFETY: by the contract.
    unsafe { object.cast::<u64>().read_volatile() == stamp }
}

/// slab_test 1 and 2.
pub(super) fn kmalloc<P: Pool>(pool: &P) -> Done {
    let _here = Pinned::to(0);
    let mut objects = vec![null_mut(); N];
    let mut wrong = 0u64;
    let [alloc, free] = middle(|| {
        let alloc = per_op(N, || {
            for (place, at) in objects.iter_mut().zip(0..) {
                *place = pool.alloc();
                // SAFETY: allocated just now; sizes are at least 8.
                unsafe { stamp(*place, at) };
            }
        });
        let free = per_op(N, || {
            for (object, at) in objects.iter().zip(0..) {
                // SAFETY: each is in use, and freed once.
                unsafe {
                    wrong += u64::from(!is_stamped(*object, at));
                    pool.free(*object);
                }
            }
        });
        [alloc, free]
    });
    let [pair, _] = middle(|| {
        let time = per_op(10 * N, || {
            for _ in 0..10 * N {
                let object = black_box(pool.alloc());
                // SAFETY: allocated just now.
                unsafe { pool.free(object) };
            }
        });
        [time, 0.0]
    });
    Done {
        figures: vec![
            Figure::ns("alloc", alloc),
            Figure::ns("free", free),
            Figure::ns("pair", pair),
        ],
        counters: None,
        wrong: (wrong > 0).then(|| format!("{wrong} objects lost their stamps")),
    }
}

/// slab_bulk_test01: an allocation and a free for each object.
pub(super) fn bulk<P: Pool>(pool: &P, n: usize) -> Done {
    const OPS: usize = 100_000;
    let _here = Pinned::to(0);
    let turns = OPS / n;
    let mut objects = vec![null_mut(); n];
    let [single, _] = middle(|| {
        let time = per_op(turns * n, || {
            for _ in 0..turns {
                for place in black_box(&mut objects) {
                    *place = pool.alloc();
                }
                for object in black_box(&objects) {
                    // SAFETY: allocated just now.
                    unsafe { pool.free(*object) };
                }
            }
        });
        [time, 0.0]
    });
    let mut lacking = 0usize;
    let [bulk, _] = middle(|| {
        let time = per_op(turns * n, || {
            for _ in 0..turns {
                objects.fill(null_mut());
                pool.alloc_bulk(black_box(&mut objects));
                lacking += objects.iter().filter(|object| object.is_null()).count();
                // SAFETY: allocated just now, and all of them, since memory does not end here.
                unsafe { pool.free_bulk(black_box(&objects)) };
            }
        });
        [time, 0.0]
    });
    Done {
        figures: vec![Figure::ns("single", single), Figure::ns("bulk", bulk)],
        counters: None,
        wrong: (lacking > 0).then(|| format!("{lacking} objects were not given")),
    }
}
