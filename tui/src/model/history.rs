//! The samples of the last minutes, as what has to be undone to get back to them.
//!
//! The newest sample is held whole; of each older one only the figures that
//! the next one changed are kept, so that ten minutes of a few hundred caches
//! cost about a megabyte. What cannot change while a cache lives (sizes,
//! names, flags, constructor) is not kept per sample, nor are warnings.
//!
//! Bounded twice: by age and by bytes. What was given up is told by [`History::span`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use collectors::model::{
    Approx, Cache, CacheId, Counters, CpuPart, Layer, MemInfo, NodePart, Occupancy, Quantity,
    QuantitySet, Snapshot,
};
use jiff::Timestamp;

use super::moment::{Key, Moment};

/// Figures that do not change while a cache lives.
const FIXED: QuantitySet = QuantitySet::of(&[
    Quantity::ObjectSize,
    Quantity::SlabSize,
    Quantity::ObjsPerSlab,
    Quantity::Order,
    Quantity::PagesPerSlab,
    Quantity::Align,
    Quantity::Usersize,
]);

/// One figure before a sample changed it; `None`: it was not known.
#[derive(Debug, Clone, Copy)]
struct Figure {
    key: Key,
    quantity: Quantity,
    was: Option<(Approx<u64>, Layer)>,
}

/// The parts of a cache before a sample changed them.
#[derive(Debug, Clone)]
struct Parts {
    nodes: Vec<NodePart>,
    cpus: Vec<CpuPart>,
    counters: Option<Box<Counters>>,
    occupancy: Option<Box<Approx<Occupancy>>>,
}

/// What has to be undone to get from one sample to the one before.
#[derive(Debug)]
struct Step {
    at: Duration,
    took: Duration,
    taken_at: Option<Timestamp>,
    meminfo: MemInfo,
    figures: Vec<Figure>,
    parts: Vec<(Key, Parts)>,
    /// Caches that were there before and then went away.
    gone: Vec<(Key, Cache)>,
    /// The keys before, where they differ.
    keys: Option<Arc<[Key]>>,
    bytes: usize,
}

/// Kept samples before the newest one.
#[derive(Debug)]
pub struct History {
    /// The newest step first.
    steps: VecDeque<Step>,
    bytes: usize,
    max_age: Duration,
    max_bytes: usize,
}

impl History {
    /// Keeps samples for `max_age`, and at most `max_bytes` of them.
    pub const fn new(max_age: Duration, max_bytes: usize) -> Self {
        Self {
            steps: VecDeque::new(),
            bytes: 0,
            max_age,
            max_bytes,
        }
    }

    /// How many samples before the newest are kept.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether only the newest sample is there.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Time from the oldest kept sample to `now`, the newest.
    pub fn span(&self, now: &Moment) -> Duration {
        self.steps
            .back()
            .map_or(Duration::ZERO, |s| now.at.saturating_sub(s.at))
    }

    /// When the sample so many steps back was taken.
    pub fn at(&self, back: usize) -> Option<Duration> {
        Some(self.steps.get(back.checked_sub(1)?)?.at)
    }

    /// The same by the clock on the wall, where it is known.
    pub fn taken_at(&self, back: usize) -> Option<Timestamp> {
        self.steps.get(back.checked_sub(1)?)?.taken_at
    }

    /// Remembers `old`, which `new` replaces; the oldest make room for it.
    pub fn push(&mut self, old: &Moment, new: &Moment) {
        let step = Step::between(old, new);
        self.bytes += step.bytes;
        self.steps.push_front(step);
        while let Some(oldest) = self.steps.back() {
            let old = new.at.saturating_sub(oldest.at) > self.max_age;
            if !old && self.bytes <= self.max_bytes {
                break;
            }
            self.bytes -= oldest.bytes;
            self.steps.pop_back();
        }
    }

    /// The sample `back` steps before `newest`, or the oldest that is kept.
    pub fn moment(&self, newest: &Moment, back: usize) -> Moment {
        let mut keys = Arc::clone(&newest.keys);
        let mut caches: HashMap<Key, Cache> = keys
            .iter()
            .copied()
            .zip(newest.snapshot.caches.iter().cloned())
            .collect();
        let mut system = newest.snapshot.system.clone();
        let mut origin = newest.snapshot.origin.clone();
        if back > 0 {
            // Not kept: these are of the newest sample.
            system.vmstat.clear();
            system.pressure = None;
            system.free_blocks.clear();
        }
        let (mut at, mut took) = (newest.at, newest.took);
        for step in self.steps.iter().take(back) {
            step.undo(&mut caches);
            if let Some(before) = &step.keys {
                keys = Arc::clone(before);
            }
            (at, took) = (step.at, step.took);
            system.meminfo = step.meminfo;
            origin.taken_at = step.taken_at;
        }
        let caches = keys.iter().zip(0u32..).filter_map(|(key, place)| {
            let mut cache = caches.remove(key)?;
            cache.id = CacheId(place);
            Some(cache)
        });
        Moment {
            snapshot: Arc::new(Snapshot {
                origin,
                system,
                caches: caches.collect(),
                warnings: newest.snapshot.warnings.clone(),
            }),
            keys,
            at,
            took,
        }
    }

