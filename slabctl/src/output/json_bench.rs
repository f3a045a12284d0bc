//! The document `slabctl.bench/1`: workloads on contenders, round by round.
//!
//! Source of truth: `cmd::bench`. Times are as measured; medians, quartiles and
//! ratios are computed from the rounds that are in the document.

use std::collections::BTreeMap;

use jiff::Timestamp;
use loads::figure::{Ratio, median, quartiles};
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::moment;
use super::machine::Machine;
use crate::cmd::bench::{CaseResult, Plan, WorkloadResult};

/// Workloads on allocators.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.bench/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// The machine.
    machine: Machine,
    /// Rounds; every contender ran once in each, in a process of its own.
    rounds: u64,
    /// Threads, where a workload has a number of them.
    threads: u64,
    /// The contenders: policies of the engine and other allocators; the first is
    /// compared with all others.
    contenders: &'a [String],
    /// The workloads, in the order asked for.
    workloads: Vec<WorkloadOut<'a>>,
}

/// One workload.
#[derive(Debug, Serialize, JsonSchema)]
struct WorkloadOut<'a> {
    /// Its name.
    name: &'a str,
    /// What it does.
    what: &'a str,
    /// What its cases are a number of; empty where there is one case only.
    of: &'a str,
    /// Its cases.
    cases: Vec<CaseOut<'a>>,
}

/// One case.
#[derive(Debug, Serialize, JsonSchema)]
struct CaseOut<'a> {
    /// The size, or how many at a time.
    case: u64,
    /// By contender.
    results: Vec<ResultOut<'a>>,
    /// The first contender against each other one.
    ratios: Vec<RatioOut<'a>>,
}

/// One contender on one case.
#[derive(Debug, Serialize, JsonSchema)]
struct ResultOut<'a> {
    /// The contender.
    contender: &'a str,
    /// What was measured.
    figures: Vec<FigureOut<'a>>,
    /// Ticks of the processor's counter of time in a nanosecond, the middle of the rounds:
    /// times this, nanoseconds are cycles of that counter. Null where there is none.
    ticks_per_ns: Option<f64>,
    /// What the engine counted, for each round, by the counters' names, from the
    /// process's start to the end of the case, and what it held then (held_...); null for
    /// other allocators.
    counters: Option<&'a [BTreeMap<String, u64>]>,
    /// Mistakes of the allocator that the workload noticed; empty when it is sound.
    wrong: Vec<&'a str>,
}

/// One figure of all rounds.
#[derive(Debug, Serialize, JsonSchema)]
struct FigureOut<'a> {
    /// What it is of, for example "alloc".
    name: &'a str,
    /// "ns" for each operation, "bytes" for each object.
    unit: &'a str,
    /// The middle of the rounds; null without any.
    median: Option<f64>,
    /// The lower quartile; null without rounds.
    low: Option<f64>,
    /// The upper quartile; null without rounds.
    high: Option<f64>,
    /// Every round's.
    rounds: &'a [f64],
}

/// One comparison.
#[derive(Debug, Serialize, JsonSchema)]
struct RatioOut<'a> {
    /// Of which figure.
    figure: &'a str,
    /// The contender that the first one is compared with.
    against: &'a str,
    /// What the first one needs for each unit of the other; null with fewer than six rounds, and where a draw has no ratio.
    ratio: Option<f64>,
    /// Lower end of the interval of 95 %; null as `ratio`.
    low: Option<f64>,
    /// Upper end of the interval of 95 %; null as `ratio`.
    high: Option<f64>,
    /// Whether the first needs less or more, or the noise covers the difference;
    /// null as `ratio`.
    #[schemars(extend("enum" = ["less", "more", "not-shown", null]))]
    verdict: Option<&'static str>,
}

/// The document on results.
pub(crate) fn document<'a>(
    plan: &'a Plan,
    results: &'a [WorkloadResult],
    now: Timestamp,
) -> Document<'a> {
    let workloads = results.iter().map(|result| WorkloadOut {
        name: result.workload.name,
        what: result.workload.doc,
        of: result.workload.of,
        cases: result
            .cases
            .iter()
            .map(|case| case_out(plan, case))
            .collect(),
    });
    Document {
        schema: "slabctl.bench/1",
        generated_at: moment(Some(now)),
        machine: Machine::here(),
        rounds: plan.rounds as u64,
        threads: plan.threads as u64,
        contenders: &plan.contenders,
        workloads: workloads.collect(),
    }
}

fn case_out<'a>(plan: &'a Plan, case: &'a CaseResult) -> CaseOut<'a> {
    let results = plan.contenders.iter().map(|contender| ResultOut {
        contender,
        figures: { case.figures.iter() }
            .map(|(name, unit)| {
                let rounds = case.of(contender, name);
                let quartiles = quartiles(rounds);
                FigureOut {
                    name,
                    unit,
                    median: median(rounds),
                    low: quartiles.map(|q| q.0),
                    high: quartiles.map(|q| q.1),
                    rounds,
                }
            })
            .collect(),
        ticks_per_ns: case.ticks_per_ns(contender),
        counters: case.counters.get(contender).map(Vec::as_slice),
        wrong: { case.wrong.iter() }
            .filter(|(of, _)| of == contender)
            .map(|(_, what)| what.as_str())
            .collect(),
    });
    let mut ratios = Vec::new();
    if let Some((first, others)) = plan.contenders.split_first() {
        for (figure, _) in &case.figures {
            for against in others {
                let ratio = Ratio::of(case.of(first, figure), case.of(against, figure));
                ratios.push(RatioOut {
                    figure,
                    against,
                    ratio: ratio.map(|r| r.value),
                    low: ratio.map(|r| r.low),
                    high: ratio.map(|r| r.high),
                    verdict: ratio.map(|r| r.verdict().name()),
                });
            }
        }
    }
    CaseOut {
        case: case.case as u64,
        results: results.collect(),
        ratios,
    }
}
