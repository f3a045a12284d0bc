//! Collects the files of a kernel into memory.
//!
//! Files: /sys/kernel/slab (mm/slub.c), /proc/slabinfo, the machine's own, and
//! on request the call sites in debugfs. The order is stated in the MANIFEST:
//! what does not change first, the counts in one go, memory totals right after.

use std::collections::BTreeMap;
use std::io;

use jiff::Timestamp;

use super::race::{self, CacheDir, SLABINFO};
use super::{Absent, Collected, Options, manifest};
use crate::error::Error;
use crate::source::machine;
use crate::source::tree::{Entry, EntryKind, Keep, MemTree, Tree};

/// The caches' directory: since 2.6.25, and before.
const BASES: [&str; 2] = ["sys/kernel/slab", "sys/slab"];

const DEBUGFS: &str = "sys/kernel/debug/slab";

/// Files of the machine that do not change, or do not matter to the byte.
const MACHINE: [&str; 8] = [
    "proc/version",
    "proc/cmdline",
    "proc/uptime",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/hostname",
    "sys/devices/system/cpu/online",
    "sys/devices/system/node/online",
    "sys/devices/system/node/has_memory",
];

/// Memory figures, read right after the counts of the caches.
const MEMORY: [&str; 6] = [
    "proc/meminfo",
    "proc/vmstat",
    "proc/zoneinfo",
    "proc/buddyinfo",
    "proc/pressure/memory",
    "proc/stat",
];

/// Attributes that are commands: there is nothing to read in them.
const COMMANDS: [&str; 2] = ["shrink", "validate"];

/// Call sites before Linux 5.14, in sysfs.
const CALLS: [&str; 2] = ["alloc_calls", "free_calls"];

/// Call sites since.
const TRACES: [&str; 2] = ["alloc_traces", "free_traces"];

struct Collector<'a> {
    tree: &'a dyn Tree,
    options: &'a Options,
    files: MemTree,
    unread: Vec<Absent>,
    left_out: Vec<Absent>,
    /// Some slab file was refused.
    denied: bool,
}

/// Reads everything. Fails only when neither /proc/slabinfo nor an attribute
/// of any cache can be read; whatever else is missing is named in the result.
pub fn collect(tree: &dyn Tree, options: &Options) -> Result<Collected, Error> {
    let mut collector = Collector {
        tree,
        options,
        files: MemTree::new(tree.root()),
        unread: Vec::new(),
        left_out: Vec::new(),
        denied: false,
    };
    collector.machine_files(&MACHINE);
    if let Some(lines) = machine::config_lines(tree) {
        collector.files.insert_file("config", lines);
    }
    let dirs = collector.list();
    let mut found: Vec<usize> = dirs.iter().map(|dir| collector.fixed(dir)).collect();
    let now = Timestamp::now();
    let moment = race::read(tree, &dirs, options.walk_limit);
    collector.machine_files(&MEMORY);
    for reading in moment.readings {
        match reading.error {
            None => {
                found[reading.dir] += 1;
                collector.files.insert_file(&reading.path, reading.text);
            }
            Some(error) => collector.refused(&reading.path, &error),
        }
    }
    collector.left_out.extend(moment.left_out);
    let rows = collector.slabinfo(moment.slabinfo);
    let with_figures = found.iter().filter(|n| **n > 0).count();
    collector.keep_names(&dirs, &found);
    if rows == 0 && with_figures == 0 {
        return Err(collector.nothing());
    }
    if options.traces {
        collector.traces();
    }
    let caches = with_figures.max(rows);
    Ok(collector.finish(now, caches, moment.changes))
}

