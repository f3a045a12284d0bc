//! Files in memory: an archive's members, or the parts of one text.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Entry, EntryKind, Tree, clean_path};

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
