//! A cache's unchanging facts and shared state, and the context of an operation.

use crate::barn::Barn;
use crate::engine::EngineCore;
use crate::harden::Hard;
use crate::hooks::DebugHooks;
use crate::node::Node;
use crate::policy::Policy;
use crate::row::Row;
use crate::slab::{Desc, Links, Table};
use crate::slot;
use crate::stats::Stat;
use crate::sync::{AtomicU16, AtomicU32, AtomicUsize, Lock, Ordering::Relaxed};

/// Simulated NUMA nodes at most.
pub const MAX_NODES: usize = 8;

/// Which set of paths a cache runs: its policy's, or the debug path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Policy(Policy),
    Debug,
}

/// A cache, as all its handles and slots share it. The nodes come last, so that a reader
/// from outside need not copy those that are not used.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CacheCore {
    pub engine: &'static EngineCore,
    pub id: u32,
    pub path: Path,
    pub name: &'static str,
    /// Bytes asked for.
    pub object_size: u32,
    /// Bytes from one object to the next.
    pub size: u32,
    pub align: u32,
    /// Where in a free object its link is.
    pub link: u32,
    /// Where in its slot an object begins; 0 without a debugging layer.
    pub object_offset: u32,
    /// 2^32 / size, rounded up: divides a multiple of `size` exactly.
    pub magic: u64,
    pub order: u32,
    pub fallback_order: u32,
    pub objects: u16,
    /// Words of the bits of a slab's own objects (`own.rs`).
    pub own_words: u32,
    /// Whether the objects of a new slab are linked: not if their owner has bits for them.
    pub links_new: bool,
    /// Objects that must be free before an owner is told.
    pub wake: u16,
    pub sheaf_capacity: u32,
    pub cpu_partial: u32,
    pub cpu_partial_slabs: u32,
    pub add_to_tail: bool,
    pub ctor: Option<fn(*mut u8)>,
    pub hooks: Option<&'static dyn DebugHooks>,
    /// The secret of its links, if they are hardened.
    pub hard: Option<Hard>,
    /// The order of a new slab's objects, if it is random, and where slabs begin in it.
    pub sequence: Option<&'static [u16]>,
    pub seed: u64,
    pub mergeable: bool,
    /// What its pages are in the page map: for [`crate::heap`], else 0.
    pub kind: u8,
    /// Some of its objects are guarded.
    pub sampled: bool,
    /// Address of the row of slot 0; the others follow `stride` bytes apart.
    pub rows: usize,
    pub stride: usize,
    /// What a reader from outside needs of the fields that have no fixed form.
    pub outside: Outside,
    pub min_partial: AtomicU32,
    /// Handles; merged caches share one core.
    pub refs: AtomicU32,
    /// Advanced by each request to shrink.
    pub epoch: AtomicU32,
    /// Protects the shared row.
    pub shared: Lock,
    /// Protects both pools.
    pub pool_lock: Lock,
    /// Bits that no slab uses, linked through their first word.
    pub own_pool: AtomicUsize,
    /// Arrays without a place, linked through their first word.
    pub sheaf_pool: AtomicUsize,
    pub nodes: [NodePart; MAX_NODES],
}

/// Copies of fields without a fixed form, in one: for readers from outside.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Outside {
    /// Address of the name, and its bytes.
    pub name: usize,
    pub name_len: u32,
    /// Number of the policy in `Policy::ALL`, from 1; 0 for a debug cache.
    pub policy: u32,
    /// The secret of hardened links, or 0.
    pub secret: u64,
    /// Address of the debugging layer, if it is the engine's own.
    pub debug: usize,
}

/// A cache's part of one node.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct NodePart {
    pub node: Node,
    pub barn: Barn,
}

#[cfg(not(shuttle))]
crate::segment::layout::fields!(CacheCore, "cache": id, object_size, size, align, link, object_offset, order,
    objects, own_words, sheaf_capacity, cpu_partial, rows, stride, outside, min_partial, refs, nodes);

#[cfg(not(shuttle))]
pub(crate) use self::parts::{NODE_PART_LAYOUT, OUTSIDE_LAYOUT};

#[cfg(not(shuttle))]
mod parts {
    mod node_part {
        use crate::core::NodePart;
        crate::segment::layout::fields!(NodePart, "part": node, barn);
    }
    mod outside {
        use crate::core::Outside;
        crate::segment::layout::fields!(Outside, "outside": name, name_len, policy, secret, debug);
    }
    pub(crate) use node_part::LAYOUT as NODE_PART_LAYOUT;
    pub(crate) use outside::LAYOUT as OUTSIDE_LAYOUT;
}

