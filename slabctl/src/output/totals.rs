//! Sums over the caches of a document.

use collectors::analysis::Usage;
use collectors::model::{Approx, Bytes, Cache, Quantity};
use schemars::JsonSchema;
use serde::Serialize;

/// Sums over the caches of a document. A sum is null when none of the caches
/// has the figure; where only some have it, it is the sum of those and is
/// named in `approx`.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Totals {
    /// Number of caches.
    pub(crate) caches: u64,
    /// Number of slabs.
    pub(crate) slabs: Option<u64>,
    /// Number of objects in use, with the free ones parked near CPUs.
    pub(crate) objects: Option<u64>,
    /// Number of objects the slabs have room for.
    pub(crate) total_objects: Option<u64>,
    /// Bytes of memory held.
    pub(crate) memory_bytes: Option<u64>,
    /// Bytes of payload in use.
    pub(crate) used_bytes: Option<u64>,
    /// Bytes held and not used: the sum of the caches' `loss_bytes`.
    pub(crate) loss_bytes: Option<u64>,
    /// Names of the sums that are not exact: an addend is an estimate, a cache
    /// lacks the figure, or the sum is too large for 64 bits.
    pub(crate) approx: Vec<&'static str>,
}

impl Totals {
    /// Sums over `caches` on a machine with pages of `page_size` bytes.
    pub(crate) fn of(caches: &[&Cache], page_size: u64) -> Self {
        let mut sums = [
            Sum::new("slabs"),
            Sum::new("objects"),
            Sum::new("total_objects"),
            Sum::new("memory_bytes"),
            Sum::new("used_bytes"),
            Sum::new("loss_bytes"),
        ];
        for cache in caches {
            let usage = Usage::of(cache, page_size);
            let figures = [
                cache.get(Quantity::Slabs),
                cache.get(Quantity::Objects),
                cache.get(Quantity::TotalObjects),
                bytes(usage.memory),
                bytes(usage.used),
                bytes(usage.loss),
            ];
            for (sum, figure) in sums.iter_mut().zip(figures) {
                sum.add(figure);
            }
        }
        let approx = sums.iter().filter_map(Sum::inexact).collect();
        let [slabs, objects, total_objects, memory, used, loss] = sums.map(|sum| sum.total());
        Self {
            caches: caches.len() as u64,
            slabs,
            objects,
            total_objects,
            memory_bytes: memory,
            used_bytes: used,
            loss_bytes: loss,
            approx,
        }
    }
}

fn bytes(figure: Option<Approx<Bytes>>) -> Option<Approx<u64>> {
    figure.map(|f| f.map(Bytes::get))
}

struct Sum {
    name: &'static str,
    value: u64,
    some: bool,
    missing: bool,
    approx: bool,
}

impl Sum {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            value: 0,
            some: false,
            missing: false,
            approx: false,
        }
    }

    fn add(&mut self, figure: Option<Approx<u64>>) {
        let Some(figure) = figure else {
            self.missing = true;
            return;
        };
        self.some = true;
        let (value, overflow) = self.value.overflowing_add(figure.value);
        self.value = if overflow { u64::MAX } else { value };
        self.approx |= figure.approx || overflow;
    }

    /// Unknown when there are caches and none has the figure.
    fn total(&self) -> Option<u64> {
        (self.some || !self.missing).then_some(self.value)
    }

    fn inexact(&self) -> Option<&'static str> {
        (self.some && (self.missing || self.approx)).then_some(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::model::{CacheId, Layer};

    fn cache(figures: &[(Quantity, u64)]) -> Cache {
        let mut cache = Cache::new(CacheId(0), "test");
        for (q, v) in figures {
            cache.set_exact(*q, *v, Layer::Slabinfo);
        }
        cache
    }

    #[test]
    fn a_figure_no_cache_has_is_unknown_and_a_partial_sum_is_marked() {
        let one = cache(&[(Quantity::Slabs, 2), (Quantity::Objects, 5)]);
        let two = cache(&[(Quantity::Slabs, 3)]);
        let totals = Totals::of(&[&one, &two], 4096);
        assert_eq!(totals.slabs, Some(5));
        assert_eq!(totals.objects, Some(5));
        assert_eq!(totals.total_objects, None);
        assert_eq!(totals.memory_bytes, None);
        assert_eq!(totals.approx, ["objects"]);
    }

    #[test]
    fn a_sum_stops_at_the_largest_number_and_says_so() {
        let huge = cache(&[(Quantity::Slabs, u64::MAX)]);
        assert_eq!(Totals::of(&[&huge], 4096).slabs, Some(u64::MAX));
        assert!(Totals::of(&[&huge], 4096).approx.is_empty());
        let totals = Totals::of(&[&huge, &huge], 4096);
        assert_eq!(totals.slabs, Some(u64::MAX));
        assert_eq!(totals.approx, ["slabs"]);
    }

    #[test]
    fn a_sum_with_an_estimate_is_an_estimate() {
        let mut guess = cache(&[(Quantity::Slabs, 1)]);
        guess.set(Quantity::Objects, Approx::estimate(7), Layer::Slabinfo);
        let totals = Totals::of(&[&guess], 4096);
        assert_eq!((totals.objects, totals.slabs), (Some(7), Some(1)));
        assert_eq!(totals.approx, ["objects"]);
    }

    #[test]
    fn no_cache_holds_nothing() {
        let totals = Totals::of(&[], 4096);
        assert_eq!((totals.caches, totals.slabs), (0, Some(0)));
        assert_eq!(totals.loss_bytes, Some(0));
        assert!(totals.approx.is_empty());
    }
}
