//! Reports that are in several of the logs that are read: counted once.
//!
//! A log may hold an event as often as it happened; of each log, one report
//! stands for one of an earlier log, so that the longest list counts.

use std::collections::HashMap;

use collectors::analysis::explain::Identity;

/// Reports that are remembered; of further ones nobody can tell.
const MAX_REPORTS: usize = 100_000;
/// Of these, such that differ in nothing but the clock: each new one is
/// compared with all of them.
const MAX_ALIKE: usize = 256;

/// The reports of the logs so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    reports: HashMap<u64, Vec<Entry>>,
    count: usize,
}

#[derive(Debug)]
struct Entry {
    identity: Identity,
    place: Place,
    /// The last log in which it was found.
    last: usize,
}

/// Where a report is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The log, from 0.
    pub(crate) log: usize,
    /// The finding in it; `None` when it is not kept.
    pub(crate) finding: Option<usize>,
}

impl Seen {
    /// Where an earlier log has this report of log `log`.
    pub(crate) fn before(&mut self, identity: &Identity, log: usize) -> Option<Place> {
        let list = self.reports.get_mut(&identity.key())?;
        let earlier = |entry: &&mut Entry| {
            entry.place.log < log && entry.last != log && entry.identity.is(identity)
        };
        let entry = list.iter_mut().find(earlier)?;
        entry.last = log;
        Some(entry.place)
    }

    /// Remembers where a new one is counted.
    pub(crate) fn remember(&mut self, identity: Identity, place: Place) {
        let alike = self.reports.get(&identity.key()).map_or(0, Vec::len);
        if self.count < MAX_REPORTS && alike < MAX_ALIKE {
            self.count += 1;
            let last = place.log;
            let entry = Entry {
                identity,
                place,
                last,
            };
            self.reports.entry(identity.key()).or_default().push(entry);
        }
    }
}
