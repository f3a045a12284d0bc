//! The line that is looked at, and the one after it.

use std::borrow::Cow;
use std::ops::Range;

use crate::parse::clean;

/// The line after the current one, as it was read.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub(super) bytes: Vec<u8>,
    pub(super) present: bool,
    pub(super) ended: bool,
    pub(super) overlong: bool,
}

/// The line that is looked at.
#[derive(Debug, Default)]
pub(super) struct Current {
    pub(super) text: String,
    /// Where the row begins in `text`, after quote marks and a file name.
    pub(super) start: usize,
    pub(super) file: Option<Range<usize>>,
    /// Number of its first line.
    pub(super) number: u64,
    /// Whether its last line has an end.
    pub(super) ended: bool,
    pub(super) overlong: bool,
}

impl Current {
    /// Finds where the row begins.
    pub(super) fn locate(&mut self) {
        let mut rest = self.text.as_str();
        if rest.starts_with(['>', '|', ' ']) {
            rest = clean::unquoted(rest);
        }
        let quote = self.text.len() - rest.len();
        self.file = None;
        if let Some((file, row)) = clean::split_file_name(rest) {
            self.file = Some(quote..quote + file.len());
            rest = row;
        }
        self.start = self.text.len() - rest.len();
    }

    /// The line without what is before the row.
    pub(super) fn row_text(&self) -> &str {
        self.text.get(self.start..).unwrap_or_default()
    }

    /// Takes thousands separators out; false where there are none.
    pub(super) fn drop_separators(&mut self) -> bool {
        let plain = match clean::without_separators(self.row_text()) {
            Cow::Owned(plain) if plain.len() < self.row_text().len() => plain,
            _ => return false,
        };
        self.text.truncate(self.start);
        self.text.push_str(&plain);
        true
    }
}
