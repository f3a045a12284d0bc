//! The event counters of one cache in the report.
//!
//! Titles are those of tools/mm/slabinfo.c (Linux 6.12). A line is printed
//! when the kernel has at least one of its counters; the counters of sheaves
//! and barns (Linux 6.18 and later) follow under the kernel's names.

use std::io::{self, Write};

use collectors::model::CounterId as Id;

use super::row::{Row, cell, percent};

/// Title, counters of allocations, counters of frees.
const PATHS: [(&str, &[Id], &[Id]); 8] = [
    ("Fastpath", &[Id::AllocFastpath], &[Id::FreeFastpath]),
    ("Slowpath", &[Id::AllocSlowpath], &[Id::FreeSlowpath]),
    ("Cpu sheaf", &[Id::AllocCpuSheaf], &[Id::FreeCpuSheaf]),
    ("Page Alloc", &[Id::AllocSlab], &[Id::FreeSlab]),
    (
        "Add partial",
        &[Id::DeactivateToHead, Id::DeactivateToTail],
        &[Id::FreeAddPartial],
    ),
    (
        "Remove partial",
        &[Id::AllocFromPartial],
        &[Id::FreeRemovePartial],
    ),
    (
        "Cpu partial list",
        &[Id::CpuPartialAlloc],
        &[Id::CpuPartialFree],
    ),
    (
        "RemoteObj/SlabFrozen",
        &[Id::DeactivateRemoteFrees],
        &[Id::FreeFrozen],
    ),
];

/// Title and counter; the first five make up the whole of the percentages.
const DEACTIVATION: [(&str, Id); 7] = [
    ("Slab full", Id::DeactivateFull),
    ("Slab empty", Id::DeactivateEmpty),
    ("Moved to head of partial list", Id::DeactivateToHead),
    ("Moved to tail of partial list", Id::DeactivateToTail),
    ("Deactivation bypass", Id::DeactivateBypass),
    ("Refilled from foreign frees", Id::AllocRefill),
    ("Node mismatch", Id::AllocNodeMismatch),
];

/// Counters without a title in the tool.
const SHEAVES: [Id; 15] = [
    Id::FreeRcuSheaf,
    Id::FreeRcuSheafFail,
    Id::SheafFlush,
    Id::SheafRefill,
    Id::SheafAlloc,
    Id::SheafFree,
    Id::BarnGet,
    Id::BarnGetFail,
    Id::BarnPut,
    Id::BarnPutFail,
    Id::SheafPrefillFast,
    Id::SheafPrefillSlow,
    Id::SheafPrefillOversize,
    Id::SheafReturnFast,
    Id::SheafReturnSlow,
];

/// Prints the counters of a cache that has allocated anything.
pub(crate) fn print(row: &Row<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (Some((allocs, _)), Some((frees, _))) = (row.allocations(), row.frees()) else {
        return Ok(());
    };
    if allocs == 0 {
        return Ok(());
    }
    paths(row, allocs, frees, out)?;
    deactivation(row, out)?;
    exchanges(row, out)?;
    sheaves(row, out)
}

/// The sum of those counters that the kernel has.
fn sum(row: &Row<'_>, ids: &[Id]) -> Option<u64> {
    let known = ids.iter().filter_map(|id| row.counter(*id));
    known.reduce(u64::saturating_add)
}

fn paths(row: &Row<'_>, allocs: u64, frees: u64, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nSlab Perf Counter       Alloc     Free %Al %Fr")?;
    writeln!(out, "{}", "-".repeat(50))?;
    for (title, alloc, free) in PATHS {
        let (alloc, free) = (sum(row, alloc), sum(row, free));
        if alloc.is_none() && free.is_none() {
            continue;
        }
        let share = |part: Option<u64>, whole| cell(part.map(|p| percent(p, whole).unwrap_or(0)));
        writeln!(
            out,
            "{title:<20} {:>8} {:>8} {:>3} {:>3}",
            cell(alloc),
            cell(free),
            share(alloc, allocs),
            share(free, frees),
        )?;
    }
    writeln!(out, "{:<20} {allocs:>8} {frees:>8}\n", "Total")?;
    match row.counter(Id::CpuslabFlush) {
        Some(flushes) if flushes > 0 => writeln!(out, "Flushes {flushes:>8}"),
        _ => Ok(()),
    }
}

fn deactivation(row: &Row<'_>, out: &mut dyn Write) -> io::Result<()> {
    let whole: Vec<Id> = DEACTIVATION.iter().take(5).map(|(_, id)| *id).collect();
    let Some(total) = sum(row, &whole).filter(|t| *t > 0) else {
        return Ok(());
    };
    writeln!(out, "\nSlab Deactivation             Occurrences %")?;
    writeln!(out, "{}", "-".repeat(49))?;
    for (title, id) in DEACTIVATION {
        let Some(count) = row.counter(id) else {
            continue;
        };
        // The last two are no parts of the whole and may exceed it.
        let share = u128::from(count) * 100 / u128::from(total);
        writeln!(out, "{title:<29} {count:>7}  {share:>3}%")?;
    }
    Ok(())
}

fn exchanges(row: &Row<'_>, out: &mut dyn Write) -> io::Result<()> {
    let locked = row.counter(Id::CmpxchgDoubleFail);
    let unlocked = row.counter(Id::CmpxchgDoubleCpuFail);
    if locked.unwrap_or(0) == 0 && unlocked.unwrap_or(0) == 0 {
        return Ok(());
    }
    writeln!(out, "\nCmpxchg_double Looping\n{}", "-".repeat(24))?;
    writeln!(out, "Locked Cmpxchg Double redos   {}", cell(locked))?;
    writeln!(out, "Unlocked Cmpxchg Double redos {}", cell(unlocked))
}

fn sheaves(row: &Row<'_>, out: &mut dyn Write) -> io::Result<()> {
    let known = SHEAVES
        .iter()
        .filter_map(|id| Some((id.name(), row.counter(*id)?)));
    let busy: Vec<_> = known.filter(|(_, count)| *count > 0).collect();
    if busy.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nSheaves and barns             Occurrences")?;
    writeln!(out, "{}", "-".repeat(41))?;
    for (name, count) in busy {
        writeln!(out, "{name:<29} {count:>11}")?;
    }
    Ok(())
}
