//! The filter language: which caches a report shows.
//!
//! ```text
//! filter     := or
//! or         := and { ("or" | "||") and }
//! and        := not { ["and" | "&&"] not }
//! not        := ["not" | "!"] primary
//! primary    := "(" or ")" | comparison | pattern
//! comparison := column (">" | ">=" | "<" | "<=" | "=" | "==" | "!=") value
//!             | column ("~" | "!~") regex
//! value      := a number, a size (10M, 1.5GiB, 64kB), a percentage (50%), or text
//! pattern    := a glob over names (kmalloc-*), or /regex/
//! ```
//!
//! A pattern holds when the shown name or an alias matches; the sysfs id of a
//! merged cache (`:aA-0000192`) is looked at only by a pattern with a colon,
//! so that `*128*` does not find a cache by the size in its id. A comparison
//! with a figure that is not known neither holds nor fails: `not` of it does
//! not hold either, and `or` and `and` decide where they can without it. `K`, `M`, `G` are powers of
//! 1024 for sizes and of 1000 for counts.

mod parse;
mod token;

use globset::GlobMatcher;
use parse::pattern;
use regex::Regex;

use crate::columns::{Column, Row, Value};
use crate::error::Error;
use crate::model::{Cache, Unit};
use crate::source::Demand;

/// A parsed filter.
#[derive(Debug, Clone)]
pub struct Filter(Expr);

#[derive(Debug, Clone)]
enum Expr {
    All,
    Or(Vec<Expr>),
    And(Vec<Expr>),
    Not(Box<Expr>),
    /// A whole name; the flag says whether ids are looked at.
    Glob(GlobMatcher, bool),
    /// A part of a name; the flag as above.
    Regex(Regex, bool),
    Number(&'static Column, Op, f64),
    Text(&'static Column, Op, String),
    Match(&'static Column, bool, Regex),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Equal,
    NotEqual,
}

impl Op {
    pub(crate) fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Self::Greater => a > b,
            Self::GreaterEqual => a >= b,
            Self::Less => a < b,
            Self::LessEqual => a <= b,
            Self::Equal => a == b,
            Self::NotEqual => a != b,
        }
    }
}

/// Largest compiled size of a regular expression, so that one cannot eat memory.
const REGEX_LIMIT: usize = 1 << 20;

/// Deepest nesting of parentheses.
const MAX_DEPTH: u32 = 64;

impl Filter {
    /// Accepts every cache.
    pub const fn all() -> Self {
        Self(Expr::All)
    }

    /// Parses a filter; the error names what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse::expression(text).map(Self)
    }

    /// A filter of name patterns: any of them may match. No pattern accepts all.
    pub fn patterns<S: AsRef<str>>(patterns: &[S]) -> Result<Self, Error> {
        if patterns.is_empty() {
            return Ok(Self::all());
        }
        let parts = patterns.iter().map(|p| pattern(p.as_ref()));
        Ok(Self(Expr::Or(parts.collect::<Result<_, _>>()?)))
    }

    /// Both filters together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Expr::All, expr) | (expr, Expr::All) => Self(expr),
            (a, b) => Self(Expr::And(vec![a, b])),
        }
    }

    /// Whether the cache passes: the filter is known to hold for it.
    pub fn accepts(&self, row: &Row<'_>) -> bool {
        self.holds(row) == Some(true)
    }

    /// Whether the filter holds; `None` where that hangs on a figure that is not known.
    pub fn holds(&self, row: &Row<'_>) -> Option<bool> {
        eval(&self.0, row)
    }

    /// Whether the filter accepts everything.
    pub const fn is_all(&self) -> bool {
        matches!(self.0, Expr::All)
    }

    /// The columns that the filter compares, each once.
    pub fn columns(&self) -> Vec<&'static Column> {
        let mut list = Vec::new();
        columns(&self.0, &mut list);
        list
    }

    /// Whether the patterns hold for a name by itself; comparisons are passed over.
    pub fn accepts_name(&self, name: &str) -> bool {
        names(&self.0, name)
    }

    /// The alias for which a cache passes, when its shown name would not.
    pub fn through_alias<'a>(&self, cache: &'a Cache) -> Option<&'a str> {
        if names(&self.0, &cache.name) {
            return None;
        }
        cache.names().find(|name| names(&self.0, name))
    }

    /// Adds to `demand` what a live source must read for the comparisons.
    pub fn ask(&self, demand: &mut Demand) {
        ask(&self.0, demand);
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::Filter(message.into())
}

fn ask(expr: &Expr, demand: &mut Demand) {
    match expr {
        Expr::Or(list) | Expr::And(list) => list.iter().for_each(|e| ask(e, demand)),
        Expr::Not(inner) => ask(inner, demand),
        Expr::Number(column, ..) | Expr::Text(column, ..) | Expr::Match(column, ..) => {
            column.ask(demand);
        }
        Expr::All | Expr::Glob(..) | Expr::Regex(..) => {}
    }
}

