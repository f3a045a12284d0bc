//! Remote frees: the wake bit, the threshold and the queue of slabs to look at.

use crate::{SLAB, WAKE, World};
use loom::thread;
use slabcore::slab::Chain;

/// As the owner whose list is spent does; what it took.
fn spent(world: &World) -> u16 {
    if world.slab().load().asks(WAKE) {
        return 0;
    }
    world.slab().take_or_ask(WAKE).map_or(0, |(_, len)| len)
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
        let taken = spent(&world);
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
        assert_eq!(spent(&world), 0);
        let threads: Vec<_> = (0..2)
            .map(|object| {
                let other = world.clone();
                thread::spawn(move || other.free(Chain::one(object)))
            })
            .collect();
        // The owner comes by on its own and finds the slab full again, perhaps before the
        // thread that cleared the wake bit has queued it.
        let taken = world.slab().take_all(true).1 + spent(&world);
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
