//! Allocation with an alignment.
//!
//! Source of truth: posix_memalign(3) of the Linux man-pages; `aligned_alloc` as C17 and glibc
//! since 2.38: an alignment that is no power of two is an error. `memalign` takes the next
//! power of two, as glibc does.

use crate::exports::{MOST, answer, fail, malloc};
use crate::start;
use core::ffi::{c_int, c_void};
use slabcore::heap::Got;

/// All objects of so many bytes have this alignment.
const USUAL: usize = 16;

/// `size` bytes at a multiple of `align`, a power of two.
fn aligned(align: usize, size: usize) -> Option<Got> {
    // Together not too much, so that nothing overflows further down.
    if size.checked_add(align)? > MOST {
        return None;
    }
    start::heap().alloc_aligned(size, align)
}

fn page() -> usize {
    // SAFETY: sysconf has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// As POSIX's.
///
/// # Safety
/// `to` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    match aligned(align, size) {
        Some(got) => {
            // SAFETY: by the contract.
            unsafe { to.write(got.at.as_ptr().cast()) };
            0
        }
        None => libc::ENOMEM,
    }
}

/// As C's.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        return fail(libc::EINVAL);
    }
    if align <= USUAL && size >= align {
        return malloc(size);
    }
    answer(aligned(align, size))
}

/// As glibc's.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => aligned_alloc(align, size),
        None => fail(libc::EINVAL),
    }
}

/// As glibc's: aligned to a page.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    answer(aligned(page(), size))
}

/// As glibc's: whole pages.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = page();
    match size.checked_next_multiple_of(page) {
        Some(bytes) => answer(aligned(page, bytes.max(page))),
        None => fail(libc::ENOMEM),
    }
}
