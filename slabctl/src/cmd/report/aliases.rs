//! Merged caches with all their names.

use collectors::model::Snapshot;

use crate::cmd::select::Chosen;
use crate::output::table::{Cell, Head, Table};

/// One line a cache that has more than one name.
pub(super) fn table(lines: Option<usize>, snapshot: &Snapshot, chosen: &Chosen<'_>) -> Table {
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
    if snapshot.caches.iter().all(|cache| cache.aliases.is_none()) {
        table.note("which names are merged is not in this source; a copy of /sys/kernel/slab, or `ls -l` of it, tells");
    } else if table.rows.is_empty() {
        table.note("no merged cache here");
    }
    if let Some(more) = lines
        .and_then(|n| table.rows.len().checked_sub(n))
        .filter(|n| *n > 0)
    {
        table.rows.truncate(table.rows.len() - more);
        table.note(format!("{more} more not shown (--top)"));
    }
    table
}
