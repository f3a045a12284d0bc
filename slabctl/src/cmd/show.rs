//! `slabctl show CACHE`: everything known about one cache, on one page.

mod parts;

use std::io::Write;

use collectors::analysis::{Usage, groups};
use collectors::columns::{self, Column, Row, Value};
use collectors::model::{
    Approx, Cache, CounterId, Ctor, Flag, Layer, Occupancy, Quantity, SiteKind, Snapshot, Unit,
};
use collectors::similar;
use collectors::source::{Demand, Source};

pub(super) use parts::{aligned, cpus, numa};

use super::report::tracking;
use super::{Context, cells, report};
use crate::cli::{Format, Section, Show};
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, jsonl, text};

const SECTIONS: [Section; 5] = [
    Section::Info,
    Section::Aliases,
    Section::Numa,
    Section::Cpus,
    Section::Sites,
];

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Show) -> anyhow::Result<Status> {
    let mut demand = Demand::everything();
    demand.exact = args.exact;
    demand.sites = true;
    demand.only = Some(vec![args.cache.clone()]);
    let mut source = open::source(&context.global)?;
    let snapshot = source.sample(&demand).map_err(open::with_hints)?;
    let caches: Vec<&Cache> = snapshot.named(&args.cache).collect();
    if caches.is_empty() {
        return Err(why_nothing(&mut *source, &demand, &args.cache).into());
    }
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => {
            let now = source.is_live().then(jiff::Timestamp::now);
            json::write(&mut out, &json::report(&snapshot, &caches, now))?;
        }
        Format::Jsonl => jsonl::write(&mut out, &caches, snapshot.system.page_size)?,
        Format::Csv | Format::Md => {
            report::write_table(context, &figures(context, &snapshot, &caches), &mut out)?;
        }
        Format::Table => {
            let sections = if args.section.is_empty() {
                &SECTIONS[..]
            } else {
                &args.section
            };
            pages(context, &snapshot, &caches, sections, &mut out)?;
        }
    }
    out.flush()?;
    open::say_warnings_about(&context.global, &snapshot, &caches);
    Ok(Status::Ok)
}

/// Without rights the names can be listed, or not even they; the failure is
/// then that of a report on all caches.
pub(super) fn why_nothing(source: &mut dyn Source, demand: &Demand, name: &str) -> Failure {
    let all = match source.sample(&Demand::names()) {
        Ok(all) => all,
        Err(error) => return open::with_hints(error),
    };
    if all.named(name).next().is_none() {
        return no_such(&all, name);
    }
    let everything = Demand {
        only: None,
        ..demand.clone()
    };
    match source.sample(&everything) {
        Err(error) => open::with_hints(error),
        Ok(_) => Failure::new(
            Status::Failed,
            format!("{name:?} went away while it was read"),
        ),
    }
}

pub(super) fn no_such(all: &Snapshot, name: &str) -> Failure {
    let failure = Failure::new(
        Status::NoSuchCache,
        format!("no cache, alias or sysfs id {name:?}"),
    );
    let names = all.caches.iter().flat_map(Cache::names);
    let near = similar::closest(name, names);
    if near.is_empty() {
        failure.hint("slabctl report --names lists every name")
    } else {
        let near = text::safe(&near.join(", ")).into_owned();
        failure.hint(format!("did you mean {near}?"))
    }
}

/// `slabctl report --detail`: the info page of every cache.
pub(crate) fn details(
    context: &Context,
    snapshot: &Snapshot,
    caches: &[&Cache],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    if matches!(context.global.format(), Format::Csv | Format::Md) {
        return report::write_table(context, &figures(context, snapshot, caches), out);
    }
    let sections = [
        Section::Info,
        Section::Aliases,
        Section::Numa,
        Section::Cpus,
    ];
    pages(context, snapshot, caches, &sections, out)
}

fn pages(
    context: &Context,
    snapshot: &Snapshot,
    caches: &[&Cache],
    sections: &[Section],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    for (number, cache) in caches.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        title(cache, out)?;
        for section in sections {
            match section {
                Section::Info => info(context, snapshot, cache, out)?,
                Section::Aliases => aliases(cache, out)?,
                Section::Numa => numa(context, cache, out)?,
                Section::Cpus => cpus(context, cache, out)?,
                Section::Sites => sites(cache, out)?,
            }
        }
    }
    Ok(())
}

pub(super) fn title(cache: &Cache, out: &mut impl Write) -> anyhow::Result<()> {
    write!(out, "{}", text::safe(&cache.name))?;
    if let Some(id) = cache.sysfs_id.as_deref().filter(|id| *id != &*cache.name) {
        write!(out, "  ({})", text::safe(id))?;
    }
    if let Some(cgroup) = &cache.cgroup {
        write!(out, "  cgroup {}", text::safe(cgroup))?;
    }
    writeln!(out)?;
    Ok(())
}

