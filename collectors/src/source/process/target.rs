//! The engine of a running process, and all that is looked with.
//!
//! Source of truth: `slabcore::inspect`. Everything in here may wait for the process: it runs
//! aside.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use jiff::Timestamp;
use slabcore::inspect::{self, Inspector, Limits, Process, Refusal};
use slabcore::segment::Segment;

use super::looks::{self, Looks};
use super::symbols::Symbols;
use super::unavailable;
use super::{mailbox, monotonic, no_engine, not_there, program, refused, segment, sites};
use crate::error::Error;
use crate::model::{
    Dump, DumpDemand, Origin, OriginKind, Snapshot, Warning, WarningCode, Warnings,
};
use crate::source::engine;
use crate::source::{Demand, Verdict};

/// What is kept of the time of a look for all that is done with what was seen.
const REST: Duration = Duration::from_millis(500);

/// A process of this machine.
#[derive(Debug)]
pub(super) struct Target {
    pid: u32,
    program: String,
    start: u64,
    segment: Segment,
    /// Or why the memory may not be read.
    inspector: Result<Inspector<Process>, String>,
    symbols: Symbols,
}

/// The process in one line.
pub(super) fn describe(pid: u32, program: &str) -> String {
    format!("process {pid} ({program})")
}

impl Target {
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
            program: program(pid, Some(&segment)).unwrap_or_else(|| "?".to_owned()),
            start,
            segment,
            inspector,
            symbols: Symbols::of_process(pid),
        })
    }

    /// The name of its program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// How long the next look may take.
    pub fn limit(&self, left: Duration) {
        if let Ok(inspector) = &self.inspector {
            let most = Limits::DEFAULT;
            inspector.limit(Limits {
                time: most.time.min(left.saturating_sub(REST)),
                ..most
            });
        }
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
            ..Origin::new(OriginKind::Process, describe(self.pid, &self.program))
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
        let mut snapshot = engine::snapshot(&engines, engine, self.origin(), warnings);
        if demand.sites {
            let looks = Looks::new(inspector, &self.symbols, monotonic());
            let wanted = |name: &str| {
                demand
                    .only
                    .as_ref()
                    .is_none_or(|only| only.iter().any(|of| of == name))
            };
            let sites = looks.and_then(|looks| sites::read(&looks, &wanted));
            let (sites, reach) = sites.map_err(|why| refused(self.pid, &why))?;
            looks::put_sites(&mut snapshot, &engines, sites, reach);
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

    /// All figures, and call sites if they are asked for.
    pub fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        self.check()?;
        match &self.inspector {
            Ok(inspector) => self.whole(inspector, demand),
            Err(why) => {
                let why = why.clone();
                self.sums(&why)
            }
        }
    }

    /// Reports about damage that its engines have made.
    pub fn reports(&self) -> Result<u64, Error> {
        let engines = self.inspect(Inspector::snapshot)?;
        Ok(engines.iter().map(|of| of.faults).sum())
    }

    /// Names of the caches of each engine.
    pub fn names(&self) -> Result<Vec<BTreeMap<u32, String>>, Error> {
        self.inspect(Inspector::names)
    }

    /// From outside, while the process runs.
    pub fn validate(&self) -> Result<Verdict, Error> {
        self.inspect(looks::validate)
    }

    /// From outside, while the process runs.
    pub fn dump(&self, wanted: &dyn Fn(&str) -> bool, demand: DumpDemand) -> Result<Dump, Error> {
        self.inspect(|inspector| {
            Looks::new(inspector, &self.symbols, monotonic())?.dump(wanted, demand)
        })
    }

    /// Through the mailbox of the process's segment.
    pub fn ask(&self, wait: Duration) -> Result<Option<Verdict>, Error> {
        let names = self.names().unwrap_or_default();
        mailbox::validate(self.pid, &names, wait)
    }
}
