//! Listings of /sys/kernel/slab: which names are links to which merged cache.
//!
//! Purpose: merge groups from `ls -l` (any options), `find -printf '%p -> %l'`,
//! `find -ls`, the same lines in a mail, and messages that name both paths. Source of truth: mm/slub.c (names
//! of merged caches, `create_unique_id`) and the listings in sosreports. Modes,
//! owners, labels and dates are not kept.

use std::collections::{BTreeMap, BTreeSet};

use super::{clean, rows};
use crate::model::{Cache, Layer, Warning, WarningCode, Warnings};

/// What a listing tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Name of a cache and the directory it is a link to.
    pub links: Vec<(String, String)>,
    /// Directories: merged caches and those that stand alone.
    pub directories: Vec<String>,
    /// Lines that could not be read.
    pub warnings: Warnings,
}

/// Aliases given in one call: as many caches as names in one group would
/// otherwise take the square of the text.
const MAX_ALIASES: usize = 1 << 20;

/// Whether the text lists merged caches or /sys/kernel/slab itself.
pub fn recognise(text: &[u8]) -> bool {
    let mut of_slab = false;
    clean::lines(rows::head(text)).any(|(_, line)| {
        let line = rows::bare(&line);
        of_slab |= line.contains("sys/kernel/slab");
        match Entry::read(line) {
            Some(Entry::Link(_, target)) => of_slab || is_merge_id(target),
            Some(Entry::Directory(name)) => of_slab || is_merge_id(name),
            Some(Entry::Broken) | None => false,
        }
    })
}

/// Reads every link and directory of the listing.
pub fn parse(text: &[u8]) -> Listing {
    let mut listing = Listing::default();
    let mut broken = None;
    let mut inside = true;
    for (number, line) in clean::lines(text) {
        let line = rows::bare(&line);
        if line.trim().is_empty() {
            continue;
        }
        flush(&mut broken, WarningCode::BrokenRow, &mut listing);
        if let Some(directory) = heading(line) {
            // `ls -R` goes on into the directory of every cache.
            inside = last_part(directory) == "slab";
        } else if inside {
            match Entry::read(line) {
                Some(Entry::Link(name, target)) => {
                    listing.links.push((name.to_owned(), target.to_owned()));
                }
                Some(Entry::Directory(name)) => listing.directories.push(name.to_owned()),
                Some(Entry::Broken) => broken = Some(number),
                None => {}
            }
        }
    }
    flush(&mut broken, WarningCode::Truncated, &mut listing);
    listing
}

/// Names the merge group of every cache that the listing knows, where no better
/// layer did so before. Past a million names in all, the aliases stay unknown.
pub fn apply(listing: &Listing, caches: &mut [Cache]) {
    apply_as(listing, caches, Layer::AliasListing);
}

/// As [`apply`], for another text that tells the same.
pub(super) fn apply_as(listing: &Listing, caches: &mut [Cache], layer: Layer) {
    let mut target_of = BTreeMap::new();
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, target) in &listing.links {
        target_of.insert(name.as_str(), target.as_str());
        groups.entry(target).or_default().insert(name);
    }
    let alone: BTreeSet<&str> = listing.directories.iter().map(String::as_str).collect();
    let mut left = MAX_ALIASES;
    for cache in caches {
        let shown = &*cache.name;
        let known = cache.sysfs_id.as_deref().unwrap_or(shown);
        let id = match target_of.get(shown) {
            Some(target) => target,
            None if groups.contains_key(known) || alone.contains(known) => known,
            None => continue,
        };
        let names = match groups.get(id) {
            Some(group) if group.len() > left => None,
            group => Some(others(group, id, shown)),
        };
        let id = Box::from(id);
        cache.layers.insert(layer);
        cache.sysfs_id.get_or_insert(id);
        if let (None, Some(names)) = (&cache.aliases, names) {
            left = left.saturating_sub(names.len());
            cache.aliases = Some(names);
        }
    }
}

/// The names of a group but the one that is shown.
fn others(group: Option<&BTreeSet<&str>>, id: &str, shown: &str) -> Vec<Box<str>> {
    let group = group.into_iter().flatten().copied();
    // A directory with a real name is one of the names.
    let own = Some(id).filter(|id| !id.starts_with(':'));
    let names: BTreeSet<&str> = group.chain(own).filter(|n| *n != shown).collect();
    names.into_iter().map(Box::from).collect()
}

fn flush(broken: &mut Option<u64>, code: WarningCode, listing: &mut Listing) {
    if let Some(line) = broken.take() {
        let message = "link without a whole target, left out";
        listing
            .warnings
            .push(Warning::new(code, message).at_line(line));
    }
}

/// `/sys/kernel/slab:`, as `ls` prints before the files of a directory.
fn heading(line: &str) -> Option<&str> {
    let path = line.trim().strip_suffix(':')?;
    (path.contains('/') && !path.contains(char::is_whitespace)).then_some(path)
}

