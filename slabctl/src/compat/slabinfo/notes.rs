//! What a run has to say beside its columns.

use std::collections::BTreeMap;

use super::row::Row;

/// Names that are listed in one note.
const NAMED: usize = 5;

/// Collects notes for standard error: one line for each kind of trouble,
/// however many caches have it.
#[derive(Debug, Default)]
pub struct Notes {
    plain: Vec<String>,
    by_kind: BTreeMap<&'static str, (u64, Vec<String>)>,
}

impl Notes {
    /// Adds a line, once.
    pub fn say(&mut self, line: impl Into<String>) {
        let line = line.into();
        if !self.plain.contains(&line) {
            self.plain.push(line);
        }
    }

    /// Adds a cache to a kind of trouble.
    pub fn about(&mut self, kind: &'static str, name: &str) {
        let (count, names) = self.by_kind.entry(kind).or_default();
        *count += 1;
        if names.len() < NAMED {
            names.push(name.to_owned());
        }
    }

    /// Names what contradicts itself in a row, and what is an estimate.
    pub fn check(&mut self, row: &Row<'_>) {
        let above = |a: Option<u64>, b: Option<u64>| a.zip(b).is_some_and(|(a, b)| a > b);
        if above(row.cpu_slabs, row.slabs) {
            self.about(
                "more slabs at CPUs than slabs, read at different moments",
                row.name,
            );
        }
        if above(row.partial, row.slabs) {
            self.about(
                "more partial slabs than slabs, read at different moments",
                row.name,
            );
        }
        if above(row.used, row.memory) {
            self.about(
                "more bytes used than held, read at different moments",
                row.name,
            );
        }
        if row.cache.objects().is_some_and(|f| f.approx) {
            self.about("objects are an estimate", row.name);
        }
    }

    /// The lines, one for each kind.
    pub fn lines(self) -> Vec<String> {
        let mut lines = self.plain;
        for (kind, (count, names)) in self.by_kind {
            let mut line = format!("{kind}: {}", names.join(", "));
            let more = count - names.len() as u64;
            if more > 0 {
                line.push_str(&format!(" and {more} more"));
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
