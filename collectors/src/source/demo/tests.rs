//! What a reader of the demonstration relies on.

use std::time::{Duration, Instant};

use super::{DemoSource, Policy};
use crate::analysis::{Usage, consistency};
use crate::model::{
    Cache, CounterId, DumpDemand, Flag, OriginKind, Place, Quantity, Snapshot, WarningCode,
    Warnings,
};
use crate::source::{Demand, Source};

fn sample(source: &mut DemoSource) -> Snapshot {
    source.sample(&Demand::everything()).unwrap()
}

fn value(cache: &Cache, q: Quantity) -> u64 {
    let figure = cache.get(q).unwrap();
    assert!(!figure.approx, "{}: {}", cache.name, q.name());
    figure.value
}

fn named<'a>(snapshot: &'a Snapshot, name: &str) -> &'a Cache {
    let mut found = snapshot.caches.iter().filter(|c| &*c.name == name);
    found.next().unwrap_or_else(|| panic!("{name}"))
}

fn check(snapshot: &Snapshot) {
    for cache in &snapshot.caches {
        let of = |q| value(cache, q);
        let name = &cache.name;
        let sum = |part: fn(&crate::model::NodePart) -> u64| cache.nodes.iter().map(part).sum();
        let slabs: u64 = sum(|n| n.slabs.unwrap().0);
        let total: u64 = sum(|n| n.total_objects.unwrap().0);
        let partial: u64 = sum(|n| n.partial.unwrap().0);
        assert_eq!(slabs, of(Quantity::Slabs), "{name}");
        assert_eq!(total, of(Quantity::TotalObjects), "{name}");
        assert_eq!(partial, of(Quantity::Partial), "{name}");
        let on_lists: u64 = cache
            .cpus
            .iter()
            .map(|c| c.slabs_cpu_partial.unwrap().0)
            .sum();
        assert_eq!(on_lists, of(Quantity::SlabsCpuPartial), "{name}");
        let occupancy = cache.occupancy.as_ref().unwrap();
        assert_eq!(occupancy.value.0.iter().sum::<u64>(), slabs, "{name}");

        let parked: u64 = cache
            .cpus
            .iter()
            .map(|c| c.sheaf_main.unwrap().0 + c.sheaf_spare.unwrap().0)
            .sum::<u64>();
        assert!(of(Quantity::Objects) + parked <= total, "{name}");

        let usage = Usage::of(cache, snapshot.system.page_size);
        let bytes = |b: Option<crate::model::Approx<crate::model::Bytes>>| b.unwrap().value.0;
        assert_eq!(
            bytes(usage.memory),
            bytes(usage.used) + bytes(usage.slack) + bytes(usage.free) + bytes(usage.padding),
            "{name}"
        );

        let counters = cache.counters.as_ref().unwrap();
        for counter in &counters.0 {
            let list: u64 = counter.cpus.iter().map(|(_, n)| u64::from(*n)).sum();
            assert_eq!(list, counter.total, "{name} {}", counter.id.name());
        }
        let total = |id| counters.total(id).unwrap();
        let live = total(CounterId::AllocFastpath) + total(CounterId::AllocSlowpath)
            - total(CounterId::FreeFastpath)
            - total(CounterId::FreeSlowpath);
        assert_eq!(live, of(Quantity::Objects), "{name}");
        assert_eq!(cache.flags.get(Flag::ReclaimAccount), Some(false));
    }
    // Only that one cache is debugged, which is on purpose.
    let odd = |list: &crate::model::Warnings| {
        let others = list.iter().filter(|w| !w.message.contains("demo_handle"));
        others.count()
    };
    assert_eq!(odd(&consistency::check(snapshot)), 0);
    assert_eq!(odd(&snapshot.warnings), 0, "{:?}", snapshot.warnings);
}

