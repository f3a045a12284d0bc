//! What `slabctl report` and other lists take.

use clap::Args;

/// `slabctl report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl report 'kmalloc-*'                   caches by name or alias (glob, or /regex/)
  slabctl report --filter 'size>10M and use<50%'
  slabctl report --columns name,objects,+flags --sort objects -n 20
  slabctl report --numa                        slabs per node
  slabctl report --activity --paths --interval 5s    allocations of five seconds, by path
  slabctl report --totals --json               sums for a script

A ~ marks an estimate, - what is not known. Empty caches are hidden from
tables (--all shows them), never from JSON and CSV.")]
pub(crate) struct Report {
    /// Only caches with a name or alias like one of these (glob, or /regex/).
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    #[command(flatten)]
    pub(crate) mode: Mode,
    #[command(flatten)]
    pub(crate) select: Select,
    /// Columns, comma-separated; +NAME adds to the mode's own. See --list-columns.
    #[arg(short, long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// List the columns with their meaning.
    #[arg(long)]
    pub(crate) list_columns: bool,
    /// Show empty caches in tables too (slabinfo -z).
    #[arg(short = 'z', long = "all", visible_alias = "zero")]
    pub(crate) all: bool,
    /// Count objects exactly, whatever the length of the partial lists.
    #[arg(long)]
    pub(crate) exact: bool,
    /// Partial slabs above which a cache's objects are taken from
    /// /proc/slabinfo and marked ~.
    #[arg(long, value_name = "SLABS", default_value_t = collectors::source::Demand::WALK_LIMIT)]
    pub(crate) walk_limit: u64,
    #[command(flatten)]
    pub(crate) paths: super::PathsArg,
    /// How long --paths counts before the report: 500ms, 10s [default: 1s].
    #[arg(
        long,
        value_name = "TIME",
        requires = "paths",
        conflicts_with = "watch"
    )]
    pub(crate) interval: Option<String>,
    /// Repeat every so often: 2s, 500ms, 1m.
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "2s")]
    pub(crate) watch: Option<String>,
    /// Stop --watch after so many reports.
    #[arg(long, value_name = "N", requires = "watch")]
    pub(crate) count: Option<u64>,
}

/// Which table is shown; at most one.
#[derive(Debug, Args)]
#[group(multiple = false)]
#[command(next_help_heading = "Modes, one at the most")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one switch a mode, of which clap allows one"
)]
pub(crate) struct Mode {
    /// Merged caches and all their names (slabinfo -a).
    #[arg(short = 'a', long)]
    pub(crate) aliases: bool,
    /// One line a name, so that no name is hidden behind another (slabinfo -f turned round).
    #[arg(long)]
    pub(crate) names: bool,
    /// By allocations and frees, with the share of the fast paths (slabinfo -A, -D).
    #[arg(short = 'A', long)]
    pub(crate) activity: bool,
    /// Slabs and partial slabs per NUMA node (slabinfo -n).
    #[arg(long)]
    pub(crate) numa: bool,
    /// By memory lost, with where it goes (slabinfo -L).
    #[arg(short = 'L', long)]
    pub(crate) loss: bool,
    /// By partial slabs (slabinfo -P).
    #[arg(short = 'P', long)]
    pub(crate) partial: bool,
    /// By memory held (slabinfo -S).
    #[arg(short = 'S', long)]
    pub(crate) size: bool,
    /// Only caches that do not count as reclaimable, by size (slabinfo -U).
    #[arg(short = 'U', long)]
    pub(crate) unreclaimable: bool,
    /// Only empty caches (slabinfo -e).
    #[arg(short = 'e', long)]
    pub(crate) empty: bool,
    /// Sums over the caches, and how they compare with /proc/meminfo (slabinfo -T).
    #[arg(short = 'T', long)]
    pub(crate) totals: bool,
    /// Sums, averages, smallest and largest (slabinfo -X).
    #[arg(short = 'X', long)]
    pub(crate) xtotals: bool,
    /// Every figure of every cache (slabinfo -r).
    #[arg(long)]
    pub(crate) detail: bool,
    /// Who allocated and freed the objects, where that is tracked (slabinfo -t).
    #[arg(short = 't', long)]
    pub(crate) tracking: bool,
    /// kmalloc caches of one size with all their variants together.
    #[arg(long)]
    pub(crate) families: bool,
    /// The debug options that are on, per cache (slabinfo -o).
    #[arg(long)]
    pub(crate) debug: bool,
}

impl Select {
    /// The same without an order, where another one than a column's is used.
    pub(crate) fn without_order(&self) -> Self {
        Self {
            sort: None,
            ..self.clone()
        }
    }
}

/// Which caches, in which order.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which caches, in which order")]
pub(crate) struct Select {
    /// Only caches for which this holds, for example: size>10M and name~^xfs
    #[arg(short, long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Sort by this column: numbers large to small, text a to z.
    #[arg(short, long, value_name = "COLUMN")]
    pub(crate) sort: Option<String>,
    /// Turn the order round (slabinfo -i).
    #[arg(short = 'r', long, visible_alias = "inverted")]
    pub(crate) reverse: bool,
    /// Only the first N (slabinfo -N).
    #[arg(short = 'n', long, value_name = "N", visible_alias = "lines")]
    pub(crate) top: Option<usize>,
}
