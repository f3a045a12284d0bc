//! The path of debug caches: one object at a time, under the node's list lock.
//!
//! Source of truth: `alloc_single_from_partial`, `alloc_single_from_new_slab`
//! and `free_to_partial_list` of mm/slub.c in Linux 6.12. Slabs are never
//! frozen and slots hold nothing, so a debug cache can be checked byte by byte
//! while it is used. What bytes should be is the hooks' business.

use crate::cache::with_slot;
use crate::core::{CacheCore, Cx};
use crate::debug::operation::Operation;
use crate::hooks::{DebugHooks, Misplaced, ObjectRef, SlabRef, Verdict};
use crate::slab::{Chain, NIL, NONE, WasFull};
use crate::stats::Stat;
use crate::sync::{Guard, Ordering::Acquire, Ordering::Relaxed};
use crate::validate::Seen;

/// Allocates one object for `requested` bytes; 0 is failure. No lock is held.
#[inline(never)]
pub(crate) fn alloc(core: &CacheCore, hooks: &dyn DebugHooks, requested: usize) -> usize {
    if hooks.fails() {
        with_slot(core, |cx| cx.inc(Stat::AllocFailed));
        return 0;
    }
    let mut op = Operation::new();
    hooks.begin(&mut op);
    let object = with_slot(core, |cx| debug_alloc(cx, requested, &mut op));
    hooks.end(&mut op);
    object
}

/// Frees one object, or what claims to be one. No lock is held.
#[inline(never)]
pub(crate) fn free(core: &CacheCore, hooks: &dyn DebugHooks, address: usize) {
    let mut op = Operation::new();
    hooks.begin(&mut op);
    match core.find_place(address) {
        Ok((slab, object)) => with_slot(core, |cx| debug_free(cx, slab, object, &mut op)),
        Err(place) => with_slot(core, |_| {
            hooks.on_bad_free(core.id, address, place, &mut op);
        }),
    }
    hooks.end(&mut op);
}

/// Changes the requested size of a live object that stays where it is.
pub(crate) fn resize(core: &CacheCore, address: usize, requested: usize) {
    if let (Some(hooks), Some((slab, object))) = (core.hooks, core.locate_checked(address)) {
        let _held = core.part_of(slab).node.list_lock.lock();
        hooks.on_resize(&core.object_ref(slab, object), requested);
    }
}

/// Bytes asked for of an object, or those of an object if that is not kept; `None` if the
/// address is none.
pub(crate) fn requested(core: &CacheCore, address: usize) -> Option<usize> {
    let (slab, object) = core.locate_checked(address)?;
    let size = core.object_size as usize;
    let _held = core.part_of(slab).node.list_lock.lock();
    if !core.at_rest(slab) {
        return None;
    }
    let tracks = core.hooks?.tracks(&core.object_ref(slab, object));
    let kept = tracks.and_then(|tracks| tracks.requested);
    Some(kept.map_or(size, |requested| requested.min(size)))
}

/// Allocates in an operation.
pub(crate) fn debug_alloc(cx: Cx<'_>, requested: usize, op: &mut Operation) -> usize {
    let core = cx.core;
    loop {
        let node = &core.nodes[cx.node()].node;
        cx.add(Stat::AtomicOps, 3);
        let held = node.list_lock.lock();
        let slab = node.first();
        if slab == NIL {
            drop(held);
            // A new slab calls the constructor, so not under the lock.
            let Some((slab, all)) = cx.new_slab() else {
                return 0;
            };
            cx.deactivate_new(slab, all);
            continue;
        }
        if !core.head_is_good(slab) {
            core.mend(&held, slab, &mut Seen::new(), op, &mut |_| ());
        }
        if core.desc(slab).load().head() == NONE {
            // Nothing is left of its list.
            node.remove(&held, &core.engine.pages, slab);
            continue;
        }
        let object = take_one(cx, &held, slab);
        let at = core.object_ref(slab, object);
        let fine = core
            .hooks
            .is_none_or(|hooks| hooks.on_alloc(&at, requested, op) == Verdict::Fine);
        drop(held);
        if fine {
            cx.inc(Stat::AllocSlowpath);
            return core.address(slab, object) + core.object_offset as usize;
        }
    }
}

/// Pops one object of a listed slab, which leaves the list when it is full.
fn take_one(cx: Cx<'_>, held: &Guard<'_>, slab: u32) -> u16 {
    let core = cx.core;
    let (object, _, left) = core.desc(slab).take_some(&core.links(slab), 1);
    if !left {
        core.part_of(slab)
            .node
            .remove(held, &core.engine.pages, slab);
    }
    object
}

