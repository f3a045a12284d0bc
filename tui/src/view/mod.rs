//! How the model looks. Pure: the same model gives the same frame.

pub mod cache;
pub mod canvas;
pub mod changes;
pub mod checks;
mod dialogs;
mod flow;
mod header;
pub mod help;
pub mod matrix;
pub mod overview;
mod provenance;
pub mod sites;
pub mod system;

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::model::{Model, Overlay};
use crate::screens::{Body, Page};
use crate::text::{self, Line};
use crate::theme::Role;
use canvas::Canvas;

/// Smallest terminal on which a screen is drawn.
pub const SMALLEST: (u16, u16) = (24, 5);

/// From this height on, a line tells where the figures are from.
const WITH_SOURCE: u16 = 9;

/// Lines of the screen between header and footer.
pub fn body_height(model: &Model) -> usize {
    let (_, height) = model.size;
    let around = if height >= WITH_SOURCE { 3 } else { 2 };
    usize::from(height.saturating_sub(around))
}

/// The last line that may be the first one shown.
pub fn last_top(model: &Model) -> usize {
    match model.screen().page(model) {
        Some(page) => last_top_of(model, &page),
        None => model
            .screen()
            .lines(model)
            .saturating_sub(body_height(model)),
    }
}

fn last_top_of(model: &Model, page: &Page) -> usize {
    page.lines
        .len()
        .saturating_sub(scrolled_height(model, page))
}

/// Lines of a page that are seen below its head.
fn scrolled_height(model: &Model, page: &Page) -> usize {
    let body = body_height(model);
    body - page.head_height(body)
}

/// The first line to show: inside the lines, and so that the picked one is seen.
pub fn top(model: &Model) -> usize {
    let top = model.scroll.get(model.screen).copied().unwrap_or(0);
    let Some(page) = model.screen().page(model) else {
        return top.min(last_top(model));
    };
    top_for_picked(model, &page, top).min(last_top_of(model, &page))
}

/// The picked line is shown with what is below it up to the next one, unless
/// the user scrolled away from it.
fn top_for_picked(model: &Model, page: &Page, top: usize) -> usize {
    let place = page.picked(model);
    let Some(pick) = page.picks.get(place).filter(|_| !model.spot().away) else {
        return top;
    };
    let next = page.picks.get(place + 1);
    let end = next.map_or(page.lines.len(), |p| p.line);
    let low = end
        .saturating_sub(scrolled_height(model, page))
        .min(pick.line);
    // Headings above the first one are worth seeing as well.
    if place == 0 {
        low
    } else {
        top.clamp(low, pick.line)
    }
}

/// Draws the frame.
pub fn view(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    draw(model, frame.buffer_mut(), area);
}

/// Draws the frame into a buffer.
pub fn draw(model: &Model, buffer: &mut ratatui::buffer::Buffer, area: Rect) {
    let mut all = Canvas::new(buffer, area, model.settings.theme, model.settings.glyphs);
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("terminal too small ({}x{})", area.width, area.height);
        all.put(0, 0, &text, Role::Normal);
        return;
    }
    let (width, height) = (all.width(), all.height());
    header::draw(model, &mut all.part(0, 0, width, 1));
    let body = body_height(model);
    draw_body(model, &mut all.part(0, 1, width, body));
    if area.height >= WITH_SOURCE {
        provenance::draw(model, &mut all.part(0, height - 2, width, 1));
    }
    dialogs::footer(model, &mut all.part(0, height - 1, width, 1));
    let mut body = all.part(0, 1, width, body);
    match &model.overlay {
        Some(Overlay::Help { search, top }) => help::draw(model, search, *top, &mut body),
        Some(Overlay::Sort) => dialogs::sort(model, &mut body),
        Some(Overlay::Columns { cursor }) => dialogs::columns(model, *cursor, &mut body),
        Some(Overlay::Confirm { change, cache }) => dialogs::confirm(*change, cache, &mut body),
        Some(Overlay::Prompt(_)) | None => {}
    }
}

fn draw_body(model: &Model, canvas: &mut Canvas<'_>) {
    if model.time.shown.is_none() {
        let text = match &model.trouble {
            Some(why) => format!("no sample yet: {why}"),
            None => format!("reading {} ...", model.source),
        };
        canvas.put(0, 1, &text, Role::Dim);
        return;
    }
    match model.screen().body {
        Body::Drawn(draw) => draw(model, canvas),
        Body::Lines(lines) => {
            let lines = lines(model, canvas.width());
            draw_lines(model, &lines, canvas);
        }
        Body::Page(page) => {
            let page = page(model, canvas.width());
            draw_page(model, &page, canvas);
        }
    }
}

/// Draws lines from the first one shown; returns that one.
fn draw_lines(model: &Model, lines: &[Line], canvas: &mut Canvas<'_>) -> usize {
    let top = model.scroll.get(model.screen).copied().unwrap_or(0);
    let height = canvas.height();
    for (y, line) in lines.iter().skip(top).take(height).enumerate() {
        canvas.line(0, y, line);
    }
    let below = lines.len().saturating_sub(top + height);
    more(canvas, top, below);
    top
}

fn draw_page(model: &Model, page: &Page, canvas: &mut Canvas<'_>) {
    let (width, height) = (canvas.width(), canvas.height());
    let head = page.head_height(height);
    for (y, line) in page.head.iter().take(head).enumerate() {
        canvas.line(0, y, line);
    }
    let mut rest = canvas.part(0, head, width, height - head);
    let top = draw_lines(model, &page.lines, &mut rest);
    let picked = page.picks.get(page.picked(model));
    if let Some(y) = picked.and_then(|p| p.line.checked_sub(top)) {
        rest.put(0, y, ">", Role::Normal);
        rest.tint(y, Role::Selected);
    }
}

/// A text in as many lines as it needs, indented.
fn note(says: &str, indent: usize, width: usize, role: Role) -> Vec<Line> {
    let cells = width.saturating_sub(indent).max(1);
    let space = " ".repeat(indent);
    let lines = text::wrap(says, cells).into_iter();
    lines
        .map(|line| Line::new().with(role, format!("{space}{line}")))
        .collect()
}

/// Says at the right edge how many lines are above and below.
fn more(canvas: &mut Canvas<'_>, above: usize, below: usize) {
    let (width, height) = (canvas.width(), canvas.height());
    if above > 0 {
        let text = format!(" {}{above}", canvas.glyphs.above);
        canvas.put_right(width, 0, &text, Role::Accent);
    }
    if below > 0 {
        let text = format!(" {}{below}", canvas.glyphs.below);
        canvas.put_right(width, height.saturating_sub(1), &text, Role::Accent);
    }
}

#[cfg(test)]
mod screen_tests;
#[cfg(test)]
mod tests;
