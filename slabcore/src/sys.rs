//! Memory from the system: reserve, commit, give back.
//!
//! Every byte of metadata comes from here, never from the global allocator,
//! so that the engine can be the global allocator.

// There is no segment where threads are simulated.
#![cfg_attr(shuttle, allow(dead_code))]

use std::ptr::null_mut;

/// Bytes of a page; the engine's unit, whatever the system's page size is.
pub const PAGE: usize = 4096;
/// Bytes of a huge page: alignment of ranges and step of committing.
pub const HUGE: usize = 2 << 20;

/// Zeroed memory that is touched lazily and lives until [`unmap`].
///
/// Returns 0 when the system refuses.
pub fn map_lazy(bytes: usize) -> usize {
    map(bytes, libc::PROT_READ | libc::PROT_WRITE)
}

/// As [`map_lazy`], but only to be read until [`commit`] makes parts of it writable.
pub fn map_for_reading(bytes: usize) -> usize {
    let at = map(bytes, libc::PROT_READ);
    leave_out_of_dumps(at, bytes);
    at
}

/// A debugger that writes a core file would else read all of it.
fn leave_out_of_dumps(at: usize, bytes: usize) {
    if at != 0 {
        // SAFETY: a mapping of the caller's, just made; its contents stay as they are.
        unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTDUMP) };
    }
}

/// Asks for huge pages behind a range once it is used.
pub fn prefer_huge_pages(at: usize, bytes: usize) {
    // SAFETY: a mapping of the caller's, just made; its contents stay as they are.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_HUGEPAGE) };
}

fn map(bytes: usize, protection: i32) -> usize {
    // SAFETY: a new private anonymous mapping at an address of the system's choice
    // aliases nothing.
    let at = unsafe {
        libc::mmap(
            null_mut(),
            bytes,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        0
    } else {
        at as usize
    }
}

/// Reserves `bytes` of inaccessible addresses, aligned to `align`; 0 when refused.
pub fn reserve(bytes: usize, align: usize) -> usize {
    let Some(total) = bytes.checked_add(align) else {
        return 0;
    };
    let raw = map(total, libc::PROT_NONE);
    if raw == 0 {
        return 0;
    }
    let at = raw.next_multiple_of(align);
    let (before, after) = (at - raw, raw + total - (at + bytes));
    // SAFETY: both pieces are ends of the mapping just made, in use by nobody.
    unsafe {
        if before > 0 {
            libc::munmap(raw as *mut _, before);
        }
        if after > 0 {
            libc::munmap((at + bytes) as *mut _, after);
        }
    }
    leave_out_of_dumps(at, bytes);
    at
}

/// Makes reserved pages usable; false when the system refuses.
pub fn commit(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the reserved range; widening access breaks no reference, and
    // what is in core dumps is of no concern to the program.
    unsafe {
        if libc::mprotect(at as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return false;
        }
        libc::madvise(at as *mut _, bytes, libc::MADV_DODUMP);
    }
    true
}

/// Makes pages inaccessible and gives their memory back.
pub fn forbid(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the pages and their last user is gone; who touches them is to fault.
    unsafe {
        libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED);
        libc::mprotect(at as *mut _, bytes, libc::PROT_NONE) == 0
    }
}

/// Bytes of a page of the system.
pub fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(PAGE).max(PAGE)
}

/// Gives the memory behind committed pages back; they read as zeroes afterwards.
///
/// # Safety
/// The range is a page run of the caller's own reservation, and nobody else uses it.
pub unsafe fn decommit(at: usize, bytes: usize) -> bool {
    // SAFETY: by the contract no live object is in the range.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED) == 0 }
}

/// Asks for the memory of usable addresses at once, if there is more than a page. Where that is
/// refused (before Linux 5.14, or for want of memory), it comes when it is touched.
pub fn populate(at: usize, bytes: usize) {
    if bytes > PAGE {
        // SAFETY: what is there already stays as it is.
        unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_POPULATE_WRITE) };
    }
}

/// Ends a mapping.
///
/// # Safety
/// `at` and `bytes` are a mapping of this module that nobody uses any more.
pub unsafe fn unmap(at: usize, bytes: usize) {
    if at != 0 {
        // SAFETY: by the contract.
        unsafe { libc::munmap(at as *mut _, bytes) };
    }
}

/// The process's limit on address space, if it has one.
pub fn address_limit() -> Option<usize> {
    // SAFETY: an all-zero rlimit is valid, and the call fills it.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        (libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) == 0).then_some(limit)
    }?;
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

/// Processors that this process may run on, at least 1.
///
/// Asks the kernel: `sysconf` reads a file, by functions that do not work before the C library
/// has been initialised, when a first allocation may come.
pub fn cpus() -> u32 {
    // Room for 8192 processors, as many as Linux can be built for.
    let mut set = [0u64; 128];
    // SAFETY: writes at most the bytes told.
    let bytes = unsafe {
        let call = libc::SYS_sched_getaffinity;
        libc::syscall(call, 0, size_of_val(&set), set.as_mut_ptr())
    };
    let words = usize::try_from(bytes).unwrap_or(0) / size_of::<u64>();
    let n: u32 = set.iter().take(words).map(|word| word.count_ones()).sum();
    n.max(1)
}

