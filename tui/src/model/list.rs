//! The list of caches: which, in which order, which one is selected.
//!
//! The selection follows a cache, not a line: after a sort or a new sample the
//! same cache is selected, wherever it went.

use std::cmp::Ordering;

use collectors::columns::{self, Column, Row};
use collectors::filter::Filter;

use super::moment::{Key, Moment};
use super::shown::{STANDARD, Shown, change};

/// One line: a cache, or one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The cache.
    pub key: Key,
    /// Its place in the snapshot.
    pub place: usize,
    /// The alias that the line is for.
    pub alias: Option<usize>,
}

/// The state of the list.
#[derive(Debug, Clone)]
pub struct List {
    /// Which caches pass.
    pub filter: Filter,
    /// The filter as it was typed.
    pub filter_text: String,
    /// What it is sorted by.
    pub sort: Shown,
    /// Whether the order is turned round.
    pub reverse: bool,
    /// Whether caches that hold nothing are left out.
    pub hide_empty: bool,
    /// Whether each name has a line.
    pub by_name: bool,
    /// The columns, the most important first.
    pub columns: Vec<Shown>,
    /// The lines, in order.
    pub lines: Vec<Line>,
    /// Caches that the filter or their emptiness hides.
    pub hidden: usize,
    /// The selected cache and its alias; `None`: the first line.
    pub selected: Option<(Key, Option<usize>)>,
    /// The first line on the screen.
    pub top: usize,
}

impl Default for List {
    fn default() -> Self {
        let columns: Vec<Shown> = STANDARD.iter().filter_map(|n| Shown::find(n)).collect();
        let sort = Shown::find("memory").unwrap_or(Shown::Trend);
        Self {
            filter: Filter::all(),
            filter_text: String::new(),
            sort,
            reverse: false,
            hide_empty: true,
            by_name: false,
            columns,
            lines: Vec::new(),
            hidden: 0,
            selected: None,
            top: 0,
        }
    }
}

