//! Damage in an engine is found from outside as it is from inside; here the outside is this process.
#![cfg(not(any(loom, shuttle)))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

use slabcore::inspect::{self, Inspector, Process};
use slabcore::validate::Finding;
use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, Policy, Report};
use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::sync::Mutex;

/// Returns with damage done; nothing is used afterwards.
type Plant = fn(&Cache);

/// Reports go to nobody.
const QUIET: EngineConfig = EngineConfig {
    report: Report::Call(|_| ()),
    ..EngineConfig::new()
};

/// Engines are of the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What is found outside and, afterwards, inside; the engine reports to nobody.
fn both(engine: &Engine) -> (Vec<Finding>, Vec<Finding>) {
    let found = inspect::of_process(std::process::id()).unwrap().unwrap();
    let segment = inspect::read(&found.file).unwrap();
    let process = Process::open(std::process::id()).unwrap();
    let inspector = Inspector::new(process, &segment).unwrap();
    // The newest comes last; those before it were left behind.
    let outside = inspector.validate().unwrap().pop().unwrap();
    (outside.findings, engine.validate().findings)
}

#[test]
fn planted_damage_is_found_as_it_is_inside() {
    let _alone = ALONE.lock();
    let debug: [(&str, Plant); 6] = [
        ("overflow", |cache| {
            let object = cache.alloc().unwrap();
            // SAFETY: behind the object is its red zone.
            unsafe { object.as_ptr().add(72).write(0x41) };
        }),
        ("underflow", |cache| {
            let object = cache.alloc().unwrap();
            // SAFETY: before the object is its red zone.
            unsafe { object.as_ptr().sub(1).write(0x41) };
        }),
        ("use after free", |cache| {
            let object = cache.alloc().unwrap();
            // SAFETY: the slab's memory stays, whoever has the object.
            unsafe {
                cache.free(object);
                object.as_ptr().add(8).write(0x41);
            }
        }),
        ("both red zones", |cache| {
            let object = cache.alloc().unwrap();
            // SAFETY: on either side of the object is a red zone.
            unsafe {
                object.as_ptr().sub(1).write(0x41);
                object.as_ptr().add(72).write(0x41);
            }
        }),
        ("use of all that was freed", |cache| {
            let object = cache.alloc().unwrap();
            // SAFETY: the slab's memory stays; behind the object is its red zone.
            unsafe {
                cache.free(object);
                object.as_ptr().write_bytes(0x41, 73);
            }
        }),
        ("link", |cache| {
            let object = cache.alloc().unwrap();
            // SAFETY: as above; the link is behind the object and its red zone.
            unsafe {
                cache.free(object);
                object.as_ptr().add(80).write_bytes(0x41, 2);
            }
        }),
    ];
    for (name, plant) in debug {
        let engine = Engine::new(QUIET).unwrap();
        let layout = Layout::from_size_align(72, 8).unwrap();
        let builder = CacheBuilder::new(&engine, "debug", layout);
        let cache = builder
            .debug_flags("FZPU".parse().unwrap())
            .build()
            .unwrap();
        // What is damaged cannot be given back in order.
        let cache = ManuallyDrop::new(cache);
        let first = cache.alloc();
        plant(&cache);
        let (outside, inside) = both(&engine);
        let said = |of: &[Finding]| -> Vec<(&str, String)> {
            let one = |of: &Finding| (of.kind.code(), of.to_string());
            of.iter().map(one).collect()
        };
        assert!(!outside.is_empty(), "{name}");
        assert_eq!(said(&outside), said(&inside), "{name}");
        assert!(first.is_some());
    }
}

#[test]
fn an_object_freed_twice_is_found_where_it_lies() {
    let _alone = ALONE.lock();
    for policy in Policy::ALL {
        let engine = Engine::new(QUIET).unwrap();
        let layout = Layout::from_size_align(64, 8).unwrap();
        let builder = CacheBuilder::new(&engine, "plain", layout).policy(policy);
        let cache = builder.build().unwrap();
        let objects: Vec<_> = (0..11).map(|_| cache.alloc().unwrap()).collect();
        let object = objects[10];
        // SAFETY: ours; the second free is the fault, and is undone below.
        let link = unsafe {
            cache.free(object);
            let link = object.cast::<u16>().read();
            cache.free(object);
            link
        };
        let (outside, inside) = both(&engine);
        assert_eq!(outside.len(), 1, "{policy:?}: {outside:?}");
        assert_eq!(outside, inside, "{policy:?}");
        if policy.has_sheaves() {
            assert_eq!((cache.alloc(), cache.alloc()), (Some(object), Some(object)));
        } else {
            // SAFETY: puts the link back that the second free replaced.
            unsafe { object.cast::<u16>().write(link) };
        }
        assert_eq!(both(&engine), (Vec::new(), Vec::new()), "{policy:?}");
        // Ten objects are in use still, and whoever lets go of the cache leaves them.
    }
}