fn columns(expr: &Expr, list: &mut Vec<&'static Column>) {
    match expr {
        Expr::Or(parts) | Expr::And(parts) => parts.iter().for_each(|e| columns(e, list)),
        Expr::Not(inner) => columns(inner, list),
        Expr::Number(column, ..) | Expr::Text(column, ..) | Expr::Match(column, ..) => {
            if !list.iter().any(|c| c.key == column.key) {
                list.push(column);
            }
        }
        Expr::All | Expr::Glob(..) | Expr::Regex(..) => {}
    }
}

/// Whether the patterns of a filter hold for a name by itself.
fn names(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Or(list) => list.iter().any(|e| names(e, name)),
        Expr::And(list) => list.iter().all(|e| names(e, name)),
        Expr::Not(inner) => !names(inner, name),
        Expr::Glob(glob, _) => glob.is_match(name),
        Expr::Regex(regex, _) => regex.is_match(name),
        Expr::All | Expr::Number(..) | Expr::Text(..) | Expr::Match(..) => true,
    }
}

/// Three-valued logic, after Kleene.
fn eval(expr: &Expr, row: &Row<'_>) -> Option<bool> {
    match expr {
        Expr::All => Some(true),
        Expr::Or(list) => any(list.iter().map(|e| eval(e, row))),
        Expr::And(list) => any(list.iter().map(|e| Some(!eval(e, row)?))).map(|any| !any),
        Expr::Not(inner) => eval(inner, row).map(|holds| !holds),
        Expr::Glob(glob, ids) => Some(any_name(row.cache, *ids, |name| glob.is_match(name))),
        Expr::Regex(regex, ids) => Some(any_name(row.cache, *ids, |name| regex.is_match(name))),
        Expr::Number(column, op, wanted) => match column.value(row).number() {
            Some(have) => Some(op.holds(&have, wanted)),
            // A share of nothing is not a figure that is missing.
            None if column.unit == Unit::Percent && row.cache.is_empty() == Some(true) => {
                Some(false)
            }
            None => None,
        },
        Expr::Text(column, op, wanted) => {
            text(column, row, |have| op.holds(&have, &wanted.as_str()))
        }
        Expr::Match(column, positive, regex) => {
            text(column, row, |have| regex.is_match(have) == *positive)
        }
    }
}

/// One holds; else, not known where one is not known.
fn any(mut parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(false);
    let held = parts.any(|part| {
        known = known.and(part.map(|_| false));
        part == Some(true)
    });
    if held { Some(true) } else { known }
}

fn text(column: &Column, row: &Row<'_>, holds: impl Fn(&str) -> bool) -> Option<bool> {
    match column.value(row) {
        Value::Text(have) => Some(holds(&have)),
        Value::Missing => None,
        Value::Int(_) | Value::Ratio(_) => Some(false),
    }
}

