//! The names of merged caches (-a).

use std::io::{self, Write};

use collectors::model::{Cache, Snapshot};

use super::notes::Notes;
use super::options::{Options, Switch};
use super::select;

struct Group<'a> {
    target: &'a str,
    names: Vec<&'a str>,
}

/// Prints each merged cache with its names, or with -i each name with its cache.
pub(crate) fn print(
    options: &Options,
    snapshot: &Snapshot,
    notes: &mut Notes,
    out: &mut dyn Write,
) -> io::Result<()> {
    let told = |c: &Cache| c.aliases.is_some() || c.sysfs_id.is_some();
    if !snapshot.caches.iter().any(told) {
        notes.say("-a: this source does not tell which caches were merged");
        return Ok(());
    }
    let single = options.has(Switch::SingleRef);
    let mut groups: Vec<Group<'_>> = select::matching(options, snapshot)
        .filter_map(|c| group(c, single))
        .collect();
    groups.sort_by(|a, b| select::compare_names(a.target, b.target));
    let limit = options
        .lines
        .map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    if options.has(Switch::Inverted) {
        return print_names(&groups, limit, out);
    }
    if !groups.is_empty() {
        writeln!(out)?;
    }
    for group in groups.iter().take(limit) {
        writeln!(out, "{:<12} <- {}", group.target, group.names.join(" "))?;
    }
    Ok(())
}

fn group(cache: &Cache, single: bool) -> Option<Group<'_>> {
    let id = select::merge_id(cache);
    let mut names: Vec<&str> = if id.is_some() {
        select::links(cache).collect()
    } else {
        // A source without merge ids still tells of further names.
        cache.names().collect()
    };
    let enough = names.len() > 1 || (single && id.is_some() && !names.is_empty());
    names.sort_by(|a, b| select::compare_names(a, b));
    enough.then_some(Group {
        target: id.unwrap_or(&cache.name),
        names,
    })
}

fn print_names(groups: &[Group<'_>], limit: usize, out: &mut dyn Write) -> io::Result<()> {
    let pairs = |g: &Group<'_>| -> Vec<(String, String)> {
        let pair = |n: &&str| ((*n).to_owned(), g.target.to_owned());
        g.names.iter().map(pair).collect()
    };
    let mut lines: Vec<(String, String)> = groups.iter().flat_map(pairs).collect();
    lines.sort_by(|a, b| select::compare_names(&a.0, &b.0).then_with(|| a.1.cmp(&b.1)));
    for (name, target) in lines.iter().take(limit) {
        writeln!(out, "{name:<15} -> {target}")?;
    }
    Ok(())
}
