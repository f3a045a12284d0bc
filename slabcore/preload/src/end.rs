//! `_exit` and `_Exit`: the ends of a process that run no handlers.
//!
//! Source of truth: _exit(2) of the Linux man-pages. Shells end by it, and are to be looked at
//! like other programs. `exit` of the C library does not come here.

use core::ffi::c_int;

/// Ends the process; figures are published before, and who watches the process is waited for.
fn end(status: c_int) -> ! {
    slabcore::segment::before_exit();
    loop {
        // SAFETY: takes no pointers, and does not come back.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// As POSIX's.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    end(status)
}

/// As C's.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    end(status)
}