enum Entry<'a> {
    Link(&'a str, &'a str),
    Directory(&'a str),
    Broken,
}

impl<'a> Entry<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let mode = line.split_whitespace().take(3).find(|w| is_mode(w));
        match mode.and_then(|m| m.bytes().next()) {
            Some(b'l') => {
                let Some((before, target)) = line.split_once(" -> ") else {
                    return Some(Self::Broken);
                };
                let target = last_part(unquoted(target.trim()));
                let name = name_after_date(before)?;
                Some(if target.is_empty() {
                    Self::Broken
                } else {
                    Self::Link(name, target)
                })
            }
            Some(b'd') => {
                let name = name_after_date(line)?;
                (!matches!(name, "." | "..")).then_some(Self::Directory(name))
            }
            Some(_) => None,
            None => Self::from_paths(line),
        }
    }

    /// `/sys/kernel/slab/cred -> :A-0000192`, without mode bits.
    fn from_paths(line: &'a str) -> Option<Self> {
        let Some((path, target)) = line.split_once(" -> ") else {
            return Self::from_crawler(line);
        };
        let (path, target) = (path.trim(), last_part(target.trim()));
        let single = !path.contains(char::is_whitespace) && !last_part(path).is_empty();
        let of_slab = path.contains("kernel/slab/") || is_merge_id(target);
        (single && of_slab && !target.is_empty()).then(|| Self::Link(last_part(path), target))
    }

    /// A program that walks the tree names the path and where it saw it before.
    fn from_crawler(line: &'a str) -> Option<Self> {
        let mut paths = line
            .split_whitespace()
            .filter(|w| w.contains("sys/kernel/slab/"));
        let (name, id) = (last_part(paths.next()?), last_part(paths.next()?));
        if paths.next().is_some() || name.starts_with(':') || !id.starts_with(':') {
            return None;
        }
        Some(if is_merge_id(id) {
            Self::Link(name, id)
        } else {
            Self::Broken
        })
    }
}

/// `drwxr-xr-x`, with the mark of a label or access list behind it.
fn is_mode(word: &str) -> bool {
    let bits = word.strip_suffix(['.', '+', '@']).unwrap_or(word);
    bits.len() == 10
        && bits.starts_with(['d', 'l', '-', 'c', 'b', 'p', 's'])
        && bits[1..]
            .bytes()
            .all(|b| matches!(b, b'r' | b'w' | b'x' | b'-' | b's' | b'S' | b't' | b'T'))
}

/// The name at the end of a line of `ls`, which may have blanks when a time or
/// year tells where it begins.
fn name_after_date(line: &str) -> Option<&str> {
    let mut at = 0;
    let mut after_date = None;
    let mut last_was_time = false;
    for word in line.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        at += word.len();
        let zone = last_was_time && bare.len() == 5 && bare.starts_with(['+', '-']);
        last_was_time = is_time(bare);
        if last_was_time || zone {
            after_date = Some(at);
        }
    }
    let name = match after_date {
        Some(at) if !line[at..].trim().is_empty() => line[at..].trim(),
        _ => line.split_whitespace().last()?,
    };
    let name = last_part(unquoted(name));
    (!name.is_empty()).then_some(name)
}

/// `02:54` or `02:54:11.000000000`.
fn is_time(word: &str) -> bool {
    let mut parts = word.split(':');
    let two = |p: Option<&str>| p.is_some_and(|p| p.len() == 2 && p.parse::<u8>().is_ok());
    two(parts.next())
        && two(parts.next())
        && parts.next().is_none_or(|p| rows::hundredths(p).is_some())
        && parts.next().is_none()
}

fn unquoted(name: &str) -> &str {
    for quote in ['\'', '"'] {
        if let Some(inner) = name.strip_prefix(quote).and_then(|n| n.strip_suffix(quote)) {
            return inner;
        }
    }
    name
}

fn last_part(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}

