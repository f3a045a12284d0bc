//! Validation beside frees, takers and new lives of a slab: no healthy slab is found broken.
//!
//! Here links are atomics read and written relaxed, as in the engine, since a walk may read
//! what a user writes to an object; whether it counts is decided by the word.

use crate::{World, beside};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU16;
use slabcore::slab::{Chain, Desc, Links, NONE, WasFull, Word};
use slabcore::sync::{Lock, Ordering::Relaxed};
use slabcore::walk::{Broken, Seen, steady, walk};

struct Atomics(Vec<AtomicU16>);

impl Links for Atomics {
    fn get(&self, object: u16) -> u16 {
        self.0[usize::from(object)].load(Relaxed)
    }
    fn set(&self, object: u16, next: u16) {
        self.0[usize::from(object)].store(next, Relaxed);
    }
}

struct Slab {
    desc: Desc,
    links: Atomics,
    list_lock: Lock,
}

impl Slab {
    /// A frozen slab of two objects, the first of which is free.
    fn new() -> Arc<Self> {
        let slab = Self {
            desc: Desc::default(),
            links: Atomics((0..2).map(|_| AtomicU16::new(NONE)).collect()),
            list_lock: Lock::new(),
        };
        slab.desc.reset(Word::taken(2, true));
        slab.free(0);
        Arc::new(slab)
    }

    fn free(&self, object: u16) {
        let chain = Chain::one(object);
        self.desc
            .free_chain(&self.links, chain, WasFull::ToNode, 9, &self.list_lock);
    }

    /// As validation checks a slab.
    fn look(&self) -> Option<Result<(), Broken>> {
        steady(&self.desc, 1, |word| {
            walk(&self.links, word, &mut Seen::new())
        })
    }
}

/// What a program writes into an object that it has been given.
const USED: u16 = 1;

fn clean_beside(work: fn(&Slab)) {
    beside(Slab::new, work, Slab::look, |slab, (), seen| {
        assert!(matches!(seen, None | Some(Ok(()))), "{seen:?}");
        assert_eq!(slab.look(), Some(Ok(())));
    });
}

#[test]
fn a_walk_beside_frees_is_clean() {
    clean_beside(|slab| slab.free(1));
}

#[test]
fn a_walk_beside_a_taker_of_all_is_clean() {
    clean_beside(|slab| {
        let (object, _) = slab.desc.take_all(true);
        slab.links.set(object, USED);
        slab.free(object);
    });
}

#[test]
fn a_walk_beside_an_owner_is_clean() {
    clean_beside(|slab| {
        if let Some((object, _)) = slab.desc.take_or_ask(1) {
            slab.links.set(object, USED);
        }
    });
}

#[test]
fn a_walk_beside_a_taker_of_some_is_clean() {
    clean_beside(|slab| {
        let (object, _, _) = slab.desc.take_some(&slab.links, 1);
        slab.links.set(object, USED);
    });
}

#[test]
fn a_walk_beside_a_new_life_is_clean() {
    clean_beside(|slab| {
        // Discarded and made again, as `new_slab`, which writes all links.
        slab.desc.reset(Word::taken(2, true));
        slab.links.set(0, USED);
        slab.links.set(1, NONE);
        slab.desc.thaw(
            &slab.links,
            Some(Chain {
                head: 0,
                tail: 1,
                len: 2,
            }),
        );
    });
}

#[test]
fn a_walk_beside_a_discard_is_clean() {
    clean_beside(|slab| {
        // The memory may be given back at once, and then reads as zero.
        slab.desc.retire();
        slab.links.set(0, 0);
    });
}

/// Slabs on a node's list are checked under its lock, which keeps takers away: a walk needs
/// no proof, and reads no link that is written meanwhile.
#[test]
fn a_walk_under_the_list_lock_meets_no_writer() {
    fn check(world: &World) {
        let _held = world.node.list_lock.lock();
        if world.node.first() != 0 {
            let word = world.slab().load();
            assert!(!word.frozen());
            assert_eq!(walk(&world.links, word, &mut Seen::new()), Ok(()));
        }
    }
    beside(
        || {
            let world = World::new(3, false);
            world.free(Chain::one(0));
            world
        },
        |world| {
            world.free(Chain::one(1));
            world.adopt(2);
        },
        check,
        |_, (), ()| (),
    );
}

/// The mark of a listed slab fits its word, whenever it is looked at.
#[test]
fn a_listed_slab_that_is_taken_is_never_marked_wrongly() {
    beside(
        || World::new(2, false),
        |world| {
            world.free(Chain::one(0));
            world.adopt(2);
        },
        |world| steady(world.slab(), 1, |word| world.slab().marked_wrongly(word)),
        |_, (), wrong| assert_ne!(wrong, Some(true)),
    );
}

/// A fault that is there is found, whatever goes on.
#[test]
fn a_broken_list_beside_a_free_is_found() {
    const WRONG: Broken = Broken::Link { object: 0, link: 7 };
    beside(
        || {
            let slab = Slab::new();
            slab.links.set(0, 7);
            slab
        },
        |slab| slab.free(1),
        Slab::look,
        |slab, (), seen| {
            assert!(seen.is_none_or(|seen| seen == Err(WRONG)));
            assert_eq!(slab.look(), Some(Err(WRONG)));
        },
    );
}
