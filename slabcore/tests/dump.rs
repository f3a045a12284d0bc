//! What a reader of a dump relies on: exact when the program is quiet, honest while it runs.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(clippy::unwrap_used)]

use slabcore::dump::{DumpOptions, Holder, Next, SlabDump, State, Totals, Visit};
use slabcore::{
    Cache, CacheBuilder, CacheSnapshot, DebugFlags, Engine, EngineConfig, Policy, Report,
};
use std::alloc::Layout;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};

const WORKERS: usize = 3;

/// An address that may be sent to another thread.
type Object = usize;

fn take(cache: &Cache) -> Object {
    cache.alloc().unwrap().addr().get()
}

fn give(cache: &Cache, object: Object) {
    let object = NonNull::new(std::ptr::with_exposed_provenance_mut(object)).unwrap();
    // SAFETY: the tests free each object once.
    unsafe { cache.free(object) };
}

/// Policies with and without debugging.
fn kinds() -> impl Iterator<Item = (Policy, &'static str)> {
    Policy::ALL
        .into_iter()
        .flat_map(|policy| ["", "FZPU"].map(|flags| (policy, flags)))
}

fn make(policy: Policy, flags: &str) -> (Engine, Cache) {
    let engine = Engine::new(EngineConfig {
        nodes: 2,
        policy,
        report: Report::Call(|_| ()),
        ..EngineConfig::new()
    })
    .unwrap();
    let layout = Layout::from_size_align(72, 8).unwrap();
    let flags = match flags {
        "" => DebugFlags::NONE,
        flags => flags.parse().unwrap(),
    };
    let cache = CacheBuilder::new(&engine, "dumped", layout).debug_flags(flags);
    let cache = cache.build().unwrap();
    (engine, cache)
}

/// All of a cache: its slabs and sums.
fn look(cache: &Cache, bytes: bool) -> (Vec<SlabDump>, Totals) {
    let (mut slabs, mut totals) = (Vec::new(), None);
    cache.dump(DumpOptions { bytes }, &mut |visit| {
        match visit {
            Visit::Cache(of) => assert_eq!((of.name, of.object_size), ("dumped", 72)),
            Visit::Slab(slab) => slabs.push(slab.clone()),
            Visit::End(end) => totals = Some(end),
        }
        Next::On
    });
    (slabs, totals.unwrap())
}

/// Looks until threads that have ended are gone: a scope does not wait for their last
/// destructor, which flushes their slots in every engine.
fn look_when_quiet(cache: &Cache) -> (Vec<SlabDump>, Totals) {
    for _ in 0..400 {
        let seen = look(cache, false);
        if seen.1.exact {
            return seen;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    look(cache, false)
}

/// Where each object is, by its address.
fn places(engine: &Engine, slabs: &[SlabDump]) -> BTreeMap<Object, State> {
    let mut all = BTreeMap::new();
    let head = engine.snapshot().caches[0].slab_size as usize;
    let mut offset = 0;
    engine.dump(DumpOptions::default(), &mut |visit| {
        if let Visit::Cache(of) = visit {
            offset = of.object_offset as usize;
        }
        Next::Skip
    });
    for slab in slabs {
        for (index, state) in slab.states.iter().enumerate() {
            all.insert(slab.address + index * head + offset, *state);
        }
    }
    all
}

/// Lets the threads go, also when a test fails.
struct Release<'b>(&'b Barrier);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Threads that allocate and free, also each other's objects, and then wait while `see` looks.
fn under_load(cache: &Cache, rounds: usize, see: impl FnOnce(&BTreeSet<Object>)) {
    let live = Mutex::new(Vec::new());
    let (ready, done) = (Barrier::new(WORKERS + 1), Barrier::new(WORKERS + 1));
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (live, ready, done) = (&live, &ready, &done);
            scope.spawn(move || {
                let mut random = 0x5eed_0001 + worker as u64;
                for _ in 0..rounds {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let mut live = live.lock().unwrap();
                    if random % 100 < 55 || live.is_empty() {
                        let new: Vec<_> = (0..random % 40).map(|_| take(cache)).collect();
                        live.extend(new);
                    } else {
                        for _ in 0..random % 40 {
                            if let Some(at) = (random as usize).checked_rem(live.len()) {
                                give(cache, live.swap_remove(at));
                            }
                        }
                    }
                }
                ready.wait();
                done.wait();
            });
        }
        ready.wait();
        let _release = Release(&done);
        see(&live.lock().unwrap().iter().copied().collect());
    });
    for object in live.into_inner().unwrap() {
        give(cache, object);
    }
}

