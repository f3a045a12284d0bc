//! The last line, and the boxes that lie over a screen.

use super::canvas::Canvas;
use crate::menu;
use crate::model::{Model, Overlay, Prompt, PromptKind, Shown};
use crate::msg::Change;
use crate::text::{self, Line};
use crate::theme::Role;
use crate::update::command_names;

/// A notice, the line that is typed into, or keys to remember.
pub(super) fn footer(model: &Model, canvas: &mut Canvas<'_>) {
    if let Some(Overlay::Prompt(prompt)) = &model.overlay {
        prompt_line(prompt, canvas);
        return;
    }
    if let Some(notice) = &model.notice {
        let (sign, role) = if notice.bad {
            ("! ", Role::Warn)
        } else {
            ("", Role::Accent)
        };
        canvas.put(0, 0, &format!("{sign}{}", notice.text), role);
        return;
    }
    let mut x = 0;
    for (binding, keys) in model.settings.keys.rows() {
        let Some(key) = keys.first().filter(|_| !binding.word.is_empty()) else {
            continue;
        };
        let key = key.to_string();
        let wide = text::width(&key) + 1 + text::width(binding.word);
        if x + wide > canvas.width() {
            continue;
        }
        x = canvas.put(x, 0, &key, Role::Accent);
        x = canvas.put(x + 1, 0, binding.word, Role::Normal) + 2;
    }
}

fn prompt_line(prompt: &Prompt, canvas: &mut Canvas<'_>) {
    let label = format!("{}: ", prompt.kind.label());
    let x = canvas.put(0, 0, &label, Role::Accent);
    // The end of a long line is what is being typed.
    let room = canvas.width().saturating_sub(x + 1);
    let mut shown = prompt.text.as_str();
    while text::width(shown) > room {
        let mut rest = shown.chars();
        rest.next();
        shown = rest.as_str();
    }
    let x = canvas.put(x, 0, shown, Role::Normal);
    canvas.put(x, 0, "_", Role::Selected);
    let (about, role) = match &prompt.error {
        Some(error) => (format!("!! {error}"), Role::Crit),
        None if prompt.kind == PromptKind::Palette => (commands(&prompt.text), Role::Dim),
        None => (prompt.kind.hint().to_owned(), Role::Dim),
    };
    canvas.put(x + 3, 0, &about, role);
}

/// The commands that begin with what was typed.
fn commands(typed: &str) -> String {
    let fit: Vec<String> = command_names()
        .into_iter()
        .filter(|(name, _)| name.starts_with(typed.trim_start()))
        .map(|(name, word)| format!("{name} {word}").trim_end().to_owned())
        .collect();
    fit.join("  ")
}

/// A box in the middle with a title and lines; the canvas inside is returned.
fn boxed<'c>(canvas: &'c mut Canvas<'_>, width: usize, height: usize, title: &str) -> Canvas<'c> {
    let width = (width + 4).min(canvas.width());
    let height = (height + 2).min(canvas.height());
    let x = (canvas.width() - width) / 2;
    let y = (canvas.height() - height) / 2;
    let mut frame = canvas.part(x, y, width, height);
    frame.clear();
    let line: String = std::iter::repeat_n(frame.glyphs.line, width).collect();
    frame.put(0, 0, &line, Role::Header);
    frame.put(1, 0, &format!(" {title} "), Role::Header);
    frame.put(0, height.saturating_sub(1), &line, Role::Header);
    canvas.part(
        x + 2,
        y + 1,
        width.saturating_sub(4),
        height.saturating_sub(2),
    )
}

pub(super) fn sort(model: &Model, canvas: &mut Canvas<'_>) {
    let mut inside = boxed(canvas, 48, menu::SORTS.len(), "sort by");
    for (y, (letter, name, doc)) in menu::SORTS.iter().enumerate() {
        let current = Shown::find(name).is_some_and(|s| s == model.list.sort);
        let sign = if current { ">" } else { " " };
        let line = Line::new()
            .with(Role::Normal, sign)
            .with(Role::Accent, format!("{letter} "))
            .with(Role::Normal, format!("{name:<15} "))
            .with(Role::Dim, *doc);
        inside.line(0, y, &line);
    }
}

pub(super) fn columns(model: &Model, cursor: usize, canvas: &mut Canvas<'_>) {
    let choices = menu::columns(&model.list.columns);
    let title = "columns: space shows, J K move, esc closes";
    let height = choices.len().min(canvas.height().saturating_sub(2));
    let mut inside = boxed(canvas, 72, height, title);
    let height = inside.height();
    let top = (cursor + 1).saturating_sub(height);
    for (y, column) in choices.iter().skip(top).take(height).enumerate() {
        let on = top + y < model.list.columns.len();
        let line = Line::new()
            .with(Role::Normal, if top + y == cursor { ">" } else { " " })
            .with(Role::Accent, if on { "[x] " } else { "[ ] " })
            .with(Role::Normal, format!("{:<24} ", column.name()))
            .with(Role::Dim, column.doc());
        inside.line(0, y, &line);
        if top + y == cursor {
            inside.tint(y, Role::Selected);
        }
    }
}

pub(super) fn confirm(change: Change, cache: &str, canvas: &mut Canvas<'_>) {
    let effect = match change {
        Change::Validate => {
            "The kernel walks every slab of the cache with its lists locked. What it finds wrong goes to the kernel log."
        }
        Change::Shrink => {
            "The kernel frees the empty slabs of the cache and sorts its partial lists; allocations from it may be slower for a while."
        }
    };
    let verb = match change {
        Change::Validate => "validate",
        Change::Shrink => "shrink",
    };
    let lines = text::wrap(effect, 52);
    let mut inside = boxed(canvas, 52, lines.len() + 2, &format!("{verb} {cache}?"));
    let height = inside.height();
    for (y, line) in lines.iter().enumerate() {
        inside.put(0, y, line, Role::Warn);
    }
    let keys = Line::new()
        .with(Role::Accent, "y")
        .with(Role::Normal, format!(" {verb}   "))
        .with(Role::Accent, "esc")
        .with(Role::Normal, " leave it");
    inside.line(0, height.saturating_sub(1), &keys);
}
