//! Linux 2.6.22 to 3.1: one frozen slab in hand, partial slabs on the node's list.
//!
//! A free that makes a full slab partial takes the node's list lock.

use super::cpu_slab::CpuSlab;
use crate::slab::WasFull;

/// The policy.
pub(crate) struct Classic;

impl CpuSlab for Classic {
    const WAS_FULL: WasFull = WasFull::ToNode;
    const SLOT_LIST: bool = false;
    const LIST_IS_FROZEN: bool = false;
}
