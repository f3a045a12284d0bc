//! The command line: what can be typed. Nothing here acts.

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
  slabctl diff --interval 10s             what grew in ten seconds
  slabctl advise --interval 60s           what shape the growth has, and where memory hides
  slabctl sites kmalloc-64                who holds what (kernels booted with slab_debug=U)
  slabctl top                             watch it live
  slabctl capture slab.tar.zst            all slab state of this machine in one file
  slabctl explain dmesg.txt               what the slab reports in a kernel log mean
  slabctl report --demo                   try it without root, on the built-in engine
  slabctl doctor                          what can be read here, and what to do about the rest

Exit status: 0 done, 1 failed, 2 wrong usage, 3 findings, 4 no such cache,
69 source not available, 77 permission missing.";

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
    /// Linux 7.0: sheaves and barns, no slab in hand (the default).
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
    /// Who holds the objects of a cache, and what accumulates between two samples.
    Sites(Sites),
    /// Give the empty slabs of caches back, and show what came of it.
    Shrink(Shrink),
    /// Show and change a cache's limits: cpu_partial, min_partial, remote_node_defrag_ratio.
    Tune(Tune),
    /// The live screen: what changes, in which cache, and why.
    Top(Box<Top>),
    /// Write all slab state of this machine into one file.
    Capture(Capture),
    /// Look into caches of the built-in engine: slabs, objects, who had them; goes with --demo.
    Dump(Dump),
    /// Check the structures of the built-in engine while its load runs; goes with --demo.
    #[command(after_help = "\
Examples:
  slabctl validate --demo
  slabctl validate --demo=sheaves --json

Exit status 3 when something is wrong. The kernel's own caches are not validated by slabctl.")]
    Validate,
    /// Find the slab reports in a kernel log and say what they mean.
    Explain(Explain),
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

/// `slabctl report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl report 'kmalloc-*'                   caches by name or alias (glob, or /regex/)
  slabctl report --filter 'size>10M and use<50%'
  slabctl report --columns name,objects,+flags --sort objects -n 20
  slabctl report --numa                        slabs per node
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

/// `slabctl show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl show dentry
  slabctl show cred --section aliases
  slabctl show kmalloc-64 --from capture.tar.zst --json")]
pub(crate) struct Show {
    /// The cache: a name, an alias or a sysfs id such as :aA-0000192.
    #[arg(value_name = "CACHE", add = clap_complete::engine::ArgValueCompleter::new(crate::complete::caches))]
    pub(crate) cache: String,
    /// Only this part.
    #[arg(long, value_enum)]
    pub(crate) section: Vec<Section>,
    /// Count objects exactly, whatever the length of the partial lists.
    #[arg(long)]
    pub(crate) exact: bool,
}

/// Parts of `slabctl show`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    /// Sizes, counts, memory, limits, flags.
    Info,
    /// The names merged into the cache.
    Aliases,
    /// Per NUMA node.
    Numa,
    /// Per CPU, with the event counters.
    Cpus,
    /// Call sites, where they are tracked.
    Sites,
}

/// `slabctl diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl diff before.tar.zst after.tar.zst
  slabctl diff before.tar.zst after.tar.zst --elapsed 24h   growth per hour for files without a time
  slabctl diff --interval 10s
  slabctl diff a.tar b.tar --threshold 10M --exit-code       status 3 when a cache grew by more")]
pub(crate) struct Diff {
    /// The earlier capture.
    #[arg(
        value_name = "A",
        required_unless_present = "interval",
        conflicts_with = "interval"
    )]
    pub(crate) before: Option<PathBuf>,
    /// The later capture; without it, the machine as it is now.
    #[arg(value_name = "B")]
    pub(crate) after: Option<PathBuf>,
    /// Compare the running kernel with itself after this time: 10s, 5m, 1h.
    #[arg(short, long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// Time between the two, where the captures do not tell it.
    #[arg(long, value_name = "TIME", conflicts_with = "interval")]
    pub(crate) elapsed: Option<String>,
    #[command(flatten)]
    pub(crate) select: Select,
    /// Only caches whose memory grew by more than this: 10M, 500 (bytes) or 10%.
    #[arg(short, long, value_name = "GROWTH")]
    pub(crate) threshold: Option<String>,
    /// Exit with status 3 when a chosen cache grew beyond the threshold or,
    /// without one, when any changed.
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Show caches that did not change too.
    #[arg(long)]
    pub(crate) all: bool,
}

