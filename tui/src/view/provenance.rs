//! Where the figures on the screen come from, what is missing, and why.

use std::fmt::Write as _;

use collectors::columns::{Row, Value};
use collectors::model::Layer;

use super::canvas::Canvas;
use crate::model::{Model, Moment, Shown};
use crate::text::Line;
use crate::theme::Role;

/// The line above the footer.
pub(super) fn draw(model: &Model, canvas: &mut Canvas<'_>) {
    canvas.line(0, 0, &line(model));
}

fn line(model: &Model) -> Line {
    if let Some(why) = &model.trouble {
        return Line::new().with(Role::Crit, format!("!! no sample: {why}"));
    }
    let Some(shown) = &model.time.shown else {
        return Line::new();
    };
    let mut text = format!("from {}", sources(shown));
    if let Some(carried) = shown.snapshot.origin.carried {
        let _ = write!(
            text,
            "; lists of {} unmoved caches up to {} s old",
            carried.caches,
            carried.at_most.as_secs()
        );
    }
    if model.screen().name == super::overview::SCREEN.name {
        let missing = missing(&model.list.columns, shown);
        if !missing.is_empty() {
            text.push_str("; not there: ");
            text.push_str(&missing.join(", "));
        }
        if model.list.hidden > 0 {
            let _ = write!(text, "; {} hidden", model.list.hidden);
        }
    }
    if !model.list.filter_text.is_empty() {
        return Line::dim(text).with(
            Role::Accent,
            format!("  filter: {}", model.list.filter_text),
        );
    }
    Line::dim(text)
}

/// The files or parts that gave figures.
pub(crate) fn sources(moment: &Moment) -> String {
    let layers = &moment.snapshot.origin.layers;
    let names: Vec<String> = layers
        .iter()
        .filter(|l| l.caches > 0)
        .map(|l| match l.layer {
            Layer::Sysfs | Layer::Slabinfo => format!("/{}", l.file.trim_start_matches('/')),
            _ => l.layer.name().to_owned(),
        })
        .collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(" + ")
    }
}

/// Titles of columns for which no cache has a figure.
fn missing(columns: &[Shown], moment: &Moment) -> Vec<&'static str> {
    let page_size = moment.page_size();
    let rows: Vec<Row<'_>> = moment
        .snapshot
        .caches
        .iter()
        .filter(|cache| cache.is_empty() != Some(true))
        .map(|cache| Row::new(cache, page_size))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    columns
        .iter()
        .filter_map(|shown| match shown {
            Shown::Plain(column) => Some(column),
            _ => None,
        })
        .filter(|column| rows.iter().all(|row| column.value(row) == Value::Missing))
        .map(|column| column.title)
        .collect()
}
