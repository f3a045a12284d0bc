//! One cache as a JSON object: the row of `slabctl.report/1` and of JSON lines.
//!
//! Source of truth: `collectors::model::Cache` for what was read and
//! `collectors::analysis::Usage` for what is computed from it. The order of
//! fields is part of the contract; new ones go to the end.

use collectors::analysis::Usage;
use collectors::model::{Approx, Bytes, Cache, CountedBy, Ctor, Flag, Flags, Quantity};
use schemars::JsonSchema;
use serde::Serialize;

use super::parts::{CounterMap, CpuRow, NodeRow, SlabStatisticsRow, SourceMap, TunablesRow};

/// One slab cache.
///
/// Where a figure has the name of an attribute file of /sys/kernel/slab, it is
/// that attribute or its counterpart in another source. Null is unknown: no
/// part of the source gave the figure.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CacheRow<'a> {
    /// Name of the cache: the first of its names, as in /proc/slabinfo. Not
    /// unique.
    name: &'a str,
    /// Directory in /sys/kernel/slab, a merge id such as ":aA-0000192" where
    /// caches of one layout may share it.
    id: Option<&'a str>,
    /// Other names merged into this cache, sorted; empty when it has none.
    aliases: Option<Vec<&'a str>>,
    /// Bytes of payload of one object.
    object_size: Option<u64>,
    /// Bytes of one object's slot, metadata and alignment included
    /// (`objsize` of /proc/slabinfo).
    slab_size: Option<u64>,
    /// Number of objects in a slab of the preferred order.
    objs_per_slab: Option<u64>,
    /// Preferred page order of a slab: it has 2^order pages.
    order: Option<u64>,
    /// Alignment of an object in bytes.
    align: Option<u64>,
    /// Bytes of an object that may be copied to and from user space.
    usersize: Option<u64>,
    /// Symbol of the constructor. Null when there is none and when it is
    /// unknown; `ctor_known` tells which.
    ctor: Option<&'a str>,
    /// Yes-or-no attributes.
    flags: FlagsRow,
    /// Settings that bound what is kept free.
    limits: LimitsRow,
    /// Number of objects in use. Includes free ones parked in CPU slabs, CPU
    /// partial lists, sheaves and barns; not where the source sees those, as
    /// the built-in engine and BPF programs do: what is really in use then.
    objects: Option<u64>,
    /// Number of objects the slabs have room for.
    total_objects: Option<u64>,
    /// Number of objects in use on the nodes' partial slabs.
    objects_partial: Option<u64>,
    /// Number of slabs held.
    slabs: Option<u64>,
    /// Number of slabs on the nodes' partial lists.
    partial: Option<u64>,
    /// Number of slabs in use by CPUs, with their partial lists on most kernels.
    cpu_slabs: Option<u64>,
    /// Number of slabs on per-CPU partial lists.
    slabs_cpu_partial: Option<u64>,
    /// Number of free objects on per-CPU partial lists; the kernel estimates
    /// it since 5.16.
    objects_cpu_partial: Option<u64>,
    /// Number of slabs by share of objects in use, where free ones in sheaves
    /// and lists of CPUs count as in use: first the empty slabs, then ten
    /// tenths, last the full ones. Null when the source cannot see it.
    occupancy: Option<[u64; 12]>,
    /// Bytes of memory held: slabs x pages of a slab x bytes of a page, or what
    /// the source itself prints. An upper bound, named in `approx`, where
    /// `total_objects` is less than slabs x objs_per_slab.
    memory_bytes: Option<u64>,
    /// Bytes of payload in use: objects x object_size, or x slab_size and named
    /// in `approx` where only that is known.
    used_bytes: Option<u64>,
    /// Bytes held and not used: memory_bytes - used_bytes, 0 at least.
    loss_bytes: Option<u64>,
    /// used_bytes / memory_bytes, 0 to 1. Null also when no memory is held.
    #[schemars(range(min = 0.0, max = 1.0))]
    utilization: Option<f64>,
    /// What each NUMA node holds; empty when the source does not tell.
    nodes: Vec<NodeRow>,
    /// Event counters by name (kernels with CONFIG_SLUB_STATS), in the kernel's
    /// order; null when there are none. A counter is 32 bits wide per CPU and
    /// wraps; some changed their meaning in 7.0.
    #[schemars(with = "Option<super::parts::CounterSchema>")]
    counters: Option<CounterMap<'a>>,
    /// Names of the fields of this object, in `limits` too, that are estimates or bounds.
    approx: Vec<&'static str>,
    /// Control group of a row from memory.kmem.slabinfo.
    cgroup: Option<&'a str>,
    /// Number of pages in a slab of the preferred order.
    pages_per_slab: Option<u64>,
    /// Number of slabs with an object in use (the SLAB allocator only).
    active_slabs: Option<u64>,
    /// `tunables` columns of /proc/slabinfo, zero under SLUB.
    tunables: Option<TunablesRow>,
    /// Statistics columns of /proc/slabinfo (SLAB allocator with CONFIG_DEBUG_SLAB).
    slab_statistics: Option<SlabStatisticsRow>,
    /// What each processor holds; empty when the source does not tell.
    cpus: Vec<CpuRow>,
    /// Fields of this object by the layer that gave them. Computed fields are
    /// not listed.
    #[schemars(with = "super::parts::SourceSchema")]
    sources: SourceMap<'a>,
    /// True when the source tells whether there is a constructor.
    ctor_known: bool,
    /// Bytes in use as the source itself prints them, where it prints only sizes.
    reported_used: Option<u64>,
    /// Bytes held as the source itself prints them, where it prints only sizes.
    reported_total: Option<u64>,
    /// Number of free objects in CPU slabs, CPU partial lists, sheaves and
    /// barns, which the kernel's own files count as in use (BPF only).
    parked: Option<u64>,
}

