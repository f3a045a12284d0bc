//! What could not be read, and why.

/// What kind of thing went wrong. The code is stable; the message is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WarningCode {
    /// A row that could not be parsed was left out.
    BrokenRow,
    /// The text ends in the middle of a row.
    Truncated,
    /// A value that could not be parsed was left out.
    BrokenValue,
    /// A file could not be read.
    Unreadable,
    /// A directory entry that does not belong there was passed over.
    StrayEntry,
    /// A link that leads nowhere.
    DanglingLink,
    /// A cache went away while it was read.
    Vanished,
    /// Two figures read at different moments contradict each other.
    Race,
    /// A figure is not in this source at all.
    NotInSource,
    /// The page size was not in the source.
    PageSizeAssumed,
    /// Slabs of a smaller fallback order make a figure an upper bound.
    FallbackOrder,
    /// The text is not from Linux, or a form with other columns.
    LookAlike,
    /// Several caches share one name.
    DuplicateName,
    /// A size limit cut the input.
    LimitReached,
    /// The parts of the source are from different moments.
    NotSimultaneous,
    /// The source holds only a part of the caches.
    Incomplete,
    /// Something worth knowing about the figures.
    Note,
}

impl WarningCode {
    /// The stable code in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BrokenRow => "broken-row",
            Self::Truncated => "truncated",
            Self::BrokenValue => "broken-value",
            Self::Unreadable => "unreadable",
            Self::StrayEntry => "stray-entry",
            Self::DanglingLink => "dangling-link",
            Self::Vanished => "vanished",
            Self::Race => "race",
            Self::NotInSource => "not-in-source",
            Self::PageSizeAssumed => "page-size-assumed",
            Self::FallbackOrder => "fallback-order",
            Self::LookAlike => "look-alike",
            Self::DuplicateName => "duplicate-name",
            Self::LimitReached => "limit-reached",
            Self::NotSimultaneous => "not-simultaneous",
            Self::Incomplete => "incomplete",
            Self::Note => "note",
        }
    }
}

/// One thing that could not be read, or that a reader of the figures must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What kind.
    pub code: WarningCode,
    /// One line for people, without the file and line.
    pub message: String,
    /// The file inside the source, where there is one.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<u64>,
}

impl Warning {
    /// A warning without a place.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            file: None,
            line: None,
        }
    }

    /// Names the file.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Names the line, from 1.
    #[must_use]
    pub fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.message)
    }
}

/// A list of warnings that hostile input cannot make grow without bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Warnings {
    list: Vec<Warning>,
    suppressed: u64,
}

impl Warnings {
    /// How many warnings are kept; the rest are counted.
    pub const LIMIT: usize = 1000;

    /// Adds a warning, or counts it when the list is full.
    pub fn push(&mut self, warning: Warning) {
        if self.list.len() < Self::LIMIT {
            self.list.push(warning);
        } else {
            self.suppressed += 1;
        }
    }

    /// Adds all of `other`.
    pub fn append(&mut self, other: Self) {
        self.suppressed += other.suppressed;
        for warning in other.list {
            self.push(warning);
        }
    }

    /// The kept warnings, in the order they came.
    pub fn iter(&self) -> std::slice::Iter<'_, Warning> {
        self.list.iter()
    }

    /// How many there were, kept or not.
    pub fn count(&self) -> u64 {
        self.list.len() as u64 + self.suppressed
    }

    /// Warnings that were counted but not kept.
    pub const fn suppressed(&self) -> u64 {
        self.suppressed
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether one of this kind was given.
    pub fn has(&self, code: WarningCode) -> bool {
        self.list.iter().any(|w| w.code == code)
    }
}

impl<'a> IntoIterator for &'a Warnings {
    type Item = &'a Warning;
    type IntoIter = std::slice::Iter<'a, Warning>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Extend<Warning> for Warnings {
    fn extend<I: IntoIterator<Item = Warning>>(&mut self, iter: I) {
        for warning in iter {
            self.push(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bounded_and_says_what_it_dropped() {
        let mut warnings = Warnings::default();
        for line in 0..1500 {
            warnings.push(Warning::new(WarningCode::BrokenRow, "x").at_line(line));
        }
        assert_eq!(warnings.iter().count(), Warnings::LIMIT);
        assert_eq!(warnings.suppressed(), 500);
    }

    #[test]
    fn the_place_comes_first() {
        let w = Warning::new(WarningCode::Truncated, "truncated row, ignored")
            .in_file("proc/slabinfo")
            .at_line(61);
        assert_eq!(w.to_string(), "proc/slabinfo:61: truncated row, ignored");
    }
}