impl Collector<'_> {
    fn absent(&mut self, path: &str, why: &io::Error) {
        self.unread.push(Absent {
            path: path.to_owned(),
            why: why.to_string(),
        });
    }

    fn refused(&mut self, path: &str, why: &io::Error) {
        self.denied |= why.kind() == io::ErrorKind::PermissionDenied;
        self.absent(path, why);
    }

    fn machine_files(&mut self, paths: &[&str]) {
        for path in paths {
            match self.tree.read(path) {
                Ok(bytes) => self.files.insert_file(path, bytes),
                Err(error) => self.absent(path, &error),
            }
        }
    }

    /// The caches' directories; links are kept on the way.
    fn list(&mut self) -> Vec<CacheDir> {
        let mut failed = None;
        for base in BASES {
            match self.tree.list(base) {
                Ok(entries) => return self.sort(base, entries),
                // The older place is not missed.
                Err(error) => failed = failed.or(Some((base, error))),
            }
        }
        if let Some((base, error)) = failed {
            self.refused(base, &error);
        }
        Vec::new()
    }

    fn sort(&mut self, base: &str, entries: Vec<Entry>) -> Vec<CacheDir> {
        let mut dirs: BTreeMap<String, CacheDir> = BTreeMap::new();
        let mut links = Vec::new();
        for entry in entries {
            let path = format!("{base}/{}", entry.name);
            match entry.kind {
                EntryKind::Directory => {
                    let files = self.tree.list(&path).unwrap_or_default();
                    let files = files.into_iter().filter(|f| f.kind == EntryKind::File);
                    let dir = CacheDir {
                        path,
                        names: vec![entry.name.clone()],
                        files: files.map(|f| f.name).collect(),
                    };
                    dirs.insert(entry.name, dir);
                }
                EntryKind::Link(target) => {
                    self.files.insert_link(&path, &target);
                    links.push((entry.name, target));
                }
                EntryKind::File | EntryKind::Other => {}
            }
        }
        for (name, target) in links {
            let id = target.trim_end_matches('/').rsplit('/').next();
            if let Some(dir) = id.and_then(|id| dirs.get_mut(id)) {
                dir.names.push(name);
            }
        }
        dirs.into_values().collect()
    }

    /// Reads what is not read in one go later, and opens the files of the slab
    /// counts, so that opening costs no memory then. Returns how many were read.
    fn fixed(&mut self, dir: &CacheDir) -> usize {
        let mut buf = Vec::new();
        let mut read = 0;
        for name in &dir.files {
            let name = name.as_str();
            let path = format!("{}/{name}", dir.path);
            let unwanted = CALLS.contains(&name) && !self.options.traces;
            if race::KEPT.contains(&name) {
                // An error shows again when it is read.
                let _ = self
                    .tree
                    .read_attribute(&path, Keep::ForTheNextSample, &mut buf);
            } else if !unwanted && !COMMANDS.contains(&name) && !race::COUNTS.contains(&name) {
                match self.tree.read_attribute(&path, Keep::No, &mut buf) {
                    Ok(()) => {
                        read += 1;
                        self.files.insert_file(&path, buf.clone());
                    }
                    Err(error) => self.refused(&path, &error),
                }
            }
        }
        read
    }

    fn slabinfo(&mut self, text: io::Result<Vec<u8>>) -> usize {
        match text {
            Ok(text) => {
                let rows = crate::parse::slabinfo::parse(&text).parsed.caches.len();
                self.files.insert_file(SLABINFO, text);
                rows
            }
            Err(error) => {
                self.refused(SLABINFO, &error);
                0
            }
        }
    }

    /// A directory none of whose files may be read still says that the cache
    /// exists and which names it has. An archive in memory has no empty
    /// directories, so it gets one empty file; readers take that for unknown.
    fn keep_names(&mut self, dirs: &[CacheDir], found: &[usize]) {
        for (dir, read) in dirs.iter().zip(found) {
            if *read == 0 && self.tree.list(&dir.path).is_ok() {
                let path = format!("{}/slab_size", dir.path);
                self.files.insert_file(&path, Vec::new());
            }
        }
    }

    fn traces(&mut self) {
        let entries = match self.tree.list(DEBUGFS) {
            Ok(entries) => entries,
            Err(error) => return self.absent(DEBUGFS, &error),
        };
        for entry in entries {
            for name in TRACES {
                let path = format!("{DEBUGFS}/{}/{name}", entry.name);
                match self.tree.read(&path) {
                    Ok(bytes) => self.files.insert_file(&path, bytes),
                    Err(error) => self.absent(&path, &error),
                }
            }
        }
    }

    fn nothing(&self) -> Error {
        let root = self.tree.root();
        if self.denied {
            return Error::Permission {
                path: root.join(SLABINFO),
            };
        }
        Error::Unavailable {
            what: format!("slab data below {}", root.display()),
            why: "neither /sys/kernel/slab nor /proc/slabinfo has a cache".to_owned(),
        }
    }

    fn finish(
        mut self,
        now: Timestamp,
        caches: usize,
        changes: Option<super::Changes>,
    ) -> Collected {
        // Whole seconds: that is what an archive's members carry.
        let taken_at = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let date = format!("{taken_at}\n");
        self.files.insert_file("date", date.into_bytes());
        let kernel = self.tree.read_text("proc/sys/kernel/osrelease").ok();
        let mut collected = Collected {
            files: self.files,
            taken_at,
            caches,
            unread: self.unread,
            left_out: self.left_out,
            changes,
        };
        let text = manifest::text(&collected, self.options, kernel.as_deref().map(str::trim));
        collected
            .files
            .insert_file(manifest::NAME, text.into_bytes());
        collected
    }
}
