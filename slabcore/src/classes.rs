//! The kmalloc classes: 8 to 8192 bytes, powers of two and 96 and 192.

use crate::builder::CacheBuilder;
use crate::cache::Cache;
use crate::config::Error;
use crate::engine::Engine;
use crate::policy::Policy;
use std::alloc::Layout;
use std::ptr::NonNull;

/// Sizes of the classes.
pub const SIZES: [usize; 13] = [
    8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192,
];

const NAMES: [&str; 13] = [
    "kmalloc-8",
    "kmalloc-16",
    "kmalloc-32",
    "kmalloc-64",
    "kmalloc-96",
    "kmalloc-128",
    "kmalloc-192",
    "kmalloc-256",
    "kmalloc-512",
    "kmalloc-1k",
    "kmalloc-2k",
    "kmalloc-4k",
    "kmalloc-8k",
];

/// Class of (bytes + 7) / 8, up to 192 bytes.
const SMALL: [u8; 25] = [
    0, 0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6,
];

/// The class for `size` bytes; `None` above 8192.
#[inline(always)]
pub const fn class_of(size: usize) -> Option<usize> {
    if size <= 192 {
        return Some(SMALL[size.div_ceil(8)] as usize);
    }
    if size > 8192 {
        return None;
    }
    // 193..=256 is class 7.
    Some((usize::BITS - (size - 1).leading_zeros()) as usize - 1)
}

/// The class whose objects have at least this alignment, too.
#[inline(always)]
pub const fn class_of_layout(size: usize, align: usize) -> Option<usize> {
    if align <= 8 {
        return class_of(size);
    }
    if align > crate::sys::PAGE || size > 8192 {
        return None;
    }
    let Some(mut class) = class_of(if size < align { align } else { size }) else {
        return None;
    };
    // Slots lie at multiples of their size from a page's start.
    while class < SIZES.len() {
        if SIZES[class].is_multiple_of(align) {
            return Some(class);
        }
        class += 1;
    }
    None
}

/// One cache for each class.
#[derive(Debug)]
pub struct Kmalloc {
    caches: [Cache; SIZES.len()],
}

impl Kmalloc {
    /// Makes the caches.
    pub fn new(engine: &Engine, policy: Policy) -> Result<Self, Error> {
        let mut caches = [const { None }; SIZES.len()];
        for (place, (size, name)) in caches.iter_mut().zip(SIZES.into_iter().zip(NAMES)) {
            let align = (1 << size.trailing_zeros()).min(crate::sys::PAGE);
            let layout = Layout::from_size_align(size, align).map_err(|_| Error::BadLayout)?;
            let builder = CacheBuilder::new(engine, name, layout)
                .policy(policy)
                .kmalloc();
            *place = Some(builder.build()?);
        }
        collect(caches).ok_or(Error::NoMemory)
    }

    /// The cache of a class.
    #[inline(always)]
    pub fn class(&self, class: usize) -> &Cache {
        &self.caches[class]
    }

    /// Allocates up to 8192 bytes.
    #[inline(always)]
    pub fn alloc(&self, size: usize) -> Option<NonNull<u8>> {
        self.caches[class_of(size)?].alloc_sized(size)
    }

    /// Frees what was allocated for `size` bytes.
    ///
    /// # Safety
    /// As [`Cache::free`], and `size` is of the same class as at allocation.
    #[inline(always)]
    pub unsafe fn free(&self, object: NonNull<u8>, size: usize) {
        if let Some(class) = class_of(size) {
            // SAFETY: by the contract.
            unsafe { self.caches[class].free(object) };
        }
    }
}

fn collect(caches: [Option<Cache>; SIZES.len()]) -> Option<Kmalloc> {
    let [
        Some(c0),
        Some(c1),
        Some(c2),
        Some(c3),
        Some(c4),
        Some(c5),
        Some(c6),
        Some(c7),
        Some(c8),
        Some(c9),
        Some(c10),
        Some(c11),
        Some(c12),
    ] = caches
    else {
        return None;
    };
    Some(Kmalloc {
        caches: [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        for size in 0..=8192 {
            let class = class_of(size).unwrap();
            assert!(SIZES[class] >= size);
            assert!(class == 0 || SIZES[class - 1] < size, "{size}");
        }
        assert_eq!(class_of(8193), None);
    }

    #[test]
    fn every_alignment_is_met() {
        for align in (0..=12).map(|bit| 1usize << bit) {
            for size in 0..=8192 {
                let class = class_of_layout(size, align).unwrap();
                assert!(SIZES[class] >= size && SIZES[class].is_multiple_of(align));
            }
        }
        assert_eq!(class_of_layout(8, 8192), None);
    }
}
