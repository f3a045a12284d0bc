//! Files that another process has mapped, opened without trusting where it says that they are.
//!
//! Who may do everything opens precisely the mapped file (`/proc/PID/map_files`). Others go by
//! its path below the process's own root: links of that root do not lead into ours, and only
//! what the system knows already is looked up, so that no filesystem is asked. Only plain files
//! are opened, and none of a filesystem that a program or another machine serves, which could
//! let a reader wait for ever, unless this program lies there, too.
//!
//! What it does not do: wait for a time; who reads a file does that aside.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstatfs, open, openat2, statat};
use rustix::io::Errno;

use super::symbols::Mapping;

/// Numbers of filesystems that others serve (statfs(2)): FUSE, NFS, 9p, SMB, CIFS, SMB2, Ceph,
/// AFS, Coda.
const SERVED: [u64; 9] = [
    0x6573_5546,
    0x6969,
    0x0102_1997,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x00c3_6400,
    0x5346_414f,
    0x7375_7245,
];
/// The same by name, as in `/proc/PID/mountinfo`.
const SERVED_NAMES: [&str; 10] = [
    "fuse", "fuseblk", "nfs", "nfs4", "9p", "cifs", "smb3", "ceph", "afs", "coda",
];
/// Bytes of a list of mounts that are looked at.
const MOST: u64 = 4 << 20;
/// Looks at a name that is known before it counts as unknown.
const TRIES: u32 = 24;
/// Between two of them: longer than another name takes to change.
const BETWEEN: Duration = Duration::from_micros(50);

/// Whose files they are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Files {
    /// A process's.
    Of(u32),
    /// This machine's, of a process that is gone.
    Here,
}

impl Files {
    /// Opens the file of a mapping.
    pub fn open(self, of: &Mapping) -> io::Result<File> {
        let place = match self {
            Self::Of(pid) => mapped(pid, of).or_else(|_| below_root(pid, of))?,
            Self::Here if of.deleted => return Err(ErrorKind::NotFound.into()),
            Self::Here => open(&of.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?,
        };
        if self.is_served(&place)? {
            return Err(ErrorKind::Unsupported.into());
        }
        reopen(&place)
    }

    /// Whether its filesystem is one that may let a reader wait, and not ours.
    fn is_served(self, place: &OwnedFd) -> io::Result<bool> {
        let mounts = match self {
            Self::Of(pid) => format!("/proc/{pid}/mountinfo"),
            Self::Here => "/proc/self/mountinfo".to_owned(),
        };
        // By the list of mounts first: asking the filesystem itself might wait already.
        let mount = mount_of(place)?;
        if let Some((device, kind)) = mount_in(&mounts, mount)
            && SERVED_NAMES.iter().any(|name| is_kind(&kind, name))
        {
            return Ok(device != own_device());
        }
        let kind = fstatfs(place)?.f_type;
        #[allow(
            clippy::unnecessary_cast,
            clippy::cast_sign_loss,
            reason = "the type is another on other machines, and its bits are what counts"
        )]
        let kind = kind as u64 & 0xffff_ffff;
        Ok(SERVED.contains(&kind) && device(place) != own_device())
    }
}

