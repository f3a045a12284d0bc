//! The whole engine under random schedules: threads that allocate, hand over, free, end, shrink
//! and validate, with real slabs, on every policy.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p slabctl-slabcore --release --test shuttle`;
//! `SLABCORE_SCHEDULES` sets their number. A failure prints its schedule, for `shuttle::replay`.
#![cfg(shuttle)]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

#[path = "support/stamped.rs"]
mod stamped;

use shuttle::sync::Mutex;
use shuttle::thread;
use slabcore::{
    Cache, CacheBuilder, DebugFlags, Decommit, Engine, EngineConfig, Policy, SlotSnapshot,
};
use stamped::Object;
use std::alloc::Layout;
use std::sync::Arc;

/// One cache, and objects on their way from thread to thread.
struct World {
    engine: Engine,
    cache: Cache,
    passed: Mutex<Vec<Object>>,
}

impl World {
    /// Slabs of eight objects, arrays of four, and nodes that keep one slab.
    fn new(policy: Policy, flags: DebugFlags) -> Arc<Self> {
        let engine = Engine::new(EngineConfig {
            reserve: 16 << 20,
            nodes: 2,
            decommit: Decommit::AfterMs(u64::MAX),
            cpus: 1,
            ..EngineConfig::new()
        })
        .unwrap();
        let layout = Layout::from_size_align(512, 8).unwrap();
        let cache = CacheBuilder::new(&engine, "shuttle", layout)
            .policy(policy)
            .min_objects(8)
            .max_order(0)
            .min_partial(1)
            .cpu_partial(8)
            .sheaf_capacity(4)
            .debug_flags(flags)
            .build()
            .unwrap();
        Arc::new(Self {
            engine,
            cache,
            passed: Mutex::new(vec![]),
        })
    }

    fn alloc(&self, n: u64, stamp: u64) -> Vec<Object> {
        let objects = (0..n).map(|i| Object::new(&self.cache, stamp << 32 | i << 8));
        objects.map(Option::unwrap).collect()
    }

    fn pass(&self, objects: Vec<Object>) {
        self.passed.lock().unwrap().extend(objects);
    }

    fn free_passed(&self) {
        let objects = std::mem::take(&mut *self.passed.lock().unwrap());
        for object in objects {
            object.free(&self.cache);
        }
    }

    /// No other thread is left: everything is accounted for.
    fn end(self: Arc<Self>) {
        self.free_passed();
        assert_eq!(self.cache.counters().live(), 0);
        // Threads that ended have given up all they held: one slot is left that may hold something.
        let slots = self.engine.snapshot().caches.remove(0).slots;
        let holds = |slot: &&SlotSnapshot| {
            slot.slab + slot.partial + slot.full + slot.main + slot.spare > 0
        };
        assert!(slots.iter().filter(holds).count() <= 1, "{slots:?}");
        let found = self.engine.validate();
        assert_eq!((found.findings, found.unchecked), (vec![], 0));
        let world = Arc::into_inner(self).unwrap();
        assert_eq!(world.cache.destroy(), Ok(()));
        assert_eq!(world.engine.snapshot().used, 0);
    }
}

/// Threads of a model: what they do one after the other.
type Work = fn(&World);

fn run(policy: Policy, flags: DebugFlags, work: &[Work]) {
    let world = World::new(policy, flags);
    // Some slabs are there before: full, partial, and of this thread.
    world.pass(world.alloc(11, 99));
    let threads: Vec<_> = work
        .iter()
        .map(|work| {
            let (world, work) = (world.clone(), *work);
            thread::spawn(move || work(&world))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    world.end();
}

fn schedules() -> usize {
    let given = std::env::var("SLABCORE_SCHEDULES").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(60)
}

fn model(work: &'static [Work]) {
    // The engines of a process share locks, and a run waits in vain for a lock that another
    // run has: its own threads are the only ones that it can let go on.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let kinds = Policy::ALL.map(|policy| (policy, DebugFlags::NONE));
    let debug = (Policy::Hybrid, "FZP".parse().unwrap());
    for (policy, flags) in kinds.into_iter().chain([debug]) {
        shuttle::check_random(move || run(policy, flags, work), schedules());
        // Few switches at the worst places find what needs an unlucky order.
        shuttle::check_pct(move || run(policy, flags, work), schedules(), 3);
    }
}

fn produce(world: &World) {
    for round in 0..3 {
        let objects = world.alloc(7, round);
        world.pass(objects);
    }
}

fn consume(world: &World) {
    for _ in 0..4 {
        world.free_passed();
        thread::yield_now();
    }
}

fn churn(world: &World) {
    let mut held = world.alloc(10, 7);
    for round in 0..3 {
        for object in held.drain(3..) {
            object.free(&world.cache);
        }
        held.extend(world.alloc(7, 8 + round));
    }
    for object in held {
        object.free(&world.cache);
    }
}

fn validate(world: &World) {
    for _ in 0..2 {
        assert_eq!(world.engine.validate().findings, []);
    }
}

fn shrink(world: &World) {
    world.cache.shrink();
    world.free_passed();
    world.cache.shrink();
}

#[test]
fn objects_cross_threads_that_end() {
    model(&[produce, consume, produce, consume]);
}

#[test]
fn validation_beside_everything_finds_nothing() {
    model(&[churn, validate, produce, consume]);
}

#[test]
fn shrinking_beside_frees_loses_nothing() {
    model(&[produce, shrink, consume, churn]);
}
