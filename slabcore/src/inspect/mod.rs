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
mod lists;
mod mapped;
mod marks;
mod memory;
mod process;
mod shape;
mod slabs;
mod snapshot;
mod stacks;
mod validate;
mod watch;

pub use self::ask::{ask_to_validate, have_wait, let_go};
pub use self::budget::Limits;
pub use self::find::{Found, file, of_process, open_plain, read};
pub use self::memory::{Memory, Part};
pub use self::process::{Process, Running, start_of};
pub use self::stacks::Stacks;
pub use self::watch::Watch;
pub use crate::segment::Refusal;

use crate::dump::{DumpOptions, Next, Visit};
use crate::segment::Segment;
use crate::snapshot::EngineSnapshot;
use crate::validate::Validation;
use std::collections::BTreeMap;

use budget::{Bounded, Budget};
use shape::Shape;
use snapshot::StatMap;

/// Looks into the engines of one process.
#[derive(Debug)]
pub struct Inspector<M> {
    memory: Budget<M>,
    shape: Shape,
    stats: StatMap,
}

/// How far a look came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All that there is was looked at.
    Whole,
    /// It came to its limit ([`Limits`]): what is beyond was not looked at.
    Cut,
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

    /// Sets the limits of each look from now on; [`Limits::DEFAULT`] without.
    pub fn limit(&self, limits: Limits) {
        self.memory.limit(limits);
    }

    /// The memory.
    pub const fn memory(&self) -> &M {
        self.memory.inner()
    }

    /// One look, within its limits.
    fn look<R>(&self, look: impl FnOnce(&Bounded<'_>) -> Result<R, Refusal>) -> Result<R, Refusal> {
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
            let (images, _held) = image::engines(memory, &self.shape)?;
            let mut room = snapshot::MOST_SLOTS;
            let engines = images.iter();
            let look = |of| snapshot::engine(memory, &self.shape, &self.stats, of, &mut room);
            engines.map(look).collect()
        })
    }
}

impl<M: Memory> Inspector<M> {
    /// Shows all caches to a visitor, as `Engine::dump` does, with the number of the engine
    /// from 0; the oldest engine first. Where a look comes to its limit, what was seen until
    /// then was shown, and the answer says so; if that is nothing, it is refused.
    pub fn dump(
        &self,
        options: DumpOptions,
        visit: &mut dyn FnMut(usize, Visit<'_>) -> Next,
    ) -> Result<Reach, Refusal> {
        self.memory.renew();
        let memory: &Bounded<'_> = &self.memory;
        let (images, _held) = image::engines(memory, &self.shape)?;
        let mut whole = Reach::Whole;
        let mut shown = false;
        for (of, number) in images.iter().zip(0..) {
            let visit = &mut |seen: Visit<'_>| {
                shown = true;
                visit(number, seen)
            };
            match dump::engine(memory, &self.shape, &self.stats, of, options, visit) {
                Ok((next, reach)) => {
                    if reach == Reach::Cut {
                        whole = reach;
                    }
                    if next == Next::Stop {
                        break;
                    }
                }
                Err(Refusal::TooMuch) if shown => whole = Reach::Cut,
                Err(other) => return Err(other),
            }
        }
        Ok(whole)
    }

    /// The stacks that each engine keeps, the oldest engine first.
    pub fn stacks(&self) -> Result<Vec<Stacks>, Refusal> {
        self.look(|memory| {
            let (images, _held) = image::engines(memory, &self.shape)?;
            let mut room = stacks::MOST;
            let engines = images.iter();
            engines
                .map(|of| Stacks::read(memory, &self.shape, of, &mut room))
                .collect()
        })
    }

    /// Names of an engine's caches by their ids, the oldest engine first.
    pub fn names(&self) -> Result<Vec<BTreeMap<u32, String>>, Refusal> {
        self.look(|memory| {
            let (images, _held) = image::engines(memory, &self.shape)?;
            let caches = images.into_iter().map(|of| of.caches.into_iter());
            let names = caches.map(|of| of.map(|of| (of.id, of.name)).collect());
            Ok(names.collect())
        })
    }

    /// Checks all caches of each engine, as `Engine::validate` does, but repairs nothing; the
    /// oldest engine first. What was not reached within the limits is told as cut.
    pub fn validate(&self) -> Result<Vec<Validation>, Refusal> {
        self.memory.renew();
        let memory: &Bounded<'_> = &self.memory;
        let (images, _held) = image::engines(memory, &self.shape)?;
        let check = |of| {
            let mut found = Validation::new();
            let seen = validate::engine(memory, &self.shape, &self.stats, of, &mut found);
            match seen {
                Err(Refusal::TooMuch) => found.cut = true,
                seen => seen?,
            }
            // Whatever was not read because nothing was left.
            found.cut |= memory.is_spent();
            Ok(found)
        };
        images.iter().map(check).collect()
    }
}
