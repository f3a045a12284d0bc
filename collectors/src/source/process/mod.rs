//! A running process on slabcore's engine, looked into from outside.
//!
//! Source of truth: `slabcore::inspect`. The engine's structures are read from the process's
//! private memory while it runs; where that is not allowed, the figures that it published in
//! its segment are shown, with their age.

mod core_file;
mod list;
mod looks;
mod mailbox;
mod segment;
mod sites;
mod symbols;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use slabcore::inspect::{self, Inspector, Process, Refusal};
use slabcore::segment::Segment;

use super::engine::{self, Depth};
use super::{Demand, Engines, Source, Verdict};
use crate::error::Error;
use crate::model::{
    Dump, DumpDemand, Origin, OriginKind, Snapshot, Warning, WarningCode, Warnings,
};

use looks::Looks;
use symbols::Symbols;

pub use core_file::CoreSource;
pub use list::{Listed, Listing, list};
pub use segment::{SegmentSource, is_segment, left_by};
pub use slabcore::inspect::Watch;

/// A process of this machine.
#[derive(Debug)]
pub struct ProcessSource {
    pid: u32,
    program: String,
    start: u64,
    segment: Segment,
    /// Or why the memory may not be read.
    inspector: Result<Inspector<Process>, String>,
    symbols: Symbols,
}

impl ProcessSource {
    /// Finds the engine of a process.
    pub fn open(pid: u32) -> Result<Self, Error> {
        let start = inspect::start_of(pid).map_err(|error| not_there(pid, &error))?;
        let found = inspect::of_process(pid).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::Permission {
                path: format!("/proc/{pid}/fd").into(),
            },
            _ => not_there(pid, &error),
        })?;
        let found = found.ok_or_else(|| no_engine(pid))?;
        let segment = inspect::read(&found.file).map_err(|why| refused(pid, &why))?;
        let inspector = match Process::open(pid) {
            Ok(process) => Ok(Inspector::new(process, &segment).map_err(|why| refused(pid, &why))?),
            Err(error) => Err(error.to_string()),
        };
        Ok(Self {
            pid,
            program: program(pid, &segment),
            start,
            segment,
            inspector,
            symbols: Symbols::of_process(pid),
        })
    }

    /// Reports about damage that the process has made; `None` if its memory may not be read.
    pub fn reports(&self) -> Option<u64> {
        let engines = self.inspect(Inspector::snapshot).ok()?;
        Some(engines.iter().map(|of| of.faults).sum())
    }

    /// It is still the process that was opened.
    fn check(&self) -> Result<(), Error> {
        match inspect::start_of(self.pid) {
            Ok(start) if start == self.start => Ok(()),
            _ => Err(unavailable(self.pid, "it has ended")),
        }
    }

    fn origin(&self) -> Origin {
        Origin {
            taken_at: Some(Timestamp::now()),
            ..Origin::new(OriginKind::Process, self.describe())
        }
    }

    /// What needs the memory.
    fn inspect<R>(
        &self,
        look: impl FnOnce(&Inspector<Process>) -> Result<R, Refusal>,
    ) -> Result<R, Error> {
        self.check()?;
        let inspector = self.inspector.as_ref().map_err(|why| Error::Unavailable {
            what: format!("the memory of process {}", self.pid),
            why: why.clone(),
        })?;
        let seen = look(inspector);
        self.check()?;
        seen.map_err(|why| refused(self.pid, &why))
    }

    fn whole(&self, inspector: &Inspector<Process>, demand: &Demand) -> Result<Snapshot, Error> {
        let engines = inspector.snapshot();
        // Of a process that ended meanwhile nothing is believed.
        self.check()?;
        let engines = engines.map_err(|why| refused(self.pid, &why))?;
        let mut warnings = Warnings::default();
        if engines.is_empty() {
            let says = "the process has no engine now";
            warnings.push(Warning::new(WarningCode::Note, says));
        }
        let engine = self.segment.identity.engine.clone();
        let mut snapshot =
            engine::snapshot(&engines, Depth::Whole, engine, self.origin(), warnings);
        if demand.sites {
            let looks = Looks::new(inspector, &self.symbols, monotonic());
            let wanted = |name: &str| {
                demand
                    .only
                    .as_ref()
                    .is_none_or(|only| only.iter().any(|of| of == name))
            };
            let sites = looks.and_then(|looks| sites::read(&looks, &wanted));
            let sites = sites.map_err(|why| refused(self.pid, &why))?;
            looks::put_sites(&mut snapshot, &engines, sites);
        }
        Ok(snapshot)
    }

    fn sums(&mut self, why: &str) -> Result<Snapshot, Error> {
        let found = inspect::of_process(self.pid).ok().flatten();
        let found = found.ok_or_else(|| unavailable(self.pid, "it has ended"))?;
        self.segment = inspect::read(&found.file).map_err(|why| refused(self.pid, &why))?;
        if self.segment.identity.pid != u64::from(self.pid) {
            let why = "it is a child that has not published anything yet";
            return Err(unavailable(self.pid, why));
        }
        let mut warnings = Warnings::default();
        warnings.push(Warning::new(
            WarningCode::Incomplete,
            format!("the process's memory may not be read ({why}): sums as it published them"),
        ));
        segment::note_age(&self.segment, Some(monotonic()), &mut warnings);
        Ok(segment::snapshot(&self.segment, self.origin(), warnings))
    }
}

