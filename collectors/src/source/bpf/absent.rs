//! What stands for the programs where slabctl is built without them.

use std::convert::Infallible;

use super::preflight::{self, Refusal};
use crate::model::{Cache, Warnings};
use crate::source::Demand;

/// Never made.
#[derive(Debug)]
pub struct Snapshots(Infallible);

impl Snapshots {
    /// Says what is missing; in the end, the feature.
    pub fn open() -> Result<Self, Refusal> {
        preflight::check()?;
        Err(Refusal::NotBuilt)
    }

    /// Never called.
    pub fn caches(&mut self, _: &Demand, _: &mut Warnings) -> Result<Vec<Cache>, Refusal> {
        match self.0 {}
    }
}

/// Says what is missing; in the end, the feature.
pub fn fentry() -> Result<(), Refusal> {
    preflight::check()?;
    Err(Refusal::NotBuilt)
}
