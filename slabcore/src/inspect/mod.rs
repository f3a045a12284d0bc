//! Engines of another process, running or dead, in the types that an engine tells of itself.
//!
//! The segment ([`crate::segment`]) says where the process's structures have their parts. The
//! structures are read from its private memory ([`Memory`]) without stopping it. Nothing that
//! is read is believed: numbers are bounded, lists are cut, and what moved while it was
//! looked at is told as not known. Where the memory may not be read, the published figures
//! remain.
//!
//! What it does not do: change anything there.

mod ask;
mod budget;
mod contents;
mod dump;
mod find;
mod image;
mod mapped;
mod marks;
mod memory;
mod process;
mod published;
mod shape;
mod slabs;
mod snapshot;
mod stacks;
mod validate;
mod watch;

pub use self::ask::{ask_to_validate, have_wait, let_go};
pub use self::find::{Found, file, of_process, open_plain, read};
pub use self::memory::{Memory, Part};
pub use self::process::{Process, start_of};
pub use self::stacks::Stacks;
pub use self::watch::Watch;
pub use crate::segment::Refusal;

use crate::dump::{DumpOptions, Next, Visit};
use crate::segment::Segment;
use crate::snapshot::EngineSnapshot;
use crate::validate::Validation;
use std::collections::BTreeMap;

use budget::Budget;
use shape::Shape;
use snapshot::StatMap;

/// Looks into the engines of one process.
#[derive(Debug)]
pub struct Inspector<M> {
    memory: Budget<M>,
    shape: Shape,
    stats: StatMap,
}

impl<M: Memory> Inspector<M> {
    /// By what the process's segment says of its structures.
    pub fn new(memory: M, segment: &Segment) -> Result<Self, Refusal> {
        let shape = Shape::find(segment)?;
        // A cache's counters are its figures that only rise.
        let counters = { segment.figures.iter() }.filter(|of| !of.of_engine && of.rises);
        let stats = StatMap::of(counters.map(|of| &*of.name).take(shape.stats));
        Ok(Self {
            memory: Budget::new(memory),
            shape,
            stats,
        })
    }

    /// The memory.
    pub const fn memory(&self) -> &M {
        self.memory.inner()
    }

    /// One look, within its limit.
    fn look<R>(&self, look: impl FnOnce(&dyn Memory) -> Result<R, Refusal>) -> Result<R, Refusal> {
        self.memory.renew();
        let seen = look(&self.memory);
        if self.memory.is_spent() {
            return Err(Refusal::TooMuch);
        }
        seen
    }

    /// Looks at everything, as `Engine::snapshot` does; the oldest engine first.
    pub fn snapshot(&self) -> Result<Vec<EngineSnapshot>, Refusal> {
        self.look(|memory| {
            let images = image::engines(memory, &self.shape)?;
            let mut room = snapshot::MOST_SLOTS;
            let engines = images.iter();
            let look = |of| snapshot::engine(memory, &self.shape, &self.stats, of, &mut room);
            engines.map(look).collect()
        })
    }
}

impl<M: Memory> Inspector<M> {
    /// Shows all caches to a visitor, as `Engine::dump` does, with the number of the engine
    /// from 0; the oldest engine first.
    pub fn dump(
        &self,
        options: DumpOptions,
        visit: &mut dyn FnMut(usize, Visit<'_>) -> Next,
    ) -> Result<(), Refusal> {
        self.look(|memory| {
            for (of, number) in image::engines(memory, &self.shape)?.iter().zip(0..) {
                let visit = &mut |seen: Visit<'_>| visit(number, seen);
                let next = dump::engine(memory, &self.shape, &self.stats, of, options, visit)?;
                if next == Next::Stop {
                    break;
                }
            }
            Ok(())
        })
    }

    /// The stacks that each engine keeps, the oldest engine first.
    pub fn stacks(&self) -> Result<Vec<Stacks>, Refusal> {
        self.look(|memory| {
            let images = image::engines(memory, &self.shape)?;
            let engines = images.iter();
            Ok(engines
                .map(|of| Stacks::read(memory, &self.shape, of))
                .collect())
        })
    }

    /// Names of an engine's caches by their ids, the oldest engine first.
    pub fn names(&self) -> Result<Vec<BTreeMap<u32, String>>, Refusal> {
        self.look(|memory| {
            let images = image::engines(memory, &self.shape)?.into_iter();
            let names = images.map(|of| of.caches.into_iter().map(|of| (of.id, of.name)).collect());
            Ok(names.collect())
        })
    }

    /// Checks all caches of each engine, as `Engine::validate` does, but repairs nothing; the
    /// oldest engine first.
    pub fn validate(&self) -> Result<Vec<Validation>, Refusal> {
        self.look(|memory| {
            let images = image::engines(memory, &self.shape)?;
            let check = |of| {
                let mut found = Validation::new();
                validate::engine(memory, &self.shape, &self.stats, of, &mut found)?;
                Ok(found)
            };
            images.iter().map(check).collect()
        })
    }
}

/// The published figures of a segment as snapshots that hold sums only: no nodes, no slots,
/// no occupancy.
pub fn published(segment: &Segment) -> Vec<EngineSnapshot> {
    published::engines(segment)
}
