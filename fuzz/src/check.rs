//! What must hold whatever was read.

use collectors::analysis::totals::Totals;
use collectors::analysis::usage::Usage;
use collectors::analysis::{consistency, diff, groups, reconcile};
use collectors::columns::{self, Row};
use collectors::model::{Approx, Cache, Snapshot, Warnings};
use collectors::parse::{Parsed, clean};

use crate::memory;

/// Caches that are sorted by every column; more only costs time.
const SORTED: usize = 64;

/// Bytes that may be held for an input of `len` bytes. A row of 12 bytes becomes
/// a cache of 480 bytes, some boxes, and may stand in a list that just grew.
fn allowance(len: usize) -> usize {
    (4 << 20) + 160 * len
}

/// Runs `f` over an input of `len` bytes and checks how much it held.
pub fn bounded<T>(len: usize, f: impl FnOnce() -> T) -> T {
    let (value, peak) = memory::peak_of(f);
    assert!(peak <= allowance(len), "held {peak} bytes for {len}");
    value
}

/// Lines as the parsers count them.
pub fn lines(text: &[u8]) -> u64 {
    clean::lines(text).count() as u64
}

/// Checks a parser of a whole text, and gives what it found.
pub fn parser(text: &[u8], parse: impl Fn(&[u8]) -> Parsed) -> Parsed {
    let found = bounded(text.len(), || parse(text));
    same(&found, &parse(text));
    parsed(text, &found);
    found
}

/// Two results of parsing must not differ.
pub fn same(a: &Parsed, b: &Parsed) {
    // Not `assert_eq`, which prints all of both.
    assert!(a.caches == b.caches, "caches differ");
    assert_eq!(a.warnings, b.warnings);
    assert_eq!(a.broken_rows, b.broken_rows);
}

fn parsed(text: &[u8], found: &Parsed) {
    let lines = lines(text);
    let rows = found.caches.len() as u64;
    assert!(
        rows + found.broken_rows <= lines,
        "{rows} rows and {} broken ones in {lines} lines",
        found.broken_rows
    );
    warnings(&found.warnings, Some(lines));
    // Other control characters are for the front end to escape.
    assert!(found.caches.iter().all(|c| !c.name.contains('\n')));
    caches(&found.caches, 4096);
}

/// Warnings are few, short, in one line, and name a line that exists.
pub fn warnings(list: &Warnings, lines: Option<u64>) {
    assert!(list.iter().count() <= Warnings::LIMIT);
    for warning in list {
        let text = &warning.message;
        assert!(
            !text.is_empty() && text.len() <= 2048,
            "{} bytes",
            text.len()
        );
        assert!(!text.contains('\n'), "{text:?}");
        if let (Some(line), Some(lines)) = (warning.line, lines) {
            assert!((1..=lines).contains(&line), "line {line} of {lines}");
        }
    }
}

fn share(figure: Option<Approx<f64>>) {
    if let Some(figure) = figure {
        assert!((0.0..=1.0).contains(&figure.value), "{}", figure.value);
    }
}

/// Every cache has a name, and figures that make sense.
pub fn caches(caches: &[Cache], page_size: u64) {
    for cache in caches {
        assert!(!cache.name.is_empty());
        let usage = Usage::of(cache, page_size);
        share(usage.utilization);
        share(usage.object_use);
        share(usage.fragmentation);
    }
}

/// Everything that a report does with a snapshot.
pub fn snapshot(snapshot: &Snapshot) {
    assert!(snapshot.system.page_size > 0);
    for (at, cache) in snapshot.caches.iter().enumerate() {
        assert_eq!(cache.id.0 as usize, at);
    }
    caches(&snapshot.caches, snapshot.system.page_size);
    warnings(&snapshot.warnings, None);
    analysis(snapshot);
    sorting(snapshot);
}

fn analysis(snapshot: &Snapshot) {
    let page_size = snapshot.system.page_size;
    warnings(&consistency::check(snapshot), None);
    let _ = consistency::is_partial(snapshot);
    let found = reconcile::reconcile(snapshot);
    share(found.memory_share);
    let _ = groups::merge_groups(&snapshot.caches);
    let _ = groups::families(&snapshot.caches, page_size);
    let totals = Totals::of(&snapshot.caches, page_size);
    for (_, missing) in totals.incomplete() {
        assert!(missing <= snapshot.caches.len() as u64);
    }
    unchanged(snapshot);
}

/// Between a snapshot and itself nothing changed.
fn unchanged(snapshot: &Snapshot) {
    let diff = diff::diff(snapshot, snapshot, None);
    assert_eq!(diff.rows.len(), snapshot.caches.len());
    for row in &diff.rows {
        assert_eq!(row.presence, diff::Presence::Both, "{}", row.name);
    }
}

/// Every column can be shown, and sorted by: `sort_by` panics at a comparison
/// that contradicts itself.
fn sorting(snapshot: &Snapshot) {
    let page_size = snapshot.system.page_size;
    let caches = snapshot.caches.iter().take(SORTED);
    let mut rows: Vec<Row<'_>> = caches.map(|c| Row::new(c, page_size)).collect();
    for column in columns::all() {
        for row in &rows {
            if let Some(n) = column.value(row).number() {
                assert!(!n.is_nan(), "{}", column.key);
            }
        }
        for reverse in [false, true] {
            rows.sort_by(|a, b| columns::compare(column, reverse, a, b));
        }
    }
}

/// Both ways between two snapshots: each cache comes once, and what appeared
/// one way vanished the other.
pub fn difference(a: &Snapshot, b: &Snapshot) {
    let there = diff::diff(a, b, None);
    let count = |d: &diff::Diff, p| d.rows.iter().filter(|r| r.presence == p).count();
    let both = count(&there, diff::Presence::Both);
    assert_eq!(
        both + count(&there, diff::Presence::Vanished),
        a.caches.len()
    );
    assert_eq!(
        both + count(&there, diff::Presence::Appeared),
        b.caches.len()
    );
    warnings(&there.warnings, None);
    let _ = diff::diff(b, a, Some(std::time::Duration::from_secs(1)));
}
