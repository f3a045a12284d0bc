//! What the commands take that run a load.

use clap::Args;

use super::Select;

/// `slabctl stat`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl stat -- find /usr -name '*.h'
  slabctl stat -n 10 -- perf bench sched messaging
  slabctl stat --interval 1s -- make -j8
  slabctl stat --json --write stat.json -- ./server-test

The table goes to standard error, since standard output is the command's, or
into the file that --write names. Everything the machine did meanwhile is in
it, not only what the command did. The exit status is the command's.")]
pub(crate) struct Stat {
    /// Sample so often for the highest figures; given, it also says each time
    /// what changed since the start.
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
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
