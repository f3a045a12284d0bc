//! The segment of a process that closed its files: daemons do that with all they do not know.
//!
//! It is mapped still. The system opens what a mapping is of for those who may do everything;
//! for others its bytes are copied out of the process's memory.

use super::find::{Found, is_name, open};
use super::memory::Memory as _;
use super::process::Process;
use crate::segment::format;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::FromRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Bytes of a list of mappings that are looked at.
const MOST: u64 = 64 << 20;

/// The segment that a process has mapped; `None` if it has none.
pub(super) fn of_process(pid: u32) -> io::Result<Option<Found>> {
    let file = File::open(format!("/proc/{pid}/maps"))?;
    let mut lines = BufReader::new(file.take(MOST));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if let Some(place) = place(&String::from_utf8_lossy(&line)) {
            return found(pid, place).map(Some);
        }
        line.clear();
    }
    Ok(None)
}

/// First address and end of a mapping of a segment, from its line.
fn place(line: &str) -> Option<(u64, u64)> {
    let path = line.split_once('/').map(|(_, path)| path.trim_end())?;
    if !is_name(Path::new(&format!("/{path}"))) {
        return None;
    }
    let (start, rest) = line.split_once('-')?;
    let end = rest.split(' ').next()?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(start)?, number(end)?)).filter(|(start, end)| start < end)
}

fn found(pid: u32, (start, end): (u64, u64)) -> io::Result<Found> {
    let path = PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
    if let Ok(file) = open(&path) {
        return Ok(Found { path, file });
    }
    let file = copied(pid, (start, end))?;
    Ok(Found { path, file })
}

/// A copy of what is mapped there.
fn copied(pid: u32, (start, end): (u64, u64)) -> io::Result<File> {
    let process = Process::open(pid)?;
    // Mappings end with a page, segments need not.
    let most = (end - start).min(format::BYTES as u64);
    let mut bytes = vec![0; usize::try_from(most).unwrap_or(0)];
    process
        .get(start, &mut bytes)
        .map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    let file = in_memory()?;
    file.write_all_at(&bytes, 0)?;
    Ok(file)
}

/// A file of our own in memory.
fn in_memory() -> io::Result<File> {
    // SAFETY: the name ends with a zero byte.
    let fd = unsafe { libc::memfd_create(c"copy".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: opened above, known to nobody else.
    Ok(unsafe { File::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_copied_where_the_system_opens_no_mapping() {
        let text = *b"what a segment would have";
        let at = &raw const text as u64;
        let pid = std::process::id();
        let mut seen = [0u8; 25];
        let file = copied(pid, (at, at + 25)).unwrap();
        file.read_exact_at(&mut seen, 0).unwrap();
        assert_eq!(seen, text);
        assert_eq!(file.metadata().unwrap().len(), 25);
        assert!(copied(pid, (8, 4096)).is_err());
        assert!(copied((1 << 22) + 1, (at, at + 25)).is_err());
    }

    #[test]
    fn a_mapping_is_a_segment_by_its_name_only() {
        let line = |path: &str| format!("7f12a000-7f12c000 rw-s 00000000 00:01 2063   {path}\n");
        let place_of = |path| place(&line(path));
        let there = Some((0x7f12_a000, 0x7f12_c000));
        assert_eq!(place_of("/memfd:slabcore-v1 (deleted)"), there);
        assert_eq!(place_of("/memfd:other (deleted)"), None);
        assert_eq!(place_of("/usr/lib/libslabcore_preload.so"), None);
        assert_eq!(place_of(""), None);
        assert_eq!(place("nonsense"), None);
        assert_eq!(place("x-y /memfd:slabcore-v1"), None);
    }
}
