//! `slabctl dump CACHE..`: all that a kernel, running or saved, tells of caches.

use std::io::Write;

use collectors::Error;
use collectors::analysis::sites::{self, By, GroupChange};
use collectors::filter::Filter;
use collectors::model::{Cache, Flag, Flags, SiteKind, Snapshot};
use collectors::source::Demand;
use collectors::source::kernel::raw::{self, RawAttribute};
use collectors::source::tree::{DirTree, Tree};

use crate::cli::{Dump as Args, Format};
use crate::cmd::{Context, report, show, sites as sites_cmd};
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_dump, text};

/// Call sites of a kind that are shown.
const SITES: usize = 20;
/// Flags as letters of `slab_debug`.
const LETTERS: [(Flag, char); 6] = [
    (Flag::SanityChecks, 'F'),
    (Flag::RedZone, 'Z'),
    (Flag::Poison, 'P'),
    (Flag::StoreUser, 'U'),
    (Flag::Trace, 'T'),
    (Flag::Failslab, 'A'),
];

/// A cache with what the model has no place for.
#[derive(Debug)]
pub(crate) struct Dumped<'s> {
    pub(crate) cache: &'s Cache,
    pub(crate) attributes: Vec<RawAttribute>,
    /// `attributes` are files, not only figures of the model.
    pub(crate) read: bool,
    pub(crate) allocated: Vec<GroupChange>,
    pub(crate) freed: Vec<GroupChange>,
    /// Why there are no sites.
    pub(crate) missing: Vec<String>,
}

/// The debug options of a cache as letters; `None` when they are not known.
pub(crate) fn debug_letters(flags: Flags) -> Option<String> {
    let known = LETTERS.iter().any(|(flag, _)| flags.get(*flag).is_some());
    let set = LETTERS.iter().filter(|(flag, _)| flags.is_set(*flag));
    let letters: String = set.map(|(_, letter)| letter).collect();
    let none = || "-".to_owned();
    known.then(|| if letters.is_empty() { none() } else { letters })
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    if args.patterns.is_empty() {
        return Err(Failure::usage("dump needs a cache, or --demo")
            .hint("slabctl dump dentry; slabctl report --names lists every name")
            .into());
    }
    if args.slabs.is_some() || args.objects || args.object.is_some() {
        let error = "dump: a kernel shows no single slabs or objects: --slabs, --objects and --object go with --demo";
        return Err(Failure::usage(error).into());
    }
    let mut source = open::source(&context.global)?;
    let names = source.sample(&Demand::names()).map_err(open::with_hints)?;
    let chosen = chosen(&names, &args.patterns)?;
    let mut demand = Demand::everything();
    demand.sites = true;
    demand.only = Some(chosen);
    let snapshot = source.sample(&demand).map_err(open::with_hints)?;
    let tree = tree(context)?;
    let one = |cache| dumped(cache, &snapshot, tree.as_deref());
    let list: Vec<_> = snapshot.caches.iter().map(one).collect();
    let Some(first) = list.first() else {
        let error = "dump: the cache went away while it was read";
        return Err(Failure::new(Status::Failed, error).into());
    };
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => json::write(&mut out, &json_dump::of_kernel(&snapshot, &list))?,
        Format::Csv | Format::Md => report::write_table(context, &rows(&list), &mut out)?,
        _ => pages(context, args, &list, &mut out)?,
    }
    out.flush()?;
    if !first.read {
        context.note("this source has no attribute files: these are its figures");
    }
    for line in list.iter().flat_map(|one| &one.missing) {
        context.note(&text::safe(line));
    }
    let shown: Vec<_> = list.iter().map(|one| one.cache).collect();
    open::say_warnings_about(&context.global, &snapshot, &shown);
    Ok(Status::Ok)
}

/// The directories of the caches that were named, or that fit a pattern.
fn chosen(names: &Snapshot, patterns: &[String]) -> Result<Vec<String>, Failure> {
    let mut list = Vec::new();
    for pattern in patterns {
        let filter = Filter::patterns(&[pattern])?;
        let fits = |cache: &&Cache| {
            cache.names().any(|name| filter.accepts_name(name))
                || cache.sysfs_id.as_deref() == Some(pattern)
        };
        let before = list.len();
        let fitting = names.caches.iter().filter(fits);
        list.extend(
            fitting.map(|cache| cache.sysfs_id.as_deref().unwrap_or(&cache.name).to_owned()),
        );
        if list.len() == before {
            return Err(show::no_such(names, pattern));
        }
    }
    Ok(list)
}

