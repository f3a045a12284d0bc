//! The list of caches, by columns.

use std::io::Write as _;

use collectors::columns::{self, Column};
use collectors::model::Unit;

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

/// One line a cache.
pub(super) fn table(context: &Context, columns: &[&Column], chosen: &Chosen<'_>) -> Table {
    let scale = context.global.scale();
    let mut table = Table::new(columns.iter().map(|c| head(c)).collect());
    for row in &chosen.rows {
        table.row(columns.iter().map(|c| cells::cell(c, row, scale)).collect());
    }
    table
}

/// One line a name: the figures of a merged cache stand behind each of its names.
pub(super) fn by_name(context: &Context, columns: &[&Column], chosen: &Chosen<'_>) -> Table {
    let scale = context.global.scale();
    let columns: Vec<_> = columns.iter().filter(|c| c.key != "name").collect();
    let mut heads = vec![Head::left("Name"), Head::left("Merged into").key("id")];
    heads.extend(columns.iter().map(|c| head(c)));
    let mut table = Table::new(heads);
    let mut lines = Vec::new();
    for row in &chosen.rows {
        let shared = row.cache.names().count() > 1;
        let id = row.cache.sysfs_id.as_deref().filter(|_| shared);
        for name in row.cache.names() {
            let mut line = vec![Cell::text(name), id.map_or_else(Cell::missing, Cell::text)];
            line.extend(columns.iter().map(|c| cells::cell(c, row, scale)));
            lines.push(line);
        }
    }
    lines.sort_by(|a, b| a[0].exact.cmp(&b[0].exact));
    table.rows = lines;
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
