//! Memory by size alone, as C's `malloc` and `free`: an engine, a cache for each class of
//! sizes, and large objects.
//!
//! A freed pointer brings no size. Each page has a byte, its kind, which is the class of the
//! slab that it is of, or 0: so a free reads that byte and pushes. Everything else is found by
//! the page map: large objects, guarded ones, ranges beside the first, and pointers that are not
//! of the engine, which are never dereferenced.
//!
//! What it does not do: the semantics of C's functions, errno, or making itself at the first use.

mod parts;
pub mod sizes;

use self::parts::Parts;
use self::sizes::{KINDS, LARGEST, SIZES, SMALL, STAYS, Small, Stays};
use self::sizes::{grown, kind_of, kind_of_aligned, look_up};
use crate::cache::{Cache, in_register, pop_fast, push_fast};
use crate::config::EngineConfig;
use crate::engine::{Address, Engine};
use crate::policy::{self, cpu_slab};
use crate::row::{self, Row};
use crate::slot;
use crate::sync::{AtomicU8, Ordering::Relaxed};
use crate::sys::PAGE;
use std::ptr::{NonNull, null};

/// Bytes of the rows of a slot: one for each class, side by side, so that a thread needs few pages
/// and their counts are in different sets of the processor's cache. That of class 0 stays empty.
pub(crate) const STRIDE: usize = KINDS * size_of::<Row>();

static NOTHING: Heap = Heap {
    rows: row::blind(),
    mask: 0,
    base: 0,
    bytes: 0,
    kinds: null(),
    small: SMALL,
    stays: [Stays::NEVER; KINDS],
    parts: None,
};

/// Larger requests than this, when they fail, are not worth looking for memory.
const MOST_WORTHWHILE: usize = 1 << 40;

/// A heap. It lives as long as the process.
#[derive(Debug)]
pub struct Heap {
    /// The rows of slot 0, which are empty.
    rows: *const Row,
    /// All bits; none if there are no fast paths, so that all threads have the rows of slot 0.
    mask: usize,
    /// Address and bytes of the first range, and where the kind of the page at address 0 would be.
    base: usize,
    bytes: usize,
    kinds: *const AtomicU8,
    /// Classes of small sizes: here, since a shared object has statics by way of a table.
    small: Small,
    /// The sizes to which objects of the classes may change where they are.
    stays: [Stays; KINDS],
    parts: Option<Parts>,
}

// SAFETY: the pointers are to rows and kinds, which are atomics.
unsafe impl Sync for Heap {}

/// Memory just allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Got {
    /// Its address.
    pub at: NonNull<u8>,
    /// All its bytes read as zero.
    pub zeroed: bool,
}

/// What became of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// It is free.
    Done,
    /// It is no object; that was reported, if the heap has debug caches.
    Refused,
    /// It is not of this heap; nothing was done, but reported as above.
    Foreign,
}

/// Whether an object can have another size where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resized {
    /// It has.
    InPlace,
    /// It has not: so many bytes are to be moved, then it is to be freed.
    Move(usize),
    /// It is no object. Freeing it reports that, if the heap has debug caches.
    Bad,
    /// It is not of this heap.
    Foreign,
}

