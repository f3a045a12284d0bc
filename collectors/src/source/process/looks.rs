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
        passes: 1,
        ..Verdict::default()
    };
    let none = BTreeMap::new();
    for (found, number) in inspector.validate()?.iter().zip(0..) {
        verdict.caches += found.caches;
        verdict.slabs += found.slabs;
        verdict.add(found, names.get(number).unwrap_or(&none));
    }
    Ok(verdict)
}

/// Gives the caches of a snapshot of these engines their sites. Where nothing was left of the look
/// for them the rest of the snapshot stays, and says so.
pub(super) fn put_sites(
    snapshot: &mut Snapshot,
    engines: &[EngineSnapshot],
    seen: Result<(Vec<CacheSites>, Reach), Refusal>,
) -> Result<(), Refusal> {
    let (sites, reach) = match seen {
        Err(Refusal::TooMuch) => (Vec::new(), Reach::Cut),
        seen => seen?,
    };
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Origin, OriginKind, System, Warnings};

    #[test]
    fn figures_stay_where_nothing_was_left_of_the_look_for_sites() {
        let mut snapshot = Snapshot {
            origin: Origin::new(OriginKind::Process, "process 1 (x)"),
            system: System::default(),
            caches: Vec::new(),
            warnings: Warnings::default(),
        };
        let broken = Err(Refusal::Structure("list"));
        assert!(put_sites(&mut snapshot, &[], broken).is_err());
        assert!(put_sites(&mut snapshot, &[], Ok((Vec::new(), Reach::Whole))).is_ok());
        assert_eq!(snapshot.warnings.iter().count(), 0);
        assert!(put_sites(&mut snapshot, &[], Err(Refusal::TooMuch)).is_ok());
        let mut codes = snapshot.warnings.iter().map(|of| of.code);
        assert_eq!(codes.next(), Some(WarningCode::Incomplete));
    }
}
