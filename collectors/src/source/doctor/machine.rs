//! Probes the running kernel, or the files below another root.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::{Finding, State, debugging, programs, state_of};
use crate::model::{Cache, Era, Flag, Quantity, Snapshot, System, Warnings};
use crate::source::kernel::KernelSource;
use crate::source::machine::{self, Depth};
use crate::source::tree::{DirTree, EntryKind, Tree};
use crate::source::{Demand, Source as _};

const SLAB: &str = "sys/kernel/slab";
pub(super) const AS_ROOT: &str = "only root may read it: sudo slabctl doctor";

/// What the probes share.
pub(super) struct Probe<'a> {
    pub(super) root: &'a Path,
    pub(super) tree: DirTree,
    pub(super) system: System,
    /// Cache directories and their links; the error of the listing otherwise.
    pub(super) names: io::Result<BTreeMap<String, usize>>,
    /// Files in the first cache's directory.
    pub(super) attributes: Vec<String>,
    pub(super) snapshot: Option<Snapshot>,
}

/// What can be read of the machine whose /proc and /sys are below `root`.
pub fn machine(root: &Path) -> Vec<Finding> {
    let tree = match DirTree::trusted(root) {
        Ok(tree) => tree,
        Err(error) => {
            let state = state_of(&Err::<(), _>(io::Error::from(error.kind())));
            let finding = Finding::new(root.display().to_string(), state, "all");
            return vec![finding.remark(error.to_string()).needed()];
        }
    };
    let probe = Probe::new(root, tree);
    let mut findings = vec![
        probe.listing(),
        probe.contents(),
        probe.slabinfo(),
        probe.totals("proc/meminfo", "Slab, SReclaimable and SUnreclaim in all"),
        probe.totals("proc/vmstat", "pages of slabs, and scans by reclaim"),
        probe.era(),
    ];
    findings.extend(probe.merged());
    findings.extend(probe.longest());
    findings.extend(programs::all(root));
    findings.extend(debugging::all(&probe));
    findings
}

impl<'a> Probe<'a> {
    fn new(root: &'a Path, tree: DirTree) -> Self {
        let mut ignored = Warnings::default();
        let page_size = u64::try_from(rustix::param::page_size()).ok();
        let system = machine::read(&tree, page_size, Depth::Full, &mut ignored);
        let names = tree.list(SLAB).map(|entries| {
            let mut dirs: BTreeMap<String, usize> = BTreeMap::new();
            for entry in &entries {
                if entry.kind == EntryKind::Directory {
                    dirs.insert(entry.name.clone(), 0);
                }
            }
            for entry in entries {
                if let EntryKind::Link(target) = entry.kind {
                    let id = target.rsplit('/').next().unwrap_or("");
                    if let Some(links) = dirs.get_mut(id) {
                        *links += 1;
                    }
                }
            }
            dirs
        });
        let first = names.as_ref().ok().and_then(|n| n.keys().next());
        let attributes = first
            .and_then(|id| tree.list(&format!("{SLAB}/{id}")).ok())
            .unwrap_or_default()
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        Self {
            root,
            snapshot: sample(root),
            tree,
            system,
            names,
            attributes,
        }
    }

    /// Whether caches have an attribute of this name.
    pub(super) fn has(&self, attribute: &str) -> bool {
        self.attributes.iter().any(|name| name == attribute)
    }

    /// Reads one attribute of the first cache.
    pub(super) fn attribute(&self, name: &str) -> io::Result<Vec<u8>> {
        let names = self.names.as_ref().map_err(io::Error::kind)?;
        let id = names.keys().next().ok_or(io::ErrorKind::NotFound)?;
        self.tree.read(&format!("{SLAB}/{id}/{name}"))
    }

