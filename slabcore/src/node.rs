//! The slabs of a cache on one node: a counted list of partial slabs under `list_lock`.
//!
//! Source of truth: `struct kmem_cache_node` of mm/slub.c. Full slabs are on no
//! list, as in a kernel without debugging.

use crate::slab::{Freed, NIL, NONE, Table, Word};
use crate::sync::{AtomicU32, AtomicU64, Guard, Lock, Ordering::Relaxed, Ordering::Release};

/// How a node keeps its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// An empty slab is kept while the list has fewer slabs than this.
    pub min_partial: u32,
    /// Slabs are added to the tail, not to the head.
    pub at_tail: bool,
}

/// What became of a slab, and what the thread that changed it has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing to do: it is where it was, or somebody else sees to it.
    Left,
    /// It is on the node's list now.
    Listed,
    /// It was full and belongs to the thread that freed into it.
    Mine,
    /// It is empty and on no list; the thread must discard it.
    Discard {
        /// It was on the list before.
        was_listed: bool,
    },
}

/// Partial slabs and totals of one node.
///
/// The list, its links in the descriptors, `on_node` of the descriptors and
/// `nr_partial` change only under `list_lock`.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Node {
    /// Protects the list.
    pub list_lock: Lock,
    head: AtomicU32,
    tail: AtomicU32,
    nr_partial: AtomicU32,
    /// Slabs of the node; changed under the page lock.
    pub nr_slabs: AtomicU64,
    /// Objects in these slabs, in use or not; changed under the page lock.
    pub total_objects: AtomicU64,
}

#[cfg(not(any(loom, shuttle)))]
crate::segment::layout::fields!(Node, "node": list_lock, head, tail, nr_partial, nr_slabs, total_objects);

impl Node {
    /// Slabs on the list; exact under the lock.
    pub fn nr_partial(&self) -> u32 {
        self.nr_partial.load(Relaxed)
    }

    /// First slab of the list; stable under the lock.
    pub fn first(&self) -> u32 {
        self.head.load(Relaxed)
    }

    /// Last slab of the list; stable under the lock.
    pub fn last(&self) -> u32 {
        self.tail.load(Relaxed)
    }

    /// Adds a slab that is on no list.
    pub fn add(&self, _held: &Guard<'_>, table: &impl Table, index: u32, at_tail: bool) {
        let desc = table.desc(index);
        let (prev, next) = if at_tail {
            (self.tail.load(Relaxed), NIL)
        } else {
            (NIL, self.head.load(Relaxed))
        };
        desc.prev.store(prev, Relaxed);
        desc.next.store(next, Relaxed);
        self.link(table, prev, next, index, index);
        // After the change of the word that let it be listed: see `Desc::marked_wrongly`.
        desc.on_node.store(1, Release);
        self.nr_partial.store(self.nr_partial() + 1, Relaxed);
    }

    /// Takes a slab off the list.
    pub fn remove(&self, _held: &Guard<'_>, table: &impl Table, index: u32) {
        let desc = table.desc(index);
        let (prev, next) = (desc.prev.load(Relaxed), desc.next.load(Relaxed));
        self.link(table, prev, next, next, prev);
        desc.on_node.store(0, Relaxed);
        self.nr_partial
            .store(self.nr_partial().saturating_sub(1), Relaxed);
    }

    /// Takes the first slab off the list.
    pub fn pop(&self, held: &Guard<'_>, table: &impl Table) -> Option<u32> {
        let first = self.first();
        (first != NIL).then(|| {
            self.remove(held, table, first);
            first
        })
    }

    /// Finds a place for a slab into which a chain has been freed.
    pub fn after_free(&self, table: &impl Table, index: u32, freed: Freed<'_>, keep: Keep) -> Fate {
        if freed.old.frozen() {
            return Fate::Left;
        }
        let was_full = freed.old.head() == NONE;
        let Some(held) = freed.guard else {
            return if was_full { Fate::Mine } else { Fate::Left };
        };
        if !was_full && !freed.on_node {
            // Somebody holds it and will find it empty.
            return Fate::Left;
        }
        if freed.new.inuse() == 0 && self.nr_partial() >= keep.min_partial {
            if freed.on_node {
                self.remove(&held, table, index);
            }
            return Fate::Discard {
                was_listed: freed.on_node,
            };
        }
        if !was_full {
            return Fate::Left;
        }
        self.add(&held, table, index, keep.at_tail);
        Fate::Listed
    }

    /// Finds a place for a slab that this thread held and thawed when its word was `word`.
    pub fn put_down(&self, table: &impl Table, index: u32, word: Word, keep: Keep) -> Fate {
        if word.head() == NONE {
            // From now on whoever frees into it may list it.
            return Fate::Left;
        }
        if word.inuse() == 0 && self.nr_partial() >= keep.min_partial {
            return Fate::Discard { was_listed: false };
        }
        let held = self.list_lock.lock();
        self.add(&held, table, index, keep.at_tail);
        Fate::Listed
    }

    /// Makes `after_prev` follow `prev` and `before_next` precede `next`.
    fn link(&self, table: &impl Table, prev: u32, next: u32, after_prev: u32, before_next: u32) {
        match prev {
            NIL => self.head.store(after_prev, Relaxed),
            _ => table.desc(prev).next.store(after_prev, Relaxed),
        }
        match next {
            NIL => self.tail.store(before_next, Relaxed),
            _ => table.desc(next).prev.store(before_next, Relaxed),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::slab::Desc;

    struct Descs(Vec<Desc>);
    impl Table for Descs {
        fn desc(&self, index: u32) -> &Desc {
            &self.0[index as usize]
        }
    }

    #[test]
    fn slabs_come_back_in_list_order_and_are_counted() {
        let table = Descs((0..5).map(|_| Desc::default()).collect());
        let node = Node::default();
        let held = node.list_lock.lock();
        node.add(&held, &table, 1, false);
        node.add(&held, &table, 2, false);
        node.add(&held, &table, 3, true);
        node.add(&held, &table, 4, true);
        node.remove(&held, &table, 1);
        assert_eq!(node.nr_partial(), 3);
        assert_eq!((node.first(), node.last()), (2, 4));
        let order: Vec<_> = std::iter::from_fn(|| node.pop(&held, &table)).collect();
        assert_eq!(order, [2, 3, 4]);
        assert_eq!(
            (node.nr_partial(), node.first(), node.last()),
            (0, NIL, NIL)
        );
        assert!(table.0.iter().all(|d| d.on_node.load(Relaxed) == 0));
    }
}