    /// A figure of some caches over the last `count` samples up to the one
    /// `back` steps ago, oldest first, where `None` is a gap.
    pub fn series(
        &self,
        shown: &Moment,
        back: usize,
        count: usize,
        quantity: Quantity,
        wanted: &[Key],
    ) -> HashMap<Key, Vec<Option<u64>>> {
        let mut now: HashMap<Key, Option<u64>> = wanted
            .iter()
            .map(|key| {
                let cache = shown.cache(*key);
                (*key, cache.and_then(|c| Some(c.get(quantity)?.value)))
            })
            .collect();
        let mut lists: HashMap<Key, Vec<Option<u64>>> = now
            .iter()
            .map(|(key, value)| (*key, vec![*value]))
            .collect();
        let steps = self.steps.iter().skip(back).take(count.saturating_sub(1));
        for step in steps {
            for figure in step.figures.iter().filter(|f| f.quantity == quantity) {
                if let Some(value) = now.get_mut(&figure.key) {
                    *value = figure.was.map(|(was, _)| was.value);
                }
            }
            for (key, cache) in &step.gone {
                if let Some(value) = now.get_mut(key) {
                    *value = cache.get(quantity).map(|f| f.value);
                }
            }
            for (key, list) in &mut lists {
                // A cache that a sample brought was not there before it.
                let absent = step.keys.as_ref().is_some_and(|k| !k.contains(key));
                list.push(if absent { None } else { now[key] });
            }
        }
        for list in lists.values_mut() {
            list.reverse();
        }
        lists
    }
}

impl Step {
    fn between(old: &Moment, new: &Moment) -> Self {
        let same_keys = Arc::ptr_eq(&old.keys, &new.keys) || old.keys == new.keys;
        let mut step = Self {
            at: old.at,
            took: old.took,
            taken_at: old.snapshot.origin.taken_at,
            meminfo: old.snapshot.system.meminfo,
            figures: Vec::new(),
            parts: Vec::new(),
            gone: Vec::new(),
            keys: (!same_keys).then(|| Arc::clone(&old.keys)),
            bytes: 0,
        };
        for (place, (key, was)) in old.keys.iter().zip(&old.snapshot.caches).enumerate() {
            let is = if same_keys {
                new.snapshot.caches.get(place)
            } else {
                new.cache(*key)
            };
            match is {
                Some(is) => step.compare(*key, was, is),
                None => step.gone.push((*key, was.clone())),
            }
        }
        step.figures.shrink_to_fit();
        step.bytes = step.size();
        step
    }

    fn compare(&mut self, key: Key, was: &Cache, is: &Cache) {
        for quantity in was.known().union(is.known()).iter() {
            if FIXED.contains(quantity) {
                continue;
            }
            let before = was.get(quantity);
            if before != is.get(quantity) {
                let was = before.zip(was.origin(quantity));
                self.figures.push(Figure { key, quantity, was });
            }
        }
        let same = was.nodes == is.nodes
            && was.cpus == is.cpus
            && was.counters == is.counters
            && was.occupancy == is.occupancy;
        if !same {
            let parts = Parts {
                nodes: was.nodes.clone(),
                cpus: was.cpus.clone(),
                counters: was.counters.clone(),
                occupancy: was.occupancy.clone(),
            };
            self.parts.push((key, parts));
        }
    }

    /// What it costs to keep, roughly.
    fn size(&self) -> usize {
        let parts: usize = self.parts.iter().map(|(_, parts)| parts.size()).sum();
        let keys = self.keys.as_ref().map_or(0, |k| size_of_val(&**k));
        size_of::<Self>()
            + self.figures.len() * size_of::<Figure>()
            + parts
            + self.gone.len() * (size_of::<Cache>() + 256)
            + keys
    }

    fn undo(&self, caches: &mut HashMap<Key, Cache>) {
        for figure in &self.figures {
            let Some(cache) = caches.get_mut(&figure.key) else {
                continue;
            };
            match figure.was {
                Some((value, layer)) => cache.set(figure.quantity, value, layer),
                None => cache.forget(figure.quantity),
            }
        }
        for (key, parts) in &self.parts {
            if let Some(cache) = caches.get_mut(key) {
                cache.nodes.clone_from(&parts.nodes);
                cache.cpus.clone_from(&parts.cpus);
                cache.counters.clone_from(&parts.counters);
                cache.occupancy.clone_from(&parts.occupancy);
            }
        }
        for (key, cache) in &self.gone {
            caches.insert(*key, cache.clone());
        }
    }
}