/// The files of the source; `None` when it is none of files.
fn tree(context: &Context) -> Result<Option<Box<dyn Tree>>, Failure> {
    let global = &context.global;
    if let Some(path) = &global.from {
        return raw::capture_tree(path).map_err(open::with_hints);
    }
    let root = global.root.as_deref().unwrap_or("/".as_ref());
    let tree = DirTree::trusted(root).map_err(|e| open::with_hints(Error::from_io(root, e)))?;
    Ok(Some(Box::new(tree)))
}

fn dumped<'s>(cache: &'s Cache, snapshot: &Snapshot, tree: Option<&dyn Tree>) -> Dumped<'s> {
    let id = cache.sysfs_id.as_deref();
    let files = id.and_then(|id| raw::attributes(tree?, id));
    let read = files.is_some();
    let group = |kind| {
        let groups = sites::group(cache, kind, By::Stack);
        groups.into_iter().map(sites_cmd::unchanged).collect()
    };
    let (allocated, freed): (Vec<_>, Vec<_>) = (group(SiteKind::Alloc), group(SiteKind::Free));
    let missing = if allocated.is_empty() && freed.is_empty() {
        sites::why_none(snapshot, &[cache], Some(&cache.name))
    } else {
        Vec::new()
    };
    Dumped {
        cache,
        attributes: files.unwrap_or_else(|| raw::from_model(cache)),
        read,
        allocated,
        freed,
        missing,
    }
}

fn pages(
    context: &Context,
    args: &Args,
    list: &[Dumped<'_>],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    for (number, one) in list.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        show::title(one.cache, out)?;
        let names: Vec<_> = one.cache.names().skip(1).collect();
        if !names.is_empty() {
            writeln!(out, "  shared with {}", text::safe(&names.join(", ")))?;
        }
        if let Some(letters) = debug_letters(one.cache.flags) {
            writeln!(out, "  debug options {letters}")?;
        }
        writeln!(out)?;
        show::aligned(context, &attributes(one), out)?;
        show::numa(context, one.cache, out)?;
        show::cpus(context, one.cache, out)?;
        let scale = context.global.scale();
        for (title, sites) in [
            ("allocated by", &one.allocated),
            ("last freed by", &one.freed),
        ] {
            if sites.is_empty() {
                continue;
            }
            writeln!(out, "\n{title}")?;
            let shown = args.top.unwrap_or(SITES);
            for site in sites.iter().take(shown) {
                sites_cmd::lines::line(site, false, false, scale, out)?;
            }
            if let Some(more) = sites.len().checked_sub(shown).filter(|n| *n > 0) {
                writeln!(out, "    {more} more not shown (--top)")?;
            }
        }
    }
    Ok(())
}

/// Without the counters, which are shown per CPU.
fn attributes(one: &Dumped<'_>) -> Table {
    let mut table = Table::new(vec![
        Head::left("Attribute"),
        Head::left("Value"),
        Head::left("Meaning"),
    ]);
    for attribute in one.attributes.iter().filter(|a| !a.counter) {
        table.row(vec![
            Cell::text(&*attribute.name),
            value(attribute),
            meaning(attribute),
        ]);
    }
    table
}

fn value(attribute: &RawAttribute) -> Cell {
    match (&attribute.value, &attribute.error) {
        (Some(value), _) => Cell::text(value.replace('\n', " / ")),
        (None, Some(error)) => Cell::text(format!("- ({error})")),
        (None, None) => Cell::missing(),
    }
}

fn meaning(attribute: &RawAttribute) -> Cell {
    Cell::text(attribute.meaning.unwrap_or("not known to this program"))
}

/// One line an attribute, for machines.
fn rows(list: &[Dumped<'_>]) -> Table {
    let mut table = Table::new(vec![
        Head::left("Cache"),
        Head::left("Attribute"),
        Head::left("Value"),
        Head::left("Meaning"),
    ]);
    for one in list {
        for attribute in &one.attributes {
            table.row(vec![
                Cell::text(&*one.cache.name),
                Cell::text(&*attribute.name),
                value(attribute),
                meaning(attribute),
            ]);
        }
    }
    table
}