/// Every figure with its meaning and origin, one line each.
fn figures(context: &Context, snapshot: &Snapshot, caches: &[&Cache]) -> Table {
    let scale = context.global.scale();
    let mut table = Table::new(vec![
        Head::left("Cache"),
        Head::left("Figure"),
        Head::right("Value"),
        Head::left("From"),
        Head::left("Meaning"),
    ]);
    for cache in caches {
        let row = Row::new(cache, snapshot.system.page_size);
        for column in columns::all() {
            let value = column.value(&row);
            if value == Value::Missing || matches!(column.key, "name" | "source") {
                continue;
            }
            table.row(vec![
                Cell::text(&*cache.name),
                Cell::text(column.key),
                cells::cell(column, &row, scale),
                Cell::text(origin(cache, column)),
                Cell::text(column.doc),
            ]);
        }
    }
    table
}

fn origin(cache: &Cache, column: &Column) -> &'static str {
    let quantity = Quantity::ALL.iter().find(|q| q.name() == column.key);
    match quantity.and_then(|q| cache.origin(*q)) {
        Some(layer) => layer.name(),
        // Text is read, not computed; only the best layer can have it.
        None if column.unit == Unit::Text => cache.layers.iter().next().map_or("", Layer::name),
        None if CounterId::ALL.iter().any(|id| id.name() == column.key) => {
            let engine = cache.layers.contains(Layer::Engine);
            if engine { Layer::Engine } else { Layer::Sysfs }.name()
        }
        None => "computed",
    }
}

fn info(
    context: &Context,
    snapshot: &Snapshot,
    cache: &Cache,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let scale = context.global.scale();
    let row = Row::new(cache, snapshot.system.page_size);
    let show = |key: &str| {
        let column = columns::find(key).filter(|c| c.value(&row) != Value::Missing)?;
        Some(cells::cell(column, &row, scale).shown().to_owned())
    };
    let groups: [(&str, &[(&str, &str)]); 4] = [
        (
            "Objects",
            &[
                ("in use", "objects"),
                ("room for", "total_objects"),
                ("%Use", "object_use"),
                ("on partial", "objects_partial"),
                ("size", "object_size"),
                ("slot", "slab_size"),
                ("align", "align"),
                ("usercopy", "usersize"),
            ],
        ),
        (
            "Slabs",
            &[
                ("held", "slabs"),
                ("partial", "partial"),
                ("cpu", "cpu_slabs"),
                ("cpu partial", "slabs_cpu_partial"),
                ("free objects there", "objects_cpu_partial"),
                ("objects each", "objs_per_slab"),
                ("order", "order"),
            ],
        ),
        (
            "Memory",
            &[
                ("held", "memory"),
                ("used", "used"),
                ("loss", "loss"),
                ("slack", "slack"),
                ("free", "free"),
                ("padding", "padding"),
                ("%Ef", "utilization"),
            ],
        ),
        (
            "Limits",
            &[
                ("min_partial", "min_partial"),
                ("cpu_partial", "cpu_partial"),
                ("sheaf_capacity", "sheaf_capacity"),
                ("defrag_ratio", "remote_node_defrag_ratio"),
            ],
        ),
    ];
    let mut unknown = Vec::new();
    for (name, figures) in groups {
        let mut parts = Vec::new();
        for (label, key) in figures {
            match show(key) {
                Some(figure) => parts.push(format!("{label} {figure}")),
                // A share of nothing is not a figure that is missing.
                None if label.starts_with('%') => {}
                None => unknown.push(*key),
            }
        }
        if !parts.is_empty() {
            writeln!(out, "  {name:<8} {}", parts.join(", "))?;
        }
    }
    if !unknown.is_empty() {
        writeln!(out, "  Unknown  {}", unknown.join(", "))?;
    }
    if let Some(of) = &cache.occupancy {
        occupancy(of, out)?;
    }
    flags(cache, out)?;
    if let Ctor::Symbol(symbol) = &cache.ctor {
        writeln!(out, "  Ctor     {}", text::safe(symbol))?;
    }
    remarks(cache, &row.usage, snapshot, out)?;
    let from: Vec<&str> = cache
        .layers
        .iter()
        .map(collectors::model::Layer::name)
        .collect();
    writeln!(out, "  From     {}", from.join(", "))?;
    Ok(())
}

/// Slabs by how full they are, without the shares that no slab has.
fn occupancy(of: &Approx<Occupancy>, out: &mut impl Write) -> anyhow::Result<()> {
    let label = |bucket: usize| match bucket {
        0 => "empty".to_owned(),
        11 => "full".to_owned(),
        tenth => format!("under {}%", tenth * 10),
    };
    let counts = of.value.0.iter().enumerate().filter(|(_, n)| **n > 0);
    let parts: Vec<String> = counts
        .map(|(bucket, n)| format!("{} {n}", label(bucket)))
        .collect();
    if !parts.is_empty() {
        let mark = if of.approx { "~" } else { "" };
        writeln!(out, "  Filling  {mark}{}", parts.join(", "))?;
    }
    Ok(())
}

