//! Arrays of object pointers in front of slabs: a slot's main and spare one.
//!
//! Source of truth: `struct slab_sheaf` and `struct slub_percpu_sheaves` of
//! mm/slub.c in Linux 7.0. An array is known by its address; how many objects
//! are in it stands in the row, and in a barn it is full or empty.

use crate::core::{CacheCore, Cx};
use crate::policy;
use crate::slab::{Chain, Links};
use crate::stats::Stat;
use crate::sync::{AtomicUsize, Ordering::Relaxed};

/// Slabs whose objects are being collected for one free each.
const OPEN_RUNS: usize = 8;

impl CacheCore {
    /// The places of an array of this cache.
    #[inline(always)]
    pub fn places(&self, sheaf: usize) -> &[AtomicUsize] {
        // SAFETY: a non-zero sheaf address is an array of `sheaf_capacity` words from `new_sheaf`,
        // never unmapped while the engine lives.
        unsafe {
            std::slice::from_raw_parts(sheaf as *const AtomicUsize, self.sheaf_capacity as usize)
        }
    }

    /// One place of an array, without a check.
    ///
    /// # Safety
    /// `sheaf` is an array of this cache and `at` is below its capacity.
    #[inline(always)]
    pub unsafe fn place(sheaf: usize, at: u32) -> &'static AtomicUsize {
        // SAFETY: by the contract; see `places`.
        unsafe { &*(sheaf as *const AtomicUsize).add(at as usize) }
    }

    fn new_sheaf(&self) -> Option<usize> {
        {
            let _held = self.pool_lock.lock();
            let first = self.sheaf_pool.load(Relaxed);
            if first != 0 {
                let next = self.places(first)[0].load(Relaxed);
                self.sheaf_pool.store(next, Relaxed);
                return Some(first);
            }
        }
        let bytes = self.sheaf_capacity as usize * size_of::<usize>();
        self.engine.meta(bytes, 64)
    }

    fn pool_sheaf(&self, sheaf: usize) {
        let _held = self.pool_lock.lock();
        self.places(sheaf)[0].store(self.sheaf_pool.load(Relaxed), Relaxed);
        self.sheaf_pool.store(sheaf, Relaxed);
    }
}

