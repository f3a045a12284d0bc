//! `slabctl check RULES`: whether figures are within limits, for monitoring systems.
//!
//! Whatever happens, one line with a status is on standard output, and the exit
//! status is 0 to 3: a plugin that cannot tell says so.

mod line;
pub(crate) mod rules;

use std::io::Write as _;

use collectors::analysis::check::{self, Outcome, Rule, Severity};
use collectors::analysis::diff::{Diff, diff};
use collectors::model::Snapshot;
use collectors::source::Demand;

use self::rules::Broken;
use super::sides::Sides;
use super::{Context, report};
use crate::cli::{Check as Args, Format};
use crate::fail::{Failure, Status};
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_check, text};
use crate::{interval, open};

/// Rules and what became of them.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) rules: Vec<Rule>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) snapshot: Snapshot,
}

/// Why nothing was checked.
enum Stop {
    Rules(Broken),
    Other(anyhow::Error),
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> Status {
    let done = checked(context, args).and_then(|checked| {
        let severity = line::gravest(&checked.outcomes);
        show(context, &checked).map_err(Stop::Other)?;
        open::say_warnings(&context.global, &checked.snapshot);
        Ok(status(severity))
    });
    done.unwrap_or_else(|stop| {
        // A closed pipe is nobody's concern.
        let _ = say(context, &stop);
        Status::CheckUnknown
    })
}

const fn status(severity: Severity) -> Status {
    match severity {
        Severity::Ok => Status::Ok,
        Severity::Unknown => Status::CheckUnknown,
        Severity::Warning => Status::CheckWarning,
        Severity::Critical => Status::CheckCritical,
    }
}

fn checked(context: &Context, args: &Args) -> Result<Checked, Stop> {
    if context.global.format() == Format::Jsonl {
        let failure = Failure::usage("check has no json lines; use --json");
        return Err(Stop::Other(failure.into()));
    }
    let rules = rules::read(&args.rules).map_err(Stop::Rules)?;
    let (snapshot, diff) = samples(context, args, &rules).map_err(Stop::Other)?;
    let judged = rules
        .iter()
        .map(|rule| check::judge(rule, &snapshot, diff.as_ref()));
    Ok(Checked {
        outcomes: judged.collect(),
        rules,
        snapshot,
    })
}

/// The later sample, and what changed where an earlier one was asked for.
fn samples(
    context: &Context,
    args: &Args,
    rules: &[Rule],
) -> anyhow::Result<(Snapshot, Option<Diff>)> {
    let mut demand = Demand::names();
    for rule in rules {
        rule.caches.ask(&mut demand);
        if let Some(figure) = rule.figure() {
            figure.column.ask(&mut demand);
        }
    }
    if args.since.is_none() && args.interval.is_none() {
        return Ok((open::sample(&context.global, &demand)?, None));
    }
    let sides = Sides {
        before: args.since.as_deref(),
        after: None,
        interval: args.interval.as_deref(),
        paths: None,
    };
    let (before, after, waited) = sides.read(context, "check", &demand)?;
    let given = args.elapsed.as_deref().map(interval::parse).transpose()?;
    let diff = diff(&before, &after, waited.or(given));
    Ok((after, Some(diff)))
}

fn show(context: &Context, checked: &Checked) -> anyhow::Result<()> {
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => json::write(
            &mut out,
            &json_check::document(checked, line::gravest(&checked.outcomes)),
        )?,
        Format::Csv | Format::Md => report::write_table(context, &table(checked), &mut out)?,
        _ => {
            let scale = context.global.scale();
            writeln!(
                out,
                "{}",
                line::status(&checked.rules, &checked.outcomes, scale)
            )?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Says that nothing was checked: a status line where a monitoring system reads
/// it, and what helps a person on standard error.
fn say(context: &Context, stop: &Stop) -> std::io::Result<()> {
    let (why, help) = match stop {
        Stop::Rules(broken) => {
            let place = broken.place.as_ref();
            let at = place.map_or_else(String::new, |p| format!(":{}:{}", p.line, p.column));
            let help = place.map_or_else(Vec::new, |place| place.shown().to_vec());
            (format!("{}{at}: {}", broken.file, broken.why), help)
        }
        Stop::Other(error) => {
            let hints = error
                .downcast_ref::<Failure>()
                .map_or(&[][..], |f| &f.hints);
            let hints = hints.iter().map(|hint| format!("hint: {hint}"));
            (format!("{error:#}"), hints.collect())
        }
    };
    let mut out = Context::out();
    if context.global.format() == Format::Json {
        let broken = match stop {
            Stop::Rules(broken) => Some(broken),
            Stop::Other(_) => None,
        };
        json::write(&mut out, &json_check::failure(&why, broken))?;
    } else {
        let line = text::one_line(&why).replace('|', "/");
        writeln!(out, "{}{line}", line::head(Severity::Unknown))?;
    }
    out.flush()?;
    for line in help {
        open::say(&text::safe(&line));
    }
    Ok(())
}

/// One line a rule, for machines.
fn table(checked: &Checked) -> Table {
    let mut table = Table::new(vec![
        Head::left("Rule"),
        Head::left("Status"),
        Head::left("Figure"),
        Head::left("Cache"),
        Head::right("Value"),
        Head::left("Warning"),
        Head::left("Critical"),
        Head::left("Why"),
    ]);
    for (rule, outcome) in checked.rules.iter().zip(&checked.outcomes) {
        let worst = outcome.worst.as_ref();
        let maybe = |text: Option<&str>| text.map_or_else(Cell::missing, Cell::text);
        let value = worst.map(|one| one.value.to_string());
        table.row(vec![
            Cell::text(&*rule.name),
            Cell::text(outcome.severity.name()),
            Cell::text(rule.figure().map(|f| f.name()).unwrap_or_default()),
            maybe(worst.and_then(|one| one.cache.as_deref())),
            maybe(value.as_deref()),
            maybe(rule.warning.as_ref().map(|c| &*c.text)),
            maybe(rule.critical.as_ref().map(|c| &*c.text)),
            maybe(outcome.why.as_deref()),
        ]);
    }
    table
}