/// `fuse` is also `fuse.sshfs`.
fn is_kind(kind: &str, name: &str) -> bool {
    { kind.strip_prefix(name) }.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What exactly is mapped there.
fn mapped(pid: u32, of: &Mapping) -> io::Result<OwnedFd> {
    let path = format!("/proc/{pid}/map_files/{:x}-{:x}", of.start, of.end);
    Ok(open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// What is at the path, for the process. A file that was deleted has none.
fn below_root(pid: u32, of: &Mapping) -> io::Result<OwnedFd> {
    if of.deleted {
        return Err(ErrorKind::NotFound.into());
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = open(
        format!("/proc/{pid}/root"),
        flags | OFlags::DIRECTORY,
        Mode::empty(),
    )?;
    in_root(&root, &of.path)
}

fn in_root(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let known = inside | ResolveFlags::CACHED;
    // What is known is refused, too, when some other name or mount changes at the moment.
    let mut looks = (0..TRIES).map(|n| {
        std::thread::sleep(BETWEEN * n.min(1));
        openat2(root, path, flags, Mode::empty(), known)
    });
    match looks.find(|seen| !matches!(seen, Err(Errno::AGAIN))) {
        // Systems before 5.12 do not know the last flag.
        Some(Err(Errno::INVAL)) => Ok(openat2(root, path, flags, Mode::empty(), inside)?),
        seen => Ok(seen.unwrap_or(Err(Errno::AGAIN))?),
    }
}

/// Number of the mount that a place is on, by the system's own word.
fn mount_of(place: &OwnedFd) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", place.as_raw_fd()))?;
    let mut lines = text.lines();
    let number = lines.find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    number.ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Device and kind of a mount of a list.
fn mount_in(list: &str, mount: u64) -> Option<((u32, u32), String)> {
    use std::io::Read as _;
    let mut text = Vec::new();
    File::open(list)
        .ok()?
        .take(MOST)
        .read_to_end(&mut text)
        .ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().find_map(|line| {
        let mut fields = line.split(' ');
        if fields.next()?.parse::<u64>().ok()? != mount {
            return None;
        }
        let (major, minor) = fields.nth(1)?.split_once(':')?;
        let (_, after) = line.split_once(" - ")?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        Some((device, after.split(' ').next()?.to_owned()))
    })
}

/// The device of this program.
fn own_device() -> (u32, u32) {
    let flags = rustix::fs::AtFlags::empty();
    statat(CWD, "/proc/self/exe", flags).map_or((0, 0), |of| split(of.st_dev))
}

fn device(place: &OwnedFd) -> (u32, u32) {
    rustix::fs::fstat(place).map_or((u32::MAX, 0), |of| split(of.st_dev))
}

fn split(device: rustix::fs::Dev) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// Opens what is at a place to be read, if it is a plain file.
fn reopen(place: &OwnedFd) -> io::Result<File> {
    let place = File::from(place.as_fd().try_clone_to_owned()?);
    if !place.metadata()?.is_file() || place.metadata()?.size() == 0 {
        return Err(ErrorKind::InvalidInput.into());
    }
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(open(path, flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_below_a_root_do_not_lead_out_of_it() {
        let root = tempfile::tempdir().unwrap();
        let secret = tempfile::NamedTempFile::new().unwrap();
        symlink(secret.path(), root.path().join("absolute")).unwrap();
        symlink("../../../../../../etc/passwd", root.path().join("relative")).unwrap();
        symlink("/proc/self/exe", root.path().join("magic")).unwrap();
        std::fs::write(root.path().join("own"), "text").unwrap();
        symlink("/own", root.path().join("link")).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let dir = open(root.path(), flags, Mode::empty()).unwrap();
        for (name, there) in [
            ("absolute", false),
            ("relative", false),
            ("magic", false),
            ("/own", true),
            ("/link", true),
            ("/../../own", true),
        ] {
            // What was never looked up is looked up by the first, and known to the second.
            let path = root.path().join(name.trim_start_matches(['/', '.']));
            let _ = std::fs::metadata(path);
            assert_eq!(in_root(&dir, Path::new(name)).is_ok(), there, "{name}");
        }
    }

    #[test]
    fn only_plain_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [
            &*path,
            Path::new("/dev/zero"),
            Path::new("/proc/self/cmdline"),
        ] {
            let mapping = Mapping {
                path: path.to_owned(),
                ..Mapping::default()
            };
            assert!(Files::Here.open(&mapping).is_err(), "{}", path.display());
        }
        let own = std::env::current_exe().unwrap();
        let mapping = Mapping {
            path: own,
            ..Mapping::default()
        };
        assert!(Files::Here.open(&mapping).is_ok());
    }

    #[test]
    fn a_mount_is_found_by_its_number() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "31 1 0:27 / / rw shared:1 - overlay overlay rw\n\
                    77 31 0:52 / /mnt\\040a rw - fuse.sshfs a@b:/ rw\nnonsense\n";
        std::fs::write(file.path(), text).unwrap();
        let list = file.path().to_str().unwrap();
        assert_eq!(mount_in(list, 77), Some(((0, 52), "fuse.sshfs".to_owned())));
        assert_eq!(mount_in(list, 31).map(|of| of.0), Some((0, 27)));
        assert_eq!(mount_in(list, 5), None);
        assert!(is_kind("fuse.sshfs", "fuse") && !is_kind("fusectl", "fuse"));
    }
}