/// Frees an object in an operation.
pub(crate) fn debug_free(cx: Cx<'_>, slab: u32, object: u16, op: &mut Operation) {
    let core = cx.core;
    let part = core.part_of(slab);
    let node = &part.node;
    let desc = core.desc(slab);
    cx.add(Stat::AtomicOps, 3);
    let held = node.list_lock.lock();
    // An object that was freed before may have taken its slab along.
    let there = core.at_rest(slab) && object < desc.load().objects();
    let Some(hooks) = core.hooks.filter(|_| there) else {
        drop(held);
        if let Some(hooks) = core.hooks {
            let address = core.address(slab, object) + core.object_offset as usize;
            hooks.on_bad_free(core.id, address, Misplaced::Foreign, op);
        }
        return;
    };
    let mut listed = false;
    if hooks.walks_lists() {
        let (sound, found) = core.scan(slab, object);
        listed = found;
        if !sound {
            let mut seen = Seen::new();
            core.mend(&held, slab, &mut seen, op, &mut |_| ());
            listed = seen.has(object);
            core.unlist_full(&held, slab);
        }
    }
    match hooks.on_free(&core.object_ref(slab, object), listed, op) {
        Verdict::Fine => {}
        Verdict::Quarantine => {
            cx.inc(Stat::FreeSlowpath);
            return;
        }
        Verdict::Refuse => return,
    }
    cx.inc(Stat::FreeSlowpath);
    let links = core.links(slab);
    // Held already: all changes of this cache's words are under this lock.
    let unused = crate::sync::Lock::new();
    let freed = desc.free_chain(&links, Chain::one(object), WasFull::ToSlot, 0, &unused);
    let was_full = freed.old.head() == NONE;
    drop(freed.guard);
    if freed.new.inuse() == 0 && node.nr_partial() > core.min_partial.load(Relaxed) {
        if !was_full {
            node.remove(&held, &core.engine.pages, slab);
            cx.inc(Stat::FreeRemovePartial);
        }
        drop(held);
        cx.discard(slab);
    } else if was_full {
        node.add(&held, &core.engine.pages, slab, true);
        cx.inc(Stat::FreeAddPartial);
    }
}

impl Cx<'_> {
    /// Lists a new slab with all its objects.
    fn deactivate_new(self, slab: u32, all: Chain) {
        let word = self.core.desc(slab).thaw(&self.core.links(slab), Some(all));
        debug_assert_eq!(word.inuse(), 0);
        let node = &self.core.part_of(slab).node;
        let held = node.list_lock.lock();
        node.add(&held, &self.core.engine.pages, slab, false);
    }
}

impl CacheCore {
    /// What a hook is told of a slab.
    pub fn slab_ref(&self, slab: u32) -> SlabRef {
        let desc = self.desc(slab);
        let word = desc.load();
        SlabRef {
            cache: self.id,
            address: self.engine.pages.address(slab),
            bytes: self.engine.pages.run_bytes(slab),
            objects: word.objects(),
            inuse: word.inuse(),
            head: word.head(),
            node: desc.node.load(Relaxed),
            descriptor: std::ptr::from_ref(desc) as usize,
        }
    }

    /// What a hook is told of an object.
    pub fn object_ref(&self, slab: u32, index: u16) -> ObjectRef {
        let of = self.slab_ref(slab);
        ObjectRef {
            slab: of.address,
            slab_bytes: of.bytes,
            index,
            objects: of.objects,
            slot: self.address(slab, index),
            slot_bytes: self.size as usize,
            of,
        }
    }

    /// Slab and index of a pointer, if it is exactly an object of this cache.
    pub fn locate_checked(&self, address: usize) -> Option<(u32, u16)> {
        self.find_place(address).ok()
    }

    /// Slab and index of a pointer, or what it is instead.
    fn find_place(&self, address: usize) -> Result<(u32, u16), Misplaced> {
        let pages = &self.engine.pages;
        let (slab, offset) = pages.run_of(address);
        let owner = self.desc(slab).cache.load(Relaxed);
        if slab == NIL || owner == 0 {
            return Err(Misplaced::Foreign);
        }
        if owner != self.id + 1 {
            return Err(Misplaced::OtherCache(self.slab_ref(slab)));
        }
        let size = self.size as usize;
        let offset = offset.checked_sub(self.object_offset as usize);
        offset
            .filter(|offset| offset.is_multiple_of(size))
            .map(|offset| offset / size)
            .filter(|&index| index < usize::from(self.desc(slab).load().objects()))
            .map(|index| (slab, index as u16))
            .ok_or_else(|| Misplaced::Inside(self.slab_ref(slab)))
    }

    /// Whether a slab of this debug cache may be looked at; its node's lock is held.
    /// Not so a slab that is being made or discarded.
    pub fn at_rest(&self, slab: u32) -> bool {
        let desc = self.desc(slab);
        if desc.cache.load(Acquire) != self.id + 1 {
            return false;
        }
        let word = desc.load();
        !word.frozen() && (desc.on_node.load(Relaxed) == 1 || word.inuse() != 0)
    }

    /// Objects of a slab of `order`.
    pub fn objects_in(&self, order: u32) -> u16 {
        crate::order::objects(self.size as usize, order).min(crate::order::MAX_OBJECTS) as u16
    }

    /// Makes a new object what free objects of the cache are.
    pub fn construct(&self, slab: u32, index: u16, objects: u16) {
        if let Some(hooks) = self.hooks {
            let mut at = self.object_ref(slab, index);
            at.objects = objects;
            hooks.on_new(&at);
        }
        if let Some(ctor) = self.ctor {
            let at = self.address(slab, index) + self.object_offset as usize;
            ctor(at as *mut u8);
        }
    }
}
