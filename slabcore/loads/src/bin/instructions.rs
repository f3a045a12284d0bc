//! Fixed loops to count instructions of: run by `slabcore/callgrind.sh`, once for each policy.
//!
//! `instructions POLICY WORK` with the work `pair` (one object, 100,000 times),
//! `batch` (10,000 objects, ten times), `bulk` (the same through the bulk
//! functions, 100 at a time) or `none`. Counting starts and stops at the
//! functions named `count_allocs` and `count_frees`.

use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, Policy};
use std::alloc::Layout;
use std::process::ExitCode;
use std::ptr::{NonNull, null_mut};

const BATCH: usize = 10_000;

#[inline(never)]
fn count_allocs(cache: &Cache, objects: &mut [*mut u8]) {
    for place in objects {
        *place = cache.alloc().map_or(null_mut(), NonNull::as_ptr);
    }
}

#[inline(never)]
fn count_frees(cache: &Cache, objects: &[*mut u8]) {
    for object in objects {
        if let Some(object) = NonNull::new(*object) {
            // SAFETY: each object is in use and freed once.
            unsafe { cache.free(object) };
        }
    }
}

#[inline(never)]
fn count_bulk_allocs(cache: &Cache, objects: &mut [*mut u8]) {
    cache.alloc_bulk(objects);
}

#[inline(never)]
fn count_bulk_frees(cache: &Cache, objects: &[*mut u8]) {
    // SAFETY: each object is in use and freed once.
    unsafe { cache.free_bulk(objects) };
}

fn work(cache: &Cache, work: &str) -> bool {
    let mut objects = vec![null_mut(); BATCH];
    let (times, step) = match work {
        "none" => return true,
        "pair" => (100_000, 1),
        "batch" => (10, BATCH),
        "bulk" => (1000, 100),
        _ => return false,
    };
    let objects = &mut objects[..step];
    for _ in 0..times {
        if work == "bulk" {
            count_bulk_allocs(cache, objects);
            count_bulk_frees(cache, objects);
        } else {
            count_allocs(cache, objects);
            count_frees(cache, objects);
        }
    }
    true
}

fn run() -> Option<bool> {
    let mut args = std::env::args().skip(1);
    let policy = Policy::from_name(&args.next()?)?;
    let engine = Engine::new(EngineConfig::default()).ok()?;
    let layout = Layout::from_size_align(64, 8).ok()?;
    let cache = CacheBuilder::new(&engine, "counted", layout).policy(policy);
    let cache = cache.build().ok()?;
    // So that the slabs are there.
    let mut objects = vec![null_mut(); BATCH];
    cache.alloc_bulk(&mut objects);
    // SAFETY: each object is in use and freed once.
    unsafe { cache.free_bulk(&objects) };
    Some(work(&cache, &args.next()?))
}

fn main() -> ExitCode {
    if run() == Some(true) {
        ExitCode::SUCCESS
    } else {
        eprintln!("usage: instructions POLICY pair|batch|bulk|none");
        ExitCode::FAILURE
    }
}
