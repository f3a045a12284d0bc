//! Slab data of the running kernel by BPF: what its files do not tell.
//!
//! Programs that the kernel checks before it runs them read its own structures
//! and write nothing. They see how full slabs are and which free objects lie
//! near processors, where attribute files count those as in use. The programs
//! are in `collectors/bpf`, built beforehand; docs/BPF.md tells what they need.
//!
//! What fits no field of the running kernel is unknown, never zero: each is
//! found by the kernel's own description of its types. Nothing is pinned, so
//! that all of it ends with the process, however that ends.

#[cfg(not(feature = "bpf"))]
mod absent;
#[cfg(feature = "bpf")]
mod address;
#[cfg(feature = "bpf")]
mod live;
#[cfg(feature = "bpf")]
mod object;
#[cfg(feature = "bpf")]
mod paths;
pub mod preflight;
#[cfg(feature = "bpf")]
mod record;
#[cfg(feature = "bpf")]
mod slots;
#[cfg(feature = "bpf")]
mod snapshot;
#[cfg(feature = "bpf")]
mod symbols;

#[cfg(not(feature = "bpf"))]
pub use absent::{LiveSites, Snapshots, WithPaths, fentry};
#[cfg(feature = "bpf")]
pub use live::LiveSites;
#[cfg(feature = "bpf")]
pub use object::fentry;
#[cfg(feature = "bpf")]
pub use paths::WithPaths;
pub use preflight::Refusal;
#[cfg(feature = "bpf")]
pub use snapshot::Snapshots;

/// How [`WithPaths`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountPaths {
    /// Allocations and frees, and nothing of their paths: the cheapest.
    Counts,
    /// Also which path each took, by what the allocator is about to look at.
    Inferred,
    /// Slow paths counted at the entry of the kernel's functions. Where the kernel
    /// does not allow that, they are inferred, and a note says why.
    Fentry,
}
