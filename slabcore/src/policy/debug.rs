//! The path of debug caches: one object at a time, under the node's list lock.
//!
//! Source of truth: `alloc_single_from_partial`, `alloc_single_from_new_slab`
//! and `free_to_partial_list` of mm/slub.c in Linux 6.12. Slabs are never
//! frozen and slots hold nothing, so a debug cache can be checked byte by byte
//! while it is used. What is checked is the hooks' business.

use crate::core::Cx;
use crate::hooks::{ObjectRef, Verdict};
use crate::slab::{Chain, NIL, NONE, WasFull};
use crate::stats::Stat;
use crate::sync::{Guard, Ordering::Relaxed};

/// Allocates one object for `requested` bytes; 0 is failure.
pub(crate) fn debug_alloc(cx: Cx<'_>, requested: usize) -> usize {
    let core = cx.core;
    loop {
        let node = &core.nodes[cx.node()].node;
        cx.add(Stat::AtomicOps, 3);
        let held = node.list_lock.lock();
        let slab = node.first();
        if slab == NIL {
            drop(held);
            // A new slab calls the constructor, so not under the lock.
            let Some((slab, _)) = cx.new_slab() else {
                return 0;
            };
            cx.deactivate_new(slab);
            continue;
        }
        let object = take_one(cx, &held, slab);
        let at = core.object_ref(slab, object);
        let fine = core
            .hooks
            .is_none_or(|hooks| hooks.on_alloc(&at, requested) == Verdict::Fine);
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

/// Frees one object, or what claims to be one.
pub(crate) fn debug_free(cx: Cx<'_>, address: usize) {
    let core = cx.core;
    let Some((slab, object)) = core.locate_checked(address) else {
        if let Some(hooks) = core.hooks {
            hooks.on_bad_free(address);
        }
        return;
    };
    let part = core.part_of(slab);
    let node = &part.node;
    let desc = core.desc(slab);
    cx.add(Stat::AtomicOps, 3);
    let held = node.list_lock.lock();
    let at = core.object_ref(slab, object);
    if core
        .hooks
        .is_some_and(|hooks| hooks.on_free(&at) == Verdict::Quarantine)
    {
        return;
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
    fn deactivate_new(self, slab: u32) {
        let objects = self.core.desc(slab).load().objects();
        let all = Chain {
            head: 0,
            tail: objects - 1,
            len: objects,
        };
        let word = self.core.desc(slab).thaw(&self.core.links(slab), Some(all));
        debug_assert_eq!(word.inuse(), 0);
        let node = &self.core.part_of(slab).node;
        let held = node.list_lock.lock();
        node.add(&held, &self.core.engine.pages, slab, false);
    }
}

impl crate::core::CacheCore {
    /// What a hook is told of an object.
    pub fn object_ref(&self, slab: u32, index: u16) -> ObjectRef {
        let objects = self.desc(slab).load().objects();
        ObjectRef {
            slab: self.engine.pages.address(slab),
            slab_bytes: self.engine.pages.run_bytes(slab),
            index,
            objects,
            slot: self.address(slab, index),
            slot_bytes: self.size as usize,
        }
    }

    /// Slab and index of a pointer, if it is exactly an object of this cache.
    pub fn locate_checked(&self, address: usize) -> Option<(u32, u16)> {
        let pages = &self.engine.pages;
        pages.page_of(address)?;
        let slab = pages.head_of(address);
        if slab == NIL || self.desc(slab).cache.load(Relaxed) != self.id + 1 {
            return None;
        }
        let offset = (address - pages.address(slab)).checked_sub(self.object_offset as usize)?;
        let index = offset / self.size as usize;
        let fits = offset.is_multiple_of(self.size as usize)
            && index < usize::from(self.desc(slab).load().objects());
        fits.then_some((slab, index as u16))
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
