//! The segment of a process that has no file of it open: daemons close all that they do not
//! know, and children of a fork have theirs in shared memory without a file.
//!
//! It is mapped. The system opens what a mapping is of for those who may do everything; for
//! others its bytes are copied out of the process's memory.

use super::find::{Found, is_name, is_of, open, says};
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

/// The segment that a process has mapped, its own if there is one; `None` if it has none.
pub(super) fn of_process(pid: u32) -> io::Result<Option<Found>> {
    let file = File::open(format!("/proc/{pid}/maps"))?;
    let mut lines = BufReader::new(file.take(MOST));
    let mut line = Vec::new();
    let mut parents = None;
    while lines.read_until(b'\n', &mut line)? > 0 {
        let place = place(&String::from_utf8_lossy(&line));
        line.clear();
        let Some((at, kind)) = place else {
            continue;
        };
        if kind == Kind::Shared && !begins_as_one(pid, at.0) {
            continue;
        }
        let found = found(pid, at)?;
        if is_of(&found.file, pid) {
            return Ok(Some(found));
        }
        parents = Some(found);
    }
    Ok(parents)
}

/// Whether a segment is there: others share memory without a file, too.
fn begins_as_one(pid: u32, at: u64) -> bool {
    let mut head = [0; format::IDENTITY.at + 8];
    let read = Process::open(pid).is_ok_and(|of| of.get(at, &mut head).is_ok());
    read && says(&head).is_some()
}

/// What a mapping is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A file with a segment's name.
    Named,
    /// Shared memory without a file, as long as a segment.
    Shared,
}

/// First address and end of a mapping that may be a segment, from its line.
fn place(line: &str) -> Option<((u64, u64), Kind)> {
    let path = line.split_once('/').map(|(_, path)| path.trim_end())?;
    let (start, rest) = line.split_once('-')?;
    let (end, rest) = rest.split_once(' ')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = Some((number(start)?, number(end)?)).filter(|(start, end)| start < end)?;
    let shared = path == "dev/zero (deleted)" && rest.starts_with("rw-s");
    let kind = if is_name(Path::new(&format!("/{path}"))) {
        Kind::Named
    } else if shared && end - start == format::BYTES as u64 {
        Kind::Shared
    } else {
        return None;
    };
    Some(((start, end), kind))
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
    fn a_mapping_may_be_a_segment_by_its_name_or_length() {
        let of = |end: &str, path: &str| {
            place(&format!(
                "7f12a000-{end} rw-s 00000000 00:01 2063   {path}\n"
            ))
        };
        let named = Some(((0x7f12_a000, 0x7f12_c000), Kind::Named));
        assert_eq!(of("7f12c000", "/memfd:slabcore-v1 (deleted)"), named);
        assert_eq!(of("7f12c000", "/memfd:other (deleted)"), None);
        assert_eq!(of("7f12c000", "/usr/lib/libslabcore_preload.so"), None);
        assert_eq!(
            of("7f12c000", "/dev/zero (deleted)"),
            None,
            "another length"
        );
        let shared = Some(((0x7f12_a000, 0x7f22_a000), Kind::Shared));
        assert_eq!(of("7f22a000", "/dev/zero (deleted)"), shared);
        assert_eq!(of("7f22a000", "/dev/zero"), None);
        assert_eq!(of("7f12c000", ""), None);
        assert_eq!(place("nonsense"), None);
        assert_eq!(place("x-y /memfd:slabcore-v1"), None);
    }
}
