//! Hardened free lists and random order of new slabs, under each policy.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

use slabcore::dump::{DumpOptions, Next, Visit};
use slabcore::finding::{Fault, Finding};
use slabcore::{Address, Cache, CacheBuilder, Engine, EngineConfig, Policy, Report};
use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ptr::NonNull;

thread_local! {
    static FOUND: RefCell<Vec<Finding>> = const { RefCell::new(Vec::new()) };
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

fn note(text: &str, findings: &[Finding]) {
    TEXT.with_borrow_mut(|log| log.push_str(text));
    FOUND.with_borrow_mut(|found| found.extend_from_slice(findings));
}

fn make(policy: Policy, harden: bool, randomise: bool) -> (Engine, Cache) {
    let engine = Engine::new(EngineConfig {
        policy,
        harden_freelist: harden,
        randomise_freelist: randomise,
        report: Report::Findings(note),
        ..EngineConfig::new()
    })
    .unwrap();
    let layout = Layout::from_size_align(64, 8).unwrap();
    let cache = CacheBuilder::new(&engine, "hard", layout).build().unwrap();
    (engine, cache)
}

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: the tests free what they hold, except where they say so.
    unsafe { cache.free(object) };
}

fn take(cache: &Cache, n: usize) -> Vec<NonNull<u8>> {
    (0..n).map(|_| cache.alloc().unwrap()).collect()
}

/// Slabs with free lists, some objects of each in use.
fn half_used(cache: &Cache) -> Vec<NonNull<u8>> {
    cache.set_min_partial(1000);
    let objects = take(cache, 600);
    let (kept, freed): (Vec<_>, Vec<_>) = objects
        .into_iter()
        .enumerate()
        .partition(|(i, _)| i % 4 == 0);
    for (_, object) in freed {
        free(cache, object);
    }
    cache.shrink();
    kept.into_iter().map(|(_, object)| object).collect()
}

/// The first object of a list of at least five in a slab.
fn victim(cache: &Cache) -> (usize, u16, NonNull<u8>) {
    let mut found = None;
    cache.dump(DumpOptions::default(), &mut |visit| {
        if let Visit::Slab(slab) = visit
            && slab.chain.len() > 4
        {
            let object = slab.chain[1];
            let at = slab.address + usize::from(object) * 64;
            found = Some((slab.address, object, at));
        }
        Next::On
    });
    let (slab, object, at) = found.unwrap();
    let at = std::ptr::with_exposed_provenance_mut(at);
    (slab, object, NonNull::new(at).unwrap())
}

/// As a program that writes to an object it has freed.
fn hurt(object: NonNull<u8>) {
    // SAFETY: the object is free and in a mapped slab; that it is written to is the fault.
    unsafe {
        let link = object.cast::<u16>();
        link.write(link.read() ^ 0x5555);
    }
}

#[test]
fn a_link_that_was_written_to_is_found_when_it_is_used() {
    for policy in Policy::ALL {
        let (engine, cache) = make(policy, true, false);
        let kept = half_used(&cache);
        assert_eq!(engine.validate().findings, [], "{policy:?}");
        let (slab, object, at) = victim(&cache);
        hurt(at);
        let taken = take(&cache, 600);
        let found = FOUND.take();
        let text = TEXT.take();
        assert_eq!(found.len(), 1, "{policy:?}: {text}");
        assert_eq!((found[0].slab, found[0].object), (Some(slab), Some(object)));
        assert!(matches!(found[0].kind, Fault::BadLink { .. }), "{found:?}");
        assert!(
            text.contains("BUG hard (Not tainted): Freechain corrupt\n"),
            "{text}"
        );
        assert!(
            text.contains("FIX hard: Isolate corrupted freechain\n"),
            "{text}"
        );
        // Nothing is handed out twice, or that is no object, and all goes on.
        let all: BTreeSet<_> = kept.iter().chain(&taken).collect();
        assert_eq!(all.len(), kept.len() + taken.len(), "{policy:?}");
        for object in all {
            let there = engine.classify(object.as_ptr());
            assert!(
                matches!(there, Address::Slab { offset: 0, .. }),
                "{there:?}"
            );
        }
        assert_eq!(engine.validate().findings, [], "{policy:?}: it was cut off");
        for object in kept.into_iter().chain(taken) {
            free(&cache, object);
        }
        cache.shrink();
        assert_eq!(cache.counters().live(), 0);
        assert_eq!(engine.validate().findings, []);
        assert_eq!(TEXT.take(), "", "{policy:?}");
    }
}

