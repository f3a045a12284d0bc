//! The parts of a cache's JSON object: nodes, processors, counters, and the
//! columns only the SLAB allocator has.
//!
//! Source of truth: the parts of `collectors::model::Cache`, field by field.

use std::collections::BTreeMap;

use collectors::model::{
    Cache, Counter, CounterId, Counters, CpuPart, Layer, NodePart, Objects, QuantitySet,
    SlabStatistics, SlabTunables, Slabs,
};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::envelope::field_names;

/// What one NUMA node holds of a cache.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NodeRow {
    /// Node number.
    node: u32,
    /// Number of slabs on the node.
    slabs: Option<u64>,
    /// Number of objects in use on the node.
    objects: Option<u64>,
    /// Number of objects the node's slabs have room for.
    total_objects: Option<u64>,
    /// Number of slabs on the node's partial list.
    partial: Option<u64>,
    /// Number of objects in use on the node's partial list.
    objects_partial: Option<u64>,
    /// Number of the node's slabs in use by CPUs.
    cpu_slabs: Option<u64>,
    /// Number of full sheaves in the node's barn.
    barn_full: Option<u64>,
    /// Number of empty sheaves in the node's barn.
    barn_empty: Option<u64>,
}

impl NodeRow {
    pub(super) fn of(part: &NodePart) -> Self {
        Self {
            node: part.node.0,
            slabs: part.slabs.map(Slabs::get),
            objects: part.objects.map(Objects::get),
            total_objects: part.total_objects.map(Objects::get),
            partial: part.partial.map(Slabs::get),
            objects_partial: part.objects_partial.map(Objects::get),
            cpu_slabs: part.cpu_slabs.map(Slabs::get),
            barn_full: part.barn_full,
            barn_empty: part.barn_empty,
        }
    }
}

/// What one processor holds of a cache.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CpuRow {
    /// Processor number.
    cpu: u32,
    /// Number of free objects on its partial list; the kernel estimates it since 5.16.
    objects_cpu_partial: Option<u64>,
    /// Number of slabs on its partial list.
    slabs_cpu_partial: Option<u64>,
    /// Number of objects in its main sheaf.
    sheaf_main: Option<u64>,
    /// Number of objects in its spare sheaf.
    sheaf_spare: Option<u64>,
    /// Number of objects that wait for an RCU grace period in its sheaf.
    sheaf_rcu_free: Option<u64>,
    /// Number of free objects of the slab that it allocates from.
    objects_cpu_slab: Option<u64>,
}

impl CpuRow {
    pub(super) fn of(part: &CpuPart) -> Self {
        Self {
            cpu: part.cpu.0,
            objects_cpu_partial: part.objects_cpu_partial.map(Objects::get),
            slabs_cpu_partial: part.slabs_cpu_partial.map(Slabs::get),
            sheaf_main: part.sheaf_main.map(Objects::get),
            sheaf_spare: part.sheaf_spare.map(Objects::get),
            sheaf_rcu_free: part.sheaf_rcu_free.map(Objects::get),
            objects_cpu_slab: part.objects_cpu_slab.map(Objects::get),
        }
    }
}

/// The form of [`CounterMap`], for the schema.
pub(super) type CounterSchema = BTreeMap<String, CounterRow>;

/// Counters as an object, in the kernel's order.
#[derive(Debug)]
pub(super) struct CounterMap<'a>(pub(super) &'a Counters);

impl Serialize for CounterMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = CounterId::ALL.iter().filter_map(|id| self.0.get(*id));
        serializer.collect_map(known.map(|c| (c.id.name(), CounterRow::of(c))))
    }
}

/// One event counter of a cache.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CounterRow {
    /// The kernel's sum over the online CPUs.
    total: u64,
    /// The per-CPU values that were printed; the kernel leaves out a CPU with 0.
    cpus: Vec<CpuValue>,
}

impl CounterRow {
    fn of(counter: &Counter) -> Self {
        let value = |(cpu, value): &(collectors::model::CpuId, u32)| CpuValue {
            cpu: cpu.0,
            value: *value,
        };
        Self {
            total: counter.total,
            cpus: counter.cpus.iter().map(value).collect(),
        }
    }
}