    /// A build option; `None` when the configuration cannot be read.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.system.config.get(name).map(String::as_str)
    }

    /// The first bytes of a file. A pipe in its place does not hang.
    pub(super) fn peek(&self, path: &str) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let fd = rustix::fs::open(self.root.join(path), flags, Mode::empty())?;
        let mut head = Vec::new();
        std::fs::File::from(fd).take(512).read_to_end(&mut head)?;
        Ok(head)
    }

    fn listing(&self) -> Finding {
        let gives = "names, aliases, which caches are merged";
        let finding = |state| Finding::new("/sys/kernel/slab", state, gives);
        match &self.names {
            Ok(names) if names.is_empty() => finding(State::Empty).remark(self.no_sysfs()),
            Ok(names) => finding(State::Readable).remark(format!(
                "{} caches, {} names",
                names.len(),
                all_names(names)
            )),
            Err(error) => match state_of::<()>(&Err(error.kind().into())) {
                State::Denied => finding(State::Denied).remark(AS_ROOT),
                state => finding(state).remark(self.no_sysfs()),
            },
        }
    }

    fn no_sysfs(&self) -> &'static str {
        let yes = |name: &str| self.option(name) == Some("y");
        if yes("CONFIG_SLUB_TINY") {
            "the kernel is built with CONFIG_SLUB_TINY"
        } else if yes("CONFIG_SLAB") {
            "the kernel is built with the SLAB allocator, which has no such directory"
        } else if self.tree.list("sys/kernel").is_err() {
            "sysfs is not mounted here: mount -t sysfs sysfs /sys"
        } else {
            "a kernel without SLUB, or a container that hides it: try on the host"
        }
    }

    fn contents(&self) -> Finding {
        let gives = "object sizes, partial lists, figures per node, debug flags";
        let result = self.attribute("slab_size");
        let finding = Finding::new("/sys/kernel/slab/*/*", state_of(&result), gives).needed();
        match finding.state {
            State::Denied => finding.remark(AS_ROOT),
            State::Readable => finding.remark(format!("{} files a cache", self.attributes.len())),
            _ => finding.remark("see /sys/kernel/slab"),
        }
    }

    fn slabinfo(&self) -> Finding {
        let gives = "objects, slabs and sizes of every cache, in one file";
        let result = self.tree.read("proc/slabinfo");
        let mut finding = Finding::new("/proc/slabinfo", state_of(&result), gives).needed();
        finding.remark = match (&finding.state, result) {
            (State::Denied, _) => AS_ROOT.to_owned(),
            (_, Ok(text)) => {
                let rows = crate::parse::slabinfo::parse(&text).parsed.caches.len();
                if rows == 0 {
                    finding.state = State::Empty;
                }
                format!("{rows} rows")
            }
            _ => "a kernel without CONFIG_SLUB_DEBUG, or a container that hides it".to_owned(),
        };
        finding
    }

    fn totals(&self, path: &str, gives: &str) -> Finding {
        let result = self.tree.read(path);
        let finding = Finding::new(format!("/{path}"), state_of(&result), gives);
        match finding.state {
            State::Missing => finding.remark("proc is not mounted here: mount -t proc proc /proc"),
            _ => finding,
        }
    }

    fn era(&self) -> Finding {
        let era = self
            .snapshot
            .as_ref()
            .map_or(Era::Unknown, |s| s.system.era);
        let gives = "where free objects are kept near the CPUs";
        let remark = match era {
            Era::Unknown => {
                let state = match state_of(&self.attribute("slab_size")) {
                    State::Denied => State::Denied,
                    _ => State::Missing,
                };
                return Finding::new("era of the allocator", state, gives)
                    .remark("told from the kmalloc caches' attributes, which cannot be read or are of debugged caches");
            }
            Era::CpuSlabs => "cpu-slabs: a slab and a partial list for each CPU",
            Era::Mixed => "mixed: CPU slabs, and sheaves for caches that ask for them",
            Era::Sheaves => "sheaves: arrays of objects for each CPU, barns for each node",
            Era::Slab => "slab: the SLAB allocator, arrays of objects for each CPU",
        };
        Finding::new("era of the allocator", State::Readable, gives).remark(remark)
    }

    fn merged(&self) -> Option<Finding> {
        let names = self.names.as_ref().ok()?;
        let merged = names.values().filter(|links| **links > 1).count();
        let finding = Finding::new(
            "merged caches",
            State::Readable,
            "whose objects a cache holds",
        );
        let (debug, nomerge) = debugging::boot_words(self.system.kernel.as_deref());
        let options = debugging::slab_options(self.system.cmdline.as_deref().unwrap_or(""));
        let remark = if merged == 0 {
            "none: every name has its own cache".to_owned()
        } else if options.iter().any(|o| o.ends_with("_nomerge")) {
            format!("{merged} in spite of {}", options.join(" "))
        } else {
            format!(
                "{merged} caches have several names; boot with {nomerge}, or {debug}=U,NAME for one, to tell their users apart"
            )
        };
        Some(finding.remark(remark))
    }

    fn longest(&self) -> Option<Finding> {
        let snapshot = self.snapshot.as_ref()?;
        let length = |c: &Cache| c.get(Quantity::Partial).map(|f| f.value);
        let cache = snapshot.caches.iter().max_by_key(|c| length(c))?;
        let slabs = length(cache)?;
        let limit = Demand::WALK_LIMIT;
        let over = snapshot.caches.iter().filter(|c| length(c) > Some(limit));
        let remark = match over.count() {
            0 => format!("{}: {slabs} slabs, within the limit of {limit}", cache.name),
            over => format!(
                "{}: {slabs} slabs; {over} caches are over the limit of {limit}: their objects are estimates unless report --exact walks the lists",
                cache.name
            ),
        };
        let gives = "exact counts of objects";
        Some(Finding::new("longest partial list", State::Readable, gives).remark(remark))
    }
}

/// Names in all: a merged cache is known by its links alone.
fn all_names(names: &BTreeMap<String, usize>) -> usize {
    names
        .iter()
        .map(|(id, links)| links + usize::from(!id.starts_with(':')))
        .sum()
}

/// A small sample, where anything can be read.
fn sample(root: &Path) -> Option<Snapshot> {
    let tree = DirTree::trusted(root).ok()?;
    let mut source = KernelSource::live(Box::new(tree));
    let mut demand = Demand::names().with(&[Quantity::Partial, Quantity::SheafCapacity]);
    // A debugged cache has no sheaves in any era: the flags tell which those are.
    demand.flags = Flag::ALL.to_vec();
    source.sample(&demand).ok()
}
