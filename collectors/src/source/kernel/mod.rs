//! Slab data of a kernel: the running one, or a saved copy of its files.
//!
//! /proc/slabinfo is read first (about ten system calls for all caches, and
//! bounded scans since Linux 6.10); sysfs adds what it lacks. On a live kernel
//! only the files that the demand names are opened; what does not change is
//! read once. In a saved copy everything is read and sysfs has precedence.
//! With [`KernelSource::by_bpf`] the rows are not those of /proc/slabinfo but
//! what programs see in the kernel, and hardly a file is opened.

mod attributes;
mod entries;
mod era;
mod gather;
mod id;
mod join;
mod memory;
pub mod raw;
mod reader;
mod sites;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use self::gather::{Gathered, Gathering};
use self::join::Joined;
use self::memory::Memory;
use self::reader::Reader;
use super::bpf::{Refusal, Snapshots};
use super::tree::{Entry, EntryKind, Tree};
use super::{Demand, Source, machine};
use crate::analysis::consistency;
use crate::error::Error;
use crate::model::{
    Allocator, Cache, CacheId, Carried, Layer, Origin, OriginKind, Snapshot, System, Warning,
    WarningCode, Warnings,
};
use crate::parse::slabinfo;

/// Where the caches' directories are: since 2.6.25, and before.
const BASES: [&str; 2] = ["sys/kernel/slab", "sys/slab"];
const SLABINFO: &str = "proc/slabinfo";

/// The caches' directory, with what attribute files it was found to have.
struct Sysfs {
    base: &'static str,
    tree: Box<dyn Tree>,
    available: Option<BTreeSet<String>>,
    listed: Option<Listed>,
}

/// The caches' directories as they were listed.
struct Listed {
    dirs: Arc<[Joined]>,
    /// Names of the rows of /proc/slabinfo at that time.
    rows: Vec<Box<str>>,
    at: Instant,
}

/// How long a list of directories is used for the next samples. A cache that
/// comes or goes changes the rows of /proc/slabinfo too, and is seen at once;
/// a name that is merged into another is a link only, and seen after this time.
const LISTED_FOR: Duration = Duration::from_secs(10);

/// A kernel's files as a source.
pub struct KernelSource {
    tree: Box<dyn Tree>,
    kind: OriginKind,
    detail: String,
    taken_at: Option<Timestamp>,
    sysfs: Option<Sysfs>,
    memory: Memory,
    page_size: Option<u64>,
    programs: Programs,
}

/// BPF programs, where they were asked for.
enum Programs {
    /// Not asked for.
    Unwanted,
    /// Loaded.
    Loaded(Box<Snapshots>),
    /// Why they are not used: it is told with every sample.
    Refused(Refusal),
}

/// Rows of caches, and where they are from.
struct Rows {
    caches: Vec<Cache>,
    allocator: Allocator,
    /// The programs saw them, with lists and parts.
    by_bpf: bool,
    /// Why there are none.
    error: Option<io::Error>,
}

impl std::fmt::Debug for KernelSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelSource")
            .field("kind", &self.kind)
            .field("detail", &self.detail)
            .finish_non_exhaustive()
    }
}

impl KernelSource {
    /// The running kernel, its /proc and /sys below `tree`.
    pub fn live(tree: Box<dyn Tree>) -> Self {
        let detail = tree.root().display().to_string();
        let page_size = u64::try_from(rustix::param::page_size()).ok();
        let mut source = Self::new(tree, OriginKind::Kernel, detail);
        source.page_size = page_size;
        source
    }

    /// Has BPF programs read what they can see of the running kernel. Where they
    /// cannot be used, the files are read, and a warning tells why.
    #[must_use]
    pub fn by_bpf(mut self) -> Self {
        self.programs = match Snapshots::open() {
            Ok(programs) => Programs::Loaded(Box::new(programs)),
            Err(refusal) => Programs::Refused(refusal),
        };
        self
    }

