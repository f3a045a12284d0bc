//! Contradictions and traps in the figures of one snapshot.
//!
//! The kernel reads no two attributes at the same moment, so figures can
//! contradict each other; such a pair is named, never shown as a wrapped
//! number. Slabs of a fallback order (`kmem_cache.min` in mm/slub.c) and slab
//! debugging change what sizes mean, and names may repeat.
//!
//! It does not mend anything: the figures stay as they were read.

use std::collections::BTreeMap;

use crate::model::{Cache, Flag, Objects, Quantity, Snapshot, Warning, WarningCode, Warnings};
use crate::units::{Scale, size};

use super::groups::kmalloc_class;
use super::usage::fallback_deficit;

/// How many caches are named for one kind of finding; the rest are counted.
const NAMED: usize = 20;

/// Everything to know about the figures of `snapshot`, in a fixed order: races
/// and fallback slabs in source order, repeated names by name, debugging.
pub fn check(snapshot: &Snapshot) -> Warnings {
    let page_size = snapshot.system.page_size;
    let mut warnings = Warnings::default();
    name_some(
        &mut warnings,
        WarningCode::Race,
        "more caches have figures that contradict each other",
        snapshot.caches.iter().filter_map(race),
    );
    name_some(
        &mut warnings,
        WarningCode::FallbackOrder,
        "more caches have slabs of a fallback order; their memory is an upper bound",
        snapshot
            .caches
            .iter()
            .filter_map(|cache| fallback(cache, page_size)),
    );
    name_some(
        &mut warnings,
        WarningCode::DuplicateName,
        "more names are shared by several caches",
        duplicates(&snapshot.caches).into_iter(),
    );
    warnings.extend(debugging(&snapshot.caches).map(|text| Warning::new(WarningCode::Note, text)));
    warnings
}

/// Whether the source may hold caches that `snapshot` does not list.
pub fn is_partial(snapshot: &Snapshot) -> bool {
    [
        WarningCode::Incomplete,
        WarningCode::Truncated,
        WarningCode::BrokenRow,
        WarningCode::Vanished,
        WarningCode::LimitReached,
    ]
    .into_iter()
    .any(|code| snapshot.warnings.has(code))
}

fn name_some(
    warnings: &mut Warnings,
    code: WarningCode,
    rest: &str,
    mut messages: impl Iterator<Item = String>,
) {
    for message in messages.by_ref().take(NAMED) {
        warnings.push(Warning::new(code, message));
    }
    let more = messages.count();
    if more > 0 {
        warnings.push(Warning::new(code, format!("{more} {rest}")));
    }
}

/// Pairs of which the first can never exceed the second.
const BOUNDS: [(Quantity, Quantity); 6] = [
    (Quantity::Objects, Quantity::TotalObjects),
    (Quantity::Partial, Quantity::Slabs),
    (Quantity::CpuSlabs, Quantity::Slabs),
    (Quantity::ObjectsPartial, Quantity::Objects),
    (Quantity::ActiveSlabs, Quantity::Slabs),
    (Quantity::ReportedUsed, Quantity::ReportedTotal),
];

fn race(cache: &Cache) -> Option<String> {
    let exact = |q| cache.get(q).filter(|f| !f.approx).map(|f| f.value);
    let mut found: Vec<String> = BOUNDS
        .iter()
        .filter_map(|(part, whole)| {
            let (a, mut b) = (exact(*part)?, exact(*whole)?);
            if (part, whole) == (&Quantity::ObjectsPartial, &Quantity::Objects) {
                // Who sees the parked ones counts them on the lists all the same.
                b = b.saturating_add(exact(Quantity::Parked).unwrap_or(0));
            }
            (a > b).then(|| format!("{} {a} > {} {b}", part.name(), whole.name()))
        })
        .collect();
    if let (Some(partial), Some(cpu), Some(slabs)) = (
        exact(Quantity::Partial),
        exact(Quantity::CpuSlabs),
        exact(Quantity::Slabs),
    ) && partial.max(cpu) <= slabs
        && partial.saturating_add(cpu) > slabs
    {
        found.push(format!(
            "partial {partial} + cpu_slabs {cpu} > slabs {slabs}"
        ));
    }
    if let (Some(total), Some(slabs), Some(each)) = (
        exact(Quantity::TotalObjects),
        exact(Quantity::Slabs),
        exact(Quantity::ObjsPerSlab),
    ) && slabs.checked_mul(each).is_some_and(|room| total > room)
    {
        found.push(format!(
            "total_objects {total} > slabs {slabs} of objs_per_slab {each}"
        ));
    }
    (!found.is_empty()).then(|| format!("{}: {}: not of one moment", cache.name, found.join("; ")))
}

/// The slabs of the fallback order that explain a deficit of objects.
///
/// SLUB has one fallback order per cache, the smallest that holds an object,
/// so each such slab lacks the same number of objects. `None` when there is no
/// deficit, or when it is no multiple of that number (a race, or the figures
/// are not SLUB's).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FallbackSlabs {
    /// How many slabs.
    pub slabs: u64,
    /// Their order.
    pub order: u32,
    /// Bytes by which `slabs * pages_per_slab * page_size` is too high.
    pub excess_bytes: u64,
}

