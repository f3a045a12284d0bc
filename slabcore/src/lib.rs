//! An instrumented slab allocator: the layouts, policies and reports of the kernel's SLUB in a process.

pub mod debug;
