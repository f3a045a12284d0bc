//! Screen 4: what changed since the mark, or since the first full sample.
//!
//! Caches are paired and compared by `collectors::analysis::diff`, which says
//! what to know before believing it. A figure that one side lacks has no
//! change; a cache that one side lacks held nothing there.

use std::cmp::Reverse;

use collectors::analysis::diff::{self, Change, Diff, DiffRow, Presence};
use collectors::columns::{self, Row, show};
use collectors::model::Unit;
use collectors::source::Demand;

use super::note;
use crate::model::{Model, Moment, Pick};
use crate::screens::{Body, Page, Screen};
use crate::text::{self, Line};
use crate::theme::Role;

/// The screen.
pub const SCREEN: Screen = Screen {
    name: "diff",
    key: "4",
    title: "Diff",
    doc: "What changed since the mark",
    moves_list: false,
    around: 0,
    body: Body::Page(page),
    ask,
};

/// A figure that is compared: its heading, its unit, where it is in a row.
struct Figure {
    title: &'static str,
    unit: Unit,
    of: fn(&DiffRow) -> &Change,
}

/// The figures, the first order first.
const FIGURES: [Figure; 4] = [
    Figure {
        title: "Bytes",
        unit: Unit::Bytes,
        of: |row| &row.changes.memory,
    },
    Figure {
        title: "Objects",
        unit: Unit::Objects,
        of: |row| &row.changes.objects,
    },
    Figure {
        title: "Slabs",
        unit: Unit::Slabs,
        of: |row| &row.changes.slabs,
    },
    Figure {
        title: "Partial",
        unit: Unit::Slabs,
        of: |row| &row.changes.partial,
    },
];

/// Cells of a figure, with the gap before it.
const CELL: usize = 10;

/// Cells that tell whether a cache came or went.
const PRESENCE: usize = 10;

/// The figures that are compared, and counters where a kernel has them.
fn ask(_: &Model, demand: &mut Demand) {
    for key in ["memory", "objects", "slabs", "partial"] {
        if let Some(column) = columns::find(key) {
            column.ask(demand);
        }
    }
    demand.counters = true;
}

fn page(model: &Model, width: usize) -> Page {
    let Some(now) = &model.time.shown else {
        return Page::default();
    };
    let Some(base) = model.origin().filter(|base| base.at != now.at) else {
        return nothing(model, width);
    };
    let elapsed = now.at.saturating_sub(base.at);
    let diff = diff::diff(&base.snapshot, &now.snapshot, Some(elapsed));
    let order = &FIGURES[model.spot().view % FIGURES.len()];
    let (mut rows, unchanged): (Vec<&DiffRow>, Vec<&DiffRow>) = diff
        .rows
        .iter()
        .filter(|row| passes(model, row, base, now))
        .partition(|row| changed(row));
    rows.sort_by_key(|row| Reverse((order.of)(row).delta.map(|d| d.value.unsigned_abs())));
    let mut page = Page {
        head: head(model, base, now, &diff, order, width),
        ..Page::default()
    };
    page.picks = rows.iter().map(|row| pick(row, base, now)).collect();
    let picked = page.picked(model);
    for (place, row) in rows.iter().enumerate() {
        page.picks[place].line = page.lines.len();
        page.lines.push(line(model, row, width));
        if place == picked {
            page.lines.extend(detail(model, row, width));
        }
    }
    if rows.is_empty() {
        page.lines.push(Line::plain("  nothing changed"));
    }
    let count = unchanged.len();
    page.lines
        .push(Line::dim(format!("  caches that did not change: {count}")));
    for warning in &diff.warnings {
        page.lines
            .extend(note(&warning.to_string(), 2, width, Role::Dim));
    }
    page
}

/// There is one moment only.
fn nothing(model: &Model, width: usize) -> Page {
    let says = if !model.live {
        "a saved file is one moment: slabctl diff BEFORE AFTER compares two"
    } else if model.time.mark.is_some() {
        "the mark is at this very sample: what changes from now on is shown here"
    } else {
        "no sample to compare with yet"
    };
    Page {
        lines: note(says, 2, width, Role::Dim),
        ..Page::default()
    }
}

/// Whether the filter of the list lets it through.
fn passes(model: &Model, row: &DiffRow, base: &Moment, now: &Moment) -> bool {
    let after = row.after.and_then(|i| now.snapshot.caches.get(i));
    let cache = after.or_else(|| base.snapshot.caches.get(row.before?));
    cache.is_some_and(|cache| {
        let row = Row::new(cache, now.page_size());
        model.list.filter.accepts(&row)
    })
}

fn changed(row: &DiffRow) -> bool {
    let moved = |f: &Figure| (f.of)(row).delta.is_some_and(|d| d.value != 0);
    row.presence != Presence::Both || FIGURES.iter().any(moved)
}

fn pick(row: &DiffRow, base: &Moment, now: &Moment) -> Pick {
    let after = row.after.and_then(|i| now.keys.get(i));
    let before = row.before.and_then(|i| base.keys.get(i));
    let any = after.or(before).map_or(u32::MAX, |key| key.0);
    Pick {
        line: 0,
        id: format!("{any} {}", row.name),
        key: after.copied(),
    }
}

