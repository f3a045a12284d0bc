//! A tree of files: the running kernel's, a saved copy's, or an archive's in memory.
//!
//! Every reader of /proc and /sys goes through [`Tree`], so that live, capture
//! and fixture are one code path. Paths are relative, separated by `/`, and
//! never contain `..`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};

/// What a directory entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link and where it points.
    Link(String),
    /// Anything else: a device, a pipe, a socket.
    Other,
}

/// One directory entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// A tree of files that can be read.
pub trait Tree {
    /// The file's bytes, at most [`MAX_FILE`] of them.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The entries of a directory, sorted by name.
    fn list(&self, path: &str) -> io::Result<Vec<Entry>>;

    /// The names in a directory, unsorted; cheaper than [`Tree::list`] where
    /// there are many links.
    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        Ok(self.list(path)?.into_iter().map(|e| e.name).collect())
    }

    /// Where the tree is, for messages.
    fn root(&self) -> &Path;

    /// The same tree seen from a directory in it.
    fn descend(&self, path: &str) -> io::Result<Box<dyn Tree>>;

    /// Reads a small attribute file into `buf`. A live tree may hold the file
    /// open afterwards, as `keep` says.
    fn read_attribute(&self, path: &str, keep: Keep, buf: &mut Vec<u8>) -> io::Result<()> {
        let _ = keep;
        *buf = self.read(path)?;
        Ok(())
    }

    /// The file's text; bytes that are not UTF-8 are replaced.
    fn read_text(&self, path: &str) -> io::Result<String> {
        Ok(match String::from_utf8(self.read(path)?) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }
}

/// What becomes of an attribute file after it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It is closed.
    No,
    /// It is read again: a `pread` then costs a third of open, read and close.
    ForTheNextSample,
    /// The program ends soon: the kernel closes all files at once then.
    UntilExit,
}

/// Largest file that is read whole from a tree or an archive.
pub const MAX_FILE: u64 = 64 << 20;

/// Room for the first read of a file.
const FIRST_READ: usize = 16 << 10;

/// Most entries that are read from one directory.
pub const MAX_ENTRIES: usize = 1 << 20;

/// A directory on disk, or the running system's own root.
#[derive(Debug)]
pub struct DirTree {
    root: PathBuf,
    dir: OwnedFd,
    /// A saved tree may come from anybody: links must not leave it.
    confined: bool,
    /// Files held open for the next sample.
    kept: RefCell<HashMap<String, OwnedFd>>,
    /// Files left open until the end.
    left: RefCell<Vec<OwnedFd>>,
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
            left: RefCell::new(Vec::new()),
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
        let (mut kept, mut left) = (self.kept.borrow_mut(), self.left.borrow_mut());
        if kept.len() + left.len() < self.max_kept {
            match keep {
                Keep::No => {}
                Keep::ForTheNextSample => {
                    kept.insert(path.to_owned(), fd);
                }
                Keep::UntilExit => left.push(fd),
            }
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

/// Reads at most `limit` bytes; more is an error, so that a cut is never silent.
pub fn read_capped(reader: impl io::Read, limit: u64, into: &mut Vec<u8>) -> io::Result<()> {
    let read = reader.take(limit + 1).read_to_end(into)?;
    if read as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {} MiB", limit >> 20),
        ));
    }
    Ok(())
}

/// What stands at a path of a [`MemTree`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A file's bytes.
    File(Vec<u8>),
    /// Where a symbolic link points.
    Link(String),
}

/// Files in memory, from an archive or from a text with several files in it.
#[derive(Debug, Clone, Default)]
pub struct MemTree {
    root: PathBuf,
    /// Shared by every view of the tree: an archive may hold a gigabyte.
    nodes: Arc<BTreeMap<String, Node>>,
    /// The directory this view starts in: empty, or with a `/` at its end.
    start: String,
}