impl<'a> CacheRow<'a> {
    /// The row of `cache` on a machine with pages of `page_size` bytes.
    pub(crate) fn of(cache: &'a Cache, page_size: u64) -> Self {
        let usage = Usage::of(cache, page_size);
        let figure = |q| cache.get(q).map(|f| f.value);
        let ctor = match &cache.ctor {
            Ctor::Symbol(symbol) => Some(&**symbol),
            Ctor::None | Ctor::Unknown => None,
        };
        Self {
            name: &cache.name,
            id: cache.sysfs_id.as_deref(),
            aliases: cache
                .aliases
                .as_ref()
                .map(|list| list.iter().map(|a| &**a).collect()),
            object_size: figure(Quantity::ObjectSize),
            slab_size: figure(Quantity::SlabSize),
            objs_per_slab: figure(Quantity::ObjsPerSlab),
            order: figure(Quantity::Order),
            align: figure(Quantity::Align),
            usersize: figure(Quantity::Usersize),
            ctor,
            flags: FlagsRow::of(cache.flags),
            limits: LimitsRow::of(cache),
            objects: figure(Quantity::Objects),
            total_objects: figure(Quantity::TotalObjects),
            objects_partial: figure(Quantity::ObjectsPartial),
            slabs: figure(Quantity::Slabs),
            partial: figure(Quantity::Partial),
            cpu_slabs: figure(Quantity::CpuSlabs),
            slabs_cpu_partial: figure(Quantity::SlabsCpuPartial),
            objects_cpu_partial: figure(Quantity::ObjectsCpuPartial),
            occupancy: cache.occupancy.as_ref().map(|o| o.value.0),
            memory_bytes: bytes(usage.memory),
            used_bytes: bytes(usage.used),
            loss_bytes: bytes(usage.loss),
            utilization: usage.utilization.map(|u| u.value),
            nodes: cache.nodes.iter().map(NodeRow::of).collect(),
            counters: cache.counters.as_deref().map(CounterMap),
            approx: approx(cache, &usage),
            cgroup: cache.cgroup.as_deref(),
            pages_per_slab: cache.pages_per_slab(),
            active_slabs: figure(Quantity::ActiveSlabs),
            tunables: cache.tunables.as_deref().map(TunablesRow::of),
            slab_statistics: cache.slab_statistics.as_deref().map(SlabStatisticsRow::of),
            cpus: cache.cpus.iter().map(CpuRow::of).collect(),
            sources: SourceMap(cache),
            ctor_known: cache.ctor != Ctor::Unknown,
            reported_used: figure(Quantity::ReportedUsed),
            reported_total: figure(Quantity::ReportedTotal),
            parked: figure(Quantity::Parked),
        }
    }
}

