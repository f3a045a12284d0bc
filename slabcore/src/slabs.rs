//! What all policies do with slabs: make, free into, let go, list, discard.
//!
//! Who may list a slab: the thread that made it partial out of full (its free
//! found an empty list), or the thread that held it. Everybody else leaves the
//! lists alone unless `on_node` says the slab is on the node's list.

use crate::core::{CacheCore, Cx};
use crate::harden;
use crate::node::{Fate, Keep};
use crate::pages::{Run, state};
use crate::segment::{Event, event};
use crate::slab::{Chain, Links, NONE, Table, WasFull, Word, place};
use crate::stats::Stat;
use crate::sync::Ordering::{Relaxed, Release};
use crate::sys;
use crate::wake;

/// What is left to do after a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing.
    Done,
    /// The slab was full and now belongs on this slot's partial list.
    ToSlot(u32),
}

impl CacheCore {
    fn keep(&self) -> Keep {
        Keep {
            min_partial: self.min_partial.load(Relaxed),
            at_tail: self.add_to_tail,
        }
    }
}

/// A cache with more slabs of a node than this gets the memory of a new one at once, not by a fault
/// for each page: it will need it.
const POPULATED_FROM: u64 = 4;
/// Objects of this size or more may have room that is never used (`heap::sizes::grown`).
const POPULATED_BELOW: u32 = 2 * sys::PAGE as u32;

