//! Sums over the chosen caches, and how they compare with /proc/meminfo.

use collectors::analysis::reconcile::{Side, reconcile};
use collectors::analysis::totals::{Extended, ExtendedRow, Figure, Totals};
use collectors::model::{Approx, Bytes, Cache, Objects, Slabs, Snapshot, Unit, WarningCode};
use collectors::units::Scale;

use crate::cmd::{Context, cells};
use crate::output::table::{Cell, Head, Table};

/// `--totals`.
pub(super) fn table(context: &Context, snapshot: &Snapshot, caches: &[&Cache]) -> Table {
    let scale = context.global.scale();
    let totals = Totals::of(caches.iter().copied(), snapshot.system.page_size);
    let mut table = Table::new(vec![
        Head::left("Figure"),
        Head::right("Total"),
        Head::left("Remark"),
    ]);
    let mut line = |name: &str, cell: Cell, missing: u64| {
        let remark = if missing > 0 {
            format!("{missing} caches do not tell")
        } else {
            String::new()
        };
        table.row(vec![Cell::text(name), cell, Cell::text(remark)]);
    };
    line("caches", Cell::text(totals.caches.to_string()), 0);
    line(
        "caches, empty",
        Cell::text(totals.empty_caches.to_string()),
        0,
    );
    let slabs =
        |f: Option<Approx<Slabs>>| cells::maybe(f.map(|f| f.map(Slabs::get)), Unit::Slabs, scale);
    let objects = |f: Option<Approx<Objects>>| {
        cells::maybe(f.map(|f| f.map(Objects::get)), Unit::Objects, scale)
    };
    line("slabs", slabs(totals.slabs.total), totals.slabs.missing);
    line(
        "slabs, partial",
        slabs(totals.partial.total),
        totals.partial.missing,
    );
    line(
        "objects in use",
        objects(totals.objects.total),
        totals.objects.missing,
    );
    line(
        "objects, room for",
        objects(totals.total_objects.total),
        totals.total_objects.missing,
    );
    for (name, sum) in [
        ("memory", &totals.memory),
        ("  used", &totals.used),
        ("  loss", &totals.loss),
        ("    slack in slots", &totals.slack),
        ("    free slots", &totals.free),
        ("    slab ends", &totals.padding),
    ] {
        line(name, bytes(sum.total, scale), sum.missing);
    }
    let cut = [
        WarningCode::Truncated,
        WarningCode::BrokenRow,
        WarningCode::Incomplete,
        WarningCode::LimitReached,
    ];
    if cut.iter().any(|code| snapshot.warnings.has(*code)) {
        table.note("the source is not complete, as the warnings say: these sums lack something");
    }
    if caches.len() == snapshot.caches.len() {
        meminfo(&mut table, context, snapshot);
    }
    table
}

fn bytes(figure: Option<Approx<Bytes>>, scale: Scale) -> Cell {
    cells::maybe(figure.map(|f| f.map(Bytes::get)), Unit::Bytes, scale)
}

/// The kernel's own sums, when all caches are shown.
fn meminfo(table: &mut Table, context: &Context, snapshot: &Snapshot) {
    let scale = context.global.scale();
    let result = reconcile(snapshot);
    let sides: [(&str, &Side); 3] = [
        ("meminfo Slab", &result.all),
        ("meminfo SReclaimable", &result.reclaimable),
        ("meminfo SUnreclaim", &result.unreclaimable),
    ];
    for (name, side) in sides {
        let Some(kernel) = side.meminfo else { continue };
        let difference = cells::delta(side.difference, Unit::Bytes, scale);
        let sum = bytes(side.caches.total, scale);
        let remark = |sum: &str, change: &str| format!("caches: {sum}, difference {change}");
        table.row(vec![
            Cell::text(name),
            bytes(Some(Approx::exact(kernel)), scale),
            Cell {
                shown: remark(&sum.shown, &difference.shown),
                exact: remark(&sum.exact, &difference.exact),
            },
        ]);
    }
    if let Some(share) = result.memory_share {
        table.row(vec![
            Cell::text("share of memory"),
            Cell {
                shown: format!("{}%", cells::percent(share).shown),
                exact: cells::percent(share).exact,
            },
            Cell::text(""),
        ]);
    }
    for note in &result.notes {
        table.note(note.clone());
    }
}

/// `--xtotals`.
pub(super) fn extended(context: &Context, snapshot: &Snapshot, caches: &[&Cache]) -> Table {
    let scale = context.global.scale();
    let result = Extended::of(caches.iter().copied(), snapshot.system.page_size);
    let mut table = Table::new(vec![
        Head::left("Per").key("per"),
        Head::left("Figure"),
        Head::right("Average"),
        Head::right("Min"),
        Head::right("Max"),
        Head::right("Total"),
    ]);
    for (per, rows) in [("cache", &result.rows), ("object", &result.per_object)] {
        for row in rows {
            table.row(extended_line(per, row, scale));
        }
    }
    let mut note = format!(
        "over {} caches with slabs of {}",
        result.active, result.caches
    );
    if result.unknown > 0 {
        note = format!(
            "{note}; {} do not tell whether they have any",
            result.unknown
        );
    }
    table.note(note);
    table
}

/// One decimal, except for sizes that are scaled.
fn average(figure: Approx<f64>, unit: Unit, scale: Scale) -> Cell {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an average of figures is positive and rounded for people"
    )]
    let rounded = figure.map(|v| v.round() as u64);
    let mark = if figure.approx { "~" } else { "" };
    let exact = format!("{:.1}", figure.value);
    Cell {
        shown: if unit == Unit::Bytes && rounded.value >= 10_000 {
            cells::number(rounded, unit, scale).shown
        } else {
            format!("{mark}{exact}")
        },
        exact,
    }
}

fn extended_line(per: &str, row: &ExtendedRow, scale: Scale) -> Vec<Cell> {
    let figure = |f: Option<Approx<Figure>>| match f {
        None => Cell::missing(),
        Some(f) => match f.value {
            Figure::Whole(n) => cells::number(f.map(|_| n), row.unit, scale),
            Figure::Share(r) => cells::percent(f.map(|_| r)),
        },
    };
    let average = match (row.average, row.unit) {
        (None, _) => Cell::missing(),
        (Some(a), Unit::Percent) => cells::percent(a),
        (Some(a), unit) => average(a, unit, scale),
    };
    let name = row.name.replace('_', " ").replace("share", "%");
    vec![
        Cell::text(per),
        Cell {
            shown: name,
            exact: row.name.to_owned(),
        },
        average,
        figure(row.min),
        figure(row.max),
        figure(row.total),
    ]
}
