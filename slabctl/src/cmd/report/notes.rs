//! What is said after a table: what is not shown and why, where it is from.
//!
//! Notes go to standard error, after the table, so that a pipe gets data only.

use collectors::columns::{Column, Row, Value};
use collectors::model::{Cache, Quantity, Snapshot};
use collectors::similar;

use super::{Kind, Plan};
use crate::cmd::Context;
use crate::cmd::select::Chosen;
use crate::output::text;

/// Most caches named in one note.
const NAMED: usize = 5;

/// Whether no cache of the snapshot has a value in the column.
pub(super) fn is_missing_everywhere(column: &Column, snapshot: &Snapshot) -> bool {
    let page_size = snapshot.system.page_size;
    let mut rows = snapshot.caches.iter().map(|c| Row::new(c, page_size));
    !snapshot.caches.is_empty() && rows.all(|row| column.value(&row) == Value::Missing)
}

/// Says what is not shown and where the figures are from.
pub(super) fn say(
    context: &Context,
    plan: &Plan,
    patterns: &[String],
    snapshot: &Snapshot,
    chosen: &Chosen<'_>,
) {
    let total = snapshot.caches.len();
    if chosen.matched == 0 && !plan.selection.is_all() {
        context.note(&format!("no cache of {total} passes the filter"));
        nothing(context, plan, patterns, snapshot);
        return;
    } else if let Some(hidden) = hidden(chosen) {
        let shown = chosen.rows.len();
        context.note(&format!("{shown} of {total} caches: {hidden}"));
    }
    let by_cache = !matches!(plan.kind, Kind::Aliases | Kind::Names);
    if by_cache && let Some(note) = aliases(plan, chosen) {
        context.note(&note);
    }
    if let Some(column) = plan.selection.sort()
        && sorts_by_column(plan.kind)
        && !chosen.rows.is_empty()
        && is_missing_everywhere(column, snapshot)
    {
        context.note(&format!(
            "{} is not in this source: sorted by name",
            column.key
        ));
    }
    origins(context, plan, snapshot);
}

fn sorts_by_column(kind: Kind) -> bool {
    // Activity says itself that there are no counters.
    matches!(kind, Kind::List | Kind::Names | Kind::Numa | Kind::Debug)
}

fn hidden(chosen: &Chosen<'_>) -> Option<String> {
    let mut parts = Vec::new();
    if chosen.empty > 0 {
        parts.push(format!("{} empty hidden (--all)", chosen.empty));
    }
    if chosen.cut > 0 {
        parts.push(format!("{} more not shown (--top)", chosen.cut));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Why nothing passed: a figure that the source lacks, or a slip in a name.
fn nothing(context: &Context, plan: &Plan, patterns: &[String], snapshot: &Snapshot) {
    let columns = plan.selection.filter().columns();
    let unknown = columns
        .into_iter()
        .filter(|column| is_missing_everywhere(column, snapshot));
    for column in unknown {
        context.note(&format!(
            "{} is not in this source, so no comparison with it holds",
            column.key
        ));
    }
    let names = || snapshot.caches.iter().flat_map(Cache::names);
    let words = patterns.iter().filter(|p| !p.contains(['*', '?', '/']));
    // A name that is there was held back by something else.
    let words = words.filter(|word| !names().any(|name| name == word.as_str()));
    for word in words.take(NAMED) {
        let near = similar::closest(word, names());
        if !near.is_empty() {
            let near = text::safe(&near.join(", ")).into_owned();
            context.note(&format!("did you mean {near}?"));
        }
    }
}

/// Which caches are here for a name that is not the one shown.
fn aliases(plan: &Plan, chosen: &Chosen<'_>) -> Option<String> {
    let filter = plan.selection.filter();
    let mut found = chosen.rows.iter().filter_map(|row| {
        let alias = filter.through_alias(row.cache)?;
        Some(format!("{alias} is merged into {}", row.cache.name))
    });
    let mut shown: Vec<String> = found.by_ref().take(NAMED).collect();
    let more = found.count();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    (!shown.is_empty()).then(|| text::safe(&shown.join(", ")).into_owned())
}

fn origins(context: &Context, plan: &Plan, snapshot: &Snapshot) {
    let layers = &snapshot.origin.layers;
    let mut wanted = plan.demand.quantities;
    if layers.iter().any(|l| l.gave.contains(Quantity::Order)) {
        // The same figure in another form.
        wanted.remove(Quantity::PagesPerSlab);
    }
    for layer in layers {
        let given = layer.gave.iter().filter(|q| wanted.contains(*q));
        let fields: Vec<_> = given.map(Quantity::name).collect();
        if !fields.is_empty() {
            let file = text::safe(&layer.file);
            context.note(&format!("from {file}: {}", fields.join(", ")));
        }
    }
}
