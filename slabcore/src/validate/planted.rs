//! Structural faults planted in real descriptors, lists, maps, arrays and objects of caches
//! without debugging: one row a fault, one column a policy. Each is found, named and located;
//! when it is undone nothing is found, and the cache goes on.

use super::Fault;
use crate::core::CacheCore;
use crate::dump::State;
use crate::order::objects;
use crate::slab::{Desc, Links, NIL, NONE, Table, Word};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Lock, Ordering::Relaxed};
use crate::{Cache, CacheBuilder, Engine, EngineConfig, Policy};
use std::alloc::Layout;
use std::ptr::NonNull;

type Undo = Box<dyn Fn()>;

/// Two pages a slab, some partial ones on the node's list, and a full array in a barn.
struct Scene {
    engine: Engine,
    cache: Cache,
    live: Vec<NonNull<u8>>,
}

impl Scene {
    fn new(policy: Policy) -> Self {
        let config = EngineConfig {
            reserve: 64 << 20,
            cpus: 1,
            ..EngineConfig::new()
        };
        let engine = Engine::new(config).unwrap();
        let layout = Layout::from_size_align(256, 8).unwrap();
        let builder = CacheBuilder::new(&engine, "hurt", layout).policy(policy);
        let cache = builder.min_objects(32).build().unwrap();
        let mut live: Vec<_> = (0..200).map(|_| cache.alloc().unwrap()).collect();
        let mut back: Vec<_> = live.iter().skip(1).step_by(3).take(45).copied().collect();
        live.retain(|object| !back.contains(object));
        free_all(&cache, &mut back);
        cache.shrink();
        let scene = Self {
            engine,
            cache,
            live,
        };
        assert!(scene.core().nodes[0].node.nr_partial() >= 3);
        scene
    }

    fn core(&self) -> &'static CacheCore {
        self.cache.core
    }

    /// The first and the second slab of the list.
    fn listed(&self) -> [u32; 2] {
        let first = self.core().nodes[0].node.first();
        [first, self.desc(first).next.load(Relaxed)]
    }

    fn desc(&self, slab: u32) -> &'static Desc {
        self.core().engine.pages.desc(slab)
    }

    /// The first slab, its word, and the first two objects of its list.
    fn list(&self) -> (u32, Word, [u16; 2]) {
        let [slab, _] = self.listed();
        let word = self.desc(slab).load();
        (
            slab,
            word,
            [word.head(), self.core().links(slab).get(word.head())],
        )
    }

    /// A word of the node: the first, last and number of slabs are 1 to 3, after its lock.
    fn node_word(&self, at: usize) -> &'static AtomicU32 {
        let node = &raw const self.core().nodes[0].node;
        let lock = size_of::<Lock>() / size_of::<u32>();
        // SAFETY: behind its lock a node has three atomics of 32 bits.
        unsafe { &*node.cast::<AtomicU32>().add(lock + at - 1) }
    }

    fn address(&self, slab: u32) -> usize {
        self.core().engine.pages.address(slab)
    }
}

fn free_all(cache: &Cache, objects: &mut Vec<NonNull<u8>>) {
    for object in objects.drain(..) {
        // SAFETY: each is live and of this cache, and is freed once.
        unsafe { cache.free(object) };
    }
}

fn set32(at: &'static AtomicU32, value: u32) -> Undo {
    let before = at.swap(value, Relaxed);
    Box::new(move || at.store(before, Relaxed))
}

fn set64(at: &'static AtomicU64, value: u64) -> Undo {
    let before = at.swap(value, Relaxed);
    Box::new(move || at.store(before, Relaxed))
}

fn set_word(at: &'static Desc, change: impl Fn(Word) -> Word) -> Undo {
    let before = at.word.load(Relaxed);
    at.update(|word| Some(change(word)));
    Box::new(move || at.word.store(before, Relaxed))
}

fn set_link(scene: &Scene, slab: u32, object: u16, link: u16) -> Undo {
    let links = scene.core().links(slab);
    let before = links.get(object);
    links.set(object, link);
    Box::new(move || links.set(object, before))
}

/// What is planted: the fault to be found, where, and how to take it back.
type Planted = (Fault, Option<u32>, Undo);

fn link_out_of_the_slab(scene: &Scene) -> Planted {
    let (slab, _, [object, _]) = scene.list();
    let link = 60_000;
    let undo = set_link(scene, slab, object, link);
    (Fault::BadLink { object, link }, Some(slab), undo)
}

fn link_one_past_the_last(scene: &Scene) -> Planted {
    let (slab, word, [_, object]) = scene.list();
    let link = word.objects();
    let undo = set_link(scene, slab, object, link);
    (Fault::BadLink { object, link }, Some(slab), undo)
}

