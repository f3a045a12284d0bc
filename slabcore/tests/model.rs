//! Random sequences against a reference model, for every policy alike.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::needless_for_each,
    clippy::cast_ptr_alignment
)]

use proptest::prelude::*;
use slabcore::validate::Fault;
use slabcore::{Address, Cache, CacheBuilder, Decommit, Engine, EngineConfig, Policy, SlabAlloc};
use std::alloc::{GlobalAlloc, Layout};
use std::collections::BTreeMap;
use std::ptr::NonNull;

#[derive(Debug, Clone)]
enum Op {
    Alloc(usize),
    Free(usize),
    FreeMany(usize, usize),
    Bulk(usize),
    Shrink,
    Elsewhere(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (1usize..80).prop_map(Op::Alloc),
        4 => any::<usize>().prop_map(Op::Free),
        3 => (any::<usize>(), 1usize..200).prop_map(|(at, n)| Op::FreeMany(at, n)),
        2 => (1usize..200).prop_map(Op::Bulk),
        1 => Just(Op::Shrink),
        1 => (1usize..100).prop_map(Op::Elsewhere),
    ];
    prop::collection::vec(op, 1..60)
}

/// Live objects by address, with the byte that fills them.
struct Model {
    live: BTreeMap<usize, u8>,
    size: usize,
    serial: u8,
}

impl Model {
    fn took(&mut self, object: NonNull<u8>) {
        let at = object.as_ptr() as usize;
        self.serial = self.serial.wrapping_add(37);
        // SAFETY: the object is new and `size` bytes large.
        unsafe { object.as_ptr().write_bytes(self.serial, self.size) };
        if let Some((below, _)) = self.live.range(..=at).next_back() {
            assert!(below + self.size <= at, "overlap or handed out twice");
        }
        if let Some((above, _)) = self.live.range(at..).next() {
            assert!(at + self.size <= *above, "overlap");
        }
        self.live.insert(at, self.serial);
    }

    fn pick(&mut self, at: usize) -> Option<NonNull<u8>> {
        let n = self.live.len();
        let key = *self.live.keys().nth(at.checked_rem(n)?)?;
        let fill = self.live.remove(&key)?;
        // SAFETY: the object is live, and filled by `took`.
        let bytes = unsafe { std::slice::from_raw_parts(key as *const u8, self.size) };
        assert!(bytes.iter().all(|byte| *byte == fill), "contents kept");
        NonNull::new(key as *mut u8)
    }
}

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: the model gives each live object once.
    unsafe { cache.free(object) };
}

fn run(cache: &Cache, ops: &[Op]) -> Model {
    let mut model = Model {
        live: BTreeMap::new(),
        size: cache.object_size(),
        serial: 0,
    };
    for op in ops {
        match *op {
            Op::Alloc(n) => (0..n).for_each(|_| model.took(cache.alloc().unwrap())),
            Op::Free(at) => {
                if let Some(object) = model.pick(at) {
                    free(cache, object);
                }
            }
            Op::FreeMany(at, n) => {
                for i in 0..n {
                    let Some(object) = model.pick(at.wrapping_add(i * 7)) else {
                        break;
                    };
                    free(cache, object);
                }
            }
            Op::Bulk(n) => {
                let mut out = vec![std::ptr::null_mut(); n];
                assert_eq!(cache.alloc_bulk(&mut out), n);
                let (keep, back) = out.split_at(n / 2);
                keep.iter()
                    .for_each(|object| model.took(NonNull::new(*object).unwrap()));
                // SAFETY: these were allocated just now.
                unsafe { cache.free_bulk(back) };
            }
            Op::Shrink => cache.shrink(),
            Op::Elsewhere(n) => {
                let objects: Vec<_> = (0..n).filter_map(|i| model.pick(i * 3)).collect();
                let addresses: Vec<_> = objects.iter().map(|o| o.as_ptr() as usize).collect();
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        for at in &addresses {
                            free(cache, NonNull::new(*at as *mut u8).unwrap());
                        }
                    });
                });
            }
        }
        assert_eq!(cache.counters().live(), model.live.len() as u64);
    }
    model
}

