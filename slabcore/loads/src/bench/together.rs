//! The concurrent tests of slab_test.c: every thread is a processor of them.

use super::alone::{is_stamped, per_op, stamp};
use super::{Done, Figure};
use crate::Pool;
use crate::pin::Pinned;
use std::ptr::null_mut;
use std::sync::Barrier;
use std::sync::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;

const N: usize = 10_000;
/// Repetitions in one measurement; the first does not count.
const TURNS: usize = 10;

/// An object's way to another thread.
struct Way(Vec<AtomicPtr<u8>>);

impl Way {
    fn new() -> Self {
        Self((0..N).map(|_| AtomicPtr::new(null_mut())).collect())
    }
}

/// What threads do in one turn: the times of two parts, the second may be nothing.
type Part<'p> = dyn Fn(usize, &Barrier) -> [f64; 2] + Sync + 'p;

/// The mean of all threads and turns.
fn turns(threads: usize, part: &Part<'_>) -> [f64; 2] {
    let barrier = Barrier::new(threads);
    let one = |number: usize| {
        let _here = Pinned::to(number);
        let mut sum = [0.0; 2];
        for turn in 0..=TURNS {
            barrier.wait();
            let times = part(number, &barrier);
            if turn > 0 {
                sum = [0, 1].map(|side| sum[side] + times[side] / TURNS as f64);
            }
        }
        sum
    };
    let sums: Vec<[f64; 2]> = thread::scope(|scope| {
        let one = &one;
        let handles: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || one(number)))
            .collect();
        let joined = handles.into_iter();
        joined
            .map(|it| it.join().unwrap_or([f64::NAN; 2]))
            .collect()
    });
    // Threads that had nothing to do say so with a figure that is none.
    [0, 1].map(|side| {
        let told: Vec<f64> = sums
            .iter()
            .map(|s| s[side])
            .filter(|f| f.is_finite())
            .collect();
        told.iter().sum::<f64>() / told.len().max(1) as f64
    })
}

/// All four tests.
pub(super) fn concurrent<P: Pool>(pool: &P, threads: usize) -> Done {
    let wrong = AtomicU64::new(0);
    let free = |object: *mut u8, stamped: u64| {
        // SAFETY: each object is freed once, by whoever took it.
        unsafe {
            if !is_stamped(object, stamped) {
                wrong.fetch_add(1, Relaxed);
            }
            pool.free(object);
        }
    };
    let make = |stamped: u64| {
        let object = pool.alloc();
        // SAFETY: allocated just now.
        unsafe { stamp(object, stamped) };
        object
    };
    let [alloc, own] = turns(threads, &|number, barrier| {
        let mut objects = vec![null_mut(); N];
        let alloc = per_op(N, || {
            for place in &mut objects {
                *place = make(number as u64);
            }
        });
        barrier.wait();
        let own = per_op(N, || objects.iter().for_each(|o| free(*o, number as u64)));
        [alloc, own]
    });
    let [pair, _] = turns(threads, &|number, _| {
        let time = per_op(N, || {
            for _ in 0..N {
                free(make(number as u64), number as u64);
            }
        });
        [time, 0.0]
    });
    let ways: Vec<Way> = (0..threads).map(|_| Way::new()).collect();
    let [_, remote] = turns(threads, &|number, barrier| {
        if number > 0 {
            for place in &ways[number].0 {
                place.store(make(7), Release);
            }
        }
        barrier.wait();
        if number > 0 {
            return [0.0, f64::NAN];
        }
        let others = ways.iter().skip(1).flat_map(|way| &way.0);
        let time = per_op(N * (threads - 1).max(1), || {
            for place in others {
                free(place.swap(null_mut(), Acquire), 7);
            }
        });
        [0.0, if threads > 1 { time } else { f64::NAN }]
    });
    let [one_alloc, n_free] = turns(threads, &|number, _| {
        if number == 0 {
            let time = per_op(N * (threads - 1).max(1), || {
                for at in 0..N {
                    for way in ways.iter().skip(1) {
                        way.0[at].store(make(9), Release);
                    }
                }
            });
            return [if threads > 1 { time } else { f64::NAN }, f64::NAN];
        }
        let time = per_op(N, || {
            for place in &ways[number].0 {
                let object = loop {
                    let object = place.swap(null_mut(), Acquire);
                    if !object.is_null() {
                        break object;
                    }
                    thread::yield_now();
                };
                free(object, 9);
            }
        });
        [f64::NAN, time]
    });
    let all = [
        ("alloc", alloc),
        ("free", own),
        ("pair", pair),
        ("remote-free", remote),
        ("one-alloc", one_alloc),
        ("n-free", n_free),
    ];
    let wrong = wrong.into_inner();
    Done {
        // With one thread there is nobody else.
        figures: all
            .into_iter()
            .filter(|(_, value)| value.is_finite() && *value > 0.0)
            .map(|(name, value)| Figure::ns(name, value))
            .collect(),
        counters: None,
        wrong: (wrong > 0).then(|| format!("{wrong} objects lost their stamps")),
    }
}
