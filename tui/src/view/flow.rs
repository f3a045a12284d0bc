//! Which way allocations and frees of a cache go: counted, or inferred.

use std::time::Duration;

use collectors::analysis::diff::counter_steps;
use collectors::columns;
use collectors::model::{Approx, CountedBy, CounterId, CounterUnit, OriginKind, Quantity, Unit};

use super::cache::Subject;
use crate::model::{Moment, shown};
use crate::text::{self, Line};
use crate::theme::Role;
use crate::widgets;

/// The paths, grouped: how an allocation was served, where a free went, what
/// the lists and the page allocator had to do.
const GROUPS: [(&str, &[CounterId]); 3] = [
    (
        "allocations",
        &[
            CounterId::Allocs,
            CounterId::AllocFastpath,
            CounterId::AllocCpuSheaf,
            CounterId::AllocSlowpath,
        ],
    ),
    (
        "frees",
        &[
            CounterId::Frees,
            CounterId::FreeFastpath,
            CounterId::FreeCpuSheaf,
            CounterId::FreeRcuSheaf,
            CounterId::FreeSlowpath,
        ],
    ),
    (
        "lists and slabs",
        &[
            CounterId::FreeFrozen,
            CounterId::FreeAddPartial,
            CounterId::FreeRemovePartial,
            CounterId::AllocFromPartial,
            CounterId::AllocRefill,
            CounterId::CpuPartialAlloc,
            CounterId::CpuPartialFree,
            CounterId::CpuPartialNode,
            CounterId::CpuPartialDrain,
            CounterId::SheafRefill,
            CounterId::SheafFlush,
            CounterId::BarnGet,
            CounterId::BarnGetFail,
            CounterId::BarnPut,
            CounterId::BarnPutFail,
            CounterId::AllocSlab,
            CounterId::FreeSlab,
            CounterId::OrderFallback,
        ],
    ),
];

/// The part of the screen.
pub(super) fn lines(subject: &Subject<'_>) -> Vec<Line> {
    let mut out = vec![Line::heading("Which way allocations and frees go")];
    if subject.cache.counters.is_none() {
        out.extend(inferred(subject));
        return out;
    }
    match steps(subject) {
        Some((steps, elapsed)) => {
            for (title, ids) in GROUPS {
                out.extend(group(subject, title, ids, &steps, elapsed));
            }
            let source = match subject.now.snapshot.origin.kind {
                OriginKind::Demo | OriginKind::Process => "the engine's own counters",
                _ => "CONFIG_SLUB_STATS in /sys/kernel/slab",
            };
            out.push(Line::dim(match subject.cache.counted_by {
                CountedBy::Allocator => format!("  measured: {source}"),
                CountedBy::Programs => "  measured: by BPF programs".to_owned(),
                CountedBy::Inference => {
                    "  BPF: how many is counted, which way they went is inferred".to_owned()
                }
            }));
        }
        None => out.extend(totals(subject)),
    }
    out
}

type Steps = Vec<(CounterId, Approx<u64>)>;

/// How far the counters went on since the base.
fn steps(subject: &Subject<'_>) -> Option<(Steps, Duration)> {
    let base: &Moment = subject.model.base()?;
    let elapsed = subject.model.time.elapsed_since(Some(base))?;
    let before = base.cache(subject.key)?.counters.as_deref()?;
    let after = subject.cache.counters.as_deref()?;
    // Their meaning changed with the era.
    if base.snapshot.system.era != subject.now.snapshot.system.era {
        return None;
    }
    let steps = counter_steps(before, after);
    let known = steps.into_iter().filter_map(|s| Some((s.id, s.delta?)));
    Some((known.collect(), elapsed))
}