fn head_out_of_the_slab(scene: &Scene) -> Planted {
    let (slab, word, _) = scene.list();
    let undo = set_word(scene.desc(slab), |word| word.with_list(500, word.inuse()));
    let (object, link) = (NONE, 500);
    assert!(word.head() < 500);
    (Fault::BadLink { object, link }, Some(slab), undo)
}

fn link_to_itself(scene: &Scene) -> Planted {
    let (slab, _, [object, _]) = scene.list();
    let undo = set_link(scene, slab, object, object);
    (Fault::Cycle { object }, Some(slab), undo)
}

/// As after a double free: the second object leads back to the first.
fn object_twice_in_a_list(scene: &Scene) -> Planted {
    let (slab, _, [object, second]) = scene.list();
    let undo = set_link(scene, slab, second, object);
    (Fault::Cycle { object }, Some(slab), undo)
}

fn list_cut_short(scene: &Scene) -> Planted {
    let (slab, word, [object, _]) = scene.list();
    let undo = set_link(scene, slab, object, NONE);
    let (found, counted) = (1, word.free());
    (Fault::FreeCount { found, counted }, Some(slab), undo)
}

fn one_in_use_too_few(scene: &Scene) -> Planted {
    let (slab, word, _) = scene.list();
    let undo = set_word(scene.desc(slab), |word| {
        word.with_list(word.head(), word.inuse() - 1)
    });
    let (found, counted) = (word.free(), word.free() + 1);
    (Fault::FreeCount { found, counted }, Some(slab), undo)
}

fn more_in_use_than_objects(scene: &Scene) -> Planted {
    let (slab, word, _) = scene.list();
    let (inuse, objects) = (word.objects() + 1, word.objects());
    let undo = set_word(scene.desc(slab), |word| word.with_list(word.head(), inuse));
    (Fault::Counts { inuse, objects }, Some(slab), undo)
}

fn more_objects_than_fit(scene: &Scene) -> Planted {
    let (slab, word, _) = scene.list();
    let desc = scene.desc(slab);
    let undo = set64(&desc.word, desc.word.load(Relaxed) + (1 << 32));
    let (inuse, objects) = (word.inuse(), word.objects() + 1);
    assert_eq!(usize::from(word.objects()), self::objects(256, 1));
    (Fault::Counts { inuse, objects }, Some(slab), undo)
}

fn listed_and_frozen(scene: &Scene) -> Planted {
    let (slab, ..) = scene.list();
    let undo = set_word(scene.desc(slab), |word| word.with_frozen(true));
    (Fault::ListedFrozen, Some(slab), undo)
}

fn listed_without_the_mark(scene: &Scene) -> Planted {
    let [_, slab] = scene.listed();
    let undo = set32(&scene.desc(slab).on_node, 0);
    (Fault::OnNodeFlag, Some(slab), undo)
}

/// A full slab is on no list.
fn marked_but_not_listed(scene: &Scene) -> Planted {
    let (full, _) = scene
        .live
        .iter()
        .map(|object| scene.core().locate(object.as_ptr() as usize))
        .find(|(slab, _)| scene.desc(*slab).load().head() == NONE)
        .unwrap();
    let undo = set32(&scene.desc(full).on_node, 1);
    (Fault::OnNodeFlag, Some(full), undo)
}

fn of_another_cache(scene: &Scene) -> Planted {
    let [_, slab] = scene.listed();
    let undo = set32(&scene.desc(slab).cache, scene.cache.id() + 2);
    (Fault::ForeignSlab, Some(slab), undo)
}

fn of_another_node(scene: &Scene) -> Planted {
    let [slab, _] = scene.listed();
    let undo = set32(&scene.desc(slab).node, 3);
    (Fault::ForeignSlab, Some(slab), undo)
}

fn list_that_does_not_lead_back(scene: &Scene) -> Planted {
    let [_, slab] = scene.listed();
    let undo = set32(&scene.desc(slab).prev, slab);
    (Fault::ListBroken, Some(slab), undo)
}

fn list_in_a_circle(scene: &Scene) -> Planted {
    let [slab, second] = scene.listed();
    let undo = set32(&scene.desc(second).next, slab);
    (Fault::ListBroken, Some(slab), undo)
}

fn list_that_leads_nowhere(scene: &Scene) -> Planted {
    let [slab, _] = scene.listed();
    let undo = set32(&scene.desc(slab).next, u32::MAX);
    (Fault::ListBroken, Some(slab), undo)
}

fn wrong_last_slab(scene: &Scene) -> Planted {
    let [first, _] = scene.listed();
    let last = scene.core().nodes[0].node.last();
    let undo = set32(scene.node_word(2), first);
    (Fault::ListBroken, Some(last), undo)
}

