//! A frame as a picture: text, or SVG with the theme's styles.
//!
//! For bug reports and documentation, where a screenshot would be of pixels.
//! The sixteen colours are those of a common dark terminal; what a user's own
//! terminal makes of them is not known.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::model::Model;

/// Width and height of a cell, and the size of its letters, in pixels.
const CELL: (f32, f32) = (8.4, 17.0);
const LETTERS: f32 = 14.0;
/// Pixels around the screen.
const EDGE: f32 = 8.0;
const GROUND: &str = "#1c1c1c";
const INK: &str = "#d0d0d0";

/// The terminal's sixteen colours.
const SIXTEEN: [&str; 16] = [
    "#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5",
    "#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff",
];

/// The frame that a model shows.
pub fn frame(model: &Model) -> Buffer {
    let (width, height) = model.size;
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    crate::view::draw(model, &mut buffer, area);
    buffer
}

fn rows(buffer: &Buffer) -> impl Iterator<Item = &[Cell]> {
    let width = usize::from(buffer.area.width).max(1);
    buffer.content.chunks(width)
}

/// The frame as lines without styles.
pub fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in rows(buffer) {
        let line: String = row.iter().map(Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The frame as an SVG document.
pub fn svg(buffer: &Buffer) -> String {
    let across = f32::from(buffer.area.width) * CELL.0 + 2.0 * EDGE;
    let down = f32::from(buffer.area.height) * CELL.1 + 2.0 * EDGE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {across:.1} {down:.1}\" \
         font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\" font-size=\"{LETTERS}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{GROUND}\"/>\n"
    );
    for (y, row) in rows(buffer).enumerate() {
        let top = EDGE + y as f32 * CELL.1;
        let mut x = 0;
        for run in row.chunk_by(|a, b| a.style() == b.style()) {
            draw_run(&mut svg, x, top, run);
            x += run.len();
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// One run of cells of the same style.
fn draw_run(svg: &mut String, x: usize, top: f32, run: &[Cell]) {
    let text: String = run.iter().map(Cell::symbol).collect();
    let style = run.first().map(Cell::style).unwrap_or_default();
    let reversed = style.add_modifier.contains(Modifier::REVERSED);
    if text.trim_end().is_empty() && !reversed {
        return;
    }
    let left = EDGE + x as f32 * CELL.0;
    let width = run.len() as f32 * CELL.0;
    let ink = colour(style.fg).unwrap_or_else(|| INK.to_owned());
    if reversed {
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{ink}\"/>",
            CELL.1
        );
    }
    let ink = if reversed { GROUND } else { &ink };
    let _ = writeln!(
        svg,
        "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" xml:space=\"preserve\" fill=\"{ink}\"{}>{}</text>",
        top + LETTERS - 1.0,
        look(style),
        escape(&text)
    );
}

fn look(style: Style) -> String {
    let mut look = String::new();
    if style.add_modifier.contains(Modifier::BOLD) {
        look.push_str(" font-weight=\"bold\"");
    }
    if style.add_modifier.contains(Modifier::DIM) {
        look.push_str(" opacity=\"0.65\"");
    }
    if style.add_modifier.contains(Modifier::UNDERLINED) {
        look.push_str(" text-decoration=\"underline\"");
    }
    look
}

/// The colour of a style's text; `None`: the terminal's own.
fn colour(color: Option<Color>) -> Option<String> {
    let number = match color? {
        Color::Reset => return None,
        Color::Rgb(r, g, b) => return Some(format!("#{r:02x}{g:02x}{b:02x}")),
        Color::Indexed(n) => n,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
    };
    Some(indexed(number))
}

/// A colour of the 256: sixteen, a cube of six steps, greys.
fn indexed(number: u8) -> String {
    match number {
        0..16 => SIXTEEN[usize::from(number)].to_owned(),
        16..232 => {
            let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            let n = number - 16;
            let (r, g, b) = (step(n / 36), step(n / 6 % 6), step(n % 6));
            format!("#{r:02x}{g:02x}{b:02x}")
        }
        232.. => {
            let grey = 8 + 10 * (number - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 2));
        buffer.set_string(0, 0, "a<b & c", Style::new().fg(Color::Red));
        let picked = Style::new().add_modifier(Modifier::REVERSED);
        buffer.set_string(3, 1, "  ", picked);
        buffer
    }

    #[test]
    fn text_is_what_is_seen() {
        assert_eq!(text(&buffer()), "a<b & c\n\n");
    }

    #[test]
    fn a_picture_has_styles_and_no_open_markup() {
        let svg = svg(&buffer());
        assert!(svg.contains(">a&lt;b &amp; c</text>"), "{svg}");
        assert!(svg.contains("fill=\"#cd3131\""), "{svg}");
        // What is reversed is seen even where it has no letters.
        assert_eq!(svg.matches("<rect").count(), 2, "{svg}");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn colours_of_the_cube_and_greys() {
        assert_eq!(indexed(214), "#ffaf00");
        assert_eq!(indexed(16), "#000000");
        assert_eq!(indexed(255), "#eeeeee");
        assert_eq!(colour(Some(Color::Reset)), None);
    }
}
