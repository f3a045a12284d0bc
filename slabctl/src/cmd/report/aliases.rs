//! Merged caches with all their names.

use crate::cmd::select::Chosen;
use crate::output::table::{Cell, Head, Table};

/// One line a cache that has more than one name.
pub(super) fn table(chosen: &Chosen<'_>) -> Table {
    let mut table = Table::new(vec![
        Head::left("Id"),
        Head::left("Shown as").key("name"),
        Head::right("Names").key("names"),
        Head::left("Also").key("aliases"),
    ]);
    for row in &chosen.rows {
        let cache = row.cache;
        let Some(aliases) = cache.aliases.as_ref().filter(|a| !a.is_empty()) else {
            continue;
        };
        table.row(vec![
            cache
                .sysfs_id
                .as_deref()
                .map_or_else(Cell::missing, Cell::text),
            Cell::text(&*cache.name),
            Cell::text((aliases.len() + 1).to_string()),
            Cell::text(aliases.join(" ")),
        ]);
    }
    table
}