impl Cx<'_> {
    /// A new empty array.
    pub fn sheaf_alloc(self) -> Option<usize> {
        let sheaf = self
            .part()
            .barn
            .take_empty()
            .or_else(|| self.core.new_sheaf())?;
        self.inc(Stat::SheafAlloc);
        Some(sheaf)
    }

    /// Gives an empty array up.
    pub fn sheaf_free(self, sheaf: usize) {
        self.core.pool_sheaf(sheaf);
        self.inc(Stat::SheafFree);
    }

    /// Gives the row its two arrays; false if there is no memory for them.
    pub fn ensure_sheaves(self) -> bool {
        let row = self.row;
        if row.cap.load(Relaxed) != 0 {
            return true;
        }
        let Some(main) = self.sheaf_alloc() else {
            return false;
        };
        let Some(spare) = self.sheaf_alloc() else {
            self.sheaf_free(main);
            return false;
        };
        row.main.store(main, Relaxed);
        row.n.store(0, Relaxed);
        row.spare.store(spare, Relaxed);
        row.spare_n.store(0, Relaxed);
        row.cap.store(self.core.sheaf_capacity, Relaxed);
        true
    }

    /// Exchanges main and spare.
    pub fn swap_sheaves(self) {
        let row = self.row;
        let (main, n) = (row.main.load(Relaxed), row.n.load(Relaxed));
        row.main.store(row.spare.load(Relaxed), Relaxed);
        row.n.store(row.spare_n.load(Relaxed), Relaxed);
        row.spare.store(main, Relaxed);
        row.spare_n.store(n, Relaxed);
    }

    /// Pops an object from the main array.
    #[inline(always)]
    pub fn pop(self) -> Option<usize> {
        let n = self.row.n.load(Relaxed);
        (n != 0).then(|| {
            self.row.n.store(n - 1, Relaxed);
            // SAFETY: `n` is at most the capacity of the main array, and not 0.
            unsafe { CacheCore::place(self.row.main.load(Relaxed), n - 1) }.load(Relaxed)
        })
    }

    /// Pushes an object to the main array; false if it is full.
    #[inline(always)]
    pub fn push(self, object: usize) -> bool {
        let n = self.row.n.load(Relaxed);
        if n == self.row.cap.load(Relaxed) {
            return false;
        }
        // SAFETY: `n` is below the capacity of the main array.
        unsafe { CacheCore::place(self.row.main.load(Relaxed), n) }.store(object, Relaxed);
        self.row.n.store(n + 1, Relaxed);
        true
    }

    /// Frees the first `n` objects of an array.
    pub fn flush_array(self, sheaf: usize, n: u32) {
        self.flush_places(&self.core.places(sheaf)[..n as usize]);
        self.add(Stat::SheafFlush, u64::from(n));
    }

    /// Frees objects, as runs of one slab each.
    ///
    /// A slab is reached at most a few times: several runs are kept open, so
    /// that objects of slabs in turn do not make a run each.
    pub fn flush_places(self, places: &[AtomicUsize]) {
        let core = self.core;
        let mut open: [Option<(u32, Chain)>; OPEN_RUNS] = [None; OPEN_RUNS];
        let mut at = 0;
        while let Some(first) = places.get(at) {
            let (slab, object) = core.locate(first.load(Relaxed));
            let own = policy::sink_own(self, slab, &places[at..]);
            if own > 0 {
                at += own;
                continue;
            }
            let run = core.run_of(slab, object, &places[at..]);
            at += usize::from(run.len);
            let of_run = &mut open[(slab ^ slab >> 3 ^ slab >> 6) as usize % OPEN_RUNS];
            match of_run {
                Some((of, before)) if *of == slab => {
                    core.links(slab).set(run.tail, before.head);
                    before.head = run.head;
                    before.len += run.len;
                }
                _ => {
                    if let Some((slab, run)) = of_run.replace((slab, run)) {
                        policy::sink(self, slab, run);
                    }
                }
            }
        }
        for (slab, run) in open.into_iter().flatten() {
            policy::sink(self, slab, run);
        }
    }

    /// Flushes both arrays and gives them up; the row is then as if it had none.
    pub fn drop_sheaves(self) {
        let row = self.row;
        if row.cap.load(Relaxed) == 0 {
            return;
        }
        let (main, spare) = (row.main.load(Relaxed), row.spare.load(Relaxed));
        self.flush_array(main, row.n.load(Relaxed));
        self.flush_array(spare, row.spare_n.load(Relaxed));
        row.cap.store(0, Relaxed);
        row.n.store(0, Relaxed);
        row.spare_n.store(0, Relaxed);
        row.main.store(0, Relaxed);
        row.spare.store(0, Relaxed);
        self.sheaf_free(main);
        self.sheaf_free(spare);
    }

    /// Flushes the barns of all nodes.
    pub fn drop_barns(self) {
        for part in &self.core.nodes {
            while let Some(sheaf) = part.barn.take_full() {
                self.flush_array(sheaf, self.core.sheaf_capacity);
                self.sheaf_free(sheaf);
            }
            while let Some(sheaf) = part.barn.take_empty() {
                self.sheaf_free(sheaf);
            }
        }
    }
}

impl CacheCore {
    /// Address of a slab and bytes of its run.
    #[inline]
    pub fn span(&self, slab: u32) -> (usize, usize) {
        let pages = &self.engine.pages;
        (pages.address(slab), pages.run_bytes(slab))
    }

    /// Links the objects at the front of `places` that are of the first one's slab.
    #[inline]
    fn run_of(&self, slab: u32, first: u16, places: &[AtomicUsize]) -> Chain {
        let (base, bytes) = self.span(slab);
        let links = self.links(slab);
        let mut run = Chain::one(first);
        for place in &places[1..] {
            let offset = place.load(Relaxed).wrapping_sub(base);
            if offset >= bytes {
                break;
            }
            let object = self.index(offset);
            links.set(object, run.head);
            run.head = object;
            run.len += 1;
        }
        run
    }
}
