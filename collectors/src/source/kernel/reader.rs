//! Reads the attribute files of one cache, no more than is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::attributes::{self, ATTRIBUTES, Attribute, Cost, Form, Stored};
use super::entries::CacheDir;
use super::id;
use crate::model::{
    Approx, Cache, CacheId, Layer, Quantity, QuantitySet, Warning, WarningCode, Warnings,
};
use crate::source::Demand;
use crate::source::tree::{Keep, Tree};

/// What the reader may leave out, and how it treats long lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) demand: &'a Demand,
    /// Figures that /proc/slabinfo has given already.
    pub(super) given: QuantitySet,
    /// A live kernel: files cost something, lists are walked with care.
    pub(super) live: bool,
    /// The row was counted on the lists themselves, with every part: no file
    /// can add to what is given.
    pub(super) walked: bool,
}

/// What one reading of a cache came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Something was read.
    Read,
    /// Nothing was to be read.
    Nothing,
    /// Every file was gone: the cache went away. In a saved copy: none was there.
    Vanished,
    /// Every file was refused.
    Denied,
}

/// Reads attribute files below one directory of caches.
pub(super) struct Reader<'a> {
    tree: &'a dyn Tree,
    /// Attribute files that caches have here; `None`: unknown.
    available: Option<&'a BTreeSet<String>>,
    /// The attributes to try, those that are not available left out.
    attributes: Vec<Attribute>,
    buf: Vec<u8>,
    path: String,
    /// Lists cut by the kernel: attribute, first cache, how many caches.
    cut: BTreeMap<&'static str, (String, u64)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tree: &'a dyn Tree, available: Option<&'a BTreeSet<String>>) -> Self {
        let has =
            |attribute: &Attribute| available.is_none_or(|names| names.contains(attribute.name));
        let all = ATTRIBUTES.iter().copied().chain(attributes::counters());
        Self {
            tree,
            available,
            attributes: all.filter(has).collect(),
            buf: Vec::new(),
            path: String::new(),
            cut: BTreeMap::new(),
        }
    }

    fn text(&mut self, dir: &str, attribute: &Attribute) -> io::Result<&str> {
        self.path.clear();
        self.path.push_str(dir);
        self.path.push('/');
        self.path.push_str(attribute.name);
        // An open file is itself objects of filp, seq_file and kmalloc caches:
        // who looks must not count a thousand of its own.
        self.tree
            .read_attribute(&self.path, Keep::No, &mut self.buf)?;
        std::str::from_utf8(&self.buf)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not text"))
    }

    /// Reads what the plan asks for into `cache`.
    pub(super) fn read(
        &mut self,
        dir: &CacheDir,
        cache: &mut Cache,
        plan: Plan<'_>,
        warnings: &mut Warnings,
    ) -> Outcome {
        let (mut tried, mut read, mut denied) = (0u32, 0u32, 0u32);
        let told = if plan.live {
            id::tell(&dir.id, cache, self.available)
        } else {
            id::Told::default()
        };
        let mut cut = QuantitySet::EMPTY;
        let mut failed = Vec::new();
        for n in 0..self.attributes.len() {
            let attribute = self.attributes[n];
            if told.has(&attribute) || !wanted(&attribute, plan, cache) {
                continue;
            }
            tried += 1;
            match self.text(&dir.id, &attribute) {
                Ok(text) => {
                    read += 1;
                    let stored = store_text(dir, cache, &attribute, text, plan, warnings);
                    if stored == Stored::Cut {
                        let first = || (dir.id.clone(), 0);
                        self.cut.entry(attribute.name).or_insert_with(first).1 += 1;
                        if let Form::Nodes(q) = attribute.form {
                            cut.insert(q);
                        }
                    }
                }
                Err(error) => {
                    denied += u32::from(error.kind() == io::ErrorKind::PermissionDenied);
                    if plan.live || !is_gone(&error) {
                        failed.push((attribute.name, error));
                    }
                }
            }
        }
        attributes::complete_nodes(cache, cut);
        let outcome = match (tried, read) {
            (0, _) => Outcome::Nothing,
            (_, 0) if denied == tried => Outcome::Denied,
            (_, 0) if failed.iter().all(|(_, e)| is_gone(e)) => Outcome::Vanished,
            _ => Outcome::Read,
        };
        if outcome == Outcome::Read {
            say_failed(dir, &failed, warnings);
        }
        outcome
    }

    /// Names the lists that the kernel cut: with hundreds of processors that
    /// is the rule, so one warning for each attribute.
    pub(super) fn say_cut(&self, warnings: &mut Warnings) {
        for (attribute, (first, caches)) in &self.cut {
            warnings.push(
                Warning::new(
                    WarningCode::NotInSource,
                    format!("the kernel cut the list at the end of a page ({caches} caches): totals are right, nodes and processors incomplete"),
                )
                .in_file(format!("{first}/{attribute}")),
            );
        }
    }
}