/// Milliseconds of a coarse monotonic clock.
pub fn coarse_ms() -> u64 {
    clock(libc::CLOCK_MONOTONIC_COARSE) / 1_000_000
}

/// The same in nanoseconds.
pub fn coarse_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC_COARSE)
}

/// Nanoseconds since 1970.
pub fn real_ns() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

fn clock(clock: libc::clockid_t) -> u64 {
    // SAFETY: an all-zero timespec is valid, and the call fills it.
    let now = unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(clock, &raw mut now);
        now
    };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Has pages read as zero in a child of a fork.
pub fn wipe_on_fork(at: usize, bytes: usize) {
    // SAFETY: a private mapping of the caller's; its contents stay as they are here.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_WIPEONFORK) };
}

/// Maps a file, or memory without one, so that others see what is written; 0 when the system
/// refuses.
pub fn map_shared(fd: Option<i32>, bytes: usize) -> usize {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (flags, fd) = match fd {
        Some(fd) => (libc::MAP_SHARED, fd),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping at an address of the system's choice aliases nothing.
    let at = unsafe { libc::mmap(null_mut(), bytes, protection, flags, fd, 0) };
    if at == libc::MAP_FAILED {
        0
    } else {
        at as usize
    }
}

/// This process's id.
pub fn pid() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() }.unsigned_abs()
}

/// This process's parent.
pub fn parent() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::getppid() }.unsigned_abs()
}

/// The user whose process this is.
pub fn uid() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() }
}

/// When this process started, in clock ticks after boot; 0 if it cannot be told.
pub fn start_ticks() -> u64 {
    let mut text = [0u8; 1024];
    start_of(read_file(c"/proc/self/stat", &mut text)).unwrap_or(0)
}

/// Whether a filter decides on this process's system calls. Reads a file, as the loader does
/// before a program starts: later a filter may have forbidden that.
pub fn is_filtered() -> bool {
    let mut text = [0u8; 4096];
    filters(read_file(c"/proc/self/status", &mut text))
}

/// What the text of a `status` file says of that: the mode, 0 for none.
fn filters(status: &[u8]) -> bool {
    // Without /proc nothing is known, and to ask for what is forbidden may be the end.
    if status.is_empty() {
        return true;
    }
    let mut lines = status.split(|byte| *byte == b'\n');
    let mode = lines.find_map(|line| line.strip_prefix(b"Seccomp:"));
    mode.is_some_and(|mode| mode.trim_ascii() != b"0")
}

/// The same, where a filter may be in force that lets `prctl` be called.
pub fn is_filtered_now() -> bool {
    // SAFETY: takes no pointers.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP) > 0 }
}

/// The start of a file, in a buffer of the caller's; empty if it cannot be read.
fn read_file<'b>(path: &std::ffi::CStr, buffer: &'b mut [u8]) -> &'b [u8] {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: a path that ends, a buffer of that length, and our own descriptor.
    let got = unsafe {
        let fd = libc::open(path.as_ptr(), flags);
        if fd < 0 {
            return &[];
        }
        let got = libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(fd);
        got
    };
    let read = buffer.get(..usize::try_from(got).unwrap_or(0));
    read.unwrap_or_default()
}

/// The start in the text of a `stat` file: the 20th field behind the name in brackets.
pub fn start_of(stat: &[u8]) -> Option<u64> {
    field_of(stat, 22)
}

/// A field of a `stat` file by its number in `proc_pid_stat(5)`, behind the name (3 and more).
pub fn field_of(stat: &[u8], number: usize) -> Option<u64> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let place = number.checked_sub(3)?;
    rest.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// Path of the program, in a buffer of the caller's; empty if it cannot be told.
pub fn program(path: &mut [u8]) -> &str {
    let link = c"/proc/self/exe".as_ptr();
    // SAFETY: a path that ends, and a buffer of that length.
    let got = unsafe { libc::readlink(link, path.as_mut_ptr().cast(), path.len()) };
    let path = path.get(..usize::try_from(got).unwrap_or(0));
    path.and_then(|path| std::str::from_utf8(path).ok())
        .unwrap_or_default()
}

/// The path by which the program was started, without asking the system; empty if unknown.
pub fn started_as() -> &'static str {
    // SAFETY: no preconditions; what it gives is 0 or a text that ends and stays.
    unsafe {
        let at = libc::getauxval(libc::AT_EXECFN) as *const libc::c_char;
        let text = (!at.is_null()).then(|| std::ffi::CStr::from_ptr(at));
        text.and_then(|text| text.to_str().ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_told_by_the_processs_status() {
        assert!(filters(b""), "not known");
        assert!(!filters(b"Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n"));
        assert!(filters(b"Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(!filters(b"Seccomp_filters:\t1\n"));
        assert_eq!(is_filtered(), is_filtered_now());
        assert!(!started_as().is_empty());
    }
}
