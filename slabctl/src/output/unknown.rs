//! Why figures are null: which ones a source does not give, in two warnings.

use std::collections::BTreeMap;

use collectors::model::{Cache, Ctor, Flag, Quantity, Warning, WarningCode};

/// Quantities that only some kinds of source have; their lack says nothing.
const RARE: [Quantity; 5] = [
    Quantity::AliasCount,
    Quantity::Parked,
    Quantity::ActiveSlabs,
    Quantity::ReportedUsed,
    Quantity::ReportedTotal,
];

/// One warning for the fields that no cache has, one for those that some lack.
pub(super) fn warnings(caches: &[&Cache]) -> Vec<Warning> {
    let mut lacking: BTreeMap<&'static str, usize> = BTreeMap::new();
    for cache in caches {
        for name in unknown(cache) {
            *lacking.entry(name).or_default() += 1;
        }
    }
    let (never, sometimes): (Vec<_>, Vec<_>) = lacking
        .into_iter()
        .partition(|(_, count)| *count == caches.len());
    let mut list = Vec::new();
    if !never.is_empty() {
        let names: Vec<&str> = never.iter().map(|(name, _)| *name).collect();
        list.push(not_here(format!(
            "not in this source: {}",
            names.join(", ")
        )));
    }
    if !sometimes.is_empty() {
        let names: Vec<String> = sometimes
            .iter()
            .map(|(name, count)| format!("{name} ({count})"))
            .collect();
        list.push(not_here(format!(
            "not known for so many caches: {}",
            names.join(", ")
        )));
    }
    list
}

fn not_here(message: String) -> Warning {
    Warning::new(WarningCode::NotInSource, message)
}

fn unknown(cache: &Cache) -> impl Iterator<Item = &'static str> {
    let quantities = Quantity::ALL
        .iter()
        .filter(|q| !RARE.contains(q) && cache.get(**q).is_none())
        .map(|q| q.name());
    let flags = Flag::ALL
        .iter()
        .filter(|f| cache.flags.get(**f).is_none())
        .map(|f| f.name());
    let parts = [
        ("aliases", cache.aliases.is_none()),
        ("ctor", cache.ctor == Ctor::Unknown),
        ("nodes", cache.nodes.is_empty()),
        ("occupancy", cache.occupancy.is_none()),
        ("counters", cache.counters.is_none()),
    ];
    let parts = parts
        .into_iter()
        .filter_map(|(name, missing)| missing.then_some(name));
    quantities.chain(flags).chain(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::model::{CacheId, Layer};

    #[test]
    fn what_all_lack_and_what_some_lack_are_told_apart() {
        let mut known = Cache::new(CacheId(0), "a");
        known.set_exact(Quantity::Slabs, 1, Layer::Slabinfo);
        let blank = Cache::new(CacheId(1), "b");
        let list = warnings(&[&known, &blank]);
        assert_eq!(list.len(), 2);
        assert!(list[0].message.contains("partial"), "{list:?}");
        assert!(!list[0].message.contains(" slabs,"), "{list:?}");
        assert!(list[1].message.contains("slabs (1)"), "{list:?}");
        assert!(warnings(&[]).is_empty());
    }
}
