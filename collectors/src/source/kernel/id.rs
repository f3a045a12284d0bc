//! What the id of a mergeable cache says, so that no file need be read for it.
//!
//! Source: `create_unique_id` and `slab_unmergeable` in mm/slub.c, Linux 2.6.22
//! to 7.3. A directory `:[letters-]size` is a cache without a constructor,
//! without a user-copy region and not freed by RCU; the letters name its flags.
//! A cache with debug flags other than consistency checks is not mergeable;
//! before Linux 5.9 they could be set later, which the presence of
//! `alloc_calls` (removed in 5.14) gives away.

use std::collections::BTreeSet;

use super::attributes::{Attribute, Form};
use crate::model::{Cache, Ctor, Flag, Layer, Quantity};

/// Which attributes the id has told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    mergeable: bool,
    debug: bool,
}

impl Told {
    pub(super) const fn has(&self, attribute: &Attribute) -> bool {
        match attribute.form {
            Form::Ctor
            | Form::Number(Quantity::Usersize)
            | Form::Flag(Flag::ReclaimAccount | Flag::CacheDma | Flag::DestroyByRcu) => {
                self.mergeable
            }
            Form::Flag(Flag::Poison | Flag::RedZone | Flag::StoreUser | Flag::Trace) => self.debug,
            _ => false,
        }
    }
}

/// Sets in `cache` what its directory's name tells. `available` are the
/// attribute files of the running kernel; one it lacks stays unknown.
pub(super) fn tell(id: &str, cache: &mut Cache, available: Option<&BTreeSet<String>>) -> Told {
    let (Some(rest), Some(available)) = (id.strip_prefix(':'), available) else {
        return Told::default();
    };
    let letters = rest.split_once('-').map_or("", |(letters, _)| letters);
    let has = |name: &str| available.contains(name);
    if has("ctor") {
        cache.ctor = Ctor::None;
    }
    if has("usersize") {
        cache.set_exact(Quantity::Usersize, 0, Layer::Sysfs);
    }
    let mut flag = |flag: Flag, value: bool| {
        if has(flag.name()) {
            cache.flags.put(flag, value);
        }
    };
    flag(Flag::ReclaimAccount, letters.contains('a'));
    flag(Flag::CacheDma, letters.contains('d'));
    flag(Flag::DestroyByRcu, false);
    let debug = !has("alloc_calls");
    if debug {
        for off in [Flag::Poison, Flag::RedZone, Flag::StoreUser, Flag::Trace] {
            flag(off, false);
        }
    }
    Told {
        mergeable: true,
        debug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CacheId;

    fn told(id: &str, files: &[&str]) -> Cache {
        let mut cache = Cache::new(CacheId(0), "x");
        let files = files.iter().map(|f| (*f).to_owned()).collect();
        tell(id, &mut cache, Some(&files));
        cache
    }

    const MODERN: &[&str] = &["ctor", "usersize", "reclaim_account", "cache_dma", "poison"];

    #[test]
    fn the_letters_name_the_flags() {
        let cache = told(":aA-0000192", MODERN);
        assert_eq!(cache.flags.get(Flag::ReclaimAccount), Some(true));
        assert_eq!(cache.flags.get(Flag::CacheDma), Some(false));
        assert_eq!(cache.flags.get(Flag::Poison), Some(false));
        assert_eq!(cache.ctor, Ctor::None);
        assert_eq!(
            told(":d-0000128", MODERN).flags.get(Flag::CacheDma),
            Some(true)
        );
        assert_eq!(
            told(":0000128", MODERN).flags.get(Flag::ReclaimAccount),
            Some(false)
        );
    }

    #[test]
    fn what_the_kernel_lacks_or_could_change_stays_unread() {
        assert_eq!(told(":0000128", &["ctor"]).flags.get(Flag::CacheDma), None);
        let old = told(":0000128", &["poison", "alloc_calls"]);
        assert_eq!(old.flags.get(Flag::Poison), None);
        assert_eq!(told("dentry", MODERN).ctor, Ctor::Unknown);
    }
}