impl FallbackSlabs {
    /// Explains the deficit of `cache` on a machine with pages of `page_size` bytes.
    pub fn of(cache: &Cache, page_size: u64) -> Option<Self> {
        let deficit = fallback_deficit(cache)?.get();
        let slot = cache.slab_size()?.value.get();
        let per_slab = cache.objs_per_slab()?.value.get();
        let slab_bytes = cache.pages_per_slab()?.checked_mul(page_size)?;
        if deficit == 0 || slot == 0 || page_size == 0 {
            return None;
        }
        let pages = slot.div_ceil(page_size).checked_next_power_of_two()?;
        let small = pages.checked_mul(page_size)?;
        let lacking = per_slab.checked_sub(small / slot).filter(|n| *n > 0)?;
        if deficit % lacking != 0 {
            return None;
        }
        let slabs = deficit / lacking;
        Some(Self {
            slabs,
            order: pages.trailing_zeros(),
            excess_bytes: slabs.checked_mul(slab_bytes.checked_sub(small)?)?,
        })
    }
}

fn fallback(cache: &Cache, page_size: u64) -> Option<String> {
    let deficit = fallback_deficit(cache).filter(|d| *d > Objects(0))?;
    let (slabs, each) = (cache.slabs()?.value, cache.objs_per_slab()?.value);
    let total = cache.total_objects()?.value;
    let start = format!(
        "{}: room for {total} objects, {deficit} fewer than {slabs} slabs of {each}: ",
        cache.name
    );
    Some(
        start
            + &match FallbackSlabs::of(cache, page_size) {
                Some(few) => format!(
                    "{} {} of fallback order {}, memory is an upper bound, {} too high",
                    few.slabs,
                    if few.slabs == 1 {
                        "slab is"
                    } else {
                        "slabs are"
                    },
                    few.order,
                    size(few.excess_bytes, Scale::Iec)
                ),
                None => "some slabs are of a fallback order, memory is an upper bound".to_owned(),
            },
    )
}

fn duplicates(caches: &[Cache]) -> Vec<String> {
    let mut names: BTreeMap<(&str, Option<&str>), u64> = BTreeMap::new();
    for cache in caches {
        let key = (&*cache.name, cache.cgroup.as_deref());
        *names.entry(key).or_default() += 1;
    }
    names
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|((name, cgroup), count)| {
            let place = cgroup.map(|c| format!(" in {c}")).unwrap_or_default();
            format!("{count} caches are named {name}{place}; they are kept apart")
        })
        .collect()
}

/// The sizes that show how much a debugged object takes: name, object, slot.
struct Example<'a> {
    name: &'a str,
    object: u64,
    slot: u64,
}

/// The smallest kmalloc cache whose slots hold more than its objects.
///
/// Alignment alone can round a class of 96 or 192 bytes up to the next power
/// of two (SLAB does); that is no sign of debugging.
fn inflated<'a>(caches: impl Iterator<Item = &'a Cache>) -> Option<Example<'a>> {
    caches
        .filter_map(|cache| {
            let object = kmalloc_class(&cache.name)?.size;
            // slabtop's 0.01K is no exact size.
            let slot = cache.slab_size().filter(|s| !s.approx)?.value.get();
            let aligned = object.checked_next_power_of_two()?;
            (slot > object && slot != aligned).then_some(Example {
                name: &cache.name,
                object,
                slot,
            })
        })
        .min_by_key(|e| (e.object, e.name))
}

fn debugging(caches: &[Cache]) -> Option<String> {
    let flagged: Vec<&Cache> = caches.iter().filter(|c| c.flags.debugging()).collect();
    if !flagged.is_empty() {
        return Some(flagged_note(caches, &flagged));
    }
    let example = inflated(caches.iter())?;
    let Example { name, object, slot } = example;
    let extra = slot - object;
    let known = caches
        .iter()
        .any(|c| c.flags.get(Flag::RedZone).is_some() || c.flags.get(Flag::StoreUser).is_some());
    Some(if known {
        format!(
            "{name} has slots of {slot} bytes though slab debugging is off: something else, such \
             as KASAN, keeps {extra} bytes with each object"
        )
    } else {
        format!(
            "slab debugging is on: the {slot} bytes of a {name} object include {extra} bytes of \
             metadata, and every cache of this kernel may be inflated so"
        )
    })
}

fn flagged_note(caches: &[Cache], flagged: &[&Cache]) -> String {
    const DEBUG: [Flag; 5] = [
        Flag::SanityChecks,
        Flag::RedZone,
        Flag::Poison,
        Flag::StoreUser,
        Flag::Trace,
    ];
    let names: Vec<_> = DEBUG
        .iter()
        .filter(|flag| flagged.iter().any(|c| c.flags.is_set(**flag)))
        .map(|flag| flag.name())
        .collect();
    let example = inflated(flagged.iter().copied()).or_else(|| {
        flagged.iter().find_map(|cache| {
            let (object, slot) = (cache.object_size()?.value, cache.slab_size()?.value);
            (slot > object).then_some(Example {
                name: &cache.name,
                object: object.get(),
                slot: slot.get(),
            })
        })
    });
    let detail = example.map_or_else(String::new, |Example { name, object, slot }| {
        let extra = slot - object;
        format!(
            ": the {slot} bytes of a {name} object include {extra} bytes of metadata and alignment"
        )
    });
    format!(
        "slab debugging is on for {} of {} caches ({}){detail}",
        flagged.len(),
        caches.len(),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests;
