//! Where a segment lies: in a memfd, in a file on tmpfs, or nowhere.
//!
//! A memfd goes with the process and cannot be shrunk under a reader (sealed). A file
//! outlives it. A file on a disk is refused: a store to it could wait for the disk. A file
//! that is there is another process's, but for the one that this very process made before
//! `exec`: that is emptied and used again, by its descriptor, so that nothing is unlinked.

use super::format;
use crate::sys;

/// Where the segment of a process is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// No segment.
    Off,
    /// In anonymous memory, found through `/proc/PID/fd`.
    #[default]
    Memfd,
    /// In a new file on tmpfs, with mode 0600. The file's name begins with `slabcore`; `%p`
    /// becomes the process's id, without which only the first process has one. A program that
    /// becomes another by `exec` hands its file on.
    File(&'static str),
}

impl Place {
    /// `off`, `memfd` or `file:PATH`.
    pub fn parse(text: &'static str) -> Option<Self> {
        match text {
            "off" => Some(Self::Off),
            "memfd" => Some(Self::Memfd),
            _ => text.strip_prefix("file:").map(Self::File),
        }
    }

    /// Each process has a file of its own.
    pub(super) fn is_of_each(self) -> bool {
        matches!(self, Self::File(path) if path.contains("%p"))
    }
}

/// The length of a segment as the system takes it.
const LENGTH: libc::off_t = format::BYTES.cast_signed() as libc::off_t;
/// Bytes of a path with its end.
const PATH_BYTES: usize = 512;

/// Whether files may be as long: else the system ends a process that makes one.
fn may_be_as_long() -> bool {
    // SAFETY: an all-zero rlimit is valid, and the call fills it.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        (libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0).then_some(limit.rlim_cur)
    };
    limit.is_none_or(|limit| limit >= format::BYTES as libc::rlim_t)
}

/// A new file of the segment's size, empty; `None` when the system or a rule refuses.
pub(super) fn open(place: Place) -> Option<i32> {
    if !may_be_as_long() {
        return None;
    }
    let fd = match place {
        Place::Off => return None,
        Place::Memfd => memfd()?,
        Place::File(path) => file(path)?,
    };
    // High numbers are out of the way of programs that count on low ones.
    // SAFETY: duplicates our own descriptor, and closes it.
    unsafe {
        let high = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 512);
        if high >= 0 {
            libc::close(fd);
            return Some(high);
        }
    }
    Some(fd)
}

fn memfd() -> Option<i32> {
    let name = c"slabcore-v1";
    debug_assert_eq!(name.to_bytes(), format::NAME.as_bytes());
    // SAFETY: a new descriptor with a name that ends; the calls after it take ours only.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if fd < 0 {
            return None;
        }
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        let made = libc::fchmod(fd, 0o600) == 0
            && libc::ftruncate(fd, LENGTH) == 0
            && libc::fcntl(fd, libc::F_ADD_SEALS, seals) == 0;
        if !made {
            libc::close(fd);
            return None;
        }
        Some(fd)
    }
}

fn file(path: &str) -> Option<i32> {
    let (_, name) = path.rsplit_once('/')?;
    if !path.starts_with('/') || !name.starts_with("slabcore") {
        return None;
    }
    let path = expand(path)?;
    // SAFETY: the path ends with a zero; the other calls take our own descriptor.
    unsafe {
        let flags =
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let fd = libc::open(path.as_ptr().cast(), flags, 0o600);
        if fd < 0 {
            return left_before_exec(&path);
        }
        // Its memory is there from now on: a full file system would end the process later.
        if !is_on_tmpfs(fd) || libc::fallocate(fd, 0, 0, LENGTH) != 0 {
            libc::unlink(path.as_ptr().cast());
            libc::close(fd);
            return None;
        }
        Some(fd)
    }
}

