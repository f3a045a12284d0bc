//! What the commands take that run a load.

use clap::{Args, ValueEnum};
use collectors::source::bpf::CountPaths;

/// How BPF programs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Paths {
    /// How many allocations and frees there are, and nothing of their paths.
    Counts,
    /// Also which path each took, by what it meets.
    Inferred,
    /// Slow paths, counted at the entry of the kernel's functions where it allows that.
    Fentry,
}

/// `--paths`, of the commands that count.
#[derive(Debug, Args)]
pub(crate) struct PathsArg {
    /// Have BPF programs count allocations and frees meanwhile, and infer which took
    /// the fast path: for kernels without CONFIG_SLUB_STATS.
    #[arg(
        id = "paths",
        long = "paths",
        value_enum,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "inferred"
    )]
    pub(crate) how: Option<Paths>,
}

impl From<Paths> for CountPaths {
    fn from(how: Paths) -> Self {
        match how {
            Paths::Counts => Self::Counts,
            Paths::Inferred => Self::Inferred,
            Paths::Fentry => Self::Fentry,
        }
    }
}

use super::Select;

/// `slabctl stat`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl stat -- find /usr -name '*.h'
  slabctl stat -n 10 -- perf bench sched messaging
  slabctl stat --interval 1s -- make -j8
  slabctl stat --paths -- ./server-test            and how many allocations and frees, by path
  slabctl stat --paths=counts -- ./server-test     how many only, which costs the command less
  slabctl stat --run --policy sheaves -- ./server-test  its own heap's caches, on slabcore
  slabctl stat --json --write stat.json -- ./server-test

The table goes to standard error, since standard output is the command's, or
into the file that --write names. Everything the machine did meanwhile is in
it, not only what the command did. The exit status is the command's.")]
pub(crate) struct Stat {
    /// Sample so often for the highest figures; given, it also says each time
    /// what changed since the start.
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    #[command(flatten)]
    pub(crate) paths: PathsArg,
    /// Run the command on slabcore, and look at its own caches instead of the kernel's.
    #[arg(long)]
    pub(crate) run: bool,
    /// The allocator's design, with --run.
    #[arg(long, value_enum, value_name = "POLICY", requires = "run")]
    pub(crate) policy: Option<super::DemoPolicy>,
    /// Write the result into this new file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) write: Option<std::path::PathBuf>,
    /// Show the caches that did not change too.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) select: Select,
    /// The command and its arguments.
    #[arg(
        required = true,
        last = true,
        value_name = "COMMAND",
        num_args = 1..
    )]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// `slabctl run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl run -- python3 script.py              on slabcore; slabctl report --pid looks into it
  slabctl run --report -- ls                    and its caches at the end, the largest first
  slabctl run --report -s objects -n 5 -- ls    those with the most objects
  slabctl run --debug FZPU --validate -- ./test status 3 when something is wrong at the end
  slabctl run --leaks -- ./server-test          what is allocated at the end, by stack

The program gets slabcore by LD_PRELOAD, and so do its children. What was asked
for is told when it ends by exit, _exit or from main, before it is gone; a program
that a signal ends tells nothing. It goes to standard error, since standard
output is the program's. The exit status is the program's, or 69 if it is 0 and
--validate could not look. A program that becomes another by exec goes on, and
it is the last that is told of; children are on slabcore, too, but not told of.
--keep leaves one file, also of a program that a signal ends; a core of it needs
bit 3 of /proc/PID/coredump_filter to be read by --core.")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch on the command line"
)]
pub(crate) struct Run {
    /// Debug caches, as the kernel's slab_debug: FZPU, or FZPU,kmalloc-64.
    #[arg(long, value_name = "FZPU[,CACHES]")]
    pub(crate) debug: Option<String>,
    /// The allocator's design; hybrid without it.
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(crate) policy: Option<super::DemoPolicy>,
    /// Its caches at its end, the largest first.
    #[arg(long)]
    pub(crate) report: bool,
    /// Check its heap at its end; status 3 when something is wrong, or was reported before.
    #[arg(long)]
    pub(crate) validate: bool,
    /// What is still allocated at its end, by stack; debugs with U, beside what --debug says.
    #[arg(long)]
    pub(crate) leaks: bool,
    /// Keep its last figures in a file on tmpfs for slabctl report --from.
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) select: Select,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND", num_args = 1..)]
    pub(crate) command: Vec<std::ffi::OsString>,
}
