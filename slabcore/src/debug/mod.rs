//! Debugging of objects: layouts, poison and red zones, checks, tracks and reports.
//!
//! Most of it works on byte slices that the caller provides: a *slot* is the whole room of one object in a
//! slab, a *slab* is the memory that holds the slots and the unused bytes behind the last one. There is no global
//! state, no locking and no allocation, so the functions may be called inside the allocator itself.
//!
//! * [`flags`] reads what to check, in the syntax of the kernel's `slab_debug`.
//! * [`layout`] says where the parts of a slot are.
//! * [`poison`] writes the bytes, [`check`] reads them back; [`raw`] does so beside a running program.
//! * [`track`] remembers who allocated and freed, [`depot`] keeps the stacks once each.
//! * `cache`, `operations` and `beside` apply all of it to a cache of the engine, as its hooks; [`operation`] carries who runs an operation and
//!   the report it makes, `quarantine` what is kept out of use.
//! * [`reason`] and [`report`] (and `outside`) word a failure as the kernel does, [`crate::finding`] holds it as data; [`symbols`] names code addresses.
//!
//! Source of truth: `mm/slub.c` and `include/linux/poison.h` of Linux 6.12, for byte values, offsets and the format
//! of the log lines; captures of kernels 6.1 to 7.3 serve as test data.
//!
//! What it does not do: find slots, follow free lists or count objects; `policy::debug` does.

mod beside;
pub(crate) mod cache;
pub mod check;
pub mod depot;
pub mod flags;
pub mod layout;
pub mod operation;
mod operations;
pub(crate) mod outside;
pub mod poison;
pub(crate) mod quarantine;
pub mod raw;
pub mod reason;
pub mod report;
pub mod symbols;
pub mod track;
