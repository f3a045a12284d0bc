//! What is done outside: files that are written, the kernel that is changed.
//!
//! The screen opens no files. It hands what is to be written to a host, on a
//! thread of its own, so that a slow disk holds up no key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use collectors::model::Snapshot;

use crate::model::{Model, Shown, shown};
use crate::msg::Change;
use collectors::columns::{Row, Value};
use collectors::units::decimal;

/// The list as it is filtered and sorted.
#[derive(Debug, Clone)]
pub struct Export {
    /// Where to; its ending tells the form.
    pub path: PathBuf,
    /// The snapshot that is shown.
    pub snapshot: Arc<Snapshot>,
    /// The caches of it, in the order shown.
    pub places: Vec<usize>,
    /// Names of the columns shown.
    pub head: Vec<String>,
    /// Their exact values, line by line; empty is unknown.
    pub rows: Vec<Vec<String>>,
}

/// Does what the screen cannot. Each returns a line for people.
pub trait Host: Send {
    /// Writes a list.
    fn export(&mut self, list: &Export) -> Result<String, String>;
    /// Writes the screen as it was drawn.
    fn picture(&mut self, path: &Path, text: &str) -> Result<String, String>;
    /// Writes all slab state of the machine.
    fn snapshot(&mut self, path: &Path) -> Result<String, String>;
    /// Changes the state of a cache in the kernel.
    fn change(&mut self, change: Change, cache: &str) -> Result<String, String>;
}

/// The list that a model shows; `None` before the first sample.
pub fn export(model: &Model, path: &Path) -> Option<Export> {
    let shown = model.time.shown.as_ref()?;
    let columns: Vec<Shown> = model
        .list
        .columns
        .iter()
        .filter(|c| **c != Shown::Trend)
        .copied()
        .collect();
    let rows = model.list.lines.iter().filter_map(|line| {
        let cache = shown.snapshot.caches.get(line.place)?;
        let row = Row::new(cache, shown.page_size());
        let base = model.base().and_then(|base| base.cache(line.key));
        let alias = line.alias.and_then(|i| cache.aliases.as_deref()?.get(i));
        let cells = columns.iter().map(|column| match (column, alias) {
            (Shown::Plain(c), Some(alias)) if c.key == "name" => alias.to_string(),
            (Shown::Plain(c), _) => exact(c.value(&row)),
            (Shown::Change(c), _) => {
                let change = shown::change(c, base, &row, shown.page_size());
                let change = if model.since_mark {
                    change
                } else {
                    let elapsed = model.time.elapsed_since(model.base());
                    change.and_then(|c| shown::per_second(c, elapsed?))
                };
                change.map_or_else(String::new, |c| c.value.to_string())
            }
            (Shown::Trend, _) => String::new(),
        });
        Some(cells.collect())
    });
    let head = columns.iter().map(|column| match column {
        Shown::Change(c) if model.since_mark => format!("{}_since_mark", c.key),
        Shown::Change(c) => format!("{}_per_second", c.key),
        _ => column.name().into_owned(),
    });
    let mut places: Vec<usize> = model.list.lines.iter().map(|l| l.place).collect();
    places.dedup();
    Some(Export {
        path: path.to_owned(),
        snapshot: Arc::clone(&shown.snapshot),
        places,
        head: head.collect(),
        rows: rows.collect(),
    })
}

fn exact(value: Value<'_>) -> String {
    match value {
        Value::Missing => String::new(),
        Value::Int(figure) => figure.value.to_string(),
        Value::Ratio(ratio) => decimal(ratio.value, 4),
        Value::Text(text) => text.into_owned(),
    }
}
