//! Writes to a cache's attributes in /sys/kernel/slab: shrink, validate, limits.
//!
//! Source of truth: mm/slub.c of Linux 6.1 to 7.3. The only part of this crate
//! that changes anything; callers ask the user first. Nothing is created: a
//! file that is not there is not written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::Error;

mod validate;

pub use validate::{Look, look};

/// An attribute that holds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// Free objects that a CPU may keep on its list of partial slabs.
    CpuPartial,
    /// Empty slabs that a node keeps.
    MinPartial,
    /// How readily an allocation takes a slab of another node, in percent.
    RemoteNodeDefragRatio,
}

impl Knob {
    /// Every limit that can be set.
    pub const ALL: [Self; 3] = [
        Self::CpuPartial,
        Self::MinPartial,
        Self::RemoteNodeDefragRatio,
    ];

    /// The attribute's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuPartial => "cpu_partial",
            Self::MinPartial => "min_partial",
            Self::RemoteNodeDefragRatio => "remote_node_defrag_ratio",
        }
    }

    /// The limit of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|knob| knob.name() == name)
    }

    /// What a write does besides, in a word for the person who is asked.
    pub const fn effect(self) -> &'static str {
        match self {
            Self::CpuPartial => "flushes the cache's slabs from every CPU",
            Self::MinPartial => "is followed when slabs become empty",
            Self::RemoteNodeDefragRatio => "is followed when a node has no partial slab",
        }
    }
}

/// The caches below one /sys/kernel/slab.
#[derive(Debug, Clone)]
pub struct Control {
    base: PathBuf,
}

/// One cache's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheDir {
    /// The directory's own name, behind any alias.
    pub id: String,
    path: PathBuf,
}

/// What the kernel said to a request to validate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validated {
    /// It has looked; what it found is in its log.
    Done,
    /// It does not validate this cache: no debug option is on (Linux 6.1 and later).
    NotDebugged,
}

impl Control {
    /// The caches of the machine whose files are below `root`.
    pub fn of(root: &Path) -> Self {
        Self {
            base: root.join("sys/kernel/slab"),
        }
    }

    /// The directory of a cache, by name, alias or id; `None` when there is none.
    pub fn find(&self, name: &str) -> Result<Option<CacheDir>, Error> {
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Ok(None);
        }
        let base = self.base.canonicalize();
        let base = base.map_err(|e| Error::from_io(&self.base, e))?;
        let path = match base.join(name).canonicalize() {
            Ok(path) => path,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::from_io(base.join(name), e)),
        };
        // An alias is a link beside its target; anything else is not a cache.
        let id = path.file_name().and_then(|id| id.to_str());
        let inside = path.parent() == Some(&*base) && path.is_dir();
        let id = id.filter(|_| inside).map(str::to_owned);
        Ok(id.map(|id| CacheDir { id, path }))
    }
}

impl CacheDir {
    /// A limit's value; `None` when this kernel has no such attribute.
    pub fn get(&self, knob: Knob) -> Result<Option<u64>, Error> {
        let path = self.path.join(knob.name());
        match fs::read_to_string(&path) {
            Ok(text) => match text.trim().parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(Error::Broken {
                    path,
                    why: format!("{:?} is no number", text.trim()),
                }),
            },
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::from_io(path, e)),
        }
    }

    /// Sets a limit. Linux 7.0 and later take no `cpu_partial` but 0.
    pub fn set(&self, knob: Knob, value: u64) -> Result<(), Error> {
        self.write(knob.name(), &value.to_string())
            .map_err(|e| self.failed(knob.name(), e))
    }

    /// Flushes every CPU, gives empty slabs back and sorts the partial lists.
    pub fn shrink(&self) -> Result<(), Error> {
        self.write("shrink", "1")
            .map_err(|e| self.failed("shrink", e))
    }

    /// Whether this kernel has the attribute that [`Self::validate`] writes to;
    /// one without CONFIG_SLUB_DEBUG does not.
    pub fn has_validate(&self) -> bool {
        self.path.join("validate").exists()
    }

    /// Has the kernel check every object it can reach; findings go to its log,
    /// which [`look`] reads.
    pub fn validate(&self) -> Result<Validated, Error> {
        match self.write("validate", "1") {
            Ok(()) => Ok(Validated::Done),
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                Ok(Validated::NotDebugged)
            }
            Err(e) => Err(self.failed("validate", e)),
        }
    }

    /// The kernel takes a value in one write.
    fn write(&self, attribute: &str, value: &str) -> io::Result<()> {
        let path = self.path.join(attribute);
        let mut file = OpenOptions::new().write(true).open(path)?;
        let written = file.write(value.as_bytes())?;
        if written < value.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    }

    fn failed(&self, attribute: &str, source: io::Error) -> Error {
        let path = self.path.join(attribute);
        match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Permission { path },
            io::ErrorKind::NotFound => Error::Unavailable {
                what: path.display().to_string(),
                why: "this kernel does not have the attribute".to_owned(),
            },
            _ => Error::Write { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A cache with an alias, and things that are no caches.
    fn tree() -> TempDir {
        let dir = TempDir::new().unwrap();
        let base = dir.path().join("sys/kernel/slab");
        let cache = base.join(":0000192");
        fs::create_dir_all(&cache).unwrap();
        fs::create_dir_all(dir.path().join("sys/kernel/other")).unwrap();
        symlink(":0000192", base.join("dentry")).unwrap();
        symlink("../other", base.join("outside")).unwrap();
        fs::write(base.join("file"), "").unwrap();
        fs::write(cache.join("min_partial"), "5\n").unwrap();
        fs::write(cache.join("cpu_partial"), "many\n").unwrap();
        fs::write(cache.join("shrink"), "").unwrap();
        dir
    }

    #[test]
    fn a_cache_is_found_by_name_and_id_and_nothing_else_is() {
        let dir = tree();
        let control = Control::of(dir.path());
        let id = |name| control.find(name).unwrap().map(|c| c.id);
        assert_eq!(id("dentry").as_deref(), Some(":0000192"));
        assert_eq!(id(":0000192").as_deref(), Some(":0000192"));
        for name in ["", ".", "..", "../other", "outside", "file", "none", "a\0b"] {
            assert_eq!(id(name), None, "{name:?}");
        }
    }

    #[test]
    fn limits_are_read_and_written_and_nothing_is_created() {
        let dir = tree();
        let cache = Control::of(dir.path()).find("dentry").unwrap().unwrap();
        assert_eq!(cache.get(Knob::MinPartial).unwrap(), Some(5));
        cache.set(Knob::MinPartial, 7).unwrap();
        assert_eq!(cache.get(Knob::MinPartial).unwrap(), Some(7));
        let broken = cache.get(Knob::CpuPartial).unwrap_err().to_string();
        assert!(broken.contains("\"many\" is no number"), "{broken}");
        assert_eq!(cache.get(Knob::RemoteNodeDefragRatio).unwrap(), None);
        let absent = cache.set(Knob::RemoteNodeDefragRatio, 1).unwrap_err();
        assert!(matches!(absent, Error::Unavailable { .. }), "{absent}");
        assert!(matches!(
            cache.validate().unwrap_err(),
            Error::Unavailable { .. }
        ));
        cache.shrink().unwrap();
        assert_eq!(fs::read(cache.path.join("shrink")).unwrap(), b"1");
    }
}