#[test]
fn validation_finds_it_before_it_is_used() {
    for policy in Policy::ALL {
        let (engine, cache) = make(policy, true, true);
        let kept = half_used(&cache);
        let (slab, object, at) = victim(&cache);
        hurt(at);
        let found = engine.validate().findings;
        let is = |f: &Finding| {
            f.slab == Some(slab)
                && f.object == Some(object)
                && matches!(f.kind, Fault::BadLink { .. })
        };
        assert!(found.iter().any(is), "{policy:?}: {found:?}");
        assert_eq!(TEXT.take(), "", "looking is not using");
        hurt(at);
        assert_eq!(engine.validate().findings, [], "as it was");
        for object in kept {
            free(&cache, object);
        }
    }
}

#[test]
fn an_object_freed_twice_in_a_row_is_found_where_lists_are_used_at_once() {
    for policy in [Policy::Classic, Policy::CpuPartial, Policy::DelayedFreeze] {
        let (engine, cache) = make(policy, true, false);
        let objects = take(&cache, 10);
        free(&cache, objects[3]);
        free(&cache, objects[3]);
        // Reported when an operation leaves the fast path.
        let more = take(&cache, 100);
        let found = FOUND.take();
        assert!(
            matches!(found[..], [f] if matches!(f.kind, Fault::FreedTwice { object: 3, .. })),
            "{found:?}"
        );
        assert!(TEXT.take().contains("): Object already free\n"));
        let again = more.iter().filter(|object| **object == objects[3]);
        assert_eq!(again.count(), 1, "{policy:?}");
        assert_eq!(engine.validate().findings, []);
    }
}

#[test]
fn new_slabs_are_handed_out_in_random_order() {
    for policy in Policy::ALL {
        let first = |randomise| {
            let (engine, cache) = make(policy, false, randomise);
            let objects = take(&cache, 200);
            let mut offsets = Vec::new();
            let mut all = BTreeSet::new();
            for object in &objects {
                let Address::Slab { index, .. } = engine.classify(object.as_ptr()) else {
                    panic!("{object:?}")
                };
                offsets.push(index);
                assert!(all.insert(*object), "twice");
            }
            assert_eq!(engine.validate().findings, []);
            for object in objects {
                free(&cache, object);
            }
            offsets
        };
        let plain = first(false);
        assert!(
            plain.iter().take(20).copied().eq(0..20),
            "{policy:?}: {plain:?}"
        );
        let (one, other) = (first(true), first(true));
        assert!(one != plain && one != other, "{policy:?}: {one:?}");
    }
}

#[test]
fn threads_find_their_way_with_both() {
    for policy in Policy::ALL {
        let (engine, cache) = make(policy, true, true);
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let cache = &cache;
                scope.spawn(move || {
                    for round in 0..200usize {
                        let objects = take(cache, 10 + (round * 7 + worker) % 90);
                        let (now, later) = objects.split_at(objects.len() / 2);
                        for object in now.iter().rev().chain(later) {
                            free(cache, *object);
                        }
                    }
                    assert_eq!(TEXT.take(), "");
                });
            }
            for _ in 0..20 {
                assert_eq!(engine.validate().findings, [], "{policy:?}");
            }
        });
        assert_eq!(cache.counters().live(), 0);
        assert_eq!(engine.validate().findings, []);
    }
}