fn agree(of: &CacheSnapshot, totals: &Totals, slabs: &[SlabDump]) {
    let name = format!("{:?}", of.policy);
    assert_eq!(totals.slabs, of.slabs, "{name}");
    assert_eq!(totals.allocated, of.objects, "{name}");
    assert_eq!(totals.counted, Some(of.objects), "{name}");
    assert_eq!(totals.main + totals.spare, of.sheaf_objects, "{name}");
    let barn: u32 = of.nodes.iter().map(|node| node.barn_full).sum();
    assert_eq!(totals.barn, u64::from(barn * of.sheaf_capacity), "{name}");
    let all = slabs.iter().map(|slab| slab.states.len() as u64).sum();
    assert_eq!(of.total_objects, all, "{name}");
    let parts: u64 = totals.places().iter().sum();
    assert_eq!(parts, all, "{name}: each object is in one place");
    let count = |of: fn(&&SlabDump) -> bool| slabs.iter().filter(of).count() as u64;
    assert_eq!(count(|s| s.on_node), of.partial, "{name}");
    assert_eq!(count(|s| s.position.is_some()), of.partial, "{name}");
    assert_eq!(
        count(|s| matches!(s.holder, Holder::InHand { .. })),
        of.cpu_slabs,
        "{name}"
    );
    assert_eq!(
        count(|s| matches!(s.holder, Holder::Partial { .. })),
        of.slabs_cpu_partial,
        "{name}"
    );
    assert_eq!(
        count(|s| matches!(s.holder, Holder::Full { .. })),
        of.slabs_cpu_full,
        "{name}"
    );
}

#[test]
fn a_quiet_program_is_told_exactly() {
    for (policy, flags) in kinds() {
        let (engine, cache) = make(policy, flags);
        let mut seen = BTreeSet::new();
        under_load(&cache, 300, |live| {
            let (slabs, totals) = look_when_quiet(&cache);
            assert!(
                totals.exact && totals.unknown == 0,
                "{policy:?} {flags}: {totals:?}"
            );
            agree(&engine.snapshot().caches[0], &totals, &slabs);
            let places = places(&engine, &slabs);
            let allocated = places.iter().filter(|(_, s)| **s == State::Allocated);
            let allocated: BTreeSet<_> = allocated.map(|(at, _)| *at).collect();
            assert_eq!(&allocated, live, "{policy:?} {flags}");
            for slab in &slabs {
                assert!(slab.settled);
                assert_eq!(
                    slab.chain.len(),
                    slab.states.len() - usize::from(slab.inuse)
                );
                let tracks = if flags.is_empty() {
                    0
                } else {
                    slab.states.len()
                };
                assert_eq!(slab.tracks.len(), tracks);
            }
            let name = |state: &State| format!("{state:?}").split(' ').next().unwrap().to_owned();
            seen = places.values().map(name).collect();
        });
        // The test looks at something.
        let place = match policy {
            _ if !flags.is_empty() => "Free",
            Policy::Sheaves | Policy::Hybrid => "Main",
            _ => "Own",
        };
        assert!(seen.contains(place), "{policy:?}: {seen:?}");
    }
}

/// A thread that neither sleeps nor stops; what the looking thread holds is known throughout.
#[test]
fn a_running_program_is_told_honestly() {
    for (policy, flags) in kinds() {
        let (engine, cache) = make(policy, flags);
        let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
        let mine: BTreeSet<_> = (0..200).map(|_| take(&cache)).collect();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        let objects: Vec<_> = (0..100).map(|_| take(&cache)).collect();
                        for object in objects {
                            give(&cache, object);
                        }
                        rounds.fetch_add(1, Relaxed);
                    }
                });
            }
            let mut looks = 0;
            while looks < 20 || rounds.load(Relaxed) < 50 {
                let (slabs, totals) = look(&cache, false);
                looks += 1;
                for (at, state) in places(&engine, &slabs) {
                    assert!(
                        !mine.contains(&at) || matches!(state, State::Allocated | State::Unknown),
                        "{policy:?} {flags}: a live object is {state:?}"
                    );
                }
                let all: u64 = slabs.iter().map(|slab| slab.states.len() as u64).sum();
                assert!(totals.allocated + totals.unknown >= mine.len() as u64);
                assert!(totals.allocated + totals.free <= all);
            }
            stop.store(true, Relaxed);
        });
        assert!(
            look_when_quiet(&cache).1.exact,
            "{policy:?} {flags}: quiet again"
        );
        for object in mine {
            give(&cache, object);
        }
    }
}

