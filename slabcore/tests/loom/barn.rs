//! Sheaves on their way through a barn.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use slabcore::barn::{Barn, Exchange};

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

/// What was written into a sheaf is there for whoever gets it.
#[test]
fn a_sheaf_brings_its_objects() {
    loom::model(|| {
        let barn = Arc::new(Barn::default());
        let objects = Arc::new(UnsafeCell::new(0));
        let (to, filled) = (barn.clone(), objects.clone());
        let giver = thread::spawn(move || {
            // SAFETY: loom checks that nobody reads meanwhile.
            filled.with_mut(|objects| unsafe { *objects = 60 });
            to.put_full(10)
        });
        let got = match barn.full_for_empty(1, true) {
            Exchange::Swapped(full) => Some(full),
            Exchange::NoEmpty | Exchange::Refused => barn.take_full(),
        };
        if got == Some(10) {
            // SAFETY: as above.
            assert_eq!(objects.with(|objects| unsafe { *objects }), 60);
        }
        assert!(giver.join().unwrap());
        assert_eq!(got.or_else(|| barn.take_full()), Some(10));
    });
}
