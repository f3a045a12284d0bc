//! Slab data of a kernel: the running one, or a saved copy of its files.
//!
//! /proc/slabinfo is read first (about ten system calls for all caches, and
//! bounded scans since Linux 6.10); sysfs adds what it lacks. On a live kernel
//! only the files that the demand names are opened; what does not change is
//! read once. In a saved copy everything is read and sysfs has precedence.

mod attributes;
mod entries;
mod era;
mod join;
mod reader;
mod sites;

use std::collections::{BTreeSet, HashMap};
use std::io;

use jiff::Timestamp;

use self::entries::CacheDir;
use self::join::{Match, Rows};
use self::reader::{Outcome, Plan, Reader};
use super::tree::{Entry, EntryKind, Tree};
use super::{Demand, Source, machine};
use crate::analysis::consistency;
use crate::error::Error;
use crate::model::{
    Allocator, Cache, CacheId, Layer, Origin, OriginKind, Quantity, QuantitySet, Snapshot, System,
    Warning, WarningCode, Warnings,
};
use crate::parse::slabinfo;

/// Where the caches' directories are: since 2.6.25, and before.
const BASES: [&str; 2] = ["sys/kernel/slab", "sys/slab"];
const SLABINFO: &str = "proc/slabinfo";

/// What /proc/slabinfo gives for every cache.
const SLABINFO_GIVES: QuantitySet = QuantitySet::of(&[
    Quantity::SlabSize,
    Quantity::ObjsPerSlab,
    Quantity::Order,
    Quantity::PagesPerSlab,
    Quantity::Objects,
    Quantity::TotalObjects,
    Quantity::Slabs,
]);

/// The caches' directory, with what attribute files it was found to have.
struct Sysfs {
    base: &'static str,
    tree: Box<dyn Tree>,
    available: Option<BTreeSet<String>>,
}

/// A kernel's files as a source.
pub struct KernelSource {
    tree: Box<dyn Tree>,
    kind: OriginKind,
    detail: String,
    taken_at: Option<Timestamp>,
    sysfs: Option<Sysfs>,
    /// What does not change between samples, by directory name.
    known: HashMap<String, Cache>,
    page_size: Option<u64>,
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
            })
        });
        Self {
            tree,
            kind,
            detail,
            taken_at: None,
            sysfs,
            known: HashMap::new(),
            page_size: None,
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

    /// Rows of /proc/slabinfo, or why there are none.
    fn slabinfo(&self) -> io::Result<slabinfo::Slabinfo> {
        Ok(slabinfo::parse(&self.tree.read(SLABINFO)?))
    }

    /// The caches' directories. The first time, this finds out what files they
    /// have: listing them all again for that would read every link twice.
    fn entries(&mut self, warnings: &mut Warnings) -> Result<Vec<CacheDir>, io::Error> {
        let live = self.is_live_kernel();
        let Some(sysfs) = &mut self.sysfs else {
            return Ok(Vec::new());
        };
        let entries = sysfs.tree.list("")?;
        if live && sysfs.available.is_none() {
            sysfs.available = probe(&*sysfs.tree, &entries);
        }
        Ok(entries::sort(entries, sysfs.base, warnings))
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
            let files = tree.list(&dir.name).ok()?;
            let names: BTreeSet<String> = files.into_iter().map(|f| f.name).collect();
            (!names.is_empty()).then_some(names)
        })
}

impl Source for KernelSource {
    fn describe(&self) -> String {
        match self.kind {
            OriginKind::Kernel if self.detail == "/" => "running kernel".to_owned(),
            OriginKind::Kernel => format!("kernel files below {}", self.detail),
            OriginKind::Capture => self.detail.clone(),
        }
    }

