//! A false alarm about the first object of `kmem_cache_node`.
//!
//! Source of truth: early_kmem_cache_node_alloc() and check_object() of mm/slub.c
//! of Linux 7.3. The objects that describe the nodes of `kmem_cache_node` itself
//! are taken at boot by a way of their own, which never writes their link. With
//! red zones the links of live objects are looked at, too, so that a validation
//! of a healthy machine finds one on each node, and mends it. Linux 6.1 and 6.12
//! do not.

use crate::parse::kernel_log::reason::{self, Reason};
use crate::parse::kernel_log::report::{DumpRow, Label, Slub};

/// Why such a report is likely no fault.
pub(crate) const WHY: &str = "at boot the kernel takes the first object of kmem_cache_node on each node without writing its link, which nobody uses while the object lives";

/// Red zone of a live object.
const LIVE: u8 = 0xcc;

/// Whether a report is about a damaged link in that object.
pub(crate) fn is_first_node(slub: &Slub) -> bool {
    let link = slub.reason.as_deref().map(|text| reason::read(text).0) == Some(Reason::FreePointer);
    let before = slub
        .rows
        .iter()
        .take_while(|row| row.label == Label::Redzone);
    let before: u64 = before.map(|row| row.bytes().len() as u64).sum();
    let offset = slub.object.as_ref().and_then(|object| object.offset);
    link && slub.cache.as_deref() == Some("kmem_cache_node")
        && before > 0
        && offset == Some(before)
        && is_live(slub)
}

/// Whether the red zone behind the object says that it is in use.
pub(crate) fn is_live(slub: &Slub) -> bool {
    let behind = slub
        .rows
        .iter()
        .skip_while(|row| row.label != Label::Object)
        .filter(|row| row.label == Label::Redzone);
    let mut behind = behind.flat_map(DumpRow::bytes).peekable();
    behind.peek().is_some() && behind.all(|byte| *byte == LIVE)
}
