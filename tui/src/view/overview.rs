//! Screen 1: the list of caches, with how each changes.

use std::borrow::Cow;
use std::collections::HashMap;

use collectors::columns::{Column, Row, Value, show};
use collectors::model::{Cache, Quantity, Unit};

use super::canvas::Canvas;
use crate::model::shown::{self, TREND};
use crate::model::{Key, Line as ListLine, Model, Moment, Shown};
use crate::screens::{Body, Screen};
use crate::text;
use crate::theme::Role;
use crate::widgets;

/// The screen.
pub const SCREEN: Screen = Screen {
    name: "overview",
    key: "1",
    title: "Overview",
    doc: "The list of caches",
    moves_list: true,
    around: 1,
    body: Body::Drawn(draw),
    ask: |_, _| {},
};

/// Fewest and most cells of a name.
const NAME: (usize, usize) = (12, 32);

/// A column with its place.
struct Place {
    shown: Shown,
    title: Cow<'static, str>,
    x: usize,
    width: usize,
}

fn draw(model: &Model, canvas: &mut Canvas<'_>) {
    let Some(now) = &model.time.shown else {
        return;
    };
    let page_size = now.page_size();
    let caches = now.snapshot.caches.iter();
    let rows: Vec<Row<'_>> = caches.map(|cache| Row::new(cache, page_size)).collect();
    let places = places(model, &rows, canvas.width());
    headings(model, &places, canvas);
    if model.list.lines.is_empty() {
        let text = match model.list.hidden {
            0 => "no caches".to_owned(),
            n => format!("none of {n} caches passes: / changes the filter, z shows empty ones"),
        };
        canvas.put(2, 1, &text, Role::Dim);
        return;
    }
    let height = canvas.height().saturating_sub(SCREEN.around);
    let visible: Vec<ListLine> = model
        .list
        .lines
        .iter()
        .skip(model.list.top)
        .take(height)
        .copied()
        .collect();
    let trend = trend(model, now, &places, &visible);
    let selected = model.list.index();
    for (n, line) in visible.iter().enumerate() {
        let y = n + 1;
        let Some(row) = rows.get(line.place) else {
            continue;
        };
        let context = Context {
            model,
            line: *line,
            row: *row,
            before: model.base().and_then(|base| base.cache(line.key)),
            trend: trend.get(&line.key).map(Vec::as_slice),
        };
        context.draw(&places, y, canvas);
        if model.list.top + n == selected {
            canvas.put(0, y, ">", Role::Normal);
            canvas.tint(y, Role::Selected);
        }
    }
    let total = model.list.lines.len();
    super::more(canvas, 0, total.saturating_sub(model.list.top + height));
}