    fn is_live(&self) -> bool {
        self.is_live_kernel()
    }

    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        let mut warnings = Warnings::default();
        let depth = if demand.machine || !self.is_live_kernel() {
            machine::Depth::Full
        } else {
            machine::Depth::Brief
        };
        let system = machine::read(&*self.tree, self.page_size, depth, &mut warnings);
        let (mut rows, allocator, slabinfo_error) = match self.slabinfo() {
            Ok(table) => {
                let found = table.allocator;
                for warning in &table.parsed.warnings {
                    warnings.push(warning.clone().in_file(SLABINFO));
                }
                (table.parsed.caches, found, None)
            }
            Err(error) => (Vec::new(), Allocator::Unknown, Some(error)),
        };
        let dirs = self.entries(&mut warnings).unwrap_or_default();
        if let Some(only) = &demand.only {
            rows.retain(|row| wants_row(only, row, &dirs));
        }
        let had_rows = !rows.is_empty();
        let (caches, denied) = self.read_caches(dirs, rows, demand, &system, &mut warnings);
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
        Ok(self.finish(system, allocator, caches, warnings))
    }
}

fn wants_row(only: &[String], row: &Cache, dirs: &[CacheDir]) -> bool {
    only.iter().any(|name| {
        *row.name == **name
            || dirs
                .iter()
                .any(|dir| dir.answers_to(name) && dir.answers_to(&row.name))
    })
}

impl KernelSource {
    /// Reads every directory, joins it with its row, and appends the rows that
    /// have no directory. Returns the caches in the order of /proc/slabinfo,
    /// then of sysfs, and how many directories were refused.
    fn read_caches(
        &mut self,
        dirs: Vec<CacheDir>,
        rows: Vec<Cache>,
        demand: &Demand,
        system: &System,
        warnings: &mut Warnings,
    ) -> (Vec<Cache>, usize) {
        let live = self.is_live_kernel();
        let have_dirs = !dirs.is_empty();
        let mut rows = Rows::new(rows);
        let mut placed: Vec<(usize, Cache)> = Vec::new();
        let mut denied = 0;
        let mut moved = 0usize;
        let wanted = |dir: &CacheDir| {
            let only = demand.only.as_ref();
            only.is_none_or(|only| only.iter().any(|name| dir.answers_to(name)))
        };
        if let Some(sysfs) = &self.sysfs {
            let mut reader = Reader::new(&*sysfs.tree, sysfs.available.as_ref());
            for dir in dirs.into_iter().filter(wanted) {
                let found = rows.find(&dir);
                let one_node = system.nodes == Some(1) || !demand.nodes;
                let given = match found {
                    Match::One(_) if live && one_node && !demand.exact => SLABINFO_GIVES,
                    _ => QuantitySet::EMPTY,
                };
                let plan = Plan {
                    demand,
                    given,
                    live,
                };
                let mut cache = reader::blank(&dir);
                let outcome = match found {
                    // In a live sample the row comes first: its figures are used as they are.
                    Match::One(row) if !given.is_empty() => {
                        if let Some(row) = rows.get(row) {
                            take_from_row(&mut cache, row);
                        }
                        read_with_memory(
                            &mut self.known,
                            &mut reader,
                            &dir,
                            &mut cache,
                            plan,
                            warnings,
                        )
                    }
                    _ => read_with_memory(
                        &mut self.known,
                        &mut reader,
                        &dir,
                        &mut cache,
                        plan,
                        warnings,
                    ),
                };
                let row = match found {
                    Match::One(row) => Some(row),
                    Match::Several(list) => rows.choose(&list, &cache),
                    Match::None => None,
                };
                let row = row.and_then(|i| Some((i, rows.take(i)?)));
                match outcome {
                    Outcome::Denied => denied += 1,
                    Outcome::Vanished => warnings.push(
                        Warning::new(
                            WarningCode::Vanished,
                            "the cache went away while it was read",
                        )
                        .in_file(format!("{}/{}", sysfs.base, dir.id)),
                    ),
                    Outcome::Read | Outcome::Nothing => {}
                }
                let unread = matches!(outcome, Outcome::Denied | Outcome::Vanished);
                let place = match row {
                    Some((place, row)) => {
                        moved += usize::from(!live && differs(&cache, &row));
                        cache.name = row.name.clone();
                        reader::set_names(&mut cache, &dir);
                        cache.fill_from(row);
                        place
                    }
                    None if unread => continue,
                    None => usize::MAX,
                };
                reader::settle(&mut cache, plan, warnings);
                if demand.sites || !live {
                    sites::read(&*self.tree, &*sysfs.tree, &dir, &mut cache, warnings);
                }
                placed.push((place, cache));
            }
            reader.say_cut(warnings);
        }
        let mut lone = 0usize;
        for (place, row) in rows.rest() {
            lone += 1;
            placed.push((place, row));
        }
        if have_dirs && lone > 0 && demand.only.is_none() {
            say_incomplete(lone, placed.len(), warnings);
        }
        if moved > 0 {
            say_moved(moved, warnings);
        }
        placed.sort_by_key(|(place, _)| *place);
        let caches = placed.into_iter().map(|(_, cache)| cache).collect();
        (caches, denied)
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
            },
            system,
            caches,
            warnings,
        };
        let base = self.sysfs.as_ref().map_or(BASES[0], |s| s.base);
        snapshot.describe_layers(&[
            (Layer::Sysfs, base.to_owned()),
            (Layer::Slabinfo, SLABINFO.to_owned()),
        ]);
        let more = consistency::check(&snapshot);
        snapshot.warnings.append(more);
        snapshot
    }

    fn era(&self, caches: &[Cache], allocator: Allocator) -> crate::model::Era {
        // The attribute may not have been asked for; one cache is enough.
        let peek = |cache: &Cache| {
            let sysfs = self.sysfs.as_ref()?;
            let id = cache.sysfs_id.as_deref()?;
            let text = sysfs.tree.read_text(&format!("{id}/sheaf_capacity")).ok()?;
            crate::parse::sysfs::number(&text)
        };
        let available = self
            .available()
            .is_none_or(|names| names.contains("sheaf_capacity"));
        era::detect(caches, allocator, available, &peek)
    }
}

