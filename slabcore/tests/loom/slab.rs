//! The slab word: frees, takers, holders that let go, and who lists or discards a slab.

use crate::World;
use loom::thread;
use slabcore::slab::{Chain, Links, NONE};
use slabcore::sync::Ordering::Relaxed;

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
            assert_eq!(world.node.pop(&held, &world.table), Some(crate::SLAB));
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
        world.deactivate(Some(Chain::one(0)));
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
        world.deactivate(None);
        thread.join().unwrap();
        assert_eq!(world.node.nr_partial(), 1);
    });
}

#[test]
fn frees_that_empty_a_slab_discard_it_once() {
    loom::model(|| {
        let world = World::keeping(2, false, 0);
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(0)));
        world.free(Chain::one(1));
        thread.join().unwrap();
        assert_eq!(world.discards(), 1);
    });
}

#[test]
fn a_holder_that_lets_go_beside_the_last_free_discards_once_or_lists() {
    loom::model(|| {
        let world = World::keeping(2, true, 0);
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(1)));
        world.deactivate(Some(Chain::one(0)));
        thread.join().unwrap();
        // A free between letting go and listing leaves it to the holder, who lists what was
        // not empty when it let go.
        match world.discards() {
            0 => assert_eq!((world.node.nr_partial(), world.free_objects()), (1, 2)),
            n => assert_eq!(n, 1),
        }
    });
}

#[test]
fn a_taker_beside_the_last_free_keeps_the_slab() {
    loom::model(|| {
        let world = World::keeping(2, false, 0);
        world.free(Chain::one(0));
        let other = world.clone();
        let thread = thread::spawn(move || other.free(Chain::one(1)));
        // Found on the list, or discarded before.
        let popped = {
            let held = world.node.list_lock.lock();
            world.node.pop(&held, &world.table)
        };
        let mut taken = 0;
        if let Some(slab) = popped {
            assert_eq!(slab, crate::SLAB);
            let (_, got, left) = world.slab().take_some(&world.links, 1);
            taken = got;
            if left {
                world.put_down(world.slab().load());
            }
        }
        thread.join().unwrap();
        if world.discards() == 0 {
            assert_eq!(taken, 1);
            assert_eq!(world.free_objects(), 1);
            assert_eq!(world.node.nr_partial(), 1);
        } else {
            assert_eq!(taken, 0);
        }
    });
}
