//! What the commands take that look at caches, logs and the engine.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Select;

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
    #[command(flatten)]
    pub(crate) paths: super::PathsArg,
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

/// `slabctl check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl check rules.toml
  slabctl check rules.toml --since /var/lib/slab/hourly.tar.zst     growth since a capture
  slabctl check rules.toml --interval 30s --json

A rule file:
  [[rule]]
  name = \"dentries\"
  caches = \"dentry\"               which caches: names, patterns, comparisons (report --filter)
  warning = \"memory > 2GiB\"
  critical = \"memory > 4GiB\"

  [[rule]]
  name = \"growth\"
  of = \"sum\"                      the sum of the caches, not each
  critical = \"memory/h > 1GiB\"    change in an hour: --since or --interval

One line with performance data is printed, as monitoring plugins do.
Exit status: 0 ok, 1 warning, 2 critical, 3 unknown (a broken rule file too).")]
pub(crate) struct Check {
    /// The rules, in TOML.
    #[arg(value_name = "RULES")]
    pub(crate) rules: PathBuf,
    /// An earlier capture, for rules on growth.
    #[arg(long, value_name = "CAPTURE", conflicts_with = "interval")]
    pub(crate) since: Option<PathBuf>,
    /// Sample the live source twice, this time apart, for rules on growth: 10s, 5m.
    #[arg(short, long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// Time between the two, where the captures do not tell it.
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with = "interval",
        requires = "since"
    )]
    pub(crate) elapsed: Option<String>,
}

/// `slabctl sites`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl sites kmalloc-64
  slabctl sites kmalloc-64 --by stack -n 5
  slabctl sites filp --live --for 30s          who allocates what is not freed, on any kernel with BPF
  slabctl sites --pid 4711 --by stack          of a process that debugs caches with U
  slabctl sites --pid 4711 --pinned            what keeps its sparse slabs from being given back
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
    /// Which sites keep sparse slabs alive, and how many free bytes each pins there; of a
    /// process, --pid or --core.
    #[arg(long, conflicts_with_all = ["freed", "diff"])]
    pub(crate) pinned: bool,
    /// What changed between two captures, most growth first.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "from")]
    pub(crate) diff: Option<Vec<PathBuf>>,
    /// What the running kernel allocates from the cache from now on and has not
    /// freed at the end, by BPF: any cache, without a reboot.
    #[arg(long, requires = "cache", conflicts_with_all = ["freed", "pinned", "diff", "from", "root", "demo", "pid", "core"])]
    pub(crate) live: bool,
    /// How long --live follows objects; an interrupt ends it early.
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "10s",
        requires = "live"
    )]
    pub(crate) time: String,
    /// Follow one object in N (a power of two) for --live, and estimate the rest.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "live", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) sample: u32,
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

/// `slabctl dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl dump dentry                          every attribute, nodes, CPUs, who allocated and freed
  slabctl dump dentry --from capture.tar.zst --json
  slabctl dump --demo                          the first slabs of every cache, a character an object
  slabctl dump --demo=hybrid demo_session --slabs 100
  slabctl dump --demo demo_handle --objects    a row an object, with who allocated it
  slabctl dump --demo demo_handle --object 3   one object: stacks, red zones, poison
  slabctl dump kmalloc-64 --pid 4711           slabs of a running process

A kernel shows no single slabs or objects. Call sites need slab_debug=U at boot;
reading them, and some attributes, walks lists of the cache.
Slots are the engine's virtual CPUs, one for each thread. What moves while it is
looked at is shown as not known; the demonstration load is held meanwhile.")]
pub(crate) struct Dump {
    /// The caches: of a kernel names, aliases, ids or patterns; of the engine
    /// patterns, by default all (glob, or /regex/).
    #[arg(value_name = "CACHE", add = clap_complete::engine::ArgValueCompleter::new(crate::complete::caches))]
    pub(crate) patterns: Vec<String>,
    /// Call sites shown of each kind; all in JSON [default: 20].
    #[arg(short = 'n', long, value_name = "N", conflicts_with_all = ["slabs", "objects", "object"])]
    pub(crate) top: Option<usize>,
    /// Slabs of each cache at most; by default 2, or 16 when caches are named.
    #[arg(long, value_name = "N", conflicts_with = "object")]
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
