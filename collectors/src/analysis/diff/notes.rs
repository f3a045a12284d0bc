//! What to know before believing a comparison.

use std::collections::BTreeMap;

use super::{Context, DiffRow};
use crate::analysis::consistency::is_partial;
use crate::model::{Era, Quantity, Snapshot, Warning, WarningCode, Warnings};

/// How many caches with objects of another size are named.
const NAMED: usize = 20;

impl Context<'_> {
    pub(super) fn warnings(&self, rows: &[DiffRow]) -> Warnings {
        let mut warnings = Warnings::default();
        let mut note = |text: String| warnings.push(Warning::new(WarningCode::Note, text));
        let (a, b) = (&self.a.system, &self.b.system);
        if a.era != b.era
            && (a.era != Era::Unknown && b.era != Era::Unknown || self.have_counters())
        {
            note(format!(
                "the kernels keep free objects in different ways ({}, then {}): counters are not \
                 compared, and objects in use include other parked ones",
                a.era.name(),
                b.era.name()
            ));
        }
        if a.page_size != b.page_size {
            note(format!(
                "page sizes differ ({} and {} bytes): compare bytes, not slabs",
                a.page_size, b.page_size
            ));
        }
        if let (Some(x), Some(y)) = (&a.hostname, &b.hostname)
            && x != y
        {
            note(format!(
                "the snapshots are of different machines: {x} and {y}"
            ));
        }
        if let (Some(x), Some(y)) = (self.a.origin.taken_at, self.b.origin.taken_at)
            && y < x
        {
            note("the second snapshot is older than the first".to_owned());
        }
        for (side, which) in [(self.a, "first"), (self.b, "second")] {
            if is_partial(side) {
                note(format!(
                    "the {which} snapshot does not list every cache: one that is only in the \
                     other need not be new or gone"
                ));
            }
        }
        for text in self.size_notes(rows) {
            note(text);
        }
        warnings.extend(
            self.name_notes()
                .into_iter()
                .map(|text| Warning::new(WarningCode::DuplicateName, text)),
        );
        warnings
    }

    fn have_counters(&self) -> bool {
        let have = |side: &Snapshot| side.caches.iter().any(|c| c.counters.is_some());
        have(self.a) && have(self.b)
    }

    /// Caches whose objects changed size, the first ones by name.
    fn size_notes(&self, rows: &[DiffRow]) -> Vec<String> {
        let mut notes = Vec::new();
        let mut more = 0u64;
        for row in rows {
            let old = row.before.and_then(|i| self.a.caches.get(i));
            let new = row.after.and_then(|i| self.b.caches.get(i));
            let (Some(old), Some(new)) = (old, new) else {
                continue;
            };
            let changed = [Quantity::ObjectSize, Quantity::SlabSize]
                .into_iter()
                .find_map(|q| {
                    let (x, y) = (old.get(q)?.value, new.get(q)?.value);
                    (x != y).then(|| format!("{}: {} went from {x} to {y}", row.name, q.name()))
                });
            match changed {
                Some(text) if notes.len() < NAMED => notes.push(text),
                Some(_) => more += 1,
                None => {}
            }
        }
        if more > 0 {
            notes.push(format!(
                "{more} more caches changed the size of their objects"
            ));
        }
        notes
    }

    /// Names of which the sides have different numbers of caches.
    fn name_notes(&self) -> Vec<String> {
        let mut counts: BTreeMap<(&str, Option<&str>), [u64; 2]> = BTreeMap::new();
        for (side, snapshot) in [self.a, self.b].into_iter().enumerate() {
            for cache in &snapshot.caches {
                let key = (&*cache.name, cache.cgroup.as_deref());
                counts.entry(key).or_default()[side] += 1;
            }
        }
        counts
            .into_iter()
            .filter(|(_, [a, b])| a != b && *a.min(b) > 0)
            .map(|((name, _), [a, b])| {
                format!(
                    "{a} caches named {name} before and {b} after: they are paired in source \
                     order, so which one is left over is a guess"
                )
            })
            .collect()
    }
}
