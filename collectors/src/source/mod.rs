//! Sources: everything that can give a snapshot.

pub mod archive;
mod bomb;
pub mod capture;
pub mod demand;
pub mod demo;
pub mod detect;
pub mod doctor;
mod engine;
pub mod kernel;
pub mod kmsg;
pub mod logs;
pub mod machine;
pub mod packing;
pub mod process;
pub mod tree;
pub mod write;

pub use demand::Demand;

use crate::error::Error;
use crate::model::Snapshot;

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
