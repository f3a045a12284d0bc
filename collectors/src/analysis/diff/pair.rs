//! Which cache of one snapshot is which of another.
//!
//! A name is no key: names repeat, a merged cache may be shown under another
//! of its names, and a cache may keep its name and change its size. So the
//! passes go from the strictest likeness to the loosest, and within one pass
//! equal caches pair in source order.

use std::collections::{HashMap, VecDeque};

use crate::model::{Cache, Quantity};

/// Control group, sysfs directory, shown name, slot size.
type Key<'s> = (
    Option<&'s str>,
    Option<&'s str>,
    Option<&'s str>,
    Option<u64>,
);

/// For each cache of `a` the index of its counterpart in `b`.
pub fn pair(a: &[Cache], b: &[Cache]) -> Vec<Option<usize>> {
    let mut pairing = Pairing {
        a,
        b,
        found: vec![None; a.len()],
        taken: vec![false; b.len()],
    };
    let slot = |c: &Cache| c.get(Quantity::SlabSize).map(|f| f.value);
    pairing.pass(|c| {
        let id = c.sysfs_id.as_deref()?;
        Some((c.cgroup.as_deref(), Some(id), Some(&*c.name), slot(c)))
    });
    pairing.pass(|c| Some((c.cgroup.as_deref(), None, Some(&*c.name), slot(c))));
    pairing.pass(|c| Some((c.cgroup.as_deref(), None, Some(&*c.name), None)));
    pairing.pass_by_alias();
    pairing.pass(|c| {
        let id = c.sysfs_id.as_deref()?;
        Some((c.cgroup.as_deref(), Some(id), None, None))
    });
    pairing.found
}

struct Pairing<'s> {
    a: &'s [Cache],
    b: &'s [Cache],
    found: Vec<Option<usize>>,
    taken: Vec<bool>,
}

impl<'s> Pairing<'s> {
    fn pass(&mut self, key: impl Fn(&'s Cache) -> Option<Key<'s>>) {
        let mut waiting: HashMap<Key<'s>, VecDeque<usize>> = HashMap::new();
        for (i, cache) in self.b.iter().enumerate() {
            if !self.taken[i]
                && let Some(key) = key(cache)
            {
                waiting.entry(key).or_default().push_back(i);
            }
        }
        for (found, cache) in self.found.iter_mut().zip(self.a) {
            if found.is_some() {
                continue;
            }
            let queue = key(cache).and_then(|key| waiting.get_mut(&key));
            if let Some(i) = queue.and_then(VecDeque::pop_front) {
                self.taken[i] = true;
                *found = Some(i);
            }
        }
    }

    /// Pairs merged caches that share any name, the first in source order.
    fn pass_by_alias(&mut self) {
        let mut owners: HashMap<(Option<&str>, &str), VecDeque<usize>> = HashMap::new();
        for (i, cache) in self.b.iter().enumerate() {
            if !self.taken[i] {
                for name in cache.names() {
                    let key = (cache.cgroup.as_deref(), name);
                    owners.entry(key).or_default().push_back(i);
                }
            }
        }
        for (found, cache) in self.found.iter_mut().zip(self.a) {
            if found.is_some() {
                continue;
            }
            let mut first: Option<usize> = None;
            for name in cache.names() {
                let Some(queue) = owners.get_mut(&(cache.cgroup.as_deref(), name)) else {
                    continue;
                };
                // Taken ones leave for good, so a name shared by many stays cheap.
                while queue.front().is_some_and(|i| self.taken[*i]) {
                    queue.pop_front();
                }
                first = first.into_iter().chain(queue.front().copied()).min();
            }
            if let Some(i) = first {
                self.taken[i] = true;
                *found = Some(i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CacheId, Layer};

    fn cache(name: &str, size: u64) -> Cache {
        let mut cache = Cache::new(CacheId(0), name);
        cache.set_exact(Quantity::SlabSize, size, Layer::Slabinfo);
        cache
    }

    fn merged(name: &str, id: &str, aliases: &[&str]) -> Cache {
        let mut cache = cache(name, 64);
        cache.sysfs_id = Some(id.into());
        cache.aliases = Some(aliases.iter().map(|a| (*a).into()).collect());
        cache
    }

    #[test]
    fn equal_names_pair_in_source_order_within_their_size() {
        let a = [cache("x", 64), cache("x", 128), cache("x", 64)];
        let b = [cache("x", 128), cache("x", 64), cache("x", 64)];
        assert_eq!(pair(&a, &b), [Some(1), Some(0), Some(2)]);
        assert_eq!(pair(&a, &b[..2]), [Some(1), Some(0), None]);
    }

    #[test]
    fn a_cache_that_changed_its_size_is_still_the_same() {
        let a = [cache("dentry", 192), cache("filp", 256)];
        let b = [cache("filp", 256), cache("dentry", 528)];
        assert_eq!(pair(&a, &b), [Some(1), Some(0)]);
    }

    #[test]
    fn a_merged_cache_shown_under_another_name_is_the_same() {
        let a = [merged("Acpi-State", ":0000080", &["Acpi-ParseExt"])];
        let b = [
            merged("other", ":0000064", &[]),
            merged(
                "Acpi-ParseExt",
                ":0000088",
                &["Acpi-State", "audit_tree_mark"],
            ),
        ];
        assert_eq!(pair(&a, &b), [Some(1)]);
        // Without names in common, the directory tells.
        let c = [merged("z", ":0000080", &[])];
        assert_eq!(pair(&a, &c), [Some(0)]);
    }

    #[test]
    fn many_caches_with_one_alias_pair_quickly() {
        let side = |prefix: &str| -> Vec<Cache> {
            (0..20_000)
                .map(|i| merged(&format!("{prefix}{i}"), &format!(":{prefix}{i}"), &["same"]))
                .collect()
        };
        let found = pair(&side("a"), &side("b"));
        assert!(found.iter().enumerate().all(|(i, j)| *j == Some(i)));
    }

    #[test]
    fn control_groups_are_kept_apart() {
        let mut web = cache("dentry", 192);
        web.cgroup = Some("/web".into());
        let a = [cache("dentry", 192), web.clone()];
        assert_eq!(pair(&a, &[web]), [None, Some(0)]);
    }
}
