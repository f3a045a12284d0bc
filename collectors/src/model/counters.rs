//! Event counters: the names of CONFIG_SLUB_STATS over all kernel versions.
//!
//! Source: `enum stat_item` in mm/slub.c, Linux 2.6.25 to 7.3. Each per-CPU
//! counter is 32 bits wide and wraps; a delta must be taken per CPU, modulo
//! 2^32. Linux 7.0 gave the fast and slow path counters another meaning
//! ("slab: update overview comments and statistics", January 2026): never
//! compare them across that boundary.

use super::CpuId;

/// What one step of a counter stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    /// One call took that path.
    Events,
    /// One object.
    Objects,
    /// One sheaf.
    Sheaves,
    /// One slab.
    Slabs,
}

macro_rules! counters {
    ($($variant:ident $name:literal $since:literal $until:literal $unit:ident $doc:literal,)*) => {
        /// A counter's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum CounterId {
            $(#[doc = $doc] $variant,)*
        }

        impl CounterId {
            /// Every counter, in the kernel's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The attribute's name in /sys/kernel/slab, where the kernel counts it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// First kernel seen with it.
            pub const fn since(self) -> &'static str {
                match self { $(Self::$variant => $since,)* }
            }

            /// Last kernel seen with it; empty when current kernels have it.
            pub const fn until(self) -> &'static str {
                match self { $(Self::$variant => $until,)* }
            }

            /// What one step stands for.
            pub const fn unit(self) -> CounterUnit {
                match self { $(Self::$variant => CounterUnit::$unit,)* }
            }

            /// One line on what it counts.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }

            /// The counter of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|c| c.name() == name)
            }
        }
    };
}

counters! {
    AllocFastpath "alloc_fastpath" "2.6.25" "" Events "Allocations from the CPU slab; from the per-CPU sheaf since 7.0.",
    AllocSlowpath "alloc_slowpath" "2.6.25" "" Events "Allocations that took a new CPU slab; from a partial or new slab since 7.0.",
    FreeFastpath "free_fastpath" "2.6.25" "" Events "Frees to the CPU slab; to the per-CPU sheaf since 7.0.",
    FreeSlowpath "free_slowpath" "2.6.25" "" Events "Frees to another slab.",
    FreeFrozen "free_frozen" "2.6.25" "6.19" Events "Frees to a frozen slab.",
    FreeAddPartial "free_add_partial" "2.6.25" "" Events "Frees that put a full slab on a partial list.",
    FreeRemovePartial "free_remove_partial" "2.6.25" "" Events "Frees that emptied a slab and took it off its list.",
    AllocFromPartial "alloc_from_partial" "2.6.25" "6.19" Events "CPU slabs taken from a node's partial list.",
    AllocSlab "alloc_slab" "2.6.25" "" Slabs "Slabs allocated from the page allocator.",
    AllocRefill "alloc_refill" "2.6.25" "6.19" Events "CPU slabs refilled from their own remote frees.",
    AllocNodeMismatch "alloc_node_mismatch" "3.1" "" Events "CPU slabs given up for another node; sheaf of another node since 7.0.",
    FreeSlab "free_slab" "2.6.25" "" Slabs "Slabs given back to the page allocator.",
    CpuslabFlush "cpuslab_flush" "2.6.25" "6.19" Events "CPU slabs flushed.",
    DeactivateFull "deactivate_full" "2.6.25" "6.19" Events "CPU slabs given up full.",
    DeactivateEmpty "deactivate_empty" "2.6.25" "6.19" Events "CPU slabs given up empty.",
    DeactivateToHead "deactivate_to_head" "2.6.25" "6.19" Events "CPU slabs moved to the head of the partial list.",
    DeactivateToTail "deactivate_to_tail" "2.6.25" "6.19" Events "CPU slabs moved to the tail of the partial list.",
    DeactivateRemoteFrees "deactivate_remote_frees" "2.6.25" "6.19" Events "CPU slabs given up with remote frees in them.",
    DeactivateBypass "deactivate_bypass" "3.1" "6.19" Events "CPU slabs dropped without a full deactivation.",
    OrderFallback "order_fallback" "2.6.26" "" Slabs "Slabs of a smaller order because memory was short.",
    CmpxchgDoubleCpuFail "cmpxchg_double_cpu_fail" "2.6.39" "6.19" Events "Retries of the per-CPU double-word exchange.",
    CmpxchgDoubleFail "cmpxchg_double_fail" "3.1" "" Events "Retries of the slab's double-word exchange.",
    CpuPartialAlloc "cpu_partial_alloc" "3.2" "6.19" Slabs "CPU slabs taken from the per-CPU partial list.",
    CpuPartialFree "cpu_partial_free" "3.2" "6.19" Slabs "Slabs put on the per-CPU partial list by a free.",
    CpuPartialNode "cpu_partial_node" "3.3" "6.19" Slabs "Slabs moved from the node to the per-CPU partial list.",
    CpuPartialDrain "cpu_partial_drain" "3.3" "6.19" Events "Per-CPU partial lists drained to the node.",
    AllocCpuSheaf "alloc_cpu_sheaf" "6.18" "6.19" Objects "Allocations from the per-CPU sheaf (ALLOC_PCS).",
    FreeCpuSheaf "free_cpu_sheaf" "6.18" "6.19" Objects "Frees to the per-CPU sheaf (FREE_PCS).",
    FreeRcuSheaf "free_rcu_sheaf" "6.18" "" Objects "kfree_rcu frees to an RCU sheaf.",
    FreeRcuSheafFail "free_rcu_sheaf_fail" "6.18" "" Events "kfree_rcu frees that found no RCU sheaf.",
    SheafFlush "sheaf_flush" "6.18" "" Objects "Objects flushed from sheaves to slabs.",
    SheafRefill "sheaf_refill" "6.18" "" Objects "Objects put into sheaves from slabs.",
    SheafAlloc "sheaf_alloc" "6.18" "" Sheaves "Sheaves allocated.",
    SheafFree "sheaf_free" "6.18" "" Sheaves "Sheaves freed.",
    BarnGet "barn_get" "6.18" "" Sheaves "Full sheaves taken from a barn.",
    BarnGetFail "barn_get_fail" "6.18" "" Events "Barns that had no full sheaf.",
    BarnPut "barn_put" "6.18" "" Sheaves "Full sheaves put into a barn.",
    BarnPutFail "barn_put_fail" "6.18" "" Events "Barns that were full.",
    SheafPrefillFast "sheaf_prefill_fast" "6.18" "" Events "Prefilled sheaves taken from the CPU's spare.",
    SheafPrefillSlow "sheaf_prefill_slow" "6.18" "" Events "Prefilled sheaves that had to be refilled.",
    SheafPrefillOversize "sheaf_prefill_oversize" "6.18" "" Events "Prefilled sheaves larger than the capacity.",
    SheafReturnFast "sheaf_return_fast" "6.18" "" Events "Prefilled sheaves returned as the spare.",
    SheafReturnSlow "sheaf_return_slow" "6.18" "" Events "Prefilled sheaves returned through a flush or the barn.",
    Allocs "allocs" "6.1" "" Events "All allocations, where BPF programs count them and not the path (--paths=counts).",
    Frees "frees" "6.1" "" Events "All frees, where BPF programs count them and not the path (--paths=counts).",
}

