//! `stat --run`: a command on slabcore, and what its own engine's caches did.
//!
//! A new program has no caches, so the figures before are zeros, which is what is known. At its
//! end the program waits until it has been looked at (`cmd::run`); of one that ends otherwise
//! the last sample is told, and that it is not of the end.

use std::time::{Duration, Instant};

use collectors::error::Error;
use collectors::model::{Cache, Quantity, Snapshot};
use collectors::source::process::{ProcessSource, Watcher};
use collectors::source::{Demand, Source as _};

use super::load::Load;
use super::{Args, Peaks, Seen, demand, table, unseen};
use crate::cmd::select::Selection;
use crate::cmd::{Context, run};
use crate::fail::Failure;
use crate::open;

/// Between two looks at whether the program has come to its end.
const STEP: Duration = Duration::from_millis(10);
/// Between two looks at the clock when it has.
const LONG: Duration = Duration::from_secs(3600);

/// What a cache begins with: none of it.
const FROM_ZERO: [Quantity; 8] = [
    Quantity::Objects,
    Quantity::TotalObjects,
    Quantity::ObjectsPartial,
    Quantity::Slabs,
    Quantity::Partial,
    Quantity::CpuSlabs,
    Quantity::SlabsCpuPartial,
    Quantity::ObjectsCpuPartial,
];

/// Runs the command and watches its engine.
pub(super) fn watch(
    context: &Context,
    args: &Args,
    selection: &Selection,
    (every, tell): (Duration, bool),
) -> anyhow::Result<Seen> {
    let ends = Demand {
        counters: true,
        ..demand(selection)
    };
    let start = Instant::now();
    let load = run::start(&args.command, args.policy)?;
    let mut own = Own::new(&load);
    let mut peaks = Peaks::default();
    let (mut samples, mut next, mut last, mut whole) = (0, start + every, None, false);
    let outcome = loop {
        if let Some(outcome) = load.wait(if whole { LONG } else { STEP }) {
            break outcome;
        }
        let seen = if !whole && own.watch.is_waiting() {
            whole = true;
            let seen = own.sample(&ends);
            // Whatever came of it, the program must not wait.
            own.watch.let_go();
            seen
        } else if !whole && Instant::now() >= next {
            next += every;
            own.sample(&ends)
        } else {
            continue;
        };
        // One that has just begun has no engine yet.
        let Ok(seen) = seen else { continue };
        samples += 1;
        peaks.add(&seen);
        if tell && !whole {
            let line = table::line(
                start.elapsed(),
                &at_start(&seen),
                &seen,
                context.global.scale(),
            );
            context.note(&line);
        }
        last = Some((seen, whole));
    };
    let elapsed = outcome.at.saturating_duration_since(start);
    let Some((after, of_the_end)) = last else {
        let why = format!("{outcome} and was not looked at: by a signal, or without the library");
        return Err(Failure::new(unseen(&outcome), why).into());
    };
    if !of_the_end {
        context.note("warning: it did not wait to be looked at: the figures are of the last sample before its end");
    }
    let ends = (at_start(&after), after, elapsed);
    Ok(Seen::of(ends, &peaks, (samples, every), outcome))
}

/// The program's engine.
struct Own {
    pid: u32,
    watch: Watcher,
    source: Option<ProcessSource>,
}

impl Own {
    fn new(load: &Load) -> Self {
        Self {
            pid: load.pid(),
            watch: Watcher::new(load.pid()),
            source: None,
        }
    }

    /// What it has now; after `exec` it is another engine, which is looked up anew.
    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        if let Some(source) = &mut self.source
            && let Ok(seen) = source.sample(demand)
        {
            return Ok(seen);
        }
        let source = self.source.insert(ProcessSource::open(self.pid)?);
        source.sample(demand)
    }
}

/// The same caches before the program began.
fn at_start(seen: &Snapshot) -> Snapshot {
    let mut start = seen.clone();
    start.caches.iter_mut().for_each(empty);
    start
}

fn empty(cache: &mut Cache) {
    for quantity in FROM_ZERO {
        if let Some(layer) = cache.origin(quantity) {
            cache.set_exact(quantity, 0, layer);
        }
    }
    for counter in cache.counters.iter_mut().flat_map(|all| &mut all.0) {
        counter.total = 0;
        counter.cpus.clear();
    }
    cache.nodes.clear();
    cache.cpus.clear();
    cache.occupancy = None;
}

/// Options that make no sense together.
pub(super) fn check(context: &Context, args: &Args) -> Result<(), Failure> {
    let global = &context.global;
    let other = global.from.is_some() || global.root.is_some() || global.pid.is_some();
    if other || args.paths.how.is_some() {
        return Err(Failure::usage(
            "--run starts a program of its own: no --from, --root, --pid or --paths",
        ));
    }
    open::no_demo(global, "--run starts a program of its own; --demo is none")
}
