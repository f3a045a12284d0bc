//! Which caches a command shows, and in which order.

use collectors::columns::{self, Column, Row};
use collectors::filter::Filter;
use collectors::model::Snapshot;

use crate::cli::Select;
use crate::fail::Failure;

/// The options after they were understood.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    filter: Filter,
    sort: Option<&'static Column>,
    reverse: bool,
    top: Option<usize>,
    /// Leave out caches that are known to hold nothing.
    pub(crate) hide_empty: bool,
}

impl Selection {
    /// Understands the options; `sort` is used when none was given.
    pub(crate) fn new(
        patterns: &[String],
        select: &Select,
        sort: Option<&str>,
    ) -> Result<Self, Failure> {
        let filter = Filter::patterns(patterns)?.and(match &select.filter {
            Some(text) => Filter::parse(text)?,
            None => Filter::all(),
        });
        let sort = match select.sort.as_deref().or(sort) {
            Some(name) => Some(column(name)?),
            None => None,
        };
        if select.top == Some(0) {
            return Err(Failure::usage("--top 0 would show nothing"));
        }
        Ok(Self {
            filter,
            sort,
            reverse: select.reverse,
            top: select.top,
            hide_empty: false,
        })
    }

    /// Restricts the selection further.
    pub(crate) fn and(mut self, filter: Filter) -> Self {
        self.filter = self.filter.and(filter);
        self
    }

    /// Whether the filter holds for a cache.
    pub(crate) fn accepts(&self, row: &Row<'_>) -> bool {
        self.filter.accepts(row)
    }

    /// Adds to the demand what filtering and sorting look at.
    pub(crate) fn ask(&self, demand: &mut collectors::source::Demand) {
        self.filter.ask(demand);
        if let Some(column) = self.sort {
            column.ask(demand);
        }
    }

    /// What caches have to pass.
    pub(crate) const fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The column to sort by.
    pub(crate) const fn sort(&self) -> Option<&'static Column> {
        self.sort
    }

    /// Whether the order is turned round.
    pub(crate) const fn is_reversed(&self) -> bool {
        self.reverse
    }

    /// Takes the limit away, for tables whose lines are not caches.
    pub(crate) const fn take_top(&mut self) -> Option<usize> {
        self.top.take()
    }

    /// Whether the user chose caches at all.
    pub(crate) const fn is_all(&self) -> bool {
        self.filter.is_all()
    }

    /// The caches, in order. Hidden ones do not count for `--top`.
    pub(crate) fn rows<'a>(&self, snapshot: &'a Snapshot) -> Chosen<'a> {
        let page_size = snapshot.system.page_size;
        let mut rows: Vec<Row<'a>> = snapshot
            .caches
            .iter()
            .map(|cache| Row::new(cache, page_size))
            .filter(|row| self.filter.accepts(row))
            .collect();
        let matched = rows.len();
        if self.hide_empty {
            rows.retain(|row| row.cache.is_empty() != Some(true));
        }
        let empty = matched - rows.len();
        match self.sort {
            Some(column) => {
                rows.sort_by(|a, b| columns::compare(column, self.reverse, a, b));
            }
            None if self.reverse => rows.reverse(),
            None => {}
        }
        let shown_of = rows.len();
        if let Some(top) = self.top {
            rows.truncate(top);
        }
        Chosen {
            cut: shown_of - rows.len(),
            rows,
            empty,
            matched,
        }
    }
}

/// Caches that were chosen, and how many were not shown for which reason.
#[derive(Debug)]
pub(crate) struct Chosen<'a> {
    pub(crate) rows: Vec<Row<'a>>,
    /// Hidden since they hold nothing.
    pub(crate) empty: usize,
    /// Left out by `--top`.
    pub(crate) cut: usize,
    /// Caches that passed the filter.
    pub(crate) matched: usize,
}

/// The column of that name, or a message that helps.
pub(crate) fn column(name: &str) -> Result<&'static Column, Failure> {
    columns::find(name).ok_or_else(|| {
        let near = columns::similar(name);
        let failure = Failure::usage(format!("no column {name:?}"));
        if near.is_empty() {
            failure.hint("slabctl report --list-columns names them all")
        } else {
            failure.hint(format!("did you mean {}?", near.join(", ")))
        }
    })
}
