//! The engine of a running process, and all that is looked with.
//!
//! Source of truth: `slabcore::inspect`. Everything in here may wait for the process: it runs
//! aside.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use slabcore::inspect::{self, Inspector, Limits, Process, Refusal, Running};
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
    is: Running,
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
        let is = Running::of(pid).map_err(|error| not_there(pid, &error))?;
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
            is,
            segment,
            inspector,
            symbols: Symbols::of_process(pid),
        })
    }

    /// The name of its program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Until when the next look must be done, with all of its steps.
    pub fn limit(&self, end: Instant) {
        let until = end.checked_sub(REST).unwrap_or(end);
        self.symbols.limit(until);
        if let Ok(inspector) = &self.inspector {
            inspector.limit(Limits {
                until: Some(until),
                ..Limits::DEFAULT
            });
        }
    }

    /// It is still the process that was opened, and the same program in it.
    fn check(&self) -> Result<(), Error> {
        let why = match Running::of(self.pid) {
            Ok(now) if now == self.is => return Ok(()),
            Ok(now) if now.is_same_process(&self.is) => "it has become another program by exec",
            _ => "it has ended",
        };
        Err(unavailable(self.pid, why))
    }

    fn origin(&self) -> Origin {
        Origin {
            taken_at: Some(Timestamp::now()),
            ..Origin::new(OriginKind::Process, describe(self.pid, &self.program))
        }
    }

    /// What needs the memory. Of a process that has ended meanwhile, or become another program,
    /// nothing is believed.
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

    fn whole(&self, inspector: &Inspector<Process>, demand: &Demand) -> Result<Snapshot, Refusal> {
        let engines = inspector.snapshot()?;
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
            let seen = looks.and_then(|looks| sites::read(&looks, &wanted));
            looks::put_sites(&mut snapshot, &engines, seen)?;
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
        match &self.inspector {
            Ok(_) => self.inspect(|inspector| self.whole(inspector, demand)),
            Err(why) => {
                self.check()?;
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
        // Without them caches are told by their numbers.
        let names = self.names().unwrap_or_default();
        mailbox::validate(self.pid, &names, wait)
    }
}
