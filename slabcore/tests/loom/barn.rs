//! Sheaves on their way through a barn.

use crate::beside;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use slabcore::barn::{Barn, Exchange};

/// A barn, and what is in the sheaf number 10.
struct Place {
    barn: Barn,
    objects: UnsafeCell<u32>,
}

fn empty() -> Arc<Place> {
    Arc::new(Place {
        barn: Barn::default(),
        objects: UnsafeCell::new(0),
    })
}

/// All sheaves that are in the barn, in order.
fn rest(place: &Place) -> Vec<usize> {
    let mut all: Vec<_> = std::iter::from_fn(|| place.barn.take_full()).collect();
    all.extend(std::iter::from_fn(|| place.barn.take_empty()));
    all
}

/// Exchanges an empty sheaf for a full one and back; what is left in hand.
fn there_and_back(place: &Place, empty: usize) -> usize {
    match place.barn.full_for_empty(empty, empty == 1) {
        Exchange::Swapped(full) => match place.barn.empty_for_full(full, empty == 2) {
            Exchange::Swapped(back) => back,
            Exchange::NoEmpty | Exchange::Refused => full,
        },
        Exchange::NoEmpty | Exchange::Refused => empty,
    }
}

#[test]
fn sheaves_are_neither_lost_nor_doubled() {
    beside(
        || {
            let place = empty();
            assert!(place.barn.put_full(10));
            place
        },
        |place| there_and_back(place, 1),
        |place| there_and_back(place, 2),
        |place, one, two| {
            let mut all = rest(place);
            all.extend([one, two]);
            all.sort_unstable();
            assert_eq!(all, [1, 2, 10]);
        },
    );
}

/// Two threads that put sheaves in at once lose neither.
#[test]
fn sheaves_put_in_at_once_are_both_there() {
    beside(
        empty,
        |place| assert!(place.barn.put_full(10)),
        |place| assert!(place.barn.put_full(20)),
        |place, (), ()| {
            let mut both = rest(place);
            both.sort_unstable();
            assert_eq!(both, [10, 20]);
        },
    );
}

/// What was written into a sheaf is there for whoever gets it.
#[test]
fn a_sheaf_brings_its_objects() {
    fn give(place: &Place) {
        // SAFETY: loom checks that no access is concurrent with a write.
        place.objects.with_mut(|objects| unsafe { *objects = 60 });
        assert!(place.barn.put_full(10));
    }
    fn get(place: &Place) -> Option<usize> {
        let got = match place.barn.full_for_empty(1, true) {
            Exchange::Swapped(full) => Some(full),
            Exchange::NoEmpty | Exchange::Refused => place.barn.take_full(),
        };
        if let Some(full) = got {
            assert_eq!(full, 10);
            // SAFETY: loom checks that no access is concurrent with a write.
            assert_eq!(place.objects.with(|objects| unsafe { *objects }), 60);
        }
        got
    }
    beside(empty, give, get, |place, (), got| {
        assert_eq!(got.or_else(|| place.barn.take_full()), Some(10));
    });
}
