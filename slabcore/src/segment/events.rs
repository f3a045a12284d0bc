//! What happened on slow paths: a bounded ring, the newest over the oldest.

use super::format::{EVENTS, EVENTS_HEAD, EVENTS_ROOM, event as place};
use super::live::Live;
use crate::slot;
use crate::sync::{Ordering, Ordering::Relaxed};

macro_rules! events {
    ($($(#[doc = $doc:literal])* $variant:ident = $number:literal $name:literal),* $(,)?) => {
        /// What happened on a slow path.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Event { $($(#[doc = $doc])* $variant = $number),* }

        impl Event {
            /// Stable name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The event of a number in a segment.
            pub const fn from_number(number: u32) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

events! {
    /// A slab was made: its first page and its objects.
    SlabAllocated = 1 "slab-allocated",
    /// A slab was given back: its first page and its objects.
    SlabDiscarded = 2 "slab-discarded",
    /// A slab of the smaller order was made.
    OrderFallback = 3 "order-fallback",
    /// There was no memory for a slab.
    AllocFailed = 4 "alloc-failed",
    /// A report was made.
    Report = 5 "report",
    /// The cache was asked to shrink.
    Shrink = 6 "shrink",
    /// The engine was validated: its findings, and slabs looked at.
    Validate = 7 "validate",
    /// A thread gave its slot back.
    ThreadGone = 8 "thread-gone",
}

/// Notes an event. `cache` is the id + 1, or 0.
pub(crate) fn event(what: Event, cache: u32, values: [u64; 2]) {
    let Some(live) = Live::current() else {
        return;
    };
    let number = live.word(EVENTS.at).fetch_add(1, Relaxed) + 1;
    let at = EVENTS.at + EVENTS_HEAD + (number as usize - 1) % EVENTS_ROOM * place::BYTES;
    live.word(at + place::NUMBER).store(0, Relaxed);
    crate::sync::fence(Ordering::Release);
    live.put(at + place::TIME, crate::sys::coarse_ns());
    live.put_two(at + place::KIND, what as u32, cache);
    live.put_two(at + place::THREAD, slot::own().unwrap_or(0), 0);
    live.put(at + place::VALUES, values[0]);
    live.put(at + place::VALUES + 8, values[1]);
    live.word(at + place::NUMBER)
        .store(number, Ordering::Release);
}
