//! Allocators with C's interface.

use crate::{Contender, Heap, Pool};
use std::marker::PhantomData;

/// The pair of functions.
///
/// # Safety
/// `alloc` gives null or a new object of `size` bytes aligned to 8.
pub unsafe trait Functions: Sync {
    /// Allocates.
    ///
    /// # Safety
    /// None for a size above zero.
    unsafe fn alloc(size: usize) -> *mut u8;

    /// Frees what `alloc` gave for `size` bytes.
    ///
    /// # Safety
    /// `object` is in use and is not freed again.
    unsafe fn free(object: *mut u8, size: usize);
}

/// The contender of a pair of functions.
#[derive(Debug)]
pub struct Foreign<F>(PhantomData<F>);

impl<F> Foreign<F> {
    /// The contender.
    #[expect(clippy::new_without_default, reason = "there is only one value")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// A size of such a contender.
#[derive(Debug)]
pub struct Sized<F>(usize, PhantomData<F>);

impl<F: Functions> Contender for Foreign<F> {
    type Pool = Sized<F>;
    type Heap = Self;

    fn pool(&self, size: usize) -> Option<Sized<F>> {
        // The size is not known to the compiler, as it is not for a cache.
        Some(Sized(std::hint::black_box(size), PhantomData))
    }

    fn heap(&self) -> Self {
        Self::new()
    }
}

impl<F: Functions> Pool for Sized<F> {
    #[inline(always)]
    fn alloc(&self) -> *mut u8 {
        // SAFETY: loads have sizes above zero.
        unsafe { F::alloc(self.0) }
    }

    #[inline(always)]
    unsafe fn free(&self, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe { F::free(object, self.0) };
    }
}

impl<F: Functions> Heap for Foreign<F> {
    #[inline(always)]
    fn alloc(&self, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { F::alloc(size) }
    }

    #[inline(always)]
    unsafe fn free(&self, object: *mut u8, size: usize) {
        // SAFETY: by the contract.
        unsafe { F::free(object, size) };
    }
}

macro_rules! functions {
    ($(#[$meta:meta])* $name:ident, $alloc:expr, $free:expr) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name;

        $(#[$meta])*
        // SAFETY: the functions have malloc's contract.
        unsafe impl Functions for $name {
            #[inline(always)]
            unsafe fn alloc(size: usize) -> *mut u8 {
                // SAFETY: nothing is asked of the caller but a size above zero.
                unsafe { $alloc(size) }.cast()
            }

            #[inline(always)]
            unsafe fn free(object: *mut u8, size: usize) {
                // SAFETY: by the contract.
                unsafe { $free(object.cast(), size) };
            }
        }
    };
}

functions!(
    /// The process's malloc: the C library's, or a preloaded one.
    Libc, libc::malloc, |object, _| libc::free(object)
);
functions!(
    /// mimalloc, of the version that the crate carries.
    #[cfg(feature = "peers")]
    Mimalloc, libmimalloc_sys::mi_malloc, |object, _| libmimalloc_sys::mi_free(object)
);
functions!(
    /// jemalloc.
    #[cfg(feature = "peers")]
    Jemalloc, tikv_jemalloc_sys::malloc, |object, _| tikv_jemalloc_sys::free(object)
);
functions!(
    /// snmalloc, by its functions for Rust, which know the size at each free.
    #[cfg(feature = "peers")]
    Snmalloc,
    |size| snmalloc_sys::sn_rust_alloc(8, size),
    |object, size| snmalloc_sys::sn_rust_dealloc(object, 8, size)
);
