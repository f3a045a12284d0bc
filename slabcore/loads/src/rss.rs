//! Memory that the kernel says this process has, in bytes.

use std::fs;

/// Resident now, by `/proc/self/statm`; `None` if it cannot be read.
pub fn now() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: sysconf has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}

/// The most resident since the start or the last [`reset_peak`].
pub fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Lets the peak begin anew at what is resident now.
pub fn reset_peak() -> Option<()> {
    fs::write("/proc/self/clear_refs", "5").ok()
}
