//! Saved files from another machine: directories, archives and bare texts.
//!
//! What a path is, is told from its content. A tree of files goes through the
//! same reader as the live kernel; a text goes to the parser that knows it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::archive;
use super::detect::{self, TextKind};
use super::kernel::{self, KernelSource};
use super::tree::{DirTree, EntryKind, MAX_FILE, MemTree, Tree, read_capped};
use super::{Demand, Source, machine, packing};
use crate::analysis::consistency;
use crate::error::Error;
use crate::model::{
    Allocator, Cache, CacheId, Era, Layer, Origin, OriginKind, SiteKind, Snapshot, System, Warning,
    WarningCode, Warnings,
};
use crate::parse::{
    self, Parsed, alias_listing, crash_kmem, meminfo, oom_table, sections, slabinfo, slabinfo_tool,
    slabtop, traces,
};

/// Bytes looked at to tell what a file is.
const HEAD: usize = 64 << 10;

/// Rows taken from one slabinfo text; real machines have some hundreds.
const MAX_ROWS: usize = 4_000_000;

/// A saved file, read when it is sampled.
#[derive(Debug)]
pub struct CaptureSource {
    path: PathBuf,
    snapshot: Snapshot,
}

impl Source for CaptureSource {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn is_live(&self) -> bool {
        false
    }

    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        Ok(narrowed(self.snapshot.clone(), demand))
    }

    fn last_sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        let caches = std::mem::take(&mut self.snapshot.caches);
        let mut snapshot = self.snapshot.clone();
        snapshot.caches = caches;
        Ok(narrowed(snapshot, demand))
    }
}

/// The caches that are asked for by name, or all.
fn narrowed(mut snapshot: Snapshot, demand: &Demand) -> Snapshot {
    if let Some(only) = &demand.only {
        snapshot.caches.retain(|cache| {
            let id = cache.sysfs_id.as_deref();
            only.iter()
                .any(|name| cache.names().any(|n| n == name) || id == Some(name))
        });
    }
    snapshot
}

/// Opens a saved file, directory or, as `-`, standard input.
pub fn open(path: &Path) -> Result<CaptureSource, Error> {
    let snapshot = if path.as_os_str() == "-" {
        from_stream(io::stdin().lock(), Path::new("standard input"))?
    } else {
        let meta = std::fs::metadata(path).map_err(|e| Error::from_io(path, e))?;
        if meta.is_dir() {
            let tree = DirTree::confined(path).map_err(|e| Error::from_io(path, e))?;
            from_tree(Box::new(tree), path, Warnings::default())?
        } else {
            let file = File::open(path).map_err(|e| Error::from_io(path, e))?;
            from_stream(BufReader::with_capacity(HEAD, file), path)?
        }
    };
    Ok(CaptureSource {
        path: path.to_owned(),
        snapshot,
    })
}

/// Reads a stream of unknown content: packed or not, an archive or a text.
pub fn from_stream(reader: impl BufRead, path: &Path) -> Result<Snapshot, Error> {
    let (head, stream) = unpacked(reader, path)?;
    if archive::is_tar(&head) {
        let (tree, warnings) = tar_tree(head, stream, path)?;
        let ended = warnings
            .iter()
            .find(|w| matches!(w.code, WarningCode::Truncated | WarningCode::LimitReached))
            .map(|w| format!("{}; no slab data before that", w.message));
        // Without slab data the reason is where the archive ended.
        return from_tree(Box::new(tree), path, warnings).map_err(|error| match ended {
            Some(why) => Error::Broken {
                path: path.to_owned(),
                why,
            },
            None => error,
        });
    }
    from_text_stream(head, stream, path)
}