fn store_text(
    dir: &CacheDir,
    cache: &mut Cache,
    attribute: &Attribute,
    text: &str,
    plan: Plan<'_>,
    warnings: &mut Warnings,
) -> Stored {
    // A saved tree may hold an empty file where the attribute could not be read.
    if text.is_empty() && attribute.form != Form::Ctor {
        return Stored::Broken;
    }
    let stored = attributes::store(cache, attribute, text);
    if stored == Stored::Broken {
        let shown: String = text.trim_end().chars().take(40).collect();
        warnings.push(
            Warning::new(
                WarningCode::BrokenValue,
                format!("not understood: {shown:?}"),
            )
            .in_file(format!("{}/{}", dir.id, attribute.name)),
        );
    }
    if plan.live && attribute.form == Form::Nodes(Quantity::Partial) {
        without_a_walk(cache);
    }
    stored
}

/// A cache that goes away leaves open files that read as ENODEV.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

/// Names the files of a cache that could not be read, in one warning.
fn say_failed(dir: &CacheDir, failed: &[(&str, io::Error)], warnings: &mut Warnings) {
    let Some(((first, error), rest)) = failed.split_first() else {
        return;
    };
    let code = if failed.iter().all(|(_, e)| is_gone(e)) {
        WarningCode::Vanished
    } else {
        WarningCode::Unreadable
    };
    let more = match rest.len() {
        0 => String::new(),
        more => format!(", and {more} more of its files could not be read"),
    };
    warnings
        .push(Warning::new(code, format!("{error}{more}")).in_file(format!("{}/{first}", dir.id)));
}

/// With an empty partial list nothing has to be walked: every object on it is
/// in use by definition of there being none.
fn without_a_walk(cache: &mut Cache) {
    if cache.partial().is_some_and(|p| p.value.get() == 0) {
        cache.set_exact(Quantity::ObjectsPartial, 0, Layer::Derived);
    }
}

/// Whether this file is to be read for this cache, now.
fn wanted(attribute: &Attribute, plan: Plan<'_>, cache: &Cache) -> bool {
    let demand = plan.demand;
    if !plan.live {
        return demand.counters || !matches!(attribute.form, Form::Counter(_));
    }
    if demand.skip_empty && is_empty(cache) {
        return false;
    }
    if plan.walked && gives_nothing_new(attribute, plan.given) {
        return false;
    }
    match attribute.form {
        Form::Counter(_) => demand.counters,
        Form::Ctor => demand.ctor,
        Form::Flag(flag) => demand.flags.contains(&flag),
        Form::CpuPartial => {
            demand.cpus
                || demand.quantities.contains(Quantity::SlabsCpuPartial)
                || demand.quantities.contains(Quantity::ObjectsCpuPartial)
        }
        // The links tell the aliases.
        Form::Number(Quantity::AliasCount) => false,
        Form::Number(q) => demand.quantities.contains(q) && !plan.given.contains(q),
        Form::Nodes(q) if attribute.cost == Cost::Walk => walk_wanted(q, plan, cache),
        Form::Nodes(Quantity::Partial) => {
            // The length of the list decides how objects are counted.
            let lists = [
                Quantity::Partial,
                Quantity::Objects,
                Quantity::ObjectsPartial,
            ];
            demand.nodes || lists.iter().any(|q| demand.quantities.contains(*q))
        }
        Form::Nodes(q) => {
            (demand.quantities.contains(q) || demand.nodes) && !plan.given.contains(q)
        }
    }
}