fn group(
    subject: &Subject<'_>,
    title: &str,
    ids: &[CounterId],
    steps: &Steps,
    elapsed: Duration,
) -> Vec<Line> {
    let of = |id: &CounterId| steps.iter().find(|(i, _)| i == id).map(|(_, d)| *d);
    let known: Vec<(CounterId, Approx<u64>)> =
        ids.iter().filter_map(|id| Some((*id, of(id)?))).collect();
    // Of the lists, only what happened is worth a line.
    let flows = title != "lists and slabs";
    let sum: u64 = known.iter().map(|(_, d)| d.value).sum();
    let mut out = vec![Line::dim(format!("  {title}"))];
    for (id, delta) in known.iter().filter(|(_, d)| flows || d.value > 0) {
        let rate = shown::per_second(delta.map(i128::from), elapsed);
        let rate = rate.map_or_else(
            || "-".to_owned(),
            |r| {
                let sign = if r.approx { "~" } else { "" };
                format!("{sign}{}/s", r.value)
            },
        );
        let mut line = Line::new()
            .with(Role::Normal, format!("    {:<20}", id.name()))
            .with(Role::Normal, format!("{rate:>12} "));
        if flows {
            let share = if sum == 0 {
                0.0
            } else {
                delta.value as f64 / sum as f64
            };
            let bar = widgets::bar(share, 20, &subject.model.settings.glyphs);
            line = line.with(
                Role::Normal,
                format!("{bar} {:>5}%", collectors::units::percent(share)),
            );
        } else {
            line = line.with(Role::Dim, unit(*id));
        }
        out.push(line);
    }
    if out.len() == 1 {
        out.push(Line::dim("    nothing happened"));
    }
    out
}

fn unit(id: CounterId) -> &'static str {
    match id.unit() {
        CounterUnit::Events => "",
        CounterUnit::Objects => "objects",
        CounterUnit::Sheaves => "sheaves",
        CounterUnit::Slabs => "slabs",
    }
}

/// Without a second sample: what was counted since the cache was made.
fn totals(subject: &Subject<'_>) -> Vec<Line> {
    let counters = subject.cache.counters.as_deref();
    let mut out = vec![Line::dim(
        "  since the cache was made; rates need a second sample",
    )];
    for id in GROUPS.iter().flat_map(|(_, ids)| ids.iter()) {
        if let Some(total) = counters.and_then(|c| c.total(*id)).filter(|t| *t > 0) {
            out.push(Line::plain(format!("    {:<20}{total:>14}", id.name())));
        }
    }
    out
}

/// What follows from the sizes of the lists, where nothing counts the paths.
fn inferred(subject: &Subject<'_>) -> Vec<Line> {
    let mut out = Vec::new();
    for (key, says) in [
        (
            "objects",
            "allocations less frees, those that reached a slab",
        ),
        (
            "slabs",
            "slabs from the page allocator less those given back",
        ),
        (
            "partial",
            "slabs put on the nodes' partial lists less those taken",
        ),
        (
            "slabs_cpu_partial",
            "slabs put on the CPUs' partial lists less those taken",
        ),
    ] {
        let Some(column) = columns::find(key) else {
            continue;
        };
        let base = subject.model.base();
        let row = columns::Row::new(subject.cache, subject.now.page_size());
        let change = shown::change(
            column,
            base.and_then(|b| b.cache(subject.key)),
            &row,
            subject.now.page_size(),
        );
        let elapsed = subject.model.time.elapsed_since(base);
        let rate = change.and_then(|c| shown::per_second(c, elapsed?));
        let rate = shown::text(rate, Unit::Count, subject.scale());
        out.push(
            Line::new()
                .with(Role::Normal, format!("    {key:<20}"))
                .with(Role::Normal, format!("{rate:>10}/s  "))
                .with(Role::Dim, says),
        );
    }
    let reasons = format!("inferred from the sizes of the lists: {}", why(subject));
    let lines = text::wrap(&reasons, subject.width.saturating_sub(2).max(1));
    out.extend(lines.into_iter().map(|l| Line::dim(format!("  {l}"))));
    out
}

/// Why nothing counts the paths.
fn why(subject: &Subject<'_>) -> String {
    let model = subject.model;
    if model.settings.can_capture || model.live {
        let config = model
            .time
            .machine
            .as_ref()
            .and_then(|system| system.config.get("CONFIG_SLUB_STATS"));
        return match config.map(String::as_str) {
            Some("y") => "its counters could not be read".to_owned(),
            Some(_) => "the kernel counts paths only when built with CONFIG_SLUB_STATS, and this one is not".to_owned(),
            None => "the kernel shows no counters; those built with CONFIG_SLUB_STATS do".to_owned(),
        };
    }
    let objects = subject.figure(Quantity::Objects);
    format!(
        "a saved file of one moment has no rates, and no counters were saved (objects in use {objects})"
    )
}