/// `slabctl advise`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl advise                                where this machine's slab memory is
  slabctl advise --interval 60s                 and what shape its growth has
  slabctl advise before.tar.zst after.tar.zst   the same from two captures
  slabctl advise --from sosreport.tar.xz

Each remark names what it rests on and what would confirm it. One snapshot
never shows a leak; two show the shape of growth, not its cause.")]
pub(crate) struct Advise {
    /// The earlier capture, where growth is to be judged.
    #[arg(value_name = "A", conflicts_with = "interval")]
    pub(crate) before: Option<PathBuf>,
    /// The later capture; without it, the machine as it is now.
    #[arg(value_name = "B")]
    pub(crate) after: Option<PathBuf>,
    /// Sample the live source twice, this time apart: 10s, 5m, 1h.
    #[arg(short, long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// Time between the two, where the captures do not tell it.
    #[arg(long, value_name = "TIME", conflicts_with = "interval")]
    pub(crate) elapsed: Option<String>,
    /// Say nothing about less than this.
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    pub(crate) min: String,
    /// Only the first N.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) top: Option<usize>,
}

/// `slabctl sites`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl sites kmalloc-64
  slabctl sites kmalloc-64 --by stack -n 5
  slabctl sites kmalloc-32 --diff before.tar.zst after.tar.zst
  slabctl sites --diff alloc_calls.1 alloc_calls.2      two copies of the kernel's own file

The kernel records sites of caches booted with slab_debug=U; a count is of
objects in use now, so only a difference tells what accumulates.")]
pub(crate) struct Sites {
    /// The cache: a name, an alias or a sysfs id; without one, every cache with sites.
    #[arg(value_name = "CACHE", add = clap_complete::engine::ArgValueCompleter::new(crate::complete::caches))]
    pub(crate) cache: Option<String>,
    /// What is one line: the function that allocated, or the whole stack.
    #[arg(long, value_enum, default_value_t = SitesBy::Site)]
    pub(crate) by: SitesBy,
    /// Who freed the slots' previous objects, instead of who allocated these.
    #[arg(long)]
    pub(crate) freed: bool,
    /// What changed between two captures, most growth first.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "from")]
    pub(crate) diff: Option<Vec<PathBuf>>,
    /// Only the first N of each cache.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) top: Option<usize>,
}

/// What `slabctl sites` puts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SitesBy {
    /// The function that called the allocator.
    Site,
    /// The whole stack.
    Stack,
}

/// `slabctl shrink`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl shrink dentry
  slabctl shrink kmalloc-64 kmalloc-96 --yes --json