impl CounterId {
    /// Whether the kernel itself has it, not only programs that look on.
    pub const fn is_of_kernel(self) -> bool {
        !matches!(self, Self::Allocs | Self::Frees)
    }
}

/// Who counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountedBy {
    /// The allocator itself: the kernel's CONFIG_SLUB_STATS, or the engine.
    #[default]
    Allocator,
    /// BPF programs, event by event.
    Programs,
    /// BPF programs; how many events there were is counted, and which path each
    /// took is inferred.
    Inference,
}

/// One counter's reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Which.
    pub id: CounterId,
    /// The kernel's sum over the online CPUs. It can go down: on wrap, when a
    /// CPU goes offline, when somebody clears it.
    pub total: u64,
    /// The per-CPU values that were printed; a CPU with 0 is left out by the kernel.
    pub cpus: Vec<(CpuId, u32)>,
}

/// The counters of one cache.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters(pub Vec<Counter>);

impl Counters {
    /// The reading of one counter, or `None` when it was not read.
    pub fn get(&self, id: CounterId) -> Option<&Counter> {
        self.0.iter().find(|c| c.id == id)
    }

    /// The total of one counter.
    pub fn total(&self, id: CounterId) -> Option<u64> {
        self.get(id).map(|c| c.total)
    }

    /// Allocations by all paths: counted as such, or the sum of fast and slow.
    /// Sheaves of 6.18 and 6.19 are counted apart, and fast.
    pub fn allocs(&self) -> Option<u64> {
        let parts = [CounterId::AllocFastpath, CounterId::AllocSlowpath];
        self.all(CounterId::Allocs, parts, CounterId::AllocCpuSheaf)
    }

    /// Frees by all paths.
    pub fn frees(&self) -> Option<u64> {
        let parts = [CounterId::FreeFastpath, CounterId::FreeSlowpath];
        self.all(CounterId::Frees, parts, CounterId::FreeCpuSheaf)
    }

    fn all(&self, all: CounterId, [fast, slow]: [CounterId; 2], apart: CounterId) -> Option<u64> {
        self.total(all).or_else(|| {
            let sum = self.total(fast)?.saturating_add(self.total(slow)?);
            Some(sum.saturating_add(self.total(apart).unwrap_or(0)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_counter() {
        for id in CounterId::ALL {
            assert_eq!(CounterId::from_name(id.name()), Some(*id));
            assert!(!id.since().is_empty() && !id.doc().is_empty());
        }
        // The enum says ALLOC_PCS; the file never was called that.
        assert_eq!(CounterId::from_name("alloc_pcs"), None);
    }
}
