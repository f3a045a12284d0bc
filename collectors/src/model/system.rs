//! The machine a snapshot is of.

use std::collections::BTreeMap;

use super::{Bytes, NodeId};

/// How a kernel's SLUB keeps free objects near the CPUs.
///
/// Told from the attributes themselves, never from the version: distributions
/// carry later code in older kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Era {
    /// CPU slabs and, from 3.2, per-CPU partial lists (up to 6.17).
    CpuSlabs,
    /// CPU slabs, with sheaves for some caches (6.18, 6.19).
    Mixed,
    /// Sheaves and barns, no CPU slabs (7.0 and later).
    Sheaves,
    /// The SLAB allocator (removed in 6.8).
    Slab,
    /// The source does not tell.
    #[default]
    Unknown,
}

impl Era {
    /// The name in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuSlabs => "cpu-slabs",
            Self::Mixed => "mixed",
            Self::Sheaves => "sheaves",
            Self::Slab => "slab",
            Self::Unknown => "unknown",
        }
    }
}

/// Which allocator the kernel was built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allocator {
    /// SLUB.
    Slub,
    /// SLAB.
    Slab,
    /// Not told.
    #[default]
    Unknown,
}

/// The lines of /proc/meminfo that concern slabs. `None`: the line was not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemInfo {
    /// `MemTotal`.
    pub mem_total: Option<Bytes>,
    /// `MemFree`.
    pub mem_free: Option<Bytes>,
    /// `MemAvailable` (3.14 and later).
    pub mem_available: Option<Bytes>,
    /// `Slab`: all slabs, with large kmallocs.
    pub slab: Option<Bytes>,
    /// `SReclaimable`.
    pub s_reclaimable: Option<Bytes>,
    /// `SUnreclaim`.
    pub s_unreclaim: Option<Bytes>,
    /// `KReclaimable` (4.20 and later).
    pub k_reclaimable: Option<Bytes>,
    /// `PageTables`.
    pub page_tables: Option<Bytes>,
    /// `KernelStack`.
    pub kernel_stack: Option<Bytes>,
    /// `Percpu`.
    pub percpu: Option<Bytes>,
}

/// How long tasks stood still for want of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stall {
    /// Share of the last ten seconds, in hundredths of a percent.
    pub avg10: u32,
    /// Share of the last minute, in hundredths of a percent.
    pub avg60: u32,
    /// Share of the last five minutes, in hundredths of a percent.
    pub avg300: u32,
    /// Since boot, in microseconds.
    pub total_us: u64,
}

/// Memory pressure (PSI, `/proc/pressure/memory`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// At least one task stood still.
    pub some: Stall,
    /// All tasks that had something to do stood still.
    pub full: Stall,
}

/// Free blocks of one zone (`/proc/buddyinfo`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeBlocks {
    /// The node.
    pub node: NodeId,
    /// The zone's name, for example `Normal`.
    pub zone: String,
    /// Free blocks of 2^n pages, by n.
    pub free: Vec<u64>,
}

impl FreeBlocks {
    /// Free blocks of exactly this order; `None` when the kernel has no such order.
    pub fn exactly(&self, order: usize) -> Option<u64> {
        self.free.get(order).copied()
    }

    /// Blocks of this order that are free or can be split from larger free ones.
    pub fn at_least(&self, order: usize) -> Option<u64> {
        let larger = self.free.get(order..).filter(|list| !list.is_empty())?;
        Some((0u32..).zip(larger).fold(0, |sum: u64, (step, count)| {
            let split = 1u64.checked_shl(step).unwrap_or(u64::MAX);
            sum.saturating_add(count.saturating_mul(split))
        }))
    }
}

/// What a source says about the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct System {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// Bytes in a page.
    pub page_size: u64,
    /// True when the source does not tell the page size and 4096 was assumed.
    pub page_size_assumed: bool,
    /// Processors online.
    pub cpus: Option<u32>,
    /// NUMA nodes with memory.
    pub nodes: Option<u32>,
    /// Era of SLUB.
    pub era: Era,
    /// Allocator.
    pub allocator: Allocator,
    /// Memory lines.
    pub meminfo: MemInfo,
    /// `nr_slab_*`, `slabs_scanned` and `drop_slab` of /proc/vmstat, and the rest when asked for.
    pub vmstat: BTreeMap<String, u64>,
    /// Memory pressure; `None` where the kernel or the source does not tell, or
    /// nobody asked.
    pub pressure: Option<Pressure>,
    /// Free blocks of each zone; empty like `pressure`.
    pub free_blocks: Vec<FreeBlocks>,
    /// Kernel command line.
    pub cmdline: Option<String>,
    /// Slab-related build options, for example `CONFIG_SLUB_STATS` -> `n`.
    pub config: BTreeMap<String, String>,
}

impl System {
    /// Page size when nothing tells it.
    pub const ASSUMED_PAGE_SIZE: u64 = 4096;
}
