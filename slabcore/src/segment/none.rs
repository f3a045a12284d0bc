//! No segment, where threads are simulated.

#[path = "format.rs"]
#[expect(dead_code, reason = "nothing is written")]
mod format;
#[path = "place.rs"]
#[expect(dead_code, reason = "nothing is written")]
mod place;

/// Stands for the names in the format.
mod layout {
    pub const NAME_BYTES: usize = 48;
}

pub use place::Place;

/// What happened on a slow path.
#[derive(Debug, Clone, Copy)]
#[expect(dead_code, reason = "nothing is written")]
pub(crate) enum Event {
    SlabAllocated,
    SlabDiscarded,
    OrderFallback,
    AllocFailed,
    Report,
    Shrink,
    Validate,
    ThreadGone,
}

pub(crate) fn begin(_: Place, _: u32) {}
pub(crate) fn look(_: bool) {}
pub(crate) fn ready() {}
pub(crate) fn after_fork() {}
pub(crate) fn event(_: Event, _: u32, _: [u64; 2]) {}
pub(crate) fn after_report(_: bool) {}
