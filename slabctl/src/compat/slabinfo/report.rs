//! Everything about one cache.
//!
//! Titles and formulas are those of tools/mm/slabinfo.c (Linux 6.12); the
//! lines that begin with `**` are in our words.

use std::io::{self, Write};

use collectors::model::{Flag, Quantity};

use super::row::{Row, cell};
use super::{numa, perf, tracking};

const REMARKS: [(Flag, &str); 4] = [
    (Flag::HwcacheAlign, "objects start at cache lines"),
    (Flag::CacheDma, "pages come from the DMA zone"),
    (
        Flag::DestroyByRcu,
        "slabs are freed after an RCU grace period",
    ),
    (Flag::ReclaimAccount, "counted as reclaimable"),
];

/// Prints the report of one cache.
pub(crate) fn print(
    row: &Row<'_>,
    nodes: &[u32],
    exact: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let aliases = row.cache.get(Quantity::AliasCount).map(|f| f.value);
    let aliases = aliases.or(row.cache.aliases.as_ref().map(|a| a.len() as u64));
    writeln!(
        out,
        "\nSlabcache: {:<15}  Aliases: {:>2} Order : {:>2} Objects: {}",
        row.name,
        cell(aliases),
        cell(row.order),
        cell(row.objects)
    )?;
    for (flag, remark) in REMARKS {
        if row.cache.flags.is_set(flag) {
            writeln!(out, "** {}: {remark}", flag.name())?;
        }
    }
    sizes(row, out)?;
    tracking::print(row, out)?;
    numa::print_one(row, nodes, exact, out)?;
    perf::print(row, out)
}

fn sizes(row: &Row<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\nSizes (bytes)     Slabs              Debug                Memory"
    )?;
    writeln!(out, "{}", "-".repeat(72))?;
    let figure = |q| row.cache.get(q).map(|f| f.value);
    let spare = difference(row.slab_size, row.object_size);
    let lines = [
        (
            "Object ",
            row.object_size,
            "Total  ",
            row.slabs,
            Flag::SanityChecks,
            "Total",
            row.memory,
        ),
        (
            "SlabObj",
            row.slab_size,
            "Full   ",
            row.full_slabs(),
            Flag::RedZone,
            "Used ",
            row.used,
        ),
        (
            "SlabSiz",
            row.slab_bytes,
            "Partial",
            row.partial,
            Flag::Poison,
            "Loss ",
            row.loss,
        ),
        (
            "Loss   ",
            spare,
            "CpuSlab",
            row.cpu_slabs,
            Flag::StoreUser,
            "Lalig",
            product(spare, row.objects),
        ),
        (
            "Align  ",
            figure(Quantity::Align),
            "Objects",
            row.objs_per_slab,
            Flag::Trace,
            "Lpadd",
            padding(row),
        ),
    ];
    for (size_title, size, slab_title, slabs, flag, memory_title, memory) in lines {
        writeln!(
            out,
            "{size_title}: {:>7}  {slab_title}: {:>7}   {:<14}: {}  {memory_title}: {:>7}",
            cell(size),
            cell(slabs),
            debug_title(flag),
            on_off(row.cache.flags.get(flag)),
            cell(memory),
        )?;
    }
    Ok(())
}

const fn debug_title(flag: Flag) -> &'static str {
    match flag {
        Flag::RedZone => "Redzoning",
        Flag::Poison => "Poisoning",
        Flag::StoreUser => "Tracking",
        Flag::Trace => "Tracing",
        _ => "Sanity Checks",
    }
}

const fn on_off(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "On ",
        Some(false) => "Off",
        None => "-  ",
    }
}

fn difference(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_sub(b?))
}

fn product(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a?.checked_mul(b?)
}

/// Bytes at the end of the slabs that no slot uses.
fn padding(row: &Row<'_>) -> Option<u64> {
    let slots = product(row.objs_per_slab, row.slab_size);
    product(difference(row.slab_bytes, slots), row.slabs)
}
