//! Where a segment lies: in a memfd, in a file on tmpfs, or nowhere.
//!
//! A memfd goes with the process and cannot be shrunk under a reader (sealed). A file
//! outlives it. A file on a disk is refused: a store to it could wait for the disk.

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
    /// becomes the process's id, without which only the first process has one.
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
            return None;
        }
        let mut of: libc::statfs = std::mem::zeroed();
        let tmpfs = libc::fstatfs(fd, &raw mut of) == 0 && of.f_type == libc::TMPFS_MAGIC;
        // Its memory is there from now on: a full file system would end the process later.
        if !tmpfs || libc::fallocate(fd, 0, 0, LENGTH) != 0 {
            libc::unlink(path.as_ptr().cast());
            libc::close(fd);
            return None;
        }
        Some(fd)
    }
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
}
