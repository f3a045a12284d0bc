//! A directory on disk: the running system's own, or a saved copy that must
//! not be left.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};

use super::{Entry, EntryKind, Keep, MAX_ENTRIES, MAX_FILE, Tree, read_capped};

/// Room for the first read of a file.
const FIRST_READ: usize = 16 << 10;

/// A directory on disk, or the running system's own root.
#[derive(Debug)]
pub struct DirTree {
    root: PathBuf,
    dir: OwnedFd,
    /// A saved tree may come from anybody: links must not leave it.
    confined: bool,
    /// Files held open for the next sample.
    kept: RefCell<HashMap<String, OwnedFd>>,
    /// How many are held at the most.
    max_kept: usize,
}

/// File descriptors left to the rest of the program.
const SPARE_FILES: u64 = 128;

/// A sysfs attribute is one page at the most (fs/sysfs/file.c); the largest
/// pages of machines with SLUB are of 64 KiB.
const ATTRIBUTE_SIZE: usize = 65536;

fn max_kept() -> usize {
    use rustix::process::{Resource, getrlimit};
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(allowed.saturating_sub(SPARE_FILES)).unwrap_or(usize::MAX)
}

impl DirTree {
    /// The running system, or another root given by the user (`--root`).
    pub fn trusted(root: impl Into<PathBuf>) -> io::Result<Self> {
        Self::open(root.into(), false)
    }

    /// A saved copy from elsewhere: links are resolved inside it and only
    /// regular files are read.
    pub fn confined(root: impl Into<PathBuf>) -> io::Result<Self> {
        Self::open(root.into(), true)
    }

    fn open(root: PathBuf, confined: bool) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&root, flags, Mode::empty())?;
        Ok(Self::new(root, dir, confined))
    }

    fn new(root: PathBuf, dir: OwnedFd, confined: bool) -> Self {
        Self {
            root,
            dir,
            confined,
            kept: RefCell::new(HashMap::new()),
            max_kept: max_kept(),
        }
    }

    /// Reads a kept file again; `false` when there is none or it went stale.
    fn read_kept(&self, path: &str, buf: &mut Vec<u8>) -> bool {
        let mut kept = self.kept.borrow_mut();
        let Some(fd) = kept.get(path) else {
            return false;
        };
        if rustix::io::pread(fd, spare_capacity(buf), 0).is_ok() {
            return true;
        }
        // The cache went away; one of the same name may have come since.
        kept.remove(path);
        false
    }

    /// Opens a file for reading, without its bytes being read yet.
    pub fn open_file(&self, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        if !self.confined {
            return Ok(rustix::fs::openat(&self.dir, path, flags, Mode::empty())?);
        }
        // O_NONBLOCK: a pipe planted in a capture must not hang the reader.
        let fd = self.open_confined(path, flags | OFlags::NONBLOCK)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
        if kind == FileType::RegularFile {
            Ok(fd)
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ))
        }
    }

    fn open_confined(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.dir, path, flags, Mode::empty(), resolve) {
            // Before Linux 5.6: refuse links altogether, component by component.
            Err(rustix::io::Errno::NOSYS) => self.open_without_links(path, flags),
            other => Ok(other?),
        }
    }

    fn open_without_links(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let mut dir = rustix::io::dup(&self.dir)?;
        let mut parts = path.split('/').filter(|p| !p.is_empty()).peekable();
        while let Some(part) = parts.next() {
            if part == ".." {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let last = parts.peek().is_none();
            let step = if last {
                flags
            } else {
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
            };
            dir = rustix::fs::openat(&dir, part, step | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(dir)
    }
}

impl Tree for DirTree {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let fd = self.open_file(path)?;
        // Files of /proc have no size to go by; most fit in one read.
        let mut bytes = Vec::with_capacity(FIRST_READ);
        read_capped(File::from(fd), MAX_FILE, &mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, path: &str) -> io::Result<Vec<Entry>> {
        let mut out: Vec<Entry> = self
            .entries(path)?
            .into_iter()
            .map(|(name, kind)| Entry {
                kind: self.kind_of(path, &name, kind),
                name,
            })
            .collect();
        out.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(out)
    }

    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        Ok(self.entries(path)?.into_iter().map(|(n, _)| n).collect())
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn descend(&self, path: &str) -> io::Result<Box<dyn Tree>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = if self.confined {
            self.open_confined(path, flags)?
        } else {
            rustix::fs::openat(&self.dir, path, flags, Mode::empty())?
        };
        Ok(Box::new(Self::new(
            self.root.join(path),
            dir,
            self.confined,
        )))
    }

    fn read_attribute(&self, path: &str, keep: Keep, buf: &mut Vec<u8>) -> io::Result<()> {
        if self.confined {
            *buf = self.read(path)?;
            return Ok(());
        }
        buf.clear();
        buf.reserve(ATTRIBUTE_SIZE);
        if keep == Keep::ForTheNextSample && self.read_kept(path, buf) {
            return Ok(());
        }
        let fd = self.open_file(path)?;
        rustix::io::pread(&fd, spare_capacity(buf), 0)?;
        let mut kept = self.kept.borrow_mut();
        if keep == Keep::ForTheNextSample && kept.len() < self.max_kept {
            kept.insert(path.to_owned(), fd);
        }
        Ok(())
    }
}

impl DirTree {
    fn entries(&self, path: &str) -> io::Result<Vec<(String, FileType)>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = if path.is_empty() { "." } else { path };
        let fd = if self.confined {
            self.open_confined(dir, flags)?
        } else {
            rustix::fs::openat(&self.dir, dir, flags, Mode::empty())?
        };
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::new(fd)?.take(MAX_ENTRIES) {
            let entry = entry?;
            let raw = entry.file_name();
            if !matches!(raw.to_bytes(), b"." | b"..") {
                entries.push((raw.to_string_lossy().into_owned(), entry.file_type()));
            }
        }
        Ok(entries)
    }

    fn kind_of(&self, dir: &str, name: &str, kind: FileType) -> EntryKind {
        match kind {
            FileType::Directory => return EntryKind::Directory,
            FileType::RegularFile => return EntryKind::File,
            _ => {}
        }
        let path = &if dir.is_empty() {
            name.to_owned()
        } else {
            format!("{dir}/{name}")
        };
        let kind = if kind == FileType::Unknown {
            // Some file systems do not tell; slabinfo dies on those.
            rustix::fs::statat(&self.dir, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |st| FileType::from_raw_mode(st.st_mode))
        } else {
            kind
        };
        match kind {
            FileType::Directory => EntryKind::Directory,
            FileType::RegularFile => EntryKind::File,
            FileType::Symlink => rustix::fs::readlinkat(&self.dir, path, Vec::new())
                .map_or(EntryKind::Other, |t| {
                    EntryKind::Link(t.to_string_lossy().into_owned())
                }),
            _ => EntryKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_tree_cannot_point_outside() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("proc/slabinfo")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("proc/meminfo"),
            FileType::Fifo,
            Mode::RWXU,
            0,
        )
        .unwrap();
        let tree = DirTree::confined(dir.path()).unwrap();
        assert!(tree.read("proc/slabinfo").is_err());
        // A pipe is refused at once instead of waiting for a writer.
        assert!(tree.read("proc/meminfo").is_err());
        assert!(
            tree.open_without_links("proc/slabinfo", OFlags::RDONLY)
                .is_err()
        );
    }
}
