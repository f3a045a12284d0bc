//! Tables of a cache's parts: nodes, processors with what is parked there, counters.
//!
//! Source of truth: the parts of `collectors::model::Cache`.

use std::io::Write;

use collectors::model::{Cache, CpuPart, Objects, Slabs};

use crate::cmd::Context;
use crate::output::table::{Cell, Head, Table};

/// A table inside the page, whatever the form of output.
pub(in crate::cmd) fn aligned(
    context: &Context,
    table: &Table,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let hidden = table.write(out, &context.screen)?;
    if !hidden.is_empty() {
        out.flush()?;
        context.note(&format!(
            "the terminal is too narrow for {}",
            hidden.join(", ")
        ));
    }
    Ok(())
}

pub(in crate::cmd) fn numa(
    context: &Context,
    cache: &Cache,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    if cache.nodes.is_empty() {
        return Ok(());
    }
    let count = |v: Option<u64>| v.map_or_else(Cell::missing, |v| Cell::text(v.to_string()));
    let barns = cache.nodes.iter().any(|part| part.barn_full.is_some());
    let mut heads = [
        "Node", "Slabs", "Partial", "Cpu", "Objects", "Total", "ObjPart",
    ]
    .map(Head::right)
    .to_vec();
    if barns {
        heads.extend(["Barn full", "Barn empty"].map(Head::right));
    }
    let mut table = Table::new(heads);
    for part in &cache.nodes {
        let mut row = vec![
            Cell::text(part.node.0.to_string()),
            count(part.slabs.map(Slabs::get)),
            count(part.partial.map(Slabs::get)),
            count(part.cpu_slabs.map(Slabs::get)),
            count(part.objects.map(Objects::get)),
            count(part.total_objects.map(Objects::get)),
            count(part.objects_partial.map(Objects::get)),
        ];
        if barns {
            row.extend([count(part.barn_full), count(part.barn_empty)]);
        }
        table.row(row);
    }
    writeln!(out)?;
    aligned(context, &table, out)
}

pub(in crate::cmd) fn cpus(
    context: &Context,
    cache: &Cache,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    if !cache.cpus.is_empty() {
        let count = |v: Option<u64>| v.map_or_else(Cell::missing, |v| Cell::text(v.to_string()));
        let any = |has: fn(&CpuPart) -> bool| cache.cpus.iter().any(has);
        let hands = any(|part| part.objects_cpu_slab.is_some());
        let sheaves = any(|part| part.sheaf_main.is_some());
        let rcu = any(|part| part.sheaf_rcu_free.is_some());
        let mut heads = ["CPU", "Partial slabs", "Free objects"]
            .map(Head::right)
            .to_vec();
        if hands {
            heads.push(Head::right("Free in its slab"));
        }
        if sheaves {
            heads.extend(["Main sheaf", "Spare sheaf"].map(Head::right));
        }
        if rcu {
            heads.push(Head::right("RCU sheaf"));
        }
        let mut table = Table::new(heads);
        for part in &cache.cpus {
            let mut row = vec![
                Cell::text(part.cpu.0.to_string()),
                count(part.slabs_cpu_partial.map(Slabs::get)),
                count(part.objects_cpu_partial.map(Objects::get)),
            ];
            let also = [
                (hands, part.objects_cpu_slab),
                (sheaves, part.sheaf_main),
                (sheaves, part.sheaf_spare),
                (rcu, part.sheaf_rcu_free),
            ];
            let also = also.into_iter().filter(|(shown, _)| *shown);
            row.extend(also.map(|(_, v)| count(v.map(Objects::get))));
            table.row(row);
        }
        writeln!(out)?;
        aligned(context, &table, out)?;
    }
    let Some(counters) = &cache.counters else {
        return Ok(());
    };
    let mut table = Table::new(vec![
        Head::left("Counter"),
        Head::right("Total"),
        Head::left("Per CPU"),
    ]);
    for counter in counters.0.iter().filter(|c| c.total > 0) {
        let per_cpu: Vec<String> = counter
            .cpus
            .iter()
            .map(|(cpu, value)| format!("C{}={value}", cpu.0))
            .collect();
        table.row(vec![
            Cell::text(counter.id.name()),
            Cell::text(counter.total.to_string()),
            Cell::text(per_cpu.join(" ")),
        ]);
    }
    writeln!(out)?;
    aligned(context, &table, out)
}