impl MemTree {
    /// An empty tree; `root` names the archive in messages.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            nodes: Arc::default(),
            start: String::new(),
        }
    }

    fn insert(&mut self, path: &str, node: Node) {
        if let Some(path) = clean_path(path) {
            let path = format!("{}{path}", self.start);
            Arc::make_mut(&mut self.nodes).insert(path, node);
        }
    }

    /// Adds a file under a clean relative path; a later one replaces it.
    pub fn insert_file(&mut self, path: &str, bytes: Vec<u8>) {
        self.insert(path, Node::File(bytes));
    }

    /// Adds a symbolic link. It is listed; it is never followed out of the tree.
    pub fn insert_link(&mut self, path: &str, target: &str) {
        self.insert(path, Node::Link(target.to_owned()));
    }

    /// Paths below `prefix`, without it, with what is there, sorted.
    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Node)> {
        self.nodes
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map_while(move |(path, node)| Some((path.strip_prefix(prefix)?, node)))
    }

    /// Every path with a file or link, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.below(&self.start).map(|(path, _)| path)
    }

    /// Every file and link with its path, sorted by path.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// The same tree seen from a directory in it.
    #[must_use]
    pub fn subtree(&self, prefix: &str) -> Self {
        let start = match prefix {
            "" => self.start.clone(),
            prefix => format!("{}{prefix}/", self.start),
        };
        Self {
            root: self.root.join(prefix),
            nodes: Arc::clone(&self.nodes),
            start,
        }
    }
}

/// A relative path without `.`, empty parts, `..` or a leading `/`; `None` when
/// it would leave the tree.
pub fn clean_path(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        None
    } else {
        Some(parts.join("/"))
    }
}

impl Tree for MemTree {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let path = clean_path(path).ok_or(io::ErrorKind::InvalidInput)?;
        match self.nodes.get(&format!("{}{path}", self.start)) {
            Some(Node::File(bytes)) => Ok(bytes.clone()),
            Some(Node::Link(_)) => Err(io::ErrorKind::InvalidInput.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<Entry>> {
        let prefix = match clean_path(path) {
            Some(path) => format!("{}{path}/", self.start),
            None if path.split('/').any(|p| p == "..") => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            None => self.start.clone(),
        };
        let mut out: Vec<Entry> = Vec::new();
        for (rest, node) in self.below(&prefix) {
            let (name, kind) = match (rest.split_once('/'), node) {
                (Some((dir, _)), _) => (dir, EntryKind::Directory),
                (None, Node::File(_)) => (rest, EntryKind::File),
                (None, Node::Link(target)) => (rest, EntryKind::Link(target.clone())),
            };
            if out.last().is_none_or(|last| last.name != name) {
                out.push(Entry {
                    name: name.to_owned(),
                    kind,
                });
            }
        }
        if out.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        out.sort_by(|a, b| a.name.cmp(&b.name));
        out.dedup_by(|a, b| a.name == b.name);
        Ok(out)
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn descend(&self, path: &str) -> io::Result<Box<dyn Tree>> {
        if path == "." {
            return Ok(Box::new(self.clone()));
        }
        let path = clean_path(path).ok_or(io::ErrorKind::InvalidInput)?;
        let tree = self.subtree(&path);
        if tree.paths().next().is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Box::new(tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> MemTree {
        let mut tree = MemTree::new("x.tar");
        tree.insert_file("./proc/slabinfo", b"hi".to_vec());
        tree.insert_file("sys/kernel/slab/dentry/slabs", b"3\n".to_vec());
        tree.insert_link("sys/kernel/slab/cred", ":A-0000192");
        tree
    }

    #[test]
    fn an_archive_lists_like_a_directory() {
        let tree = tree();
        let top = tree.list("").unwrap();
        assert_eq!(
            top.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(),
            ["proc", "sys"]
        );
        let slab = tree.list("sys/kernel/slab").unwrap();
        assert_eq!(slab[0].kind, EntryKind::Link(":A-0000192".into()));
        assert_eq!(slab[1].kind, EntryKind::Directory);
        assert!(tree.list("nowhere").is_err());
        assert_eq!(tree.subtree("proc").read("slabinfo").unwrap(), b"hi");
    }

    #[test]
    fn nothing_leaves_the_tree() {
        let mut tree = tree();
        tree.insert_file("../../etc/passwd", b"no".to_vec());
        tree.insert_file("a/../../b", b"no".to_vec());
        assert_eq!(tree.paths().count(), 3);
        assert!(tree.read("proc/../proc/slabinfo").is_err());
        assert!(tree.list("..").is_err());
    }

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

    #[test]
    fn a_cut_is_never_silent() {
        let mut out = Vec::new();
        assert!(read_capped(&b"12345"[..], 5, &mut out).is_ok());
        out.clear();
        assert!(read_capped(&b"123456"[..], 5, &mut out).is_err());
    }
}
