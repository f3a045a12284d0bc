//! Tables for people: aligned columns, Markdown, CSV, all from the same cells.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};

use super::text;
use crate::screen::Screen;

/// A column's heading.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// Machine name, the header in CSV.
    pub(crate) key: String,
    /// Heading for people.
    pub(crate) title: String,
    /// Numbers stand at the right edge.
    pub(crate) right: bool,
}

impl Head {
    pub(crate) fn left(title: &str) -> Self {
        Self {
            key: title.to_ascii_lowercase(),
            title: title.to_owned(),
            right: false,
        }
    }

    pub(crate) fn right(title: &str) -> Self {
        Self {
            right: true,
            ..Self::left(title)
        }
    }

    /// Gives the column another name in CSV.
    pub(crate) fn key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }
}

/// One cell: for people, and exactly for machines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    shown: String,
    /// What CSV gets, where it is not what is shown.
    exact: Option<String>,
}

impl Cell {
    /// Text, the same for both.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            shown: text.into(),
            exact: None,
        }
    }

    /// One text for people and another for CSV.
    pub(crate) fn both(shown: impl Into<String>, exact: impl Into<String>) -> Self {
        Self {
            shown: shown.into(),
            exact: Some(exact.into()),
        }
    }

    /// What people see.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// What CSV gets; empty is unknown.
    pub(crate) fn exact(&self) -> &str {
        self.exact.as_deref().unwrap_or(&self.shown)
    }

    /// Not known.
    pub(crate) fn missing() -> Self {
        Self::both("-", "")
    }
}

/// Rows under headings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// What a reader should know about it; said after it, not written with it.
    pub(crate) notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(heads: Vec<Head>) -> Self {
        Self {
            heads,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Adds columns; `cells` are those of each row.
    pub(crate) fn widen(&mut self, heads: &[Head], cells: impl Iterator<Item = Vec<Cell>>) {
        self.heads.extend_from_slice(heads);
        for (row, more) in self.rows.iter_mut().zip(cells) {
            row.extend(more);
        }
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new();
        grid.load_style(presets::ASCII_MARKDOWN)
            .set_content_arrangement(ContentArrangement::Disabled);
        grid.set_header(self.heads.iter().map(|h| text::safe(&h.title)));
        for row in &self.rows {
            grid.add_row(row.iter().map(|cell| text::safe(&cell.shown)));
        }
        for (column, head) in grid.column_iter_mut().zip(&self.heads) {
            column.set_padding((1, 1));
            if head.right {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        grid
    }

    /// Aligned columns. On a narrow terminal columns are left out from the
    /// right, never cut; their titles are returned so that it can be said.
    ///
    /// Written line by line: the layout engine behind Markdown takes a tenth
    /// of a second for the ten thousand rows that hosts with many control
    /// groups have.
    pub(crate) fn write(&self, out: &mut dyn Write, screen: &Screen) -> io::Result<Vec<String>> {
        let (fitting, hidden) = self.fit(screen.width);
        let widths = fitting.widths();
        let titles = fitting.heads.iter().map(|head| head.title.as_str());
        let style = screen.heading;
        let mut line = String::new();
        fitting.align(&widths, titles, &mut line);
        writeln!(out, "{style}{}{style:#}", line.trim_end())?;
        for row in &fitting.rows {
            fitting.align(
                &widths,
                row.iter().map(|cell| cell.shown.as_str()),
                &mut line,
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(hidden)
    }

    /// Puts one line of cells into `line`, two blanks apart.
    fn align<'a>(&self, widths: &[usize], cells: impl Iterator<Item = &'a str>, line: &mut String) {
        line.clear();
        for ((cell, width), head) in cells.zip(widths).zip(&self.heads) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let cell = text::safe(cell);
            let blanks = width.saturating_sub(cell.chars().count());
            if head.right {
                line.extend(std::iter::repeat_n(' ', blanks));
                line.push_str(&cell);
            } else {
                line.push_str(&cell);
                line.extend(std::iter::repeat_n(' ', blanks));
            }
        }
    }

    fn widths(&self) -> Vec<usize> {
        let wide = |text: &str| text.chars().count();
        let mut widths: Vec<usize> = self.heads.iter().map(|h| wide(&h.title)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(wide(&text::safe(&cell.shown)));
            }
        }
        widths
    }

    fn fit(&self, limit: Option<usize>) -> (std::borrow::Cow<'_, Self>, Vec<String>) {
        let Some(limit) = limit else {
            return (std::borrow::Cow::Borrowed(self), Vec::new());
        };
        let mut used = 0;
        let mut keep = 0;
        for width in self.widths() {
            used += width;
            if used > limit && keep > 0 {
                break;
            }
            used += 2;
            keep += 1;
        }
        if keep >= self.heads.len() {
            return (std::borrow::Cow::Borrowed(self), Vec::new());
        }
        let hidden = self.heads[keep..].iter().map(|h| h.title.clone()).collect();
        let narrow = Self {
            heads: self.heads[..keep].to_vec(),
            rows: self
                .rows
                .iter()
                .map(|row| row.iter().take(keep).cloned().collect())
                .collect(),
            notes: Vec::new(),
        };
        (std::borrow::Cow::Owned(narrow), hidden)
    }

    /// A Markdown table.
    pub(crate) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut escaped = self.clone();
        for cell in escaped.rows.iter_mut().flatten() {
            cell.shown = cell.shown.replace('|', "\\|");
        }
        writeln!(out, "{}", escaped.grid())
    }

    /// RFC 4180 with a header; unknown is an empty field.
    pub(crate) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::WriterBuilder::new()
            .terminator(csv::Terminator::CRLF)
            .from_writer(out);
        writer
            .write_record(self.heads.iter().map(|h| &h.key))
            .map_err(io_error)?;
        for row in &self.rows {
            let record = row.iter().map(Cell::exact);
            writer.write_record(record).map_err(io_error)?;
        }
        writer.flush()
    }
}

