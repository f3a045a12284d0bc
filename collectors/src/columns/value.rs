//! How the values of columns are found where a cache does not hold them as they are.

use std::borrow::Cow;

use super::Row;
use crate::model::{Approx, Cache, CounterId, Ctor, Flag, Quantity};

pub(super) fn order(cache: &Cache) -> Option<Approx<u64>> {
    cache.get(Quantity::Order).or_else(|| {
        let pages = cache.pages_per_slab()?;
        let order = u64::from(pages.trailing_zeros());
        pages.is_power_of_two().then(|| Approx::exact(order))
    })
}

pub(super) fn partial_ratio(row: &Row<'_>) -> Option<Approx<f64>> {
    let partial = row.cache.partial()?;
    let slabs = row.cache.slabs()?;
    if slabs.value.get() == 0 {
        return None;
    }
    let raced = partial.value > slabs.value;
    let mut ratio = partial.zip_with(slabs, |p, s| (p.get() as f64 / s.get() as f64).min(1.0));
    ratio.approx |= raced;
    Some(ratio)
}

pub(super) fn counter(cache: &Cache, id: CounterId) -> Option<Approx<u64>> {
    cache.counters.as_ref()?.total(id).map(Approx::exact)
}

/// All allocations and frees. On 6.18 and 6.19 sheaf traffic is counted apart
/// (`alloc_cpu_sheaf`, `free_cpu_sheaf`); elsewhere those two do not exist.
pub(super) fn activity(cache: &Cache) -> Option<Approx<u64>> {
    let counters = cache.counters.as_ref()?;
    let paths = [
        CounterId::AllocFastpath,
        CounterId::AllocSlowpath,
        CounterId::FreeFastpath,
        CounterId::FreeSlowpath,
        CounterId::AllocCpuSheaf,
        CounterId::FreeCpuSheaf,
        CounterId::Allocs,
        CounterId::Frees,
    ];
    let mut known = paths.iter().filter_map(|id| counters.total(*id)).peekable();
    known.peek()?;
    Some(Approx::exact(known.fold(0, u64::saturating_add)))
}

pub(super) fn yes_no(value: bool) -> Cow<'static, str> {
    Cow::Borrowed(if value { "yes" } else { "no" })
}

pub(super) fn reclaim<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    row.cache.flags.get(Flag::ReclaimAccount).map(yes_no)
}

pub(super) fn ctor<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    match &row.cache.ctor {
        Ctor::Unknown => None,
        Ctor::None => Some(Cow::Borrowed("none")),
        Ctor::Symbol(symbol) => Some(Cow::Borrowed(symbol)),
    }
}

pub(super) fn flags<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    if row.cache.flags.is_unknown() {
        return None;
    }
    let mut text = String::new();
    if row.cache.aliases.as_ref().is_some_and(|a| !a.is_empty()) {
        text.push('*');
    }
    let mut unknown = false;
    for flag in Flag::ALL {
        if let Some(letter) = flag.letter() {
            match row.cache.flags.get(*flag) {
                Some(true) => text.push(letter),
                Some(false) => {}
                None => unknown = true,
            }
        }
    }
    if unknown {
        text.push('?');
    }
    Some(Cow::Owned(text))
}

pub(super) fn aliases<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    let names = row.cache.aliases.as_ref()?;
    Some(Cow::Owned(names.join(" ")))
}

pub(super) fn nodes<'a>(row: &Row<'a>) -> Option<Cow<'a, str>> {
    let mut parts = Vec::new();
    for part in &row.cache.nodes {
        let slabs = part.slabs.map_or_else(|| "-".to_owned(), |s| s.to_string());
        parts.push(format!("N{}={slabs}", part.node.0));
    }
    (!parts.is_empty()).then(|| Cow::Owned(parts.join(" ")))
}
