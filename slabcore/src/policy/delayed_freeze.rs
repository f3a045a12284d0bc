//! Linux 6.8 to 6.17: slabs on a slot's partial list are not frozen.
//!
//! Series "slub: Delay freezing of CPU partial slabs" (6.8). A slab is frozen
//! only when it is picked as the slab in hand, which saves a change of its word
//! for each slab that is listed and drained. That a slab is neither frozen nor
//! on the node's list is known from `on_node`.

use super::cpu_slab::CpuSlab;
use crate::slab::WasFull;

/// The policy.
pub(crate) struct DelayedFreeze;

impl CpuSlab for DelayedFreeze {
    const WAS_FULL: WasFull = WasFull::ToSlot;
    const SLOT_LIST: bool = true;
    const LIST_IS_FROZEN: bool = false;
}
