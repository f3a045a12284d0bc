//! What a run has to say beside its columns.

use std::collections::BTreeMap;

use collectors::model::{Snapshot, WarningCode};

use super::row::Row;

/// Names that are listed in one note.
const NAMED: usize = 5;

/// Collects notes for standard error: one line for each kind of trouble,
/// however many caches have it.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// What the source has said about races: `name: ...`.
    said: Vec<String>,
    plain: Vec<String>,
    by_kind: BTreeMap<&'static str, (u64, Vec<String>)>,
}

impl Notes {
    /// No notes yet, on a snapshot whose own warnings are printed beside them.
    pub(crate) fn beside(snapshot: &Snapshot) -> Self {
        let races = snapshot
            .warnings
            .iter()
            .filter(|w| w.code == WarningCode::Race);
        Self {
            said: races.map(|w| w.message.clone()).collect(),
            ..Self::default()
        }
    }

    fn source_has_said(&self, name: &str) -> bool {
        let about = |text: &String| text.strip_prefix(name).is_some_and(|t| t.starts_with(':'));
        self.said.iter().any(about)
    }

    /// Adds a line, once.
    pub(crate) fn say(&mut self, line: impl Into<String>) {
        let line = line.into();
        if !self.plain.contains(&line) {
            self.plain.push(line);
        }
    }

    /// Adds a cache to a kind of trouble.
    pub(crate) fn about(&mut self, kind: &'static str, name: &str) {
        let (count, names) = self.by_kind.entry(kind).or_default();
        *count += 1;
        if names.len() < NAMED {
            names.push(name.to_owned());
        }
    }

    /// Names what contradicts itself in a row, and what is an estimate.
    pub(crate) fn check(&mut self, row: &Row<'_>) {
        let above = |a: Option<u64>, b: Option<u64>| a.zip(b).is_some_and(|(a, b)| a > b);
        let races = [
            (
                row.cpu_slabs,
                row.slabs,
                "more slabs at CPUs than slabs, read at different moments",
            ),
            (
                row.partial,
                row.slabs,
                "more partial slabs than slabs, read at different moments",
            ),
            (
                row.used,
                row.memory,
                "more bytes used than held, read at different moments",
            ),
        ];
        for (part, whole, kind) in races {
            if above(part, whole) && !self.source_has_said(&row.cache.name) {
                self.about(kind, row.name);
            }
        }
        if row.cache.objects().is_some_and(|f| f.approx) {
            self.about("objects are an estimate", row.name);
        }
    }

    /// The lines, one for each kind.
    pub(crate) fn lines(self) -> Vec<String> {
        let mut lines = self.plain;
        for (kind, (count, names)) in self.by_kind {
            let mut line = format!("{kind}: {}", names.join(", "));
            let more = count - names.len() as u64;
            if more > 0 {
                line = format!("{line} and {more} more");
            }
            lines.push(line);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_caches_with_one_trouble_make_one_line() {
        let mut notes = Notes::default();
        for i in 0..1000 {
            notes.about("objects are an estimate", &format!("c{i}"));
        }
        notes.say("first");
        notes.say("first");
        assert_eq!(
            notes.lines(),
            [
                "first",
                "objects are an estimate: c0, c1, c2, c3, c4 and 995 more"
            ]
        );
    }
}