fn bytes(figure: Option<Approx<Bytes>>) -> Option<u64> {
    figure.map(|f| f.value.get())
}

/// Names of the row's estimates: what was read, then what is computed.
fn approx(cache: &Cache, usage: &Usage) -> Vec<&'static str> {
    let mut names = super::envelope::field_names(cache.estimates());
    let from_order = cache.get(Quantity::PagesPerSlab).is_none();
    if from_order && cache.estimates().contains(Quantity::Order) {
        names.push(Quantity::PagesPerSlab.name());
    }
    let computed = [
        ("memory_bytes", usage.memory.map(|f| f.approx)),
        ("used_bytes", usage.used.map(|f| f.approx)),
        ("loss_bytes", usage.loss.map(|f| f.approx)),
        ("utilization", usage.utilization.map(|f| f.approx)),
    ];
    let estimates = computed.iter().filter(|(_, approx)| *approx == Some(true));
    names.extend(estimates.map(|(name, _)| name));
    if cache.counted_by == CountedBy::Inference {
        names.push("counters");
    }
    if cache.occupancy.as_ref().is_some_and(|of| of.approx) {
        names.push("occupancy");
    }
    names
}

/// Yes-or-no attributes of a cache; each is null when unknown.
#[derive(Debug, Serialize, JsonSchema)]
struct FlagsRow {
    /// Counted as reclaimable (`SReclaimable` of /proc/meminfo).
    reclaim_account: Option<bool>,
    /// Objects are aligned to cache lines.
    hwcache_align: Option<bool>,
    /// Slabs are freed after an RCU grace period (SLAB_TYPESAFE_BY_RCU).
    destroy_by_rcu: Option<bool>,
    /// Pages come from the DMA zone.
    cache_dma: Option<bool>,
    /// Free objects are filled with a pattern (slab_debug=P).
    poison: Option<bool>,
    /// Objects are framed by red zones (slab_debug=Z).
    red_zone: Option<bool>,
    /// The last allocation and free of each object are recorded (slab_debug=U).
    store_user: Option<bool>,
    /// Consistency checks run on every operation (slab_debug=F).
    sanity_checks: Option<bool>,
    /// Every allocation and free is logged (slab_debug=T).
    trace: Option<bool>,
    /// Allocations fail on purpose (slab_debug=A).
    failslab: Option<bool>,
}

impl FlagsRow {
    const fn of(flags: Flags) -> Self {
        Self {
            reclaim_account: flags.get(Flag::ReclaimAccount),
            hwcache_align: flags.get(Flag::HwcacheAlign),
            destroy_by_rcu: flags.get(Flag::DestroyByRcu),
            cache_dma: flags.get(Flag::CacheDma),
            poison: flags.get(Flag::Poison),
            red_zone: flags.get(Flag::RedZone),
            store_user: flags.get(Flag::StoreUser),
            sanity_checks: flags.get(Flag::SanityChecks),
            trace: flags.get(Flag::Trace),
            failslab: flags.get(Flag::Failslab),
        }
    }
}

