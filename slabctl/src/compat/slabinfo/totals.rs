//! Sums, means and extremes over the caches (-T, -X).
//!
//! Titles and formulas are those of tools/mm/slabinfo.c (Linux 6.12): caches
//! with at least one slab and one object count; a mean of percentages is not
//! weighted. The tool shows a percentage as the mean of `PartObjs`; this is
//! the mean.

use std::io::{self, Write};

use super::notes::Notes;
use super::row::{Row, percent, scaled};
use super::select;

/// Sum and extremes of one figure.
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    count: u64,
    min: u64,
    max: u64,
    total: u128,
}

impl Spread {
    fn add(&mut self, value: Option<u64>) {
        let Some(value) = value else { return };
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.total += u128::from(value);
    }

    fn mean(&self) -> Option<u128> {
        self.total.checked_div(u128::from(self.count))
    }

    fn known(&self, value: impl Into<u128>) -> Option<u128> {
        (self.count > 0).then(|| value.into())
    }
}

/// A figure of an object, weighted by the objects that have it.
#[derive(Debug, Clone, Copy, Default)]
struct PerObject {
    spread: Spread,
    bytes: u128,
    objects: u128,
}

impl PerObject {
    fn add(&mut self, size: Option<u64>, bytes: Option<u128>, objects: u64) {
        let (Some(size), Some(bytes)) = (size, bytes) else {
            return;
        };
        self.spread.add(Some(size));
        self.bytes = self.bytes.saturating_add(bytes);
        self.objects += u128::from(objects);
    }
}

#[derive(Debug, Default)]
struct Totals {
    caches: u64,
    names: u64,
    targets: u64,
    active: u64,
    objects: Spread,
    slabs: Spread,
    partial: Spread,
    percent_partial: Spread,
    partial_objects: Spread,
    percent_objects: Spread,
    memory: Spread,
    used: Spread,
    loss: Spread,
    slot: PerObject,
    payload: PerObject,
    waste: PerObject,
}

impl Totals {
    fn of(rows: &[Row<'_>], notes: &mut Notes) -> Self {
        let mut totals = Self::default();
        for row in rows {
            totals.caches += 1;
            if select::merge_id(row.cache).is_some() {
                totals.targets += 1;
                totals.names += select::links(row.cache).count() as u64;
            }
            match (row.slabs, row.objects) {
                (Some(0), _) | (_, Some(0)) => {}
                (Some(slabs), Some(objects)) => totals.add(row, slabs, objects, notes),
                _ => notes.about("not in the sums: objects or slabs unknown", row.name),
            }
        }
        totals
    }

    fn add(&mut self, row: &Row<'_>, slabs: u64, objects: u64, notes: &mut Notes) {
        notes.check(row);
        self.active += 1;
        self.objects.add(Some(objects));
        self.slabs.add(Some(slabs));
        self.partial.add(row.partial);
        self.percent_partial
            .add(row.partial.and_then(|p| percent(p, slabs)));
        self.partial_objects.add(row.objects_partial);
        self.percent_objects
            .add(row.objects_partial.and_then(|p| percent(p, objects)));
        self.memory.add(row.memory);
        self.used.add(row.used);
        self.loss.add(row.loss);
        let spare = row.slab_size.zip(row.object_size);
        let spare = spare.map(|(slot, object)| slot.saturating_sub(object));
        let parts = [
            row.partial,
            row.objects_partial,
            row.memory,
            row.used,
            row.slab_size,
        ];
        if parts.iter().any(Option::is_none) {
            notes.about("in the sums with some figures only", row.name);
        }
        let times = |size: Option<u64>| size.map(|s| u128::from(s) * u128::from(objects));
        self.slot.add(row.slab_size, times(row.slab_size), objects);
        self.payload
            .add(row.object_size, row.used.map(u128::from), objects);
        self.waste.add(spare, times(spare), objects);
    }
}

/// Prints the sums over the rows.
pub(crate) fn print(
    rows: &[Row<'_>],
    exact: bool,
    notes: &mut Notes,
    out: &mut dyn Write,
) -> io::Result<()> {
    let totals = Totals::of(rows, notes);
    if totals.active == 0 {
        return writeln!(out, "No objects");
    }
    let text = |value: Option<u128>| value.map_or_else(|| "-".to_owned(), |v| scaled(v, exact));
    summary(&totals, &text, out)?;
    per_cache(&totals, &text, out)?;
    per_object(&totals, &text, out)
}

type Text<'a> = dyn Fn(Option<u128>) -> String + 'a;

/// `part` in percent of `whole`, not cut at 100.
fn share(part: Spread, whole: Spread) -> Option<u128> {
    let part = part.known(part.total)?;
    part.saturating_mul(100).checked_div(whole.total)
}

fn summary(t: &Totals, text: &Text<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Slabcache Totals\n----------------")?;
    writeln!(
        out,
        "Slabcaches : {:>15}   Aliases  : {:>11}->{:<3}  Active:    {:>3}",
        t.caches, t.names, t.targets, t.active
    )?;
    writeln!(
        out,
        "Memory used: {:>15}   # Loss   : {:>15}   MRatio:{:>6}%",
        text(t.memory.known(t.memory.total)),
        text(t.loss.known(t.loss.total)),
        text(share(t.loss, t.used)),
    )?;
    writeln!(
        out,
        "# Objects  : {:>15}   # PartObj: {:>15}   ORatio:{:>6}%",
        text(t.objects.known(t.objects.total)),
        text(t.partial_objects.known(t.partial_objects.total)),
        text(share(t.partial_objects, t.objects)),
    )
}

fn per_cache(t: &Totals, text: &Text<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\nPer Cache         Average              Min              Max            Total"
    )?;
    writeln!(out, "{}", "-".repeat(76))?;
    let sum = |s: Spread| s.known(s.total);
    let lines = [
        ("#Objects", t.objects, sum(t.objects), false),
        ("#Slabs", t.slabs, sum(t.slabs), false),
        ("#PartSlab", t.partial, sum(t.partial), false),
        (
            "%PartSlab",
            t.percent_partial,
            share(t.partial, t.slabs),
            true,
        ),
        ("PartObjs", t.partial_objects, sum(t.partial_objects), false),
        (
            "% PartObj",
            t.percent_objects,
            share(t.partial_objects, t.objects),
            true,
        ),
        ("Memory", t.memory, sum(t.memory), false),
        ("Used", t.used, sum(t.used), false),
        ("Loss", t.loss, sum(t.loss), false),
    ];
    for (title, spread, total, percent) in lines {
        let cells = [
            spread.mean(),
            spread.known(spread.min),
            spread.known(spread.max),
            total,
        ];
        let (mark, title_width, gap) = if percent {
            ("%", 9, " ")
        } else {
            ("", 10, "  ")
        };
        let cells = cells.map(|c| format!("{:>15}{mark}", text(c)));
        writeln!(out, "{title:<title_width$}{}", cells.join(gap))?;
    }
    Ok(())
}

fn per_object(t: &Totals, text: &Text<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\nPer Object        Average              Min              Max"
    )?;
    writeln!(out, "{}", "-".repeat(59))?;
    for (title, figure) in [("Memory", t.slot), ("User", t.payload), ("Loss", t.waste)] {
        let spread = figure.spread;
        writeln!(
            out,
            "{title:<10}{:>15}  {:>15}  {:>15}",
            text(figure.bytes.checked_div(figure.objects)),
            text(spread.known(spread.min)),
            text(spread.known(spread.max)),
        )?;
    }
    Ok(())
}
