//! One contender's part of a round, in a process of its own: a JSON line a case.

use std::collections::BTreeMap;
use std::io::Write as _;

use loads::Held;
use loads::bench::Workload;
use loads::ticks::Rate;
use serde::{Deserialize, Serialize};

use crate::cli::bench::Child;
use crate::cmd::Context;
use crate::fail::{Failure, Status};

/// What one case gave, on its way from the child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) case: usize,
    /// Name, unit, value.
    pub(super) figures: Vec<(String, String, f64)>,
    pub(super) counters: Option<BTreeMap<String, u64>>,
    /// Ticks of the processor's counter in a nanosecond.
    pub(super) ticks_per_ns: Option<f64>,
    pub(super) wrong: Option<String>,
}

/// Runs the cases, one after the other.
pub(super) fn run(args: &Child) -> anyhow::Result<Status> {
    let workload = Workload::named(&args.workload)
        .ok_or_else(|| Failure::usage(format!("no workload {:?}", args.workload)))?;
    // A thread that cannot be started leaves others waiting for it.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("slabctl: {panic}");
        std::process::exit(1);
    }));
    let mut out = Context::out();
    let rate = Rate::begin();
    for case in &args.cases {
        let outcome = workload
            .run(&args.contender, *case, args.threads)
            .ok_or_else(|| {
                Failure::new(Status::Failed, format!("{} cannot run it", args.contender))
            })?;
        let counters = outcome.counters.map(|counters| {
            let told = counters.iter().map(|(name, n)| (name.to_owned(), n));
            told.chain(outcome.held.into_iter().flat_map(held))
                .collect()
        });
        let line = Line {
            case: *case,
            figures: outcome
                .figures
                .iter()
                .map(|f| (f.name.to_owned(), f.unit.to_owned(), f.value))
                .collect(),
            counters,
            ticks_per_ns: rate.per_ns(),
            wrong: outcome.wrong,
        };
        serde_json::to_writer(&mut out, &line)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(Status::Ok)
}

/// What is held at the end of a case, by the names of docs/BENCH.md.
fn held(of: Held) -> [(String, u64); 4] {
    [
        ("held_slab_bytes", of.slab_bytes),
        ("held_partial_slabs", of.partial),
        ("held_parked_objects", of.parked),
        ("held_live_bytes", of.live_bytes),
    ]
    .map(|(name, n)| (name.to_owned(), n))
}