/// Where a pointer leads.
enum Home<'h> {
    Class(usize, &'h Cache),
    /// A guarded object of so many bytes.
    Guarded(usize, &'h Cache),
    /// A large object with so many bytes from the pointer on.
    Large(usize),
    Nothing,
    Foreign,
}

impl Heap {
    /// A heap in which there is nothing, and which gives nothing.
    pub const fn nothing() -> &'static Self {
        &NOTHING
    }

    /// Makes a heap; `None` when the system refuses the memory.
    pub fn make(config: EngineConfig) -> Option<&'static Self> {
        let parts = Parts::make(config)?;
        let core = parts.engine.core;
        let at = core.meta(size_of::<Self>(), align_of::<Self>())? as *mut Self;
        let (base, pages, kinds) = core.pages.first_span();
        let this = Self {
            rows: parts.rows.0 as *const Row,
            mask: if parts.sampled { 0 } else { usize::MAX },
            base,
            bytes: pages * PAGE,
            kinds: kinds.wrapping_sub(base / PAGE),
            small: SMALL,
            stays: if parts.debug {
                [Stays::NEVER; KINDS]
            } else {
                STAYS
            },
            parts: Some(parts),
        };
        // SAFETY: fresh metadata of the right size and alignment, which stays while the engine does,
        // and that is held by the heap itself.
        unsafe {
            at.write(this);
            Some(&*at)
        }
    }

    /// Ends a heap.
    ///
    /// # Safety
    /// Nobody else knows the heap, and it was made by [`Heap::make`].
    pub unsafe fn unmake(&'static self) {
        let this = std::ptr::from_ref(self);
        // SAFETY: by the contract this is the only use; the heap's memory goes with its engine.
        drop(unsafe { this.read() });
    }

    /// The engine; `None` only of [`Heap::nothing`].
    pub fn engine(&self) -> Option<&Engine> {
        Some(&self.parts.as_ref()?.engine)
    }

    /// Allocates what is at hand; `None` says to try [`Heap::alloc`].
    #[inline(always)]
    pub fn alloc_fast(&self, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: a class, or 0.
        let row = unsafe { self.row(look_up(&self.small, size)) };
        // SAFETY: the calling thread's row.
        unsafe { pop_fast(row) }
    }

    /// Allocates at least `size` bytes, aligned to 16, or 8 if there are not more bytes.
    #[cold]
    pub fn alloc(&self, size: usize) -> Option<Got> {
        self.of_kind(kind_of(size), size, 16)
    }

    /// Allocates with an alignment, which is a power of two.
    pub fn alloc_aligned(&self, size: usize, align: usize) -> Option<Got> {
        self.of_kind(kind_of_aligned(size, align), size, align)
    }

    fn of_kind(&self, kind: usize, size: usize, align: usize) -> Option<Got> {
        let parts = self.parts.as_ref()?;
        let got = self.try_kind(parts, kind, size, align);
        // What other classes hold without need may be enough.
        if got.is_some() || size > MOST_WORTHWHILE {
            return got;
        }
        self.trim();
        self.try_kind(parts, kind, size, align)
    }

    #[inline]
    fn try_kind(&self, parts: &Parts, kind: usize, size: usize, align: usize) -> Option<Got> {
        if let Some(cache) = &parts.caches[kind] {
            // SAFETY: a class.
            let at_hand = cpu_slab::alloc_fast(cache.core, unsafe { self.row(kind) });
            let at = match at_hand {
                Some(at) => NonNull::new(at as *mut u8)?,
                None => cache.alloc_sized(size)?,
            };
            return Some(Got { at, zeroed: false });
        }
        let large = parts.engine.large_alloc(size, align)?;
        Some(Got {
            at: large.at,
            zeroed: large.zeroed,
        })
    }

    /// This thread's row of a class.
    ///
    /// # Safety
    /// `kind` is below [`KINDS`].
    #[inline(always)]
    unsafe fn row(&self, kind: usize) -> &Row {
        debug_assert!(kind < KINDS);
        let of_thread = self.rows as usize + (slot::heap_offset() & self.mask);
        let row = in_register(of_thread + kind * size_of::<Row>());
        // SAFETY: by the contract; rows of all slots are mapped as long as the heap.
        unsafe { &*(row as *const Row) }
    }

    /// The class of the slab that an address is in; 0 if none, or not of the first range.
    #[inline(always)]
    fn kind_at(&self, address: usize) -> usize {
        if address.wrapping_sub(self.base) >= self.bytes {
            return 0;
        }
        let at = self.kinds.wrapping_add(address / PAGE);
        // SAFETY: there is a byte for each page of the range.
        usize::from(unsafe { (*at).load(Relaxed) })
    }

    /// Frees an object if there is room at hand; false says to try [`Heap::free`]. Any pointer
    /// that is not of the heap gives false, also a null one.
    ///
    /// # Safety
    /// As [`Heap::free`].
    #[inline(always)]
    pub unsafe fn free_fast(&self, object: *mut u8) -> bool {
        let address = object as usize;
        // SAFETY: kinds are set to classes only.
        let row = unsafe { self.row(self.kind_at(address)) };
        // SAFETY: the calling thread's row; the object is of a slab of its cache.
        unsafe { push_fast(row, address) }
    }

    /// Frees whatever a pointer is to.
    ///
    /// # Safety
    /// If it is an object of this heap, it is in use and not used any more. Debug caches report
    /// what is not so.
    #[cold]
    pub unsafe fn free(&self, object: NonNull<u8>) -> Freed {
        let Some(parts) = &self.parts else {
            return Freed::Foreign;
        };
        match self.home(parts, object) {
            // SAFETY: by the contract.
            Home::Class(_, cache) | Home::Guarded(_, cache) => unsafe { cache.free(object) },
            Home::Large(_) if parts.starts_here(object) => {
                // SAFETY: by the contract; the pointer is where the object starts.
                unsafe { parts.engine.large_free(object) };
            }
            Home::Large(_) | Home::Nothing => {
                parts.report(object);
                return Freed::Refused;
            }
            Home::Foreign => {
                parts.report(object);
                return Freed::Foreign;
            }
        }
        Freed::Done
    }

    fn home<'h>(&self, parts: &'h Parts, object: NonNull<u8>) -> Home<'h> {
        let kind = self.kind_at(object.as_ptr() as usize);
        if let Some(cache) = &parts.caches[kind] {
            return Home::Class(kind, cache);
        }
        let of = |id: u32| {
            let kind = usize::from(parts.engine.core.cache(id)?.kind);
            Some((kind, parts.caches[kind].as_ref()?))
        };
        match parts.engine.classify(object.as_ptr()) {
            Address::Slab { cache, .. } => {
                of(cache).map_or(Home::Nothing, |(kind, cache)| Home::Class(kind, cache))
            }
            Address::Guarded { cache, bytes, .. } => {
                of(cache).map_or(Home::Nothing, |(_, cache)| Home::Guarded(bytes, cache))
            }
            Address::Large { .. } => parts
                .engine
                .large_usable(object)
                .map_or(Home::Nothing, Home::Large),
            Address::Unused | Address::Tail { .. } => Home::Nothing,
            Address::Foreign => Home::Foreign,
        }
    }

    /// Bytes that may be used of an object; `None` if it is not of this heap. In a debug cache
    /// these are the bytes that were asked for.
    pub fn usable(&self, object: NonNull<u8>) -> Option<usize> {
        let parts = self.parts.as_ref()?;
        match self.home(parts, object) {
            Home::Class(kind, cache) if cache.core.hooks.is_none() => Some(SIZES[kind]),
            Home::Class(_, cache) => policy::debug::requested(cache.core, object.as_ptr() as usize),
            Home::Guarded(bytes, _) | Home::Large(bytes) => Some(bytes),
            Home::Nothing | Home::Foreign => None,
        }
    }

    /// Whether an object has room for another size, and not much more; false says to ask
    /// [`Heap::resize`].
    #[inline(always)]
    pub fn fits(&self, object: NonNull<u8>, size: usize) -> bool {
        let kind = self.kind_at(object.as_ptr() as usize);
        debug_assert!(kind < KINDS);
        // SAFETY: kinds are set to classes only.
        unsafe { self.stays.get_unchecked(kind) }.has(size)
    }

    /// Gives an object another size where it is, if that wastes little.
    ///
    /// # Safety
    /// As [`Heap::free`], but the object may be used further.
    pub unsafe fn resize(&self, object: NonNull<u8>, size: usize) -> Resized {
        let Some(parts) = &self.parts else {
            return Resized::Foreign;
        };
        // Before all else: what is large may grow in many small steps.
        let whole = parts.engine.large_whole(object).unwrap_or(0);
        if size > LARGEST && size <= whole && size >= whole / 2 {
            return Resized::InPlace;
        }
        let (room, kept) = match self.home(parts, object) {
            Home::Class(kind, cache) if cache.core.hooks.is_none() => {
                let room = SIZES[kind];
                (room, STAYS[kind].has(size) || kind_of(size) == kind)
            }
            Home::Large(room) if parts.starts_here(object) => {
                let fits = size <= room && size >= room / 2;
                // SAFETY: the caller's object.
                let kept =
                    size > LARGEST && (fits || unsafe { parts.engine.large_resize(object, size) });
                (room, kept)
            }
            // Always moved: who uses the old one is found.
            Home::Class(_, cache) => {
                match policy::debug::requested(cache.core, object.as_ptr() as usize) {
                    Some(room) => (room, false),
                    None => return Resized::Bad,
                }
            }
            Home::Guarded(room, _) => (room, false),
            Home::Large(_) | Home::Nothing => return Resized::Bad,
            Home::Foreign => return Resized::Foreign,
        };
        if kept {
            Resized::InPlace
        } else {
            Resized::Move(room.min(size))
        }
    }

    /// As [`Heap::alloc`], for an object that moves because it grows: it gets room to grow
    /// further where it is.
    pub fn alloc_growing(&self, size: usize) -> Option<NonNull<u8>> {
        let parts = self.parts.as_ref()?;
        if size > LARGEST
            && let Some(large) = parts.engine.large_alloc_growing(size)
        {
            return Some(large.at);
        }
        let size = if parts.debug { size } else { grown(size) };
        self.alloc_fast(size)
            .or_else(|| self.alloc(size).map(|got| got.at))
    }

    /// Gives back to the system what is not used; true if that was something.
    pub fn trim(&self) -> bool {
        let Some(parts) = &self.parts else {
            return false;
        };
        parts.caches.iter().flatten().for_each(Cache::shrink);
        // What became free just now is given back by the second.
        parts.engine.tick() + parts.engine.tick() > 0
    }
}

#[cfg(test)]
mod tests;
