//! What stands for the programs where slabctl is built without them.

use std::convert::Infallible;

use super::CountPaths;
use super::preflight::{self, Refusal};
use crate::error::Error;
use crate::model::{Cache, CallSite, Snapshot, Warnings};
use crate::source::{Demand, Source};

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

/// Never made.
#[derive(Debug)]
pub struct WithPaths<S>(Infallible, std::marker::PhantomData<S>);

impl<S: Source> WithPaths<S> {
    /// Says what is missing; in the end, the feature.
    pub fn new(_: S, _: CountPaths) -> Result<Self, Refusal> {
        preflight::check()?;
        Err(Refusal::NotBuilt)
    }
}

impl<S: Source> Source for WithPaths<S> {
    fn describe(&self) -> String {
        match self.0 {}
    }

    fn is_live(&self) -> bool {
        match self.0 {}
    }

    fn sample(&mut self, _: &Demand) -> Result<Snapshot, Error> {
        match self.0 {}
    }
}

/// Never made.
#[derive(Debug)]
pub struct LiveSites(Infallible);

impl LiveSites {
    /// Says what is missing; in the end, the feature.
    pub fn open<'a>(_: impl Iterator<Item = &'a str>, _: u32) -> Result<Self, Refusal> {
        preflight::check()?;
        Err(Refusal::NotBuilt)
    }

    /// Never called.
    pub const fn sample(&self) -> u64 {
        match self.0 {}
    }

    /// Never called.
    pub fn sites(self, _: &mut Warnings) -> Result<Vec<CallSite>, Refusal> {
        match self.0 {}
    }
}