/// When a process started, in clock ticks after boot; `None` if there is none of this number.
pub fn start_of(pid: u32) -> Option<u64> {
    inspect::start_of(pid).ok()
}

/// Tells a process that waits for its watcher that this one begins to look.
pub fn have_wait(pid: u32) {
    // One that is gone meanwhile is told of when it is looked at.
    let _ = inspect::have_wait(pid, Duration::from_secs(1));
}

/// Lets such a process end.
pub fn let_go(pid: u32) {
    // One that is gone meanwhile needs no word.
    let _ = inspect::let_go(pid, Duration::from_secs(1));
}

/// Nanoseconds of the clock that segments have their times from.
fn monotonic() -> u64 {
    slabcore::debug::operation::now_ns()
}

/// The name of the program, for headers.
fn program(pid: u32, segment: &Segment) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    let name = name.map(|name| name.trim_end().to_owned());
    name.unwrap_or_else(|_| {
        let path = PathBuf::from(&segment.identity.program);
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.map_or_else(|| "?".to_owned(), std::borrow::Cow::into_owned)
    })
}

fn unavailable(pid: u32, why: impl Into<String>) -> Error {
    Error::Unavailable {
        what: format!("process {pid}"),
        why: why.into(),
    }
}

fn not_there(pid: u32, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => unavailable(pid, "no process has this number"),
        _ => unavailable(pid, error.to_string()),
    }
}

fn no_engine(pid: u32) -> Error {
    Error::Unavailable {
        what: format!("an engine of slabcore in process {pid}"),
        why: "no segment of one is open there".to_owned(),
    }
}

fn refused(pid: u32, why: &Refusal) -> Error {
    Error::Broken {
        path: format!("/proc/{pid}").into(),
        why: why.to_string(),
    }
}

impl Source for ProcessSource {
    fn describe(&self) -> String {
        format!("process {} ({})", self.pid, self.program)
    }

    fn is_live(&self) -> bool {
        true
    }

    /// All figures are read whatever `demand` asks for: it is a few system calls. Call sites
    /// are read when they are asked for, since that reads all objects of debug caches.
    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        self.check()?;
        match &self.inspector {
            Ok(inspector) => self.whole(inspector, demand),
            Err(why) => {
                let why = why.clone();
                self.sums(&why)
            }
        }
    }
}

impl Engines for ProcessSource {
    /// From outside, while the process runs.
    fn validate(&mut self) -> Result<Verdict, Error> {
        self.inspect(looks::validate)
    }

    /// From outside, while the process runs.
    fn dump(&mut self, wanted: &dyn Fn(&str) -> bool, demand: DumpDemand) -> Result<Dump, Error> {
        self.inspect(|inspector| {
            Looks::new(inspector, &self.symbols, monotonic())?.dump(wanted, demand)
        })
    }

    /// Through the mailbox of the process's segment.
    fn ask(&mut self, wait: Duration) -> Result<Option<Verdict>, Error> {
        let names = self.inspect(Inspector::names).unwrap_or_default();
        mailbox::validate(self.pid, &names, wait)
    }
}
