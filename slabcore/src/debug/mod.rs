//! Debugging of objects: layouts, poison and red zones, checks, tracks and reports.
//!
//! Everything here works on byte slices that the caller provides: a *slot* is the whole room of one object in a
//! slab, a *slab* is the memory that holds the slots and the unused bytes behind the last one. There is no global
//! state, no locking and no allocation, so the functions may be called inside the allocator itself.
//!
//! * [`flags`] reads what to check, in the syntax of the kernel's `slab_debug`.
//! * [`layout`] says where the parts of a slot are.
//! * [`poison`] writes the bytes, [`check`] reads them back; [`raw`] does so beside a running program.
//! * [`track`] remembers who allocated and freed, [`depot`] keeps the stacks once each.
//! * [`reason`] and [`report`] word a failure as the kernel does, [`finding`] holds it as data.
//!
//! Source of truth: `mm/slub.c` and `include/linux/poison.h` of Linux 6.12, for byte values, offsets and the format
//! of the log lines; captures of kernels 6.1 to 7.3 serve as test data.
//!
//! What it does not do: find slots, follow free lists, count objects or decide what happens after a failure.

pub mod check;
pub mod depot;
pub mod finding;
pub mod flags;
pub mod layout;
pub mod poison;
pub mod raw;
pub mod reason;
pub mod report;
pub mod track;
