//! The figures that are published, by name: one table for who writes and who reads.

use super::format;
use crate::pages::Pages;
use crate::stats::{STATS, Stat};

/// Whose a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// A cache's.
    Cache,
    /// An engine's.
    Engine,
}

/// One figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// Whose.
    pub of: Of,
    /// It never falls.
    pub rises: bool,
    /// Name; the kernel's where it has one.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// One line.
    pub doc: &'static str,
}

const fn gauge(name: &'static str, unit: &'static str, doc: &'static str) -> Figure {
    Figure {
        of: Of::Cache,
        rises: false,
        name,
        unit,
        doc,
    }
}

const fn engine(name: &'static str, rises: bool, unit: &'static str, doc: &'static str) -> Figure {
    Figure {
        of: Of::Engine,
        rises,
        name,
        unit,
        doc,
    }
}

/// Figures of a cache before its counters.
pub const CACHE: [Figure; 22] = [
    gauge("object_size", "bytes", "Bytes of an object."),
    gauge("slab_size", "bytes", "Bytes from one object to the next."),
    gauge("align", "bytes", "Alignment of the objects."),
    gauge(
        "objs_per_slab",
        "objects",
        "Objects in a slab of the usual order.",
    ),
    gauge("order", "", "Page order of a slab."),
    gauge(
        "policy",
        "",
        "Number of the policy, from 1; 0 is a debug cache.",
    ),
    gauge(
        "flags",
        "",
        "What is debugged: bits F 1, Z 2, P 4, U 8, T 16, A 32.",
    ),
    gauge("min_partial", "slabs", "Partial slabs that a node keeps."),
    gauge(
        "cpu_partial",
        "objects",
        "Free objects in a slot's list of partial slabs.",
    ),
    gauge("sheaf_capacity", "objects", "Objects in an array."),
    gauge("aliases", "", "Handles beyond the first."),
    gauge("objects", "objects", "Objects in use by the program."),
    gauge("total_objects", "objects", "Objects that fit in the slabs."),
    gauge("slabs", "slabs", "Slabs."),
    gauge("partial", "slabs", "Slabs on partial lists of nodes."),
    gauge("cpu_slabs", "slabs", "Slabs in hand of slots."),
    gauge("slabs_cpu_partial", "slabs", "Slabs on lists of slots."),
    gauge(
        "slabs_cpu_full",
        "slabs",
        "Slabs that slots own and found full.",
    ),
    gauge("sheaf_objects", "objects", "Objects in arrays of slots."),
    gauge("nodes", "nodes", "Nodes of the engine."),
    gauge("faults", "reports", "Reports about a debug cache."),
    gauge(
        "quarantined",
        "objects",
        "Objects out of use because of damage.",
    ),
];

/// Figures of an engine.
pub const ENGINE: [Figure; 8] = [
    engine("reserved", false, "bytes", "Bytes of addresses reserved."),
    engine("used", false, "bytes", "Bytes in runs that are in use."),
    engine("used_peak", true, "bytes", "The most so far."),
    engine(
        "decommitted",
        true,
        "bytes",
        "Bytes given back to the system.",
    ),
    engine("failed", true, "runs", "Runs refused, by limit or system."),
    engine("large_objects", false, "objects", "Large objects."),
    engine("large_bytes", false, "bytes", "Bytes of their runs."),
    engine("faults", true, "reports", "Reports made."),
];

const _: () = assert!(CACHE.len() + STATS <= format::record::ROOM);
const _: () = assert!(CACHE.len() + STATS + ENGINE.len() <= format::FIGURES_ROOM);

/// The counter as a figure.
const fn counter(stat: Stat) -> Figure {
    Figure {
        of: Of::Cache,
        rises: true,
        name: stat.name(),
        unit: "events",
        doc: stat.doc(),
    }
}

/// All figures: a cache's, its counters, an engine's.
pub fn all() -> impl Iterator<Item = Figure> {
    let counters = Stat::ALL.iter().map(|stat| counter(*stat));
    CACHE.into_iter().chain(counters).chain(ENGINE)
}

/// The first four of an engine's figures.
pub(super) fn of_pages(pages: &Pages) -> [u64; 5] {
    let [reserved, used, peak, decommitted] = pages.bytes();
    [reserved, used, peak, decommitted, pages.failed()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_and_names_are_unique_for_each_owner() {
        let mut names = std::collections::BTreeSet::new();
        for figure in all() {
            assert!(figure.name.len() < super::super::layout::NAME_BYTES);
            assert!(figure.unit.len() < format::figure::UNIT_BYTES);
            assert!(
                figure.doc.trim().len() < format::figure::DOC_BYTES,
                "{}",
                figure.doc
            );
            assert!(names.insert((figure.of as u8, figure.name)));
        }
    }
}
