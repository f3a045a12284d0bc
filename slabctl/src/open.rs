//! Opens the source that the options name, and says how to get at a better one.

use std::collections::HashSet;
use std::path::Path;

use collectors::Error;
use collectors::model::{Cache, Snapshot, Warning, WarningCode};
use collectors::source::bpf::{Refusal, WithPaths};
use collectors::source::demo::{DemoSource, Policy};
use collectors::source::kernel::KernelSource;
use collectors::source::process::{self, CoreSource, ProcessSource, SegmentSource};
use collectors::source::tree::DirTree;
use collectors::source::{Demand, Engines, Source, capture};

use crate::cli::{DemoPolicy, Global, Paths};
use crate::fail::{Failure, Status};
use crate::output::text;

const DEMO: &str =
    "figures are of the built-in engine under a demonstration load, not of this machine";
const TRY_DEMO: &str = "or try it on the built-in engine: slabctl report --demo";

/// The source: the built-in engine, a capture, another root, or the running kernel.
pub(crate) fn source(global: &Global) -> Result<Box<dyn Source>, Failure> {
    if let Some(policy) = global.demo {
        return Ok(Box::new(demo(global, policy)?));
    }
    if let Some(pid) = global.pid {
        return Ok(Box::new(ProcessSource::open(pid).map_err(with_hints)?));
    }
    if let Some(path) = &global.core {
        return Ok(Box::new(CoreSource::open(path, global.exe.as_deref())?));
    }
    if global.bpf {
        return Ok(Box::new(live("/".as_ref())?.by_bpf()));
    }
    at(global.from.as_deref(), global.root.as_deref())
}

/// The same; with `paths`, BPF programs count allocations and frees from now on.
pub(crate) fn counted(global: &Global, paths: Option<Paths>) -> Result<Box<dyn Source>, Failure> {
    let source = source(global)?;
    let Some(how) = paths else {
        return Ok(source);
    };
    if global.from.is_some() || global.root.is_some() || has_engine(global) {
        return Err(Failure::usage(
            "--paths counts what the running kernel does, not what is in another source",
        ));
    }
    match WithPaths::new(source, how.into()) {
        Ok(counted) => Ok(Box::new(counted)),
        Err(refusal) => Err(refused("--paths", &refusal)),
    }
}

/// What was asked for needs BPF programs, which cannot be used.
pub(crate) fn refused(option: &str, refusal: &Refusal) -> Failure {
    let status = if refusal.is_permission() {
        Status::Permission
    } else {
        Status::Unavailable
    };
    Failure::new(status, format!("{option} needs BPF: {refusal}"))
}

/// Whether the options name an engine of slabcore.
pub(crate) fn has_engine(global: &Global) -> bool {
    global.demo.is_some() || global.pid.is_some() || global.core.is_some()
}

/// The engine that the options name.
pub(crate) fn engine(global: &Global) -> Result<Box<dyn Engines>, Failure> {
    if let Some(pid) = global.pid {
        return Ok(Box::new(ProcessSource::open(pid).map_err(with_hints)?));
    }
    if let Some(path) = &global.core {
        return Ok(Box::new(CoreSource::open(path, global.exe.as_deref())?));
    }
    Ok(Box::new(demo(global, global.demo.flatten())?))
}

/// The built-in engine under its load; says that it is no machine.
pub(crate) fn demo(global: &Global, policy: Option<DemoPolicy>) -> Result<DemoSource, Failure> {
    let source = DemoSource::start(policy.map(|policy| match policy {
        DemoPolicy::Classic => Policy::Classic,
        DemoPolicy::CpuPartial => Policy::CpuPartial,
        DemoPolicy::DelayedFreeze => Policy::DelayedFreeze,
        DemoPolicy::Sheaves => Policy::Sheaves,
        DemoPolicy::Hybrid => Policy::Hybrid,
    }))?;
    if !global.quiet {
        say(&format!("slabctl: note: {DEMO}"));
    }
    Ok(source)
}

/// Refuses `--demo` where it means nothing, and so a process.
pub(crate) fn no_demo(global: &Global, why: &str) -> Result<(), Failure> {
    let name = match (global.demo, global.pid, &global.core) {
        (Some(_), ..) => "--demo",
        (_, Some(_), _) => "--pid",
        (.., Some(_)) => "--core",
        _ => return Ok(()),
    };
    Err(Failure::usage(why.replace("--demo", name)))
}

/// The source at a path, below another root, or the running kernel.
pub(crate) fn at(from: Option<&Path>, root: Option<&Path>) -> Result<Box<dyn Source>, Failure> {
    if let Some(path) = from {
        if process::is_segment(path) {
            return Ok(Box::new(SegmentSource::open(path)?));
        }
        return Ok(Box::new(capture::open(path)?));
    }
    Ok(Box::new(live(root.unwrap_or("/".as_ref()))?))
}

