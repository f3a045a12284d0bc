//! Slabs on each node: a table of caches, or a block in the report.

use std::collections::BTreeSet;
use std::io::{self, Write};

use collectors::model::{Cache, NodePart, Slabs, Snapshot};

use super::row::{Row, scaled_cell};

/// Nodes up to this number get a column even when no cache has slabs there.
const CONTIGUOUS: u32 = 1024;

/// The nodes of a machine, in order; empty when the source tells of none.
pub(crate) fn nodes(snapshot: &Snapshot) -> Vec<u32> {
    let parts = snapshot.caches.iter().flat_map(|c| &c.nodes);
    let mut found: BTreeSet<u32> = parts.map(|p| p.node.0).collect();
    let highest = found.iter().next_back().copied();
    if let Some(highest) = highest.filter(|h| *h < CONTIGUOUS) {
        found.extend(0..highest);
    } else if highest.is_none() && snapshot.system.nodes == Some(1) {
        // A kernel without NUMA prints no node lists: all is on node 0.
        found.insert(0);
    }
    found.into_iter().collect()
}

type Figure = fn(&NodePart) -> Option<Slabs>;

/// A figure of a cache on one node.
fn on_node(cache: &Cache, node: u32, whole: Option<u64>, figure: Figure) -> Option<u64> {
    if whole == Some(0) {
        return Some(0);
    }
    if cache.nodes.is_empty() {
        return None;
    }
    let part = cache.nodes.iter().find(|p| p.node.0 == node);
    if let Some(value) = part.and_then(figure) {
        return Some(value.get());
    }
    // A node that a list leaves out has nothing, if there was a list.
    let read = cache.nodes.iter().any(|p| figure(p).is_some());
    read.then_some(0)
}

fn figures(row: &Row<'_>, nodes: &[u32], partial: bool, exact: bool) -> Vec<String> {
    let (whole, figure): (_, Figure) = if partial {
        (row.partial, |p| p.partial)
    } else {
        (row.slabs, |p| p.slabs)
    };
    let alone = nodes == [0] && row.cache.nodes.is_empty();
    let value = |node: &u32| {
        if alone {
            whole
        } else {
            on_node(row.cache, *node, whole, figure)
        }
    };
    nodes.iter().map(|n| scaled_cell(value(n), exact)).collect()
}

/// Prints a table with a line for each of these names.
fn table(
    title: &str,
    nodes: &[u32],
    lines: &[(&str, Vec<String>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    let cells = lines.iter().flat_map(|(_, cells)| cells).map(String::len);
    let width = cells.max().unwrap_or(0).max(4);
    write!(out, "\n{title:<21}:")?;
    for node in nodes {
        write!(out, " {node:>width$}")?;
    }
    writeln!(out, "\n{}", "-".repeat(22 + nodes.len() * (width + 1)))?;
    for (name, cells) in lines {
        write!(out, "{name:<21} ")?;
        for cell in cells {
            write!(out, " {cell:>width$}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Prints the slabs of every row on each node.
pub(crate) fn print(
    rows: &[&Row<'_>],
    nodes: &[u32],
    exact: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = rows
        .iter()
        .map(|row| (row.name, figures(row, nodes, false, exact)))
        .collect();
    table("Slab", nodes, &lines, out)
}

/// Prints the block of the report: all slabs and partial ones. A cache
/// without slabs has none.
pub(crate) fn print_one(
    row: &Row<'_>,
    nodes: &[u32],
    exact: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if nodes.is_empty() || row.slabs == Some(0) {
        return Ok(());
    }
    let lines = [
        ("All slabs", figures(row, nodes, false, exact)),
        ("Partial slabs", figures(row, nodes, true, exact)),
    ];
    table("NUMA nodes", nodes, &lines, out)
}
