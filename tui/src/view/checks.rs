//! Screen 6: what the figures suggest, what the validator said, and what to
//! know about the reading itself.
//!
//! The rules are those of `slabctl advise` (`collectors::analysis::advise`), on
//! the shown sample and, for growth, against the mark or the first full sample.
//! A rule that lacks a figure says nothing; nothing here proves a leak.

use std::time::Duration;

use collectors::analysis::advise::{self, Advice, Limits, Severity};
use collectors::analysis::diff;
use collectors::columns;
use collectors::model::{OriginKind, WarningCode};
use collectors::source::Demand;

use super::note;
use crate::model::{Key, Model, Moment, Pick};
use crate::msg::Change;
use crate::screens::{Body, Page, Screen};
use crate::text::{self, Line};
use crate::theme::Role;

/// The screen.
pub const SCREEN: Screen = Screen {
    name: "checks",
    key: "6",
    title: "Checks",
    doc: "What the figures suggest, each with its evidence",
    moves_list: false,
    around: 0,
    body: Body::Page(page),
    ask,
};

/// Most remarks on the reading that are listed.
const MOST: usize = 50;

/// What the rules look at, and no more.
fn ask(_: &Model, demand: &mut Demand) {
    for column in advise::NEEDS.iter().filter_map(|key| columns::find(key)) {
        column.ask(demand);
    }
}

fn page(model: &Model, width: usize) -> Page {
    let Some(now) = &model.time.shown else {
        return Page::default();
    };
    let (hits, growth) = hits(model, now);
    let mut page = Page {
        head: vec![heading(model, now, &hits), growth],
        ..Page::default()
    };
    page.picks = hits
        .iter()
        .map(|hit| Pick {
            line: 0,
            id: id(hit),
            key: key(now, hit),
        })
        .collect();
    let picked = page.picked(model);
    for (place, hit) in hits.iter().enumerate() {
        page.picks[place].line = page.lines.len();
        page.lines.extend(lines(model, hit, place == picked, width));
    }
    if hits.is_empty() {
        page.lines
            .push(Line::plain("  nothing to remark on beyond 1M"));
    }
    page.lines.push(Line::new());
    page.lines.extend(validations(model, now, width));
    page.lines.push(Line::new());
    page.lines.extend(reading(now, width));
    page
}

/// Every hit, and what growth was looked for against.
fn hits(model: &Model, now: &Moment) -> (Vec<Advice>, Line) {
    let limits = Limits::default();
    let mut hits = Vec::new();
    let base = model.origin().filter(|base| base.at < now.at);
    let line = match base {
        Some(base) => {
            let elapsed = now.at.saturating_sub(base.at);
            let diff = diff::diff(&base.snapshot, &now.snapshot, Some(elapsed));
            hits = advise::of_growth(&now.snapshot, &diff, limits);
            let since = match model.time.mark {
                Some(_) => "since the mark",
                None => "since the first full sample (m sets a mark)",
            };
            Line::dim(format!(
                "growth is looked for {since}, {} ago",
                text::span(elapsed)
            ))
        }
        None if model.live => Line::dim("growth needs an earlier sample to compare with"),
        None => Line::dim("growth needs two samples: slabctl advise BEFORE AFTER compares files"),
    };
    hits.extend(advise::of_snapshot(&now.snapshot, limits));
    hits.sort_by_key(|hit| hit.rule.severity());
    (hits, line)
}

fn heading(model: &Model, now: &Moment, hits: &[Advice]) -> Line {
    let count = |s: Severity| hits.iter().filter(|h| h.rule.severity() == s).count();
    let failed = failures(model);
    let mut line = Line::heading("Checks");
    if failed > 0 {
        line = line.with(Role::Crit, format!("  !! {failed} failed"));
    }
    let warn = count(Severity::Look);
    let role = if warn > 0 { Role::Warn } else { Role::Normal };
    let remarks = now.snapshot.warnings.iter().count();
    line.with(role, format!("  ! {warn} worth a look"))
        .with(Role::Normal, format!("  {} to know", count(Severity::Know)))
        .with(Role::Dim, format!("  {remarks} on the reading"))
}

/// Checks of the kernel's validator that could not be done.
fn failures(model: &Model) -> usize {
    let validations = model
        .changes
        .iter()
        .filter(|c| c.change == Change::Validate);
    validations.filter(|c| c.done.is_err()).count()
}

