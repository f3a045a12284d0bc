//! Steps through a line of slabinfo: blanks, words, numbers, group names.
//!
//! By hand, byte by byte: a million rows are read with nothing allocated, and
//! every number that cannot be read says which column it was.

use super::row::RowError;

/// A whole word as a number.
pub(super) fn number(word: &str, column: &'static str) -> Result<u64, RowError> {
    let mut cursor = Cursor::new(word);
    let value = cursor.number(column)?;
    if cursor.at < word.len() {
        return Err(RowError::NotANumber(column));
    }
    Ok(value)
}

/// Blanks between columns; some kernels print tabs.
pub(super) const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// A place in a line.
pub(super) struct Cursor<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(line: &'a str) -> Self {
        Self { line, at: 0 }
    }

    /// Bytes before the place.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Moves to another place.
    pub(super) const fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    /// Passes blanks and tabs.
    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Whether only blanks are left.
    pub(super) fn at_end(&mut self) -> bool {
        self.blanks();
        self.at >= self.line.len()
    }

    /// Whether a digit is next.
    pub(super) fn at_number(&mut self) -> bool {
        self.blanks();
        self.peek().is_some_and(|b| b.is_ascii_digit())
    }

    /// Everything up to the next blank.
    pub(super) fn word(&mut self) -> &'a str {
        self.blanks();
        let start = self.at;
        while self.peek().is_some_and(|b| !matches!(b, b' ' | b'\t')) {
            self.at += 1;
        }
        self.line.get(start..self.at).unwrap_or_default()
    }

    /// Passes a colon, if there is one.
    pub(super) fn colon(&mut self) -> bool {
        self.blanks();
        let found = self.peek() == Some(b':');
        self.at += usize::from(found);
        found
    }

    /// A colon and the name of a group.
    pub(super) fn expect(&mut self, group: &'static str) -> Result<(), RowError> {
        if self.at_end() {
            return Err(RowError::Cut(group));
        }
        if !self.colon() {
            return Err(if self.at_number() {
                RowError::Extra
            } else {
                RowError::NotANumber(group)
            });
        }
        let word = self.word();
        if word == group {
            Ok(())
        } else if group.starts_with(word) && self.at_end() {
            Err(RowError::Cut(group))
        } else {
            Err(RowError::NotANumber(group))
        }
    }

    /// The next numbers, one for each column.
    pub(super) fn numbers<const N: usize>(
        &mut self,
        columns: &[&'static str; N],
    ) -> Result<[u64; N], RowError> {
        let mut values = [0; N];
        for (value, column) in values.iter_mut().zip(columns) {
            *value = self.number(column)?;
        }
        Ok(values)
    }

    /// The next number: digits up to a blank or the end.
    pub(super) fn number(&mut self, column: &'static str) -> Result<u64, RowError> {
        self.blanks();
        let start = self.at;
        let mut value = 0u64;
        let mut fits = true;
        while let Some(digit) = self
            .peek()
            .map(|b| b.wrapping_sub(b'0'))
            .filter(|d| *d < 10)
        {
            match value
                .checked_mul(10)
                .and_then(|v| v.checked_add(u64::from(digit)))
            {
                Some(next) => value = next,
                None => fits = false,
            }
            self.at += 1;
        }
        match self.peek() {
            None if self.at == start => Err(RowError::Cut(column)),
            None | Some(b' ' | b'\t') if self.at > start && fits => Ok(value),
            None | Some(b' ' | b'\t') if self.at > start => Err(RowError::TooLarge(column)),
            Some(b'-') if self.at == start => Err(self.minus(column)),
            _ => Err(RowError::NotANumber(column)),
        }
    }

    fn minus(&self, column: &'static str) -> RowError {
        let rest = self.line.get(self.at + 1..).unwrap_or_default();
        let word = rest.split(is_blank).next().unwrap_or_default();
        if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) {
            RowError::Negative(column)
        } else {
            RowError::NotANumber(column)
        }
    }
}
