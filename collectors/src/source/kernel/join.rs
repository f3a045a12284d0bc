//! Brings the rows of /proc/slabinfo and the directories of sysfs together.
//!
//! A row carries the first-created name of a merged cache, which is a link or
//! a directory in sysfs. Two rows may have one name; only one of them has the
//! directory.

use std::collections::HashMap;

use super::entries::CacheDir;
use crate::model::{Cache, Quantity};

/// Rows by name, each to be taken once.
pub(super) struct Rows {
    rows: Vec<Option<Cache>>,
    by_name: HashMap<Box<str>, Vec<usize>>,
}

/// What a directory found among the rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// No row has any of its names.
    None,
    /// One row, by its index.
    One(usize),
    /// Several rows of one name.
    Several(Vec<usize>),
}

impl Rows {
    pub(super) fn new(caches: Vec<Cache>) -> Self {
        let mut by_name: HashMap<Box<str>, Vec<usize>> = HashMap::new();
        for (index, cache) in caches.iter().enumerate() {
            by_name.entry(cache.name.clone()).or_default().push(index);
        }
        Self {
            rows: caches.into_iter().map(Some).collect(),
            by_name,
        }
    }

    /// The rows that carry one of the directory's names.
    pub(super) fn find(&self, dir: &CacheDir) -> Match {
        let names = std::iter::once(dir.id.as_str()).chain(dir.links.iter().map(String::as_str));
        for name in names {
            match self.by_name.get(name).map(Vec::as_slice) {
                Some([one]) => return Match::One(*one),
                Some(several) => return Match::Several(several.to_vec()),
                None => {}
            }
        }
        Match::None
    }

    pub(super) fn get(&self, index: usize) -> Option<&Cache> {
        self.rows.get(index)?.as_ref()
    }

    pub(super) fn take(&mut self, index: usize) -> Option<Cache> {
        self.rows.get_mut(index)?.take()
    }

    /// Of several rows of one name, the one that is this directory's: same
    /// geometry, then the last, which the kernel created first.
    pub(super) fn choose(&self, candidates: &[usize], cache: &Cache) -> Option<usize> {
        let same = |q: Quantity, row: &Cache| match (row.get(q), cache.get(q)) {
            (Some(a), Some(b)) => a.value == b.value,
            _ => true,
        };
        let geometry = [Quantity::SlabSize, Quantity::ObjsPerSlab, Quantity::Order];
        candidates.iter().copied().rfind(|i| {
            self.get(*i)
                .is_some_and(|row| geometry.iter().all(|q| same(*q, row)))
        })
    }

    /// Rows that no directory took, with their place in the text.
    pub(super) fn rest(self) -> impl Iterator<Item = (usize, Cache)> {
        self.rows
            .into_iter()
            .enumerate()
            .filter_map(|(i, row)| Some((i, row?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CacheId, Layer};

    fn row(name: &str, size: u64) -> Cache {
        let mut cache = Cache::new(CacheId(0), name);
        cache.set_exact(Quantity::SlabSize, size, Layer::Slabinfo);
        cache
    }

    #[test]
    fn two_rows_of_one_name_stay_two_caches() {
        let mut rows = Rows::new(vec![row("mlx5_fs_ftes", 512), row("mlx5_fs_ftes", 256)]);
        let dir = CacheDir {
            id: "mlx5_fs_ftes".into(),
            links: Vec::new(),
        };
        let Match::Several(candidates) = rows.find(&dir) else {
            panic!("both rows have the name");
        };
        let chosen = rows.choose(&candidates, &row("mlx5_fs_ftes", 512)).unwrap();
        assert_eq!(chosen, 0);
        assert!(rows.take(chosen).is_some());
        assert_eq!(rows.rest().count(), 1);
    }

    #[test]
    fn a_merged_cache_is_found_by_any_of_its_names() {
        let rows = Rows::new(vec![row("kmalloc-64", 64), row("aio_kiocb", 192)]);
        let dir = CacheDir {
            id: ":A-0000192".into(),
            links: vec!["aio_kiocb".into(), "cred".into()],
        };
        assert_eq!(rows.find(&dir), Match::One(1));
    }
}