fn engine(nodes: usize) -> Engine {
    Engine::new(EngineConfig {
        nodes,
        reserve: 1 << 30,
        decommit: Decommit::Immediate,
        ..EngineConfig::default()
    })
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn all_policies_behave_alike(
        ops in ops(), size in 1usize..3000, nodes in 1usize..3, min_partial in 0u32..6,
    ) {
        let engine = engine(nodes);
        let mut counts = vec![];
        for policy in Policy::ALL {
            let layout = Layout::from_size_align(size, 8).unwrap();
            let cache = CacheBuilder::new(&engine, policy.name(), layout)
                .policy(policy)
                .min_partial(min_partial)
                .build()
                .unwrap();
            let mut model = run(&cache, &ops);
            let validation = engine.validate();
            prop_assert_eq!(validation.findings, vec![]);
            prop_assert_eq!(validation.unchecked, 0);
            let snapshot = engine.snapshot();
            let of_cache = snapshot.caches.iter().find(|c| c.id == cache.id()).unwrap();
            prop_assert_eq!(of_cache.objects, model.live.len() as u64);
            prop_assert!(of_cache.objects_taken >= of_cache.objects);
            prop_assert!(of_cache.total_objects >= of_cache.objects_taken);
            prop_assert_eq!(of_cache.occupancy.iter().sum::<u64>(), of_cache.slabs);
            let counters = cache.counters();
            counts.push((counters.allocs(), counters.frees()));
            while let Some(object) = model.pick(0) {
                free(&cache, object);
            }
            prop_assert_eq!(cache.destroy(), Ok(()));
        }
        prop_assert!(counts.windows(2).all(|two| two[0] == two[1]));
        prop_assert_eq!(engine.snapshot().used, 0);
    }

    #[test]
    fn the_global_allocator_keeps_contents(
        sizes in prop::collection::vec((0usize..40_000, 0u32..14), 1..80), resize in 0usize..60_000,
    ) {
        static GLOBAL: SlabAlloc = SlabAlloc::new();
        let mut objects = vec![];
        for (i, (size, align)) in sizes.iter().enumerate() {
            let layout = Layout::from_size_align(*size, 1 << align).unwrap();
            // SAFETY: an allocator of ours may be asked for any layout.
            let object = unsafe { GLOBAL.alloc_zeroed(layout) };
            prop_assert!(!object.is_null());
            prop_assert_eq!(object as usize % layout.align(), 0);
            // SAFETY: the object has `size` bytes.
            let bytes = unsafe { std::slice::from_raw_parts_mut(object, *size) };
            prop_assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(i as u8 | 1);
            objects.push((object, layout));
        }
        for (i, (object, layout)) in objects.into_iter().enumerate() {
            let kept = layout.size().min(resize);
            // SAFETY: allocated above with this layout, freed once; `kept` bytes survive.
            unsafe {
                let object = GLOBAL.realloc(object, layout, resize);
                prop_assert!(!object.is_null());
                prop_assert_eq!(object as usize % layout.align(), 0);
                let bytes = std::slice::from_raw_parts(object, kept);
                prop_assert!(bytes.iter().all(|byte| *byte == i as u8 | 1));
                GLOBAL.dealloc(object, Layout::from_size_align(resize, layout.align()).unwrap());
            }
        }
    }
}

#[test]
fn memory_at_its_limit_is_a_clean_failure_and_comes_back() {
    for policy in Policy::ALL {
        let engine = engine(1);
        engine.set_limit(256 << 10);
        let layout = Layout::new::<[u64; 32]>();
        let cache = CacheBuilder::new(&engine, "limited", layout)
            .policy(policy)
            .build()
            .unwrap();
        let objects: Vec<_> = std::iter::from_fn(|| cache.alloc()).collect();
        assert!(objects.len() > 900 && objects.len() <= 1024, "{policy:?}");
        assert_eq!(cache.alloc(), None);
        assert!(engine.snapshot().failed > 0);
        objects.iter().for_each(|object| free(&cache, *object));
        let again: Vec<_> = std::iter::from_fn(|| cache.alloc()).collect();
        assert_eq!(again.len(), objects.len(), "{policy:?}: nothing is stuck");
        again.into_iter().for_each(|object| free(&cache, object));
        assert_eq!(cache.counters().live(), 0);
        assert_eq!(cache.destroy(), Ok(()));
        assert_eq!(engine.snapshot().used, 0);
    }
}

#[test]
fn pointers_are_classified_without_reading_them() {
    let engine = engine(1);
    let cache = CacheBuilder::new(&engine, "c", Layout::new::<[u64; 9]>())
        .build()
        .unwrap();
    let object = cache.alloc().unwrap();
    let at = object.as_ptr();
    assert!(
        matches!(engine.classify(at), Address::Slab { cache: id, offset: 0, .. } if id == cache.id())
    );
    let inside = engine.classify(at.wrapping_add(3));
    assert!(matches!(inside, Address::Slab { offset: 3, .. }));
    assert_eq!(
        engine.classify((&raw const engine).cast()),
        Address::Foreign
    );
    assert_eq!(engine.classify(std::ptr::null()), Address::Foreign);
    let large = engine.large_alloc(100_000, 8).unwrap();
    let start = large.at.as_ptr() as usize;
    let inside = engine.classify(large.at.as_ptr().wrapping_add(99_999));
    assert!(matches!(inside, Address::Large { start: s, .. } if s == start));
    // SAFETY: allocated above.
    assert!(unsafe { engine.large_free(large.at) });
    assert_eq!(engine.classify(start as *const u8), Address::Unused);
    free(&cache, object);
}

