//! Models of the parts that threads share, run under every schedule (up to a bound).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p slabctl-slabcore --release --test loom`
//!
//! Links are loom cells: a link read and written without order between is an
//! error, not only a wrong list.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use slabcore::barn::{Barn, Exchange};
use slabcore::node::Node;
use slabcore::slab::{Chain, Desc, Links, NONE, Table, WasFull, Word};
use slabcore::sync::Ordering::Relaxed;
use slabcore::wake::{self, WakeQueue};

struct Cells(Vec<UnsafeCell<u16>>);

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

struct Descs(Vec<Desc>);

impl Table for Descs {
    fn desc(&self, index: u32) -> &Desc {
        &self.0[index as usize]
    }
}

/// One cache with one slab, index 1, and queues of two slots, 1 and 2.
struct World {
    table: Descs,
    links: Cells,
    node: Node,
    queues: [WakeQueue; 3],
}

const SLAB: u32 = 1;
const WAKE: u16 = 1;

impl World {
    fn new(objects: u16, frozen: bool) -> Arc<Self> {
        let table = Descs((0..2).map(|_| Desc::default()).collect());
        table.desc(SLAB).reset(Word::taken(objects, frozen));
        Arc::new(Self {
            table,
            links: Cells((0..objects).map(|_| UnsafeCell::new(NONE)).collect()),
            node: Node::default(),
            queues: Default::default(),
        })
    }

    fn slab(&self) -> &Desc {
        self.table.desc(SLAB)
    }

    /// As `slab_free` does, without discarding.
    fn free(&self, chain: Chain) {
        let lock = &self.node.list_lock;
        let freed = self
            .slab()
            .free_chain(&self.links, chain, WasFull::ToNode, WAKE, lock);
        if freed.tell {
            wake::tell(&self.table, SLAB, |owner| {
                (owner != 0).then(|| &self.queues[owner as usize])
            });
        }
        if let Some(held) = freed.guard
            && freed.old.head() == NONE
        {
            self.node.add(&held, &self.table, SLAB, false);
        }
    }

    /// As `put_down` does, without discarding.
    fn put_down(&self, word: Word) {
        if word.head() != NONE {
            let held = self.node.list_lock.lock();
            self.node.add(&held, &self.table, SLAB, false);
        }
    }

    /// As the owner whose list is spent does: what it took.
    fn spent(&self) -> u16 {
        if self.slab().load().asks(WAKE) {
            return 0;
        }
        self.slab().take_or_ask(WAKE).map_or(0, |(_, len)| len)
    }

    /// Length of the word's list; it must fit the counts.
    fn free_objects(&self) -> u16 {
        let word = self.slab().load();
        let (mut n, mut at) = (0, word.head());
        while at != NONE {
            n += 1;
            at = self.links.get(at);
        }
        assert_eq!(n, word.free());
        n
    }
}

#[test]
fn two_frees_into_a_full_slab_list_it_once() {
    loom::model(|| {
        let world = World::new(3, false);
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(0)));
        world.free(Chain::one(1));
        thread.join().unwrap();
        assert_eq!(world.free_objects(), 2);
        assert_eq!(world.node.nr_partial(), 1);
        assert_eq!(world.slab().on_node.load(Relaxed), 1);
    });
}

#[test]
fn a_free_and_a_holder_that_takes_lose_nothing() {
    loom::model(|| {
        let world = World::new(3, true);
        world.free(Chain::one(0));
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(1)));
        let (head, taken) = world.slab().take_all(true);
        assert_eq!(head == NONE, taken == 0);
        let mut at = head;
        for _ in 0..taken {
            at = world.links.get(at);
        }
        assert_eq!(at, NONE);
        thread.join().unwrap();
        assert_eq!(taken + world.free_objects(), 2);
        assert!(world.slab().load().frozen());
    });
}

#[test]
fn taking_some_below_concurrent_frees_keeps_the_rest() {
    loom::model(|| {
        let world = World::new(4, false);
        world.free(Chain::one(0));
        world.free(Chain::one(1));
        {
            let held = world.node.list_lock.lock();
            assert_eq!(world.node.pop(&held, &world.table), Some(SLAB));
        }
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(2)));
        let (_, got, left) = world.slab().take_some(&world.links, 2);
        assert_eq!(got, 2);
        if left {
            world.put_down(world.slab().load());
        }
        thread.join().unwrap();
        assert_eq!(world.free_objects(), 1);
        assert_eq!(
            world.node.nr_partial(),
            1,
            "listed by exactly one of the two"
        );
    });
}

#[test]
fn letting_go_beside_a_free_lists_the_slab_once() {
    loom::model(|| {
        let world = World::new(3, true);
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(1)));
        let word = world.slab().thaw(&world.links, Some(Chain::one(0)));
        world.put_down(word);
        thread.join().unwrap();
        assert_eq!(world.free_objects(), 2);
        assert_eq!(world.node.nr_partial(), 1);
    });
}

