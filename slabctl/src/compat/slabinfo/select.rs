//! Which caches are shown, under which name, in which order.
//!
//! Source of truth: tools/mm/slabinfo.c of Linux 6.12, with its filter and its
//! order repaired. A merged cache (a directory `:id`) has several names. The
//! tool shows it under the only one, under its id when there are several, and
//! with -f under the longest; here -f picks the first-created name, the one
//! that /proc/slabinfo has.

use std::cmp::Ordering;

use collectors::model::{Cache, Flag, Snapshot};

use super::options::{Options, Sort, Switch};
use super::row::Row;

/// The caches that the pattern and -U leave, in the snapshot's order.
pub(crate) fn selected<'a>(options: &Options, snapshot: &'a Snapshot) -> Vec<Row<'a>> {
    let page_size = snapshot.system.page_size;
    matching(options, snapshot)
        .filter(|c| !hidden_as_reclaimable(options, c))
        .map(|c| Row::new(c, shown_name(options, c), page_size))
        .collect()
}

/// The caches that the pattern leaves.
pub(crate) fn matching<'a>(
    options: &Options,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = &'a Cache> {
    snapshot.caches.iter().filter(|c| matches(options, c))
}

fn hidden_as_reclaimable(options: &Options, cache: &Cache) -> bool {
    options.has(Switch::Unreclaim) && cache.flags.is_set(Flag::ReclaimAccount)
}

fn name_matches(options: &Options, name: &str) -> bool {
    options.pattern.as_ref().is_none_or(|p| p.matches(name))
}

/// A cache matches by its id, its name or any other name.
fn matches(options: &Options, cache: &Cache) -> bool {
    let mut names = cache.names().chain(cache.sysfs_id.as_deref());
    names.any(|name| name_matches(options, name))
}

/// Whether sysfs has the cache under a merge id.
pub(crate) fn merge_id(cache: &Cache) -> Option<&str> {
    cache.sysfs_id.as_deref().filter(|id| id.starts_with(':'))
}

/// The names that lead to a merged cache.
pub(crate) fn links(cache: &Cache) -> impl Iterator<Item = &str> {
    let id = cache.sysfs_id.as_deref();
    cache.names().filter(move |name| Some(*name) != id)
}

/// The name a cache is shown under. With a pattern only the names that match
/// count, so that the one asked for is the one seen.
fn shown_name<'a>(options: &Options, cache: &'a Cache) -> &'a str {
    let Some(id) = merge_id(cache) else {
        return &cache.name;
    };
    let mut found: Vec<&str> = links(cache)
        .filter(|name| name_matches(options, name))
        .collect();
    if found.is_empty() {
        found = links(cache).collect();
    }
    match *found {
        [only] => only,
        // The first-created name leads the list unless the pattern left it out.
        [first, ..] if options.has(Switch::FirstAlias) => first,
        _ => id,
    }
}

/// Whether -e and -z let a cache be seen in a table.
pub(crate) fn is_visible(options: &Options, row: &Row<'_>) -> bool {
    if options.has(Switch::Empty) {
        row.slabs == Some(0)
    } else {
        options.has(Switch::Zero) || row.slabs != Some(0)
    }
}

/// Names without regard to case, then exactly, then in source order.
fn by_name(a: &Row<'_>, b: &Row<'_>) -> Ordering {
    compare_names(a.name, b.name).then_with(|| a.cache.id.cmp(&b.cache.id))
}

/// Names without regard to case, then exactly.
pub(crate) fn compare_names(a: &str, b: &str) -> Ordering {
    fold_case(a).cmp(fold_case(b)).then_with(|| a.cmp(b))
}

fn fold_case(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().map(|b| b.to_ascii_lowercase())
}

/// Orders the rows. -i turns the order round; ties stay in the order of names
/// and unknown figures stay last.
pub(crate) fn sort<'a>(rows: &mut [Row<'a>], by: Sort, inverted: bool) {
    let key = |row: &Row<'a>| match by {
        Sort::Size => row.memory,
        Sort::Activity => row.activity(),
        Sort::Loss => row.loss,
        Sort::Partial => row.partial,
        Sort::Name => None,
    };
    if by == Sort::Name {
        rows.sort_by(by_name);
        if inverted {
            rows.reverse();
        }
        return;
    }
    rows.sort_by_cached_key(|row| {
        let value = key(row);
        let rank = value.map(|v| if inverted { v } else { u64::MAX - v });
        let folded: Vec<u8> = fold_case(row.name).collect();
        (value.is_none(), rank, folded, row.name, row.cache.id)
    });
}