fn gives_nothing_new(attribute: &Attribute, given: QuantitySet) -> bool {
    match attribute.form {
        Form::Number(q) | Form::Nodes(q) => given.contains(q),
        Form::CpuPartial => given.contains(Quantity::SlabsCpuPartial),
        Form::Counter(_) | Form::Ctor | Form::Flag(_) => false,
    }
}

/// Its row shows it without slabs.
fn is_empty(cache: &Cache) -> bool {
    let origin = cache.origin(Quantity::Slabs);
    matches!(origin, Some(Layer::Slabinfo | Layer::Bpf))
        && cache.slabs().is_some_and(|s| s.value.get() == 0)
}

/// `objects` and `objects_partial`: not when the answer is known without a
/// walk, and not over the limit unless the caller insists.
fn walk_wanted(q: Quantity, plan: Plan<'_>, cache: &Cache) -> bool {
    let demand = plan.demand;
    if !(demand.quantities.contains(q) || demand.nodes) {
        return false;
    }
    let Some(partial) = cache.partial().map(|p| p.value.get()) else {
        // `partial` could not be read, so the length of the list is unknown.
        return demand.exact;
    };
    if partial == 0 && !demand.nodes {
        return false;
    }
    let within = partial <= demand.walk_limit || demand.exact;
    if plan.given.contains(q) {
        // /proc/slabinfo is exact up to the kernel's own bound.
        return demand.exact || (partial > Demand::WALK_LIMIT && within);
    }
    within
}

/// After everything is read: what follows without another file, and which
/// figures are estimates.
pub(super) fn settle(cache: &mut Cache, plan: Plan<'_>, warnings: &mut Warnings) {
    let partial = cache.partial().map(|p| p.value.get());
    let objects_read = cache.origin(Quantity::Objects);
    match (partial, objects_read) {
        // A saved copy too may lack `objects`: the list was over the limit then.
        (Some(partial), Some(Layer::Slabinfo)) if partial > plan.demand.walk_limit => {
            if let Some(figure) = cache.get(Quantity::Objects) {
                cache.set(
                    Quantity::Objects,
                    Approx::estimate(figure.value),
                    Layer::Slabinfo,
                );
            }
        }
        _ if !plan.live => {}
        (Some(0), None) => {
            if let Some(total) = cache.get(Quantity::TotalObjects) {
                cache.set(Quantity::Objects, total, Layer::Derived);
            }
        }
        // Within the limit they were read, and what went wrong was said there.
        (Some(partial), None)
            if plan.demand.quantities.contains(Quantity::Objects)
                && partial > plan.demand.walk_limit
                && !plan.demand.exact =>
        {
            warnings.push(Warning::new(
                WarningCode::NotInSource,
                format!(
                    "{}: objects not counted: {partial} partial slabs are over the limit of {} (--exact walks them)",
                    cache.name, plan.demand.walk_limit
                ),
            ));
        }
        _ => {}
    }
}

/// An empty cache for a directory, named after it until a better name is known.
pub(super) fn blank(dir: &CacheDir) -> Cache {
    let mut cache = Cache::new(CacheId::default(), dir.fallback_name());
    cache.sysfs_id = Some(dir.id.as_str().into());
    set_names(&mut cache, dir);
    cache
}

/// The aliases are all names of the directory but the shown one.
pub(super) fn set_names(cache: &mut Cache, dir: &CacheDir) {
    let shown = cache.name.clone();
    let own = (!dir.id.starts_with(':')).then_some(dir.id.as_str());
    cache.aliases = Some(
        own.into_iter()
            .chain(dir.links.iter().map(String::as_str))
            .filter(|name| **name != *shown)
            .map(Into::into)
            .collect(),
    );
}
