//! Which caches a kernel validates, how far its look goes, and what would allow the rest.
//!
//! Source of truth: validate_store() and validate_slab_node() of mm/slub.c from
//! 2.6.22 to 7.3. Since 6.1 ("mm/slub: restrict sysfs validation to debug caches
//! and make it safe") a cache without debug options is refused with EINVAL;
//! where that came earlier, by a backport, the kernel's answer to the write
//! tells it.

use crate::model::{Cache, Flag, Quantity};
use crate::source::doctor::{boot_words, version};

/// The first kernel on which a validation and frees keep out of each other's
/// way, and on which caches without debug options are refused.
pub const SAFE_SINCE: (u32, u32) = (6, 1);

/// Whether the kernel's validation is safe beside frees; `None` when its
/// release does not tell its version.
pub fn is_safe(kernel: Option<&str>) -> Option<bool> {
    Some(version(kernel?)? >= SAFE_SINCE)
}

/// How far the kernel's look at a cache goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All slabs.
    AllSlabs,
    /// Slabs with free objects: only `store_user` makes the kernel keep a list
    /// of full ones.
    PartialSlabs,
}

impl Reach {
    /// The name in all output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllSlabs => "all-slabs",
            Self::PartialSlabs => "partial-slabs",
        }
    }

    /// How many slabs of a cache that are, by its counters.
    pub fn slabs(self, cache: &Cache) -> Option<u64> {
        let of = match self {
            Self::AllSlabs => Quantity::Slabs,
            Self::PartialSlabs => Quantity::Partial,
        };
        Some(cache.get(of)?.value)
    }
}

/// How far a validation of the cache goes; `None` when the kernel refuses one.
pub fn reach(cache: &Cache, kernel: Option<&str>) -> Option<Reach> {
    if cache.flags.is_set(Flag::StoreUser) {
        return Some(Reach::AllSlabs);
    }
    let accepted =
        cache.flags.debugging() || cache.flags.is_unknown() || is_safe(kernel) != Some(true);
    accepted.then_some(Reach::PartialSlabs)
}

/// What is checked of each object within reach.
pub fn checks(cache: &Cache) -> Vec<&'static str> {
    let mut list = vec!["free-lists", "counters"];
    let flags = [(Flag::RedZone, "red-zones"), (Flag::Poison, "poison")];
    let on = flags
        .into_iter()
        .filter(|(flag, _)| cache.flags.is_set(*flag));
    list.extend(on.map(|(_, name)| name));
    list
}

/// The boot option with which a cache can be validated in full. `F` alone is
/// not enough for a merged cache: it does not keep a cache from being merged.
pub fn boot_option(name: &str, kernel: Option<&str>) -> String {
    format!("{}=FZPU,{name}", boot_words(kernel).0)
}

/// Why the kernel does not validate a cache that the user called `name`, and
/// what would make it do so.
pub fn why_not(cache: &Cache, name: &str, kernel: Option<&str>) -> String {
    let option = boot_option(name, kernel);
    let others: Vec<_> = cache.names().filter(|n| *n != name).collect();
    let shared = if others.is_empty() {
        String::new()
    } else {
        let nomerge = boot_words(kernel).1;
        let others = listed(&others);
        format!(
            ", which also takes it out of the cache it shares with {others} ({nomerge} does for all)"
        )
    };
    format!(
        "no debug option is on for it, and the kernel refuses to validate such a cache; boot with {option}{shared}"
    )
}

/// Names for a sentence, not all of many.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CacheId, Layer};

    fn cache(flags: &[Flag]) -> Cache {
        let mut cache = Cache::new(CacheId(0), "cred_jar");
        for flag in Flag::ALL {
            cache.flags.put(*flag, flags.contains(flag));
        }
        cache.with(
            Layer::Sysfs,
            &[(Quantity::Slabs, 90), (Quantity::Partial, 7)],
        )
    }

    #[test]
    fn the_reach_follows_from_flags_and_age() {
        let plain = cache(&[Flag::HwcacheAlign]);
        assert_eq!(reach(&plain, Some("6.1.0-57-cloud-amd64")), None);
        assert_eq!(reach(&plain, Some("6.18.44")), None);
        for old in [Some("6.0.19"), Some("5.10.0"), Some("custom"), None] {
            assert_eq!(reach(&plain, old), Some(Reach::PartialSlabs), "{old:?}");
        }
        let logged = cache(&[Flag::Trace]);
        let some = reach(&logged, Some("7.3.4")).unwrap();
        assert_eq!((some, some.slabs(&logged)), (Reach::PartialSlabs, Some(7)));
        let tracked = cache(&[Flag::StoreUser]);
        let all = reach(&tracked, Some("7.3.4")).unwrap();
        assert_eq!((all, all.slabs(&tracked)), (Reach::AllSlabs, Some(90)));
        // Failing on purpose is no check.
        assert_eq!(reach(&cache(&[Flag::Failslab]), Some("7.3.4")), None);
        let unread = Cache::new(CacheId(0), "x");
        assert_eq!(reach(&unread, Some("7.3.4")), Some(Reach::PartialSlabs));
    }

    #[test]
    fn what_is_not_watched_is_not_said_to_be_checked() {
        assert_eq!(checks(&cache(&[Flag::Trace])), ["free-lists", "counters"]);
        assert!(checks(&cache(&[Flag::Poison])).contains(&"poison"));
        assert!(!checks(&cache(&[Flag::Poison])).contains(&"red-zones"));
    }

    #[test]
    fn the_way_out_is_named_with_the_names_that_share_the_cache() {
        let mut merged = cache(&[]);
        let alone = why_not(&merged, "cred_jar", Some("6.6.0"));
        assert!(
            alone.ends_with("boot with slub_debug=FZPU,cred_jar"),
            "{alone}"
        );
        merged.aliases = Some(vec!["aio_kiocb".into(), "pid_2".into()]);
        let text = why_not(&merged, "pid_2", Some("6.18.44"));
        for part in [
            "slab_debug=FZPU,pid_2",
            "cred_jar, aio_kiocb",
            "slab_nomerge",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
