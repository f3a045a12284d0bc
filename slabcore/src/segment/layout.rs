//! Where the engine's structures have their parts, as pairs of a name and a number.
//!
//! Written into every segment, so that a reader built from other sources finds what it
//! needs by name: sizes and offsets in bytes, addresses of roots, limits, places of bits
//! in words. A name keeps its meaning for ever; what a reader does not find it does not use.
//!
//! What it does not do: say what the parts mean; docs/SEGMENT.md does.

use crate::{
    barn, core, debug, engine, fork, guarded, harden, node, pages, row, slab, slot, stats,
};

/// Bytes of a name in the segment, with a zero behind it.
pub const NAME_BYTES: usize = 48;

/// Tables of one structure each: the size under `name.sizeof`, an offset under `name.field`.
macro_rules! fields {
    ($of:ty, $name:literal: $($field:ident),* $(,)?) => {
        /// Size and offsets, for readers of this memory from outside.
        pub(crate) const LAYOUT: &[(&str, usize)] = &[
            (concat!($name, ".sizeof"), size_of::<$of>()),
            $((concat!($name, ".", stringify!($field)), std::mem::offset_of!($of, $field)),)*
        ];
    };
}
pub(crate) use fields;

/// What is the same in every process of one build.
const TABLES: &[&[(&str, usize)]] = &[
    engine::LAYOUT,
    pages::LAYOUT,
    pages::RANGE_LAYOUT,
    slab::LAYOUT,
    core::LAYOUT,
    core::NODE_PART_LAYOUT,
    core::OUTSIDE_LAYOUT,
    node::LAYOUT,
    barn::LAYOUT,
    crate::sync::LAYOUT,
    row::LAYOUT,
    debug::cache::LAYOUT,
    debug::quarantine::LAYOUT,
    debug::layout::LAYOUT,
    guarded::LAYOUT,
    CONSTANTS,
];

const CONSTANTS: &[(&str, usize)] = &[
    ("const.page", crate::sys::PAGE),
    ("const.max_slots", slot::MAX_SLOTS as usize),
    ("const.max_caches", engine::MAX_CACHES as usize),
    ("const.max_nodes", core::MAX_NODES),
    ("const.stats", stats::STATS),
    ("const.barn_sheaves", barn::MAX_SHEAVES),
    ("const.depot_bytes", debug::cache::DEPOT_BYTES),
    ("word.head", 0),
    ("word.inuse", 16),
    ("word.objects", 32),
    ("word.frozen", 47),
    ("word.wake", 48),
    ("word.tag", 49),
    ("run.free", pages::state::FREE as usize),
    ("run.slab", pages::state::SLAB as usize),
    ("run.large", pages::state::LARGE as usize),
    ("place.current", slab::place::CURRENT as usize),
    ("place.partial", slab::place::PARTIAL as usize),
    ("place.full", slab::place::FULL as usize),
    ("link.shift", harden::KEY_SHIFT as usize),
    ("quarantine.words", debug::quarantine::WORDS),
    ("inside.size", fork::INSIDE_BYTES),
    ("inside.lost", fork::LOST as usize),
];

/// All pairs: the tables, and the addresses of this process's roots.
pub(super) fn each(mut put: impl FnMut(&str, u64)) {
    for (name, number) in TABLES.iter().copied().flatten() {
        put(name, *number as u64);
    }
    for (name, address) in [
        ("root.engines", engine::root()),
        ("root.slots_used", slot::root()),
        ("root.inside", fork::root()),
    ] {
        put(name, address as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_are_unique() {
        let mut names = std::collections::BTreeSet::new();
        each(|name, _| {
            assert!(name.len() < NAME_BYTES, "{name}");
            assert!(names.insert(name.to_owned()), "{name} twice");
        });
        assert!(names.len() <= super::super::format::LAYOUT_ROOM);
    }
}