fn any_name(cache: &Cache, ids: bool, matches: impl Fn(&str) -> bool) -> bool {
    cache.names().any(&matches) || (ids && cache.sysfs_id.as_deref().is_some_and(matches))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CacheId, Layer, Quantity};
    use proptest::prelude::*;

    fn cache(name: &str) -> Cache {
        let mut cache = Cache::new(CacheId(0), name);
        cache.set_exact(Quantity::Slabs, 3000, Layer::Sysfs);
        cache.set_exact(Quantity::Order, 0, Layer::Sysfs);
        cache.set_exact(Quantity::Objects, 100, Layer::Sysfs);
        cache.set_exact(Quantity::TotalObjects, 400, Layer::Sysfs);
        cache.aliases = Some(vec!["cred_jar".into()]);
        cache
    }

    fn accepts(filter: &str, name: &str) -> bool {
        let cache = cache(name);
        let filter = Filter::parse(filter).unwrap_or_else(|e| panic!("{filter}: {e}"));
        filter.accepts(&Row::new(&cache, 4096))
    }

    #[test]
    fn names_aliases_and_ids_match() {
        assert!(accepts("kmalloc-*", "kmalloc-64"));
        assert!(!accepts("kmalloc-*", "dma-kmalloc-64"));
        assert!(accepts("/kmalloc/", "dma-kmalloc-64"));
        assert!(accepts("cred_jar", "aio_kiocb"));
        assert!(!accepts("dentry", "dentry2"));
        // Names that look like patterns or comparisons are themselves.
        for odd in [
            "gfs2_glock(aspace)",
            "slab-[16]",
            "page->ptl",
            "biovec-(256)",
            "L2TP/IPv6",
            "iwl_cmd_pool:0000:04:00.0",
        ] {
            assert!(accepts(odd, odd), "{odd}");
            assert!(!accepts(odd, "other"), "{odd}");
        }
    }

    #[test]
    fn figures_compare_with_units() {
        assert!(accepts("size>10M", "x"));
        assert!(accepts("size > 10M", "x"));
        assert!(!accepts("size>12M", "x"));
        assert!(accepts("use<50%", "x") && accepts("use<=25", "x"));
        assert!(accepts("slabs=3000 and objects!=99", "x"));
        assert!(accepts("name~^x$", "x") && accepts("name!~y", "x"));
        assert!(accepts("name=x", "x"));
    }

    #[test]
    fn what_is_not_known_neither_holds_nor_fails() {
        let unknown = Cache::new(CacheId(0), "x");
        let row = Row::new(&unknown, 4096);
        let holds = |filter: &str| Filter::parse(filter).unwrap().holds(&row);
        for open in [
            "slabs>3",
            "not slabs>3",
            "use<50%",
            "x and slabs>3",
            "y or not slabs=1",
        ] {
            assert_eq!(holds(open), None, "{open}");
        }
        for yes in ["x or slabs>3", "slabs>3 or x", "not (y and slabs>3)"] {
            assert_eq!(holds(yes), Some(true), "{yes}");
        }
        for no in ["slabs>3 and y", "y and slabs>3", "not (x or slabs>3)"] {
            assert_eq!(holds(no), Some(false), "{no}");
        }
        let mut empty = cache("x");
        for quantity in [Quantity::Objects, Quantity::TotalObjects, Quantity::Slabs] {
            empty.set_exact(quantity, 0, Layer::Sysfs);
        }
        let use_of = Filter::parse("use<50%").unwrap();
        assert_eq!(use_of.holds(&Row::new(&empty, 4096)), Some(false));
    }

    #[test]
    fn counts_have_decimal_suffixes() {
        assert!(accepts("slabs>=3K", "x") && !accepts("slabs>3k", "x"));
        assert!(!accepts("size<11M", "x"), "3000 slabs are 11.7 MiB");
    }

    #[test]
    fn an_id_is_found_only_by_a_pattern_with_a_colon() {
        let mut cache = cache("task_delay_info");
        cache.sysfs_id = Some(":0000128".into());
        let row = Row::new(&cache, 4096);
        let accepts = |filter: &str| Filter::parse(filter).unwrap().accepts(&row);
        assert!(accepts(":0000128") && accepts(":*128") && accepts("/:0+128/"));
        assert!(!accepts("*128*") && !accepts("/128/"));
    }

    #[test]
    fn brackets_and_braces_are_themselves_and_globs() {
        for (pattern, name) in [
            ("kmalloc-{64,128}", "kmalloc-128"),
            ("kmalloc-[18]k", "kmalloc-8k"),
            ("slab-[16]", "slab-[16]"),
            ("odd[", "odd["),
            ("odd{", "odd{"),
        ] {
            assert!(accepts(pattern, name), "{pattern}");
        }
        assert!(!accepts("kmalloc-{64,128}", "kmalloc-256"));
    }

    #[test]
    fn it_can_tell_for_which_alias_a_cache_passes() {
        let cache = cache("aio_kiocb");
        let alias = |patterns: &[&str]| {
            let filter = Filter::patterns(patterns).unwrap();
            filter.through_alias(&cache).map(str::to_owned)
        };
        assert_eq!(alias(&["cred*"]).as_deref(), Some("cred_jar"));
        assert_eq!(alias(&["aio*", "cred*"]), None);
        assert_eq!(alias(&[]), None);
        let filter = Filter::parse("size>1 and (use<2 or not size<3)").unwrap();
        let keys: Vec<_> = filter.columns().iter().map(|c| c.key).collect();
        assert_eq!(keys, ["memory", "object_use"]);
    }

    #[test]
    fn words_combine() {
        assert!(accepts("(a or x) and not y", "x"));
        assert!(accepts("a || x", "x"));
        assert!(accepts("not x", "y") && accepts("!x", "y") && !accepts("! x", "x"));
        assert!(accepts("x slabs>1", "x"));
        assert!(accepts("", "x"));
    }

    #[test]
    fn a_figure_that_is_not_known_never_holds() {
        assert!(!accepts("partial>=0", "x"));
        assert!(!accepts("partial<5", "x"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("nosuch>5", "no column"),
            ("slabs>", "lacks a value"),
            ("slabs>many", "not a number"),
            ("use<nan", "not a number"),
            ("(a", "unclosed parenthesis"),
            ("a or", "ends too early"),
            ("/[/", "bad regex"),
            ("name~(", "bad regex"),
            ("\"a", "unclosed quote"),
            ("/abc", "closing slash"),
        ] {
            let error = Filter::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert_eq!(error.lines().count(), 1, "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[ -~]{0,60}") {
            let _ = Filter::parse(&text);
        }

        #[test]
        fn deep_nesting_is_refused(depth in 65usize..4000) {
            let text = "(".repeat(depth) + "a" + &")".repeat(depth);
            prop_assert!(Filter::parse(&text).is_err());
        }
    }
}