fn broken(path: &Path, error: &io::Error) -> Error {
    Error::Broken {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

/// The first bytes of what is in the stream, and the rest of it.
pub(super) fn unpacked<'a>(
    reader: impl BufRead + 'a,
    path: &Path,
) -> Result<(Vec<u8>, Box<dyn BufRead + 'a>), Error> {
    let mut stream = packing::unpack(reader).map_err(|e| broken(path, &e))?;
    let mut head = Vec::with_capacity(HEAD);
    stream
        .by_ref()
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(|e| broken(path, &e))?;
    Ok((head, stream))
}

/// The wanted files of a tar stream whose first bytes were read.
pub(super) fn tar_tree(
    head: Vec<u8>,
    stream: impl Read,
    path: &Path,
) -> Result<(MemTree, Warnings), Error> {
    let mut warnings = Warnings::default();
    let whole = Cursor::new(head).chain(stream);
    let tree = archive::read_tar(whole, path, &mut warnings)?;
    Ok((tree, warnings))
}

/// Reads a text whose first bytes were read.
pub(super) fn from_text_stream(
    head: Vec<u8>,
    stream: impl Read,
    path: &Path,
) -> Result<Snapshot, Error> {
    let broken = |e: io::Error| broken(path, &e);
    refuse_binary(&head, path)?;
    // Only a bare slabinfo can be large; it is parsed as it streams by.
    if detect::text_kind(&head) == Some(TextKind::Table(Layer::Slabinfo)) && head.len() == HEAD {
        let whole = BufReader::with_capacity(HEAD, Cursor::new(head).chain(stream));
        let table = slabinfo::parse_from(whole, MAX_ROWS).map_err(broken)?;
        return Ok(from_slabinfo(table, path, System::default()));
    }
    let mut text = head;
    let rest = MAX_FILE - text.len() as u64;
    read_capped(stream, rest, &mut text).map_err(broken)?;
    from_text(&text, path)
}

/// A file of zeros or machine code is not a text with odd bytes in it.
fn refuse_binary(head: &[u8], path: &Path) -> Result<(), Error> {
    let zeros = head.iter().fold(0usize, |n, b| n + usize::from(*b == 0));
    if head.is_empty() || zeros > head.len() / 100 {
        let why = if head.is_empty() {
            "the file is empty"
        } else {
            "binary data that is no archive this program reads (tar, gzip, zstd, xz)"
        };
        return Err(unrecognised(path, why));
    }
    Ok(())
}

fn unrecognised(path: &Path, why: &str) -> Error {
    Error::Unrecognised {
        path: path.to_owned(),
        why: why.to_owned(),
    }
}

/// Reads a text: one table, or several files one after the other.
pub fn from_text(text: &[u8], path: &Path) -> Result<Snapshot, Error> {
    match detect::text_kind(text) {
        Some(TextKind::Sections) => from_sections(text, path),
        Some(TextKind::Table(layer)) => Ok(from_table(text, layer, path)),
        Some(TextKind::Traces) => Ok(from_traces(text, path)),
        None => Err(unrecognised(
            path,
            "looked for /proc/slabinfo, slabtop -o, slabinfo, crash kmem -s, an OOM slab table, call sites and listings of /sys/kernel/slab",
        )),
    }
}

fn from_sections(text: &[u8], path: &Path) -> Result<Snapshot, Error> {
    let mut tree = MemTree::new(path);
    for section in sections::split(text) {
        tree.insert_file(&section.path, section.body.to_vec());
    }
    from_tree(Box::new(tree), path, Warnings::default())
}

/// One table, with the memory lines that may stand in the same text.
fn from_table(text: &[u8], layer: Layer, path: &Path) -> Snapshot {
    let mut system = System::default();
    if meminfo::recognise(text) {
        system.meminfo = meminfo::parse(text);
    }
    if layer == Layer::Slabinfo {
        return from_slabinfo(slabinfo::parse(text), path, system);
    }
    let mut parsed = match layer {
        Layer::SlabinfoTool => slabinfo_tool::parse(text),
        Layer::Slabtop => slabtop::parse(text),
        Layer::CrashKmem => crash_kmem::parse(text),
        Layer::OomTable => oom_table::parse(text),
        _ => names_only(text),
    };
    for other in detect::tables(text).into_iter().skip(1) {
        parsed.warnings.push(Warning::new(
            WarningCode::Note,
            format!(
                "the text also holds {}; it is not shown here",
                other.doc().trim_end_matches('.').to_lowercase()
            ),
        ));
    }
    assemble(parsed, layer, system, path)
}

fn from_slabinfo(table: slabinfo::Slabinfo, path: &Path, mut system: System) -> Snapshot {
    system.allocator = table.allocator;
    if table.allocator == Allocator::Slab {
        system.era = Era::Slab;
    }
    let memcg = table
        .parsed
        .caches
        .iter()
        .any(|c| c.layers.contains(Layer::Memcg));
    let layer = if memcg { Layer::Memcg } else { Layer::Slabinfo };
    assemble(table.parsed, layer, system, path)
}

/// Call sites of one cache; the text does not name it, its directory may.
fn from_traces(text: &[u8], path: &Path) -> Snapshot {
    let file = path.file_name().and_then(|f| f.to_str()).unwrap_or("");
    let kind = if file.starts_with("free_") {
        SiteKind::Free
    } else {
        SiteKind::Alloc
    };
    let original = ["alloc_traces", "free_traces", "alloc_calls", "free_calls"].contains(&file);
    let parent = path.parent().and_then(Path::file_name).filter(|_| original);
    let name = parent.map_or("unnamed".into(), |p| p.to_string_lossy());
    let (sites, warnings) = traces::parse(text, kind);
    let mut cache = Cache::new(CacheId(0), &*name);
    cache.sites = Some(Box::new(sites));
    let mut parsed = Parsed {
        caches: vec![cache],
        warnings,
        ..Parsed::default()
    };
    parsed.warnings.push(Warning::new(
        WarningCode::NotInSource,
        "call sites alone: no sizes and no counts of slabs",
    ));
    assemble(parsed, Layer::Sysfs, System::default(), path)
}

/// A listing alone gives the names and which of them are merged.
fn names_only(text: &[u8]) -> Parsed {
    let listing = alias_listing::parse(text);
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, target) in &listing.links {
        groups.entry(target).or_default().push(name);
    }
    for directory in &listing.directories {
        groups.entry(directory).or_default();
    }
    let mut parsed = Parsed::default();
    for (id, mut names) in groups {
        names.sort_unstable();
        names.dedup();
        let shown = names.first().copied().unwrap_or(id);
        let mut cache = Cache::new(CacheId(0), shown);
        cache.sysfs_id = Some(id.into());
        cache.aliases = Some(names.iter().skip(1).map(|n| (*n).into()).collect());
        cache.layers.insert(Layer::AliasListing);
        parsed.caches.push(cache);
    }
    parsed.warnings = listing.warnings;
    parsed.warnings.push(Warning::new(
        WarningCode::NotInSource,
        "a listing of /sys/kernel/slab has names only: no sizes and no counts",
    ));
    parsed
}

