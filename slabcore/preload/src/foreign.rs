//! Pointers that are not of the heap: from before the library came, from the loader's own
//! allocations, from another C library of the process.
//!
//! Whose they are is not known, and the next `free` in the order of symbols need not be that of
//! the allocator that gave them: to a wrong one they would be fatal. So `free` leaves them alone
//! (a debug heap reports them), their usable size is told as 0, and `realloc` copies.
//!
//! How large a foreign object is nobody can tell without trusting what lies around it. But
//! `realloc` need not know: bytes beyond the old size may be anything. So as many bytes as the new
//! object has are read by way of the kernel, up to where memory ends, which cannot fault.

use core::ffi::c_void;

/// Pages are read in such steps; a read ends at the first that is not there.
const STEP: usize = 4096;
/// Steps for each call.
const STEPS: usize = 32;

/// Copies up to `bytes` bytes that may be read from `from` on. False if not one could be read.
///
/// # Safety
/// `to` has `bytes` bytes.
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) -> bool {
    let mut done = 0;
    while done < bytes {
        let mut parts = [libc::iovec {
            iov_base: core::ptr::null_mut(),
            iov_len: 0,
        }; STEPS];
        let (mut used, mut asked) = (0, 0);
        for part in &mut parts {
            let at = from as usize + done + asked;
            let to_page_end = STEP - at % STEP;
            let len = to_page_end.min(bytes - done - asked);
            if len == 0 {
                break;
            }
            part.iov_base = at as *mut c_void;
            part.iov_len = len;
            asked += len;
            used += 1;
        }
        let local = libc::iovec {
            // SAFETY: `done` is below `bytes`.
            iov_base: unsafe { to.add(done) }.cast(),
            iov_len: asked,
        };
        // SAFETY: writes to the local part only, which is the caller's; the kernel checks what it reads.
        let read = unsafe {
            libc::process_vm_readv(libc::getpid(), &raw const local, 1, parts.as_ptr(), used, 0)
        };
        let Ok(read) = usize::try_from(read) else {
            break;
        };
        done += read;
        if read < asked {
            break;
        }
    }
    done > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_copied_and_no_more() {
        let from: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        let mut to = vec![0; from.len()];
        // SAFETY: both have that many bytes.
        assert!(unsafe { copy(from.as_ptr(), to.as_mut_ptr(), to.len()) });
        assert_eq!(from, to);
        // SAFETY: as above; nothing is mapped at the first page.
        assert!(!unsafe { copy(16 as *const u8, to.as_mut_ptr(), to.len()) });
        // SAFETY: maps two pages, the second inaccessible.
        let pages = unsafe {
            let at = libc::mmap(
                core::ptr::null_mut(),
                8192,
                3,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            libc::mprotect(at.byte_add(4096), 4096, libc::PROT_NONE);
            at.cast::<u8>()
        };
        // SAFETY: 5 bytes to the end of the page; `to` has room.
        unsafe {
            pages.add(4091).write_bytes(7, 5);
            assert!(copy(pages.add(4091), to.as_mut_ptr(), 100));
        }
        assert_eq!(to[..6], [7, 7, 7, 7, 7, from[5]]);
    }
}
