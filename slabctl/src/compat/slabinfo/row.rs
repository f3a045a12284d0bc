//! The figures of one cache that slabinfo's columns are made of.
//!
//! Formulas: docs/COMPAT.md and tools/mm/slabinfo.c of Linux 6.12. Memory and
//! its loss come from `collectors::analysis::Usage`, which gives the same
//! numbers. A figure that was not read stays `None`; two figures from
//! different moments never make a negative one.

use collectors::analysis::Usage;
use collectors::model::{Bytes, Cache, CounterId, Flag, Quantity};

/// One cache, ready to be printed.
#[derive(Debug, Clone)]
pub(crate) struct Row<'a> {
    /// The cache.
    pub(crate) cache: &'a Cache,
    /// The name it is shown under.
    pub(crate) name: &'a str,
    /// Objects in use.
    pub(crate) objects: Option<u64>,
    /// Payload bytes of an object.
    pub(crate) object_size: Option<u64>,
    /// Bytes of an object's slot.
    pub(crate) slab_size: Option<u64>,
    /// Slots in a slab.
    pub(crate) objs_per_slab: Option<u64>,
    /// Page order of a slab.
    pub(crate) order: Option<u64>,
    /// Bytes of a slab.
    pub(crate) slab_bytes: Option<u64>,
    /// Slabs held.
    pub(crate) slabs: Option<u64>,
    /// Slabs on the nodes' partial lists.
    pub(crate) partial: Option<u64>,
    /// Slabs in use by CPUs.
    pub(crate) cpu_slabs: Option<u64>,
    /// Objects on partial slabs.
    pub(crate) objects_partial: Option<u64>,
    /// Bytes held.
    pub(crate) memory: Option<u64>,
    /// Bytes of payload in use.
    pub(crate) used: Option<u64>,
    /// `memory - used`.
    pub(crate) loss: Option<u64>,
}

impl<'a> Row<'a> {
    /// The figures of `cache`, shown as `name`.
    pub(crate) fn new(cache: &'a Cache, name: &'a str, page_size: u64) -> Self {
        let figure = |q| cache.get(q).map(|f| f.value);
        let usage = Usage::of(cache, page_size);
        let bytes = |f: Option<collectors::model::Approx<Bytes>>| f.map(|f| f.value.get());
        let object_size = figure(Quantity::ObjectSize);
        // From the slot size alone the payload is a guess, and a column of
        // this tool has no place to say so.
        let payload = object_size.is_some() || figure(Quantity::ReportedUsed).is_some();
        Self {
            cache,
            name,
            objects: figure(Quantity::Objects),
            object_size,
            slab_size: figure(Quantity::SlabSize),
            objs_per_slab: figure(Quantity::ObjsPerSlab),
            order: order(cache),
            slab_bytes: cache
                .pages_per_slab()
                .and_then(|pages| pages.checked_mul(page_size)),
            slabs: figure(Quantity::Slabs),
            partial: figure(Quantity::Partial),
            cpu_slabs: figure(Quantity::CpuSlabs),
            objects_partial: figure(Quantity::ObjectsPartial),
            memory: bytes(usage.memory),
            used: bytes(usage.used).filter(|_| payload),
            loss: bytes(usage.loss).filter(|_| payload),
        }
    }

    /// Slabs that no CPU uses.
    pub(crate) fn node_slabs(&self) -> Option<u64> {
        Some(self.slabs?.saturating_sub(self.cpu_slabs?))
    }

    /// Slabs without a free slot, as far as the lists tell.
    pub(crate) fn full_slabs(&self) -> Option<u64> {
        Some(self.node_slabs()?.saturating_sub(self.partial?))
    }

    /// Partial slabs in percent of all; 100 for a cache without slabs, as the tool has it.
    pub(crate) fn percent_partial(&self) -> Option<u64> {
        if self.slabs == Some(0) {
            return Some(100);
        }
        percent(self.partial?, self.slabs?)
    }

    /// Payload in percent of the memory held; 100 for a cache without slabs.
    pub(crate) fn percent_used(&self) -> Option<u64> {
        if self.slabs == Some(0) {
            return Some(100);
        }
        percent(self.used?, self.memory?)
    }