fn wrong_number_of_partial_slabs(scene: &Scene) -> Planted {
    let found = scene.core().nodes[0].node.nr_partial();
    let counted = found + 1;
    let undo = set32(scene.node_word(3), counted);
    (Fault::PartialCount { found, counted }, None, undo)
}

fn wrong_number_of_slabs(scene: &Scene) -> Planted {
    let at = &scene.core().nodes[0].node.nr_slabs;
    let found = at.load(Relaxed);
    let undo = set64(at, found - 1);
    let counted = found - 1;
    (Fault::SlabCount { found, counted }, None, undo)
}

fn page_that_leads_elsewhere(scene: &Scene) -> Planted {
    let [slab, _] = scene.listed();
    let undo = set32(scene.core().engine.pages.head_entry(slab + 1), NIL);
    (Fault::PageMap { page: 1 }, Some(slab), undo)
}

/// Puts something into the first place of the only full array of the barn.
fn in_the_barn(scene: &Scene, what: usize) -> Undo {
    let core = scene.core();
    let barn = &core.nodes[0].barn;
    let sheaf = core.engine.meta(4096, 64).unwrap();
    // Live objects may be in arrays as far as slabs know.
    for (place, object) in core.places(sheaf).iter().zip(&scene.live) {
        place.store(object.as_ptr() as usize, Relaxed);
    }
    core.places(sheaf)[0].store(what, Relaxed);
    assert!(barn.put_full(sheaf));
    Box::new(move || assert_eq!(barn.take_full(), Some(sheaf)))
}

fn barn_with_a_free_object(scene: &Scene) -> Planted {
    let (slab, _, [_, object]) = scene.list();
    let undo = in_the_barn(scene, scene.core().address(slab, object));
    let fault = Fault::FreedTwice {
        object,
        first: State::Free,
        second: State::Barn { node: 0 },
    };
    (fault, Some(slab), undo)
}

fn barn_with_an_inner_pointer(scene: &Scene) -> Planted {
    let undo = in_the_barn(scene, scene.live[0].as_ptr() as usize + 8);
    let place = State::Barn { node: 0 };
    (Fault::NotAnObject { place }, None, undo)
}

fn barn_with_a_foreign_pointer(scene: &Scene) -> Planted {
    static OUTSIDE: AtomicUsize = AtomicUsize::new(0);
    let undo = in_the_barn(scene, (&raw const OUTSIDE) as usize);
    let place = State::Barn { node: 0 };
    (Fault::NotAnObject { place }, None, undo)
}

fn each_fault(policies: &[Policy], rows: &[fn(&Scene) -> Planted]) {
    for &policy in policies {
        let mut scene = Scene::new(policy);
        assert_eq!(scene.engine.validate().findings, []);
        for (i, plant) in rows.iter().enumerate() {
            let (fault, slab, undo) = plant(&scene);
            let at = slab.map(|slab| scene.address(slab));
            let found = scene.engine.validate().findings;
            let here = found
                .iter()
                .any(|it| (it.kind, it.slab, it.cache) == (fault, at, scene.cache.id()));
            undo();
            assert!(here, "{policy:?} row {i}: {fault:?} is not in {found:?}");
            assert_eq!(scene.engine.validate().findings, [], "{policy:?} row {i}");
        }
        let mut more = (0..300).map(|_| scene.cache.alloc().unwrap()).collect();
        free_all(&scene.cache, &mut more);
        free_all(&scene.cache, &mut scene.live);
        assert_eq!(scene.engine.validate().findings, []);
        assert_eq!(scene.cache.destroy(), Ok(()));
        assert_eq!(scene.engine.snapshot().used, 0, "{policy:?}");
    }
}

#[test]
fn free_lists_and_counts() {
    each_fault(
        &Policy::ALL,
        &[
            link_out_of_the_slab,
            link_one_past_the_last,
            head_out_of_the_slab,
            link_to_itself,
            object_twice_in_a_list,
            list_cut_short,
            one_in_use_too_few,
            more_in_use_than_objects,
            more_objects_than_fit,
        ],
    );
}

#[test]
fn lists_of_slabs_and_the_page_map() {
    each_fault(
        &Policy::ALL,
        &[
            listed_and_frozen,
            listed_without_the_mark,
            marked_but_not_listed,
            of_another_cache,
            of_another_node,
            list_that_does_not_lead_back,
            list_in_a_circle,
            list_that_leads_nowhere,
            wrong_last_slab,
            wrong_number_of_partial_slabs,
            wrong_number_of_slabs,
            page_that_leads_elsewhere,
        ],
    );
}

#[test]
fn arrays_in_a_barn() {
    each_fault(
        &[Policy::Sheaves, Policy::Hybrid],
        &[
            barn_with_a_free_object,
            barn_with_an_inner_pointer,
            barn_with_a_foreign_pointer,
        ],
    );
}
