//! `malloc` and its kin, with the semantics of glibc 2.36.
//!
//! Source of truth: malloc(3) of the Linux man-pages, malloc/malloc.c of glibc 2.36. A function
//! tries what is at hand, inlined; the rest is out of line. `free` leaves errno alone.

use crate::foreign;
use crate::start::{self, heap_now};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull, null_mut};
use slabcore::heap::{Got, Heap, Resized};

/// More than this no object may have, so that pointers into it can be subtracted.
pub(crate) const MOST: usize = isize::MAX as usize;

/// Sets errno.
pub(crate) fn fail(error: c_int) -> *mut c_void {
    // SAFETY: this thread's errno, always there.
    unsafe { *libc::__errno_location() = error };
    null_mut()
}

#[cold]
#[inline(never)]
extern "C" fn no_memory() -> *mut c_void {
    fail(libc::ENOMEM)
}

/// Runs `work` with errno the same before and after.
fn keeping_errno<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: this thread's errno, always there.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { place.read() };
    let result = work();
    // SAFETY: as above.
    unsafe { place.write(before) };
    result
}

/// What an allocation gives to C.
pub(crate) fn answer(got: Option<Got>) -> *mut c_void {
    match got {
        Some(got) => got.at.as_ptr().cast(),
        None => fail(libc::ENOMEM),
    }
}

#[cold]
#[inline(never)]
pub(crate) fn allocate(size: usize) -> Option<Got> {
    if size > MOST {
        return None;
    }
    start::heap().alloc(size)
}

// The slow paths that end a function are C's too: then it is a jump, without a frame.

#[cold]
#[inline(never)]
extern "C" fn allocate_slow(size: usize) -> *mut c_void {
    answer(allocate(size))
}

/// As C's.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    match heap_now().alloc_fast(size) {
        Some(object) => object.as_ptr().cast(),
        None => allocate_slow(size),
    }
}

#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn free_slow(object: *mut u8) {
    let Some(object) = NonNull::new(object) else {
        return;
    };
    // SAFETY: by the caller's contract. Pointers that are not of the heap stay as they are.
    keeping_errno(|| unsafe { heap_now().free(object) });
}

/// As C's.
///
/// # Safety
/// As C says; what is not so is reported where the class of the object is debugged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(object: *mut c_void) {
    // SAFETY: by the contract.
    unsafe {
        if !heap_now().free_fast(object.cast()) {
            free_slow(object.cast());
        }
    }
}

/// As C23's: the size is not looked at.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(object: *mut c_void, _size: usize) {
    // SAFETY: by the contract.
    unsafe { free(object) };
}

/// As C23's: size and alignment are not looked at.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(object: *mut c_void, _align: usize, _size: usize) {
    // SAFETY: by the contract.
    unsafe { free(object) };
}

#[cold]
#[inline(never)]
extern "C" fn allocate_zeroed(size: usize) -> *mut c_void {
    let Some(got) = allocate(size) else {
        return fail(libc::ENOMEM);
    };
    if !got.zeroed {
        // SAFETY: the object is new and has at least that many bytes.
        unsafe { got.at.as_ptr().write_bytes(0, size) };
    }
    got.at.as_ptr().cast()
}

/// As C's.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        return no_memory();
    };
    let Some(object) = heap_now().alloc_fast(bytes) else {
        return allocate_zeroed(bytes);
    };
    // SAFETY: the object is new and has at least that many bytes.
    unsafe { object.as_ptr().write_bytes(0, bytes) };
    object.as_ptr().cast()
}

/// As glibc's: no bytes free the object and give a null pointer.
///
/// # Safety
/// As [`free`]; when it gives a null pointer for some bytes, the object stays as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(object: *mut c_void, size: usize) -> *mut c_void {
    let Some(old) = NonNull::new(object.cast::<u8>()) else {
        return malloc(size);
    };
    let heap = heap_now();
    if heap.fits(old, size) {
        return object;
    }
    // SAFETY: by the contract.
    unsafe { realloc_slow(heap, old, size) }
}

/// As [`realloc`], for an object that does not stay as it is.
///
/// # Safety
/// As [`realloc`].
#[inline(never)]
unsafe extern "C" fn realloc_slow(heap: &Heap, old: NonNull<u8>, size: usize) -> *mut c_void {
    let object = old.as_ptr().cast();
    if size == 0 {
        // SAFETY: by the contract.
        unsafe { free(object) };
        return null_mut();
    }
    if size > MOST {
        return fail(libc::ENOMEM);
    }
    // SAFETY: by the contract.
    match unsafe { heap.resize(old, size) } {
        Resized::InPlace => object,
        // SAFETY: by the contract; so many bytes are in both.
        Resized::Move(bytes) => unsafe { moved(heap, old, size, bytes) },
        // SAFETY: by the contract; there is nothing to be moved.
        Resized::Bad => unsafe { moved(heap, old, size, 0) },
        // SAFETY: by the contract.
        Resized::Foreign => unsafe { moved_in(old, size) },
    }
}

/// Moves an object to a new place, where it has `size` bytes, the first ones as before.
///
/// # Safety
/// As [`realloc`]; both sizes are at least `bytes`.
unsafe fn moved(heap: &Heap, old: NonNull<u8>, size: usize, bytes: usize) -> *mut c_void {
    let new = if bytes < size {
        heap.alloc_growing(size)
            .map_or_else(|| fail(libc::ENOMEM).cast(), NonNull::as_ptr)
    } else {
        malloc(size).cast::<u8>()
    };
    if !new.is_null() {
        // SAFETY: by the contract; the new object is apart from the old one.
        unsafe {
            ptr::copy_nonoverlapping(old.as_ptr(), new, bytes);
            if !heap.free_fast(old.as_ptr()) {
                free_slow(old.as_ptr());
            }
        }
    }
    new.cast()
}

/// Makes an object of the heap from a foreign one, which is left as it is: see `foreign`.
///
/// # Safety
/// As [`realloc`].
#[cold]
unsafe fn moved_in(old: NonNull<u8>, size: usize) -> *mut c_void {
    let Some(new) = allocate(size) else {
        return fail(libc::ENOMEM);
    };
    // SAFETY: the new object has that many bytes.
    if !unsafe { foreign::copy(old.as_ptr(), new.at.as_ptr(), size) } {
        // SAFETY: the new object is nobody else's.
        unsafe { free(new.at.as_ptr().cast()) };
        return fail(libc::ENOMEM);
    }
    // SAFETY: reports it, if that is asked for, and does nothing else.
    unsafe { free_slow(old.as_ptr()) };
    new.at.as_ptr().cast()
}

/// As glibc's.
///
/// # Safety
/// As [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    object: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: by the contract.
        Some(bytes) => unsafe { realloc(object, bytes) },
        None => fail(libc::ENOMEM),
    }
}

/// As glibc's: bytes that may be used. 0 for what is not of the heap.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_usable_size(object: *mut c_void) -> usize {
    let object = NonNull::new(object.cast());
    object.and_then(|at| heap_now().usable(at)).unwrap_or(0)
}

/// As glibc's: gives back what is not used, and 1 if that was something. Nothing is kept for later.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_keep: usize) -> c_int {
    keeping_errno(|| c_int::from(heap_now().trim()))
}
