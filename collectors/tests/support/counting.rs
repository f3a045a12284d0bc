//! A tree that counts what is opened and fails where it is told to.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use collectors::source::tree::{Entry, Keep, Tree};
use rustix::io::Errno;

/// What was opened, in order, as paths from the root.
pub type Log = Rc<RefCell<Vec<String>>>;
/// What fails: a path, or everything below it, and how.
pub type Faults = Rc<RefCell<BTreeMap<String, Errno>>>;

/// Wraps a tree.
pub struct Counting {
    inner: Box<dyn Tree>,
    at: String,
    root: PathBuf,
    log: Log,
    faults: Faults,
}

impl Counting {
    pub fn new(inner: Box<dyn Tree>) -> (Self, Log, Faults) {
        let (log, faults) = (Log::default(), Faults::default());
        let root = inner.root().to_owned();
        let tree = Self {
            inner,
            at: String::new(),
            root,
            log: Rc::clone(&log),
            faults: Rc::clone(&faults),
        };
        (tree, log, faults)
    }

    fn full(&self, path: &str) -> String {
        match (self.at.as_str(), path) {
            (at, "" | ".") => at.to_owned(),
            ("", path) => path.to_owned(),
            (at, path) => format!("{at}/{path}"),
        }
    }

    fn enter(&self, path: &str) -> io::Result<()> {
        let full = self.full(path);
        let faults = self.faults.borrow();
        let fault = faults.iter().find(|(at, _)| {
            full == **at
                || full
                    .strip_prefix(at.as_str())
                    .is_some_and(|rest| rest.starts_with('/'))
        });
        let result = fault.map_or(Ok(()), |(_, errno)| Err((*errno).into()));
        self.log.borrow_mut().push(full);
        result
    }
}

impl Tree for Counting {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.enter(path)?;
        self.inner.read(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<Entry>> {
        self.inner.list(path)
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn descend(&self, path: &str) -> io::Result<Box<dyn Tree>> {
        Ok(Box::new(Self {
            inner: self.inner.descend(path)?,
            at: self.full(path),
            root: self.root.clone(),
            log: Rc::clone(&self.log),
            faults: Rc::clone(&self.faults),
        }))
    }

    fn read_attribute(&self, path: &str, keep: Keep, buf: &mut Vec<u8>) -> io::Result<()> {
        self.enter(path)?;
        self.inner.read_attribute(path, keep, buf)
    }
}

/// How often attributes of that name were opened.
pub fn opened(log: &Log, attribute: &str) -> usize {
    let end = format!("/{attribute}");
    log.borrow().iter().filter(|p| p.ends_with(&end)).count()
}

/// How often attributes of any name were opened.
pub fn attributes(log: &Log) -> usize {
    let log = log.borrow();
    log.iter()
        .filter(|p| p.starts_with("sys/kernel/slab/"))
        .count()
}