Only empty slabs can be given back. The kernel flushes every CPU for it.")]
pub(crate) struct Shrink {
    /// The caches: names, aliases or sysfs ids.
    #[arg(required = true, value_name = "CACHE", add = clap_complete::engine::ArgValueCompleter::new(crate::complete::caches))]
    pub(crate) caches: Vec<String>,
    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// `slabctl tune`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl tune dentry                            show the limits
  slabctl tune dentry min_partial=20             change one, after a question
  slabctl tune dentry min_partial=20 --save undo.txt
  slabctl tune --undo undo.txt                   put back what was there

Limits last until the next boot.")]
pub(crate) struct Tune {
    /// The cache: a name, an alias or a sysfs id.
    #[arg(value_name = "CACHE", conflicts_with = "undo", add = clap_complete::engine::ArgValueCompleter::new(crate::complete::caches))]
    pub(crate) cache: Option<String>,
    /// What to set: min_partial=20.
    #[arg(value_name = "LIMIT=NUMBER", conflicts_with = "undo")]
    pub(crate) limits: Vec<String>,
    /// Write the present values into this new file before they are changed.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Put back the values in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) undo: Option<PathBuf>,
    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

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

/// `slabctl dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl dump --demo                          the first slabs of every cache, a character an object
  slabctl dump --demo=hybrid demo_session --slabs 100
  slabctl dump --demo demo_handle --objects    a row an object, with who allocated it
  slabctl dump --demo demo_handle --object 3   one object: stacks, red zones, poison
  slabctl dump --demo demo_handle --json

Slots are the engine's virtual CPUs, one for each thread. What moves while it is
looked at is shown as not known; the demonstration load is held meanwhile.")]
pub(crate) struct Dump {
    /// Only caches with a name like one of these (glob, or /regex/).
    #[arg(value_name = "CACHE")]
    pub(crate) patterns: Vec<String>,
    /// Slabs of each cache at most; by default 2, or 16 when caches are named.
    #[arg(long, value_name = "N")]
    pub(crate) slabs: Option<usize>,
    /// A row for each object instead of a map.
    #[arg(long, conflicts_with = "object")]
    pub(crate) objects: bool,
    /// One object with its stacks and bytes: 0xADDRESS, OBJECT of the first slab, or SLAB:OBJECT.
    #[arg(long = "object", value_name = "OBJECT", value_parser = crate::cmd::dump::which)]
    pub(crate) object: Option<crate::cmd::dump::Which>,
}

/// `slabctl explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl explain                          the log of the running kernel (as root)
  slabctl explain dmesg.txt                a saved log, a mail, a console: any text, packed or not
  slabctl explain sosreport.tar.xz         every log in an archive or directory
  slabctl explain --journal                what journald kept of this boot
  grep -A99 'BUG kmalloc' log | slabctl explain -
  slabctl explain dmesg.txt --json | jq '.reports[] | {cache, class, lines}'

It knows the debugging reports of SLUB and SLAB of all versions, objects that
remain when a cache is destroyed, frees to a wrong cache, failed allocations,
slab tables of out-of-memory reports and stopped usercopies; quoted, wrapped
and interleaved. Reports of KASAN, KFENCE and kmemleak are named as such.

A sentence is certain when the report says it, likely when nothing else that is
usual looks like it, possible when it only fits.

Exit status 0: no report, or only some that acquit slab memory; 3: something
to look into.")]
pub(crate) struct Explain {
    /// Logs: text, packed text, an archive or directory with logs; - is
    /// standard input. Without one, the log of the running kernel.
    #[arg(value_name = "FILE", conflicts_with_all = ["kmsg", "journal", "from", "root"])]
    pub(crate) files: Vec<PathBuf>,
    /// The log of the running kernel, from /dev/kmsg (the default).
    #[arg(long, conflicts_with_all = ["journal", "from", "root"])]
    pub(crate) kmsg: bool,
    /// What journald kept of the kernel's log since boot.
    #[arg(long, conflicts_with_all = ["from", "root"])]
    pub(crate) journal: bool,
    /// Show what only follows from another finding in full too.
    #[arg(long)]
    pub(crate) all: bool,
}

/// `slabctl capture`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl capture slab.tar.zst
  slabctl capture slab.tar.gz --traces     with call sites from debugfs (walks every object)
  slabctl report --from slab.tar.zst       read it back, anywhere")]
pub(crate) struct Capture {
    /// File to write: .tar, .tar.gz or .tar.zst; - is a tar stream on standard output.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Also read alloc_traces and free_traces: the kernel then walks every
    /// object of every tracked cache with interrupts off.
    #[arg(long)]
    pub(crate) traces: bool,
    /// Overwrite the file.
    #[arg(long)]
    pub(crate) force: bool,
}
