//! The list of caches, by columns.

use std::io::Write as _;

use collectors::columns::{self, Column};
use collectors::model::{Snapshot, Unit};

use super::{Plan, notes};
use crate::cmd::select::Chosen;
use crate::cmd::{Context, cells};
use crate::fail::Status;
use crate::output::table::{Cell, Head, Table};

fn head(column: &Column) -> Head {
    let head = if column.is_numeric() {
        Head::right(column.title)
    } else {
        Head::left(column.title)
    };
    head.key(column.key)
}

/// The columns to show, and the titles of those left out: the mode's own for
/// which this source has no figure at all, such as partial slabs in a
/// slabinfo. Slots stand in for object sizes where only they are known.
fn choose(plan: &Plan, snapshot: &Snapshot) -> (Vec<&'static Column>, Vec<&'static str>) {
    let mut columns = plan.columns.clone();
    let mut left_out = Vec::new();
    if !plan.own_columns {
        return (columns, left_out);
    }
    let missing = |key: &str| {
        columns::find(key).is_none_or(|column| notes::is_missing_everywhere(column, snapshot))
    };
    if let Some(slot) = columns::find("slab_size")
        && !columns.iter().any(|column| column.key == slot.key)
        && missing("object_size")
        && !missing(slot.key)
        && let Some(at) = columns.iter().position(|c| c.key == "object_size")
    {
        left_out.push(columns[at].title);
        columns[at] = slot;
    }
    columns.retain(|column| {
        let keep = plan.is_added(column)
            || column.key == "name"
            || !notes::is_missing_everywhere(column, snapshot);
        if !keep {
            left_out.push(column.title);
        }
        keep
    });
    (columns, left_out)
}

fn say_left_out(table: &mut Table, columns: &[&Column], left_out: &[&str]) {
    if table.rows.is_empty() {
        return;
    }
    if columns.iter().all(|column| column.key == "name") {
        table.note("this source has names only; report --aliases shows which of them are merged");
    } else if !left_out.is_empty() {
        table.note(format!(
            "not in this source, so not shown: {}",
            left_out.join(", ")
        ));
    }
}

/// One line a cache.
pub(super) fn table(
    context: &Context,
    plan: &Plan,
    snapshot: &Snapshot,
    chosen: &Chosen<'_>,
) -> Table {
    let scale = context.global.scale();
    let (columns, left_out) = choose(plan, snapshot);
    let mut table = Table::new(columns.iter().map(|c| head(c)).collect());
    for row in &chosen.rows {
        table.row(columns.iter().map(|c| cells::cell(c, row, scale)).collect());
    }
    say_left_out(&mut table, &columns, &left_out);
    table
}

/// One line a name: the figures of a merged cache stand behind each of its
/// names. Only names that match, where patterns were given; an id matches all.
pub(super) fn by_name(
    context: &Context,
    plan: &Plan,
    snapshot: &Snapshot,
    chosen: &Chosen<'_>,
) -> Table {
    let scale = context.global.scale();
    let (columns, left_out) = choose(plan, snapshot);
    let columns: Vec<_> = columns.into_iter().filter(|c| c.key != "name").collect();
    let mut heads = vec![Head::left("Name"), Head::left("Merged into").key("id")];
    heads.extend(columns.iter().map(|c| head(c)));
    let mut table = Table::new(heads);
    let filter = plan.selection.filter();
    for row in &chosen.rows {
        let shared = row.cache.names().count() > 1;
        let id = row.cache.sysfs_id.as_deref().filter(|_| shared);
        let some = row.cache.names().any(|name| filter.accepts_name(name));
        let names = row
            .cache
            .names()
            .filter(|n| !some || filter.accepts_name(n));
        for name in names {
            let mut line = vec![Cell::text(name), id.map_or_else(Cell::missing, Cell::text)];
            line.extend(columns.iter().map(|c| cells::cell(c, row, scale)));
            table.row(line);
        }
    }
    if plan.selection.sort().is_some_and(|c| c.key == "name") {
        table.rows.sort_by(|a, b| a[0].exact.cmp(&b[0].exact));
        if plan.selection.is_reversed() {
            table.rows.reverse();
        }
    }
    if let Some(lines) = plan.lines {
        if table.rows.len() > lines {
            let more = table.rows.len() - lines;
            table.note(format!("{more} more names not shown (--top)"));
        }
        table.rows.truncate(lines);
    }
    say_left_out(&mut table, &columns, &left_out);
    table
}

/// `--list-columns`.
pub(super) fn columns(context: &Context) -> anyhow::Result<Status> {
    let mut table = Table::new(vec![
        Head::left("Column"),
        Head::left("Title"),
        Head::left("Unit"),
        Head::left("Meaning"),
    ]);
    for column in columns::all() {
        let unit = match column.unit {
            Unit::Bytes => "bytes",
            Unit::Objects => "objects",
            Unit::Slabs => "slabs",
            Unit::Count => "number",
            Unit::Percent => "percent",
            Unit::Seconds => "seconds",
            Unit::Text => "text",
        };
        table.row(vec![
            Cell::text(column.key),
            Cell::text(column.title),
            Cell::text(unit),
            Cell::text(column.doc),
        ]);
    }
    let mut out = Context::out();
    super::write_table(context, &table, &mut out)?;
    out.flush()?;
    Ok(Status::Ok)
}
