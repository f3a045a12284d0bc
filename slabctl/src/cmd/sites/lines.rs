//! Call sites for people, and as a table for machines.

use std::io::Write;

use collectors::analysis::sites::GroupChange;
use collectors::units::Scale;

use super::CacheSites;
use crate::output::table::{Cell, Head, Table};
use crate::output::text;

/// A heading a cache, a line a site, its stack below it.
pub(super) fn pages(
    list: &[CacheSites],
    differs: bool,
    estimates: bool,
    scale: Scale,
    out: &mut impl Write,
) -> std::io::Result<()> {
    for (number, cache) in list.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", text::safe(&cache.names.join(", ")))?;
        for change in &cache.groups {
            line(change, differs, estimates, scale, out)?;
        }
        if cache.cut > 0 {
            writeln!(out, "    {} more not shown (--top)", cache.cut)?;
        }
    }
    Ok(())
}

pub(crate) fn line(
    change: &GroupChange,
    differs: bool,
    estimates: bool,
    scale: Scale,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let group = &change.group;
    let symbol = text::safe(group.symbol.as_deref().unwrap_or("<not-available>"));
    if differs {
        let (before, after) = (change.before, change.after);
        write!(
            out,
            "  {:>+10} {symbol}  ({before} to {after})",
            change.delta
        )?;
    } else {
        let mark = if estimates { "~" } else { "" };
        write!(out, "  {:>10} {symbol}", format!("{mark}{}", group.count))?;
    }
    for detail in group.details(scale) {
        write!(out, "  {detail}")?;
    }
    writeln!(out)?;
    for frame in &group.stack {
        writeln!(out, "                 {}", text::safe(frame))?;
    }
    Ok(())
}

/// One line a site, for machines.
pub(super) fn table(list: &[CacheSites], differs: bool) -> Table {
    let mut heads = vec![
        Head::left("Cache"),
        Head::left("Symbol"),
        Head::right("Count"),
    ];
    if differs {
        heads.extend([Head::right("Before"), Head::right("Delta")]);
    }
    heads.extend([
        Head::right("Bytes"),
        Head::right("Waste"),
        Head::right("Age min").key("age_min"),
        Head::right("Age mean").key("age_mean"),
        Head::right("Age max").key("age_max"),
        Head::right("Pinned bytes").key("pinned_bytes"),
        Head::right("Stacks"),
        Head::left("Stack"),
    ]);
    let mut table = Table::new(heads);
    for cache in list {
        for change in &cache.groups {
            table.row(row(&cache.name, change, differs));
        }
    }
    table
}

fn row(cache: &str, change: &GroupChange, differs: bool) -> Vec<Cell> {
    let number = |n: Option<u64>| n.map_or_else(Cell::missing, |n| Cell::text(n.to_string()));
    let group = &change.group;
    let symbol = group.symbol.as_deref();
    let mut row = vec![
        Cell::text(cache),
        symbol.map_or_else(Cell::missing, Cell::text),
        Cell::text(change.after.to_string()),
    ];
    if differs {
        row.push(Cell::text(change.before.to_string()));
        row.push(Cell::text(change.delta.to_string()));
    }
    row.extend([
        number(group.bytes),
        number(group.waste),
        number(group.age.map(|age| age.0)),
        number(group.age.map(|age| age.1)),
        number(group.age.map(|age| age.2)),
        number(group.pinned.map(|of| of.bytes)),
        Cell::text(group.stacks.to_string()),
        Cell::text(group.stack.join(" < ")),
    ]);
    row
}