/// Since when, the sums, the headings.
fn head(
    model: &Model,
    base: &Moment,
    now: &Moment,
    diff: &Diff,
    order: &Figure,
    width: usize,
) -> Vec<Line> {
    let age = text::span(now.at.abs_diff(base.at));
    let clock = base.snapshot.origin.taken_at.map_or_else(String::new, |t| {
        let local = t.to_zoned_datetime(model.settings.zone.clone());
        format!(" at {}", local.strftime("%H:%M:%S"))
    });
    let direction = if base.at > now.at { "later" } else { "ago" };
    let since = match model.time.mark {
        Some(_) => Line::new().with(
            Role::Mark,
            format!(
                "{} since the mark{clock}, {age} {direction}",
                model.settings.glyphs.mark
            ),
        ),
        None => Line::new()
            .with(
                Role::Header,
                format!("since the first full sample{clock}, {age} {direction}"),
            )
            .with(Role::Dim, "  no mark is set: m sets one"),
    };
    let mut heads = Line::heading(format!(" {:<w$}", "Cache", w = name_width(width)));
    for figure in FIGURES.iter().take(figures(width)) {
        let sorted = figure.title == order.title;
        let role = if sorted { Role::Accent } else { Role::Header };
        let sign = if sorted { "v" } else { "" };
        let title = format!("{sign}+{}", figure.title);
        heads = heads.with(role, format!("{title:>CELL$}"));
    }
    let mut sums = Line::dim(format!(" {:<w$}", "all caches", w = name_width(width)));
    let totals = [
        &diff.totals.memory,
        &diff.totals.objects,
        &diff.totals.slabs,
        &diff.totals.partial,
    ];
    for (figure, change) in FIGURES.iter().zip(totals).take(figures(width)) {
        let (text, role) = cell(model, figure, change);
        sums = sums.with(role, format!("{text:>CELL$}"));
    }
    vec![since, heads, sums]
}

/// Figures that fit beside a name.
fn figures(width: usize) -> usize {
    (width.saturating_sub(13 + PRESENCE) / CELL).clamp(1, FIGURES.len())
}

fn name_width(width: usize) -> usize {
    let rest = 1 + CELL * figures(width) + PRESENCE;
    width.saturating_sub(rest).clamp(1, 36)
}

fn cell(model: &Model, figure: &Figure, change: &Change) -> (String, Role) {
    let role = match change.delta.map(|d| d.value) {
        Some(v) if v > 0 => Role::Up,
        Some(v) if v < 0 => Role::Down,
        Some(_) => Role::Normal,
        None => Role::Dim,
    };
    let text = change.delta.map_or_else(
        || show::UNKNOWN.to_owned(),
        |d| show::delta(d, figure.unit, model.settings.scale),
    );
    (text, role)
}

fn line(model: &Model, row: &DiffRow, width: usize) -> Line {
    let cells = name_width(width);
    let name = text::clean(&row.name);
    let name = text::fit(&name, cells, model.settings.glyphs.cut);
    let pad = " ".repeat(cells.saturating_sub(text::width(&name)));
    let mut line = Line::plain(format!(" {name}{pad}"));
    for figure in FIGURES.iter().take(figures(width)) {
        let (text, role) = cell(model, figure, (figure.of)(row));
        line = line.with(role, format!("{text:>CELL$}"));
    }
    match row.presence {
        Presence::Both => line,
        presence => line.with(Role::Warn, format!("  {}", presence.name())),
    }
}

/// From what to what, and the counters that went on.
fn detail(model: &Model, row: &DiffRow, width: usize) -> Vec<Line> {
    let scale = model.settings.scale;
    let side = |f: Option<_>, unit| {
        f.map_or_else(
            || show::UNKNOWN.to_owned(),
            |f| show::number(f, unit, scale),
        )
    };
    let parts: Vec<String> = FIGURES
        .iter()
        .map(|figure| {
            let change = (figure.of)(row);
            let (old, new) = (
                side(change.before, figure.unit),
                side(change.after, figure.unit),
            );
            format!("{} {old} to {new}", figure.title.to_lowercase())
        })
        .collect();
    let mut out = Vec::new();
    if let Some(old) = &row.renamed_from {
        out.extend(note(&format!("was shown as {old}"), 4, width, Role::Dim));
    }
    out.extend(note(&parts.join(", "), 4, width, Role::Dim));
    let counters: Vec<String> = row
        .counters
        .iter()
        .filter_map(|c| Some((c.id, c.delta?)))
        .filter(|(_, delta)| delta.value > 0)
        .map(|(id, delta)| {
            let mark = if delta.approx { "~" } else { "" };
            format!("{} {mark}+{}", id.name(), delta.value)
        })
        .collect();
    let says = if counters.is_empty() {
        "no counters to compare: a kernel has them with CONFIG_SLUB_STATS, the built-in engine always".to_owned()
    } else {
        format!("counters: {}", counters.join(", "))
    };
    out.extend(note(&says, 4, width, Role::Dim));
    out
}
