//! Random sequences against a reference model, for every policy alike.
#![cfg(not(loom))]
// Helpers of tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::needless_for_each,
    clippy::cast_ptr_alignment
)]

use proptest::prelude::*;
use slabcore::{
    Address, Cache, CacheBuilder, Decommit, Engine, EngineConfig, Leak, Policy, SlabAlloc,
};
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
    FromElsewhere(usize),
    Limit(bool),
    MinPartial(u32),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (1usize..80).prop_map(Op::Alloc),
        4 => any::<usize>().prop_map(Op::Free),
        3 => (any::<usize>(), 1usize..200).prop_map(|(at, n)| Op::FreeMany(at, n)),
        2 => (1usize..200).prop_map(Op::Bulk),
        1 => Just(Op::Shrink),
        1 => (1usize..100).prop_map(Op::Elsewhere),
        1 => (1usize..100).prop_map(Op::FromElsewhere),
        1 => any::<bool>().prop_map(Op::Limit),
        1 => (0u32..6).prop_map(Op::MinPartial),
    ];
    prop::collection::vec(op, 1..60)
}

/// What a constructor leaves in each byte of a free object.
const BUILT: u8 = 0xc7;

/// Live objects by address, with the byte that fills them.
struct Model {
    live: BTreeMap<usize, u8>,
    size: usize,
    serial: u8,
    built: bool,
    /// An allocation was refused because memory was short.
    refused: bool,
}

impl Model {
    fn took(&mut self, object: NonNull<u8>) {
        let at = object.as_ptr() as usize;
        // SAFETY: the object is new and `size` bytes large.
        let bytes = unsafe { std::slice::from_raw_parts_mut(at as *mut u8, self.size) };
        if self.built {
            let kept = &bytes[..constructed(self.size)];
            assert!(kept.iter().all(|byte| *byte == BUILT), "as constructed");
        }
        self.serial = self.serial.wrapping_add(37);
        bytes.fill(self.serial);
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
        let bytes = unsafe { std::slice::from_raw_parts_mut(key as *mut u8, self.size) };
        assert!(bytes.iter().all(|byte| *byte == fill), "contents kept");
        if self.built {
            bytes.fill(BUILT);
        }
        NonNull::new(key as *mut u8)
    }

    fn alloc(&mut self, cache: &Cache) {
        match cache.alloc() {
            Some(object) => self.took(object),
            None => self.refused = true,
        }
    }
}

fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: the model gives each live object once.
    unsafe { cache.free(object) };
}

fn bulk(cache: &Cache, model: &mut Model, n: usize) {
    let mut out = vec![std::ptr::null_mut(); n];
    let got = cache.alloc_bulk(&mut out);
    model.refused |= got < n;
    let (keep, back) = out[..got].split_at(got / 2);
    keep.iter()
        .for_each(|object| model.took(NonNull::new(*object).unwrap()));
    // SAFETY: these were allocated just now.
    unsafe { cache.free_bulk(back) };
}

/// A constructor of objects of `size` bytes: it is told nothing, so there are a few.
fn construct(size: usize) -> fn(*mut u8) {
    fn fill<const BYTES: usize>(object: *mut u8) {
        // SAFETY: the objects have at least that many bytes.
        unsafe { object.write_bytes(BUILT, BYTES) };
    }
    match size {
        2048.. => fill::<2048>,
        512.. => fill::<512>,
        64.. => fill::<64>,
        8.. => fill::<8>,
        _ => fill::<1>,
    }
}

/// Bytes that the constructor fills.
fn constructed(size: usize) -> usize {
    [2048, 512, 64, 8]
        .into_iter()
        .find(|n| size >= *n)
        .unwrap_or(1)
}

/// Runs work on a thread that ends.
fn elsewhere<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// Runs the operations, in turn on each of the handles, which share one cache.
fn run(engine: &Engine, handles: &[&Cache], built: bool, ops: &[Op]) -> Model {
    let mut model = Model {
        live: BTreeMap::new(),
        size: handles[0].object_size(),
        serial: 0,
        built,
        refused: false,
    };
    for (op, cache) in ops.iter().zip(handles.iter().copied().cycle()) {
        match *op {
            Op::Alloc(n) => (0..n).for_each(|_| model.alloc(cache)),
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
            Op::Bulk(n) => bulk(cache, &mut model, n),
            Op::Shrink => cache.shrink(),
            Op::Elsewhere(n) => {
                let objects: Vec<_> = (0..n).filter_map(|i| model.pick(i * 3)).collect();
                let addresses: Vec<_> = objects.iter().map(|o| o.as_ptr() as usize).collect();
                elsewhere(|| {
                    for at in addresses {
                        free(cache, NonNull::new(at as *mut u8).unwrap());
                    }
                });
            }
            Op::FromElsewhere(n) => {
                let got: Vec<_> = elsewhere(|| {
                    let objects = (0..n).map_while(|_| cache.alloc());
                    objects.map(|object| object.as_ptr() as usize).collect()
                });
                model.refused |= got.len() < n;
                got.iter()
                    .for_each(|at| model.took(NonNull::new(*at as *mut u8).unwrap()));
            }
            Op::Limit(on) => engine.set_limit(if on { engine.snapshot().used } else { u64::MAX }),
            Op::MinPartial(slabs) => cache.set_min_partial(slabs),
        }
        assert_eq!(cache.counters().live(), model.live.len() as u64);
    }
    engine.set_limit(u64::MAX);
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
        built: bool, leak: bool,
    ) {
        let engine = engine(nodes);
        let mut counts = vec![];
        for policy in Policy::ALL {
            let layout = Layout::from_size_align(size, 8).unwrap();
            let make = |name| {
                let builder = CacheBuilder::new(&engine, name, layout)
                    .policy(policy)
                    .min_partial(min_partial)
                    .merge(true);
                if built { builder.ctor(construct(size)) } else { builder }.build().unwrap()
            };
            // Two handles on one cache, unless constructed objects keep them apart.
            let (cache, twin) = (make(policy.name()), make("twin"));
            prop_assert_eq!(cache.id() == twin.id(), !built);
            let handles = [&cache, if built { &cache } else { &twin }];
            let mut model = run(&engine, &handles, built, &ops);
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
            if !model.refused {
                counts.push((counters.allocs(), counters.frees()));
            }
            prop_assert_eq!(twin.destroy(), Ok(()));
            if leak && !model.live.is_empty() {
                let objects = model.live.len() as u64;
                prop_assert_eq!(cache.destroy(), Err(Leak { objects }));
                continue;
            }
            while let Some(object) = model.pick(0) {
                free(&cache, object);
            }
            prop_assert_eq!(cache.destroy(), Ok(()));
        }
        prop_assert!(counts.windows(2).all(|two| two[0] == two[1]));
        if !leak {
            prop_assert_eq!(engine.snapshot().used, 0);
        }
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
