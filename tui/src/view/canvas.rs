//! A part of the screen to draw on: nothing goes outside.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::glyphs::Glyphs;
use crate::text::{self, Line};
use crate::theme::{Role, Theme};

/// A part of the screen with the styles and signs to draw with.
#[derive(Debug)]
pub struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    theme: Theme,
    /// The signs.
    pub glyphs: Glyphs,
}

impl<'a> Canvas<'a> {
    /// The part of `buffer` that `area` and the buffer have in common.
    pub fn new(buffer: &'a mut Buffer, area: Rect, theme: Theme, glyphs: Glyphs) -> Self {
        let area = area.intersection(buffer.area);
        Self {
            buffer,
            area,
            theme,
            glyphs,
        }
    }

    /// A part of this part, by its place in it.
    pub fn part(&mut self, x: usize, y: usize, width: usize, height: usize) -> Canvas<'_> {
        let cells = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let area = Rect {
            x: self.area.x.saturating_add(cells(x)),
            y: self.area.y.saturating_add(cells(y)),
            width: cells(width),
            height: cells(height),
        };
        let area = area.intersection(self.area);
        Canvas::new(self.buffer, area, self.theme, self.glyphs)
    }

    /// Cells across.
    pub fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    /// Lines.
    pub fn height(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Writes a text; what does not fit is left out. Returns the cell behind it.
    pub fn put(&mut self, x: usize, y: usize, text: &str, role: Role) -> usize {
        if y >= self.height() || x >= self.width() {
            return x;
        }
        let room = self.width() - x;
        let text = text::clean(text);
        let (column, line) = (u16::try_from(x).unwrap_or(0), u16::try_from(y).unwrap_or(0));
        let (end, _) = self.buffer.set_stringn(
            self.area.x + column,
            self.area.y + line,
            &text,
            room,
            self.theme.style(role),
        );
        usize::from(end - self.area.x)
    }

    /// Writes a text that ends before the cell `end`.
    pub fn put_right(&mut self, end: usize, y: usize, text: &str, role: Role) {
        let width = text::width(text);
        self.put(end.saturating_sub(width), y, text, role);
    }

    /// Writes a line of parts.
    pub fn line(&mut self, x: usize, y: usize, line: &Line) -> usize {
        line.0
            .iter()
            .fold(x, |x, (role, text)| self.put(x, y, text, *role))
    }

    /// Adds the style of a role to a whole line.
    pub fn tint(&mut self, y: usize, role: Role) {
        if y < self.height() {
            let line = u16::try_from(y).unwrap_or(0);
            let area = Rect {
                y: self.area.y + line,
                height: 1,
                ..self.area
            };
            self.buffer.set_style(area, self.theme.style(role));
        }
    }

    /// Makes it blank.
    pub fn clear(&mut self) {
        for y in self.area.top()..self.area.bottom() {
            for x in self.area.left()..self.area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
    }
}
