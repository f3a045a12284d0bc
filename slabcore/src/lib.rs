//! An instrumented slab allocator: SLUB's published designs as policies of one engine.
//!
//! # Glossary
//! * **page**: 4096 bytes of one of the engine's reserved **ranges**; **run**: 2^order pages.
//! * **slab**: a run cut into **slots** of one size, each holding one **object**.
//! * **descriptor**: what is known of a slab, out of band, at the index of its first page.
//! * **word**: the 64 bits of a descriptor that hold its free list, counts and flags.
//! * **cache**: slabs of one kind of object. **Engine**: ranges and their caches.
//! * **slot** (of a thread): a virtual processor; **row**: what a slot keeps of a cache. A thread
//!   may have more than one ([`Slots`]) and is one of them at a time.
//! * **node**: slots and slabs that belong together; each has a list of **partial** slabs.
//! * **frozen**: held by a slot. **Thawed**: held by nobody, to be found on a node's list
//!   unless full. **Owned** (hybrid): frozen, and the owner frees without atomics.
//! * **debug cache**: one without fast paths, whose slots have room for guards and tracks.
//! * **quarantine**: objects of a debug cache that stay out of use after damage.
//! * **guarded** object: a sampled one on a page of its own between inaccessible ones.
//! * **heap**: an engine with a cache for each class of sizes; **kind**: the class of a page.
//! * **sheaf**: an array of object pointers; **barn**: a node's stock of full and empty ones.
//!
//! # Invariants
//! 1. An object is in exactly one place: with the user, in a sheaf, in the own list (hybrid: in
//!    the own bits) of the slot that holds its slab, or in its slab's word.
//! 2. The word's list has `objects - inuse` objects, all of the slab, none twice, ending in
//!    0xffff. Anybody may push to it; only who holds the slab takes from it. Slabs on a
//!    node's list are held by whoever holds the list lock.
//! 3. `on_node` is 1 exactly while the slab is on the partial list of its node; both change
//!    under the list lock. A slab on that list is not frozen.
//! 4. A slab that is thawed, not full and on no node's list is held by one thread or slot,
//!    which will list or discard it. Only its holder, or the thread that freed the first
//!    object of a thawed full slab, puts a slab on a list.
//! 5. A slab is discarded only when `inuse` is 0, it is on no list, and by its holder. So a
//!    thread may touch a descriptor while one of the slab's objects is its own, or while it
//!    holds the lock of the list that the slab is on, or as the slab's holder.
//! 6. A slab is in a wake queue only while owned by that queue's slot (`wake.rs`).
//! 7. An owned full slab has the wake bit, or is in the owner's queue, or a thread that
//!    cleared the bit is about to queue it.
//! 8. Counters are written by the slot's owner only; allocations minus frees is what is live.
//! 9. Words, links and guards of a debug cache change under the list lock of the slab's node
//!    only, except in a slab that is being made (frozen) or discarded (empty and unlisted).
//! 10. Nothing here uses the global allocator while a lock is held, and operations never do.
//! 11. A row, its arrays and the lists of the slabs its slot holds change by a fast path, which
//!     counts itself, or between `Row::change` and its end. Who reads them between two
//!     equal stamps of the row has read one moment.
//! 12. Outside of slow paths a row changes by one store, which comes last, so that it is
//!     whole at any instruction (`fork.rs`).
//! 13. Who takes objects out of a word writes to them after a release fence; who reads links
//!     without a lock believes them only if, after an acquire fence, the word is the same. So a
//!     word changes, too, before a slab's memory goes.
//! 14. A page has a kind while it is of a slab of that class of a heap; both change under the
//!     page lock, so before an object of the slab is handed out and after the last one is back.
//! 15. Other processes read structures by the names in `segment::layout`, which keep their
//!     meaning. Nothing that allocation depends on is in shared memory.
//! 16. After its first segment a process makes no system call that allocation does not need as
//!     well, unless it was asked to (a file for each child, a watcher): a filter may kill it.
//! 17. The order of a run in use is changed by who has it, under the page lock: what lies behind
//!     the run joins it or becomes free, and its first page stays.

#![cfg_attr(loom, allow(missing_docs, dead_code))]

pub mod barn;
pub mod generation;
pub mod node;
pub mod slab;
pub mod sync;
pub mod wake;
pub mod walk;

#[cfg(not(loom))]
mod builder;
#[cfg(not(loom))]
mod cache;
#[cfg(not(loom))]
pub mod classes;
#[cfg(not(loom))]
mod config;
#[cfg(not(loom))]
mod core;
#[cfg(not(loom))]
pub mod debug;
#[cfg(not(loom))]
pub mod dump;
#[cfg(not(loom))]
mod engine;
#[cfg(not(loom))]
pub mod finding;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
mod global;
#[cfg(not(loom))]
mod guarded;
#[cfg(not(loom))]
mod harden;
#[cfg(not(loom))]
pub mod heap;
#[cfg(not(loom))]
pub mod hooks;
#[cfg(not(any(loom, shuttle)))]
pub mod inspect;
#[cfg(not(loom))]
mod large;
#[cfg(not(loom))]
pub mod order;
#[cfg(not(loom))]
mod own;
#[cfg(not(loom))]
pub mod pages;
#[cfg(not(loom))]
mod policy;
#[cfg(not(loom))]
mod row;
#[cfg(not(any(loom, shuttle)))]
pub mod segment;
#[cfg(shuttle)]
#[path = "segment/none.rs"]
mod segment;
#[cfg(not(loom))]
mod sheaf;
#[cfg(not(loom))]
mod slabs;
#[cfg(not(loom))]
mod slot;
#[cfg(not(loom))]
mod snapshot;
#[cfg(not(loom))]
pub mod stats;
#[cfg(not(loom))]
mod sys;
#[cfg(not(loom))]
mod typed;
#[cfg(not(loom))]
pub mod validate;

#[cfg(not(any(loom, shuttle)))]
pub use self::slot::several::Slots;
#[cfg(not(loom))]
pub use self::{
    builder::CacheBuilder,
    cache::{Cache, Leak},
    config::{EngineConfig, Error},
    debug::{
        flags::DebugFlags,
        operation::{OnFault, Report},
    },
    engine::{Address, Engine},
    global::SlabAlloc,
    large::Large,
    pages::Decommit,
    policy::Policy,
    slot::MAX_SLOTS,
    snapshot::{CacheSnapshot, DebugSnapshot, EngineSnapshot, NodeSnapshot, SlotSnapshot},
    typed::{Slabbed, TypedCache},
};
