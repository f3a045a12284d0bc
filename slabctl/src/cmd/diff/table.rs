//! The comparison as a table: the main figures for people, all for CSV.

use collectors::analysis::diff::{Changes, Diff, DiffRow, Presence};
use collectors::model::{Approx, Unit};
use collectors::units::Scale;

use crate::cmd::cells;
use crate::output::json_diff;
use crate::output::table::{Cell, Head, Table};

/// What people look at, with the sums of all caches in the last row.
pub(super) fn people(diff: &Diff, scale: Scale) -> Table {
    let timed = diff.elapsed.is_some_and(|e| !e.is_zero());
    let grouped = diff.rows.iter().any(|row| row.cgroup.is_some());
    let mut heads = vec![Head::left("Name")];
    if grouped {
        heads.push(Head::left("Cgroup"));
    }
    heads.extend([
        Head::left(""),
        Head::right("Space"),
        Head::right("Now"),
        Head::right("Change"),
    ]);
    if timed {
        heads.push(Head::right("Space/h"));
    }
    heads.extend(["Objects", "Slabs", "Part"].map(Head::right));
    let mut table = Table::new(heads);
    let mut add = |name: &str, cgroup: Option<&str>, mark: String, changes: &Changes| {
        let mut cells = vec![Cell::text(name)];
        if grouped {
            cells.push(Cell::text(cgroup.unwrap_or_default()));
        }
        cells.push(Cell::text(mark));
        cells.extend(figures(changes, timed, scale));
        table.row(cells);
    };
    for row in &diff.rows {
        add(&row.name, row.cgroup.as_deref(), mark(row), &row.changes);
    }
    add("total, all caches", None, String::new(), &diff.totals);
    table
}

pub(crate) fn mark(row: &DiffRow) -> String {
    match (row.presence, &row.renamed_from) {
        (Presence::Appeared, _) => "new".to_owned(),
        (Presence::Vanished, _) => "gone".to_owned(),
        (Presence::Both, Some(old)) => format!("was {old}"),
        (Presence::Both, None) => String::new(),
    }
}

fn figures(changes: &Changes, timed: bool, scale: Scale) -> Vec<Cell> {
    let memory = &changes.memory;
    let mut cells = vec![
        cells::maybe(memory.before, Unit::Bytes, scale),
        cells::maybe(memory.after, Unit::Bytes, scale),
        cells::delta(memory.delta, Unit::Bytes, scale),
    ];
    if timed {
        cells.push(cells::delta(whole(memory.per_hour), Unit::Bytes, scale));
    }
    cells.extend([
        cells::delta(changes.objects.delta, Unit::Objects, scale),
        cells::delta(changes.slabs.delta, Unit::Slabs, scale),
        cells::delta(changes.partial.delta, Unit::Slabs, scale),
    ]);
    cells
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a rate is rounded for people; floats saturate when cast"
)]
fn whole(rate: Option<Approx<f64>>) -> Option<Approx<i128>> {
    rate.map(|r| r.map(|v| v.round() as i128))
}

/// Every figure of every row, under the same header whatever is known. There is
/// no row of sums: whoever adds up a column must not count them twice.
pub(crate) fn exact(diff: &Diff) -> Table {
    let mut heads = ["name", "renamed_from", "id", "cgroup", "status"]
        .map(Head::left)
        .to_vec();
    // Only the names are of use here.
    for (figure, _) in json_diff::named(&diff.totals) {
        let key = figure.trim_end_matches("_bytes");
        let parts = ["before", "after", "delta", "per_hour"];
        heads.extend(parts.map(|part| Head::right(&format!("{key}_{part}"))));
    }
    let mut table = Table::new(heads);
    for row in &diff.rows {
        let text = |text: Option<&str>| text.map_or_else(Cell::missing, Cell::text);
        let mut cells = vec![
            Cell::text(&*row.name),
            text(row.renamed_from.as_deref()),
            text(row.sysfs_id.as_deref()),
            text(row.cgroup.as_deref()),
            Cell::text(row.presence.name()),
        ];
        for (_, change) in json_diff::named(&row.changes) {
            cells.extend([
                number(change.before),
                number(change.after),
                number(change.delta),
                number(change.per_hour),
            ]);
        }
        table.row(cells);
    }
    table
}

fn number<T: ToString>(figure: Option<Approx<T>>) -> Cell {
    figure.map_or_else(Cell::missing, |f| Cell::text(f.value.to_string()))
}
