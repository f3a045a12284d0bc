//! slabcore as the `malloc` of any program: `LD_PRELOAD=libslabcore_preload.so program`.
//!
//! * `exports`, `aligned`: the functions of C's memory management, with glibc 2.36's semantics.
//! * `start`: makes the heap at the first allocation, and what else there is to do once.
//! * `environment`: what can be chosen, in one table; `output`: where reports and complaints go.
//! * `foreign`: pointers that are not of the heap.
//! * `end`: `_exit`, so that a process that ends by it can be looked at.
//!
//! Nothing here allocates, so that it may run inside of an allocation, before `main`, and
//! before the loader has initialised anything.
//!
//! What it does not do: be called from signal handlers that interrupt an allocation, which C
//! does not allow; `mallinfo`, `mallopt` and `malloc_stats`, which go on telling of glibc's own
//! heap, in which there is nothing.

mod aligned;
mod end;
mod environment;
mod exports;
mod foreign;
mod output;
mod start;
