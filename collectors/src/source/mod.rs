//! Sources: everything that can give a snapshot.

pub mod archive;
mod bomb;
pub mod bpf;
pub mod capture;
pub mod demand;
pub mod demo;
pub mod detect;
pub mod doctor;
mod engine;
mod inside;
pub mod kernel;
pub mod kmsg;
pub mod logs;
pub mod machine;
pub mod packing;
pub mod process;
pub mod tree;
mod verdict;
pub mod write;

pub use demand::Demand;
pub use verdict::{Fault, Verdict};

use std::time::Duration;

use crate::error::Error;
use crate::model::{Dump, DumpDemand, Snapshot};

/// Something that can be sampled.
///
/// A live source keeps what does not change between samples; a capture gives
/// the same snapshot every time.
pub trait Source {
    /// One line on what is read, for headers and messages.
    fn describe(&self) -> String;

    /// Whether a second sample can differ from the first.
    fn is_live(&self) -> bool;

    /// Reads what `demand` asks for, and as little else as possible.
    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error>;

    /// Like `sample`, by a caller who will not ask again: a source that holds
    /// its snapshot gives the caches away instead of a copy, and has none then.
    fn last_sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        self.sample(demand)
    }
}

impl Source for Box<dyn Source> {
    fn describe(&self) -> String {
        (**self).describe()
    }

    fn is_live(&self) -> bool {
        (**self).is_live()
    }

    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        (**self).sample(demand)
    }

    fn last_sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        (**self).last_sample(demand)
    }
}

/// Engines of slabcore that can be looked into.
pub trait Engines: Source {
    /// Checks all structures.
    fn validate(&mut self) -> Result<Verdict, Error>;

    /// Looks into the caches whose names are wanted.
    fn dump(&mut self, wanted: &dyn Fn(&str) -> bool, demand: DumpDemand) -> Result<Dump, Error>;

    /// Has the process check itself; `None` if it does not answer in time.
    fn ask(&mut self, wait: Duration) -> Result<Option<Verdict>, Error>;
}