fn id(hit: &Advice) -> String {
    let cache = hit.sysfs_id.as_deref().or(hit.cache.as_deref());
    format!("{} {}", hit.rule.name(), cache.unwrap_or_default())
}

/// The cache that a hit is about, in the shown sample.
fn key(now: &Moment, hit: &Advice) -> Option<Key> {
    let name = hit.cache.as_deref()?;
    let place = now
        .snapshot
        .caches
        .iter()
        .position(|c| *c.name == *name && c.sysfs_id == hit.sysfs_id && c.cgroup.is_none())?;
    now.keys.get(place).copied()
}

/// Which rule, about what, the sentence, its evidence; of the picked one, the
/// next step too.
fn lines(model: &Model, hit: &Advice, picked: bool, width: usize) -> Vec<Line> {
    let (sign, role) = match hit.rule.severity() {
        Severity::Look => ("!", Role::Warn),
        Severity::Know => (" ", Role::Normal),
    };
    let subject = hit.cache.as_deref().unwrap_or("all caches");
    let mut out = vec![
        Line::new()
            .with(role, format!(" {sign} "))
            .with(Role::Header, format!("{subject}  "))
            .with(Role::Accent, hit.rule.name()),
    ];
    out.extend(note(&hit.says, 4, width, Role::Normal));
    let evidence: Vec<_> = hit
        .evidence
        .iter()
        .map(|e| e.text(model.settings.scale))
        .collect();
    if !evidence.is_empty() {
        out.extend(note(&evidence.join(", "), 4, width, Role::Dim));
    }
    if picked {
        out.extend(note(&format!("next: {}", hit.next), 4, width, Role::Normal));
    }
    out
}

/// What the kernel's own validator was asked, and what came of it.
fn validations(model: &Model, now: &Moment, width: usize) -> Vec<Line> {
    let mut out = vec![Line::heading("Validator")];
    let mut asked = model
        .changes
        .iter()
        .filter(|c| c.change == Change::Validate)
        .peekable();
    if asked.peek().is_none() {
        out.extend(note(&unasked(model, now), 2, width, Role::Dim));
    }
    for one in asked {
        let age = model
            .time
            .newest
            .as_ref()
            .map_or(Duration::ZERO, |newest| newest.at.saturating_sub(one.at));
        let (role, says) = match &one.done {
            Ok(text) => (Role::Normal, text.clone()),
            Err(why) => (Role::Crit, format!("!! {}: {why}", one.cache)),
        };
        let says = format!("{says} ({} ago)", text::span(age));
        out.extend(note(&says, 2, width, role));
    }
    out
}

/// Why nothing was validated.
fn unasked(model: &Model, now: &Moment) -> String {
    match now.snapshot.origin.kind {
        OriginKind::Demo => {
            "the engine is checked by slabctl validate --demo, not from here".to_owned()
        }
        OriginKind::Process => "slabctl validate --pid checks a process, not from here".to_owned(),
        OriginKind::Capture => "a saved file cannot be validated".to_owned(),
        OriginKind::Kernel => {
            let keys = model.settings.keys.keys_of(crate::keys::Action::Validate);
            let allowed = if model.settings.allow_write {
                ""
            } else {
                " (needs --allow-write)"
            };
            format!(
                "nothing was validated yet: {keys} has the kernel check the selected cache{allowed}; it writes what it finds into its log"
            )
        }
    }
}

/// What could not be read, and what to know about the figures.
fn reading(now: &Moment, width: usize) -> Vec<Line> {
    let warnings = &now.snapshot.warnings;
    let mut out = vec![Line::heading("Remarks on the reading")];
    if warnings.is_empty() {
        out.push(Line::dim("  none: everything asked for could be read"));
    }
    for warning in warnings.iter().take(MOST) {
        let role = match warning.code {
            WarningCode::Note | WarningCode::DuplicateName => Role::Dim,
            _ => Role::Normal,
        };
        let says = format!("{}: {warning}", warning.code.name());
        out.extend(note(&says, 2, width, role));
    }
    let count = u64::try_from(warnings.iter().count().saturating_sub(MOST)).unwrap_or(0);
    let more = count + warnings.suppressed();
    if more > 0 {
        out.push(Line::dim(format!("  and {more} more")));
    }
    out
}