#[test]
fn a_cache_with_live_objects_is_kept_and_told() {
    let engine = engine(1);
    let cache = CacheBuilder::new(&engine, "leaky", Layout::new::<u64>())
        .build()
        .unwrap();
    let objects: Vec<_> = (0..100).map(|_| cache.alloc().unwrap()).collect();
    free(&cache, objects[0]);
    let leak = cache.destroy().unwrap_err();
    assert_eq!(leak.objects, 99);
    // SAFETY: the leaked objects stay valid.
    unsafe { objects[1].cast::<u64>().write(1) };
}

#[test]
fn constructed_objects_keep_their_state_while_free() {
    fn ctor(object: *mut u8) {
        // SAFETY: the objects of the cache below have 8 bytes.
        unsafe { object.cast::<u64>().write(0x1234) };
    }
    for policy in Policy::ALL {
        let engine = engine(1);
        let cache = CacheBuilder::new(&engine, "ctor", Layout::new::<u64>())
            .policy(policy)
            .ctor(ctor)
            .build()
            .unwrap();
        for _ in 0..3 {
            let objects: Vec<_> = (0..2000).map(|_| cache.alloc().unwrap()).collect();
            for object in objects {
                // SAFETY: a live object of 8 bytes.
                assert_eq!(unsafe { object.cast::<u64>().read() }, 0x1234);
                free(&cache, object);
            }
        }
    }
}

#[test]
fn merged_caches_share_slabs_until_the_last_is_gone() {
    let engine = engine(1);
    let layout = Layout::new::<[u64; 4]>();
    let make = |name| {
        CacheBuilder::new(&engine, name, layout)
            .merge(true)
            .build()
            .unwrap()
    };
    let (a, b) = (make("a"), make("b"));
    assert_eq!(a.id(), b.id());
    let object = a.alloc().unwrap();
    assert_eq!(a.destroy(), Ok(()));
    free(&b, object);
    assert_eq!(b.destroy(), Ok(()));
    assert_eq!(engine.snapshot().caches, []);
}

#[test]
fn a_damaged_link_is_found_named_and_located() {
    let engine = engine(1);
    let cache = CacheBuilder::new(&engine, "hurt", Layout::new::<[u64; 8]>())
        .policy(Policy::Sheaves)
        .build()
        .unwrap();
    let objects: Vec<_> = (0..200).map(|_| cache.alloc().unwrap()).collect();
    objects.iter().for_each(|object| free(&cache, *object));
    cache.shrink();
    let kept: Vec<_> = (0..70).map(|_| cache.alloc().unwrap()).collect();
    kept.iter().for_each(|object| free(&cache, *object));
    assert_eq!(engine.validate().findings, []);
    let hurt = |value: u16, at: NonNull<u8>| {
        // SAFETY: the memory stays mapped; writing to it is the fault to be found.
        let before = unsafe { at.cast::<u16>().read() };
        // SAFETY: as above.
        unsafe { at.cast::<u16>().write(value) };
        let findings = engine.validate().findings;
        // SAFETY: as above.
        unsafe { at.cast::<u16>().write(before) };
        findings
    };
    // A free object of a listed slab: the last of a slab that is half used.
    let victim = kept
        .iter()
        .map(|object| object.as_ptr() as usize | 0xfff)
        .map(|end| NonNull::new((end - 63 - 64) as *mut u8).unwrap())
        .find(|at| !hurt(60_000, *at).is_empty())
        .unwrap();
    let faults: Vec<_> = hurt(60_000, victim).iter().map(|f| f.kind).collect();
    assert!(
        faults
            .iter()
            .any(|f| matches!(f, Fault::BadLink { link: 60_000, .. }))
    );
    let own = (victim.as_ptr() as usize & 0xfff) as u16 / 64;
    let found = hurt(own, victim);
    let slab = victim.as_ptr() as usize & !0xfff;
    assert!(
        found
            .iter()
            .any(|f| f.kind == Fault::Cycle { object: own } && f.slab == Some(slab))
    );
    let found = hurt(0xffff, victim);
    assert!(
        found
            .iter()
            .any(|f| matches!(f.kind, Fault::FreeCount { .. }))
    );
    assert_eq!(engine.validate().findings, []);
}
