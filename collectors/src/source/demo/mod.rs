//! The built-in engine under a demonstration load, for machines whose kernel
//! cannot be read and for trying things out.
//!
//! Source of truth: the engine's view of itself (`slabcore::Engine::snapshot`).
//! The load is held between two bursts while figures are read, so they are all
//! of one moment and exact. They say nothing about the machine.

mod workload;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use jiff::Timestamp;
use slabcore::debug::depot::Handle;
use slabcore::debug::operation::now_ns;
use slabcore::debug::report::Symbolize as _;
use slabcore::debug::symbols::Symbols;
use slabcore::dump::{DumpOptions, Next, Visit};
use slabcore::inspect::Reach;
use slabcore::{Decommit, Engine, EngineConfig};

use super::inside::{self, Inside};
use super::{Demand, Engines, Source, Verdict, engine};
use crate::error::Error;
use crate::model::{
    Dump, DumpDemand, Frame, Origin, OriginKind, Snapshot, Warning, WarningCode, Warnings,
};

pub use slabcore::Policy;
use workload::Control;

/// How often everything is validated.
const PASSES: u32 = 10;
/// Time that the load has between two passes.
const BETWEEN: Duration = Duration::from_millis(10);

/// Bytes that the engine may use.
const LIMIT: u64 = 64 << 20;

/// An engine of its own and the threads that use it.
///
/// Dropping it ends the threads and gives all memory back.
#[derive(Debug)]
pub struct DemoSource {
    engine: Engine,
    control: Arc<Control>,
    load: Option<JoinHandle<()>>,
}

impl DemoSource {
    /// Starts the load and waits until it has warmed up.
    ///
    /// `policy` is that of all caches but the five that are named after theirs;
    /// without one they are as in the latest kernels ([`Policy::Sheaves`]).
    pub fn start(policy: Option<Policy>) -> Result<Self, Error> {
        let engine = Engine::new(EngineConfig {
            reserve: 256 << 20,
            limit: LIMIT,
            nodes: 2,
            decommit: Decommit::AfterMs(1000),
            policy: policy.unwrap_or(Policy::Sheaves),
            merge: false,
            // The same slab orders on every machine.
            cpus: 4,
            ..EngineConfig::default()
        })
        .map_err(unavailable)?;
        let control = Arc::new(Control::default());
        let (ready, warm) = sync_channel(1);
        let shared = (engine.clone(), Arc::clone(&control));
        let load = thread::Builder::new()
            .name("demo".to_owned())
            .spawn(move || workload::run(&shared.0, &shared.1, &ready))
            .map_err(unavailable)?;
        let source = Self {
            engine,
            control,
            load: Some(load),
        };
        match warm.recv() {
            Ok(Ok(())) => Ok(source),
            Ok(Err(error)) => Err(unavailable(error)),
            Err(_) => Err(unavailable("its threads could not be started")),
        }
    }

    /// Checks the engine's structures several times while the load runs without pauses.
    pub fn validate(&self) -> Verdict {
        self.control.hurry(true);
        let names = self.engine.snapshot().caches;
        let names = names.into_iter().map(|c| (c.id, c.name)).collect();
        let mut verdict = Verdict::default();
        for _ in 0..PASSES {
            let found = self.engine.validate();
            verdict.passes += 1;
            (verdict.caches, verdict.slabs) = (found.caches, found.slabs);
            verdict.add(&found, &names);
            thread::sleep(BETWEEN);
        }
        self.control.hurry(false);
        verdict
    }

    /// Looks into the caches whose names are wanted, between two bursts of the load.
    pub fn dump(&self, wanted: &dyn Fn(&str) -> bool, demand: DumpDemand) -> Dump {
        let _held = self.control.hold();
        match inside::look(&self.engine, wanted, demand) {
            Ok(dump) => dump,
        }
    }
}

impl Engines for DemoSource {
    fn validate(&mut self) -> Result<Verdict, Error> {
        Ok(Self::validate(self))
    }

    fn dump(&mut self, wanted: &dyn Fn(&str) -> bool, demand: DumpDemand) -> Result<Dump, Error> {
        Ok(Self::dump(self, wanted, demand))
    }

    fn ask(&mut self, _: Duration) -> Result<Option<Verdict>, Error> {
        Ok(Some(Self::validate(self)))
    }
}

impl Inside for Engine {
    type Error = Infallible;

    fn dump(
        &self,
        options: DumpOptions,
        visit: &mut dyn FnMut(usize, Visit<'_>) -> Next,
    ) -> Result<Reach, Infallible> {
        Self::dump(self, options, &mut |seen| visit(0, seen));
        Ok(Reach::Whole)
    }

    fn stack(&self, _: usize, stack: Handle) -> Option<Vec<u64>> {
        Some(Self::stack(self, stack)?.as_slice().to_vec())
    }

    fn frame(&self, address: u64) -> Frame {
        let mut symbol = String::new();
        let named = Symbols.write_symbol(address, &mut symbol).is_ok();
        Frame {
            address,
            symbol: Some(symbol).filter(|name| named && !name.starts_with("0x")),
        }
    }

    fn now(&self) -> u64 {
        now_ns()
    }
}

fn unavailable(why: impl std::fmt::Display) -> Error {
    Error::Unavailable {
        what: "the built-in engine".to_owned(),
        why: why.to_string(),
    }
}

/// What to know about the figures.
fn notes(ended: bool) -> Warnings {
    let mut warnings = Warnings::default();
    if ended {
        let minutes = workload::TIME.as_secs() / 60;
        let says = format!(
            "the demonstration load ended after {minutes} minutes; nothing changes any more"
        );
        warnings.push(Warning::new(WarningCode::Note, says));
    }
    warnings
}

impl Drop for DemoSource {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(load) = self.load.take() {
            // A panic there was printed when it happened.
            let _ = load.join();
        }
    }
}

impl Source for DemoSource {
    fn describe(&self) -> String {
        "built-in engine under a demonstration load".to_owned()
    }

    fn is_live(&self) -> bool {
        true
    }

    /// Everything is given whatever `demand` asks for: it costs no system call.
    fn sample(&mut self, _: &Demand) -> Result<Snapshot, Error> {
        let seen = {
            let _held = self.control.hold();
            self.engine.snapshot()
        };
        let origin = Origin {
            taken_at: Some(Timestamp::now()),
            ..Origin::new(OriginKind::Demo, self.describe())
        };
        let warnings = notes(self.control.ended());
        Ok(engine::snapshot(&[seen], engine::own(), origin, warnings))
    }
}

#[cfg(test)]
mod tests;
