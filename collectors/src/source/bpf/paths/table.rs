//! The caches that are counted: which they are, and where their counts lie.
//!
//! A cache is known by address and name: another one may be made where one was,
//! and has counts of its own. One that is made anew, with the same name and at
//! the same address, cannot be told from the one before, and goes on counting.

use std::collections::BTreeMap;

use super::counters::Known;
use crate::source::bpf::record::Seen;
use crate::source::bpf::slots::{INDEX, Slot, Slots};

/// Known caches, and the slots that the programs look them up in.
#[derive(Debug)]
pub(super) struct Table {
    slots: Slots,
    /// By address.
    known: BTreeMap<u64, Known>,
    /// Caches of the last look that found no place.
    pub(super) unplaced: usize,
}

impl Table {
    pub(super) const fn new(slots: Slots) -> Self {
        Self {
            slots,
            known: BTreeMap::new(),
            unplaced: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn get(&self, address: u64) -> Option<&Known> {
        self.known.get(&address)
    }

    /// Knows the caches that came meanwhile: the slots to write.
    pub(super) fn add(&mut self, seen: &[Seen]) -> Vec<(u32, Slot)> {
        let mut fresh = Vec::new();
        self.unplaced = 0;
        for cache in seen {
            let placed = match self.known.get(&cache.address) {
                Some(known) if known.name == cache.cache.name => continue,
                // Another cache where one was.
                Some(_) => self.slots.renew(cache.address),
                None => self.slots.add(cache.address),
            };
            let Some((at, slot)) = placed else {
                self.known.remove(&cache.address);
                self.unplaced += 1;
                continue;
            };
            let known = Known::new(&cache.cache, slot[INDEX]);
            self.known.insert(cache.address, known);
            fresh.push((at, slot));
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cache, CacheId};

    fn seen(name: &str, address: u64) -> Seen {
        Seen {
            cache: Cache::new(CacheId(0), name),
            address,
            sample: None,
            moved: 0,
        }
    }

    #[test]
    fn another_cache_where_one_was_does_not_count_into_its_figures() {
        let mut table = Table::new(Slots::for_caches(2));
        let first = table.add(&[seen("one", 0x1000), seen("two", 0x2000)]);
        assert_eq!((first.len(), table.len()), (2, 2));
        assert!(table.add(&[seen("one", 0x1000)]).is_empty(), "it is known");
        let again = table.add(&[seen("other", 0x1000), seen("two", 0x2000)]);
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].0, first[0].0, "the same slot");
        assert!(
            !first
                .iter()
                .any(|(_, slot)| slot[INDEX] == again[0].1[INDEX])
        );
        let known = table.get(0x1000).unwrap();
        assert_eq!(
            (&*known.name, u64::from(known.index)),
            ("other", again[0].1[INDEX])
        );
        assert_eq!(table.unplaced, 0);
    }

    #[test]
    fn a_cache_without_a_place_is_told_and_not_counted() {
        let mut table = Table::new(Slots::for_caches(1));
        let many: Vec<Seen> = (1..=66).map(|n| seen("some", n << 12)).collect();
        table.add(&many);
        assert_eq!((table.len(), table.unplaced), (64, 2));
        // It would be counted into what was there before.
        table.add(&[seen("other", 1 << 12)]);
        assert_eq!((table.get(1 << 12).is_none(), table.unplaced), (true, 1));
    }
}
