//! Slots that end while others free into their slabs, and slots that adopt these.

use crate::{SLAB, WAKE, World, beside};
use loom::thread;
use slabcore::slab::Chain;
use slabcore::sync::Ordering::Relaxed;

fn owned_and_full() -> loom::sync::Arc<World> {
    let world = World::new(3, true);
    world.queues[1].adopt(&world.table, SLAB, 1);
    assert_eq!(world.slab().take_or_ask(WAKE), None);
    world
}

fn free(world: &World) {
    world.free(Chain::one(0));
}

#[test]
fn an_owner_that_ends_beside_a_free_leaves_no_stale_queue() {
    beside(
        owned_and_full,
        free,
        |world| world.give_up(1),
        |world, (), ()| {
            assert!(world.queues[1].is_empty());
            assert_eq!(world.slab().queued.load(Relaxed), 0);
            assert_eq!(world.free_objects(), 1);
            assert_eq!(world.node.nr_partial(), 1, "another slot finds it");
        },
    );
}

#[test]
fn a_slab_that_changes_owner_beside_a_free_is_told_to_the_right_one() {
    beside(
        owned_and_full,
        free,
        |world| {
            world.give_up(1);
            world.adopt(2)
        },
        |world, (), taken| {
            assert!(world.queues[1].is_empty());
            assert_eq!(taken.unwrap_or(0) + world.free_objects(), 1);
            if taken.is_none() {
                assert_eq!(world.node.nr_partial(), 1);
            }
        },
    );
}

/// A slot ends, another frees, a third adopts: each a thread of its own.
#[test]
fn a_third_slot_that_adopts_loses_nothing() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = owned_and_full();
        let (one, two) = (world.clone(), world.clone());
        let ends = thread::spawn(move || one.give_up(1));
        let frees = thread::spawn(move || two.free(Chain::one(0)));
        let taken = world.adopt(2);
        let asks = taken.is_some().then(|| world.slab().take_or_ask(WAKE));
        ends.join().unwrap();
        frees.join().unwrap();
        assert!(world.queues[1].is_empty());
        let got = taken.unwrap_or(0) + asks.flatten().map_or(0, |(_, len)| len);
        assert_eq!(got + world.free_objects(), 1);
        // Free objects can be found: on the node's list, or the owner has been told.
        let told = world.queues[2].take(&world.table);
        if world.free_objects() == 1 {
            assert!(world.node.nr_partial() == 1 || told.is_some());
        }
        assert_eq!(world.queues[2].take(&world.table), None, "queued once");
    });
}

/// The last free of a slab whose owner ends, in a node that keeps no empty slab.
#[test]
fn an_owner_that_ends_beside_the_last_free_discards_once() {
    beside(
        || {
            let world = World::keeping(1, true, 0);
            world.queues[1].adopt(&world.table, SLAB, 1);
            assert_eq!(world.slab().take_or_ask(WAKE), None);
            world
        },
        free,
        |world| world.give_up(1),
        |world, (), ()| {
            assert_eq!(world.discards(), 1);
            assert!(world.queues[1].is_empty());
        },
    );
}
