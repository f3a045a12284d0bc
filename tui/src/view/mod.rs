//! How the model looks. Pure: the same model gives the same frame.

pub mod cache;
pub mod canvas;
mod dialogs;
mod flow;
mod header;
pub mod help;
pub mod overview;
mod provenance;

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::model::{Model, Overlay};
use crate::screens::Body;
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
            let top = model.scroll.get(model.screen).copied().unwrap_or(0);
            let height = canvas.height();
            for (y, line) in lines.iter().skip(top).take(height).enumerate() {
                canvas.line(0, y, line);
            }
            let below = lines.len().saturating_sub(top + height);
            more(canvas, top, below);
        }
    }
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
mod tests;