fn assemble(parsed: Parsed, layer: Layer, mut system: System, path: &Path) -> Snapshot {
    let mut warnings = parsed.warnings;
    if system.page_size == 0 {
        machine::assume_page_size(&mut system, &mut warnings);
    }
    let mut caches = parsed.caches;
    for (id, cache) in (0u32..).zip(caches.iter_mut()) {
        cache.id = CacheId(id);
    }
    let mut snapshot = Snapshot {
        origin: Origin::new(OriginKind::Capture, path.display().to_string()),
        system,
        caches,
        warnings,
    };
    snapshot.describe_layers(&[(layer, path.display().to_string())]);
    let more = consistency::check(&snapshot);
    snapshot.warnings.append(more);
    snapshot
}

/// Reads a tree of files: a copied /proc and /sys, a sosreport, our own capture.
pub fn from_tree(tree: Box<dyn Tree>, path: &Path, warnings: Warnings) -> Result<Snapshot, Error> {
    let Some(root) = find_root(&*tree, 2) else {
        return Err(unrecognised(
            path,
            "no proc/slabinfo, sys/kernel/slab, slabtop output or memory.txt in it",
        ));
    };
    let tree = match root.as_str() {
        "" => tree,
        root => tree.descend(root).map_err(|e| Error::from_io(path, e))?,
    };
    // supportconfig: one text with the files in it.
    if !has_slab_files(&*tree)
        && let Ok(text) = tree.read("memory.txt")
    {
        let mut snapshot = from_sections(&text, path)?;
        snapshot.warnings.append(warnings);
        return Ok(snapshot);
    }
    let listing = alias_text(&*tree);
    let top = slabtop_text(&*tree);
    let taken_at = taken_at(&*tree);
    let detail = path.display().to_string();
    let mut source = KernelSource::saved(tree, detail, taken_at);
    let mut snapshot = match source.sample(&Demand::everything()) {
        Ok(snapshot) => snapshot,
        // Nothing but slabtop's output was kept.
        Err(error) => match &top {
            Some((_, text)) => from_table(text, Layer::Slabtop, path),
            None => return Err(error),
        },
    };
    if let Some((file, text)) = listing {
        add_aliases(&mut snapshot, &file, &text);
    }
    for warning in &warnings {
        snapshot.warnings.push(warning.clone());
    }
    Ok(snapshot)
}

