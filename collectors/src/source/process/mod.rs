//! A running process on slabcore's engine, looked into from outside.
//!
//! Source of truth: `slabcore::inspect`. The engine's structures are read from the process's
//! private memory while it runs; where that is not allowed, the figures that it published in
//! its segment are shown, with their age.

mod aside;
mod core_file;
mod files;
mod functions;
mod limited;
mod list;
mod looks;
mod mailbox;
mod segment;
mod sites;
mod symbols;
mod target;
mod watcher;

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use slabcore::inspect::{self, Inspector, Process, Refusal};
use slabcore::segment::Segment;

use super::{Demand, Engines, Source, Verdict};
use crate::error::Error;
use crate::model::{Dump, DumpDemand, Snapshot};

use aside::Aside;
use target::Target;

pub use core_file::CoreSource;
pub use list::{Listed, Listing, list};
pub use segment::{SegmentSource, is_segment, left_by};
pub use watcher::Watcher;

/// What a question takes beside the time of its answer.
const AROUND: Duration = Duration::from_secs(2);

/// A process of this machine. Each look at it ends in time, whatever the process does.
#[derive(Debug)]
pub struct ProcessSource {
    pid: u32,
    program: String,
    target: Aside<Target>,
}

impl ProcessSource {
    /// Finds the engine of a process.
    pub fn open(pid: u32) -> Result<Self, Error> {
        let began = Instant::now();
        let target = aside::within(aside::LONGEST, move || Target::open(pid));
        let target = target.ok_or_else(|| too_slow(pid))??;
        Ok(Self {
            pid,
            program: target.program().to_owned(),
            target: Aside::new(target, began.elapsed()),
        })
    }

    /// Reports about damage that the process has made; `None` if its memory may not be read.
    pub fn reports(&mut self) -> Option<u64> {
        self.look(|target| target.reports()).ok()
    }

    /// Looks from aside.
    fn look<R: Send + 'static>(
        &mut self,
        look: impl FnOnce(&mut Target) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        let seen = self.target.look(move |target, end| {
            target.limit(end);
            look(target)
        });
        seen.unwrap_or_else(|| Err(too_slow(self.pid)))
    }
}

/// When a process started, in clock ticks after boot; `None` if there is none of this number.
pub fn start_of(pid: u32) -> Option<u64> {
    inspect::start_of(pid).ok()
}

/// Nanoseconds of the clock that segments have their times from.
fn monotonic() -> u64 {
    slabcore::debug::operation::now_ns()
}

/// The name of the program: the system's word, or else that of its segment.
fn program(pid: u32, segment: Option<&Segment>) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm"));
    let name = name.map(|name| String::from_utf8_lossy(&name).trim_end().to_owned());
    let told = || {
        let path = PathBuf::from(&segment?.identity.program);
        Some(path.file_name()?.to_string_lossy().into_owned())
    };
    name.ok().or_else(told)
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

/// Somebody makes its reader wait.
fn too_slow(pid: u32) -> Error {
    let why = "a look at it did not come back in time: its memory, or files that it has mapped, \
               let a reader wait";
    unavailable(pid, why)
}

fn refused(pid: u32, why: &Refusal) -> Error {
    Error::Broken {
        path: format!("/proc/{pid}").into(),
        why: why.to_string(),
    }
}

impl Source for ProcessSource {
    fn describe(&self) -> String {
        target::describe(self.pid, &self.program)
    }

    fn is_live(&self) -> bool {
        true
    }

    /// All figures are read whatever `demand` asks for: it is a few system calls. Call sites
    /// are read when they are asked for, since that reads all objects of debug caches.
    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        let demand = demand.clone();
        self.look(move |target| target.sample(&demand))
    }
}

impl Engines for ProcessSource {
    /// From outside, while the process runs.
    fn validate(&mut self) -> Result<Verdict, Error> {
        self.look(|target| target.validate())
    }

    /// From outside, while the process runs.
    fn dump(&mut self, wanted: &dyn Fn(&str) -> bool, demand: DumpDemand) -> Result<Dump, Error> {
        let names = self.look(|target| target.names())?;
        let names = names
            .into_iter()
            .flat_map(std::collections::BTreeMap::into_values);
        let wanted: HashSet<String> = names.filter(|name| wanted(name)).collect();
        self.look(move |target| target.dump(&|name| wanted.contains(name), demand))
    }

    /// Through the mailbox of the process's segment.
    fn ask(&mut self, wait: Duration) -> Result<Option<Verdict>, Error> {
        let seen = self.target.look_within(wait + AROUND, move |target| {
            target.limit(Instant::now() + AROUND);
            target.ask(wait)
        });
        seen.unwrap_or_else(|| Err(too_slow(self.pid)))
    }
}
