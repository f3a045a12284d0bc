//! Reads rows of slabinfo from a stream, one at a time, in bounded memory.
//!
//! Joins rows that a mail program broke, takes off what [`clean`] knows,
//! passes over text around the table, and warns about rows it cannot read.

use std::io::{self, BufRead, Read as _};
use std::ops::Range;

use super::line::{Ahead, Current};
use super::row::{Columns, Format, Row, RowError, parse_columns};
use super::shape::{self, Version};
use crate::model::{Warning, WarningCode, Warnings};
use crate::parse::clean;

/// Where the name is in the line, and the numbers.
type Parsed = (Range<usize>, Columns);

/// Lines that may be joined to one row.
const MOST_PIECES: usize = 8;

/// What the version line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// Whether a version line was there at all.
    pub seen: bool,
    /// The version of the last one.
    pub version: Option<Version>,
    /// Marked `(statistics)`.
    pub statistics: bool,
    /// Marked `(SMP)`.
    pub smp: bool,
}

/// A row in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The row.
    pub row: Row<'a>,
    /// The number of its first line, from 1.
    pub line: u64,
    /// The file that `grep` named before it.
    pub file: Option<&'a str>,
}

/// Where in the text the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    /// Directly after a version line or column names.
    AfterHead,
    /// Directly after a row, whole or broken.
    Table,
}

/// A stream of rows. The memory it takes does not depend on the stream.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    ahead: Ahead,
    current: Current,
    /// Lines read, the one ahead included.
    lines: u64,
    place: Place,
    /// Rows came with a file's name before them.
    named_files: bool,
    rows: u64,
    broken: u64,
    head: Head,
    format: Option<Format>,
    look_alike: bool,
    warnings: Warnings,
}

