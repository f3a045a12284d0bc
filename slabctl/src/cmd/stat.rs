//! `slabctl stat -- COMMAND`: what the slab caches did while a command ran.
//!
//! A sample before, one after, and some between for the highest figures. Where
//! the source counts events, so many of them happened; elsewhere what can be
//! told is what is left when the command has ended, and the highest figures.

pub(crate) mod load;
mod own;
mod table;

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use collectors::analysis::Usage;
use collectors::analysis::diff::{self, Diff, DiffRow};
use collectors::columns;
use collectors::model::{Cache, Snapshot, Warning, WarningCode};
use collectors::source::{Demand, Source};

use self::load::{Load, Outcome};
use super::Context;
use super::select::Selection;
use crate::cli::{Format, Stat as Args};
use crate::cmd::diff::{Order, is_changed, keep};
use crate::fail::{Failure, Status};
use crate::output::{json, json_stat};
use crate::screen::Screen;
use crate::{interval, open};

/// How often it is sampled where the user does not say.
const USUAL: Duration = Duration::from_secs(1);
/// How old lists may be in the samples between, of caches whose rows are the same.
const UNCHANGED: Duration = Duration::from_secs(10);

/// The highest figures of a cache in all samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) objects: Option<u64>,
    pub(crate) slabs: Option<u64>,
    pub(crate) partial: Option<u64>,
    pub(crate) memory: Option<u64>,
}

/// All that was seen.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) before: Snapshot,
    pub(crate) after: Snapshot,
    pub(crate) diff: Diff,
    /// Of each row of `diff`.
    pub(crate) peaks: Vec<Peak>,
    pub(crate) samples: u64,
    pub(crate) interval: Duration,
    pub(crate) outcome: Outcome,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    if context.global.format() == Format::Jsonl {
        return Err(Failure::usage("stat has no json lines; use --json").into());
    }
    open::no_demo(
        &context.global,
        "stat looks at what a command does to the kernel; --demo is a load of its own",
    )?;
    if args.run {
        own::check(context, args)?;
    }
    let order = args.select.sort.as_deref().map(Order::parse).transpose()?;
    let selection = Selection::new(&[], &args.select.without_order(), None)?;
    let wanted = args.interval.as_deref().map(interval::parse).transpose()?;
    let mut source = if args.run {
        None
    } else {
        Some(live(context, args)?)
    };
    let out = args.write.as_deref().map(create).transpose()?;
    let every = wanted.unwrap_or(USUAL);
    let pace = (every, wanted.is_some());
    let mut seen = match &mut source {
        Some(source) => watch(context, args, &mut **source, &selection, pace)?,
        None => own::watch(context, args, &selection, pace)?,
    };
    choose(&mut seen, args, &selection, order.unwrap_or(Order::Memory));
    match out {
        Some(mut file) => write(context, &seen, &Screen::plain(None), &mut file)?,
        None if io::stderr().is_terminal() && context.screen.terminal => {
            write(context, &seen, &context.screen, &mut io::stderr().lock())?;
        }
        None => write(
            context,
            &seen,
            &Screen::plain(None),
            &mut io::stderr().lock(),
        )?,
    }
    say(context, &seen);
    Ok(seen.outcome.status())
}

fn live(context: &Context, args: &Args) -> anyhow::Result<Box<dyn Source>> {
    let source = open::counted(&context.global, args.paths.how)?;
    if source.is_live() {
        return Ok(source);
    }
    Err(Failure::usage("stat needs a live source: a saved file does not change").into())
}

/// A new file, made before the command runs.
fn create(path: &Path) -> Result<io::BufWriter<std::fs::File>, Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let file =
        file.map_err(|e| Failure::new(Status::Failed, format!("{}: {e}", path.display())))?;
    Ok(io::BufWriter::new(file))
}

/// What is read before and after; without counters between.
fn demand(selection: &Selection) -> Demand {
    let mut demand = Demand::names();
    for key in ["loss", "partial", "objects", "total_objects"] {
        if let Some(column) = columns::find(key) {
            column.ask(&mut demand);
        }
    }
    selection.ask(&mut demand);
    demand
}

fn watch(
    context: &Context,
    args: &Args,
    source: &mut dyn Source,
    selection: &Selection,
    (every, tell): (Duration, bool),
) -> anyhow::Result<Seen> {
    let between = Demand {
        unchanged_for: UNCHANGED,
        ..demand(selection)
    };
    let ends = Demand {
        counters: true,
        ..demand(selection)
    };
    let before = source.sample(&ends).map_err(open::with_hints)?;
    let mut peaks = Peaks::of(&before);
    let start = Instant::now();
    let load = Load::start(&args.command)?;
    let mut samples = 2;
    let outcome = loop {
        if let Some(outcome) = load.wait(every) {
            break outcome;
        }
        let now = match source.sample(&between) {
            Ok(now) => now,
            Err(error) => {
                context.note(&format!("warning: no sample: {error}"));
                continue;
            }
        };
        samples += 1;
        peaks.add(&now);
        if tell {
            let line = table::line(start.elapsed(), &before, &now, context.global.scale());
            context.note(&line);
        }
    };
    let elapsed = outcome.at.saturating_duration_since(start);
    let after = source
        .sample(&ends)
        .map_err(|error| Failure::new(unseen(&outcome), error.to_string()))?;
    peaks.add(&after);
    let ends = (before, after, elapsed);
    Ok(Seen::of(ends, &peaks, (samples, every), outcome))
}

