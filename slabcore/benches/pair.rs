//! Nanoseconds of the usual patterns, each policy against the system's malloc.
//!
//! Targets take turns within each round, so that a busy machine disturbs all of
//! them alike; the median of the rounds is printed. `SLABCORE_ROUNDS` sets
//! their number.
// Chains of iterators read better here than loops of one line.
#![allow(clippy::needless_for_each, clippy::cast_ptr_alignment)]

use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, Policy};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::NonNull;
use std::time::Instant;

enum Target {
    Engine(Cache),
    System(Layout),
}

impl Target {
    #[inline(always)]
    fn alloc(&self) -> *mut u8 {
        match self {
            Self::Engine(cache) => cache.alloc().map_or(std::ptr::null_mut(), NonNull::as_ptr),
            // SAFETY: the layout has a size.
            Self::System(layout) => unsafe { System.alloc(*layout) },
        }
    }
    #[inline(always)]
    fn free(&self, object: *mut u8) {
        match self {
            Self::Engine(cache) => {
                // SAFETY: the benches free each object once, to where it came from.
                unsafe { cache.free(NonNull::new_unchecked(object)) }
            }
            // SAFETY: as above.
            Self::System(layout) => unsafe { System.dealloc(object, *layout) },
        }
    }
}

fn touch(object: *mut u8) {
    // SAFETY: every object here has at least 8 bytes and is ours.
    unsafe { object.cast::<u64>().write(22) };
}

fn per_op(ops: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / ops as f64
}

fn pair(target: &Target) -> f64 {
    const N: usize = 1_000_000;
    match target {
        // Outside of the loop, so that no branch on the target is measured.
        Target::Engine(cache) => per_op(N, || {
            for _ in 0..N {
                let object = black_box(cache.alloc());
                if let Some(object) = object {
                    // SAFETY: allocated just now.
                    unsafe { cache.free(object) };
                }
            }
        }),
        Target::System(_) => per_op(N, || {
            for _ in 0..N {
                target.free(black_box(target.alloc()));
            }
        }),
    }
}

fn batch(target: &Target) -> (f64, f64) {
    const N: usize = 10_000;
    let mut objects: Vec<_> = (0..N).map(|_| target.alloc()).collect();
    // Once before, so that no page fault is measured.
    for object in &objects {
        touch(*object);
        target.free(*object);
    }
    let alloc = per_op(N, || {
        for place in &mut objects {
            *place = target.alloc();
            touch(*place);
        }
    });
    let free = per_op(N, || {
        for object in &objects {
            touch(*object);
            target.free(*object);
        }
    });
    (alloc, free)
}

fn churn(target: &Target) -> f64 {
    const N: usize = 100_000;
    let mut objects: Vec<_> = (0..N).map(|_| target.alloc()).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let ops = 4 * N;
    let time = per_op(ops, || {
        for _ in 0..ops {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let place = &mut objects[(random % N as u64) as usize];
            target.free(*place);
            *place = target.alloc();
            touch(*place);
        }
    });
    objects.into_iter().for_each(|object| target.free(object));
    time
}

/// One thread allocates, another frees; the free only.
fn remote(target: &Target) -> f64 {
    const N: usize = 10_000;
    let objects: Vec<_> = (0..N)
        .map(|_| {
            let object = target.alloc();
            touch(object);
            object as usize
        })
        .collect();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // A slot and arrays first.
            target.free(target.alloc());
            per_op(N, || {
                for object in &objects {
                    let object = *object as *mut u8;
                    touch(object);
                    target.free(object);
                }
            })
        });
        thread.join().unwrap_or(f64::NAN)
    })
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

type Bench = fn(&Target) -> f64;

fn main() {
    let rounds = std::env::var("SLABCORE_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(15);
    let benches: [(&str, Bench); 5] = [
        ("pair", pair),
        ("10k alloc", |t| batch(t).0),
        ("10k free", |t| batch(t).1),
        ("churn 100k", churn),
        ("remote free", remote),
    ];
    let Ok(engine) = Engine::new(EngineConfig::default()) else {
        return;
    };
    println!("nanoseconds an operation, median of {rounds} rounds");
    for size in [64, 256, 1024] {
        let Ok(layout) = Layout::from_size_align(size, 8) else {
            return;
        };
        let mut targets: Vec<(&str, Target)> = Policy::ALL
            .iter()
            .filter_map(|policy| {
                let builder = CacheBuilder::new(&engine, policy.name(), layout).policy(*policy);
                Some((policy.name(), Target::Engine(builder.build().ok()?)))
            })
            .collect();
        targets.push(("system malloc", Target::System(layout)));
        let mut times = vec![vec![vec![]; benches.len()]; targets.len()];
        for _ in 0..rounds {
            for (of_target, (_, target)) in times.iter_mut().zip(&targets) {
                for (of_bench, (_, bench)) in of_target.iter_mut().zip(&benches) {
                    of_bench.push(bench(target));
                }
            }
        }
        print!("{size:<16}");
        benches.iter().for_each(|(name, _)| print!("{name:>12}"));
        println!();
        for (of_target, (name, _)) in times.into_iter().zip(&targets) {
            print!("{name:<16}");
            of_target
                .into_iter()
                .for_each(|times| print!("{:>12.2}", median(times)));
            println!();
        }
    }
}