impl List {
    /// Makes the lines of a moment; `before` is what changes are counted from.
    pub fn arrange(&mut self, now: &Moment, before: Option<&Moment>) {
        let page_size = now.page_size();
        let snapshot = &now.snapshot;
        let mut rows: Vec<(Row<'_>, usize)> = snapshot
            .caches
            .iter()
            .enumerate()
            .filter(|(_, cache)| !self.hide_empty || cache.is_empty() != Some(true))
            .map(|(place, cache)| (Row::new(cache, page_size), place))
            .filter(|(row, _)| self.filter.accepts(row))
            .collect();
        self.hidden = snapshot.caches.len() - rows.len();
        match self.sort {
            Shown::Plain(column) => {
                rows.sort_by(|(a, _), (b, _)| columns::compare(column, self.reverse, a, b));
            }
            Shown::Change(column) => self.by_change(&mut rows, column, now, before),
            Shown::Trend => {}
        }
        self.lines.clear();
        for (row, place) in rows {
            let Some(key) = now.keys.get(place).copied() else {
                continue;
            };
            let line = |alias| Line { key, place, alias };
            self.lines.push(line(None));
            if self.by_name {
                let aliases = row.cache.aliases.as_deref().unwrap_or_default();
                self.lines.extend((0..aliases.len()).map(|i| line(Some(i))));
            }
        }
    }

    fn by_change(
        &self,
        rows: &mut Vec<(Row<'_>, usize)>,
        column: &'static Column,
        now: &Moment,
        before: Option<&Moment>,
    ) {
        let page_size = now.page_size();
        let mut keyed: Vec<_> = std::mem::take(rows)
            .into_iter()
            .map(|(row, place)| {
                let old = before
                    .zip(now.keys.get(place))
                    .and_then(|(before, key)| before.cache(*key));
                let delta = change(column, old, &row, page_size).map(|d| d.value);
                (delta, row, place)
            })
            .collect();
        keyed.sort_by(|(a, x, _), (b, y, _)| {
            let order = match (a, b) {
                (Some(a), Some(b)) if self.reverse => a.cmp(b),
                (Some(a), Some(b)) => b.cmp(a),
                (None, None) => Ordering::Equal,
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
            };
            // Caches that did not change are in the order of what they hold.
            order.then_with(|| match columns::find("memory") {
                Some(memory) => columns::compare(memory, false, x, y),
                None => Ordering::Equal,
            })
        });
        rows.extend(keyed.into_iter().map(|(_, row, place)| (row, place)));
    }

    /// The place of the selected line.
    pub fn index(&self) -> usize {
        let Some((key, alias)) = self.selected else {
            return 0;
        };
        let exact = |l: &Line| l.key == key && l.alias == alias;
        let found = self.lines.iter().position(exact);
        found
            .or_else(|| self.lines.iter().position(|l| l.key == key))
            .unwrap_or_else(|| self.top.min(self.lines.len().saturating_sub(1)))
    }

    /// The selected line.
    pub fn line(&self) -> Option<Line> {
        self.lines.get(self.index()).copied()
    }

    /// Selects a line by its place, which is held inside the list.
    pub fn select(&mut self, index: usize) {
        let last = self.lines.len().saturating_sub(1);
        self.selected = self
            .lines
            .get(index.min(last))
            .map(|line| (line.key, line.alias));
    }

    /// Scrolls so that the selected line is among the `height` shown ones.
    pub fn scroll(&mut self, height: usize) {
        let index = self.index();
        let height = height.max(1);
        if index < self.top {
            self.top = index;
        } else if index >= self.top + height {
            self.top = index + 1 - height;
        }
        self.top = self.top.min(self.lines.len().saturating_sub(height));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::moment::Tracker;
    use crate::testing::{cache, moment, snapshot};

    fn now(slabs: &[(&str, u64)]) -> Moment {
        let caches = slabs.iter().map(|(n, s)| cache(n, *s)).collect();
        let snapshot = snapshot(caches);
        let keys = Tracker::default().follow(None, &snapshot);
        moment(snapshot, &keys, 1)
    }

    fn names(list: &List, now: &Moment) -> Vec<String> {
        let caches = &now.snapshot.caches;
        list.lines
            .iter()
            .map(|l| caches[l.place].name.to_string())
            .collect()
    }

    #[test]
    fn the_selection_follows_its_cache_through_a_sort() {
        let now = now(&[("a", 5), ("b", 9), ("c", 7)]);
        let mut list = List::default();
        list.arrange(&now, None);
        assert_eq!(names(&list, &now), ["b", "c", "a"]);
        list.select(1);
        list.sort = Shown::find("name").unwrap();
        list.arrange(&now, None);
        assert_eq!(list.index(), 2);
        assert_eq!(&*now.snapshot.caches[list.line().unwrap().place].name, "c");
    }

    #[test]
    fn an_order_by_change_puts_growth_first_and_the_unknown_last() {
        let before = now(&[("a", 5), ("b", 9), ("c", 7)]);
        let after = snapshot(vec![
            cache("a", 8),
            cache("b", 8),
            cache("c", 7),
            cache("d", 1),
        ]);
        let mut tracker = Tracker::default();
        tracker.follow(None, &before.snapshot);
        let keys = tracker.follow(Some(&before), &after);
        let after = moment(after, &keys, 2);
        let mut list = List {
            sort: Shown::find("slabs/s").unwrap(),
            ..List::default()
        };
        list.arrange(&after, Some(&before));
        assert_eq!(names(&list, &after), ["a", "c", "b", "d"]);
        list.reverse = true;
        list.arrange(&after, Some(&before));
        assert_eq!(names(&list, &after), ["b", "c", "a", "d"]);
    }

    #[test]
    fn empty_caches_and_what_the_filter_refuses_are_counted() {
        let now = now(&[("a", 5), ("b", 0), ("c", 7)]);
        let mut list = List {
            filter: Filter::parse("slabs>6").unwrap(),
            ..List::default()
        };
        list.arrange(&now, None);
        assert_eq!(names(&list, &now), ["c"]);
        assert_eq!(list.hidden, 2);
    }

    #[test]
    fn a_line_that_went_away_leaves_the_cursor_nearby() {
        let all: Vec<(String, u64)> = (0..50).map(|n| (format!("c{n:02}"), 100 - n)).collect();
        let all: Vec<(&str, u64)> = all.iter().map(|(n, s)| (n.as_str(), *s)).collect();
        let mut list = List::default();
        list.arrange(&now(&all), None);
        list.select(30);
        list.scroll(10);
        assert_eq!(list.top, 21);
        list.selected = Some((Key(999), None));
        assert_eq!(list.index(), 21);
        list.lines.clear();
        list.scroll(10);
        assert_eq!((list.index(), list.top), (0, 0));
        assert_eq!(list.line(), None);
    }
}
