//! What `slabctl bench` takes for the engine's switches and the replayed threads.

use std::path::PathBuf;

use clap::Args;

/// Switches of the engine. Each value makes a contender of each policy.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Switches of the engine: each value is a contender, for each policy")]
pub(crate) struct Switches {
    /// Objects that a slab should hold.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) min_objects: Vec<u32>,
    /// Largest page order tried for that.
    #[arg(long, value_name = "ORDER", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=10))]
    pub(crate) max_order: Vec<u32>,
    /// Partial slabs that a node keeps before an empty one is given back.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) min_partial: Vec<u32>,
    /// Free objects in a slot's list of partial slabs, for policies with one.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) cpu_partial: Vec<u32>,
}

/// `slabctl bench threads`.
#[derive(Debug, Args)]
pub(crate) struct Threads {
    /// List them, which is all that this does.
    #[arg(long)]
    pub(crate) list: bool,
}

/// `slabctl bench thread YEAR`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl bench threads
  slabctl bench thread 2008
  slabctl bench thread 2011 --cpus 64 --rounds 9
  slabctl bench thread 2022 --cases 64,256
  slabctl bench thread 2023 --json --write 2023.json

Tables are published (from the thread: another machine, and a kernel), model
(the engine's code on logical processors, one after the other on one thread;
what is counted is the engine's, what it costs is assumed; the same each time),
counted (by the engine, here) or measured (times, here).")]
pub(crate) struct Thread {
    /// The year of the thread.
    #[arg(value_name = "YEAR")]
    pub(crate) year: u16,
    /// Rounds of what is measured.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// Only these cases of what is measured; workloads with none of them are left out.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) cases: Vec<usize>,
    /// Logical processors of the model at most, where it goes by their number.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u16).range(2..=1024))]
    pub(crate) cpus: u16,
    /// Write the result into this new file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}