    /// A saved copy of a kernel's files.
    pub fn saved(tree: Box<dyn Tree>, detail: String, taken_at: Option<Timestamp>) -> Self {
        let mut source = Self::new(tree, OriginKind::Capture, detail);
        source.taken_at = taken_at;
        source
    }

    fn new(tree: Box<dyn Tree>, kind: OriginKind, detail: String) -> Self {
        let live = kind == OriginKind::Kernel;
        let mut bases = BASES.to_vec();
        if !live && bare_directory(&*tree) {
            bases.push(".");
        }
        let sysfs = bases.into_iter().find_map(|base| {
            let tree = tree.descend(base).ok()?;
            Some(Sysfs {
                base,
                tree,
                available: None,
                listed: None,
            })
        });
        Self {
            tree,
            kind,
            detail,
            taken_at: None,
            sysfs,
            memory: Memory::default(),
            page_size: None,
            programs: Programs::Unwanted,
        }
    }

    fn is_live_kernel(&self) -> bool {
        self.kind == OriginKind::Kernel
    }

    /// Attribute files that the caches have, known after the first sample of a
    /// live kernel.
    pub fn available(&self) -> Option<&BTreeSet<String>> {
        self.sysfs.as_ref()?.available.as_ref()
    }

    /// Rows of all caches: of the programs, or of /proc/slabinfo.
    fn rows(&mut self, demand: &Demand, warnings: &mut Warnings) -> Rows {
        if let Programs::Loaded(programs) = &mut self.programs {
            match programs.caches(demand, warnings) {
                Ok(caches) => {
                    return Rows {
                        caches,
                        allocator: Allocator::Slub,
                        by_bpf: true,
                        error: None,
                    };
                }
                Err(refusal) => self.programs = Programs::Refused(refusal),
            }
        }
        if let Programs::Refused(refusal) = &self.programs {
            warnings.push(Warning::new(
                WarningCode::NotInSource,
                format!("BPF is not used: {refusal}"),
            ));
        }
        let mut rows = Rows {
            caches: Vec::new(),
            allocator: Allocator::Unknown,
            by_bpf: false,
            error: None,
        };
        match self.tree.read(SLABINFO) {
            Ok(text) => {
                let table = slabinfo::parse(&text);
                rows.allocator = table.allocator;
                rows.caches = table.parsed.caches;
                for warning in &table.parsed.warnings {
                    warnings.push(warning.clone().in_file(SLABINFO));
                }
            }
            Err(error) => rows.error = Some(error),
        }
        rows
    }

    /// The caches' directories. The first time, this finds out what files they
    /// have: listing them all again for that would read every link twice.
    fn entries(
        &mut self,
        rows: &[Cache],
        warnings: &mut Warnings,
    ) -> Result<Arc<[Joined]>, io::Error> {
        let live = self.is_live_kernel();
        let Some(sysfs) = &mut self.sysfs else {
            return Ok(Arc::new([]));
        };
        let fresh = |listed: &&Listed| {
            let names = listed.rows.iter().map(|name| &**name);
            listed.at.elapsed() < LISTED_FOR && names.eq(rows.iter().map(|row| &*row.name))
        };
        if let Some(listed) = sysfs.listed.as_ref().filter(fresh) {
            return Ok(Arc::clone(&listed.dirs));
        }
        let entries = sysfs.tree.list("")?;
        if live && sysfs.available.is_none() {
            sysfs.available = probe(&*sysfs.tree, &entries);
        }
        let before = warnings.count();
        let dirs = join::join(entries::sort(entries, sysfs.base, warnings), rows);
        // One list as long as it is the same.
        let dirs = match &sysfs.listed {
            Some(old) if *old.dirs == *dirs => Arc::clone(&old.dirs),
            _ => dirs.into(),
        };
        // What is odd in the directory is told with every sample.
        sysfs.listed = (live && !rows.is_empty() && warnings.count() == before).then(|| Listed {
            dirs: Arc::clone(&dirs),
            rows: rows.iter().map(|row| row.name.clone()).collect(),
            at: Instant::now(),
        });
        Ok(dirs)
    }
}