/// Reads a cache, with what is known of it from an earlier sample.
fn read_with_memory(
    known: &mut HashMap<String, Cache>,
    reader: &mut Reader<'_>,
    dir: &CacheDir,
    cache: &mut Cache,
    plan: Plan<'_>,
    warnings: &mut Warnings,
) -> Outcome {
    // Within one process the live kernel's fixed attributes are read once.
    if let Some(before) = known
        .get(&dir.id)
        .filter(|b| plan.live && same_cache(b, cache))
    {
        let rest = reader::without_known(plan.demand, before);
        let plan = Plan {
            demand: &rest,
            ..plan
        };
        let outcome = reader.read(dir, cache, plan, warnings);
        cache.fill_from(before.clone());
        return outcome;
    }
    let outcome = reader.read(dir, cache, plan, warnings);
    if plan.live && outcome == Outcome::Read {
        known.insert(dir.id.clone(), reader::fixed_part(cache));
    }
    outcome
}

/// A cache may have been destroyed and made anew under the same name.
fn same_cache(before: &Cache, now: &Cache) -> bool {
    [Quantity::SlabSize, Quantity::ObjsPerSlab]
        .into_iter()
        .all(|q| match (before.get(q), now.get(q)) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        })
}

/// Copies the figures a live sample need not read again from sysfs.
fn take_from_row(cache: &mut Cache, row: &Cache) {
    cache.name = row.name.clone();
    for q in SLABINFO_GIVES.iter() {
        if let Some(figure) = row.get(q) {
            cache.set(q, figure, Layer::Slabinfo);
        }
    }
}

fn differs(cache: &Cache, row: &Cache) -> bool {
    let slabs = (cache.get(Quantity::Slabs), row.get(Quantity::Slabs));
    matches!(slabs, (Some(a), Some(b)) if a != b)
}

fn say_incomplete(lone: usize, all: usize, warnings: &mut Warnings) {
    warnings.push(Warning::new(
        WarningCode::Incomplete,
        format!("{lone} of {all} caches of {SLABINFO} have no directory in sysfs: their figures are from {SLABINFO} alone"),
    ));
}

fn say_moved(moved: usize, warnings: &mut Warnings) {
    warnings.push(Warning::new(
        WarningCode::NotSimultaneous,
        format!("{moved} caches have other slab counts in {SLABINFO} than in sysfs: the files are from different moments; sysfs is shown"),
    ));
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