fn is_on_tmpfs(fd: i32) -> bool {
    // SAFETY: an all-zero record is valid, and the call fills it.
    unsafe {
        let mut of: libc::statfs = std::mem::zeroed();
        libc::fstatfs(fd, &raw mut of) == 0 && of.f_type == libc::TMPFS_MAGIC
    }
}

/// The file that the program before `exec` has left, emptied; `None` for any other.
fn left_before_exec(path: &[u8; PATH_BYTES]) -> Option<i32> {
    let flags =
        libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the path ends with a zero; an all-zero record is valid, and the call fills it;
    // the other calls take our own descriptor.
    unsafe {
        let mut of: libc::stat = std::mem::zeroed();
        // What is no plain file is not opened: that alone may have effects.
        if libc::lstat(path.as_ptr().cast(), &raw mut of) != 0 || !may_be_ours(&of) {
            return None;
        }
        let fd = libc::open(path.as_ptr().cast(), flags);
        if fd < 0 {
            return None;
        }
        // Emptied without a moment at which it is shorter, for whoever has it mapped.
        let empty = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let ours = libc::fstat(fd, &raw mut of) == 0
            && may_be_ours(&of)
            && is_on_tmpfs(fd)
            && is_of_this_process(fd)
            && libc::fallocate(fd, empty, 0, LENGTH) == 0
            && libc::fallocate(fd, 0, 0, LENGTH) == 0;
        if !ours {
            libc::close(fd);
            return None;
        }
        Some(fd)
    }
}

/// By its owner, mode, links and length.
fn may_be_ours(of: &libc::stat) -> bool {
    of.st_mode == libc::S_IFREG | 0o600
        && of.st_uid == sys::uid()
        && of.st_nlink == 1
        && of.st_size == LENGTH
}

