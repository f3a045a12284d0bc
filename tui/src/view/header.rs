//! The first line: what is looked at, which moment, what it costs, the sums.

use collectors::columns::show;
use collectors::model::{Approx, Bytes, OriginKind, Unit};

use super::canvas::Canvas;
use crate::model::{Model, shown};
use crate::text::{self, Line};
use crate::theme::Role;

/// Parts of the line, the most important first.
struct Part {
    line: Line,
    right: bool,
    importance: u8,
}

pub(super) fn draw(model: &Model, canvas: &mut Canvas<'_>) {
    let mut parts = left(model);
    parts.extend(right(model));
    let gap = 2;
    let wide = |p: &Part| text::width(&p.line.text()) + gap;
    while parts.iter().map(wide).sum::<usize>() > canvas.width() + gap && parts.len() > 1 {
        // The least important one goes first.
        let least = parts.iter().map(|p| p.importance).max();
        if let Some(place) = parts.iter().position(|p| Some(p.importance) == least) {
            parts.remove(place);
        }
    }
    let mut x = 0;
    for part in parts.iter().filter(|p| !p.right) {
        x = canvas.line(x, 0, &part.line) + gap;
    }
    let tail: Vec<&Part> = parts.iter().filter(|p| p.right).collect();
    let room: usize = tail.iter().map(|p| wide(p)).sum();
    let mut x = canvas.width().saturating_sub(room.saturating_sub(gap));
    for part in tail {
        x = canvas.line(x, 0, &part.line) + gap;
    }
}

fn left(model: &Model) -> Vec<Part> {
    let part = |line, importance| Part {
        line,
        right: false,
        importance,
    };
    let mut parts = vec![
        part(badge(model), 0),
        part(Line::heading(model.screen().title), 1),
    ];
    if let Some(shown) = &model.time.shown {
        let system = &shown.snapshot.system;
        let name = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        let machine = match shown.snapshot.origin.kind {
            OriginKind::Demo => "built-in engine".to_owned(),
            _ => format!("{} {}", name(&system.hostname), name(&system.kernel)),
        };
        parts.push(part(Line::plain(machine), 5));
    }
    if let (Some(mark), Some(shown)) = (&model.time.mark, &model.time.shown) {
        let sign = model.settings.glyphs.mark;
        let age = text::span(shown.at.abs_diff(mark.at));
        let before = if shown.at < mark.at { "+" } else { "-" };
        let text = format!("{sign} mark {before}{age}");
        parts.push(part(Line::new().with(Role::Mark, text), 3));
    }
    if let Some(cost) = model.cost {
        let text = format!("cost {}%", collectors::units::decimal(cost * 100.0, 2));
        parts.push(part(Line::dim(text), 6));
    }
    if model.replaced > 0 {
        let text = format!("{} samples unseen", model.replaced);
        parts.push(part(Line::dim(text), 8));
    }
    parts
}

/// Live, held, or a file.
fn badge(model: &Model) -> Line {
    let time = &model.time;
    if !model.live {
        return Line::heading("FILE");
    }
    if time.paused {
        let age = text::span(time.age());
        return Line::new().with(Role::Warn, format!("HELD -{age}"));
    }
    let interval = model.settings.interval;
    let demo = time
        .shown
        .as_ref()
        .is_some_and(|m| m.snapshot.origin.kind == OriginKind::Demo);
    let word = if demo { "DEMO" } else { "LIVE" };
    Line::new().with(Role::Accent, format!("{word} {interval:?}"))
}

/// The kernel's own sums where it gives them, else the sum of the caches.
fn right(model: &Model) -> Vec<Part> {
    let Some(shown) = &model.time.shown else {
        return Vec::new();
    };
    let scale = model.settings.scale;
    let part = |line, importance| Part {
        line,
        right: true,
        importance,
    };
    let size = |b: Bytes| show::number(Approx::exact(b.get()), Unit::Bytes, scale);
    let meminfo = &shown.snapshot.system.meminfo;
    let mut parts = Vec::new();
    for (name, figure, importance) in [
        ("slab", meminfo.slab, 2),
        ("recl", meminfo.s_reclaimable, 4),
        ("unrecl", meminfo.s_unreclaim, 4),
    ] {
        if let Some(figure) = figure {
            parts.push(part(
                Line::plain(format!("{name} {}", size(figure))),
                importance,
            ));
        }
    }
    if parts.is_empty() {
        let sums =
            collectors::analysis::totals::Totals::of(&shown.snapshot.caches, shown.page_size());
        if let Some(memory) = sums.memory.total {
            let text = show::number(memory.map(Bytes::get), Unit::Bytes, scale);
            parts.push(part(Line::plain(format!("caches {text}")), 2));
        }
    }
    if let Some(rate) = growth(model) {
        let role = match rate.value {
            0 => Role::Normal,
            v if v > 0 => Role::Up,
            _ => Role::Down,
        };
        let text = shown::text(Some(rate), Unit::Bytes, scale);
        parts.push(part(Line::new().with(role, format!("{text}/s")), 3));
    }
    parts
}

/// Bytes that the slabs of the machine grow by in a second.
fn growth(model: &Model) -> Option<Approx<i128>> {
    let shown = model.time.shown.as_ref()?;
    let before = model.time.before.as_ref()?;
    let elapsed = model.time.elapsed_since(Some(before))?;
    let now = shown.snapshot.system.meminfo.slab?;
    let then = before.snapshot.system.meminfo.slab?;
    let delta = i128::from(now.get()) - i128::from(then.get());
    shown::per_second(Approx::exact(delta), elapsed)
}
