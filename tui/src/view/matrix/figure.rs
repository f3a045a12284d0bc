//! The figures of the matrix: what a processor or a node holds of a cache.

use collectors::model::{Cache, CpuPart, NodePart, Objects, Quantity, Slabs};

use crate::model::{Model, Moment};

/// A figure of a processor.
pub(super) struct OfCpu {
    title: &'static str,
    of: fn(&CpuPart) -> Option<u64>,
    /// Known: whoever the list leaves out holds none.
    listed: Option<Quantity>,
}

/// A figure of a node.
pub(super) struct OfNode {
    title: &'static str,
    of: fn(&NodePart) -> Option<u64>,
    listed: Option<Quantity>,
}

const CPU: [OfCpu; 5] = [
    OfCpu {
        title: "slabs on the partial list",
        of: |p| p.slabs_cpu_partial.map(Slabs::get),
        listed: Some(Quantity::SlabsCpuPartial),
    },
    OfCpu {
        title: "free objects on the partial list",
        of: |p| p.objects_cpu_partial.map(Objects::get),
        listed: Some(Quantity::SlabsCpuPartial),
    },
    OfCpu {
        title: "objects in the main sheaf",
        of: |p| p.sheaf_main.map(Objects::get),
        listed: None,
    },
    OfCpu {
        title: "objects in the spare sheaf",
        of: |p| p.sheaf_spare.map(Objects::get),
        listed: None,
    },
    OfCpu {
        title: "objects in the rcu_free sheaf",
        of: |p| p.sheaf_rcu_free.map(Objects::get),
        listed: None,
    },
];

const NODE: [OfNode; 8] = [
    OfNode {
        title: "slabs",
        of: |p| p.slabs.map(Slabs::get),
        listed: Some(Quantity::Slabs),
    },
    OfNode {
        title: "slabs on the partial list",
        of: |p| p.partial.map(Slabs::get),
        listed: Some(Quantity::Partial),
    },
    OfNode {
        title: "slabs in use by CPUs",
        of: |p| p.cpu_slabs.map(Slabs::get),
        listed: Some(Quantity::CpuSlabs),
    },
    OfNode {
        title: "objects in use",
        of: |p| p.objects.map(Objects::get),
        listed: Some(Quantity::Objects),
    },
    OfNode {
        title: "objects there is room for",
        of: |p| p.total_objects.map(Objects::get),
        listed: Some(Quantity::TotalObjects),
    },
    OfNode {
        title: "objects in use on the partial list",
        of: |p| p.objects_partial.map(Objects::get),
        listed: Some(Quantity::ObjectsPartial),
    },
    OfNode {
        title: "full sheaves in the barn",
        of: |p| p.barn_full,
        listed: None,
    },
    OfNode {
        title: "empty sheaves in the barn",
        of: |p| p.barn_empty,
        listed: None,
    },
];

/// The side and the figure that are shown.
pub(super) enum Figure {
    Cpu(&'static OfCpu),
    Node(&'static OfNode),
}

impl Figure {
    /// The chosen one among those that some cache has.
    pub(super) fn chosen(model: &Model, now: &Moment) -> Option<(Self, usize)> {
        let caches = &now.snapshot.caches;
        let mut known: Vec<Self> = if model.spot().turned {
            let has = |f: &&OfNode| {
                caches
                    .iter()
                    .flat_map(|c| &c.nodes)
                    .any(|p| (f.of)(p).is_some())
            };
            NODE.iter().filter(has).map(Self::Node).collect()
        } else {
            let has = |f: &&OfCpu| {
                caches
                    .iter()
                    .flat_map(|c| &c.cpus)
                    .any(|p| (f.of)(p).is_some())
            };
            CPU.iter().filter(has).map(Self::Cpu).collect()
        };
        let count = known.len();
        (count > 0).then(|| (known.swap_remove(model.spot().view % count), count))
    }

    /// What it is.
    pub(super) const fn title(&self) -> &'static str {
        match self {
            Self::Cpu(f) => f.title,
            Self::Node(f) => f.title,
        }
    }

    /// The value of a cache at a processor or node.
    pub(super) fn value(&self, cache: &Cache, id: u32) -> Option<u64> {
        let (found, listed) = match self {
            Self::Cpu(f) => {
                let part = cache.cpus.iter().find(|p| p.cpu.0 == id);
                (part.map(f.of), f.listed)
            }
            Self::Node(f) => {
                let part = cache.nodes.iter().find(|p| p.node.0 == id);
                (part.map(f.of), f.listed)
            }
        };
        match found {
            Some(value) => value,
            None => cache.get(listed?).map(|_| 0),
        }
    }
}
