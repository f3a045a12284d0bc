//! The keys, by group; typing searches.

use super::canvas::Canvas;
use crate::keys::{Group, names};
use crate::menu;
use crate::model::Model;
use crate::text::Line;
use crate::theme::Role;

/// The lines that match a search.
pub fn lines(model: &Model, search: &str) -> Vec<Line> {
    let search = search.to_lowercase();
    let mut out = Vec::new();
    for group in Group::ALL {
        let rows: Vec<Line> = model
            .settings
            .keys
            .rows()
            .filter(|(b, _)| b.group == group)
            .filter(|(_, keys)| !keys.is_empty())
            .map(|(b, keys)| row(&names(keys), b.name, b.doc))
            .filter(|line| line.text().to_lowercase().contains(&search))
            .collect();
        section(&mut out, group.title(), rows);
    }
    let keys = model.settings.keys.keys_of(crate::keys::Action::Sort);
    let sorts = menu::SORTS
        .iter()
        .map(|(letter, name, doc)| row(&format!("{keys} {letter}"), name, doc))
        .filter(|line| line.text().to_lowercase().contains(&search))
        .collect();
    section(&mut out, "Orders", sorts);
    out
}

fn row(keys: &str, name: &str, doc: &str) -> Line {
    Line::new()
        .with(Role::Accent, format!("  {keys:<11} "))
        .with(Role::Normal, format!("{name:<16} "))
        .with(Role::Dim, doc)
}

fn section(out: &mut Vec<Line>, title: &str, rows: Vec<Line>) {
    if rows.is_empty() {
        return;
    }
    if !out.is_empty() {
        out.push(Line::new());
    }
    out.push(Line::heading(title));
    out.extend(rows);
}

pub(super) fn draw(model: &Model, search: &str, top: usize, canvas: &mut Canvas<'_>) {
    canvas.clear();
    let title = if search.is_empty() {
        "Keys: type to search, esc closes".to_owned()
    } else {
        format!("Keys with: {search}")
    };
    canvas.put(0, 0, &title, Role::Header);
    let lines = lines(model, search);
    let height = canvas.height().saturating_sub(1);
    let top = top.min(lines.len().saturating_sub(height));
    for (y, line) in lines.iter().skip(top).take(height).enumerate() {
        canvas.line(0, y + 1, line);
    }
    super::more(canvas, 0, lines.len().saturating_sub(top + height));
}