#[test]
fn letting_go_of_a_full_slab_beside_a_free_lists_it_once() {
    loom::model(|| {
        let world = World::new(3, true);
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(1)));
        let word = world.slab().thaw(&world.links, None);
        world.put_down(word);
        thread.join().unwrap();
        assert_eq!(world.node.nr_partial(), 1);
    });
}

#[test]
fn an_owner_that_found_a_slab_full_is_told() {
    loom::model(|| {
        let world = World::new(3, true);
        world.queues[1].adopt(&world.table, SLAB, 1);
        let threads: Vec<_> = (0..2)
            .map(|object| {
                let other = world.clone();
                thread::spawn(move || other.free(Chain::one(object)))
            })
            .collect();
        let taken = world.spent();
        let told = world.queues[1].take(&world.table);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(taken + world.free_objects(), 2);
        // What is free now is known to the owner: it took it and goes on with the slab, it has
        // been told, or it is in the queue.
        let queued = world.queues[1].take(&world.table);
        if world.free_objects() > 0 {
            assert!(taken > 0 || told.is_some() || queued.is_some());
        }
        assert_eq!(world.queues[1].take(&world.table), None, "queued once");
    });
}

#[test]
fn a_slab_found_full_twice_is_queued_once() {
    // All schedules take two minutes (and pass); three switches find what is known to break.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = World::new(3, true);
        world.queues[1].adopt(&world.table, SLAB, 1);
        assert_eq!(world.spent(), 0);
        let threads: Vec<_> = (0..2)
            .map(|object| {
                let other = world.clone();
                thread::spawn(move || other.free(Chain::one(object)))
            })
            .collect();
        // The owner comes by on its own and finds the slab full again, perhaps before the
        // thread that cleared the wake bit has queued it.
        let taken = world.slab().take_all(true).1 + world.spent();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(taken + world.free_objects(), 2);
        let first = world.queues[1].take(&world.table);
        assert_eq!(world.queues[1].take(&world.table), None, "queued once");
        let word = world.slab().load();
        assert!(word.free() == 0 || first.is_some() || taken > 0);
    });
}

#[test]
fn an_owner_that_ends_beside_a_free_leaves_no_stale_queue() {
    loom::model(|| {
        let world = World::new(3, true);
        world.queues[1].adopt(&world.table, SLAB, 1);
        assert_eq!(world.spent(), 0);
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(0)));
        // The slot ends: as `give_up` in the hybrid policy.
        world.queues[1].give_up(&world.table, SLAB);
        let word = world.slab().thaw(&world.links, None);
        world.put_down(word);
        thread.join().unwrap();
        assert!(world.queues[1].is_empty());
        assert_eq!(world.slab().queued.load(Relaxed), 0);
        assert_eq!(world.free_objects(), 1);
        assert_eq!(world.node.nr_partial(), 1, "another slot finds it");
    });
}

#[test]
fn a_slab_that_changes_owner_beside_a_free_is_told_to_the_right_one() {
    loom::model(|| {
        let world = World::new(3, true);
        world.queues[1].adopt(&world.table, SLAB, 1);
        assert_eq!(world.spent(), 0);
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(0)));
        world.queues[1].give_up(&world.table, SLAB);
        let word = world.slab().thaw(&world.links, None);
        world.put_down(word);
        // Slot 2 adopts it, if it is listed by now.
        let popped = {
            let held = world.node.list_lock.lock();
            world.node.pop(&held, &world.table)
        };
        let mut taken = 0;
        if popped.is_some() {
            taken = world.slab().take_all(true).1;
            world.queues[2].adopt(&world.table, SLAB, 2);
        }
        thread.join().unwrap();
        assert!(world.queues[1].is_empty());
        assert_eq!(taken + world.free_objects(), 1);
        if popped.is_none() {
            assert_eq!(world.node.nr_partial(), 1);
        }
    });
}

#[test]
fn sheaves_are_neither_lost_nor_doubled() {
    loom::model(|| {
        let barn = Arc::new(Barn::default());
        assert!(barn.put_full(10));
        let workers: Vec<_> = [1usize, 2]
            .into_iter()
            .map(|empty| {
                let barn = barn.clone();
                thread::spawn(move || match barn.full_for_empty(empty, empty == 1) {
                    Exchange::Swapped(full) => match barn.empty_for_full(full, empty == 2) {
                        Exchange::Swapped(back) => back,
                        Exchange::NoEmpty | Exchange::Refused => full,
                    },
                    Exchange::NoEmpty | Exchange::Refused => empty,
                })
            })
            .collect();
        let mut all: Vec<usize> = workers.into_iter().map(|w| w.join().unwrap()).collect();
        all.extend(std::iter::from_fn(|| barn.take_full()));
        all.extend(std::iter::from_fn(|| barn.take_empty()));
        all.sort_unstable();
        assert_eq!(all, [1, 2, 10]);
    });
}
