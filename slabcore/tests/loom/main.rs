//! Models of the parts that threads share, run under every schedule (up to a bound).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p slabctl-slabcore --release --test loom`
//!
//! What is modelled is the crate's own code: words, nodes, wake queues, barns and the walk of a
//! validation. Only the world around it is made here. Links are loom cells: a link read and
//! written without order between is an error, not only a wrong list. `slabcore/mutants.sh`
//! breaks the code in one place after the other and expects a model to fail.
#![cfg(loom)]

mod adoption;
mod barn;
mod generation;
mod slab;
mod validate;
mod wake;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use slabcore::node::{Fate, Keep, Node};
use slabcore::slab::{Chain, Desc, Links, NONE, Table, WasFull, Word};
use slabcore::sync::Ordering::Relaxed;
use slabcore::wake::{self as queue, WakeQueue};
use std::sync::atomic::AtomicU32;

/// Models two pieces of work at once, then `check` sees what they left.
///
/// Twice, with the roles exchanged: loom runs one of them first, and of a variable it remembers
/// only the last access; a thread that reads what it then writes hides earlier reads by others,
/// and schedules in which these come later are not tried. (Seen: with the reader first, no
/// schedule showed a mark that `Node::add` had just made.)
pub(crate) fn beside<W, A, B>(
    make: fn() -> Arc<W>,
    a: fn(&W) -> A,
    b: fn(&W) -> B,
    check: fn(&W, A, B),
) where
    W: 'static,
    A: 'static,
    B: 'static,
{
    loom::model(move || {
        let world = make();
        let other = world.clone();
        let thread = loom::thread::spawn(move || a(&other));
        let from_b = b(&world);
        let from_a = thread.join().unwrap();
        check(&world, from_a, from_b);
    });
    loom::model(move || {
        let world = make();
        let other = world.clone();
        let thread = loom::thread::spawn(move || b(&other));
        let from_a = a(&world);
        let from_b = thread.join().unwrap();
        check(&world, from_a, from_b);
    });
}

pub(crate) struct Cells(Vec<UnsafeCell<u16>>);

impl Links for Cells {
    fn get(&self, object: u16) -> u16 {
        // SAFETY: loom checks that no write is concurrent.
        self.0[usize::from(object)].with(|cell| unsafe { *cell })
    }
    fn set(&self, object: u16, next: u16) {
        // SAFETY: loom checks that no access is concurrent.
        self.0[usize::from(object)].with_mut(|cell| unsafe { *cell = next });
    }
}

pub(crate) struct Descs(Vec<Desc>);

impl Table for Descs {
    fn desc(&self, index: u32) -> &Desc {
        &self.0[index as usize]
    }
}

/// One cache with one slab, index 1, and queues of three slots, 1 to 3.
pub(crate) struct World {
    pub(crate) table: Descs,
    pub(crate) links: Cells,
    pub(crate) node: Node,
    pub(crate) queues: [WakeQueue; 4],
    keep: Keep,
    /// Times the slab was discarded; no part of the model.
    discards: AtomicU32,
}

pub(crate) const SLAB: u32 = 1;
pub(crate) const WAKE: u16 = 1;

impl World {
    /// A slab of which all objects are in use, in a node that keeps empty slabs.
    pub(crate) fn new(objects: u16, frozen: bool) -> Arc<Self> {
        Self::keeping(objects, frozen, 9)
    }

    pub(crate) fn keeping(objects: u16, frozen: bool, min_partial: u32) -> Arc<Self> {
        let table = Descs((0..2).map(|_| Desc::default()).collect());
        table.desc(SLAB).reset(Word::taken(objects, frozen));
        Arc::new(Self {
            table,
            links: Cells((0..objects).map(|_| UnsafeCell::new(NONE)).collect()),
            node: Node::default(),
            queues: Default::default(),
            keep: Keep {
                min_partial,
                at_tail: false,
            },
            discards: AtomicU32::new(0),
        })
    }

    pub(crate) fn slab(&self) -> &Desc {
        self.table.desc(SLAB)
    }

    /// As `slab_free` does.
    pub(crate) fn free(&self, chain: Chain) {
        let lock = &self.node.list_lock;
        let freed = self
            .slab()
            .free_chain(&self.links, chain, WasFull::ToNode, WAKE, lock);
        if freed.tell {
            queue::tell(&self.table, SLAB, |owner| {
                (owner != 0).then(|| &self.queues[owner as usize])
            });
        }
        let fate = self.node.after_free(&self.table, SLAB, freed, self.keep);
        self.discard_if(fate);
    }

    /// As `deactivate` does.
    pub(crate) fn deactivate(&self, own: Option<Chain>) {
        let word = self.slab().thaw(&self.links, own);
        self.put_down(word);
    }

    pub(crate) fn put_down(&self, word: Word) {
        let fate = self.node.put_down(&self.table, SLAB, word, self.keep);
        self.discard_if(fate);
    }

    /// A discarded slab becomes another one at once, of no objects: nobody may touch it.
    fn discard_if(&self, fate: Fate) {
        if let Fate::Discard { .. } = fate {
            assert_eq!(self.slab().load().inuse(), 0);
            self.slab().reset(Word::taken(0, false));
            self.discards.fetch_add(1, Relaxed);
        }
    }

    /// As a slot that ends, or has enough, gives up a slab that it owns.
    pub(crate) fn give_up(&self, slot: usize) {
        self.queues[slot].give_up(&self.table, SLAB);
        self.deactivate(None);
    }

    /// Takes a slab off the node's list.
    pub(crate) fn pop(&self) -> Option<u32> {
        let held = self.node.list_lock.lock();
        self.node.pop(&held, &self.table)
    }

    /// As a slot adopts a slab of the node's list, if there is one; gives its objects.
    pub(crate) fn adopt(&self, slot: usize) -> Option<u16> {
        self.pop().map(|slab| {
            let (_, taken) = self.table.desc(slab).take_all(true);
            self.queues[slot].adopt(&self.table, slab, slot as u64);
            taken
        })
    }

    /// Length of the word's list; it must fit the counts.
    pub(crate) fn free_objects(&self) -> u16 {
        let word = self.slab().load();
        let (mut n, mut at) = (0, word.head());
        while at != NONE {
            n += 1;
            at = self.links.get(at);
        }
        assert_eq!(n, word.free());
        n
    }

    /// Times the slab was discarded; after that it must have been left alone.
    pub(crate) fn discards(&self) -> u32 {
        let n = self.discards.load(Relaxed);
        if n > 0 {
            let word = self.slab().load();
            assert_eq!((word.objects(), word.head()), (0, NONE), "touched later");
            assert_eq!(self.slab().on_node.load(Relaxed), 0);
            assert_eq!(self.node.nr_partial(), 0);
        }
        n
    }
}
