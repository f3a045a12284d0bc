//! Rounds: children in turns, and their figures brought together.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use loads::bench::Workload;
use loads::figure::median;

use super::child::Line;
use crate::cmd::Context;
use crate::fail::{Failure, Status};

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) workloads: Vec<(&'static Workload, Vec<usize>)>,
    pub(crate) contenders: Vec<String>,
    pub(crate) threads: usize,
    pub(crate) rounds: usize,
}

/// A workload's results.
#[derive(Debug)]
pub(crate) struct WorkloadResult {
    pub(crate) workload: &'static Workload,
    pub(crate) cases: Vec<CaseResult>,
}

/// A case's results.
#[derive(Debug, Default)]
pub(crate) struct CaseResult {
    pub(crate) case: usize,
    /// Names and units, in the order told.
    pub(crate) figures: Vec<(String, String)>,
    /// By contender, then figure: a value for each round.
    pub(crate) values: BTreeMap<(String, String), Vec<f64>>,
    /// By contender: what was counted in each round.
    pub(crate) counters: BTreeMap<String, Vec<BTreeMap<String, u64>>>,
    /// By contender: ticks of the processor's counter in a nanosecond, of each round.
    pub(crate) ticks: BTreeMap<String, Vec<f64>>,
    /// Contenders and what they did wrong.
    pub(crate) wrong: Vec<(String, String)>,
}

impl CaseResult {
    /// The values of a contender's figure.
    pub(crate) fn of(&self, contender: &str, figure: &str) -> &[f64] {
        let key = (contender.to_owned(), figure.to_owned());
        self.values.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Ticks of the processor's counter in a nanosecond.
    pub(crate) fn ticks_per_ns(&self, contender: &str) -> Option<f64> {
        median(self.ticks.get(contender)?)
    }

    fn add(&mut self, contender: &str, line: Line) {
        for (name, unit, value) in line.figures {
            if !self.figures.iter().any(|(known, _)| *known == name) {
                self.figures.push((name.clone(), unit));
            }
            let key = (contender.to_owned(), name);
            self.values.entry(key).or_default().push(value);
        }
        if let Some(ticks) = line.ticks_per_ns {
            let of = self.ticks.entry(contender.to_owned()).or_default();
            of.push(ticks);
        }
        if let Some(counters) = line.counters {
            let of = self.counters.entry(contender.to_owned()).or_default();
            of.push(counters);
        }
        if let Some(wrong) = line.wrong {
            self.wrong.push((contender.to_owned(), wrong));
        }
    }
}

/// Runs everything.
pub(super) fn run(context: &Context, plan: &Plan) -> anyhow::Result<Vec<WorkloadResult>> {
    let mut results: Vec<WorkloadResult> = plan
        .workloads
        .iter()
        .map(|(workload, cases)| WorkloadResult {
            workload,
            cases: cases
                .iter()
                .map(|case| CaseResult {
                    case: *case,
                    ..CaseResult::default()
                })
                .collect(),
        })
        .collect();
    let parts = plan.rounds * plan.contenders.len() * plan.workloads.len();
    let bar = bar(context, parts);
    let mut order: Vec<&String> = plan.contenders.iter().collect();
    for round in 1..=plan.rounds {
        for contender in &order {
            for ((workload, cases), result) in plan.workloads.iter().zip(&mut results) {
                bar.set_message(format!("round {round}: {} on {contender}", workload.name));
                for line in child(contender, workload, cases, plan.threads)? {
                    let of = result.cases.iter_mut().find(|it| it.case == line.case);
                    if let Some(case) = of {
                        case.add(contender, line);
                    }
                }
                bar.inc(1);
            }
        }
        order.rotate_left(1);
    }
    bar.finish_and_clear();
    Ok(results)
}

/// Shown on a terminal only.
fn bar(context: &Context, parts: usize) -> ProgressBar {
    if context.global.quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(parts as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// One contender's part of a round.
fn child(
    contender: &str,
    workload: &Workload,
    cases: &[usize],
    threads: usize,
) -> anyhow::Result<Vec<Line>> {
    let me = std::env::current_exe().context("cannot find this program again")?;
    let mut command = Command::new(me);
    command
        .args(["bench", "child", contender, workload.name])
        .arg(threads.to_string())
        .args(cases.iter().map(ToString::to_string))
        .stdin(Stdio::null());
    let output = command.output().context("cannot start a contender")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().last().unwrap_or_default();
        let error = format!(
            "{} on {contender}: {}: {}",
            workload.name,
            output.status,
            crate::output::text::one_line(last)
        );
        return Err(Failure::new(Status::Failed, error).into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(serde_json::from_str);
    lines
        .collect::<Result<_, _>>()
        .context("a contender wrote something else than figures")
}