/// The value of an event counter on one processor.
#[derive(Debug, Serialize, JsonSchema)]
struct CpuValue {
    /// Processor number.
    cpu: u32,
    /// The counter's value, 32 bits wide in the kernel.
    value: u32,
}

/// The form of [`SourceMap`], for the schema.
pub(super) type SourceSchema = BTreeMap<String, Vec<String>>;

/// Field names by the layer that gave them, best layer first.
#[derive(Debug)]
pub(super) struct SourceMap<'a>(pub(super) &'a Cache);

impl Serialize for SourceMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cache = self.0;
        let gave = |layer: Layer| {
            let mut set = QuantitySet::EMPTY;
            for q in cache.known().iter() {
                if cache.origin(q) == Some(layer) {
                    set.insert(q);
                }
            }
            field_names(set)
        };
        serializer.collect_map(cache.layers.iter().map(|l| (l.name(), gave(l))))
    }
}

/// Per-CPU array settings of the SLAB allocator, zero under SLUB.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TunablesRow {
    /// Number of objects a per-CPU array may hold.
    limit: u64,
    /// Number of objects moved at once.
    batchcount: u64,
    /// Number of batches the shared array may hold; null in version 1.1.
    sharedfactor: Option<u64>,
}

impl TunablesRow {
    pub(super) const fn of(tunables: &SlabTunables) -> Self {
        Self {
            limit: tunables.limit,
            batchcount: tunables.batchcount,
            sharedfactor: tunables.sharedfactor,
        }
    }
}

/// Statistics of the SLAB allocator over the cache's life; names as in the
/// header of /proc/slabinfo.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SlabStatisticsRow {
    /// Number of objects allocated.
    listallocs: Option<u64>,
    /// Largest number of objects in use at once.
    maxobjs: Option<u64>,
    /// Number of slabs added.
    grown: Option<u64>,
    /// Number of slabs given back.
    reaped: Option<u64>,
    /// Number of errors noticed.
    error: Option<u64>,
    /// Largest number of free objects of one alien array.
    maxfreeable: Option<u64>,
    /// Number of allocations from another node.
    nodeallocs: Option<u64>,
    /// Number of frees of another node's objects.
    remotefrees: Option<u64>,
    /// Number of overflows of alien arrays.
    alienoverflow: Option<u64>,
    /// Number of allocations served by the per-CPU array.
    allochit: Option<u64>,
    /// Number of allocations that the per-CPU array could not serve.
    allocmiss: Option<u64>,
    /// Number of frees taken by the per-CPU array.
    freehit: Option<u64>,
    /// Number of frees that the per-CPU array could not take.
    freemiss: Option<u64>,
}

impl SlabStatisticsRow {
    pub(super) const fn of(statistics: &SlabStatistics) -> Self {
        Self {
            listallocs: statistics.listallocs,
            maxobjs: statistics.maxobjs,
            grown: statistics.grown,
            reaped: statistics.reaped,
            error: statistics.error,
            maxfreeable: statistics.maxfreeable,
            nodeallocs: statistics.nodeallocs,
            remotefrees: statistics.remotefrees,
            alienoverflow: statistics.alienoverflow,
            allochit: statistics.allochit,
            allocmiss: statistics.allocmiss,
            freehit: statistics.freehit,
            freemiss: statistics.freemiss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::model::CpuId;

    fn counter(id: CounterId, total: u64) -> Counter {
        Counter {
            id,
            total,
            cpus: vec![(CpuId(3), u32::MAX)],
        }
    }

    #[test]
    fn counters_come_in_the_kernels_order_and_once() {
        let counters = Counters(vec![
            counter(CounterId::FreeSlab, 3),
            counter(CounterId::AllocFastpath, 1),
            counter(CounterId::FreeSlab, 4),
        ]);
        assert_eq!(
            serde_json::to_string(&CounterMap(&counters)).unwrap(),
            "{\"alloc_fastpath\":{\"total\":1,\"cpus\":[{\"cpu\":3,\"value\":4294967295}]},\
             \"free_slab\":{\"total\":3,\"cpus\":[{\"cpu\":3,\"value\":4294967295}]}}"
        );
    }
}
