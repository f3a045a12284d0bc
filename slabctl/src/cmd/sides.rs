//! Two snapshots to compare: two captures, a capture and now, or an interval.

use std::path::Path;
use std::time::{Duration, Instant};

use collectors::model::Snapshot;
use collectors::source::{Demand, Source as _, capture};

use super::Context;
use crate::cli::Paths;
use crate::fail::Failure;
use crate::{interval, open};

/// What was asked to be compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'a> {
    /// The earlier capture.
    pub(crate) before: Option<&'a Path>,
    /// The later capture; without it, the source that the options name.
    pub(crate) after: Option<&'a Path>,
    /// The time to wait between two samples of a live source.
    pub(crate) interval: Option<&'a str>,
    /// BPF programs count paths between the two.
    pub(crate) paths: Option<Paths>,
}

/// The earlier and the later side, and the time that passed between samples.
pub(crate) type Pair = (Snapshot, Snapshot, Option<Duration>);

impl Sides<'_> {
    /// Reads both sides for `command`; a live one reads what `demand` names.
    pub(crate) fn read(
        self,
        context: &Context,
        command: &str,
        demand: &Demand,
    ) -> anyhow::Result<Pair> {
        if let Some(text) = self.interval {
            return wait(context, interval::parse(text)?, self.paths, demand);
        }
        if self.paths.is_some() {
            let error = "--paths counts what happens in a time: it goes with --interval";
            return Err(Failure::usage(error).into());
        }
        let Some(path) = self.before else {
            let error = format!("{command} needs two captures, or --interval");
            return Err(Failure::usage(error).into());
        };
        let global = &context.global;
        open::no_demo(
            global,
            &format!(
                "{command} --demo compares the built-in engine with itself: give --interval, no capture"
            ),
        )?;
        if self.after.is_some() && (global.from.is_some() || global.root.is_some()) {
            return Err(Failure::usage(
                "the later side is given twice: as the second capture, and by --from or --root",
            )
            .into());
        }
        let later = self.after.or(global.from.as_deref());
        if path.as_os_str() == "-" && later.is_some_and(|later| later.as_os_str() == "-") {
            return Err(Failure::usage("standard input can be one side only").into());
        }
        let before = saved(path)?;
        let after = match self.after {
            Some(path) => saved(path)?,
            None => open::sample(global, demand)?,
        };
        Ok((before, after, None))
    }
}

/// The running kernel twice, with the time between that really passed.
fn wait(
    context: &Context,
    wait: Duration,
    paths: Option<Paths>,
    demand: &Demand,
) -> anyhow::Result<Pair> {
    let mut source = open::counted(&context.global, paths)?;
    if !source.is_live() {
        let error = "--interval needs a live source: a saved file does not change";
        return Err(Failure::usage(error).into());
    }
    let before = source.sample(demand).map_err(open::with_hints)?;
    let start = Instant::now();
    std::thread::sleep(wait);
    let after = source.sample(demand).map_err(open::with_hints)?;
    Ok((before, after, Some(start.elapsed())))
}

pub(super) fn saved(path: &Path) -> Result<Snapshot, Failure> {
    Ok(capture::open(path)?.last_sample(&Demand::everything())?)
}
