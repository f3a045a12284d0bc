//! `slabctl advise`: what the figures suggest, on what they rest, what would confirm it.

use std::io::Write;
use std::time::Duration;

use collectors::analysis::advise::{self, Advice, Limits};
use collectors::analysis::diff;
use collectors::columns;
use collectors::model::{OriginKind, Snapshot};
use collectors::source::Demand;
use collectors::units::{self, Scale};

use super::sides::Sides;
use super::{Context, report};
use crate::cli::{Advise as Args, Format};
use crate::fail::{Failure, Status};
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_advise, text};
use crate::{interval, open};

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    if context.global.format() == Format::Jsonl {
        return Err(Failure::usage("advise has no json lines; use --json").into());
    }
    let bytes = units::parse_size(&args.min)
        .ok_or_else(|| Failure::usage(format!("{:?} is no size: write 1M, 500k or 0", args.min)))?;
    let (snapshot, elapsed, mut list) = remarks(context, args, Limits { bytes })?;
    let found = list.len();
    list.truncate(args.top.unwrap_or(usize::MAX));
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => {
            let live = snapshot.origin.kind != OriginKind::Capture;
            let now = live.then(jiff::Timestamp::now);
            let document = json_advise::document(&snapshot, elapsed, &list, now);
            json::write(&mut out, &document)?;
        }
        Format::Csv | Format::Md => report::write_table(context, &table(&list), &mut out)?,
        _ => lines(&list, context.global.scale(), &mut out)?,
    }
    out.flush()?;
    if found == 0 {
        context.note(&format!("nothing to remark on beyond {}", args.min));
    }
    if found > list.len() {
        context.note(&format!("{} more not shown (--top)", found - list.len()));
    }
    open::say_warnings(&context.global, &snapshot);
    Ok(Status::Ok)
}

/// The later snapshot, the time since the earlier one if there is one, and the remarks.
fn remarks(
    context: &Context,
    args: &Args,
    limits: Limits,
) -> anyhow::Result<(Snapshot, Option<Duration>, Vec<Advice>)> {
    if args.before.is_none() && args.interval.is_none() {
        let snapshot = open::sample(&context.global, &demand())?;
        let list = advise::of_snapshot(&snapshot, limits);
        return Ok((snapshot, None, list));
    }
    let elapsed = args.elapsed.as_deref().map(interval::parse).transpose()?;
    let sides = Sides {
        before: args.before.as_deref(),
        after: args.after.as_deref(),
        interval: args.interval.as_deref(),
        paths: None,
    };
    let (before, after, passed) = sides.read(context, "advise", &demand())?;
    let diff = diff::diff(&before, &after, passed.or(elapsed));
    let mut list = advise::of_growth(&after, &diff, limits);
    list.extend(advise::of_snapshot(&after, limits));
    Ok((after, diff.elapsed, list))
}

/// What the rules look at.
fn demand() -> Demand {
    let mut demand = Demand::names();
    for column in advise::NEEDS.iter().filter_map(|key| columns::find(key)) {
        column.ask(&mut demand);
    }
    demand
}

/// A remark is a paragraph: the sentence, its evidence, and what would confirm it.
fn lines(list: &[Advice], scale: Scale, out: &mut impl Write) -> std::io::Result<()> {
    for advice in list {
        let subject = advice.cache.as_deref().unwrap_or("all caches");
        let subject = text::safe(subject);
        writeln!(
            out,
            "{subject}: {} [{}]",
            text::safe(&advice.says),
            advice.rule.name()
        )?;
        let evidence: Vec<_> = advice.evidence.iter().map(|e| e.text(scale)).collect();
        if !evidence.is_empty() {
            writeln!(out, "    {}", text::safe(&evidence.join(", ")))?;
        }
        writeln!(out, "    next: {}", text::safe(&advice.next))?;
    }
    Ok(())
}

fn table(list: &[Advice]) -> Table {
    let mut table = Table::new(vec![
        Head::left("Rule"),
        Head::left("Cache"),
        Head::right("Bytes"),
        Head::left("Remark"),
        Head::left("Evidence"),
        Head::left("Next"),
    ]);
    for advice in list {
        let evidence: Vec<_> = advice
            .evidence
            .iter()
            .map(|e| e.text(Scale::Bytes))
            .collect();
        let or_missing = |text: Option<String>| text.map_or_else(Cell::missing, Cell::text);
        table.row(vec![
            Cell::text(advice.rule.name()),
            or_missing(advice.cache.as_deref().map(str::to_owned)),
            or_missing(advice.bytes.map(|b| b.value.to_string())),
            Cell::text(&*advice.says),
            or_missing((!evidence.is_empty()).then(|| evidence.join(", "))),
            Cell::text(&*advice.next),
        ]);
    }
    table
}