impl CacheCore {
    #[inline(always)]
    pub fn row(&self, slot: u32) -> &Row {
        debug_assert!(slot < slot::MAX_SLOTS);
        // SAFETY: there are MAX_SLOTS zeroed rows, valid as they are, while the core lives.
        unsafe { &*((self.rows + slot as usize * self.stride) as *const Row) }
    }

    #[inline]
    pub fn desc(&self, slab: u32) -> &Desc {
        self.engine.pages.desc(slab)
    }

    #[inline]
    pub fn links(&self, slab: u32) -> ObjectLinks<'_> {
        self.links_at(self.engine.pages.address(slab))
    }

    /// The same for looking only: what is damaged is not reported.
    pub fn links_to_see(&self, slab: u32) -> ObjectLinks<'_> {
        ObjectLinks {
            see: true,
            ..self.links(slab)
        }
    }

    /// Address of an object.
    #[inline]
    pub fn address(&self, slab: u32, object: u16) -> usize {
        self.engine.pages.address(slab) + usize::from(object) * self.size as usize
    }

    /// Links of the slab in hand of a row, which begins at `base`.
    #[inline]
    pub fn links_at(&self, base: usize) -> ObjectLinks<'_> {
        ObjectLinks {
            at: base + self.link as usize,
            size: self.size as usize,
            hard: self.hard.as_ref(),
            objects: self.objects,
            see: false,
        }
    }

    /// Slab and index of an object of this cache.
    #[inline]
    pub fn locate(&self, address: usize) -> (u32, u16) {
        let (slab, offset) = self.engine.pages.run_of(address);
        (slab, self.index(offset))
    }

    /// Index of the object at an offset in its slab.
    #[inline(always)]
    pub fn index(&self, offset: usize) -> u16 {
        ((offset as u64 * self.magic) >> 32) as u16
    }

    /// Node part of a slab.
    #[inline]
    pub fn part_of(&self, slab: u32) -> &NodePart {
        &self.nodes[self.desc(slab).node.load(Relaxed) as usize % MAX_NODES]
    }
}

/// Links in the objects of a slab.
///
/// A link is a 16-bit index, read and written atomically because validation
/// may look at it at any time. Only links of free objects are used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectLinks<'c> {
    at: usize,
    size: usize,
    hard: Option<&'c Hard>,
    /// Objects of a slab of the usual order; there are fewer in one of the fallback order.
    objects: u16,
    /// Nothing is reported.
    see: bool,
}

impl ObjectLinks<'_> {
    #[inline]
    fn place(&self, object: u16) -> usize {
        self.at + usize::from(object) * self.size
    }

    #[inline]
    fn link(&self, object: u16) -> &AtomicU16 {
        // SAFETY: the caller passes objects of the slab, whose pages are committed; slots are
        // multiples of 8 bytes apart and the link is at an even offset inside one. The object is
        // free, so nobody uses it but through these atomics (validation discards what it read
        // if the slab's tag moved).
        unsafe { AtomicU16::from_ptr(self.place(object) as *mut u16) }
    }
}

impl Links for ObjectLinks<'_> {
    #[inline]
    fn get(&self, object: u16) -> u16 {
        let stored = self.link(object).load(Relaxed);
        match self.hard {
            None => stored,
            Some(hard) if self.see => hard.decode(self.place(object), stored),
            Some(hard) => hard.follow(self.place(object), stored, object, self.objects),
        }
    }
    #[inline]
    fn set(&self, object: u16, next: u16) {
        let stored = match self.hard {
            None => next,
            // Freed twice in a row: the list stays as it is.
            Some(hard) if next == object => return hard.note(self.place(object), object),
            Some(hard) => hard.encode(self.place(object), next),
        };
        self.link(object).store(stored, Relaxed);
    }
}

/// One operation: a cache, a slot this thread may act for, and its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cx<'a> {
    pub core: &'a CacheCore,
    pub row: &'a Row,
    pub slot: u32,
}

impl<'a> Cx<'a> {
    pub fn new(core: &'a CacheCore, slot: u32) -> Self {
        Self {
            core,
            row: core.row(slot),
            slot,
        }
    }

    #[inline(always)]
    pub fn inc(self, stat: Stat) {
        self.row.inc(stat);
    }

    pub fn add(self, stat: Stat, n: u64) {
        self.row.stats.add(stat, n);
    }

    /// Number of this slot's node.
    pub fn node(self) -> usize {
        self.core.engine.node_of(self.slot)
    }

    /// This slot's node.
    pub fn part(self) -> &'a NodePart {
        &self.core.nodes[self.node()]
    }

    /// What `Desc::owner` holds for slabs owned by this slot.
    #[inline]
    pub fn owner(self) -> u64 {
        u64::from(self.core.id + 1) << 32 | u64::from(self.slot)
    }
}