/// A saved copy may be of /sys/kernel/slab itself.
pub(super) fn bare_directory(tree: &dyn Tree) -> bool {
    let Ok(entries) = tree.list("") else {
        return false;
    };
    entries
        .iter()
        .filter(|e| e.kind == EntryKind::Directory)
        .take(4)
        .any(|e| tree.read(&format!("{}/slab_size", e.name)).is_ok())
}

/// The attribute files of the first cache directory that can be listed; they
/// are the same for all caches of a running kernel.
fn probe(tree: &dyn Tree, dirs: &[Entry]) -> Option<BTreeSet<String>> {
    dirs.iter()
        .filter(|e| e.kind == EntryKind::Directory)
        .find_map(|dir| {
            let files: BTreeSet<String> = tree.names(&dir.name).ok()?.into_iter().collect();
            (!files.is_empty()).then_some(files)
        })
}

impl Source for KernelSource {
    fn describe(&self) -> String {
        match self.kind {
            OriginKind::Kernel if self.detail == "/" => "running kernel".to_owned(),
            OriginKind::Kernel => format!("kernel files below {}", self.detail),
            OriginKind::Capture | OriginKind::Process | OriginKind::Demo => self.detail.clone(),
        }
    }

    fn is_live(&self) -> bool {
        self.is_live_kernel()
    }

    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        let mut warnings = Warnings::default();
        let depth = if demand.machine || !self.is_live_kernel() {
            machine::Depth::Full
        } else if demand.memory {
            machine::Depth::Memory
        } else {
            machine::Depth::Brief
        };
        let system = machine::read(&*self.tree, self.page_size, depth, &mut warnings);
        let mut rows = self.rows(demand, &mut warnings);
        let (allocator, slabinfo_error) = (rows.allocator, rows.error.take());
        let mut dirs = match self.entries(&rows.caches, &mut warnings) {
            Ok(dirs) => dirs,
            Err(_) => Arc::new([]),
        };
        if let Some(only) = &demand.only {
            dirs = gather::choose(only, &dirs, &mut rows.caches).into();
        }
        let had_rows = !rows.caches.is_empty();
        let Gathered {
            caches,
            denied,
            carried,
        } = self.gather(&dirs, rows, demand, system.nodes, &mut warnings);
        if caches.is_empty() && demand.only.is_none() {
            return Err(self.nothing(denied, slabinfo_error.as_ref()));
        }
        if denied > 0 {
            warnings.push(Warning::new(
                WarningCode::Unreadable,
                format!("permission denied for the attributes of {denied} caches (mode 0400): figures from {SLABINFO} only"),
            ));
        }
        if let Some(error) = slabinfo_error
            && !had_rows
        {
            warnings
                .push(Warning::new(WarningCode::Unreadable, error.to_string()).in_file(SLABINFO));
        }
        let mut snapshot = self.finish(system, allocator, caches, warnings);
        snapshot.origin.carried = (carried > 0).then_some(Carried {
            caches: carried,
            at_most: demand.unchanged_for,
        });
        Ok(snapshot)
    }
}

impl KernelSource {
    /// Reads the caches: joined where a row and a directory are the same one.
    fn gather(
        &mut self,
        dirs: &Arc<[Joined]>,
        rows: Rows,
        demand: &Demand,
        nodes: Option<u32>,
        warnings: &mut Warnings,
    ) -> Gathered {
        let live = self.is_live_kernel();
        let have_dirs = !dirs.is_empty();
        let in_focus = demand.focus.is_some().then(|| {
            let mut all = Demand::everything();
            all.merge(demand);
            all
        });
        let asked = (demand, in_focus.as_ref());
        if live {
            self.memory.begin(demand, dirs);
        }
        let mut gathering = Gathering::new(asked, live, nodes, rows, &mut self.memory, warnings);
        if let Some(sysfs) = &self.sysfs {
            let mut reader = Reader::new(&*sysfs.tree, sysfs.available.as_ref());
            for entry in dirs.iter().enumerate() {
                let dir = &entry.1.dir;
                gathering.directory(&mut reader, entry, sysfs.base, |cache, warnings| {
                    let named = demand.sites_of.as_deref();
                    let named = named.is_some_and(|name| dir.answers_to(name));
                    if demand.sites || named || !live {
                        sites::read(&*self.tree, &*sysfs.tree, dir, cache, warnings);
                    }
                });
            }
            gathering.say_cut(&reader);
        }
        gathering.finish(have_dirs)
    }

