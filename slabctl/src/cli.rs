//! The command line: what can be typed. Nothing here acts.

pub(crate) mod bench;
mod bench_thread;
mod change;
mod inspect;
mod load;
mod report;
mod top;

pub(crate) use bench::{Bench, BenchAction};
pub(crate) use bench_thread::{Switches, Thread};
pub(crate) use change::{Capture, Shrink, Tune, Validate};
pub(crate) use inspect::{Advise, Check, Diff, Dump, Explain, Section, Show, Sites, SitesBy};
pub(crate) use load::{Paths, PathsArg, Run, Stat};
pub(crate) use report::{Report, Select};
pub(crate) use top::Top;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Slab memory, visible and explained.
#[derive(Debug, Parser)]
#[command(
    name = "slabctl",
    version,
    about = "Slab memory of Linux kernels, visible and explained",
    after_help = EXAMPLES,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  slabctl report                          slab caches of this machine (as root)
  slabctl report --loss -n 10             the ten caches that waste most
  slabctl report --from sosreport.tar.xz  the same from somebody else's machine
  slabctl show dentry                     everything known about one cache
  slabctl show dentry --bpf               and what only programs in the kernel see of it
  slabctl diff --interval 10s             what grew in ten seconds
  slabctl advise --interval 60s           what shape the growth has, and where memory hides
  slabctl check rules.toml                whether figures are within limits, for monitoring
  slabctl sites kmalloc-64                who holds what (kernels booted with slab_debug=U)
  slabctl top                             watch it live
  slabctl stat -- find / -xdev            what a command does to the caches
  slabctl capture slab.tar.zst            all slab state of this machine in one file
  slabctl validate dentry                 have the kernel check a cache, and read what it found
  slabctl explain dmesg.txt               what the slab reports in a kernel log mean
  slabctl report --demo                   try it without root, on the built-in engine
  slabctl ps                              processes on slabcore's engine
  slabctl report --pid 4711               the caches of one of them
  slabctl doctor                          what can be read here, and what to do about the rest

Exit status: 0 done, 1 failed, 2 wrong usage, 3 findings, 4 no such cache,
69 source not available, 77 permission missing. Of check: 0 ok, 1 warning,
2 critical, 3 unknown.";

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch on the command line"
)]
pub(crate) struct Global {
    /// Read a saved file or directory instead of the running kernel: an
    /// extracted or packed sosreport, supportconfig, a copied /proc and /sys, a
    /// slabinfo, slabtop or crash text; - is standard input.
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "root")]
    pub(crate) from: Option<PathBuf>,
    /// Read /proc and /sys below this directory.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Look at the built-in engine under a bounded demonstration load instead
    /// of a machine; needs no rights. A policy is that of most of its caches.
    #[arg(long, global = true, value_enum, value_name = "POLICY", num_args = 0..=1, require_equals = true, conflicts_with_all = ["from", "root"])]
    #[expect(
        clippy::option_option,
        reason = "not given, given alone, given with a policy"
    )]
    pub(crate) demo: Option<Option<DemoPolicy>>,
    /// Look into a running process on slabcore's engine; slabctl ps lists them.
    #[arg(long, global = true, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["from", "root", "demo"])]
    pub(crate) pid: Option<u32>,
    /// Look into the core file of a process on slabcore's engine.
    #[arg(long, global = true, value_name = "FILE", conflicts_with_all = ["from", "root", "demo", "pid"])]
    pub(crate) core: Option<PathBuf>,
    /// The program of the core, where it is not at its old path.
    #[arg(long, global = true, value_name = "FILE", requires = "core")]
    pub(crate) exe: Option<PathBuf>,
    /// Have BPF programs read the running kernel's own structures: objects really
    /// in use, free ones parked near CPUs, how full the slabs are. Without the
    /// rights or the kernel for it, the files are read and a warning says why.
    #[arg(long, global = true, conflicts_with_all = ["from", "root", "demo", "pid", "core"])]
    pub(crate) bpf: bool,
    /// Form of the output.
    #[arg(short = 'o', long = "output", global = true, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub(crate) format: Format,
    /// Short for --output json.
    #[arg(long, global = true, conflicts_with_all = ["csv", "format"])]
    pub(crate) json: bool,
    /// Short for --output csv.
    #[arg(long, global = true, conflicts_with = "format")]
    pub(crate) csv: bool,
    /// Exact bytes in tables.
    #[arg(long, global = true, conflicts_with_all = ["si", "iec"])]
    pub(crate) bytes: bool,
    /// Sizes in powers of 1000 (kB, MB).
    #[arg(long, global = true, conflicts_with = "iec")]
    pub(crate) si: bool,
    /// Sizes in powers of 1024 (K, M; the default).
    #[arg(long, global = true)]
    pub(crate) iec: bool,
    /// When to use colour. NO_COLOR and TERM=dumb turn it off too.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    /// No notes and no warnings on standard error.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