/// Settings that bound what a cache keeps free; each is null when unknown.
#[derive(Debug, Serialize, JsonSchema)]
struct LimitsRow {
    /// Number of partial slabs a node keeps before empty ones are given back.
    min_partial: Option<u64>,
    /// Number of free objects that per-CPU partial lists aim to hold.
    cpu_partial: Option<u64>,
    /// Number of objects in a full per-CPU sheaf; 0 without sheaves.
    sheaf_capacity: Option<u64>,
    /// Willingness to take slabs from other nodes, 0 to 100.
    remote_node_defrag_ratio: Option<u64>,
}

impl LimitsRow {
    fn of(cache: &Cache) -> Self {
        let figure = |q| cache.get(q).map(|f| f.value);
        Self {
            min_partial: figure(Quantity::MinPartial),
            cpu_partial: figure(Quantity::CpuPartial),
            sheaf_capacity: figure(Quantity::SheafCapacity),
            remote_node_defrag_ratio: figure(Quantity::RemoteNodeDefragRatio),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::model::{CacheId, Layer};
    use serde_json::{Value, json};

    fn row(cache: &Cache) -> Value {
        serde_json::to_value(CacheRow::of(cache, 4096)).unwrap()
    }

    #[test]
    fn the_largest_number_survives() {
        let mut cache = Cache::new(CacheId(0), "x");
        cache.set_exact(Quantity::Objects, u64::MAX, Layer::Slabinfo);
        let text = serde_json::to_string(&CacheRow::of(&cache, 4096)).unwrap();
        assert!(text.contains("\"objects\":18446744073709551615,"));
        assert_eq!(row(&cache)["memory_bytes"], Value::Null);
    }

    #[test]
    fn no_constructor_and_an_unread_one_differ() {
        let mut cache = Cache::new(CacheId(0), "x");
        let ctor = |c: &Cache| (row(c)["ctor"].clone(), row(c)["ctor_known"].clone());
        assert_eq!(ctor(&cache), (Value::Null, json!(false)));
        cache.ctor = Ctor::None;
        assert_eq!(ctor(&cache), (Value::Null, json!(true)));
        cache.ctor = Ctor::Symbol("init_once".into());
        assert_eq!(ctor(&cache), (json!("init_once"), json!(true)));
    }

    #[test]
    fn estimates_are_named_whether_read_or_computed() {
        let mut cache = Cache::new(CacheId(0), "x");
        cache.set_exact(Quantity::SlabSize, 1104, Layer::Slabinfo);
        cache.set_exact(Quantity::ObjsPerSlab, 29, Layer::Slabinfo);
        cache.set(Quantity::Order, Approx::estimate(3), Layer::Derived);
        cache.set_exact(Quantity::Objects, 142_352, Layer::Slabinfo);
        cache.set_exact(Quantity::TotalObjects, 171_921, Layer::Slabinfo);
        cache.set_exact(Quantity::Slabs, 5931, Layer::Slabinfo);
        cache.set(Quantity::AliasCount, Approx::estimate(1), Layer::Slabinfo);
        let names = [
            "order",
            "pages_per_slab",
            "memory_bytes",
            "used_bytes",
            "loss_bytes",
            "utilization",
        ];
        assert_eq!(row(&cache)["approx"], json!(names));
    }

    #[test]
    fn every_figure_of_the_model_has_its_field() {
        for (i, q) in Quantity::ALL.iter().enumerate() {
            let mut cache = Cache::new(CacheId(0), "x");
            let value = 1000 + i as u64;
            cache.set_exact(*q, value, Layer::Sysfs);
            let row = row(&cache);
            if *q == Quantity::AliasCount {
                continue;
            }
            let place = row.get(q.name()).or_else(|| row["limits"].get(q.name()));
            assert_eq!(place, Some(&json!(value)), "{}", q.name());
            assert_eq!(row["sources"], json!({"sysfs": [q.name()]}));
        }
        for flag in Flag::ALL {
            let mut cache = Cache::new(CacheId(0), "x");
            cache.flags.put(*flag, true);
            assert_eq!(row(&cache)["flags"][flag.name()], json!(true));
        }
    }
}
