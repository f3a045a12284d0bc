//! The slab word: frees, takers, holders that let go, and who lists or discards a slab.

use crate::{SLAB, World, beside};
use slabcore::slab::{Chain, Links, NONE};
use slabcore::sync::Ordering::Relaxed;

fn free_0(world: &World) {
    world.free(Chain::one(0));
}

fn free_1(world: &World) {
    world.free(Chain::one(1));
}

fn free_2(world: &World) {
    world.free(Chain::one(2));
}

#[test]
fn two_frees_into_a_full_slab_list_it_once() {
    beside(
        || World::new(3, false),
        free_0,
        free_1,
        |world, (), ()| {
            assert_eq!(world.free_objects(), 2);
            assert_eq!(world.node.nr_partial(), 1);
            assert_eq!(world.slab().on_node.load(Relaxed), 1);
        },
    );
}

#[test]
fn a_free_and_a_holder_that_takes_lose_nothing() {
    fn take(world: &World) -> u16 {
        let (head, taken) = world.slab().take_all(true);
        assert_eq!(head == NONE, taken == 0);
        let mut at = head;
        for _ in 0..taken {
            at = world.links.get(at);
        }
        assert_eq!(at, NONE);
        taken
    }
    beside(
        || {
            let world = World::new(3, true);
            free_0(&world);
            world
        },
        free_1,
        take,
        |world, (), taken| {
            assert_eq!(taken + world.free_objects(), 2);
            assert!(world.slab().load().frozen());
        },
    );
}

#[test]
fn taking_some_below_concurrent_frees_keeps_the_rest() {
    fn take(world: &World) {
        let (_, got, left) = world.slab().take_some(&world.links, 2);
        assert_eq!(got, 2);
        if left {
            world.put_down(world.slab().load());
        }
    }
    beside(
        || {
            let world = World::new(4, false);
            free_0(&world);
            free_1(&world);
            assert_eq!(world.pop(), Some(SLAB));
            world
        },
        free_2,
        take,
        |world, (), ()| {
            assert_eq!(world.free_objects(), 1);
            assert_eq!(world.node.nr_partial(), 1, "listed by one of the two");
        },
    );
}

#[test]
fn letting_go_beside_a_free_lists_the_slab_once() {
    beside(
        || World::new(3, true),
        free_1,
        |world| world.deactivate(Some(Chain::one(0))),
        |world, (), ()| {
            assert_eq!(world.free_objects(), 2);
            assert_eq!(world.node.nr_partial(), 1);
        },
    );
}

#[test]
fn letting_go_of_a_full_slab_beside_a_free_lists_it_once() {
    beside(
        || World::new(3, true),
        free_1,
        |world| world.deactivate(None),
        |world, (), ()| assert_eq!(world.node.nr_partial(), 1),
    );
}

#[test]
fn frees_that_empty_a_slab_discard_it_once() {
    beside(
        || World::keeping(2, false, 0),
        free_0,
        free_1,
        |world, (), ()| assert_eq!(world.discards(), 1),
    );
}

#[test]
fn a_holder_that_lets_go_beside_the_last_free_discards_once_or_lists() {
    beside(
        || World::keeping(2, true, 0),
        free_1,
        |world| world.deactivate(Some(Chain::one(0))),
        // A free between letting go and listing leaves it to the holder, who lists what was
        // not empty when it let go.
        |world, (), ()| match world.discards() {
            0 => assert_eq!((world.node.nr_partial(), world.free_objects()), (1, 2)),
            n => assert_eq!(n, 1),
        },
    );
}

#[test]
fn a_taker_beside_the_last_free_keeps_the_slab() {
    fn take(world: &World) -> u16 {
        // Found on the list, or discarded before.
        if world.pop().is_none() {
            return 0;
        }
        let (_, got, left) = world.slab().take_some(&world.links, 1);
        if left {
            world.put_down(world.slab().load());
        }
        got
    }
    beside(
        || {
            let world = World::keeping(2, false, 0);
            free_0(&world);
            world
        },
        free_1,
        take,
        |world, (), taken| {
            if world.discards() == 0 {
                assert_eq!((taken, world.free_objects()), (1, 1));
                assert_eq!(world.node.nr_partial(), 1);
            } else {
                assert_eq!(taken, 0);
            }
        },
    );
}
