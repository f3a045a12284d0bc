//! A tree of files: the running kernel's, a saved copy's, or an archive's in memory.
//!
//! Every reader of /proc and /sys goes through [`Tree`], so that live, capture
//! and fixture are one code path. Paths are relative, separated by `/`, and
//! never contain `..`.

mod dir;
mod mem;

use std::io::{self, Read as _};
use std::path::Path;

pub use dir::DirTree;
pub use mem::{MemTree, Node};

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
    /// It is read again soon, and opening it then would move the figures.
    ForTheNextSample,
}

/// Largest file that is read whole from a tree or an archive.
pub const MAX_FILE: u64 = 64 << 20;

/// Most entries that are read from one directory.
pub const MAX_ENTRIES: usize = 1 << 20;

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
    fn a_cut_is_never_silent() {
        let mut out = Vec::new();
        assert!(read_capped(&b"12345"[..], 5, &mut out).is_ok());
        out.clear();
        assert!(read_capped(&b"123456"[..], 5, &mut out).is_err());
    }
}