/// The columns that fit, the most important first.
fn places(model: &Model, rows: &[Row<'_>], width: usize) -> Vec<Place> {
    let mut x = 1;
    let mut out = Vec::new();
    for shown in &model.list.columns {
        let title = shown.title(model.since_mark);
        let own = column_width(model, rows, shown).max(text::width(&title));
        let room = width.saturating_sub(x);
        // On a narrow terminal the figures are worth more than whole names.
        let own = if is_name(shown) {
            own.min((width / 3).max(NAME.0))
        } else {
            own
        };
        let own = if is_name(shown) && own > room {
            room
        } else {
            own
        };
        if own > room || own == 0 {
            break;
        }
        out.push(Place {
            shown: *shown,
            title,
            x,
            width: own,
        });
        x += own + 1;
    }
    out
}

fn is_name(shown: &Shown) -> bool {
    matches!(shown, Shown::Plain(column) if column.key == "name")
}

/// Cells that the widest cell takes, without writing them all.
fn column_width(model: &Model, rows: &[Row<'_>], shown: &Shown) -> usize {
    match shown {
        Shown::Trend => TREND,
        Shown::Change(column) if column.unit == Unit::Bytes => 7,
        Shown::Change(_) => 8,
        Shown::Plain(column) if column.key == "name" => {
            let longest = rows.iter().map(|r| text::width(&r.cache.name)).max();
            longest.unwrap_or(0).clamp(NAME.0, NAME.1)
        }
        Shown::Plain(column) => match column.unit {
            Unit::Percent => 6,
            Unit::Text => text_width(model, rows, column),
            Unit::Bytes if model.settings.scale != collectors::units::Scale::Bytes => 7,
            _ => number_width(rows, column),
        },
    }
}

/// Digits of the largest number, and a sign for estimates.
fn number_width(rows: &[Row<'_>], column: &Column) -> usize {
    let largest = rows
        .iter()
        .filter_map(|row| match column.value(row) {
            Value::Int(figure) => Some(figure.value),
            _ => None,
        })
        .max();
    let digits = largest.unwrap_or(0).checked_ilog10().unwrap_or(0) + 1;
    usize::try_from(digits).unwrap_or(20) + 1
}

fn text_width(model: &Model, rows: &[Row<'_>], column: &Column) -> usize {
    let widest = rows.iter().map(|row| {
        let value = column.value(row);
        text::width(&show::value(value, column.unit, model.settings.scale))
    });
    widest.max().unwrap_or(1).clamp(1, NAME.1)
}

fn headings(model: &Model, places: &[Place], canvas: &mut Canvas<'_>) {
    for place in places {
        let sorted = place.shown == model.list.sort;
        let role = if sorted { Role::Accent } else { Role::Header };
        if place.shown.is_right() {
            canvas.put_right(place.x + place.width, 0, &place.title, role);
        } else {
            canvas.put(place.x, 0, &place.title, role);
        }
        if sorted {
            let sign = if model.list.reverse { '^' } else { 'v' };
            let x = if place.shown.is_right() {
                let start = place.x + place.width - text::width(&place.title);
                start.checked_sub(1)
            } else {
                Some(place.x + text::width(&place.title))
            };
            if let Some(x) = x {
                canvas.put(x, 0, &sign.to_string(), Role::Accent);
            }
        }
    }
}

/// The last samples of the visible caches, where there is a column for them.
fn trend(
    model: &Model,
    now: &Moment,
    places: &[Place],
    visible: &[ListLine],
) -> HashMap<Key, Vec<Option<u64>>> {
    if !places.iter().any(|p| p.shown == Shown::Trend) {
        return HashMap::new();
    }
    let keys: Vec<Key> = visible.iter().map(|line| line.key).collect();
    let time = &model.time;
    time.history
        .series(now, time.back, TREND, Quantity::Slabs, &keys)
}

/// What a line is drawn from.
struct Context<'a> {
    model: &'a Model,
    line: ListLine,
    row: Row<'a>,
    before: Option<&'a Cache>,
    trend: Option<&'a [Option<u64>]>,
}

impl Context<'_> {
    fn draw(&self, places: &[Place], y: usize, canvas: &mut Canvas<'_>) {
        for place in places {
            let (cell, role) = self.cell(&place.shown, canvas);
            let cell = text::fit(&cell, place.width, canvas.glyphs.cut);
            if place.shown.is_right() {
                canvas.put_right(place.x + place.width, y, &cell, role);
            } else {
                canvas.put(place.x, y, &cell, role);
            }
        }
    }

    fn cell(&self, shown: &Shown, canvas: &Canvas<'_>) -> (Cow<'_, str>, Role) {
        let scale = self.model.settings.scale;
        match shown {
            Shown::Plain(column) if column.key == "name" => (self.name(), Role::Normal),
            Shown::Plain(column) => {
                let value = column.value(&self.row);
                let role = match value {
                    Value::Missing => Role::Dim,
                    _ => Role::Normal,
                };
                (show::value(value, column.unit, scale), role)
            }
            Shown::Change(column) => self.change(column),
            Shown::Trend => {
                let values = self.trend.unwrap_or_default();
                let chart = widgets::chart(values, TREND, &canvas.glyphs);
                (Cow::Owned(chart), Role::Normal)
            }
        }
    }

    fn name(&self) -> Cow<'_, str> {
        let aliases = self.row.cache.aliases.as_deref().unwrap_or_default();
        match self.line.alias.and_then(|i| aliases.get(i)) {
            Some(alias) => Cow::Owned(format!("= {alias}")),
            None if self.model.list.by_name || aliases.is_empty() => {
                Cow::Borrowed(&self.row.cache.name)
            }
            None => Cow::Owned(format!("{} +{}", self.row.cache.name, aliases.len())),
        }
    }

    fn change(&self, column: &'static Column) -> (Cow<'_, str>, Role) {
        let model = self.model;
        let page_size = model.time.shown.as_ref().map_or(4096, Moment::page_size);
        let mut change = shown::change(column, self.before, &self.row, page_size);
        if !model.since_mark {
            let elapsed = model.time.elapsed_since(model.base());
            change = change.and_then(|c| shown::per_second(c, elapsed?));
        }
        let role = match change.map(|c| c.value) {
            Some(v) if v > 0 => Role::Up,
            Some(v) if v < 0 => Role::Down,
            Some(_) => Role::Normal,
            None => Role::Dim,
        };
        let text = shown::text(change, column.unit, model.settings.scale);
        (Cow::Owned(text), role)
    }
}
