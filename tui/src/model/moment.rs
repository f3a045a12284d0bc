//! One reading of the source, and which cache of it is which of the last one.
//!
//! A cache is known by its [`Key`] for as long as the program runs: neither
//! its row nor its [`CacheId`](collectors::model::CacheId), which is of one
//! snapshot, nor its name, which another cache may share. A cache that was
//! destroyed and made anew with other sizes or another constructor is another
//! cache: its history has a gap and no spike.

use std::sync::Arc;
use std::time::Duration;

use collectors::analysis::diff::pair;
use collectors::model::{Cache, Ctor, Quantity, Snapshot};

use super::SitesRead;

/// What the sampler hands over.
#[derive(Debug)]
pub struct Sample {
    /// The figures.
    pub snapshot: Snapshot,
    /// When they had been read, from the start of the program.
    pub at: Duration,
    /// How long it took to read them.
    pub took: Duration,
    /// Whether everything that can be read was asked for.
    pub full: bool,
    /// Samples that were replaced by newer ones before they were looked at.
    pub replaced: u64,
    /// Processor time of the whole program so far.
    pub cpu_time: Duration,
    /// Call sites that were asked for.
    pub sites: Option<SitesRead>,
}

/// A cache's identity over all samples of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

/// A sample whose caches are known.
#[derive(Debug, Clone)]
pub struct Moment {
    /// The figures.
    pub snapshot: Arc<Snapshot>,
    /// The key of each cache, in the order of the snapshot.
    pub keys: Arc<[Key]>,
    /// When, from the start of the program.
    pub at: Duration,
    /// How long it took to read.
    pub took: Duration,
}

impl Moment {
    /// The place of a cache in this snapshot.
    pub fn place(&self, key: Key) -> Option<usize> {
        // Keys are given in order, so most caches are where they were.
        let guess = key.0 as usize;
        if self.keys.get(guess) == Some(&key) {
            return Some(guess);
        }
        self.keys.iter().position(|k| *k == key)
    }

    /// A cache of this snapshot.
    pub fn cache(&self, key: Key) -> Option<&Cache> {
        self.snapshot.caches.get(self.place(key)?)
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> u64 {
        self.snapshot.system.page_size
    }
}

/// Gives keys to the caches of one sample after another.
#[derive(Debug, Clone, Default)]
pub struct Tracker {
    next: u32,
}

impl Tracker {
    /// The keys of the caches of `now`, of which those in `before` keep theirs.
    pub fn follow(&mut self, before: Option<&Moment>, now: &Snapshot) -> Arc<[Key]> {
        let Some(before) = before else {
            return now.caches.iter().map(|_| self.fresh()).collect();
        };
        let old = &before.snapshot.caches;
        if old.len() == now.caches.len() && old.iter().zip(&now.caches).all(|(a, b)| clearly(a, b))
        {
            return Arc::clone(&before.keys);
        }
        let mut keys: Vec<Option<Key>> = vec![None; now.caches.len()];
        for (i, partner) in pair(old, &now.caches).iter().enumerate() {
            if let Some(j) = *partner
                && same_layout(&old[i], &now.caches[j])
            {
                keys[j] = before.keys.get(i).copied();
            }
        }
        keys.into_iter()
            .map(|key| key.unwrap_or_else(|| self.fresh()))
            .collect()
    }

    fn fresh(&mut self) -> Key {
        let key = Key(self.next);
        self.next = self.next.wrapping_add(1);
        key
    }
}

/// Without a doubt the same cache, by what is cheap to compare.
fn clearly(a: &Cache, b: &Cache) -> bool {
    a.name == b.name && a.sysfs_id == b.sysfs_id && a.cgroup == b.cgroup && same_layout(a, b)
}

fn same_layout(a: &Cache, b: &Cache) -> bool {
    let same = |q| match (a.get(q), b.get(q)) {
        (Some(a), Some(b)) => a.value == b.value,
        _ => true,
    };
    let ctor = a.ctor == b.ctor || a.ctor == Ctor::Unknown || b.ctor == Ctor::Unknown;
    ctor && same(Quantity::SlabSize) && same(Quantity::ObjectSize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cache, moment, snapshot};

    #[test]
    fn a_key_follows_its_cache_when_the_order_changes() {
        let mut tracker = Tracker::default();
        let first = snapshot(vec![cache("a", 1), cache("b", 2), cache("c", 3)]);
        let keys = tracker.follow(None, &first);
        let first = moment(first, &keys, 0);
        let second = snapshot(vec![cache("c", 4), cache("a", 1), cache("d", 9)]);
        let after = tracker.follow(Some(&first), &second);
        assert_eq!(&*after, [keys[2], keys[0], Key(3)]);
        let second = moment(second, &after, 1);
        assert_eq!(&*second.cache(keys[2]).unwrap().name, "c");
        assert!(second.cache(keys[1]).is_none());
    }

    #[test]
    fn a_cache_made_anew_is_another_cache() {
        let mut tracker = Tracker::default();
        let old = snapshot(vec![cache("a", 1)]);
        let keys = tracker.follow(None, &old);
        let old = moment(old, &keys, 0);
        let mut new = snapshot(vec![cache("a", 1)]);
        new.caches[0].set_exact(Quantity::SlabSize, 4096, collectors::model::Layer::Slabinfo);
        assert_ne!(tracker.follow(Some(&old), &new)[0], keys[0]);
    }

    #[test]
    fn two_caches_of_one_name_keep_their_keys() {
        let mut tracker = Tracker::default();
        let old = snapshot(vec![cache("x", 1), cache("x", 5)]);
        let keys = tracker.follow(None, &old);
        let old = moment(old, &keys, 0);
        let new = snapshot(vec![cache("x", 2), cache("x", 6), cache("y", 1)]);
        let after = tracker.follow(Some(&old), &new);
        assert_eq!(after[..2], keys[..]);
    }
}
