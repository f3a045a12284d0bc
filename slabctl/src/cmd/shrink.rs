//! `slabctl shrink CACHE..`: gives empty slabs back, and shows what came of it.

use std::io::Write as _;

use collectors::control::{CacheDir, Control};
use collectors::model::{Cache, Quantity, Snapshot};
use collectors::source::kernel::KernelSource;
use collectors::source::tree::DirTree;
use collectors::source::{Demand, Source as _};
use collectors::{Error, columns};

use super::{Context, report};
use crate::cli::{Format, Shrink as Args};
use crate::fail::{Failure, Status};
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_shrink};
use crate::{ask, open};

/// What is compared.
pub(crate) const FIGURES: [Quantity; 4] = [
    Quantity::Slabs,
    Quantity::Partial,
    Quantity::Objects,
    Quantity::TotalObjects,
];

/// A cache before and after.
#[derive(Debug)]
pub(crate) struct Shrunk {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) before: [Option<u64>; 4],
    pub(crate) after: [Option<u64>; 4],
    pub(crate) memory: [Option<u64>; 2],
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    no_lines(context, "shrink")?;
    let control = live(context, "shrink")?;
    let caches = find(&control, &args.caches)?;
    let names: Vec<_> = args.caches.iter().map(String::as_str).collect();
    let question = format!(
        "shrink {}: flushes the cache's slabs from every CPU and holds its list lock while it sorts the partial slabs.",
        names.join(", ")
    );
    if !ask::go_on(&question, args.yes)? {
        context.note("nothing was changed");
        return Ok(Status::Failed);
    }
    let before = sample(context)?;
    for cache in &caches {
        cache.shrink().map_err(open::with_hints)?;
    }
    let after = sample(context)?;
    let list = compare(&args.caches, &caches, &before, &after);
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => {
            let document = json_shrink::document(&after, &list, jiff::Timestamp::now());
            json::write(&mut out, &document)?;
        }
        _ => report::write_table(context, &table(context, &list), &mut out)?,
    }
    out.flush()?;
    Ok(Status::Ok)
}

/// Said before anything is changed.
pub(super) fn no_lines(context: &Context, command: &str) -> Result<(), Failure> {
    if context.global.format() == Format::Jsonl {
        return Err(Failure::usage(format!(
            "{command} has no json lines; use --json"
        )));
    }
    Ok(())
}

/// The machine's caches; a saved file and the demonstration have none to write to.
pub(super) fn live(context: &Context, command: &str) -> Result<Control, Failure> {
    let global = &context.global;
    if global.from.is_some() || open::has_engine(global) {
        let error = format!(
            "{command} changes a running kernel; --from, --demo, --pid and --core are none"
        );
        return Err(Failure::usage(error));
    }
    let root = global.root.as_deref().unwrap_or("/".as_ref());
    Ok(Control::of(root))
}

/// All of them, or an error that names the first that is not there.
pub(super) fn find(control: &Control, names: &[String]) -> Result<Vec<CacheDir>, Failure> {
    let found = |name: &String| match control.find(name) {
        Ok(Some(cache)) => Ok(cache),
        Ok(None) => Err(
            Failure::new(Status::NoSuchCache, format!("no cache is named {name:?}"))
                .hint("slabctl report --names lists all names"),
        ),
        Err(error) => Err(open::with_hints(error)),
    };
    names.iter().map(found).collect()
}

fn sample(context: &Context) -> Result<Snapshot, Failure> {
    let root = context.global.root.as_deref().unwrap_or("/".as_ref());
    let tree = DirTree::trusted(root).map_err(|e| Error::from_io(root, e))?;
    let mut demand = Demand::names();
    for key in ["memory", "partial", "objects", "total_objects"] {
        if let Some(column) = columns::find(key) {
            column.ask(&mut demand);
        }
    }
    let sample = KernelSource::live(Box::new(tree)).sample(&demand);
    sample.map_err(open::with_hints)
}

fn compare(
    names: &[String],
    dirs: &[CacheDir],
    before: &Snapshot,
    after: &Snapshot,
) -> Vec<Shrunk> {
    let figures = |snapshot: &Snapshot, id: &str| {
        let cache = cache_of(snapshot, id);
        let memory = cache.and_then(|c| {
            let usage = collectors::analysis::Usage::of(c, snapshot.system.page_size);
            usage.memory.map(|m| m.value.get())
        });
        let of = |q| cache?.get(q).map(|f| f.value);
        (FIGURES.map(of), memory)
    };
    names
        .iter()
        .zip(dirs)
        .map(|(name, dir)| {
            let (old, held) = figures(before, &dir.id);
            let (new, holds) = figures(after, &dir.id);
            Shrunk {
                name: name.clone(),
                id: dir.id.clone(),
                before: old,
                after: new,
                memory: [held, holds],
            }
        })
        .collect()
}

fn cache_of<'s>(snapshot: &'s Snapshot, id: &str) -> Option<&'s Cache> {
    let is = |c: &&Cache| c.sysfs_id.as_deref().unwrap_or(&c.name) == id;
    snapshot.caches.iter().find(is)
}

fn table(context: &Context, list: &[Shrunk]) -> Table {
    let mut table = Table::new(vec![
        Head::left("Name"),
        Head::right("Slabs before").key("slabs_before"),
        Head::right("after").key("slabs_after"),
        Head::right("Partial before").key("partial_before"),
        Head::right("after").key("partial_after"),
        Head::right("Memory before").key("memory_before"),
        Head::right("after").key("memory_after"),
    ]);
    let count = |n: Option<u64>| n.map_or_else(Cell::missing, |n| Cell::text(n.to_string()));
    let size = |n: Option<u64>| {
        n.map_or_else(Cell::missing, |n| {
            let shown = collectors::units::size(n, context.global.scale());
            Cell::both(shown, n.to_string())
        })
    };
    for one in list {
        table.row(vec![
            Cell::text(&*one.name),
            count(one.before[0]),
            count(one.after[0]),
            count(one.before[1]),
            count(one.after[1]),
            size(one.memory[0]),
            size(one.memory[1]),
        ]);
    }
    table
}