/// The crate's own conversion loses the kind, and with it a closed pipe.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("csv: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec![
            Head::left("Name"),
            Head::right("Objects"),
            Head::right("Space").key("memory"),
        ]);
        table.row(vec![
            Cell::text("dentry"),
            Cell::text("7476"),
            Cell::both("1.42M", "1458176"),
        ]);
        table.row(vec![
            Cell::text("a|b\x1b"),
            Cell::missing(),
            Cell::missing(),
        ]);
        table
    }

    fn plain(width: Option<usize>) -> (String, Vec<String>) {
        let mut out = Vec::new();
        let hidden = table().write(&mut out, &Screen::plain(width)).unwrap();
        (String::from_utf8(out).unwrap(), hidden)
    }

    #[test]
    fn columns_are_aligned_and_lines_have_no_tail() {
        let (text, hidden) = plain(None);
        assert_eq!(
            text,
            "Name     Objects  Space\ndentry      7476  1.42M\na|b\\x1b        -      -\n"
        );
        assert!(hidden.is_empty());
    }

    #[test]
    fn a_narrow_terminal_loses_whole_columns_and_hears_of_it() {
        let (text, hidden) = plain(Some(20));
        assert_eq!(hidden, ["Space"]);
        assert!(text.lines().all(|l| l.chars().count() <= 20), "{text}");
    }

    #[test]
    fn csv_has_exact_numbers_and_empty_unknowns() {
        let mut out = Vec::new();
        table().write_csv(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with("name,objects,memory\r\ndentry,7476,1458176\r\n"),
            "{text}"
        );
        assert!(text.ends_with(",,\r\n"), "{text}");
    }

    #[test]
    fn markdown_escapes_its_separator() {
        let mut out = Vec::new();
        table().write_markdown(&mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("a\\|b"));
    }
}
