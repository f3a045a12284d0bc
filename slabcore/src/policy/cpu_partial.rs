//! Linux 3.2 to 6.7: each slot has a list of partial slabs, frozen when they get there.
//!
//! Commit "slub: per cpu cache for partial pages" (3.2). A free that makes a
//! full slab partial freezes it for the freeing slot and takes no lock; slabs
//! taken from the node beyond the first are frozen under the list lock; each
//! is thawed again when the list is drained.

use super::cpu_slab::CpuSlab;
use crate::slab::WasFull;

/// The policy.
pub(crate) struct CpuPartial;

impl CpuSlab for CpuPartial {
    const WAS_FULL: WasFull = WasFull::FreezeForSlot;
    const SLOT_LIST: bool = true;
    const LIST_IS_FROZEN: bool = true;
}
