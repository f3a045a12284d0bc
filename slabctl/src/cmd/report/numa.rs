//! Slabs, partial slabs and memory per NUMA node.

use std::collections::BTreeSet;

use collectors::model::{Approx, NodeId, Quantity, Slabs, Snapshot, Unit};

use crate::cmd::select::Chosen;
use crate::cmd::{Context, cells};
use crate::output::table::{Cell, Head, Table};

/// One line a cache, three columns a node.
pub(super) fn table(context: &Context, snapshot: &Snapshot, chosen: &Chosen<'_>) -> Table {
    let parts = chosen.rows.iter().flat_map(|row| &row.cache.nodes);
    let nodes: BTreeSet<NodeId> = parts.map(|part| part.node).collect();
    let mut heads = vec![Head::left("Name"), Head::right("Slabs").key("slabs")];
    for node in &nodes {
        let n = node.0;
        for (title, key) in [("slabs", "slabs"), ("part", "partial"), ("space", "memory")] {
            heads.push(Head::right(&format!("N{n} {title}")).key(&format!("n{n}_{key}")));
        }
    }
    let mut table = Table::new(heads);
    let scale = context.global.scale();
    for row in &chosen.rows {
        let count = |value: Option<u64>| cells::maybe(value.map(Approx::exact), Unit::Count, scale);
        let mut line = vec![
            Cell::text(&*row.cache.name),
            cells::maybe(row.cache.get(Quantity::Slabs), Unit::Slabs, scale),
        ];
        for node in &nodes {
            // A node that no list of this cache names has none of it.
            let part = row.cache.nodes.iter().find(|p| p.node == *node);
            let known = !row.cache.nodes.is_empty();
            let zero = known.then_some(0);
            let of = |value: Option<u64>| if part.is_some() { value } else { zero };
            let slabs = of(part.and_then(|p| p.slabs).map(Slabs::get));
            let slab_bytes = row
                .cache
                .pages_per_slab()
                .and_then(|pages| pages.checked_mul(snapshot.system.page_size));
            let memory = slabs.zip(slab_bytes).and_then(|(n, b)| n.checked_mul(b));
            // Slabs of a smaller order may be on any node.
            let approx = row.usage.memory.is_some_and(|m| m.approx) && slabs != Some(0);
            line.push(count(slabs));
            line.push(count(of(part.and_then(|p| p.partial).map(Slabs::get))));
            let memory = memory.map(|value| Approx { value, approx });
            line.push(cells::maybe(memory, Unit::Bytes, scale));
        }
        table.row(line);
    }
    if nodes.is_empty() {
        table.note("no figures per node in this source (/proc/slabinfo has none)");
    }
    table
}
