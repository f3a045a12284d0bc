//! kmalloc caches of one size, with all their variants together.

use collectors::analysis::groups;
use collectors::model::{Approx, Cache, Snapshot, Unit};

use crate::cmd::{Context, cells};
use crate::output::table::{Cell, Head, Table};

/// One line a size, and one below it for each variant when there are several;
/// at most `sizes` sizes.
pub(super) fn table(
    context: &Context,
    sizes: Option<usize>,
    snapshot: &Snapshot,
    caches: &[&Cache],
) -> Table {
    let mut table = Table::new(vec![
        Head::right("Size").key("size"),
        Head::left("Variant").key("variant"),
        Head::right("Caches").key("caches"),
        Head::right("Objects").key("objects"),
        Head::right("Space").key("memory"),
        Head::right("Used").key("used"),
        Head::right("Loss").key("loss"),
    ]);
    let owned: Vec<Cache> = caches.iter().map(|c| (*c).clone()).collect();
    let scale = context.global.scale();
    let families = groups::families(&owned, snapshot.system.page_size);
    let shown = sizes.unwrap_or(usize::MAX).min(families.len());
    for family in &families[..shown] {
        let mut line = |variant: &str, totals: &collectors::analysis::totals::Totals| {
            let bytes = |f: Option<Approx<collectors::model::Bytes>>| {
                cells::maybe(
                    f.map(|f| f.map(collectors::model::Bytes::get)),
                    Unit::Bytes,
                    scale,
                )
            };
            table.row(vec![
                Cell::text(family.size.to_string()),
                Cell::text(variant),
                Cell::text(totals.caches.to_string()),
                cells::maybe(
                    totals
                        .objects
                        .total
                        .map(|f| f.map(collectors::model::Objects::get)),
                    Unit::Objects,
                    scale,
                ),
                bytes(totals.memory.total),
                bytes(totals.used.total),
                bytes(totals.loss.total),
            ]);
        };
        line("all", &family.totals);
        if family.variants.len() > 1 {
            for variant in &family.variants {
                line(variant.family.name(), &variant.totals);
            }
        }
    }
    if shown < families.len() {
        let more = families.len() - shown;
        table.note(format!("{more} more sizes not shown (--top)"));
    }
    table
}
