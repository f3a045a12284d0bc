//! One cache: packed figures with their origin, and the rarer parts beside them.

use super::{
    Approx, Bytes, CacheId, CallSite, CountedBy, Counters, CpuPart, Flags, Layer, LayerSet,
    NodePart, Objects, Occupancy, Quantity, QuantitySet, Slabs,
};

/// The constructor of a cache.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ctor {
    /// The attribute was not read.
    #[default]
    Unknown,
    /// The cache has none.
    None,
    /// Its symbol, as printed.
    Symbol(Box<str>),
}

/// The `tunables` columns of /proc/slabinfo: all zero under SLUB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlabTunables {
    /// Objects a per-CPU array may hold.
    pub limit: u64,
    /// Objects moved at once between the per-CPU array and the lists.
    pub batchcount: u64,
    /// How many batches the shared array may hold; absent in version 1.1.
    pub sharedfactor: Option<u64>,
}

/// Statistics columns of the SLAB allocator (CONFIG_DEBUG_SLAB; 2.4 to 6.7).
///
/// Names as in the header of /proc/slabinfo 2.1; what a version lacks is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlabStatistics {
    /// Objects allocated over the cache's life.
    pub listallocs: Option<u64>,
    /// Largest number of objects ever in use.
    pub maxobjs: Option<u64>,
    /// Slabs ever added.
    pub grown: Option<u64>,
    /// Slabs ever given back.
    pub reaped: Option<u64>,
    /// Errors noticed.
    pub error: Option<u64>,
    /// Largest number of free objects of one alien array.
    pub maxfreeable: Option<u64>,
    /// Allocations from another node.
    pub nodeallocs: Option<u64>,
    /// Frees of another node's objects.
    pub remotefrees: Option<u64>,
    /// Overflows of alien arrays.
    pub alienoverflow: Option<u64>,
    /// Allocations served by the per-CPU array.
    pub allochit: Option<u64>,
    /// Allocations that were not.
    pub allocmiss: Option<u64>,
    /// Frees taken by the per-CPU array.
    pub freehit: Option<u64>,
    /// Frees that were not.
    pub freemiss: Option<u64>,
}

impl SlabStatistics {
    /// Objects in use by the hit and miss counters alone; `None` where they are
    /// missing or contradict each other.
    pub fn live_by_counters(&self) -> Option<u64> {
        let allocs = self.allochit?.checked_add(self.allocmiss?)?;
        allocs.checked_sub(self.freehit?.checked_add(self.freemiss?)?)
    }
}

const NO_LAYER: u8 = u8::MAX;

/// Everything known about one slab cache at one moment.
///
/// Figures sit in one packed table keyed by [`Quantity`], so that merging,
/// columns and machine output share one path and a million rows stay cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Unique within the snapshot, in source order.
    pub id: CacheId,
    /// The name shown: the first-created one, as in /proc/slabinfo, where known.
    pub name: Box<str>,
    /// Directory name in /sys/kernel/slab, for example `:aA-0000192` or `dentry`.
    pub sysfs_id: Option<Box<str>>,
    /// Other names merged into this cache, sorted; `None` when unknown.
    pub aliases: Option<Vec<Box<str>>>,
    /// The control group a memory.kmem.slabinfo row belongs to.
    pub cgroup: Option<Box<str>>,
    /// Constructor.
    pub ctor: Ctor,
    /// Yes-or-no attributes.
    pub flags: Flags,
    /// Per-node parts, by node number; empty when not read.
    pub nodes: Vec<NodePart>,
    /// Per-CPU parts, by processor number; empty when not read.
    pub cpus: Vec<CpuPart>,
    /// Which layers gave anything.
    pub layers: LayerSet,
    /// True occupancy of the slabs, from sources that can see it.
    pub occupancy: Option<Box<Approx<Occupancy>>>,
    /// Event counters (CONFIG_SLUB_STATS, the engine).
    pub counters: Option<Box<Counters>>,
    /// Whose counters these are.
    pub counted_by: CountedBy,
    /// Per-CPU array settings of the SLAB allocator.
    pub tunables: Option<Box<SlabTunables>>,
    /// Statistics of the SLAB allocator.
    pub slab_statistics: Option<Box<SlabStatistics>>,
    /// Call sites, when asked for and available.
    pub sites: Option<Box<Vec<CallSite>>>,
    known: QuantitySet,
    approx: QuantitySet,
    origin: [u8; Quantity::COUNT],
    values: [u64; Quantity::COUNT],
}

