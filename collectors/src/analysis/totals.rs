//! Sums over any set of caches.
//!
//! A figure that some caches lack is summed over the others, marked, and the
//! number of caches that lack it is told. How the caches are spread around the
//! sums is in [`Extended`].

use crate::model::{Approx, Bytes, Cache, Objects, Slabs};

use super::Usage;

mod extended;

pub use extended::{Extended, ExtendedRow, Figure};

/// The sum of one figure over a set of caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum<T> {
    /// The sum over the caches that have the figure. An estimate when one of
    /// them is, or when a cache lacks it; `None` when every cache lacks it.
    pub total: Option<Approx<T>>,
    /// How many caches lack the figure.
    pub missing: u64,
}

/// A sum in the making.
#[derive(Clone, Copy, Default)]
struct Adder {
    total: Option<Approx<u64>>,
    missing: u64,
}

impl Adder {
    fn add(&mut self, figure: Option<Approx<u64>>) {
        let Some(figure) = figure else {
            self.missing += 1;
            return;
        };
        let so_far = self.total.unwrap_or_else(|| Approx::exact(0));
        let (value, overflow) = match so_far.value.checked_add(figure.value) {
            Some(sum) => (sum, false),
            None => (u64::MAX, true),
        };
        self.total = Some(Approx {
            value,
            approx: so_far.approx || figure.approx || overflow,
        });
    }

    /// Marks a sum that lacks some caches; the sum of no caches is 0.
    fn sum<T: From<u64>>(self) -> Sum<T> {
        let total = match self.total {
            None if self.missing == 0 => Some(Approx::exact(0)),
            total => total,
        };
        Sum {
            total: total.map(|t| Approx {
                value: T::from(t.value),
                approx: t.approx || self.missing > 0,
            }),
            missing: self.missing,
        }
    }
}

macro_rules! totals {
    ($($field:ident: $unit:ty, $doc:literal, |$cache:ident, $usage:ident| $figure:expr;)*) => {
        /// Sums over a set of caches.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Totals {
            /// Caches in the set.
            pub caches: u64,
            /// Caches that are known to hold no slab.
            pub empty_caches: u64,
            $(#[doc = $doc] pub $field: Sum<$unit>,)*
        }

        impl Totals {
            /// Sums `caches` of a machine with pages of `page_size` bytes.
            pub fn of<'a>(caches: impl IntoIterator<Item = &'a Cache>, page_size: u64) -> Self {
                let (mut count, mut empty_caches) = (0, 0);
                $(let mut $field = Adder::default();)*
                for cache in caches {
                    let usage = Usage::of(cache, page_size);
                    count += 1;
                    empty_caches += u64::from(cache.is_empty() == Some(true));
                    $(
                        let ($cache, $usage) = (cache, &usage);
                        let figure: Option<Approx<$unit>> = $figure;
                        $field.add(figure.map(|f| f.map(<$unit>::get)));
                    )*
                }
                Self { caches: count, empty_caches, $($field: $field.sum(),)* }
            }

            /// Figures that some caches lack, with how many lack them.
            pub fn incomplete(&self) -> Vec<(&'static str, u64)> {
                let mut list = vec![$((stringify!($field), self.$field.missing),)*];
                list.retain(|(_, missing)| *missing > 0);
                list
            }
        }
    };
}

totals! {
    slabs: Slabs, "Slabs held.", |cache, _usage| cache.slabs();
    objects: Objects, "Objects in use.", |cache, _usage| cache.objects();
    total_objects: Objects, "Objects that the slabs have room for.", |cache, _usage| cache.total_objects();
    partial: Slabs, "Slabs on partial lists.", |cache, _usage| cache.partial();
    memory: Bytes, "Bytes held.", |_cache, usage| usage.memory;
    used: Bytes, "Bytes of payload in use.", |_cache, usage| usage.used;
    loss: Bytes, "Bytes held but not in use as payload.", |_cache, usage| usage.loss;
    slack: Bytes, "Bytes of metadata and alignment in slots in use.", |_cache, usage| usage.slack;
    free: Bytes, "Bytes of slots without an object in use.", |_cache, usage| usage.free;
    padding: Bytes, "Bytes at the ends of slabs.", |_cache, usage| usage.padding;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{self, sysfs};
    use crate::model::Quantity;

    #[test]
    fn sums_are_exact_and_the_parts_add_up() {
        let caches = [sysfs(10, 300, 1, 12), sysfs(0, 0, 0, 0)];
        let t = Totals::of(&caches, 4096);
        assert_eq!((t.caches, t.empty_caches), (2, 1));
        assert_eq!(t.memory.total, Some(Approx::exact(Bytes(40_960))));
        assert_eq!(t.objects.total, Some(Approx::exact(Objects(300))));
        let parts = [t.used, t.slack, t.free, t.padding];
        let sum: Bytes = parts.iter().map(|p| p.total.unwrap().value).sum();
        assert_eq!(sum, Bytes(40_960));
        assert!(t.incomplete().is_empty());
    }

    #[test]
    fn a_cache_that_lacks_a_figure_is_counted_not_taken_for_zero() {
        // A row of /proc/slabinfo has no partial slabs and no payload size.
        let slabinfo = testing::cache(
            "x",
            &[
                (Quantity::SlabSize, 192),
                (Quantity::ObjsPerSlab, 21),
                (Quantity::PagesPerSlab, 1),
                (Quantity::Objects, 21),
                (Quantity::TotalObjects, 21),
                (Quantity::Slabs, 1),
            ],
        );
        let mixed = [sysfs(10, 320, 1, 12), slabinfo.clone()];
        let t = Totals::of(&mixed, 4096);
        assert_eq!(t.partial.total, Some(Approx::estimate(Slabs(1))));
        assert_eq!(t.partial.missing, 1);
        assert_eq!(t.memory.total, Some(Approx::exact(Bytes(45_056))));
        assert_eq!(t.incomplete(), [("partial", 1), ("slack", 1)]);
        let alone = Totals::of([&slabinfo], 4096);
        assert_eq!(alone.partial.total, None, "unknown is not 0");
    }

    #[test]
    fn no_caches_sum_to_zero_and_huge_sums_are_marked() {
        let none = Totals::of([], 4096);
        assert_eq!(none.memory.total, Some(Approx::exact(Bytes(0))));
        let huge = testing::cache("x", &[(Quantity::Objects, u64::MAX)]);
        let two = Totals::of([&huge, &huge], 4096);
        assert_eq!(two.objects.total, Some(Approx::estimate(Objects(u64::MAX))));
    }
}
