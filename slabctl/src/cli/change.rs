//! What the commands take that write files or change the kernel.

use std::path::PathBuf;

use clap::Args;

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

/// `slabctl validate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slabctl validate                     which caches the kernel can check, how far, and why not the rest
  slabctl validate dentry filp         have it check these, after a question
  slabctl validate --all --yes --json
  slabctl validate --demo              check the built-in engine while its load runs
  slabctl validate --pid 4711          check a process's structures from outside
  slabctl validate --pid 4711 --ask    have the process check itself, bytes of live objects too

The kernel tells what it found only in its log, which is read from the moment
before each check. It checks caches with debug options (slab_debug=FZPU at
boot; before Linux 6.1 every cache, less safely). It repairs what it finds, and
stops at the first damaged object of a slab: a cache with a finding is checked
again, five times at most.

Exit status: 0 nothing found or likely false positives only, 3 something found, 1 the log has gaps or a check
failed, 69 the kernel does not check what was asked for.")]
pub(crate) struct Validate {
    /// The caches: names, aliases or sysfs ids.
    #[arg(value_name = "CACHE", conflicts_with = "all", add = clap_complete::engine::ArgValueCompleter::new(crate::complete::caches))]
    pub(crate) caches: Vec<String>,
    /// Every cache that the kernel checks.
    #[arg(long)]
    pub(crate) all: bool,
    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// With --pid: the process checks itself, and repairs and reports damage as it is
    /// configured to; within two seconds, or it is said that it did not.
    #[arg(long, conflicts_with_all = ["all", "caches"])]
    pub(crate) ask: bool,
}
