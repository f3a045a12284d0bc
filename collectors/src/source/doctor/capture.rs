//! Looks through a saved file: which files are in it, and what they tell.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::{Finding, State, state_of};
use crate::error::Error;
use crate::model::{Cache, Quantity, Snapshot, WarningCode, Warnings};
use crate::source::archive;
use crate::source::capture::{self as saved, find_root};
use crate::source::tree::{DirTree, EntryKind, Tree};

/// Files that are looked for, and what they give.
const FILES: [(&str, &str); 10] = [
    ("proc/meminfo", "Slab, SReclaimable and SUnreclaim in all"),
    ("proc/vmstat", "pages of slabs; with meminfo, the page size"),
    ("proc/zoneinfo", "the number of NUMA nodes"),
    ("proc/buddyinfo", "free pages by order"),
    (
        "proc/pressure/memory",
        "how long tasks stood still for memory",
    ),
    ("proc/version", "the kernel's release and architecture"),
    ("proc/cmdline", "boot options"),
    ("date", "when the figures were read"),
    ("MANIFEST", "page size, and what could not be read"),
    (
        "sys/kernel/debug/slab",
        "who allocated and freed the objects",
    ),
];

/// What can be read of a saved file or directory, or `-` for standard input.
///
/// An error when the path cannot be read at all or is a broken archive. A
/// capture without slab data gives findings, none of the needed ones readable.
pub fn capture(path: &Path) -> Result<Vec<Finding>, Error> {
    if path.as_os_str() == "-" {
        return stream(io::stdin().lock(), Path::new("standard input"));
    }
    let meta = std::fs::metadata(path).map_err(|e| Error::from_io(path, e))?;
    if meta.is_dir() {
        let tree = DirTree::confined(path).map_err(|e| Error::from_io(path, e))?;
        return tree_findings(Box::new(tree), path, Warnings::default());
    }
    let file = File::open(path).map_err(|e| Error::from_io(path, e))?;
    stream(BufReader::new(file), path)
}

fn stream(reader: impl BufRead, path: &Path) -> Result<Vec<Finding>, Error> {
    let (head, rest) = saved::unpacked(reader, path)?;
    if archive::is_tar(&head) {
        let (tree, warnings) = saved::tar_tree(head, rest, path)?;
        return tree_findings(Box::new(tree), path, warnings);
    }
    let snapshot = match saved::from_text_stream(head, rest, path) {
        Ok(snapshot) => snapshot,
        Err(Error::Unrecognised { why, .. }) => {
            let finding = Finding::new(path.display().to_string(), State::Missing, "all");
            return Ok(vec![finding.remark(why).needed()]);
        }
        Err(error) => return Err(error),
    };
    let mut findings = Vec::new();
    for report in &snapshot.origin.layers {
        let finding = Finding::new(&*report.file, State::Readable, report.layer.doc());
        findings.push(finding.remark(format!("{} caches", report.caches)).needed());
    }
    findings.extend(figures(&snapshot));
    Ok(findings)
}

