//! The five threads that the engine grew from: what was asked, what was published, and
//! how it is asked again.
//!
//! A thread is run in three ways: on this machine's processors (`bench`, by whoever starts
//! processes), on the engine's counters, and on the model of many processors ([`crate::model`])
//! where few cannot show it. Nothing here claims that a published time is reached: kernels,
//! machines and what surrounds the allocator differ.

mod published;
mod sheet;
mod y2008;
mod y2011;
mod y2013;
mod y2022;
mod y2023;

pub use published::Published;
pub use sheet::{Kind, Sheet, Value};

use crate::model::{Machine, Messages, Of, Tally};
use slabcore::CacheBuilder;

/// What is measured on this machine's processors.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// The workload ([`crate::bench::WORKLOADS`]).
    pub workload: &'static str,
    /// Its cases.
    pub cases: &'static [usize],
    /// The contenders; the first is compared with the others.
    pub contenders: &'static [&'static str],
}

/// A thread.
#[derive(Debug, Clone, Copy)]
pub struct Seed {
    /// The year, by which it is called.
    pub year: u16,
    /// The subject of its mails.
    pub subject: &'static str,
    /// What it asked.
    pub question: &'static str,
    /// The machine of the published figures.
    pub machine: &'static str,
    /// What differs here, beside the machine.
    pub differs: &'static str,
    /// The tables of the mails.
    pub published: &'static [Published],
    /// What is measured here.
    pub measured: &'static [Measure],
    /// How the figures of the sheets are to be read.
    pub reading: &'static [&'static str],
    sheets: fn(usize) -> Option<Vec<Sheet>>,
}

impl Seed {
    /// The thread of a year.
    pub fn of(year: u16) -> Option<&'static Self> {
        SEEDS.iter().find(|seed| seed.year == year)
    }

    /// What is counted, and modelled with up to `most` processors where it is shown by their number;
    /// `None` if memory, or slots of the engine, are short.
    pub fn sheets(&self, most: usize) -> Option<Vec<Sheet>> {
        (self.sheets)(most)
    }
}

/// All threads, oldest first.
pub const SEEDS: &[Seed] = &[
    y2008::SEED,
    y2011::SEED,
    y2013::SEED,
    y2022::SEED,
    y2023::SEED,
];

/// The seed of all models: any would do, and it is always the same.
const RANDOM: u64 = 2008;

/// Messages through caches of `sizes` on a machine of so many processors.
fn messages(
    cpus: usize,
    sizes: &[usize],
    options: impl Fn(CacheBuilder<'_>) -> CacheBuilder<'_>,
    load: Messages,
) -> Option<Tally> {
    let mut machine = Machine::new(cpus, RANDOM)?;
    let made = { sizes.iter() }.map(|size| machine.cache("message", *size, &options));
    let caches: Vec<Of> = made.collect::<Option<_>>()?;
    load.run(&mut machine, &caches)
}

#[cfg(test)]
mod tests;
