//! Brings the rows of /proc/slabinfo and the directories of sysfs together.
//!
//! A row carries the first-created name of a merged cache, which is a link or
//! a directory in sysfs. Two rows may have one name; only one of them has the
//! directory.

use std::collections::HashMap;

use super::entries::CacheDir;
use crate::model::{Cache, Quantity};

/// A directory, and what it found among the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) dir: CacheDir,
    pub(super) row: Match,
}

/// What a directory found among the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Match {
    /// No row has any of its names.
    None,
    /// One row, by its index.
    One(usize),
    /// Several rows of one name.
    Several(Vec<usize>),
}

/// Finds the row of each directory. It depends on names only, so that it holds
/// for the next sample if they are the same.
pub(super) fn join(dirs: Vec<CacheDir>, rows: &[Cache]) -> Vec<Joined> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        by_name.entry(&*row.name).or_default().push(index);
    }
    let find = |dir: &CacheDir| {
        let names = std::iter::once(dir.id.as_str()).chain(dir.links.iter().map(String::as_str));
        for name in names {
            match by_name.get(name).map(Vec::as_slice) {
                Some([one]) => return Match::One(*one),
                Some(several) => return Match::Several(several.to_vec()),
                None => {}
            }
        }
        Match::None
    };
    let joined = dirs.into_iter().map(|dir| Joined {
        row: find(&dir),
        dir,
    });
    joined.collect()
}

/// Rows, each to be taken once.
pub(super) struct Rows(Vec<Option<Cache>>);

impl Rows {
    pub(super) fn new(caches: Vec<Cache>) -> Self {
        Self(caches.into_iter().map(Some).collect())
    }

    pub(super) fn get(&self, index: usize) -> Option<&Cache> {
        self.0.get(index)?.as_ref()
    }

    pub(super) fn take(&mut self, index: usize) -> Option<Cache> {
        self.0.get_mut(index)?.take()
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
        self.0
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
        let caches = vec![row("mlx5_fs_ftes", 512), row("mlx5_fs_ftes", 256)];
        let dir = CacheDir {
            id: "mlx5_fs_ftes".into(),
            links: Vec::new(),
        };
        let found = join(vec![dir], &caches);
        let Match::Several(candidates) = &found[0].row else {
            panic!("both rows have the name");
        };
        let mut rows = Rows::new(caches);
        let chosen = rows.choose(candidates, &row("mlx5_fs_ftes", 512)).unwrap();
        assert_eq!(chosen, 0);
        assert!(rows.take(chosen).is_some());
        assert_eq!(rows.rest().count(), 1);
    }

    #[test]
    fn a_merged_cache_is_found_by_any_of_its_names() {
        let rows = [row("kmalloc-64", 64), row("aio_kiocb", 192)];
        let dir = CacheDir {
            id: ":A-0000192".into(),
            links: vec!["aio_kiocb".into(), "cred".into()],
        };
        assert_eq!(join(vec![dir], &rows)[0].row, Match::One(1));
    }
}