fn add_aliases(snapshot: &mut Snapshot, file: &str, text: &[u8]) {
    let known = |c: &Cache| c.sysfs_id.is_some();
    if snapshot.caches.iter().all(known) {
        return;
    }
    let listing = alias_listing::parse(text);
    alias_listing::apply(&listing, &mut snapshot.caches);
    let mut files: Vec<(Layer, String)> = snapshot
        .origin
        .layers
        .iter()
        .map(|report| (report.layer, report.file.clone()))
        .collect();
    files.push((Layer::AliasListing, file.to_owned()));
    snapshot.describe_layers(&files);
}

pub(super) fn has_slab_files(tree: &dyn Tree) -> bool {
    tree.read("proc/slabinfo").is_ok()
        || tree.list("sys/kernel/slab").is_ok()
        || tree.list("sys/slab").is_ok()
}

fn join(base: &str, rest: &str) -> String {
    if base.is_empty() {
        rest.to_owned()
    } else {
        format!("{base}/{rest}")
    }
}

/// Where in the tree the machine's files start: archives often have one
/// directory on top.
pub(super) fn find_root(tree: &dyn Tree, depth: u32) -> Option<String> {
    let mut level = vec![String::new()];
    for _ in 0..=depth {
        let mut next = Vec::new();
        for base in &level {
            let at = |path: &str| join(base, path);
            if tree.read(&at("proc/slabinfo")).is_ok()
                || tree.list(&at("sys/kernel/slab")).is_ok()
                || tree.list(&at("sys/slab")).is_ok()
                || tree.read(&at("memory.txt")).is_ok()
                || tree.list(&at("sos_commands/memory")).is_ok()
                || tree
                    .descend(if base.is_empty() { "." } else { base })
                    .is_ok_and(|t| kernel::bare_directory(&*t))
            {
                return Some(base.clone());
            }
            let entries = tree.list(base).unwrap_or_default();
            let dirs = entries
                .into_iter()
                .filter(|e| e.kind == EntryKind::Directory);
            next.extend(dirs.map(|d| join(base, &d.name)).take(64));
        }
        level = next;
    }
    None
}

fn first_file(tree: &dyn Tree, dir: &str, starts: &str) -> Option<(String, Vec<u8>)> {
    let entries = tree.list(dir).ok()?;
    entries
        .iter()
        .filter(|e| e.name.starts_with(starts))
        .find_map(|e| {
            let path = format!("{dir}/{}", e.name);
            let text = tree.read(&path).ok()?;
            Some((path, text))
        })
}

pub(super) fn alias_text(tree: &dyn Tree) -> Option<(String, Vec<u8>)> {
    let entries = tree.list("sos_commands/kernel").ok()?;
    entries
        .iter()
        .filter(|e| e.name.starts_with("ls_") && e.name.contains("sys.kernel.slab"))
        .find_map(|e| {
            let path = format!("sos_commands/kernel/{}", e.name);
            let text = tree.read(&path).ok()?;
            parse::alias_listing::recognise(&text).then_some((path, text))
        })
}

pub(super) fn slabtop_text(tree: &dyn Tree) -> Option<(String, Vec<u8>)> {
    first_file(tree, "sos_commands/memory", "slabtop")
}

/// When the capture was taken, where it says so unmistakably: our own `date`
/// file, in RFC 3339. A `date` with a zone's abbreviation does not.
pub(super) fn taken_at(tree: &dyn Tree) -> Option<Timestamp> {
    let text = tree.read_text("date").ok()?;
    text.lines().next()?.trim().parse().ok()
}
