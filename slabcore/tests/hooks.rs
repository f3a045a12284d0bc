//! Debug caches: every operation goes through the hooks, under the node's lock.
#![cfg(not(loom))]

use slabcore::debug::operation::Operation;
use slabcore::hooks::{DebugHooks, Misplaced, ObjectRef, Verdict};
use slabcore::{CacheBuilder, Engine, EngineConfig};
use std::alloc::Layout;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Red zones of 16 bytes on both sides, the link behind; refuses one address.
#[derive(Debug)]
struct Hooks {
    new: AtomicUsize,
    allocs: AtomicUsize,
    frees: AtomicUsize,
    bad: AtomicUsize,
    /// 1 + index of the object that is put in quarantine.
    bury: AtomicUsize,
}

static HOOKS: Hooks = Hooks {
    new: AtomicUsize::new(0),
    allocs: AtomicUsize::new(0),
    frees: AtomicUsize::new(0),
    bad: AtomicUsize::new(0),
    bury: AtomicUsize::new(0),
};

impl DebugHooks for Hooks {
    fn slot_bytes(&self, size: usize, _: usize) -> usize {
        16 + size.next_multiple_of(8) + 24
    }
    fn object_offset(&self, _: usize, _: usize) -> usize {
        16
    }
    fn link_offset(&self, size: usize, _: usize) -> usize {
        16 + size.next_multiple_of(8) + 16
    }
    fn on_new(&self, object: &ObjectRef) {
        self.new.fetch_add(1, Relaxed);
        // SAFETY: the slot is new and that large.
        unsafe { (object.slot as *mut u8).write_bytes(0xbb, object.slot_bytes) };
    }
    fn on_alloc(&self, object: &ObjectRef, requested: usize, _: &mut Operation) -> Verdict {
        assert_eq!(requested, 40);
        self.allocs.fetch_add(1, Relaxed);
        if usize::from(object.index) + 1 == self.bury.load(Relaxed) {
            return Verdict::Quarantine;
        }
        Verdict::Fine
    }
    fn on_free(&self, _: &ObjectRef, _: bool, _: &mut Operation) -> Verdict {
        self.frees.fetch_add(1, Relaxed);
        Verdict::Fine
    }
    fn on_bad_free(&self, _: u32, _: usize, _: Misplaced, _: &mut Operation) {
        self.bad.fetch_add(1, Relaxed);
    }
}

#[test]
fn every_operation_of_a_debug_cache_is_seen() {
    let engine = Engine::new(EngineConfig::default()).unwrap();
    let cache = CacheBuilder::new(&engine, "debug", Layout::new::<[u64; 5]>())
        .debug(&HOOKS)
        .build()
        .unwrap();
    HOOKS.bury.store(3, Relaxed);
    let objects: Vec<_> = (0..1000).map(|_| cache.alloc().unwrap()).collect();
    for object in &objects {
        // SAFETY: the object is live; its red zone is before it.
        assert_eq!(unsafe { object.as_ptr().sub(1).read() }, 0xbb);
        // SAFETY: as above.
        unsafe { object.as_ptr().write_bytes(1, 40) };
    }
    let slabs = engine.snapshot().caches[0].slabs as usize;
    assert_eq!(HOOKS.allocs.load(Relaxed), 1000 + slabs);
    std::thread::scope(|scope| {
        for part in objects.chunks(250) {
            let at: Vec<_> = part.iter().map(|o| o.as_ptr() as usize).collect();
            let cache = &cache;
            scope.spawn(move || {
                for at in at {
                    let object = std::ptr::NonNull::new(at as *mut u8).unwrap();
                    // SAFETY: freed once.
                    unsafe { cache.free(object) };
                }
            });
        }
        for _ in 0..50 {
            assert_eq!(engine.validate().findings, []);
        }
    });
    assert_eq!(HOOKS.frees.load(Relaxed), 1000);
    assert_eq!(cache.counters().live(), 0);
    let inside = objects[0].as_ptr().wrapping_add(1);
    // SAFETY: what is no object is told to the hooks and left alone.
    unsafe { cache.free(std::ptr::NonNull::new(inside).unwrap()) };
    assert_eq!(HOOKS.bad.load(Relaxed), 1);
    assert_eq!(HOOKS.new.load(Relaxed) % slabs, 0);
    let leak = cache.destroy().unwrap_err();
    assert_eq!(leak.objects, 0, "only quarantined objects keep the slabs");
}
