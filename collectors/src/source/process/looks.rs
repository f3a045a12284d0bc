//! Looks into a process beyond its figures: slabs, call sites, and what is wrong.
//!
//! The same for a running process and for a core; what differs is `Memory`.

use std::collections::BTreeMap;

use slabcore::debug::depot::Handle;
use slabcore::dump::{DumpOptions, Next, Visit};
use slabcore::inspect::{Inspector, Memory, Reach, Refusal, Stacks};

use slabcore::EngineSnapshot;

use super::sites::CacheSites;
use super::symbols::Symbols;
use crate::model::{Dump, DumpDemand, Frame, Snapshot, Warning, WarningCode};
use crate::source::inside::{self, Inside};
use crate::source::verdict::Verdict;

/// A process that can be looked into, with the names of its code.
#[derive(Debug)]
pub(super) struct Looks<'l, M> {
    inspector: &'l Inspector<M>,
    symbols: &'l Symbols,
    stacks: Vec<Stacks>,
    now: u64,
}

impl<'l, M: Memory> Looks<'l, M> {
    /// `now`: the time that ages are counted to.
    pub fn new(
        inspector: &'l Inspector<M>,
        symbols: &'l Symbols,
        now: u64,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            inspector,
            symbols,
            stacks: inspector.stacks()?,
            now,
        })
    }

    /// Looks into the caches whose names are wanted.
    pub fn dump(&self, wanted: &dyn Fn(&str) -> bool, demand: DumpDemand) -> Result<Dump, Refusal> {
        inside::look(self, wanted, demand)
    }

    /// Shows all caches as they are seen.
    pub fn dump_all(
        &self,
        options: DumpOptions,
        visit: &mut dyn FnMut(usize, Visit<'_>) -> Next,
    ) -> Result<Reach, Refusal> {
        self.inspector.dump(options, visit)
    }
}

impl<M: Memory> Inside for Looks<'_, M> {
    type Error = Refusal;

    fn dump(
        &self,
        options: DumpOptions,
        visit: &mut dyn FnMut(usize, Visit<'_>) -> Next,
    ) -> Result<Reach, Refusal> {
        self.inspector.dump(options, visit)
    }

    fn stack(&self, engine: usize, stack: Handle) -> Option<Vec<u64>> {
        let frames = self.stacks.get(engine)?.get(stack)?;
        Some(frames.as_slice().to_vec())
    }

    fn frame(&self, address: u64) -> Frame {
        self.symbols.frame(address)
    }

    fn now(&self) -> u64 {
        self.now
    }
}

/// Checks everything once.
pub(super) fn validate<M: Memory>(inspector: &Inspector<M>) -> Result<Verdict, Refusal> {
    let names = inspector.names()?;
    let mut verdict = Verdict {
        caches: names.iter().map(|of| of.len() as u64).sum(),
        passes: 1,
        ..Verdict::default()
    };
    let none = BTreeMap::new();
    for (found, number) in inspector.validate()?.iter().zip(0..) {
        verdict.slabs += found.slabs;
        verdict.add(found, names.get(number).unwrap_or(&none));
    }
    Ok(verdict)
}

/// Gives the caches of a snapshot of these engines their sites.
pub(super) fn put_sites(
    snapshot: &mut Snapshot,
    engines: &[EngineSnapshot],
    sites: Vec<CacheSites>,
    reach: Reach,
) {
    if reach == Reach::Cut {
        let says = "there is more of it than one look takes: call sites of the rest are missing";
        let warning = Warning::new(WarningCode::Incomplete, says);
        snapshot.warnings.push(warning);
    }
    let caches = engines.iter().zip(0usize..);
    let ids = caches.flat_map(|(engine, n)| engine.caches.iter().map(move |of| (n, of.id)));
    let mut sites: BTreeMap<(usize, u32), _> = { sites.into_iter() }
        .map(|(engine, id, list)| ((engine, id), list))
        .collect();
    for (cache, key) in snapshot.caches.iter_mut().zip(ids) {
        cache.sites = sites.remove(&key).map(Box::new);
    }
}