/// The running kernel, its files below `root`.
fn live(root: &Path) -> Result<KernelSource, Failure> {
    let tree = DirTree::trusted(root).map_err(|e| Error::from_io(root, e))?;
    Ok(KernelSource::live(Box::new(tree)))
}

/// Opens and reads in one step, with hints when it fails.
pub(crate) fn sample(global: &Global, demand: &Demand) -> Result<Snapshot, Failure> {
    let mut source = source(global)?;
    let snapshot = source.last_sample(demand).map_err(with_hints)?;
    Ok(snapshot)
}

/// Adds what the user can do.
pub(crate) fn with_hints(error: Error) -> Failure {
    let process = is_about_a_process(&error);
    let failure = Failure::from(error);
    match failure.status {
        Status::Permission if process && rustix::process::geteuid().is_root() => {
            failure.hint("the system does not let root look into it either")
        }
        Status::Permission if process => failure
            .hint("only the process's user and root may look into it: try `sudo slabctl ...`"),
        Status::Unavailable if process => {
            failure.hint("slabctl ps lists the processes that have one")
        }
        Status::Permission => {
            let failure = failure
                .hint("the kernel lets only root read slab data: try `sudo slabctl ...`")
                .hint("or read a saved file: slabctl report --from FILE");
            let failure = failure.hint(TRY_DEMO);
            match memory_line() {
                Some(line) => failure.hint(format!(
                    "from /proc/meminfo, which anybody may read: {line}"
                )),
                None => failure,
            }
        }
        Status::Unavailable => failure
            .hint("slabctl doctor tells what this kernel offers and what is missing")
            .hint(TRY_DEMO),
        _ => failure,
    }
}

fn is_about_a_process(error: &Error) -> bool {
    match error {
        Error::Permission { path } => {
            let below = path.strip_prefix("/proc").ok();
            let first = below.and_then(|below| below.iter().next()?.to_str());
            first.is_some_and(|name| name.parse::<u32>().is_ok())
        }
        Error::Unavailable { what, .. } => what.contains("process "),
        _ => false,
    }
}

fn memory_line() -> Option<String> {
    let text = std::fs::read("/proc/meminfo").ok()?;
    let info = collectors::parse::meminfo::parse(&text);
    let show = |b: collectors::model::Bytes| {
        collectors::units::size(b.get(), collectors::units::Scale::Iec)
    };
    Some(format!(
        "Slab {}, SReclaimable {}, SUnreclaim {}",
        show(info.slab?),
        show(info.s_reclaimable?),
        show(info.s_unreclaim?)
    ))
}

/// Prints the warnings of a snapshot, one line each, unless told to be quiet.
pub(crate) fn say_warnings(global: &Global, snapshot: &Snapshot) {
    say_some(global, snapshot, |_| true);
}

/// The same without those about the figures of caches that are not shown.
pub(crate) fn say_warnings_about(global: &Global, snapshot: &Snapshot, shown: &[&Cache]) {
    let names: HashSet<&str> = shown.iter().map(|cache| &*cache.name).collect();
    say_some(global, snapshot, |warning| {
        subject(warning).is_none_or(|name| names.contains(name))
    });
}

/// The cache that a warning about one cache's figures begins with.
fn subject(warning: &Warning) -> Option<&str> {
    let of_one = matches!(warning.code, WarningCode::Race | WarningCode::FallbackOrder);
    let (name, _) = warning.message.split_once(": ").filter(|_| of_one)?;
    (!name.contains(' ')).then_some(name)
}

fn say_some(global: &Global, snapshot: &Snapshot, wanted: impl Fn(&Warning) -> bool) {
    const SHOWN: usize = 20;
    if global.quiet {
        return;
    }
    let mut rest = snapshot.warnings.suppressed();
    let wanted = snapshot.warnings.iter().filter(|w| wanted(w));
    for (number, warning) in wanted.enumerate() {
        if number < SHOWN {
            say(&warning_line(warning, &snapshot.origin.detail));
        } else {
            rest += 1;
        }
    }
    if rest > 0 {
        say(&format!("slabctl: warning: {rest} more (all in --json)"));
    }
}

/// A line of a bare text is a line of the file that was opened.
fn warning_line(warning: &Warning, source: &str) -> String {
    let kind = if warning.code == WarningCode::Note {
        "note"
    } else {
        "warning"
    };
    let mut warning = warning.clone();
    if warning.file.is_none() && warning.line.is_some() {
        warning.file = Some(source.to_owned());
    }
    format!("slabctl: {kind}: {}", text::one_line(&warning.to_string()))
}

/// One line on standard error. A closed standard error is not worth failing for.
pub(crate) fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
