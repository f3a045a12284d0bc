//! The parts of a cache that belong to one node or one processor.

use super::{CpuId, NodeId, Objects, Slabs};

/// What one NUMA node holds of a cache.
///
/// Kernels leave nodes with a zero out of their `N<id>=` lists, so a node that
/// a list does not name has 0 there as long as the list itself was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePart {
    /// Which node.
    pub node: NodeId,
    /// Slabs on the node.
    pub slabs: Option<Slabs>,
    /// Objects in use on the node.
    pub objects: Option<Objects>,
    /// Objects the node's slabs have room for.
    pub total_objects: Option<Objects>,
    /// Slabs on the node's partial list.
    pub partial: Option<Slabs>,
    /// Objects in use on the node's partial list.
    pub objects_partial: Option<Objects>,
    /// Slabs of the node in use by CPUs.
    pub cpu_slabs: Option<Slabs>,
    /// Full sheaves in the node's barn (readers of kernel memory and the engine only).
    pub barn_full: Option<u64>,
    /// Empty sheaves in the node's barn.
    pub barn_empty: Option<u64>,
}

impl NodePart {
    /// A part of which nothing is known yet.
    pub const fn new(node: NodeId) -> Self {
        Self {
            node,
            slabs: None,
            objects: None,
            total_objects: None,
            partial: None,
            objects_partial: None,
            cpu_slabs: None,
            barn_full: None,
            barn_empty: None,
        }
    }
}

/// What one processor holds of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPart {
    /// Which processor.
    pub cpu: CpuId,
    /// Free objects on its partial list; an estimate since Linux 5.16.
    pub objects_cpu_partial: Option<Objects>,
    /// Free objects of the slab it allocates from (readers of kernel memory only).
    pub objects_cpu_slab: Option<Objects>,
    /// Slabs on its partial list.
    pub slabs_cpu_partial: Option<Slabs>,
    /// Objects in its main sheaf (readers of kernel memory and the engine only).
    pub sheaf_main: Option<Objects>,
    /// Objects in its spare sheaf.
    pub sheaf_spare: Option<Objects>,
    /// Objects waiting for an RCU grace period in its `rcu_free` sheaf.
    pub sheaf_rcu_free: Option<Objects>,
}

impl CpuPart {
    /// A part of which nothing is known yet.
    pub const fn new(cpu: CpuId) -> Self {
        Self {
            cpu,
            objects_cpu_slab: None,
            objects_cpu_partial: None,
            slabs_cpu_partial: None,
            sheaf_main: None,
            sheaf_spare: None,
            sheaf_rcu_free: None,
        }
    }
}

/// How full the slabs are: slabs by share of objects in use, where free objects
/// that a CPU keeps in sheaves or lists of its own count as in use.
///
/// Bucket 0 is empty slabs, bucket 11 full ones, buckets 1 to 10 are tenths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupancy(pub [u64; 12]);
