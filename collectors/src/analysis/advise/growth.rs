//! Remarks on two snapshots: what shape the growth of a cache has.
//!
//! Two samples show a slope, not its end: a cache that fills up to its level
//! and a leak look alike between them, and the remarks say so.

use crate::analysis::diff::{Change, Diff, DiffRow, Presence};
use crate::model::{Approx, Cache, Flag, Snapshot};
use crate::units::percent;

use super::{Advice, Amount, Limits, Rule, bytes};

/// Share of new memory that new objects must explain to be the cause.
const EXPLAINED: f64 = 0.5;

/// What the growth from one snapshot to the later `after` suggests; `diff` is
/// their comparison.
pub fn of_growth(after: &Snapshot, diff: &Diff, limits: Limits) -> Vec<Advice> {
    let mut list: Vec<Advice> = diff
        .rows
        .iter()
        .filter(|row| row.cgroup.is_none() && row.presence != Presence::Vanished)
        .filter_map(|row| {
            let cache = after.caches.get(row.after?)?;
            growth(cache, row, limits.bytes).or_else(|| holes(cache, row, limits.bytes))
        })
        .collect();
    super::sort(&mut list);
    list
}

/// A change as a number, and whether it is estimated.
fn delta(change: &Change) -> Option<Approx<f64>> {
    change.delta.map(|d| d.map(|d| d as f64))
}

/// Bytes of the slots of the objects that came, or went.
fn slot_bytes(cache: &Cache, row: &DiffRow) -> Option<Approx<f64>> {
    let slot = cache.slab_size()?;
    Some(delta(&row.changes.objects)?.zip_with(slot, |n, slot| n * slot.get() as f64))
}

fn growth(cache: &Cache, row: &DiffRow, limit: u64) -> Option<Advice> {
    let memory = delta(&row.changes.memory)?;
    // With a limit of 0, too, what did not grow is no growth.
    if memory.value <= 0.0 || memory.value < limit as f64 {
        return None;
    }
    let grown = Approx {
        value: super::whole(memory.value),
        approx: memory.approx,
    };
    let explained = slot_bytes(cache, row)?.value / memory.value;
    if explained < EXPLAINED {
        let says = format!(
            "grew by {}, of which new objects explain {}%: the rest is room without objects",
            bytes(grown),
            percent(explained.max(0.0))
        );
        let advice = Advice::about(Rule::GrowingHoles, Some(cache), grown, says);
        return Some(evidence(advice, row).next(
            "a burst that is over leaves this: if the next sample shows no growth, it was one",
        ));
    }
    let (rule, says, next) = match cache.flags.get(Flag::ReclaimAccount) {
        Some(true) => (
            Rule::CacheShaped,
            format!(
                "grew by {} of live objects in a cache that the kernel can shrink",
                bytes(grown)
            ),
            "it comes down under memory pressure; on a test system, writing 2 to /proc/sys/vm/drop_caches shows how far",
        ),
        Some(false) => (
            Rule::LeakShaped,
            format!(
                "grew by {} of live objects in a cache that memory pressure does not shrink",
                bytes(grown)
            ),
            "two samples cannot tell a leak from a load that rises: sample again after the load has ended, and see who allocates (slabctl show CACHE --section sites, with slab_debug=U)",
        ),
        None => (
            Rule::LeakShaped,
            format!(
                "grew by {} of live objects; whether memory pressure shrinks the cache is not known here",
                bytes(grown)
            ),
            "two samples cannot tell a leak from a load that rises, nor from a cache that fills: sample again after the load has ended",
        ),
    };
    Some(evidence(Advice::about(rule, Some(cache), grown, says), row).next(next))
}

/// Objects went, their memory did not.
fn holes(cache: &Cache, row: &DiffRow, limit: u64) -> Option<Advice> {
    let gone = slot_bytes(cache, row)?;
    let memory = delta(&row.changes.memory)?;
    if gone.value >= 0.0
        || -gone.value < limit as f64
        || memory.value < gone.value * (1.0 - EXPLAINED)
    {
        return None;
    }
    let freed = Approx {
        value: super::whole(-gone.value),
        approx: gone.approx,
    };
    let says = format!(
        "objects of {} were freed, and their slabs stayed",
        bytes(freed)
    );
    let advice = Advice::about(Rule::GrowingHoles, Some(cache), freed, says);
    Some(
        evidence(advice, row).next(
            "their slabs hold other objects still; if those live long, the memory stays held",
        ),
    )
}

fn evidence(advice: Advice, row: &DiffRow) -> Advice {
    let count = |figure: Option<Approx<u64>>| figure.map(Amount::Count);
    let changes = &row.changes;
    advice
        .with("objects_before", count(changes.objects.before))
        .with("objects_after", count(changes.objects.after))
        .with("slabs_before", count(changes.slabs.before))
        .with("slabs_after", count(changes.slabs.after))
        .with(
            "memory_bytes_after",
            changes.memory.after.map(Amount::Bytes),
        )
        .with(
            "memory_growth",
            changes.memory.per_hour.map(Amount::BytesPerHour),
        )
}