    /// Whether other caches were merged into this one.
    pub(crate) fn has_aliases(&self) -> bool {
        match self.cache.get(Quantity::AliasCount) {
            Some(count) => count.value > 0,
            None => self.cache.aliases.as_ref().is_some_and(|a| !a.is_empty()),
        }
    }

    /// The `Flg` column; a `-` in it says that the flags were not read.
    pub(crate) fn flags(&self) -> String {
        let mut out = String::new();
        if self.has_aliases() {
            out.push('*');
        }
        if self.cache.flags.is_unknown() {
            out.push('-');
        }
        for flag in Flag::ALL {
            if let Some(letter) = flag.letter().filter(|_| self.cache.flags.is_set(*flag)) {
                out.push(letter);
            }
        }
        out
    }

    /// One event counter.
    pub(crate) fn counter(&self, id: CounterId) -> Option<u64> {
        self.cache.counters.as_ref()?.total(id)
    }

    /// Allocations: all of them, and those by the fast path.
    pub(crate) fn allocations(&self) -> Option<(u64, u64)> {
        self.path(
            CounterId::AllocFastpath,
            CounterId::AllocSlowpath,
            CounterId::AllocCpuSheaf,
        )
    }

    /// Frees: all of them, and those by the fast path.
    pub(crate) fn frees(&self) -> Option<(u64, u64)> {
        self.path(
            CounterId::FreeFastpath,
            CounterId::FreeSlowpath,
            CounterId::FreeCpuSheaf,
        )
    }

    /// Linux 6.18 and 6.19 count what sheaves served apart; later kernels
    /// count it as the fast path, and so does this.
    fn path(&self, fast: CounterId, slow: CounterId, sheaf: CounterId) -> Option<(u64, u64)> {
        let sheaf = self.counter(sheaf).unwrap_or(0);
        let fast = self.counter(fast)?.saturating_add(sheaf);
        Some((fast.saturating_add(self.counter(slow)?), fast))
    }

    /// Allocations and frees together.
    pub(crate) fn activity(&self) -> Option<u64> {
        Some(self.allocations()?.0.saturating_add(self.frees()?.0))
    }
}

/// `part` in whole percent of `whole`, at most 100; `None` of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> Option<u64> {
    let percent = (u128::from(part) * 100).checked_div(u128::from(whole))?;
    u64::try_from(percent.min(100)).ok()
}

fn order(cache: &Cache) -> Option<u64> {
    if let Some(order) = cache.get(Quantity::Order) {
        return Some(order.value);
    }
    let pages = cache.pages_per_slab()?;
    pages.is_power_of_two().then(|| u64::from(pages.ilog2()))
}

/// A number as the tool prints it: decimal K, M and G with one digit cut off,
/// or in full.
pub(crate) fn scaled(value: u128, exact: bool) -> String {
    const UNITS: [(u128, char); 3] = [(1_000_000_000, 'G'), (1_000_000, 'M'), (1_000, 'K')];
    for (unit, letter) in UNITS {
        if !exact && value > unit {
            let tenths = value / (unit / 10);
            return format!("{}.{}{letter}", tenths / 10, tenths % 10);
        }
    }
    value.to_string()
}

/// A figure for a column: `-` when it is unknown.
pub(crate) fn cell(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| v.to_string())
}

/// A scaled figure for a column: `-` when it is unknown.
pub(crate) fn scaled_cell(value: Option<u64>, exact: bool) -> String {
    value.map_or_else(|| "-".to_owned(), |v| scaled(u128::from(v), exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_as_the_tool_scales_them() {
        let cases: [(u128, &str); 8] = [
            (0, "0"),
            (1000, "1000"),
            (1001, "1.0K"),
            (20_480, "20.4K"),
            (1_000_000, "1000.0K"),
            (117_083_136, "117.0M"),
            (1_000_000_001, "1.0G"),
            (u128::from(u64::MAX), "18446744073.7G"),
        ];
        for (value, text) in cases {
            assert_eq!(scaled(value, false), text);
        }
        assert_eq!(scaled(20_480, true), "20480");
    }

    #[test]
    fn a_share_stays_within_100_and_is_unknown_of_nothing() {
        assert_eq!(percent(5, 3), Some(100));
        assert_eq!(percent(u64::MAX, u64::MAX), Some(100));
        assert_eq!(percent(1, 0), None);
    }
}
