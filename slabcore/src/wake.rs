//! Telling the owner of a full slab that enough of its objects are free again.
//!
//! A slab that its owner found full has the wake bit. The free that brings the
//! count to the threshold clears the bit and puts the slab in the owner's
//! queue. Rule: a slab is in a queue only while it is owned by that queue's
//! slot, and `owner`, `queued` and `queue_next` change only under that queue's
//! lock. So a slab that is given up, discarded or adopted by another slot is
//! never found in a stale queue, and is never queued twice.

use crate::slab::{NIL, Table};
use crate::sync::{AtomicU32, Lock, Ordering::Relaxed};

/// Slabs that one slot should look at.
#[derive(Debug, Default)]
#[repr(C)]
pub struct WakeQueue {
    lock: Lock,
    head: AtomicU32,
}

impl WakeQueue {
    /// The lock, for `fork`.
    pub(crate) fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Whether there is anything to look at. May be late, never wrong for long.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.load(Relaxed) == NIL
    }

    /// Queues the slab if it is still owned by `owner` and not queued yet.
    ///
    /// False: it belongs to somebody else now, ask again who.
    pub fn put(&self, table: &impl Table, index: u32, owner: u64) -> bool {
        let _held = self.lock.lock();
        let desc = table.desc(index);
        if desc.owner.load(Relaxed) != owner {
            return false;
        }
        if desc.queued.load(Relaxed) == 0 {
            desc.queued.store(1, Relaxed);
            desc.queue_next.store(self.head.load(Relaxed), Relaxed);
            self.head.store(index, Relaxed);
        }
        true
    }

    /// Takes one slab out; the caller is the owner.
    pub fn take(&self, table: &impl Table) -> Option<u32> {
        let _held = self.lock.lock();
        let first = self.head.load(Relaxed);
        if first == NIL {
            return None;
        }
        let desc = table.desc(first);
        self.head.store(desc.queue_next.load(Relaxed), Relaxed);
        desc.queued.store(0, Relaxed);
        Some(first)
    }

    /// The owner takes a slab that nobody owns.
    pub fn adopt(&self, table: &impl Table, index: u32, owner: u64) {
        let _held = self.lock.lock();
        table.desc(index).owner.store(owner, Relaxed);
    }

    /// The owner gives a slab up; it leaves the queue.
    pub fn give_up(&self, table: &impl Table, index: u32) {
        let _held = self.lock.lock();
        let desc = table.desc(index);
        desc.owner.store(0, Relaxed);
        if desc.queued.load(Relaxed) == 0 {
            return;
        }
        desc.queued.store(0, Relaxed);
        let next = desc.queue_next.load(Relaxed);
        let mut at = self.head.load(Relaxed);
        if at == index {
            self.head.store(next, Relaxed);
            return;
        }
        while at != NIL {
            let link = &table.desc(at).queue_next;
            at = link.load(Relaxed);
            if at == index {
                link.store(next, Relaxed);
            }
        }
    }
}

/// Puts a slab into its owner's queue, whoever that is at this moment.
///
/// `queue_of` finds a queue of this cache by owner word, or nothing if the slab
/// has no owner of this cache: then whoever gave it up has listed it.
pub fn tell<'q, T: Table>(
    table: &T,
    index: u32,
    queue_of: impl Fn(u64) -> Option<&'q WakeQueue>,
) -> bool {
    loop {
        let owner = table.desc(index).owner.load(Relaxed);
        let Some(queue) = queue_of(owner) else {
            return false;
        };
        if queue.put(table, index, owner) {
            return true;
        }
    }
}
