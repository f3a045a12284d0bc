//! Call sites: who allocated and freed the objects that are in use.

use std::io::Write;

use collectors::columns::Row;
use collectors::model::{CallSite, Flag, Layer, SiteKind};

use crate::cli::Format;
use crate::cmd::Context;
use crate::cmd::select::Chosen;
use crate::output::table::{Cell, Head, Table};
use crate::output::text;

/// Every cache that has call sites, and what to do when none has.
pub(super) fn write(
    context: &Context,
    limit: Option<usize>,
    chosen: &Chosen<'_>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let tracked: Vec<(&str, &[CallSite])> = chosen
        .rows
        .iter()
        .filter_map(|row| Some((&*row.cache.name, row.cache.sites.as_ref()?.as_slice())))
        .take(limit.unwrap_or(usize::MAX))
        .collect();
    if matches!(context.global.format(), Format::Csv | Format::Md) {
        super::write_table(context, &table(&tracked), out)?;
    } else {
        for (name, sites) in &tracked {
            writeln!(out, "{}", text::safe(name))?;
            section(sites, SiteKind::Alloc, "allocated by", out)?;
            section(sites, SiteKind::Free, "last freed by", out)?;
        }
    }
    out.flush()?;
    if !tracked.is_empty() {
        return Ok(());
    }
    let recorded = |row: &Row<'_>| row.cache.flags.is_set(Flag::StoreUser);
    let of_engine = |row: &Row<'_>| row.cache.layers.contains(Layer::Engine);
    context.note(if chosen.rows.iter().any(recorded) {
        "call sites are recorded, but not in this source: slabctl capture --traces saves them"
    } else if chosen.rows.iter().any(of_engine) {
        "no call sites here: an engine keeps them in caches that it debugs with U (SLABCORE_DEBUG=U), and a file of its last figures has none"
    } else {
        "no call sites here: caches record them only when booted with slab_debug=U (or slab_debug=U,CACHE)"
    });
    Ok(())
}

/// One line a site, for machines.
fn table(tracked: &[(&str, &[CallSite])]) -> Table {
    let mut table = Table::new(vec![
        Head::left("Cache"),
        Head::left("Kind"),
        Head::right("Count"),
        Head::left("Symbol"),
        Head::right("Waste"),
        Head::right("Age min").key("age_min"),
        Head::right("Age mean").key("age_mean"),
        Head::right("Age max").key("age_max"),
        Head::left("Stack"),
    ]);
    let number = |n: Option<u64>| n.map_or_else(Cell::missing, |n| Cell::text(n.to_string()));
    for (name, sites) in tracked {
        for site in *sites {
            table.row(vec![
                Cell::text(*name),
                Cell::text(match site.kind {
                    SiteKind::Alloc => "alloc",
                    SiteKind::Free => "free",
                }),
                Cell::text(site.count.to_string()),
                site.symbol
                    .as_deref()
                    .map_or_else(Cell::missing, Cell::text),
                number(site.waste.map(|(all, _)| all)),
                number(site.age.map(|age| age.0)),
                number(site.age.map(|age| age.1)),
                number(site.age.map(|age| age.2)),
                Cell::text(site.stack.join(" < ")),
            ]);
        }
    }
    table
}

/// One kind of sites of a cache, most objects first as the kernel lists them.
pub(crate) fn section(
    sites: &[CallSite],
    kind: SiteKind,
    title: &str,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut sites = sites.iter().filter(|s| s.kind == kind).peekable();
    if sites.peek().is_none() {
        return writeln!(out, "  {title}: nothing recorded");
    }
    writeln!(out, "  {title}:")?;
    for site in sites {
        let symbol = site.symbol.as_deref().unwrap_or("<not-available>");
        write!(out, "    {:>8} {}", site.count, text::safe(symbol))?;
        if let Some((all, each)) = site.waste {
            write!(out, " waste={all}/{each}")?;
        }
        if let Some((min, mean, max)) = site.age {
            write!(out, " age={min}/{mean}/{max}")?;
        }
        match site.pids {
            Some((low, high)) if low == high => write!(out, " pid={low}")?,
            Some((low, high)) => write!(out, " pid={low}-{high}")?,
            None => {}
        }
        writeln!(out)?;
        for frame in &site.stack {
            writeln!(out, "               {}", text::safe(frame))?;
        }
    }
    Ok(())
}