/// By its own words: the same process id and user, and the same start, which `exec` keeps.
fn is_of_this_process(fd: i32) -> bool {
    use format::{IDENTITY, identity};
    let mut bytes = [0u8; IDENTITY.at + identity::BYTES];
    // SAFETY: our own descriptor, and a buffer of that length.
    let got = unsafe { libc::pread(fd, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(got) != Ok(bytes.len()) {
        return false;
    }
    let word = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let start = sys::start_ticks();
    let of = |place: usize| word(IDENTITY.at + place);
    start != 0
        && bytes.starts_with(&format::MAGIC)
        && of(identity::PID) == Some(sys::pid().into())
        && of(identity::START) == Some(start)
        && of(identity::UID) == Some(sys::uid().into())
}

/// The path with `%p` replaced and a zero behind it.
fn expand(path: &str) -> Option<[u8; PATH_BYTES]> {
    let mut out = [0; PATH_BYTES];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        let room = out.get_mut(at..at + bytes.len())?;
        room.copy_from_slice(bytes);
        at += bytes.len();
        (at < PATH_BYTES).then_some(())
    };
    let (before, after) = match path.split_once("%p") {
        Some((before, after)) => (before, Some(after)),
        None => (path, None),
    };
    put(before.as_bytes())?;
    if let Some(after) = after {
        let mut digits = [0; 10];
        put(decimal(sys::pid(), &mut digits))?;
        put(after.as_bytes())?;
    }
    Some(out)
}

fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut from = digits.len();
    for place in digits.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
        from -= 1;
        if number == 0 {
            break;
        }
    }
    digits.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_from_an_option() {
        assert_eq!(Place::parse("off"), Some(Place::Off));
        assert_eq!(Place::parse("memfd"), Some(Place::Memfd));
        let file = Place::parse("file:/dev/shm/slabcore-%p");
        assert_eq!(file, Some(Place::File("/dev/shm/slabcore-%p")));
        assert_eq!(Place::parse("yes"), None);
    }

    #[test]
    fn the_process_is_named_in_the_path() {
        let path = expand("/dev/shm/slabcore-%p.seg").unwrap();
        let end = path.iter().position(|byte| *byte == 0).unwrap();
        let expected = format!("/dev/shm/slabcore-{}.seg", std::process::id());
        assert_eq!(&path[..end], expected.as_bytes());
        assert!(expand(&"x".repeat(PATH_BYTES)).is_none());
        let mut digits = [0; 10];
        assert_eq!(decimal(0, &mut digits), b"0");
        assert_eq!(decimal(u32::MAX, &mut digits), b"4294967295");
    }

    #[test]
    fn a_disk_a_link_a_file_that_is_there_and_other_names_are_refused() {
        let there = format!("/dev/shm/slabcore-test-{}", std::process::id());
        let there: &'static str = Box::leak(there.into_boxed_str());
        let fd = file(there).unwrap();
        assert!(file(there).is_none(), "it is there");
        let link = format!("{there}-link");
        let link: &'static str = Box::leak(link.into_boxed_str());
        std::os::unix::fs::symlink("/dev/shm/slabcore-elsewhere", link).unwrap();
        assert!(file(link).is_none(), "a link");
        std::fs::remove_file(link).unwrap();
        std::fs::remove_file(there).unwrap();
        // SAFETY: our own descriptor.
        unsafe { libc::close(fd) };
        assert!(file("/dev/shm/other").is_none(), "no such name");
        assert!(file("slabcore").is_none(), "no whole path");
        // /proc stands for what is no tmpfs: nothing can be made there.
        assert!(file("/proc/slabcore").is_none());
        let disk = concat!(env!("CARGO_MANIFEST_DIR"), "/slabcore-test-segment");
        if file(disk).is_none() {
            assert!(
                !std::path::Path::new(disk).exists(),
                "nothing is left behind"
            );
        }
    }

    /// A file as a program of this process before `exec` would leave it.
    fn left(path: &str, change: impl FnOnce(&mut [u8])) {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut bytes = vec![7; format::BYTES];
        bytes[..8].copy_from_slice(&format::MAGIC);
        let mut put = |at: usize, value: u64| {
            let at = format::IDENTITY.at + at;
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        };
        put(format::identity::PID, sys::pid().into());
        put(format::identity::START, sys::start_ticks());
        put(format::identity::UID, sys::uid().into());
        change(&mut bytes);
        let _ = std::fs::remove_file(path);
        let mut options = std::fs::File::options();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        std::io::Write::write_all(&mut file.unwrap(), &bytes).unwrap();
    }

    #[test]
    fn the_file_left_before_exec_is_used_again_and_no_other() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let path = format!("/dev/shm/slabcore-exec-{}", std::process::id());
        left(&path, |_| ());
        let inode = std::fs::metadata(&path).unwrap().ino();
        let fd = file(&path).unwrap();
        // SAFETY: our own descriptor.
        unsafe { libc::close(fd) };
        let of = std::fs::metadata(&path).unwrap();
        assert_eq!((of.ino(), of.len()), (inode, format::BYTES as u64));
        assert!(of.blocks() * 512 >= of.len(), "its memory is there");
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 0), "nothing is left of it");
        for (at, what) in [
            (0, "magic"),
            (format::IDENTITY.at + format::identity::PID, "process"),
            (format::IDENTITY.at + format::identity::START, "start"),
            (format::IDENTITY.at + format::identity::UID, "user"),
        ] {
            left(&path, |bytes| bytes[at] ^= 1);
            let before = std::fs::read(&path).unwrap();
            assert!(file(&path).is_none(), "{what}");
            assert_eq!(std::fs::read(&path).unwrap(), before, "{what}");
        }
        left(&path, |_| ());
        let readable = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, readable).unwrap();
        assert!(file(&path).is_none(), "a mode that is not ours");
        left(&path, |_| ());
        let other = format!("{path}-link");
        std::fs::hard_link(&path, &other).unwrap();
        assert!(file(&path).is_none(), "another name");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(file(&path).is_none(), "a link");
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&other).unwrap();
    }
}