impl Cache {
    /// Whether it holds nothing, by the first figure that tells.
    pub fn is_empty(&self) -> Option<bool> {
        [
            Quantity::Slabs,
            Quantity::TotalObjects,
            Quantity::ReportedTotal,
        ]
        .into_iter()
        .find_map(|quantity| self.get(quantity))
        .map(|figure| figure.value == 0)
    }

    /// A cache of which only the name is known.
    pub fn new(id: CacheId, name: impl Into<Box<str>>) -> Self {
        Self {
            id,
            name: name.into(),
            sysfs_id: None,
            aliases: None,
            cgroup: None,
            ctor: Ctor::Unknown,
            flags: Flags::default(),
            nodes: Vec::new(),
            cpus: Vec::new(),
            layers: LayerSet::default(),
            occupancy: None,
            counters: None,
            counted_by: CountedBy::Allocator,
            tunables: None,
            slab_statistics: None,
            sites: None,
            known: QuantitySet::EMPTY,
            approx: QuantitySet::EMPTY,
            origin: [NO_LAYER; Quantity::COUNT],
            values: [0; Quantity::COUNT],
        }
    }

    /// The figure, or `None` when no layer gave it.
    pub const fn get(&self, q: Quantity) -> Option<Approx<u64>> {
        if self.known.contains(q) {
            Some(Approx {
                value: self.values[q as usize],
                approx: self.approx.contains(q),
            })
        } else {
            None
        }
    }

    /// Records a figure, replacing what was there.
    pub fn set(&mut self, q: Quantity, figure: Approx<u64>, layer: Layer) {
        self.known.insert(q);
        if figure.approx {
            self.approx.insert(q);
        } else {
            self.approx.remove(q);
        }
        self.values[q as usize] = figure.value;
        self.origin[q as usize] = layer as u8;
        self.layers.insert(layer);
    }

    /// Records an exact figure.
    pub fn set_exact(&mut self, q: Quantity, value: u64, layer: Layer) {
        self.set(q, Approx::exact(value), layer);
    }

    /// Records exact figures of one layer.
    #[must_use]
    pub fn with(mut self, layer: Layer, figures: &[(Quantity, u64)]) -> Self {
        for (q, value) in figures {
            self.set_exact(*q, *value, layer);
        }
        self
    }

    /// Takes a figure back: it is unknown then.
    pub const fn forget(&mut self, q: Quantity) {
        self.known.remove(q);
        self.approx.remove(q);
        self.origin[q as usize] = NO_LAYER;
    }

    /// Records a figure only where none is known yet: the first layer wins.
    pub fn fill(&mut self, q: Quantity, figure: Approx<u64>, layer: Layer) {
        if !self.known.contains(q) {
            self.set(q, figure, layer);
        }
    }

    /// Where the figure came from.
    pub fn origin(&self, q: Quantity) -> Option<Layer> {
        Layer::ALL.get(self.origin[q as usize] as usize).copied()
    }

    /// The quantities that are known.
    pub const fn known(&self) -> QuantitySet {
        self.known
    }

    /// The quantities that are known as estimates.
    pub const fn estimates(&self) -> QuantitySet {
        self.approx
    }

    /// Takes from `other` every figure and part that is not known here.
    ///
    /// Used when a cache appears in several layers of one source; `other` is
    /// the lesser layer.
    pub fn fill_from(&mut self, other: Self) {
        for q in other.known.iter() {
            if let (Some(figure), Some(layer)) = (other.get(q), other.origin(q)) {
                self.fill(q, figure, layer);
            }
        }
        for layer in other.layers.iter() {
            self.layers.insert(layer);
        }
        for flag in super::Flag::ALL {
            if let (None, Some(value)) = (self.flags.get(*flag), other.flags.get(*flag)) {
                self.flags.put(*flag, value);
            }
        }
        if self.ctor == Ctor::Unknown {
            self.ctor = other.ctor;
        }
        if self.nodes.is_empty() {
            self.nodes = other.nodes;
        }
        if self.cpus.is_empty() {
            self.cpus = other.cpus;
        }
        self.sysfs_id = self.sysfs_id.take().or(other.sysfs_id);
        self.aliases = self.aliases.take().or(other.aliases);
        self.cgroup = self.cgroup.take().or(other.cgroup);
        self.occupancy = self.occupancy.take().or(other.occupancy);
        if self.counters.is_none() {
            self.counters = other.counters;
            self.counted_by = other.counted_by;
        }
        self.tunables = self.tunables.take().or(other.tunables);
        self.slab_statistics = self.slab_statistics.take().or(other.slab_statistics);
        self.sites = self.sites.take().or(other.sites);
    }