impl Global {
    /// The form of output after the short options.
    pub(crate) fn format(&self) -> Format {
        if self.json {
            Format::Json
        } else if self.csv {
            Format::Csv
        } else {
            self.format
        }
    }

    /// How sizes are scaled in tables.
    pub(crate) fn scale(&self) -> collectors::units::Scale {
        if self.bytes {
            collectors::units::Scale::Bytes
        } else if self.si {
            collectors::units::Scale::Si
        } else {
            collectors::units::Scale::Iec
        }
    }
}

/// Policies of the built-in engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoPolicy {
    /// Linux 2.6.22 to 3.1: a slab in hand.
    Classic,
    /// Linux 3.2 to 6.7: and a list of partial slabs for each CPU.
    CpuPartial,
    /// Linux 6.8 to 6.17: slabs on that list are frozen only when picked.
    DelayedFreeze,
    /// Linux 7.0: sheaves and barns, no slab in hand (what --demo shows).
    Sheaves,
    /// Sheaves in front of slabs that CPUs own.
    Hybrid,
}

/// Forms of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people.
    Table,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
    /// A Markdown table.
    Md,
}

/// When colour is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tables of slab caches, with every mode of the kernel's slabinfo.
    Report(Box<Report>),
    /// Everything known about one cache.
    Show(Show),
    /// What grew or shrank between two captures, or in a live interval.
    Diff(Diff),
    /// What the figures suggest: leak-shaped growth, fragmentation, hidden names, debugging.
    Advise(Advise),
    /// Whether figures are within the limits of a rule file: for monitoring systems.
    Check(Check),
    /// Who holds the objects of a cache, and what accumulates between two samples.
    Sites(Sites),
    /// Give the empty slabs of caches back, and show what came of it.
    Shrink(Shrink),
    /// Show and change a cache's limits: cpu_partial, min_partial, remote_node_defrag_ratio.
    Tune(Tune),
    /// Workloads on the engine's policies and on other allocators, beside each other.
    Bench(Bench),
    /// What the slab caches did while a command ran.
    Stat(Stat),
    /// The live screen: what changes, in which cache, and why.
    Top(Box<Top>),
    /// Write all slab state of this machine into one file.
    Capture(Capture),
    /// Every attribute and call site of a cache; of the built-in engine its slabs and objects.
    Dump(Dump),
    /// Have the kernel check caches, and tell what it found; or check the built-in engine.
    Validate(Validate),
    /// Find the slab reports in a kernel log and say what they mean.
    Explain(Explain),
    /// Run a program on slabcore, and tell at its end what its heap is like.
    Run(Run),
    /// The processes on slabcore's engine that you may look into.
    #[command(after_help = "\
Examples:
  slabctl ps
  slabctl ps --json | jq '.processes[].pid'
  slabctl report --pid 4711                the caches of one of them

A process whose memory may not be read (another user's, or where the system
restricts ptrace) is listed with the sums that it published.")]
    Ps,
    /// What is readable here, what is missing, why, and what to do.
    Doctor,
    /// The JSON Schema of a machine-readable document.
    Schema {
        /// Document; without one, the names are listed.
        name: Option<String>,
    },
    /// Shell completions, which offer the names of real caches.
    Completions {
        /// For which shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write the manual pages into a directory, or the main page to standard output.
    Man {
        /// Directory to write slabctl.1, slabctl-report.1 and so on into.
        dir: Option<PathBuf>,
    },
    /// Behave as another tool, with its options: slabinfo or slabtop.
    #[command(disable_help_flag = true)]
    Compat {
        /// slabinfo or slabtop, then that tool's own options.
        #[arg(
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "TOOL [OPTIONS]"
        )]
        args: Vec<std::ffi::OsString>,
    },
}

/// Shells with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// Bash.
    Bash,
    /// Elvish.
    Elvish,
    /// Fish.
    Fish,
    /// Z shell.
    Zsh,
}
