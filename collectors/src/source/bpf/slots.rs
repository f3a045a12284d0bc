//! The table of known caches that programs count by: an address finds a slot.
//!
//! Source of truth: collectors/bpf/slots.h, whose numbers a test compares. The
//! table is filled here and read by the programs; a cache that finds no place
//! in it is not counted.

/// How many slots are tried from a cache's hash on.
const PROBES: u64 = 8;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const SHIFT: u32 = 40;

/// Words of a slot: place of the counts (with pages of a slab, which programs
/// learn, in the upper half), per-CPU pointer, capacity of a sheaf,
/// address of the cache.
pub(super) type Slot = [u64; 4];
pub(super) const INDEX: usize = 0;
const CACHE: usize = 3;

/// Which slots are taken; the map in the kernel has the same.
#[derive(Debug)]
pub(super) struct Slots {
    caches: Vec<u64>,
    used: u32,
    room: u32,
}

impl Slots {
    /// For as many caches, and as many again that may come.
    pub(super) fn for_caches(count: usize) -> Self {
        let room = count.saturating_mul(2).clamp(64, 1 << 20);
        // A quarter full at most, so that few caches share a hash.
        let slots = (room * 4).next_power_of_two();
        Self {
            caches: vec![0; slots],
            used: 0,
            room: u32::try_from(room).unwrap_or(u32::MAX),
        }
    }

    /// Slots in all: a power of two.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.caches.len()).unwrap_or(u32::MAX)
    }

    /// Caches that can be counted in all.
    pub(super) const fn room(&self) -> u32 {
        self.room
    }

    /// Gives a cache a slot and a place for its counts: where the slot is, and
    /// what is in it. `None`: there is no room.
    pub(super) fn add(&mut self, cache: u64) -> Option<(u32, Slot)> {
        let at = self.tried(cache).find(|at| self.get(*at) == Some(0))?;
        self.fill(at, cache)
    }

    /// Gives the slot of a cache that is gone to another one at the same address,
    /// with a place for its counts that nobody used.
    pub(super) fn renew(&mut self, cache: u64) -> Option<(u32, Slot)> {
        let at = self.tried(cache).find(|at| self.get(*at) == Some(cache))?;
        self.fill(at, cache)
    }

    fn tried(&self, cache: u64) -> impl Iterator<Item = u64> + use<> {
        let first = cache.wrapping_mul(FACTOR) >> SHIFT;
        let mask = self.caches.len() as u64 - 1;
        (first..first + PROBES).map(move |at| at & mask)
    }

    fn fill(&mut self, at: u64, cache: u64) -> Option<(u32, Slot)> {
        if self.used == self.room {
            return None;
        }
        *self.caches.get_mut(usize::try_from(at).ok()?)? = cache;
        let mut slot = Slot::default();
        slot[INDEX] = u64::from(self.used);
        slot[CACHE] = cache;
        self.used += 1;
        Some((u32::try_from(at).ok()?, slot))
    }

    fn get(&self, at: u64) -> Option<u64> {
        self.caches.get(usize::try_from(at).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks as the programs do.
    fn finds(slots: &Slots, cache: u64) -> bool {
        let first = cache.wrapping_mul(FACTOR) >> SHIFT & 0xffff_ffff;
        let mask = u64::from(slots.count()) - 1;
        for step in 0..PROBES {
            match slots.get((first + step) & mask) {
                Some(0) | None => return false,
                Some(found) if found == cache => return true,
                Some(_) => {}
            }
        }
        false
    }

    #[test]
    fn every_cache_that_was_added_is_found_and_no_other() {
        let mut slots = Slots::for_caches(300);
        let caches: Vec<u64> = (0..600)
            .map(|n| 0xffff_8881_0004_2000 + n * 0x180)
            .collect();
        let mut places = std::collections::BTreeSet::new();
        for cache in &caches {
            let (_, slot) = slots.add(*cache).unwrap();
            assert_eq!(slot[CACHE], *cache);
            assert!(places.insert(slot[INDEX]) && slot[INDEX] < u64::from(slots.room()));
        }
        assert!(caches.iter().all(|cache| finds(&slots, *cache)));
        assert!(!finds(&slots, 0xffff_8881_1234_5600));
        assert_eq!(slots.add(0xffff_8881_1234_5600), None, "there is no room");
    }

    #[test]
    fn another_cache_at_an_address_has_counts_of_its_own() {
        let mut slots = Slots::for_caches(10);
        let caches: Vec<u64> = (0..30).map(|n| 0xffff_8881_0004_2000 + n * 0x40).collect();
        let places: Vec<(u32, Slot)> = caches.iter().map(|c| slots.add(*c).unwrap()).collect();
        let mut used: std::collections::BTreeSet<u64> = places.iter().map(|p| p.1[INDEX]).collect();
        for (cache, (at, _)) in caches.iter().zip(&places) {
            let (now, slot) = slots.renew(*cache).unwrap();
            assert_eq!((now, slot[CACHE]), (*at, *cache));
            assert!(used.insert(slot[INDEX]), "a place that was used");
            assert!(finds(&slots, *cache));
        }
        assert_eq!(slots.renew(0xffff_8881_1234_5600), None, "it was not there");
        while slots.renew(caches[0]).is_some() {}
        assert_eq!(used.len(), 60, "the room ends");
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        let header = include_str!("../../../bpf/slots.h");
        for said in [
            format!("SLOT_PROBES {PROBES}\n"),
            format!("SLOT_FACTOR {FACTOR:#x}ull\n"),
            format!("SLOT_SHIFT {SHIFT}\n"),
        ] {
            assert!(header.contains(&said), "{said}");
        }
        let fields: Vec<&str> = header
            .split_once("struct slot {")
            .and_then(|(_, rest)| rest.split_once("};"))
            .map(|(fields, _)| fields.lines().filter(|l| l.contains(';')).collect())
            .unwrap();
        // The first word is two halves.
        assert_eq!(fields.len(), size_of::<Slot>() / 8 + 1);
        assert!(fields[0].contains("u32 index") && fields[1].contains("u32 pages"));
        assert!(fields[1 + CACHE].contains("cache"));
    }
}