impl Cx<'_> {
    /// A new slab, frozen, its objects counted as taken and chained, unless they
    /// become bits. Gives the slab and the chain.
    pub fn new_slab(self) -> Option<(u32, Chain)> {
        let core = self.core;
        let node = self.node();
        let mut objects = core.objects;
        let publish = |run: Run, objects: u16| {
            let desc = core.desc(run.page);
            desc.reset(Word::taken(objects, true));
            desc.own_free.store(0, Relaxed);
            desc.owner.store(0, Relaxed);
            desc.on_node.store(0, Relaxed);
            desc.place.store(place::NOWHERE, Relaxed);
            desc.node.store(node as u32, Relaxed);
            if core.kind != 0 {
                core.engine.pages.set_kind(run.page, core.kind);
            }
            // Who finds it there finds the rest.
            desc.cache.store(core.id + 1, Release);
            let node = &core.nodes[node].node;
            add(&node.nr_slabs, 1);
            add(&node.total_objects, u64::from(objects));
        };
        let pages = &core.engine.pages;
        let mut run = pages.alloc(core.order, state::SLAB, |run| publish(run, objects));
        if run.is_none() && core.fallback_order < core.order {
            objects = core.objects_in(core.fallback_order);
            run = pages.alloc(core.fallback_order, state::SLAB, |run| {
                publish(run, objects);
            });
            if run.is_some() {
                event(Event::OrderFallback, core.id + 1, [0, 0]);
                self.inc(Stat::OrderFallback);
            }
        }
        self.add(Stat::AtomicOps, 2);
        let Some(run) = run else {
            event(Event::AllocFailed, core.id + 1, [0, 0]);
            self.inc(Stat::AllocFailed);
            return None;
        };
        let made = [run.page.into(), objects.into()];
        event(Event::SlabAllocated, core.id + 1, made);
        self.inc(Stat::AllocSlab);
        if run.clean
            && core.size < POPULATED_BELOW
            && core.nodes[node].node.nr_slabs.load(Relaxed) > POPULATED_FROM
        {
            sys::populate(pages.address(run.page), pages.run_bytes(run.page));
        }
        if core.hooks.is_some() || core.ctor.is_some() {
            (0..objects).for_each(|object| core.construct(run.page, object, objects));
        }
        Some((run.page, core.chain_new(run.page, objects)))
    }

    /// Gives an empty slab that is on no list back to the page allocator.
    pub fn discard(self, slab: u32) {
        let core = self.core;
        let desc = core.desc(slab);
        let objects = u64::from(desc.load().objects());
        let node = &core.part_of(slab).node;
        event(Event::SlabDiscarded, core.id + 1, [slab.into(), objects]);
        self.inc(Stat::FreeSlab);
        self.add(Stat::AtomicOps, 2);
        desc.retire();
        // SAFETY: no object of the slab is in use and it is on no list, so nobody can reach it.
        unsafe {
            core.engine.pages.free(slab, || {
                if core.kind != 0 {
                    core.engine.pages.set_kind(slab, 0);
                }
                desc.cache.store(0, Relaxed);
                add(&node.nr_slabs, 1u64.wrapping_neg());
                add(&node.total_objects, objects.wrapping_neg());
            });
        }
    }

    /// Frees a chain of objects of one slab into the slab's word.
    pub fn slab_free(self, slab: u32, chain: Chain, was_full: WasFull) -> After {
        let core = self.core;
        let desc = core.desc(slab);
        let node = &core.part_of(slab).node;
        let links = core.links(slab);
        let freed = desc.free_chain(&links, chain, was_full, core.wake, &node.list_lock);
        self.add(Stat::AtomicOps, u64::from(freed.retries) + 1);
        self.add(Stat::CmpxchgDoubleFail, u64::from(freed.retries));
        if freed.old.frozen() {
            self.inc(Stat::FreeFrozen);
            if freed.tell {
                self.tell(slab);
            }
            return After::Done;
        }
        if freed.guard.is_some() {
            self.add(Stat::AtomicOps, 2);
        }
        match node.after_free(&core.engine.pages, slab, freed, core.keep()) {
            Fate::Left => {}
            Fate::Mine => {
                if was_full == WasFull::FreezeForSlot {
                    self.inc(Stat::Freeze);
                }
                return After::ToSlot(slab);
            }
            Fate::Listed => self.inc(Stat::FreeAddPartial),
            Fate::Discard { was_listed } => {
                if was_listed {
                    self.inc(Stat::FreeRemovePartial);
                }
                self.discard(slab);
            }
        }
        After::Done
    }

    /// Tells the owner of a slab that enough objects are free.
    #[cold]
    fn tell(self, slab: u32) {
        let core = self.core;
        let told = wake::tell(&core.engine.pages, slab, |owner| {
            (owner >> 32 == u64::from(core.id + 1)).then(|| &core.row(owner as u32).queue.0)
        });
        self.add(Stat::AtomicOps, 2);
        if told {
            self.inc(Stat::RemoteWake);
        }
    }

    /// Lets go of a held slab, with the holder's own free objects.
    pub fn deactivate(self, slab: u32, own: Option<Chain>) {
        let links = self.core.links(slab);
        let word = self.core.desc(slab).thaw(&links, own);
        self.inc(Stat::Thaw);
        self.inc(Stat::AtomicOps);
        self.put_down(slab, word);
    }

    /// Finds a place for a slab that this thread held and has just thawed.
    pub fn put_down(self, slab: u32, word: Word) {
        let core = self.core;
        let node = &core.part_of(slab).node;
        match node.put_down(&core.engine.pages, slab, word, core.keep()) {
            Fate::Left | Fate::Mine => self.inc(Stat::DeactivateFull),
            Fate::Discard { .. } => {
                self.inc(Stat::DeactivateEmpty);
                self.discard(slab);
            }
            Fate::Listed => {
                self.add(Stat::AtomicOps, 2);
                self.inc(if core.add_to_tail {
                    Stat::DeactivateToTail
                } else {
                    Stat::DeactivateToHead
                });
            }
        }
    }

    /// Takes up to `out.len()` slabs with at least `objects` free ones off a node's
    /// list, `each` seeing them under the lock; gives their number.
    pub fn take_partial(
        self,
        node: usize,
        out: &mut [u32],
        objects: u32,
        each: impl Fn(u32),
    ) -> usize {
        let node = &self.core.nodes[node].node;
        if node.nr_partial() == 0 || out.is_empty() {
            return 0;
        }
        self.add(Stat::AtomicOps, 2);
        let held = node.list_lock.lock();
        let (mut got, mut free) = (0, 0);
        while got < out.len() && (got == 0 || free < objects) {
            let Some(slab) = node.pop(&held, &self.core.engine.pages) else {
                break;
            };
            each(slab);
            free += u32::from(self.core.desc(slab).load().free());
            out[got] = slab;
            got += 1;
        }
        got
    }

    /// The nodes in the order to look at them: this slot's first.
    pub fn node_order(self) -> impl Iterator<Item = usize> {
        let (first, nodes) = (self.node(), self.core.engine.nodes());
        (0..nodes).map(move |i| (first + i) % nodes)
    }

    /// Gives up empty slabs of a node's list and puts the fullest first.
    pub fn shrink_node(self, node: usize) {
        // As in the kernel: slabs with up to this many free objects are sorted.
        const PROMOTE: usize = 32;
        let core = self.core;
        let table = &core.engine.pages;
        let list = &core.nodes[node].node;
        let mut buckets = [0u32; PROMOTE];
        let mut empty = 0;
        let held = list.list_lock.lock();
        let mut at = list.first();
        while at != 0 {
            let desc = table.desc(at);
            let next = desc.next.load(Relaxed);
            let word = desc.load();
            if word.inuse() == 0 {
                list.remove(&held, table, at);
                desc.next.store(empty, Relaxed);
                empty = at;
            } else if let Some(bucket) = buckets.get_mut(usize::from(word.free()).max(1) - 1) {
                list.remove(&held, table, at);
                desc.next.store(*bucket, Relaxed);
                *bucket = at;
            }
            at = next;
        }
        for bucket in buckets.iter().rev() {
            let mut at = *bucket;
            while at != 0 {
                let next = table.desc(at).next.load(Relaxed);
                list.add(&held, table, at, false);
                at = next;
            }
        }
        drop(held);
        while empty != 0 {
            let next = table.desc(empty).next.load(Relaxed);
            self.discard(empty);
            empty = next;
        }
    }
}

impl CacheCore {
    /// Links the objects of a new slab, in the cache's order.
    fn chain_new(&self, slab: u32, objects: u16) -> Chain {
        if !self.links_new {
            // Its objects become bits (`own.rs`).
            return Chain {
                head: 0,
                tail: objects - 1,
                len: objects,
            };
        }
        let links = self.links(slab);
        let link = |order: &mut dyn Iterator<Item = u16>| {
            let head = order.next().unwrap_or(0);
            let mut tail = head;
            for object in order {
                links.set(tail, object);
                tail = object;
            }
            links.set(tail, NONE);
            Chain {
                head,
                tail,
                len: objects,
            }
        };
        let Some(order) = self.sequence else {
            return link(&mut (0..objects));
        };
        let start = harden::start(slab, self.seed, order.len());
        let (before, after) = order.split_at(start);
        let all = after.iter().chain(before).copied();
        // A slab of the fallback order has the lower ones only.
        link(&mut all.filter(|object| *object < objects))
    }
}

fn add(counter: &crate::sync::AtomicU64, n: u64) {
    // Under the page lock: no locked instruction is needed.
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}
