//! Opens the source that the options name, and says how to get at a better one.

use std::path::Path;

use collectors::Error;
use collectors::model::{Snapshot, Warning};
use collectors::source::kernel::KernelSource;
use collectors::source::tree::DirTree;
use collectors::source::{Demand, Source, capture};

use crate::cli::Global;
use crate::fail::{Failure, Status};
use crate::output::text;

/// The source: a capture, another root, or the running kernel.
pub(crate) fn source(global: &Global) -> Result<Box<dyn Source>, Failure> {
    at(global.from.as_deref(), global.root.as_deref())
}

/// The source at a path, below another root, or the running kernel.
pub(crate) fn at(from: Option<&Path>, root: Option<&Path>) -> Result<Box<dyn Source>, Failure> {
    if let Some(path) = from {
        return Ok(Box::new(capture::open(path)?));
    }
    let root = root.unwrap_or("/".as_ref());
    let tree = DirTree::trusted(root).map_err(|e| Error::from_io(root, e))?;
    Ok(Box::new(KernelSource::live(Box::new(tree))))
}

/// Opens and reads in one step, with hints when it fails.
pub(crate) fn sample(global: &Global, demand: &Demand) -> Result<Snapshot, Failure> {
    let mut source = source(global)?;
    let snapshot = source.sample(demand).map_err(with_hints)?;
    Ok(snapshot)
}

/// Adds what the user can do.
pub(crate) fn with_hints(error: Error) -> Failure {
    let failure = Failure::from(error);
    match failure.status {
        Status::Permission => {
            let failure = failure
                .hint("the kernel lets only root read slab data: try `sudo slabctl ...`")
                .hint("or read a saved file: slabctl report --from FILE");
            match memory_line() {
                Some(line) => failure.hint(format!(
                    "from /proc/meminfo, which anybody may read: {line}"
                )),
                None => failure,
            }
        }
        Status::Unavailable => {
            failure.hint("slabctl doctor tells what this kernel offers and what is missing")
        }
        _ => failure,
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
    const SHOWN: usize = 20;
    if global.quiet {
        return;
    }
    let total = snapshot.warnings.iter().count() as u64 + snapshot.warnings.suppressed();
    for warning in snapshot.warnings.iter().take(SHOWN) {
        say(&warning_line(warning));
    }
    let rest = total.saturating_sub(SHOWN as u64);
    if rest > 0 {
        say(&format!("slabctl: warning: {rest} more (all in --json)"));
    }
}

fn warning_line(warning: &Warning) -> String {
    let kind = if warning.code == collectors::model::WarningCode::Note {
        "note"
    } else {
        "warning"
    };
    format!("slabctl: {kind}: {}", text::one_line(&warning.to_string()))
}

/// One line on standard error. A closed standard error is not worth failing for.
pub(crate) fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
