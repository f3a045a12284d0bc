//! Finding the segment of a process, and reading it without mapping it.
//!
//! A mapped file that its owner shortens would end the reader with a signal; so it is read
//! into memory of our own, and what it says of its length is not used.

use super::Refusal;
use crate::segment::{Segment, format};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Open files of a process that are looked at.
const MOST_FILES: usize = 64 << 10;
/// Segments among them that are looked at: one's own, and those of forefathers.
const MOST_SEGMENTS: usize = 64;
/// Copies to make of a segment until two in a row agree.
const COPIES: usize = 8;

/// The open segment of a process, and where it was found.
#[derive(Debug)]
pub struct Found {
    /// The link below `/proc`.
    pub path: PathBuf,
    /// The segment.
    pub file: File,
}

/// The segment that a process has open, or at least mapped; `None` if it has none. Its own,
/// or, if it is a child that has none yet, its parent's.
pub fn of_process(pid: u32) -> io::Result<Option<Found>> {
    let opened = opened(pid)?;
    if opened.as_ref().is_some_and(|of| is_of(&of.file, pid)) {
        return Ok(opened);
    }
    let mapped = super::mapped::of_process(pid)?;
    let own = mapped.as_ref().is_some_and(|of| is_of(&of.file, pid));
    Ok(if own { mapped } else { opened.or(mapped) })
}

/// Whether a file is the segment of a process, by its own words.
pub(super) fn is_of(file: &File, pid: u32) -> bool {
    let mut head = [0; format::IDENTITY.at + 8];
    file.read_exact_at(&mut head, 0).is_ok() && says(&head) == Some(pid.into())
}

/// Whose segment begins with these bytes; `None` if none does.
pub(super) fn says(head: &[u8]) -> Option<u64> {
    let at = format::IDENTITY.at + format::identity::PID;
    let pid = head.get(at..)?.first_chunk()?;
    head.starts_with(&format::MAGIC)
        .then(|| u64::from_ne_bytes(*pid))
}

fn opened(pid: u32) -> io::Result<Option<Found>> {
    let dir = PathBuf::from(format!("/proc/{pid}/fd"));
    let (mut newest, mut unusable) = (None, None);
    let mut left = MOST_SEGMENTS;
    for entry in fs::read_dir(&dir)?.take(MOST_FILES) {
        let Ok(entry) = entry else {
            continue;
        };
        let path = entry.path();
        let Ok(link) = fs::read_link(&path) else {
            continue;
        };
        if !is_segment(&link) {
            continue;
        }
        left -= 1;
        // One that cannot be used is not its own, or it has another.
        let file = match open(&path) {
            Ok(file) => file,
            Err(error) => {
                unusable = Some(error);
                continue;
            }
        };
        // A child that has its parent's open, too, has its own at another number.
        if is_of(&file, pid) {
            return Ok(Some(Found { path, file }));
        }
        newest = Some(Found { path, file });
        if left == 0 {
            break;
        }
    }
    match unusable {
        Some(error) if newest.is_none() => Err(error),
        _ => Ok(newest),
    }
}

/// Whether a link of `/proc/PID/fd` leads to a segment, by its name.
fn is_segment(link: &Path) -> bool {
    let text = link.to_string_lossy();
    let named = { link.file_name() }.is_some_and(|name| {
        let name = name.to_string_lossy();
        name.starts_with("slabcore") && text.starts_with('/') && !text.starts_with("/memfd:")
    });
    is_name(link) || (named && is_file(link))
}

/// Whether a path is that of a file in memory with a segment's name.
pub(super) fn is_name(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let memfd = text.strip_prefix("/memfd:");
    memfd.is_some_and(|name| name.starts_with(format::NAME))
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|of| of.is_file() && of.len() == format::BYTES as u64)
}

/// Opens a segment to be read: a plain file in memory, which nobody can make to wait.
pub(super) fn open(path: &Path) -> io::Result<File> {
    reopen(&named(path)?, true)
}

/// Opens a plain file to be read. A device or a pipe in its place is not opened: that alone
/// may have effects, and another process may have chosen the path.
pub fn open_plain(path: &Path) -> io::Result<File> {
    reopen(&named(path)?, false)
}

/// The place that a path leads to, which is not opened.
fn named(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    File::options().read(true).custom_flags(flags).open(path)
}

/// Opens what is at a place, if it is a plain file; and in memory, if it must be.
fn reopen(place: &File, in_memory: bool) -> io::Result<File> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let plain = place.metadata()?.is_file() && (!in_memory || is_in_memory(place));
    if !plain {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    File::options().read(true).custom_flags(flags).open(path)
}

fn is_in_memory(place: &File) -> bool {
    use std::os::fd::AsRawFd as _;
    // SAFETY: an all-zero record is valid, and the call fills it.
    unsafe {
        let mut of: libc::statfs = std::mem::zeroed();
        libc::fstatfs(place.as_raw_fd(), &raw mut of) == 0 && of.f_type == libc::TMPFS_MAGIC
    }
}

/// Opens the segment that a process left in a file: not through a link, and only one's own
/// unless one may read everything.
pub fn file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let of = file.metadata()?;
    let user = crate::sys::uid();
    if !of.is_file() || (user != 0 && of.uid() != user) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(file)
}

/// Reads a segment that may be changing.
pub fn read(file: &File) -> Result<Segment, Refusal> {
    let mut before = copy(file)?;
    for _ in 1..COPIES {
        let now = copy(file)?;
        let segment = Segment::parse_twice(&before, &now)?;
        let published = &segment.published;
        if published.caches.iter().all(|of| of.whole) && segment.whole {
            return Ok(segment);
        }
        before = now;
    }
    Segment::parse_twice(&before, &copy(file)?)
}

/// A copy of a bounded length.
fn copy(file: &File) -> Result<Vec<u8>, Refusal> {
    let mut bytes = vec![0; format::BYTES];
    let mut got = 0;
    while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Refusal::NoSegment),
        }
    }
    bytes.truncate(got);
    // One byte more would be another format's.
    if file.read_at(&mut [0], format::BYTES as u64).unwrap_or(0) != 0 {
        let len = file.metadata().map_or(0, |of| of.len());
        return Err(Refusal::Length(len));
    }
    Ok(bytes)
}