/// `:aA-0000192`: flags, then the slot size in seven digits or more.
fn is_merge_id(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(':') else {
        return false;
    };
    let (flags, size) = rest.split_once('-').unwrap_or(("", rest));
    flags.bytes().all(|b| b.is_ascii_alphabetic())
        && size.len() >= 7
        && size.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CacheId;
    use proptest::prelude::*;

    const RHCOS: &str = include_str!("../../tests/data/text/ls-lt-rhcos-4.18.txt");

    fn link(line: &str) -> (String, String) {
        let listing = parse(line.as_bytes());
        assert_eq!(listing.links.len(), 1, "{line}");
        listing.links[0].clone()
    }

    #[test]
    fn every_way_to_list_a_link_is_read() {
        for line in [
            "lrwxrwxrwx 1 root root 0 cred -> :A-0000192",
            "lrwxrwxrwx. 1 root root 0 Oct  2 02:54 cred -> :A-0000192",
            "lrwxrwxrwx. 1 root root 0 Oct  2  2018 cred -> :A-0000192",
            "lrwxrwxrwx. 1 root root system_u:object_r:sysfs_t:s0 0 Mar  1 10:00 cred -> :A-0000192",
            "lrwxrwxrwx 1 0 0 0 2024-03-01 10:00:00.123456789 +0100 cred -> ../slab/:A-0000192",
            "> lrwxrwxrwx 1 root root 0 1. Okt 02:54 cred -> :A-0000192\r",
            "  1234      0 lrwxrwxrwx   1 root root  0 Nov 30 12:00 /sys/kernel/slab/cred -> :A-0000192",
            "/sys/kernel/slab/cred -> :A-0000192",
        ] {
            let expected = ("cred".to_owned(), ":A-0000192".to_owned());
            assert_eq!(link(line), expected, "{line}");
            assert!(recognise(line.as_bytes()), "{line}");
        }
        let odd = link("lrwxrwxrwx 1 root root 0 Oct  2 02:54 'file lock cache' -> :0000240");
        assert_eq!(odd.0, "file lock cache");
    }

    #[test]
    fn other_listings_are_not_taken_for_it() {
        let text = b"total 0\nlrwxrwxrwx 1 root root 7 Oct 2 02:54 bin -> usr/bin\n\
                     drwxr-xr-x 2 root root 0 Oct 2 02:54 boot\n";
        assert!(!recognise(text));
        assert!(recognise(RHCOS.as_bytes()));
    }

    #[test]
    fn the_directories_of_caches_are_not_entered() {
        let text = "/sys/kernel/slab:\ntotal 0\n\
                    drwxr-xr-x 2 root root 0 Oct  2 02:54 .\n\
                    drwxr-xr-x 2 root root 0 Oct  2 02:54 dentry\n\n\
                    /sys/kernel/slab/dentry:\n\
                    drwxr-xr-x 2 root root 0 Oct  2 02:54 cgroup\n\
                    -r-------- 1 root root 4096 Oct  2 02:54 slabs\n";
        assert_eq!(parse(text.as_bytes()).directories, ["dentry"]);
    }

    #[test]
    fn a_cache_gets_the_other_names_of_its_group() {
        let listing = parse(RHCOS.as_bytes());
        let mut caches = ["Acpi-State", ":0000240", "dentry", "no-such-cache"]
            .map(|name| Cache::new(CacheId(0), name));
        apply(&listing, &mut caches);
        assert_eq!(caches[0].sysfs_id.as_deref(), Some(":0000080"));
        let names = caches[0].aliases.as_ref().unwrap();
        assert!(names.iter().any(|n| &**n == "Acpi-ParseExt"));
        assert!(names.iter().all(|n| &**n != "Acpi-State"));
        assert!(names.is_sorted());
        assert_eq!(caches[1].sysfs_id.as_deref(), Some(":0000240"));
        assert!(caches[1].aliases.as_ref().is_some_and(|a| !a.is_empty()));
        assert_eq!(caches[2].aliases.as_deref(), Some(&[][..]));
        assert!(caches[2].layers.contains(Layer::AliasListing));
        assert_eq!((&caches[3].sysfs_id, &caches[3].aliases), (&None, &None));
    }

    #[test]
    fn a_group_as_large_as_the_list_of_caches_stays_cheap() {
        let listing = Listing {
            links: (0..20_000)
                .map(|n| (format!("n{n}"), ":A-0000192".to_owned()))
                .collect(),
            ..Listing::default()
        };
        let mut caches: Vec<Cache> = listing
            .links
            .iter()
            .map(|(name, _)| Cache::new(CacheId(0), name.as_str()))
            .collect();
        apply(&listing, &mut caches);
        assert!(caches.iter().all(|c| c.sysfs_id.is_some()));
        assert_eq!(caches[0].aliases.as_ref().map(Vec::len), Some(19_999));
        let given: usize = caches.iter().flat_map(|c| &c.aliases).map(Vec::len).sum();
        assert!(given <= MAX_ALIASES, "{given}");
        assert_eq!(caches[19_999].aliases, None);
    }

    #[test]
    fn a_cut_line_is_named() {
        let cut = "lrwxrwxrwx 1 root root 0 Oct  2 02:54 cred -> :A-0000192\nlrwxrwxrwx 1 ro";
        let listing = parse(cut.as_bytes());
        assert_eq!(listing.links.len(), 1);
        assert!(listing.warnings.has(WarningCode::Truncated));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let listing = parse(&bytes);
            recognise(&bytes);
            let mut caches = vec![Cache::new(CacheId(0), "x")];
            apply(&listing, &mut caches);
        }

        #[test]
        fn damage_costs_at_most_the_damaged_lines(at in 0usize..18_000, byte in any::<u8>()) {
            let mut text = RHCOS.as_bytes().to_vec();
            text[at] = byte;
            let listing = parse(&text);
            prop_assert!(listing.links.len() + listing.directories.len() >= 322);
        }
    }
}