    fn nothing(&self, denied: usize, slabinfo: Option<&io::Error>) -> Error {
        let path = self.tree.root().join(SLABINFO);
        let refused = slabinfo.is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
        if denied > 0 || refused {
            return Error::Permission { path };
        }
        Error::Unavailable {
            what: format!("slab data below {}", self.tree.root().display()),
            why: "neither /sys/kernel/slab nor /proc/slabinfo has a cache (a kernel without CONFIG_SLUB_DEBUG, with CONFIG_SLUB_TINY, or a container that hides them)".to_owned(),
        }
    }

    fn finish(
        &self,
        mut system: System,
        allocator: Allocator,
        mut caches: Vec<Cache>,
        warnings: Warnings,
    ) -> Snapshot {
        for (id, cache) in (0u32..).zip(caches.iter_mut()) {
            cache.id = CacheId(id);
        }
        let sysfs_seen = caches.iter().any(|c| c.layers.contains(Layer::Sysfs));
        system.allocator = if sysfs_seen {
            Allocator::Slub
        } else {
            allocator
        };
        system.era = self.era(&caches, system.allocator);
        one_node(&system, &mut caches);
        let mut snapshot = Snapshot {
            origin: Origin {
                kind: self.kind,
                detail: self.detail.clone(),
                taken_at: self.taken_at.or_else(|| {
                    let live = self.is_live_kernel();
                    live.then(Timestamp::now)
                }),
                layers: Vec::new(),
                carried: None,
            },
            system,
            caches,
            warnings,
        };
        let base = self.sysfs.as_ref().map_or(BASES[0], |s| s.base);
        let rows = match self.programs {
            Programs::Loaded(_) => (Layer::Bpf, "BPF programs".to_owned()),
            _ => (Layer::Slabinfo, SLABINFO.to_owned()),
        };
        snapshot.describe_layers(&[(Layer::Sysfs, base.to_owned()), rows]);
        let more = consistency::check(&snapshot);
        snapshot.warnings.append(more);
        snapshot
    }

    fn era(&self, caches: &[Cache], allocator: Allocator) -> crate::model::Era {
        let peek = |cache: &Cache, name: &str| {
            let sysfs = self.sysfs.as_ref()?;
            let id = cache.sysfs_id.as_deref()?;
            let text = sysfs.tree.read_text(&format!("{id}/{name}")).ok()?;
            crate::parse::sysfs::number(&text)
        };
        let available = self
            .available()
            .is_none_or(|names| names.contains("sheaf_capacity"));
        era::detect(caches, allocator, available, &peek)
    }
}

/// On a machine with one node the totals are that node's figures.
fn one_node(system: &System, caches: &mut [Cache]) {
    if system.nodes != Some(1) {
        return;
    }
    for cache in caches {
        let (slabs, partial) = (cache.slabs(), cache.partial());
        let (objects, total) = (cache.objects(), cache.total_objects());
        let objects_partial = cache.objects_partial();
        let cpu_slabs = cache.cpu_slabs();
        let node = cache
            .nodes
            .first()
            .map_or(crate::model::NodeId(0), |p| p.node);
        if cache.nodes.len() > 1 || partial.is_none() {
            continue;
        }
        let part = attributes::node_part(cache, node);
        part.slabs = part.slabs.or(slabs.map(|f| f.value));
        part.partial = part.partial.or(partial.map(|f| f.value));
        part.objects = part.objects.or(objects.map(|f| f.value));
        part.total_objects = part.total_objects.or(total.map(|f| f.value));
        part.objects_partial = part.objects_partial.or(objects_partial.map(|f| f.value));
        part.cpu_slabs = part.cpu_slabs.or(cpu_slabs.map(|f| f.value));
    }
}
