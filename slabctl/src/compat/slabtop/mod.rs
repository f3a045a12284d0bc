//! `slabtop`: the options, columns and keys of procps-ng's slabtop.
//!
//! Source of truth: procps-ng 4.0.2 and its output on a live kernel. The
//! differences are listed in docs/COMPAT.md.

mod frame;
mod live;
mod options;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use collectors::model::{Quantity, Snapshot};
use collectors::source::Demand;

use super::Outcome;
use super::printable::Printable;

pub(crate) use frame::frame;
pub(crate) use live::{repeats, run_live};
pub(crate) use options::Options;

/// What the columns are made of.
pub(crate) fn demand(_options: &Options) -> Demand {
    Demand::names().with(&[
        Quantity::Objects,
        Quantity::TotalObjects,
        Quantity::SlabSize,
        Quantity::ObjsPerSlab,
        Quantity::PagesPerSlab,
        Quantity::Order,
        Quantity::Slabs,
        Quantity::ActiveSlabs,
    ])
}

/// Prints one frame with all caches and without any control sequence.
pub(crate) fn run(
    options: &Options,
    snapshot: &Snapshot,
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let out = &mut Printable(out);
    for line in frame::lines(options, snapshot) {
        writeln!(out, "{line}")?;
    }
    let races = snapshot.caches.iter().filter(|c| {
        let both = c.objects().zip(c.total_objects());
        both.is_some_and(|(used, all)| used.value > all.value)
    });
    let names: Vec<&str> = races.map(|c| &*c.name).take(5).collect();
    let mut outcome = Outcome::default();
    if !names.is_empty() {
        outcome.notes.push(format!(
            "more objects in use than there is room for, read at different moments: {}",
            names.join(", ")
        ));
    }
    Ok(outcome)
}
