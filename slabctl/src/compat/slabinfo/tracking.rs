//! Who allocated and freed the objects of a cache: the whole list.
//!
//! The form of a record is the kernel's (mm/slub.c, `slab_debugfs_show`); the
//! tool prints the first 4095 bytes of it.

use std::fmt::Write as _;
use std::io::{self, Write};

use collectors::model::{CallSite, Flag, SiteKind};

use super::row::Row;

/// Prints both lists of a cache.
pub(crate) fn print(row: &Row<'_>, out: &mut dyn Write) -> io::Result<()> {
    let lists = [(SiteKind::Alloc, "allocation"), (SiteKind::Free, "freeing")];
    for (kind, word) in lists {
        writeln!(out, "\n{}: Kernel object {word}", row.name)?;
        // The second line is one longer in the tool.
        writeln!(
            out,
            "{}",
            "-".repeat(71 + usize::from(kind == SiteKind::Free))
        )?;
        let Some(sites) = row.cache.sites.as_deref() else {
            writeln!(out, "{}", why_none(row))?;
            continue;
        };
        let mut any = false;
        for site in sites.iter().filter(|s| s.kind == kind) {
            any = true;
            out.write_all(record(site).as_bytes())?;
        }
        if !any {
            writeln!(out, "No Data")?;
        }
    }
    Ok(())
}

/// An unread list is told from an empty one.
fn why_none(row: &Row<'_>) -> &'static str {
    if row.cache.flags.get(Flag::StoreUser) == Some(false) {
        "- (not recorded: the cache has no slab_debug=U)"
    } else {
        "- (not readable here)"
    }
}

fn record(site: &CallSite) -> String {
    let symbol = site.symbol.as_deref().unwrap_or("<not-available>");
    let mut text = format!("{:>7} {symbol}", site.count.get());
    // Writing to a string cannot fail.
    let _ = details(site, &mut text);
    text.push('\n');
    for frame in &site.stack {
        let _ = writeln!(text, "        {frame}");
    }
    if !site.stack.is_empty() {
        text.push('\n');
    }
    text
}

fn details(site: &CallSite, text: &mut String) -> std::fmt::Result {
    if let Some((all, each)) = site.waste {
        write!(text, " waste={all}/{each}")?;
    }
    match site.age {
        Some((min, avg, max)) if min == avg && avg == max => write!(text, " age={min}")?,
        Some((min, avg, max)) => write!(text, " age={min}/{avg}/{max}")?,
        None => {}
    }
    match site.pids {
        Some((min, max)) if min == max => write!(text, " pid={min}")?,
        Some((min, max)) => write!(text, " pid={min}-{max}")?,
        None => {}
    }
    if !site.cpus.is_empty() {
        write!(text, " cpus={}", list(site.cpus.iter().map(|c| c.0)))?;
    }
    if !site.nodes.is_empty() {
        write!(text, " nodes={}", list(site.nodes.iter().map(|n| n.0)))?;
    }
    Ok(())
}

/// Numbers as the kernel lists them: `0-3,7`.
fn list(numbers: impl Iterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(number) => *end = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |(start, end): &(u32, u32)| {
        if start == end {
            start.to_string()
        } else {
            format!("{start}-{end}")
        }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_processors_are_joined() {
        assert_eq!(list([0, 1, 2, 3, 7].into_iter()), "0-3,7");
        assert_eq!(list([u32::MAX].into_iter()), "4294967295");
        assert_eq!(list(std::iter::empty()), "");
    }
}