fn tree_findings(
    tree: Box<dyn Tree>,
    path: &Path,
    warnings: Warnings,
) -> Result<Vec<Finding>, Error> {
    let root = find_root(&*tree, 2).unwrap_or_default();
    let inner = if root.is_empty() {
        None
    } else {
        Some(tree.descend(&root).map_err(|e| Error::from_io(path, e))?)
    };
    let seen = inner.as_deref().unwrap_or(&*tree);
    let mut findings = slab_files(seen);
    findings.extend(FILES.iter().map(|(path, gives)| file(seen, path, gives)));
    drop(inner);
    match saved::from_tree(tree, path, warnings) {
        Ok(snapshot) => findings.extend(figures(&snapshot)),
        // The files say already that there is nothing.
        Err(Error::Unrecognised { .. } | Error::Unavailable { .. } | Error::Permission { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(findings)
}

fn file(tree: &dyn Tree, path: &str, gives: &str) -> Finding {
    let listed = tree.list(path).map(|entries| entries.is_empty());
    let result = listed.or_else(|_| tree.read(path).map(|bytes| bytes.is_empty()));
    let state = match result {
        Ok(true) => State::Empty,
        other => state_of(&other),
    };
    Finding::new(path, state, gives)
}

/// The files that have slab data, one of which is needed.
fn slab_files(tree: &dyn Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let gives = "objects, slabs and sizes of every cache";
    findings.push(file(tree, "proc/slabinfo", gives).needed());
    findings.push(attributes(tree));
    let aliases = "names of merged caches";
    findings.push(match saved::alias_text(tree) {
        Some((path, _)) => Finding::new(path, State::Readable, aliases),
        None if tree.list("sys/kernel/slab").is_ok() => {
            Finding::new("sys/kernel/slab", State::Readable, aliases)
        }
        None => Finding::new("listing of sys/kernel/slab", State::Missing, aliases)
            .remark("merged caches cannot be told from others"),
    });
    if let Some((path, _)) = saved::slabtop_text(tree) {
        let gives = "objects, slabs and sizes as slabtop rounds them";
        findings.push(Finding::new(path, State::Readable, gives).needed());
    }
    if tree.read("memory.txt").is_ok() {
        let gives = "supportconfig's copy of /proc/slabinfo and meminfo";
        findings.push(Finding::new("memory.txt", State::Readable, gives).needed());
    }
    findings
}

fn attributes(tree: &dyn Tree) -> Finding {
    let gives = "object sizes, partial lists, figures per node, debug flags";
    // A copy of /sys/kernel/slab alone has the caches at its top.
    for base in ["sys/kernel/slab", "sys/slab", ""] {
        let entries = tree.list(base).unwrap_or_default();
        let dirs = entries.iter().filter(|e| e.kind == EntryKind::Directory);
        let full = dirs
            .filter(|dir| {
                let path = format!("{base}/{}/slab_size", dir.name);
                tree.read(path.trim_start_matches('/'))
                    .is_ok_and(|text| !text.is_empty())
            })
            .count();
        if full > 0 {
            let finding = Finding::new(format!("{base}/*/*"), State::Readable, gives);
            return finding.remark(format!("{full} caches")).needed();
        }
    }
    Finding::new("sys/kernel/slab/*/*", State::Missing, gives)
        .remark("no contents of /sys/kernel/slab: partial lists unknown")
        .needed()
}

/// What the capture as a whole tells, whatever files it is from.
fn figures(snapshot: &Snapshot) -> Vec<Finding> {
    let caches = &snapshot.caches;
    let any = |holds: &dyn Fn(&Cache) -> bool| {
        let count = caches.iter().filter(|c| holds(c)).count();
        (count > 0, format!("{count} of {} caches", caches.len()))
    };
    let known = |q: Quantity| any(&|c| c.get(q).is_some());
    let yes_or = |value: Option<String>, no: &str| (value.is_some(), value.unwrap_or(no.into()));
    let system = &snapshot.system;
    let page_size = (!system.page_size_assumed).then(|| format!("{} bytes", system.page_size));
    let taken = snapshot.origin.taken_at.map(|t| t.to_string());
    let rows = [
        ("slabs", "memory held", known(Quantity::Slabs)),
        (
            "object_size",
            "memory lost to alignment",
            known(Quantity::ObjectSize),
        ),
        (
            "partial",
            "fragmentation; whether objects is exact",
            known(Quantity::Partial),
        ),
        (
            "aliases",
            "which caches are merged",
            any(&|c| c.aliases.is_some()),
        ),
        (
            "nodes",
            "figures per NUMA node",
            any(&|c| !c.nodes.is_empty()),
        ),
        (
            "counters",
            "allocations and frees by path",
            any(&|c| c.counters.is_some()),
        ),
        (
            "call sites",
            "who allocated the objects",
            any(&|c| c.sites.is_some()),
        ),
        (
            "kernel",
            "which kernel it was",
            yes_or(system.kernel.clone(), ""),
        ),
        (
            "page size",
            "every figure in bytes that comes from pages",
            yes_or(page_size, "not in the files: 4096 assumed"),
        ),
        (
            "time",
            "growth per hour between two captures",
            yes_or(taken, "not stated (diff --elapsed gives it)"),
        ),
    ];
    let mut findings: Vec<Finding> = rows
        .into_iter()
        .map(|(what, gives, (there, remark))| {
            let state = if there {
                State::Readable
            } else {
                State::Missing
            };
            Finding::new(format!("figure: {what}"), state, gives).remark(remark)
        })
        .collect();
    findings.extend(warnings(snapshot));
    findings
}

/// Trouble on reading it, the first of each kind.
fn warnings(snapshot: &Snapshot) -> Vec<Finding> {
    let mut seen: Vec<WarningCode> = Vec::new();
    let mut findings = Vec::new();
    for warning in &snapshot.warnings {
        if seen.contains(&warning.code) {
            continue;
        }
        seen.push(warning.code);
        let all = snapshot.warnings.iter();
        let count = all.filter(|w| w.code == warning.code).count();
        let what = format!("warning: {}", warning.code.name());
        let remark = match count {
            1 => warning.to_string(),
            n => format!("{warning} (and {} more)", n - 1),
        };
        findings.push(Finding::new(what, State::Readable, "").remark(remark));
    }
    findings
}
