//! What `slabctl top` takes.

use std::path::PathBuf;

use clap::Args;

/// `slabctl top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl top                              the running kernel (as root)
  slabctl top --demo                       the built-in engine, without root
  slabctl top --from capture.tar.zst       a saved file, with the same screens
  slabctl top 'kmalloc-*' --sort memory/s  some caches, by growth
  slabctl top --linear                     lines instead of a screen: for screen readers and serial consoles

? shows the keys, q quits. When standard output is no terminal, lines are written.")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch on the command line"
)]
pub(crate) struct Top {
    /// Only caches with a name or alias like one of these (glob, or /regex/).
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// Only caches for which this holds, for example: size>10M and name~^xfs
    #[arg(short, long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Sort by this column, or by its change with /s behind it.
    #[arg(short, long, value_name = "COLUMN")]
    pub(crate) sort: Option<String>,
    /// Turn the order round.
    #[arg(short = 'r', long)]
    pub(crate) reverse: bool,
    /// Columns, comma-separated, the most important first.
    #[arg(short, long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Time between two samples: 500ms, 2s, 1m [default: 1s].
    #[arg(short = 'd', long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    #[command(flatten)]
    pub(crate) paths: super::PathsArg,
    /// How long samples are kept to step back to [default: 10m].
    #[arg(long, value_name = "TIME")]
    pub(crate) history: Option<String>,
    /// The screen to begin with: overview, cache, ...
    #[arg(long, value_name = "NAME")]
    pub(crate) screen: Option<String>,
    /// Show empty caches too.
    #[arg(short = 'z', long = "all")]
    pub(crate) all: bool,
    /// Colours: ansi (the terminal's own), mono, okabe, contrast.
    #[arg(long, value_name = "NAME")]
    pub(crate) theme: Option<String>,
    /// Draw with ASCII signs only.
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Draw on the terminal's normal screen, which keeps what was there.
    #[arg(long)]
    pub(crate) no_alt_screen: bool,
    /// Write lines about what changed instead of a screen.
    #[arg(long)]
    pub(crate) linear: bool,
    /// End after so many samples; goes with --linear.
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Allow validate and shrink, which change the kernel's state; each asks first.
    #[arg(long)]
    pub(crate) allow_write: bool,
    /// The configuration [default: slabctl/top.toml below XDG_CONFIG_HOME or ~/.config].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print the keys as Markdown.
    #[arg(long)]
    pub(crate) list_keys: bool,
}