/// The status when nothing can be told: whoever waits for the command hears of it all the same.
fn unseen(outcome: &Outcome) -> Status {
    match outcome.status() {
        Status::Command(0) => Status::Failed,
        other => other,
    }
}

impl Seen {
    fn of(
        (before, after, elapsed): (Snapshot, Snapshot, Duration),
        peaks: &Peaks,
        (samples, interval): (u64, Duration),
        outcome: Outcome,
    ) -> Self {
        let diff = diff::diff(&before, &after, Some(elapsed));
        let peaks = diff.rows.iter().map(|row| peaks.get(row)).collect();
        Self {
            before,
            after,
            diff,
            peaks,
            samples,
            interval,
            outcome,
        }
    }
}

/// The highest figures by the caches' identity: directory, else name.
#[derive(Default)]
struct Peaks(std::collections::HashMap<Box<str>, Peak>);

impl Peaks {
    fn of(first: &Snapshot) -> Self {
        let mut peaks = Self::default();
        peaks.add(first);
        peaks
    }

    fn add(&mut self, snapshot: &Snapshot) {
        for cache in &snapshot.caches {
            let peak = self.0.entry(identity(cache)).or_default();
            let memory = Usage::of(cache, snapshot.system.page_size).memory;
            raise(&mut peak.objects, cache.objects().map(|f| f.value.get()));
            raise(&mut peak.slabs, cache.slabs().map(|f| f.value.get()));
            raise(&mut peak.partial, cache.partial().map(|f| f.value.get()));
            raise(&mut peak.memory, memory.map(|f| f.value.get()));
        }
    }

    fn get(&self, row: &DiffRow) -> Peak {
        let id = row.sysfs_id.as_ref().unwrap_or(&row.name);
        self.0.get(id).copied().unwrap_or_default()
    }
}

fn identity(cache: &Cache) -> Box<str> {
    cache.sysfs_id.clone().unwrap_or_else(|| cache.name.clone())
}

fn raise(highest: &mut Option<u64>, figure: Option<u64>) {
    *highest = (*highest).max(figure);
}

/// Leaves the rows that were asked for, in that order.
fn choose(seen: &mut Seen, args: &Args, selection: &Selection, order: Order) {
    let moved = |row: &DiffRow, peak: &Peak| {
        let counted = row
            .counters
            .iter()
            .any(|c| c.delta.is_some_and(|d| d.value > 0));
        let rose = peak.memory > row.changes.memory.before.map(|f| f.value);
        is_changed(row) || counted || rose
    };
    let mut rows: Vec<(DiffRow, Peak)> =
        seen.diff.rows.drain(..).zip(seen.peaks.drain(..)).collect();
    rows.retain(|(row, peak)| {
        keep(row, selection, &seen.before, &seen.after) && (args.all || moved(row, peak))
    });
    order.sort(&mut rows, args.select.reverse, |(row, _)| row);
    if let Some(top) = args.select.top {
        rows.truncate(top);
    }
    (seen.diff.rows, seen.peaks) = rows.into_iter().unzip();
}

fn write(
    context: &Context,
    seen: &Seen,
    screen: &Screen,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let people = || table::people(seen, context.global.scale());
    match context.global.format() {
        Format::Json => json::write(out, &json_stat::document(seen, jiff::Timestamp::now()))?,
        Format::Csv => table::exact(seen).write_csv(out)?,
        Format::Md => people().write_markdown(out)?,
        Format::Table | Format::Jsonl => {
            let hidden = people().write(out, screen)?;
            if !hidden.is_empty() {
                let hidden = hidden.join(", ");
                context.note(&format!("the terminal is too narrow for {hidden}"));
            }
        }
    }
    out.flush()?;
    Ok(())
}

fn say(context: &Context, seen: &Seen) {
    let counted = seen.diff.rows.iter().any(|row| !row.counters.is_empty());
    context.note(&format!(
        "{} in {:.2} s; {} samples, the highest figures are of these",
        seen.outcome,
        seen.diff.elapsed.unwrap_or_default().as_secs_f64(),
        seen.samples
    ));
    if !counted {
        context.note(
            "this kernel does not count allocations and frees (CONFIG_SLUB_STATS): what came and went between two samples is not seen; --paths counts them by BPF",
        );
    }
    // What was not counted is told by the sample after.
    let of_paths = |warning: &&Warning| warning.message.starts_with("paths");
    let missed = seen.after.warnings.iter().filter(of_paths);
    for warning in seen.diff.warnings.iter().chain(missed) {
        let text = crate::output::text::one_line(&warning.to_string());
        let kind = match warning.code {
            WarningCode::Note => "note",
            _ => "warning",
        };
        context.note(&format!("{kind}: {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_figure_is_of_any_sample_and_the_unknown_is_no_zero() {
        let mut highest = None;
        raise(&mut highest, None);
        assert_eq!(highest, None);
        raise(&mut highest, Some(3));
        raise(&mut highest, None);
        raise(&mut highest, Some(2));
        assert_eq!(highest, Some(3));
    }
}
