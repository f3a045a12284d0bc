//! What `slabctl bench` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::bench_thread::{Switches, Thread, Threads};

/// `slabctl bench`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  slabctl bench --list
  slabctl bench kmalloc --cases 64,256
  slabctl bench concurrent --policy delayed-freeze,cpu-partial --threads 2
  slabctl bench stream xmalloc --peers --rounds 9 --json --write a.json
  slabctl bench kmalloc --peers --plot kmalloc.svg
  slabctl bench compare a.json b.json
  slabctl bench hackbench --policy classic --min-objects 8,16,32,64 --counters
  slabctl bench hackbench --processes --cases 5
  slabctl bench threads
  slabctl bench thread 2008

Every contender runs in a process of its own, contenders take turns, and every
round begins with another one. A difference is told only where the noise of
the rounds does not cover it."
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch on the command line"
)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) action: Option<BenchAction>,
    /// The workloads, or all. See --list.
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workloads: Vec<String>,
    /// List the workloads.
    #[arg(long)]
    pub(crate) list: bool,
    /// Policies of the engine; the first is compared with all others.
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "hybrid,sheaves,delayed-freeze,cpu-partial,classic"
    )]
    pub(crate) policy: Vec<String>,
    /// The process's malloc too, and the other allocators that this program was built with.
    #[arg(long)]
    pub(crate) peers: bool,
    /// Only these cases of the workloads: sizes, or how many at a time.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) cases: Vec<usize>,
    /// Threads, where a workload has a number of them; by default the processors, two at least.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) switches: Switches,
    /// hackbench with processes over socket pairs, not threads and queues.
    #[arg(long)]
    pub(crate) processes: bool,
    /// Rounds.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// What the engine counted, for each allocation or free.
    #[arg(long)]
    pub(crate) counters: bool,
    /// Write the result into this new file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Draw the result into this new file, .svg or .png.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

/// What else can be done with benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchAction {
    /// Compare two results (--json --write) of the same workloads.
    Compare {
        /// The earlier result.
        before: PathBuf,
        /// The later one.
        after: PathBuf,
    },
    /// List the kernel threads that can be asked again.
    Threads(Threads),
    /// Ask one again: what was published, what is counted, modelled and measured here.
    Thread(Thread),
    /// Run one contender, once: what bench starts in a process of its own.
    #[command(hide = true)]
    Child(Child),
}

/// One contender's part of a round.
#[derive(Debug, Args)]
pub(crate) struct Child {
    pub(crate) contender: String,
    pub(crate) workload: String,
    pub(crate) threads: usize,
    pub(crate) cases: Vec<usize>,
}