#[test]
fn the_figures_are_exact_while_the_load_runs() {
    let mut source = DemoSource::start(None).unwrap();
    source.control.hurry(true);
    for _ in 0..20 {
        check(&sample(&mut source));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn every_policy_can_be_the_default_and_ends_at_once() {
    for policy in Policy::ALL {
        let start = Instant::now();
        let mut source = DemoSource::start(Some(policy)).unwrap();
        let snapshot = sample(&mut source);
        check(&snapshot);
        let session = named(&snapshot, "demo_session");
        let arrays = matches!(policy, Policy::Sheaves | Policy::Hybrid);
        assert_eq!(value(session, Quantity::SheafCapacity) > 0, arrays);
        drop(source);
        assert!(start.elapsed() < Duration::from_secs(5), "{policy:?}");
    }
}

#[test]
fn the_first_figures_show_what_each_cache_is_for() {
    let mut source = DemoSource::start(None).unwrap();
    let first = sample(&mut source);
    assert_eq!(first.origin.kind, OriginKind::Demo);
    assert_eq!(first.system.nodes, Some(2));
    assert!(first.system.cpus >= Some(3), "{:?}", first.system.cpus);
    let sparse = named(&first, "demo_fragmented");
    let usage = Usage::of(sparse, 4096).object_use.unwrap().value;
    assert!(usage < 0.5, "{usage}");
    // 72 bytes cost more from the size class than from a cache of their own.
    let memory = |name| Usage::of(named(&first, name), 4096).memory.unwrap().value;
    assert!(memory("kmalloc-96") > memory("demo_page_lock"));
    let remote = named(&first, "demo_message").counters.as_ref().unwrap();
    assert!(remote.total(CounterId::FreeFastpath) > Some(0));
    // One load, five policies.
    let allocs = |name: &str| {
        let counters = named(&first, name).counters.as_ref().unwrap();
        counters.total(CounterId::AllocFastpath).unwrap()
            + counters.total(CounterId::AllocSlowpath).unwrap()
    };
    for policy in Policy::ALL {
        let name = format!("demo_{}", policy.name().replace('-', "_"));
        assert_eq!(allocs(&name), allocs("demo_classic"), "{name}");
    }
}

#[test]
fn the_leak_grows_and_nothing_else_does() {
    let mut source = DemoSource::start(None).unwrap();
    let before = sample(&mut source);
    source.control.hurry(true);
    std::thread::sleep(Duration::from_millis(100));
    source.control.hurry(false);
    let after = sample(&mut source);
    let objects = |of, name| value(named(of, name), Quantity::Objects);
    assert!(objects(&after, "demo_leak") > objects(&before, "demo_leak"));
    for name in ["demo_session", "demo_page_lock", "demo_fragmented"] {
        assert_eq!(objects(&after, name), objects(&before, name), "{name}");
    }
}

#[test]
fn validation_under_load_finds_nothing() {
    let source = DemoSource::start(None).unwrap();
    let verdict = source.validate();
    assert_eq!(verdict.faults, []);
    assert_eq!((verdict.more, verdict.caches), (0, 16));
    assert!(verdict.slabs > 100 && verdict.passes >= 2, "{verdict:?}");
}

#[test]
fn an_ended_load_is_said() {
    let mut source = DemoSource::start(None).unwrap();
    let said = |of: &Warnings| {
        let mut notes = of.iter().filter(|w| w.code == WarningCode::Note);
        notes.any(|note| note.message.contains("ended after"))
    };
    assert!(said(&super::notes(true)));
    assert!(!said(&sample(&mut source).warnings));
}

fn everything() -> DumpDemand {
    DumpDemand {
        slabs: usize::MAX,
        objects: usize::MAX,
        bytes: false,
        address: None,
    }
}

#[test]
fn a_dump_adds_up_to_the_report() {
    for policy in [None, Some(Policy::Classic), Some(Policy::Hybrid)] {
        let mut source = DemoSource::start(policy).unwrap();
        source.control.hurry(true);
        // Threads of other tests that end empty their places in the caches of all engines: what
        // moved meanwhile says so, and is looked at again.
        let mut tries = (0..200).map(|_| source.dump(&|_| true, everything()));
        let dump = tries.find(|dump| dump.caches.iter().all(|of| of.exact));
        drop(tries);
        let dump = dump.unwrap();
        source.control.hurry(false);
        assert_eq!((dump.caches.len(), dump.cut), (16, 0));
        for cache in &dump.caches {
            assert_eq!(cache.slabs.len() as u64, cache.slabs_total);
            let mut places = [0; 9];
            for object in cache.slabs.iter().flat_map(|slab| &slab.objects) {
                let kind = |k: &Place| k.name() == object.place.name();
                places[Place::KINDS.iter().position(kind).unwrap()] += 1;
            }
            assert_eq!(places, cache.places, "{}", cache.name);
            assert_eq!(Some(places[0]), cache.counted, "{}", cache.name);
        }
        let idle = dump.caches.iter().find(|c| c.name == "demo_idle").unwrap();
        assert_eq!(
            idle.counted,
            Some(value(
                named(&sample(&mut source), "demo_idle"),
                Quantity::Objects
            ))
        );
    }
}

/// What the cache is for: its tracks lead from the objects that stay to who forgot them.
#[test]
fn the_planted_leak_is_explained_by_its_tracks() {
    let source = DemoSource::start(None).unwrap();
    let dump = source.dump(&|name| name == "demo_handle", everything());
    let [cache] = &dump.caches[..] else {
        panic!("{dump:?}")
    };
    assert_eq!((cache.policy, &*cache.debug), (None, "FZPU"));
    let live = cache.slabs.iter().flat_map(|slab| &slab.objects);
    let live = live.filter(|object| object.place == Place::Allocated);
    let mut sites = std::collections::BTreeMap::<Vec<u64>, usize>::new();
    for object in live {
        let track = object.allocated.as_ref().unwrap();
        assert!(track.stack.iter().any(|frame| frame.symbol.is_some()));
        let stack = track.stack.iter().map(|frame| frame.address).collect();
        *sites.entry(stack).or_default() += 1;
    }
    assert_eq!(sites.values().sum::<usize>(), 8 + 12);
    // Those that are properly open are not all opened at one place of the loop.
    assert_eq!(sites.values().max(), Some(&12), "{sites:?}");
    let report = sample(&mut { source });
    let flag = named(&report, "demo_handle").flags.get(Flag::StoreUser);
    assert_eq!(flag, Some(true));
}

#[test]
fn a_dump_is_bounded_and_says_so() {
    let source = DemoSource::start(None).unwrap();
    let demand = DumpDemand {
        slabs: 2,
        ..everything()
    };
    let wanted = |name: &str| name == "demo_fragmented";
    let dump = source.dump(&wanted, demand);
    let cache = &dump.caches[0];
    assert_eq!(cache.slabs.len(), 2);
    assert_eq!(dump.cut, cache.slabs_total - 2);
    let address = Some(cache.slabs[1].address + 100);
    let one = source.dump(
        &wanted,
        DumpDemand {
            address,
            bytes: true,
            ..demand
        },
    );
    let [slab] = &one.caches[0].slabs[..] else {
        panic!("{one:?}")
    };
    assert_eq!(slab.address, cache.slabs[1].address);
    assert_eq!(slab.bytes.as_ref().unwrap().len(), 4096 << slab.order);
    let few = source.dump(
        &wanted,
        DumpDemand {
            objects: 1,
            ..everything()
        },
    );
    assert_eq!((few.caches[0].slabs.len(), few.cut), (0, cache.slabs_total));
}
