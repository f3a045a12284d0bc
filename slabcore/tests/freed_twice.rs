//! An object that is freed twice without debugging is found where it lies, under each policy.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

use slabcore::dump::State;
use slabcore::finding::Fault;
use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, Policy};
use std::alloc::Layout;
use std::ptr::NonNull;

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: the second free of an object breaks the contract on purpose; the tests undo it
    // before the cache is used again.
    unsafe { cache.free(object) };
}

fn make(policy: Policy) -> (Engine, Cache) {
    let engine = Engine::new(EngineConfig {
        policy,
        ..EngineConfig::new()
    })
    .unwrap();
    let layout = Layout::from_size_align(64, 8).unwrap();
    let cache = CacheBuilder::new(&engine, "twice", layout).build().unwrap();
    (engine, cache)
}

#[test]
fn in_the_list_or_array_of_a_slot() {
    for policy in Policy::ALL {
        let (engine, cache) = make(policy);
        let bystanders: Vec<_> = (0..10).map(|_| cache.alloc().unwrap()).collect();
        let object = cache.alloc().unwrap();
        free(&cache, object);
        // SAFETY: a free object of ours; its first two bytes may be its link.
        let link = unsafe { object.cast::<u16>().read() };
        assert_eq!(engine.validate().findings, []);
        free(&cache, object);
        let found = engine.validate();
        assert_eq!(
            (found.findings.len(), found.moving),
            (1, 0),
            "{policy:?}: {found:?}"
        );
        let finding = found.findings[0];
        let Fault::FreedTwice { first, second, .. } = finding.kind else {
            panic!("{policy:?}: {finding:?}")
        };
        let fits = |place| match place {
            State::Main { .. } => policy.has_sheaves(),
            State::Own { .. } => !policy.has_sheaves(),
            _ => false,
        };
        assert!(fits(first) && fits(second), "{policy:?}: {finding:?}");
        let at = object.addr().get() - finding.slab.unwrap();
        assert_eq!(finding.object, Some((at / 64) as u16));
        if policy.has_sheaves() {
            assert_eq!((cache.alloc(), cache.alloc()), (Some(object), Some(object)));
            free(&cache, object);
        } else {
            // SAFETY: puts the link back that the second free replaced.
            unsafe { object.cast::<u16>().write(link) };
        }
        assert_eq!(engine.validate().findings, [], "{policy:?}");
        for object in bystanders {
            free(&cache, object);
        }
    }
}

/// One thread frees into its array what another one, long ago, freed into the slab.
#[test]
fn in_an_array_and_in_the_slab() {
    for policy in [Policy::Sheaves, Policy::Hybrid] {
        let (engine, cache) = make(policy);
        let objects: Vec<_> = (0..400).map(|_| cache.alloc().unwrap()).collect();
        let victim = objects[200];
        for object in &objects {
            free(&cache, *object);
        }
        // All of it goes to the slabs; some stay.
        let keep: Vec<_> = (0..2).map(|_| cache.alloc().unwrap()).collect();
        cache.set_min_partial(1000);
        cache.shrink();
        let there = engine.classify(victim.as_ptr());
        if !matches!(there, slabcore::Address::Slab { .. }) || keep.contains(&victim) {
            // The slab went away with the object: nothing to look at.
            continue;
        }
        free(&cache, victim);
        let found = engine.validate();
        let twice = |f: &slabcore::validate::Finding| {
            matches!(
                f.kind,
                Fault::FreedTwice {
                    first: State::Free | State::Own { .. },
                    second: State::Main { .. },
                    ..
                }
            )
        };
        assert!(found.findings.iter().any(twice), "{policy:?}: {found:?}");
        assert_eq!(cache.alloc(), Some(victim), "taken out again");
        assert_eq!(engine.validate().findings, []);
        for object in keep {
            free(&cache, object);
        }
    }
}

#[test]
fn what_is_no_object_is_found_in_an_array() {
    for policy in [Policy::Sheaves, Policy::Hybrid] {
        let (engine, cache) = make(policy);
        let object = cache.alloc().unwrap();
        let inside = NonNull::new(object.as_ptr().wrapping_add(8)).unwrap();
        free(&cache, inside);
        let found = engine.validate().findings;
        assert!(
            matches!(found[..], [f] if matches!(f.kind, Fault::NotAnObject { place: State::Main { .. } })),
            "{found:?}"
        );
        assert_eq!(cache.alloc(), Some(inside), "taken out again");
        free(&cache, object);
        assert_eq!(engine.validate().findings, []);
    }
}
