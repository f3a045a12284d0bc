//! Which era of SLUB a kernel is of, told from its attributes.

use crate::model::{Allocator, Cache, Era, Flag, Quantity};

/// Tells the era. `peek` reads an attribute of a cache that was not asked for.
pub(super) fn detect(
    caches: &[Cache],
    allocator: Allocator,
    may_have_sheaves: bool,
    peek: &dyn Fn(&Cache, &str) -> Option<u64>,
) -> Era {
    if allocator == Allocator::Slab {
        return Era::Slab;
    }
    let capacity = |cache: &Cache| {
        cache
            .get(Quantity::SheafCapacity)
            .map(|f| f.value)
            .or_else(|| peek(cache, Quantity::SheafCapacity.name()))
    };
    // kmalloc caches have sheaves from 7.0 on (unless they are debugged), and
    // never in 6.18 and 6.19.
    let kmalloc = caches
        .iter()
        .find(|c| c.sysfs_id.is_some() && c.names().any(|n| n.starts_with("kmalloc-")));
    let Some(kmalloc) = kmalloc else {
        return Era::Unknown;
    };
    let found = if may_have_sheaves {
        capacity(kmalloc)
    } else {
        None
    };
    match found {
        Some(0) if debugging(kmalloc, peek) => Era::Unknown,
        Some(0) => Era::Mixed,
        Some(_) => Era::Sheaves,
        None if kmalloc.sysfs_id.is_some() => Era::CpuSlabs,
        None => Era::Unknown,
    }
}

/// A debugged cache has no sheaves on any kernel, so it tells nothing.
fn debugging(cache: &Cache, peek: &dyn Fn(&Cache, &str) -> Option<u64>) -> bool {
    let flags = [
        Flag::Poison,
        Flag::RedZone,
        Flag::StoreUser,
        Flag::SanityChecks,
        Flag::Trace,
    ];
    flags.into_iter().any(|flag| match cache.flags.get(flag) {
        Some(set) => set,
        None => peek(cache, flag.name()) == Some(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CacheId, Layer};

    fn kmalloc(capacity: Option<u64>) -> Vec<Cache> {
        let mut cache = Cache::new(CacheId(0), "kmalloc-64");
        cache.sysfs_id = Some("kmalloc-64".into());
        if let Some(capacity) = capacity {
            cache.set_exact(Quantity::SheafCapacity, capacity, Layer::Sysfs);
        }
        vec![cache]
    }

    #[test]
    fn three_eras_and_what_cannot_be_told() {
        let none = |_: &Cache, _: &str| None;
        let detect = |caches: &[Cache]| detect(caches, Allocator::Slub, true, &none);
        assert_eq!(detect(&kmalloc(None)), Era::CpuSlabs);
        assert_eq!(detect(&kmalloc(Some(0))), Era::Mixed);
        assert_eq!(detect(&kmalloc(Some(60))), Era::Sheaves);
        assert_eq!(detect(&[]), Era::Unknown);
        let mut debugged = kmalloc(Some(0));
        debugged[0].flags.put(Flag::Poison, true);
        assert_eq!(detect(&debugged), Era::Unknown);
    }

    #[test]
    fn debug_flags_that_were_not_asked_for_are_looked_up() {
        let peek = |_: &Cache, name: &str| (name == "red_zone").then_some(1);
        let era = super::detect(&kmalloc(Some(0)), Allocator::Slub, true, &peek);
        assert_eq!(era, Era::Unknown);
    }
}
