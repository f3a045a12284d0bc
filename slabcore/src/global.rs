//! The engine as a program's global allocator.
//!
//! Safe before `main` and after thread exit: it is made at the first allocation
//! from mapped memory only, and threads without a slot share one.

use crate::classes::{Kmalloc, SIZES, class_of_layout};
use crate::config::EngineConfig;
use crate::engine::Engine;
use crate::sync::Ordering;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicPtr;

/// A global allocator: `#[global_allocator] static A: SlabAlloc = SlabAlloc::new();`
#[derive(Debug)]
pub struct SlabAlloc {
    heap: AtomicPtr<Heap>,
    config: EngineConfig,
}

/// The engine and its classes, in the engine's own metadata.
#[derive(Debug)]
struct Heap {
    engine: Engine,
    classes: Kmalloc,
}

impl Default for SlabAlloc {
    fn default() -> Self {
        Self::new()
    }
}

impl SlabAlloc {
    /// With the default configuration.
    pub const fn new() -> Self {
        Self::with(EngineConfig::new())
    }

    /// With a configuration.
    pub const fn with(config: EngineConfig) -> Self {
        Self {
            heap: AtomicPtr::new(null_mut()),
            config,
        }
    }

    /// The engine, once something has been allocated.
    pub fn engine(&self) -> Option<&Engine> {
        let heap = self.heap.load(Ordering::Acquire);
        // SAFETY: a published heap is never moved or freed.
        unsafe { heap.as_ref() }.map(|heap| &heap.engine)
    }

    #[inline(always)]
    fn heap(&self) -> Option<&Heap> {
        let heap = self.heap.load(Ordering::Acquire);
        if heap.is_null() {
            return self.make();
        }
        // SAFETY: a published heap is never moved or freed.
        Some(unsafe { &*heap })
    }

    /// Makes an engine, or finds that another thread was faster. No lock is held meanwhile,
    /// so that none can be held in a child of a fork.
    #[cold]
    fn make(&self) -> Option<&Heap> {
        if let Some(at) = Self::fresh(self.config) {
            let order = (Ordering::AcqRel, Ordering::Acquire);
            let set = { &self.heap }.compare_exchange(null_mut(), at, order.0, order.1);
            if set.is_err() {
                // SAFETY: written by `fresh`, known to nobody else; what it lies in goes with it.
                drop(unsafe { at.read() });
            }
        }
        // SAFETY: set above or by another thread, and never moved or freed.
        unsafe { self.heap.load(Ordering::Acquire).as_ref() }
    }

    /// A new engine and its classes, in its own metadata.
    fn fresh(config: EngineConfig) -> Option<*mut Heap> {
        let engine = Engine::new(config).ok()?;
        let classes = Kmalloc::new(&engine, config.policy).ok()?;
        let at = engine.core.meta(size_of::<Heap>(), align_of::<Heap>())?;
        let at = at as *mut Heap;
        // SAFETY: fresh metadata of the right size and alignment.
        unsafe { at.write(Heap { engine, classes }) };
        Some(at)
    }

    /// Allocates; the flag tells that the memory is zero already.
    #[inline(always)]
    fn get(&self, layout: Layout) -> (*mut u8, bool) {
        let Some(heap) = self.heap() else {
            return (null_mut(), false);
        };
        if let Some(class) = class_of_layout(layout.size(), layout.align()) {
            let object = heap.classes.class(class).alloc_sized(layout.size());
            return (object.map_or(null_mut(), NonNull::as_ptr), false);
        }
        match heap.engine.large_alloc(layout.size(), layout.align()) {
            Some(large) => (large.at.as_ptr(), large.zeroed),
            None => (null_mut(), false),
        }
    }

    /// Bytes that the object of a layout really has.
    #[inline]
    fn usable(heap: &Heap, object: NonNull<u8>, layout: Layout) -> usize {
        match class_of_layout(layout.size(), layout.align()) {
            Some(class) => SIZES[class],
            None => heap.engine.large_usable(object).unwrap_or(0),
        }
    }
}

// SAFETY: objects are disjoint, at least as large and aligned as asked (see `class_of_layout` and
// `large_alloc`), stay valid until freed, and no method unwinds.
unsafe impl GlobalAlloc for SlabAlloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.get(layout).0
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        let (Some(heap), Some(object)) = (self.heap(), NonNull::new(object)) else {
            return;
        };
        // SAFETY: by the trait's contract the object came from `alloc` with this layout, so from
        // the class or as a large object by the same computation.
        unsafe {
            match class_of_layout(layout.size(), layout.align()) {
                Some(class) => heap.classes.class(class).free(object),
                None => {
                    heap.engine.large_free(object);
                }
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (object, zeroed) = self.get(layout);
        if !object.is_null() && !zeroed {
            // SAFETY: the object is new and has at least that many bytes.
            unsafe { object.write_bytes(0, layout.size()) };
        }
        object
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (Some(heap), Some(old)) = (self.heap(), NonNull::new(object)) else {
            return null_mut();
        };
        let Ok(new) = Layout::from_size_align(new_size, layout.align()) else {
            return null_mut();
        };
        let usable = Self::usable(heap, old, layout);
        // In place only if `dealloc` with the new layout finds the same home.
        let same_home = match (
            class_of_layout(layout.size(), layout.align()),
            class_of_layout(new_size, layout.align()),
        ) {
            (Some(a), Some(b)) => a == b,
            (None, None) => {
                let fits = new_size <= usable && new_size >= usable / 2;
                // SAFETY: by the trait's contract the object is a large one, see `dealloc`.
                fits || unsafe { heap.engine.large_resize(old, new_size) }
            }
            _ => false,
        };
        if same_home {
            if let Some(class) = class_of_layout(new_size, layout.align()) {
                heap.classes.class(class).resize(old, new_size);
            }
            return object;
        }
        let growing = new_size > layout.size() && layout.align() <= crate::sys::PAGE;
        let to = match class_of_layout(new_size, layout.align()) {
            None if growing => heap.engine.large_alloc_growing(new_size),
            _ => None,
        };
        let to = to.map_or_else(|| self.get(new).0, |large| large.at.as_ptr());
        if !to.is_null() {
            // SAFETY: both objects hold the smaller of the two sizes, and are apart.
            unsafe {
                to.copy_from_nonoverlapping(object, layout.size().min(new_size));
                self.dealloc(object, layout);
            }
        }
        to
    }
}