#[test]
fn lists_are_in_the_order_in_which_they_are_used() {
    // A debug cache hands out the head of the list of the first slab.
    let (engine, cache) = make(Policy::Hybrid, "FZPU");
    let objects: Vec<_> = (0..5).map(|_| take(&cache)).collect();
    for at in [1, 3, 0] {
        give(&cache, objects[at]);
    }
    let (slabs, _) = look(&cache, false);
    assert_eq!(slabs[0].chain[..3], [0, 3, 1]);
    assert_eq!(take(&cache), objects[0]);
    let places = places(&engine, &look(&cache, false).0);
    assert_eq!(places[&objects[3]], State::Free);
    assert_eq!(places[&objects[4]], State::Allocated);
}

#[test]
fn tracks_and_bytes_are_those_of_the_object() {
    let (engine, cache) = make(Policy::Hybrid, "FZPU");
    let objects: Vec<_> = (0..3).map(|_| take(&cache)).collect();
    give(&cache, objects[1]);
    let (slabs, totals) = look(&cache, true);
    assert!(totals.exact);
    let slab = &slabs[0];
    let [live, freed] = [0, 1].map(|index| slab.tracks[index]);
    assert!(live.allocated.is_some() && live.freed.is_none());
    let stack = engine.stack(freed.freed.unwrap().stack.unwrap()).unwrap();
    assert!(!stack.as_slice().is_empty());
    assert!(freed.freed.unwrap().time_ns >= freed.allocated.unwrap().time_ns);
    let at = objects[1] - slab.address;
    assert_eq!(slab.bytes.len(), 4096 << slab.order);
    assert_eq!(slab.bytes[at..at + 71], [0x6b; 71]);
    assert_eq!(
        slab.bytes[at + 71..at + 80],
        [0xa5, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb]
    );
}

#[test]
fn an_object_in_quarantine_is_neither_free_nor_live() {
    let (engine, cache) = make(Policy::Hybrid, "FZPU");
    let objects: Vec<_> = (0..3).map(|_| take(&cache)).collect();
    let damaged = std::ptr::with_exposed_provenance_mut::<u8>(objects[1]);
    // SAFETY: the byte behind the object, which is in the same slab.
    unsafe { damaged.add(72).write_volatile(1) };
    give(&cache, objects[1]);
    let (slabs, totals) = look(&cache, false);
    assert_eq!(places(&engine, &slabs)[&objects[1]], State::Quarantined);
    assert_eq!(
        (totals.quarantined, totals.allocated, totals.exact),
        (1, 2, true)
    );
}

#[test]
fn a_visitor_may_allocate_skip_and_stop() {
    let (engine, cache) = make(Policy::Classic, "");
    let layout = Layout::from_size_align(16, 8).unwrap();
    let other = CacheBuilder::new(&engine, "other", layout).build().unwrap();
    let object = take(&cache);
    let mut seen = Vec::new();
    engine.dump(DumpOptions::default(), &mut |visit| {
        match visit {
            Visit::Cache(of) if of.name == "dumped" => return Next::Skip,
            Visit::Cache(of) => seen.push(of.name.to_owned()),
            Visit::Slab(_) | Visit::End(_) => {
                // No lock is held here.
                give(&other, take(&other));
                cache.shrink();
            }
        }
        Next::On
    });
    assert_eq!(seen, ["other"]);
    let mut calls = 0;
    engine.dump(DumpOptions::default(), &mut |_| {
        calls += 1;
        Next::Stop
    });
    assert_eq!(calls, 1);
    give(&cache, object);
}

#[test]
fn a_cache_may_end_while_it_is_looked_at() {
    let (engine, cache) = make(Policy::Hybrid, "");
    let mut cache = Some(cache);
    let object = take(cache.as_ref().unwrap());
    let mut ends = 0;
    engine.dump(DumpOptions::default(), &mut |visit| {
        if let (Visit::Cache(_), Some(cache)) = (&visit, cache.take()) {
            give(&cache, object);
            cache.destroy().unwrap();
        }
        if let Visit::End(totals) = visit {
            ends += 1;
            assert_eq!((totals.slabs, totals.exact), (0, false));
        }
        Next::On
    });
    assert_eq!(ends, 1);
}