impl Parts {
    fn size(&self) -> usize {
        let counters = self.counters.iter().flat_map(|c| &c.0);
        let counters: usize = counters
            .map(|c| size_of_val(c) + size_of_val(&*c.cpus) + 16)
            .sum();
        size_of::<Self>() + size_of_val(&*self.nodes) + size_of_val(&*self.cpus) + counters + 128
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::moment::Tracker;
    use crate::testing::{cache, moment, snapshot};
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Moments a second apart, from what each holds: names and slabs.
    fn moments(list: &[Vec<(&str, u64)>]) -> Vec<Moment> {
        let mut tracker = Tracker::default();
        let mut out: Vec<Moment> = Vec::new();
        for (second, caches) in (0..).zip(list) {
            let caches = caches.iter().map(|(n, s)| cache(n, *s)).collect();
            let now = snapshot(caches);
            let keys = tracker.follow(out.last(), &now);
            out.push(moment(now, &keys, second));
        }
        out
    }

    fn kept(all: &[Moment], max_age: Duration, max_bytes: usize) -> History {
        let mut history = History::new(max_age, max_bytes);
        for pair in all.windows(2) {
            history.push(&pair[0], &pair[1]);
        }
        history
    }

    fn same(a: &Moment, b: &Moment) -> bool {
        a.keys == b.keys && a.snapshot.caches == b.snapshot.caches && a.at == b.at
    }

    #[test]
    fn a_cache_that_came_and_one_that_went_are_undone() {
        let all = moments(&[
            vec![("a", 1), ("b", 2)],
            vec![("c", 3), ("a", 4)],
            vec![("a", 4), ("c", 5), ("b", 9)],
        ]);
        let history = kept(&all, MINUTE, 1 << 20);
        for back in 0..3 {
            let got = history.moment(&all[2], back);
            assert!(same(&got, &all[2 - back]), "{back}: {got:?}");
        }
    }

    #[test]
    fn a_series_has_gaps_where_a_cache_was_not_there() {
        let all = moments(&[
            vec![("a", 1)],
            vec![("a", 2), ("b", 7)],
            vec![("a", 2), ("b", 8)],
            vec![("a", 5), ("b", 8)],
        ]);
        let history = kept(&all, MINUTE, 1 << 20);
        let wanted = [Key(0), Key(1)];
        let series = history.series(&all[3], 0, 16, Quantity::Slabs, &wanted);
        assert_eq!(series[&Key(0)], [Some(1), Some(2), Some(2), Some(5)]);
        assert_eq!(series[&Key(1)], [None, Some(7), Some(8), Some(8)]);
        // The same from a sample that was stepped back to.
        let past = history.moment(&all[3], 2);
        let series = history.series(&past, 2, 2, Quantity::Slabs, &wanted);
        assert_eq!(series[&Key(0)], [Some(1), Some(2)]);
    }

    #[test]
    fn age_and_bytes_are_bounds() {
        let list: Vec<_> = (0..200).map(|n| vec![("a", n), ("b", n / 2)]).collect();
        let all = moments(&list);
        let newest = all.last().unwrap();
        let history = kept(&all, Duration::from_secs(20), 1 << 20);
        assert_eq!(history.len(), 20);
        assert_eq!(history.span(newest), Duration::from_secs(20));
        let history = kept(&all, MINUTE, 4096);
        assert!(
            history.bytes <= 4096 && history.len() > 2,
            "{}",
            history.len()
        );
        // Asking for more gives the oldest that is kept.
        let oldest = history.moment(newest, 1000);
        assert_eq!(Some(oldest.at), history.at(history.len()));
    }

    proptest! {
        #[test]
        fn every_kept_sample_comes_back_as_it_was(
            list in prop::collection::vec(
                prop::collection::btree_map(0usize..6, 0u64..4, 0..6), 2..12)
        ) {
            const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
            let list: Vec<Vec<(&str, u64)>> = list
                .into_iter()
                .map(|caches| caches.into_iter().map(|(n, s)| (NAMES[n], s)).collect())
                .collect();
            let all = moments(&list);
            let history = kept(&all, MINUTE, 1 << 20);
            let last = all.len() - 1;
            for back in 0..=last {
                prop_assert!(same(&history.moment(&all[last], back), &all[last - back]));
            }
        }
    }
}
