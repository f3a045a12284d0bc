//! The directory /sys/kernel/slab: caches and the links that alias them.

use std::collections::BTreeMap;

use crate::model::{Warning, WarningCode, Warnings};
use crate::source::tree::{Entry, EntryKind};

/// One cache directory with the names that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CacheDir {
    /// The directory's name: `:aA-0000192`, or the cache's own.
    pub(super) id: String,
    /// Names of the links that point at it, sorted.
    pub(super) links: Vec<String>,
}

impl CacheDir {
    /// Whether `name` is one of the cache's names.
    pub(super) fn answers_to(&self, name: &str) -> bool {
        self.id == name
            || self
                .links
                .binary_search_by(|l| l.as_str().cmp(name))
                .is_ok()
    }

    /// The name to show when nothing says which was created first.
    pub(super) fn fallback_name(&self) -> &str {
        if !self.id.starts_with(':') {
            return &self.id;
        }
        let kmalloc = self.links.iter().find(|l| l.starts_with("kmalloc"));
        kmalloc.or(self.links.first()).map_or(&self.id, |l| l)
    }
}

/// Sorts the entries of /sys/kernel/slab into caches; what does not belong
/// there is a warning, never the end of the report.
pub(super) fn sort(entries: Vec<Entry>, base: &str, warnings: &mut Warnings) -> Vec<CacheDir> {
    let mut dirs = BTreeMap::new();
    let mut links = Vec::new();
    for entry in entries {
        match entry.kind {
            EntryKind::Directory => {
                dirs.insert(entry.name, Vec::new());
            }
            EntryKind::Link(target) => links.push((entry.name, target)),
            EntryKind::File | EntryKind::Other => warnings.push(
                Warning::new(
                    WarningCode::StrayEntry,
                    "not a cache directory or link, passed over",
                )
                .in_file(format!("{base}/{}", entry.name)),
            ),
        }
    }
    for (name, target) in links {
        let id = target
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or("");
        match dirs.get_mut(id) {
            Some(names) => names.push(name),
            None => warnings.push(
                Warning::new(
                    WarningCode::DanglingLink,
                    format!("link to {target}, which is not there"),
                )
                .in_file(format!("{base}/{name}")),
            ),
        }
    }
    dirs.into_iter()
        .map(|(id, mut links)| {
            links.sort();
            CacheDir { id, links }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: EntryKind) -> Entry {
        Entry {
            name: name.into(),
            kind,
        }
    }

    #[test]
    fn links_find_their_directory_and_strays_are_named() {
        let mut warnings = Warnings::default();
        let dirs = sort(
            vec![
                entry("cred", EntryKind::Link("../slab/:A-0000192".into())),
                entry(":A-0000192", EntryKind::Directory),
                entry("aio", EntryKind::Link(":A-0000192".into())),
                entry("lost", EntryKind::Link(":0000008".into())),
                entry("README", EntryKind::File),
            ],
            "sys/kernel/slab",
            &mut warnings,
        );
        assert_eq!(dirs.len(), 1);
        assert_eq!(dirs[0].links, ["aio", "cred"]);
        assert_eq!(dirs[0].fallback_name(), "aio");
        assert!(dirs[0].answers_to("cred") && dirs[0].answers_to(":A-0000192"));
        assert!(warnings.has(WarningCode::DanglingLink));
        assert!(warnings.has(WarningCode::StrayEntry));
    }
}
