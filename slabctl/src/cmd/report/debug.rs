//! Debug options per cache.

use collectors::model::{Flag, Quantity};

use crate::cmd::select::Chosen;
use crate::output::table::{Cell, Head, Table};

const OPTIONS: [(Flag, &str); 6] = [
    (Flag::SanityChecks, "F"),
    (Flag::RedZone, "Z"),
    (Flag::Poison, "P"),
    (Flag::StoreUser, "U"),
    (Flag::Trace, "T"),
    (Flag::Failslab, "A"),
];

/// One line a cache, with the letters of slab_debug.
pub(super) fn table(chosen: &Chosen<'_>) -> Table {
    let mut heads = vec![Head::left("Name")];
    heads.extend(
        OPTIONS
            .iter()
            .map(|(flag, letter)| Head::left(letter).key(flag.name())),
    );
    heads.push(Head::right("Objsize").key("object_size"));
    heads.push(Head::right("Slot").key("slab_size"));
    heads.push(Head::right("Metadata").key("metadata"));
    let mut table = Table::new(heads);
    for row in &chosen.rows {
        let cache = row.cache;
        let mut line = vec![Cell::text(&*cache.name)];
        for (flag, _) in OPTIONS {
            line.push(match cache.flags.get(flag) {
                Some(true) => Cell::text("on"),
                Some(false) => Cell::text("off"),
                None => Cell::missing(),
            });
        }
        let size = |q| cache.get(q).map(|f| f.value);
        let (object, slot) = (size(Quantity::ObjectSize), size(Quantity::SlabSize));
        let metadata = object.zip(slot).map(|(o, s)| s.saturating_sub(o));
        for figure in [object, slot, metadata] {
            line.push(figure.map_or_else(Cell::missing, |v| Cell::text(v.to_string())));
        }
        table.row(line);
    }
    if !chosen.rows.is_empty() && chosen.rows.iter().all(|r| r.cache.flags.is_unknown()) {
        table.note("debug options are not in this source; a Slot much larger than the size in a kmalloc cache's name is a sign of them");
    }
    table
}
