//! The published designs, one file each over the shared parts.
//!
//! `cpu_slab` is what `classic`, `cpu_partial` and `delayed_freeze` have in
//! common: a slab in hand whose free list the slot owns.

pub(crate) mod bulk;
pub(crate) mod classic;
pub(crate) mod cpu_partial;
pub(crate) mod cpu_slab;
pub(crate) mod debug;
mod debug_list;
pub(crate) mod delayed_freeze;
pub(crate) mod hybrid;
pub(crate) mod owned;
pub(crate) mod sheaves;

use crate::core::{Cx, Path};
use crate::debug::operation::Operation;
use crate::slab::Chain;
use crate::sync::AtomicUsize;
use classic::Classic;
use cpu_partial::CpuPartial;
use delayed_freeze::DelayedFreeze;

/// Which design a cache follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Policy {
    /// Linux 2.6.22 to 3.1: a frozen slab in hand, partial slabs on the node's list.
    Classic,
    /// Linux 3.2 to 6.7: and a list of frozen partial slabs for each slot.
    CpuPartial,
    /// Linux 6.8 to 6.17: slabs on that list are frozen only when picked.
    DelayedFreeze,
    /// Linux 7.0: arrays of objects and a barn, no slab in hand.
    Sheaves,
    /// Arrays in front of slabs that slots own.
    #[default]
    Hybrid,
}

impl Policy {
    /// All policies, oldest first.
    pub const ALL: [Self; 5] = [
        Self::Classic,
        Self::CpuPartial,
        Self::DelayedFreeze,
        Self::Sheaves,
        Self::Hybrid,
    ];

    /// The name used in options and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::CpuPartial => "cpu-partial",
            Self::DelayedFreeze => "delayed-freeze",
            Self::Sheaves => "sheaves",
            Self::Hybrid => "hybrid",
        }
    }

    /// The policy of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Whether there are arrays in front of the slabs.
    pub const fn has_sheaves(self) -> bool {
        matches!(self, Self::Sheaves | Self::Hybrid)
    }

    /// Objects that a slab should hold where the user does not say; 0 is the kernel's rule.
    ///
    /// An owner touches the lines of a slab's descriptor and lists once each time it goes
    /// around its slabs, so larger slabs halve what is missed from 256 bytes on; beyond 64
    /// objects little is gained (docs/benchmarks/slabcore.md).
    pub(crate) const fn min_objects(self) -> u32 {
        match self {
            Self::Hybrid => 64,
            Self::Classic | Self::CpuPartial | Self::DelayedFreeze | Self::Sheaves => 0,
        }
    }

    /// Whether slots have a list of partial slabs limited by `cpu_partial`.
    pub const fn has_cpu_partial(self) -> bool {
        matches!(self, Self::CpuPartial | Self::DelayedFreeze)
    }
}

/// Allocates, when the main array had nothing. 0 is failure.
pub(crate) fn alloc(cx: Cx<'_>) -> usize {
    match cx.core.path {
        Path::Policy(Policy::Hybrid) => hybrid::alloc(cx),
        Path::Policy(Policy::Sheaves) => sheaves::alloc(cx),
        Path::Policy(Policy::Classic) => cpu_slab::alloc::<Classic>(cx),
        Path::Policy(Policy::CpuPartial) => cpu_slab::alloc::<CpuPartial>(cx),
        Path::Policy(Policy::DelayedFreeze) => cpu_slab::alloc::<DelayedFreeze>(cx),
        Path::Debug => debug::debug_alloc(cx, cx.core.object_size as usize, &mut Operation::new()),
    }
}

/// Frees, when the main array took nothing.
pub(crate) fn free(cx: Cx<'_>, object: usize) {
    match cx.core.path {
        Path::Policy(Policy::Hybrid) => hybrid::free(cx, object),
        Path::Policy(Policy::Sheaves) => sheaves::free(cx, object),
        Path::Policy(Policy::Classic) => cpu_slab::free::<Classic>(cx, object),
        Path::Policy(Policy::CpuPartial) => cpu_slab::free::<CpuPartial>(cx, object),
        Path::Policy(Policy::DelayedFreeze) => cpu_slab::free::<DelayedFreeze>(cx, object),
        Path::Debug => {
            if let Some((slab, object)) = cx.core.locate_checked(object) {
                debug::debug_free(cx, slab, object, &mut Operation::new());
            }
        }
    }
}

/// Gives everything that the slot holds of the cache to the nodes.
pub(crate) fn flush(cx: Cx<'_>) {
    let _changing = cx.row.change();
    match cx.core.path {
        Path::Policy(Policy::Hybrid) => hybrid::flush(cx),
        Path::Policy(Policy::Sheaves) => cx.drop_sheaves(),
        Path::Policy(Policy::Classic) => cpu_slab::flush::<Classic>(cx),
        Path::Policy(Policy::CpuPartial) => cpu_slab::flush::<CpuPartial>(cx),
        Path::Policy(Policy::DelayedFreeze) => cpu_slab::flush::<DelayedFreeze>(cx),
        Path::Debug => {}
    }
}

/// Empties the barns.
pub(crate) fn flush_barns(cx: Cx<'_>) {
    if matches!(cx.core.path, Path::Policy(policy) if policy.has_sheaves()) {
        cx.drop_barns();
    }
}

/// Frees a run of objects that came out of an array.
pub(crate) fn sink(cx: Cx<'_>, slab: u32, run: Chain) {
    match cx.core.path {
        Path::Policy(Policy::Hybrid) => hybrid::sink(cx, slab, run),
        Path::Policy(Policy::Sheaves) => sheaves::sink(cx, slab, run),
        Path::Policy(Policy::Classic) => cpu_slab::sink::<Classic>(cx, slab, run),
        Path::Policy(Policy::CpuPartial) => cpu_slab::sink::<CpuPartial>(cx, slab, run),
        Path::Policy(Policy::DelayedFreeze) => cpu_slab::sink::<DelayedFreeze>(cx, slab, run),
        // Has no arrays, and its objects are freed one by one.
        Path::Debug => {}
    }
}

/// Frees objects that came out of an array, and are the slot's own, in a shorter way:
/// those at the front of `places` that are in `slab`. Gives their number.
pub(crate) fn sink_own(cx: Cx<'_>, slab: u32, places: &[AtomicUsize]) -> usize {
    if cx.core.path == Path::Policy(Policy::Hybrid) {
        hybrid::sink_own(cx, slab, places)
    } else {
        0
    }
}