fn flags(cache: &Cache, out: &mut impl Write) -> anyhow::Result<()> {
    if cache.flags.is_unknown() {
        writeln!(out, "  Flags    - (not in this source)")?;
        return Ok(());
    }
    let known = |wanted: Option<bool>| {
        let flags = Flag::ALL.iter().filter(|f| cache.flags.get(**f) == wanted);
        flags.map(|f| f.name()).collect::<Vec<_>>().join(" ")
    };
    let (set, unknown) = (known(Some(true)), known(None));
    let set = if set.is_empty() { "none" } else { &set };
    write!(out, "  Flags    {set}")?;
    if !unknown.is_empty() {
        write!(out, "  (unknown: {unknown})")?;
    }
    writeln!(out)?;
    Ok(())
}

/// What a reader should know about these figures.
fn remarks(
    cache: &Cache,
    usage: &Usage,
    snapshot: &Snapshot,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut remarks = Vec::new();
    if let Some(parked) = cache.get(Quantity::Parked) {
        remarks.push(format!(
            "{}{} more are free and parked near CPUs; the kernel's files count those as in use",
            if parked.approx { "~" } else { "" },
            parked.value
        ));
    }
    if let Some(parked) = parked_at_most(cache, snapshot) {
        remarks.push(format!(
            "objects in use include free ones parked near CPUs: at most {parked}"
        ));
    }
    if let Some(deficit) = usage.fallback_deficit.filter(|d| d.get() > 0) {
        remarks.push(format!(
            "slabs of a smaller fallback order are among these ({deficit} objects fewer than slabs x objects each): memory is an upper bound"
        ));
    }
    if let Some(class) = groups::kmalloc_class(&cache.name) {
        remarks.push(format!(
            "a kmalloc cache: any code may own these objects of up to {} bytes",
            class.size
        ));
    }
    for remark in remarks {
        writeln!(out, "  Note     {remark}")?;
    }
    Ok(())
}

/// Upper bound of free objects that `objects` counts as in use: sheaves and
/// barns hold `capacity * (3 * cpus + 10 * nodes)` at the most (mm/slub.c,
/// Linux 6.18: main, spare and rcu_free sheaf, ten full ones in a barn); CPU
/// slabs and CPU partial lists hold less than their slabs' objects.
fn parked_at_most(cache: &Cache, snapshot: &Snapshot) -> Option<u64> {
    if matches!(
        cache.origin(Quantity::Objects),
        Some(Layer::Engine | Layer::Bpf)
    ) {
        // They count only what is really in use.
        return None;
    }
    let value = |q| cache.get(q).map(|f| f.value);
    let sheaves = || {
        let capacity = value(Quantity::SheafCapacity).filter(|c| *c > 0)?;
        let cpus = u64::from(snapshot.system.cpus?);
        let nodes = u64::from(snapshot.system.nodes?);
        capacity.checked_mul(cpus.checked_mul(3)?.checked_add(nodes.checked_mul(10)?)?)
    };
    let slabs = || value(Quantity::CpuSlabs)?.checked_mul(value(Quantity::ObjsPerSlab)?);
    let bound = sheaves().unwrap_or(0).saturating_add(slabs().unwrap_or(0));
    let bound = bound.min(value(Quantity::Objects)?);
    (bound > 0).then_some(bound)
}

fn aliases(cache: &Cache, out: &mut impl Write) -> anyhow::Result<()> {
    match &cache.aliases {
        None => writeln!(out, "  Aliases  - (not in this source)")?,
        Some(list) if list.is_empty() => {
            let why = match cache.is_mergeable() {
                Some(true) => "none; others may be merged into it",
                _ => "none",
            };
            writeln!(out, "  Aliases  {why}")?;
        }
        Some(list) => {
            writeln!(out, "  Aliases  {}", text::safe(&list.join(" ")))?;
            writeln!(
                out,
                "  Note     these names share the cache: its objects may be of any of them; boot with slab_nomerge (slub_nomerge before 6.9), or slab_debug=U,NAME for one, to tell them apart"
            )?;
        }
    }
    Ok(())
}

fn sites(cache: &Cache, out: &mut impl Write) -> anyhow::Result<()> {
    let Some(sites) = &cache.sites else {
        let why = if cache.flags.is_set(Flag::StoreUser) {
            "recorded, but not in this source; slabctl capture --traces saves them".to_owned()
        } else if cache.layers.contains(Layer::Engine) {
            "kept in caches that are debugged with U".to_owned()
        } else {
            let name = text::safe(&cache.name);
            format!("not recorded; boot with slab_debug=U,{name} to have them")
        };
        writeln!(out, "  Sites    - ({why})")?;
        return Ok(());
    };
    tracking::section(sites, SiteKind::Alloc, "allocated by", out)?;
    tracking::section(sites, SiteKind::Free, "last freed by", out)?;
    Ok(())
}
