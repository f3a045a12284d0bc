//! The model of slab memory: what every source fills and every front end reads.
//!
//! Rules that hold everywhere: a figure that was not read is `None`, never 0;
//! an estimate says so ([`Approx`]); a cache is known by its [`CacheId`], never
//! by its name, since two caches may share one; units and ids are types.

mod approx;
mod cache;
mod counters;
mod dump;
mod flags;
mod ids;
mod layer;
mod parts;
mod quantity;
mod sites;
mod snapshot;
mod system;
mod warning;

pub use approx::Approx;
pub use cache::{Cache, Ctor, SlabStatistics, SlabTunables};
pub use counters::{CountedBy, Counter, CounterId, CounterUnit, Counters};
pub use dump::{
    Dump, DumpCache, DumpDemand, DumpObject, DumpSlab, DumpTrack, Frame, Holder, Part, Place,
};
pub use flags::{Flag, Flags};
pub use ids::{Bytes, CacheId, CpuId, NodeId, Objects, Slabs};
pub use layer::{Layer, LayerSet};
pub use parts::{CpuPart, NodePart, Occupancy};
pub use quantity::{Quantity, QuantitySet, Unit};
pub use sites::{AgeUnit, CallSite, Pinned, SiteKind};
pub use snapshot::{Carried, LayerReport, Origin, OriginKind, Snapshot};
pub use system::{Allocator, Era, FreeBlocks, MemInfo, Pressure, Stall, System};
pub use warning::{Warning, WarningCode, Warnings};