impl<R: BufRead> Reader<R> {
    /// A reader at the beginning of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            ahead: Ahead::default(),
            current: Current::default(),
            lines: 0,
            place: Place::Outside,
            named_files: false,
            rows: 0,
            broken: 0,
            head: Head::default(),
            format: None,
            look_alike: false,
            warnings: Warnings::default(),
        }
    }

    /// The next row and where it was, or `None` at the end.
    pub fn next_row(&mut self) -> io::Result<Option<Entry<'_>>> {
        while self.advance()? {
            if let Some((name, columns)) = self.row()? {
                self.place = Place::Table;
                self.rows += 1;
                self.named_files |= self.current.file.is_some();
                if columns.pool.is_some() {
                    self.note_look_alike();
                }
                let line = &self.current;
                let name = line.text.get(name).unwrap_or_default();
                return Ok(Some(Entry {
                    row: Row { name, columns },
                    line: line.number,
                    file: line.file.clone().and_then(|file| line.text.get(file)),
                }));
            }
        }
        Ok(None)
    }

    /// What the last version line said.
    pub const fn head(&self) -> Head {
        self.head
    }

    /// Whether something in the text is not from Linux.
    pub const fn is_look_alike(&self) -> bool {
        self.look_alike
    }

    /// Rows that were given.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows that were left out.
    pub const fn broken_rows(&self) -> u64 {
        self.broken
    }

    /// Hands over what was left out so far, and why.
    pub fn take_warnings(&mut self) -> Warnings {
        std::mem::take(&mut self.warnings)
    }

    /// Makes the line ahead the current one. False at the end.
    fn advance(&mut self) -> io::Result<bool> {
        if self.lines == 0 {
            self.fill()?;
        }
        if !self.ahead.present {
            return Ok(false);
        }
        let mut spare = std::mem::take(&mut self.current.text).into_bytes();
        spare.clear();
        self.current.text = clean::owned_line(std::mem::replace(&mut self.ahead.bytes, spare));
        self.current.number = self.lines;
        self.current.ended = self.ahead.ended;
        self.current.overlong = self.ahead.overlong;
        self.fill()?;
        self.current.locate();
        Ok(true)
    }

    /// Reads one line ahead.
    fn fill(&mut self) -> io::Result<()> {
        let ahead = &mut self.ahead;
        let limit = clean::MAX_LINE as u64 + 1;
        ahead.bytes.clear();
        let mut input = self.input.by_ref().take(limit);
        let read = input.read_until(b'\n', &mut ahead.bytes)?;
        ahead.present = read > 0;
        ahead.ended = ahead.bytes.ends_with(b"\n");
        ahead.overlong = !ahead.ended && read > clean::MAX_LINE;
        if ahead.overlong {
            ahead.bytes.clear();
            ahead.ended = true;
            self.input.skip_until(b'\n')?;
        }
        self.lines += u64::from(read > 0);
        Ok(())
    }

    /// The current line as a row, with the lines that belong to it joined.
    /// `None`: it is something else, and a warning was given where one is due.
    fn row(&mut self) -> io::Result<Option<Parsed>> {
        if self.current.overlong {
            let text = format!("line longer than {} bytes, skipped", clean::MAX_LINE);
            self.warn(WarningCode::LimitReached, text);
            return Ok(None);
        }
        let mut parsed = self.parse();
        if parsed.is_err() {
            if self.is_head() {
                return Ok(None);
            }
            if self.current.drop_separators() {
                parsed = self.parse();
            }
        }
        let mut whole = None;
        for _ in 1..MOST_PIECES {
            if !self.wants_more(&parsed) {
                break;
            }
            self.join()?;
            let longer = self.parse();
            if let Ok(row) = std::mem::replace(&mut parsed, longer) {
                whole = Some(row);
            }
        }
        match (parsed, whole) {
            (Ok(row), _) => {
                self.check_end(&row.1);
                Ok(Some(row))
            }
            (Err(error), Some(row)) => {
                let text = format!("statistics of row {} left out: {error}", self.rows + 1);
                self.warn(WarningCode::BrokenValue, text);
                Ok(Some(row))
            }
            (Err(error), None) => {
                self.reject(error);
                Ok(None)
            }
        }
    }

    /// A last row may be whole but for its statistics.
    fn check_end(&mut self, columns: &Columns) {
        let expected = self.head.statistics && self.layout() == Format::V2;
        let complete = columns.statistics.is_some_and(|s| s.allochit.is_some());
        if expected && !complete && !self.current.ended {
            let text = "the text ends in this row; its statistics are not complete";
            self.warn(WarningCode::Truncated, text.into());
        }
    }

    fn parse(&self) -> Result<Parsed, RowError> {
        let start = self.current.start;
        let line = self.current.row_text();
        let parsed = match self.format {
            Some(Format::V2) => parse_columns(line, Format::V2),
            Some(format) if !line.contains(": tunables") => {
                parse_columns(line, format).and_then(|row| self.accept_legacy(row))
            }
            Some(_) => parse_columns(line, Format::V2),
            None => parse_columns(line, Format::V2).or_else(|error| {
                // Without a version line only an unmistakable row of 2.4 counts.
                match parse_columns(line, Format::V1_1) {
                    Ok(row) if is_unmistakable(&row.1) => Ok(row),
                    _ => Err(error),
                }
            }),
        };
        let (name, columns) = parsed?;
        Ok((name.start + start..name.end + start, columns))
    }

    /// Away from the table, numbers after a word are not a row of 2.4 yet, and
    /// `Mem:` with six numbers comes from the `free` of that time.
    fn accept_legacy(&self, row: Parsed) -> Result<Parsed, RowError> {
        let name = self.current.row_text().get(row.0.clone());
        let labelled = name.is_none_or(|n| n.ends_with(':'));
        if (self.place != Place::Outside && !labelled) || is_unmistakable(&row.1) {
            Ok(row)
        } else {
            Err(RowError::Extra)
        }
    }

    fn layout(&self) -> Format {
        self.format.unwrap_or(Format::V2)
    }

    /// Whether the line ahead may be the rest of the current row.
    fn wants_more(&self, parsed: &Result<Parsed, RowError>) -> bool {
        let Some(first) = self.ahead.bytes.iter().find(|b| !b" \t".contains(b)) else {
            return false;
        };
        match parsed {
            // The usual case, answered by one byte: a whole row, and a name ahead.
            Ok(_) if !b":gc>|0123456789\xc2\xa0".contains(first) => false,
            Ok((_, columns)) => {
                // Statistics end with the hits and misses in every version.
                if columns.statistics.is_some_and(|s| s.allochit.is_some()) {
                    return false;
                }
                let open = columns.statistics.is_some() && columns.objperslab.is_some();
                let line = clean::line(&self.ahead.bytes);
                let rest = clean::unquoted(&line);
                shape::is_continuation(rest)
                    && (open || shape::starts_with_group(rest, self.layout()))
            }
            Err(RowError::Cut(_)) => {
                let line = clean::line(&self.ahead.bytes);
                shape::is_continuation(clean::unquoted(&line))
            }
            Err(_) => false,
        }
    }

    /// Appends the line ahead to the current one.
    fn join(&mut self) -> io::Result<()> {
        let line = clean::line(&self.ahead.bytes);
        self.current.text.push(' ');
        self.current.text.push_str(clean::unquoted(&line));
        self.current.ended = self.ahead.ended;
        self.fill()
    }

    /// Takes a version line or the column names.
    fn is_head(&mut self) -> bool {
        let line = self.current.row_text();
        if let Some((version, marks)) = shape::version_line(line) {
            self.head.seen = true;
            self.head.version = Some(version);
            self.head.statistics |= marks.contains("(statistics)");
            self.head.smp |= marks.contains("(SMP)");
            self.format = Some(version.format());
            if !version.is_known() {
                let text = format!("version {version} is not known; read as the nearest one");
                self.warn(WarningCode::Note, text);
            }
        } else if shape::is_column_names(line) {
            if line.contains("<num_pool>") {
                self.note_look_alike();
            }
        } else {
            return false;
        }
        self.place = Place::AfterHead;
        true
    }

    /// Says what was wrong with a line that was meant to be a row.
    fn reject(&mut self, error: RowError) {
        let line = self.current.row_text();
        let blank = line.trim().is_empty();
        let elsewhere =
            clean::is_from_other_file(line) || (self.named_files && self.current.file.is_none());
        let inside = self.place != Place::Outside;
        let meant = !elsewhere && shape::starts_like_row(line, self.layout(), inside);
        let cut = !self.current.ended && matches!(error, RowError::Cut(_)) && !elsewhere;
        if cut && (meant || (inside && shape::may_be_cut_name(line))) {
            self.warn(WarningCode::Truncated, "truncated row, ignored".into());
        } else if meant {
            let number = self.rows + self.broken + 1;
            let name: String = line.split_whitespace().take(1).collect();
            let name: String = name.chars().take(40).flat_map(char::escape_debug).collect();
            let text = format!("row {number} ({name}) left out: {error}");
            self.warn(WarningCode::BrokenRow, text);
        } else {
            if !(blank && self.place == Place::AfterHead) {
                self.place = Place::Outside;
            }
            return;
        }
        self.broken += 1;
        self.place = Place::Table;
    }

    fn note_look_alike(&mut self) {
        if !std::mem::replace(&mut self.look_alike, true) {
            let text = "not Linux: slabdata has num_pool and reclaimable, as OpenHarmony prints it";
            self.warn(WarningCode::LookAlike, text.into());
        }
    }

    fn warn(&mut self, code: WarningCode, text: String) {
        let warning = Warning::new(code, text).at_line(self.current.number);
        self.warnings.push(warning);
    }
}

/// Whether numbers after a word can only be a row of version 1.1.
fn is_unmistakable(columns: &Columns) -> bool {
    let grouped = columns.tunables.is_some() || columns.statistics.is_some();
    let at_most = |a: Option<u64>, b: Option<u64>| a <= b;
    grouped
        && columns.active_objs <= columns.num_objs
        && at_most(columns.active_slabs, columns.num_slabs)
        && columns.pagesperslab.is_some_and(u64::is_power_of_two)
}
