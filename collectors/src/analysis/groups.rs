//! Caches that belong together: merged names, kmalloc families, cgroup copies.
//!
//! Names are those of mm/slab_common.c and mm/slub.c up to Linux 7.3 and of
//! mm/slab.c up to 6.7. Nothing here can split the figures of a merged cache
//! among its names; only booting with `slab_nomerge` does.

mod kmalloc;

pub use kmalloc::{
    FamilyTotals, KmallocClass, KmallocFamily, VariantTotals, families, kmalloc_class, size_class,
};

use std::collections::BTreeMap;

use crate::model::Cache;

/// The names that share one cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeGroup<'a> {
    /// Directory in /sys/kernel/slab, for example `:0000192`; `None` when the
    /// source gives only names.
    pub id: Option<&'a str>,
    /// The name that /proc/slabinfo shows.
    pub shown: &'a str,
    /// Every name, the shown one among them, sorted. Without alias
    /// information only the shown one.
    pub names: Vec<&'a str>,
}

/// The merge groups among `caches`, sorted by id, then by shown name.
///
/// A group is a cache with a merge id, even one with a single name, or one
/// with aliases. Rows of control groups repeat their parent's and are left out.
pub fn merge_groups(caches: &[Cache]) -> Vec<MergeGroup<'_>> {
    let mut groups: BTreeMap<(Option<&str>, &str), MergeGroup<'_>> = BTreeMap::new();
    for cache in caches.iter().filter(|c| c.cgroup.is_none()) {
        let has_aliases = cache.aliases.as_ref().is_some_and(|a| !a.is_empty());
        if cache.is_mergeable() != Some(true) && !has_aliases {
            continue;
        }
        let id = cache.sysfs_id.as_deref();
        // Two caches without an id are one group only if they show one name.
        let key = (id, if id.is_some() { "" } else { &cache.name });
        let group = groups.entry(key).or_insert_with(|| MergeGroup {
            id,
            shown: &cache.name,
            names: Vec::new(),
        });
        group.names.extend(cache.names());
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    for group in &mut groups {
        group.names.sort_unstable();
        group.names.dedup();
        // A directory that no name resolves to is shown under its own id.
        if group.names.len() > 1 {
            group.names.retain(|n| Some(*n) != group.id);
        }
    }
    groups
}

/// The parts of a per-cgroup cache name, Linux 3.8 to 5.8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemcgOwner<'a> {
    /// The cache that all control groups have.
    pub base: &'a str,
    /// The kernel's number of the group.
    pub id: u64,
    /// The group's own directory name; it may be empty and may hold anything.
    pub cgroup: &'a str,
}

/// Splits a name such as `kmalloc-64(123:container)`.
///
/// `None` for names that only look alike: `gfs2_glock(aspace)`,
/// `biovec-(256)`, `size-64(DMA)`.
pub fn memcg_owner(name: &str) -> Option<MemcgOwner<'_>> {
    let inner = name.strip_suffix(')')?;
    inner.match_indices('(').find_map(|(open, _)| {
        let (id, cgroup) = inner[open + 1..].split_once(':')?;
        if open == 0 || id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(MemcgOwner {
            base: &inner[..open],
            id: id.parse().ok()?,
            cgroup,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CacheId;
    use proptest::prelude::*;

    fn cache(name: &str, id: Option<&str>, aliases: &[&str]) -> Cache {
        let mut cache = Cache::new(CacheId(0), name);
        cache.sysfs_id = id.map(Into::into);
        cache.aliases = Some(aliases.iter().map(|a| (*a).into()).collect());
        cache
    }

    #[test]
    fn merged_names_are_found_and_sorted() {
        // From the alias listing of a CoreOS host with a 4.18 kernel.
        let caches = [
            cache("kmalloc-1024", Some("kmalloc-1024"), &[]),
            cache("Acpi-State", Some(":0000080"), &["Acpi-ParseExt"]),
            cache("UDPv6", Some(":A-0001472"), &[]),
            cache("btree_node", Some(":0000128"), &["uid_cache"]),
        ];
        let groups = merge_groups(&caches);
        let ids: Vec<_> = groups.iter().map(|g| g.id.unwrap()).collect();
        assert_eq!(ids, [":0000080", ":0000128", ":A-0001472"]);
        assert_eq!(groups[0].shown, "Acpi-State");
        assert_eq!(groups[0].names, ["Acpi-ParseExt", "Acpi-State"]);
        assert_eq!(groups[2].names, ["UDPv6"]);
    }

    #[test]
    fn a_group_that_shows_its_id_does_not_list_it_as_a_name() {
        let caches = [cache(":0000080", Some(":0000080"), &["Acpi-State"])];
        assert_eq!(merge_groups(&caches)[0].names, ["Acpi-State"]);
        let bare = [cache(":0000080", Some(":0000080"), &[])];
        assert_eq!(merge_groups(&bare)[0].names, [":0000080"]);
    }

    #[test]
    fn aliases_without_an_id_still_make_a_group() {
        let caches = [cache("a", None, &["b"]), cache("c", None, &[])];
        let groups = merge_groups(&caches);
        assert_eq!(groups.len(), 1);
        assert_eq!((groups[0].id, groups[0].shown), (None, "a"));
    }

    #[test]
    fn cgroup_names_are_split() {
        let owner = memcg_owner("kmalloc-64(123:container)").unwrap();
        assert_eq!((owner.base, owner.id), ("kmalloc-64", 123));
        assert_eq!(owner.cgroup, "container");
        // A cgroup's name may hold what the format uses; a base may end in ')'.
        let odd = memcg_owner("biovec-(256)(7:a(1:b).scope)").unwrap();
        assert_eq!(
            (odd.base, odd.id, odd.cgroup),
            ("biovec-(256)", 7, "a(1:b).scope")
        );
        assert_eq!(memcg_owner("dentry(9:)").unwrap().cgroup, "");
    }

    #[test]
    fn names_that_only_look_alike_are_left_whole() {
        for name in [
            "gfs2_glock(aspace)",
            "biovec-(256)",
            "size-64(DMA)",
            "iwl_cmd_pool:0000:04:00.0",
            "x(12)",
            "(12:y)",
            "x(+1:y)",
            "x(99999999999999999999999:y)",
            "x(1:y",
            "",
        ] {
            assert_eq!(memcg_owner(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_split_name_is_the_name(name in "[a-z:()0-9é-]{0,24}") {
            if let Some(o) = memcg_owner(&name) {
                let tail = format!("{})", o.cgroup);
                prop_assert!(name.starts_with(o.base));
                prop_assert!(name.ends_with(&tail));
            }
        }
    }
}