    fn typed<T: From<u64>>(&self, q: Quantity) -> Option<Approx<T>> {
        self.get(q).map(|figure| figure.map(T::from))
    }

    /// Payload bytes of one object.
    pub fn object_size(&self) -> Option<Approx<Bytes>> {
        self.typed(Quantity::ObjectSize)
    }

    /// Bytes of one object's slot.
    pub fn slab_size(&self) -> Option<Approx<Bytes>> {
        self.typed(Quantity::SlabSize)
    }

    /// Objects in a slab of the preferred order.
    pub fn objs_per_slab(&self) -> Option<Approx<Objects>> {
        self.typed(Quantity::ObjsPerSlab)
    }

    /// Pages in a slab of the preferred order.
    pub fn pages_per_slab(&self) -> Option<u64> {
        if let Some(pages) = self.get(Quantity::PagesPerSlab) {
            return Some(pages.value);
        }
        let order = u32::try_from(self.get(Quantity::Order)?.value).ok()?;
        1u64.checked_shl(order)
    }

    /// Objects in use (see [`Quantity::Objects`] for what that includes).
    pub fn objects(&self) -> Option<Approx<Objects>> {
        self.typed(Quantity::Objects)
    }

    /// Objects the slabs have room for.
    pub fn total_objects(&self) -> Option<Approx<Objects>> {
        self.typed(Quantity::TotalObjects)
    }

    /// Objects in use on the nodes' partial slabs.
    pub fn objects_partial(&self) -> Option<Approx<Objects>> {
        self.typed(Quantity::ObjectsPartial)
    }

    /// Slabs held.
    pub fn slabs(&self) -> Option<Approx<Slabs>> {
        self.typed(Quantity::Slabs)
    }

    /// Slabs on the nodes' partial lists.
    pub fn partial(&self) -> Option<Approx<Slabs>> {
        self.typed(Quantity::Partial)
    }

    /// Slabs in use by CPUs.
    pub fn cpu_slabs(&self) -> Option<Approx<Slabs>> {
        self.typed(Quantity::CpuSlabs)
    }

    /// Every name of the cache: the shown one first, then its aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.name).chain(self.aliases.iter().flatten().map(|a| &**a))
    }

    /// True when sysfs shows the cache under a merge id such as `:A-0000192`.
    pub fn is_mergeable(&self) -> Option<bool> {
        self.sysfs_id.as_deref().map(|id| id.starts_with(':'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_layer_wins_and_gaps_are_filled() {
        let mut best = Cache::new(CacheId(0), "dentry");
        best.set_exact(Quantity::Slabs, 10, Layer::Sysfs);
        let mut lesser = Cache::new(CacheId(1), "dentry");
        lesser.set_exact(Quantity::Slabs, 11, Layer::Slabinfo);
        lesser.set(Quantity::Objects, Approx::estimate(7), Layer::Slabinfo);
        lesser.flags.put(super::super::Flag::Poison, true);
        best.fill_from(lesser);
        assert_eq!(best.slabs(), Some(Approx::exact(Slabs(10))));
        assert_eq!(best.objects(), Some(Approx::estimate(Objects(7))));
        assert_eq!(best.origin(Quantity::Slabs), Some(Layer::Sysfs));
        assert_eq!(best.origin(Quantity::Objects), Some(Layer::Slabinfo));
        assert_eq!(best.origin(Quantity::Align), None);
        assert!(best.flags.debugging());
    }

    #[test]
    fn pages_come_from_the_order_when_not_given() {
        let mut cache = Cache::new(CacheId(0), "x");
        assert_eq!(cache.pages_per_slab(), None);
        cache.set_exact(Quantity::Order, 3, Layer::Sysfs);
        assert_eq!(cache.pages_per_slab(), Some(8));
        cache.set_exact(Quantity::Order, 4_000_000_000_000, Layer::Sysfs);
        assert_eq!(cache.pages_per_slab(), None);
    }

    #[test]
    fn a_row_of_slabinfo_stays_small() {
        // A million caches must fit in a few times the text they came from.
        assert!(size_of::<Cache>() <= 480, "{}", size_of::<Cache>());
    }
}
