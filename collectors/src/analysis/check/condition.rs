//! The conditions of rules: `memory > 2GiB`, `objects/h > 10%`, `use < 50%`.
//!
//! ```text
//! condition := figure (">" | ">=" | "<" | "<=") limit
//! figure    := a column with numbers | one of memory, used, loss, objects,
//!              total_objects, slabs, partial with "/h": its change in an hour
//! limit     := a size (2GiB), a count (1.5M), or a percentage (20%)
//! ```
//!
//! A percentage is of the figure itself where that is one; of the machine's
//! memory for bytes; of the earlier value for a change.

use crate::analysis::diff::{Change, Changes};
use crate::columns::{self, Column};
use crate::filter::Op;
use crate::model::Unit;
use crate::units;

/// Figures whose change is known.
const CHANGING: [&str; 7] = [
    "memory",
    "used",
    "loss",
    "objects",
    "total_objects",
    "slabs",
    "partial",
];

/// What is compared.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The column.
    pub column: &'static Column,
    /// Its change in an hour, instead of its value.
    pub per_hour: bool,
}

impl Figure {
    /// As it is written, such as `memory/h`.
    pub fn name(&self) -> String {
        let per = if self.per_hour { "/h" } else { "" };
        format!("{}{per}", self.column.key)
    }

    /// Whether values of several caches can be added.
    pub fn adds_up(&self) -> bool {
        matches!(self.column.unit, Unit::Bytes | Unit::Objects | Unit::Slabs)
            && !["object_size", "slab_size", "align", "usersize"].contains(&self.column.key)
            && ![
                "objs_per_slab",
                "min_partial",
                "cpu_partial",
                "sheaf_capacity",
            ]
            .contains(&self.column.key)
    }

    /// The change of this figure, of a cache or of all.
    pub(super) fn change<'c>(&self, changes: &'c Changes) -> Option<&'c Change> {
        Some(match self.column.key {
            "memory" => &changes.memory,
            "used" => &changes.used,
            "loss" => &changes.loss,
            "objects" => &changes.objects,
            "total_objects" => &changes.total_objects,
            "slabs" => &changes.slabs,
            "partial" => &changes.partial,
            _ => return None,
        })
    }
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        (self.column.key, self.per_hour) == (other.column.key, other.per_hour)
    }
}

/// What a figure is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// A number in the figure's unit; of percentages 1 is 100 %.
    Absolute(f64),
    /// A share, 1 being 100 %: of the machine's memory, or of the earlier value.
    Share(f64),
}

/// A comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// What is compared.
    pub figure: Figure,
    /// Too much is wrong; else too little.
    pub above: bool,
    /// With what.
    pub limit: Limit,
    /// As it was written.
    pub text: String,
    pub(super) op: Op,
}

/// Why a condition cannot be read, and where in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// One line.
    pub why: String,
    /// Bytes from the start of the text.
    pub at: usize,
    /// Bytes that are wrong.
    pub len: usize,
}

impl Problem {
    fn new(text: &str, part: &str, why: String) -> Self {
        // `part` is a part of `text`, or stands for all of it.
        let at = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        let inside = at.saturating_add(part.len()) <= text.len();
        Self {
            why,
            at: if inside { at } else { 0 },
            len: if inside { part.len() } else { text.len() },
        }
    }
}

impl Condition {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let Some(at) = text.find(['>', '<', '=', '!', '~']) else {
            let why = "no comparison: write a figure, one of > >= < <=, and a limit";
            return Err(Problem::new(text, text, why.to_owned()));
        };
        let len = text[at..]
            .find(|c: char| !"><=!~".contains(c))
            .unwrap_or(text.len() - at);
        let sign = &text[at..at + len];
        let op = match sign {
            ">" => Op::Greater,
            ">=" => Op::GreaterEqual,
            "<" => Op::Less,
            "<=" => Op::LessEqual,
            _ => {
                let why = format!("{sign} is no limit: use one of > >= < <=");
                return Err(Problem::new(text, sign, why));
            }
        };
        let figure = figure(text, text[..at].trim())?;
        let limit = limit(text, &figure, text[at + len..].trim())?;
        Ok(Self {
            figure,
            above: matches!(op, Op::Greater | Op::GreaterEqual),
            limit,
            text: text.trim().to_owned(),
            op,
        })
    }

    /// The limit as a number, where shares are of `whole`.
    pub fn number(&self, whole: Option<f64>) -> Option<f64> {
        match self.limit {
            Limit::Absolute(number) => Some(number),
            Limit::Share(share) => Some(share * whole?),
        }
    }
}

fn figure(text: &str, word: &str) -> Result<Figure, Problem> {
    if word.is_empty() {
        return Err(Problem::new(text, text, "nothing to compare".to_owned()));
    }
    let (name, per_hour) = match word.split_once('/') {
        Some((name, "h")) => (name.trim(), true),
        Some(_) => {
            let why = format!("{word:?}: changes are in an hour, as in memory/h");
            return Err(Problem::new(text, word, why));
        }
        None => (word, false),
    };
    let Some(column) = columns::find(name) else {
        let near = columns::similar(name);
        let hint = if near.is_empty() {
            "slabctl report --list-columns names them all".to_owned()
        } else {
            format!("did you mean {}?", near.join(", "))
        };
        let why = format!("no figure {name:?}: {hint}");
        return Err(Problem::new(text, name, why));
    };
    if !column.is_numeric() {
        let why = format!("{name} is no number");
        return Err(Problem::new(text, name, why));
    }
    if per_hour && !CHANGING.contains(&column.key) {
        let why = format!(
            "the change of {name} is not known; that of {} is",
            CHANGING.join(", ")
        );
        return Err(Problem::new(text, name, why));
    }
    Ok(Figure { column, per_hour })
}

fn limit(text: &str, figure: &Figure, word: &str) -> Result<Limit, Problem> {
    let bad = |why: &str| Problem::new(text, word, why.to_owned());
    if word.is_empty() {
        return Err(Problem::new(text, text, "the limit is missing".to_owned()));
    }
    let unit = figure.column.unit;
    if let Some(number) = word.strip_suffix('%') {
        let percent: f64 = number.trim().parse().map_err(|_| bad("not a percentage"))?;
        if !percent.is_finite() {
            return Err(bad("not a percentage"));
        }
        let share = percent / 100.0;
        return match unit {
            Unit::Percent => Ok(Limit::Absolute(share)),
            _ if figure.per_hour || unit == Unit::Bytes => Ok(Limit::Share(share)),
            _ => Err(bad(
                "a percentage of what? of bytes it is of the machine's memory, of a change (/h) of the earlier value",
            )),
        };
    }
    let number = match unit {
        Unit::Percent => word
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite())
            .map(|n| n / 100.0),
        Unit::Bytes => units::parse_size(word).map(|n| n as f64),
        _ => units::parse_count(word).map(|n| n as f64),
    };
    let like = match unit {
        Unit::Percent => "not a percentage, such as 50%",
        Unit::Bytes => "not a size, such as 2GiB or 500M",
        _ => "not a number, such as 1000 or 1.5M",
    };
    number.map(Limit::Absolute).ok_or_else(|| bad(like))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Condition {
        Condition::parse(text).unwrap_or_else(|e| panic!("{text}: {e:?}"))
    }

    #[test]
    fn limits_have_the_unit_of_their_figure() {
        let size = read("size > 2GiB");
        assert_eq!((size.figure.column.key, size.above), ("memory", true));
        assert_eq!(size.limit, Limit::Absolute(2_147_483_648.0));
        assert_eq!(read("objects>=1.5M").limit, Limit::Absolute(1_500_000.0));
        assert_eq!(read("use < 50%").limit, Limit::Absolute(0.5));
        assert_eq!(read("use<50").limit, Limit::Absolute(0.5));
        assert_eq!(read("memory > 20%").limit, Limit::Share(0.2));
        let growth = read(" memory/h > 10% ");
        assert!(growth.figure.per_hour);
        assert_eq!(
            (growth.limit, &*growth.text),
            (Limit::Share(0.1), "memory/h > 10%")
        );
        assert_eq!(growth.number(Some(500.0)), Some(50.0));
        assert_eq!(growth.number(None), None);
    }

    #[test]
    fn what_is_wrong_is_named_at_its_place() {
        for (text, at, len, part) in [
            ("memory", 0, 6, "no comparison"),
            ("memory = 5", 7, 1, "no limit"),
            ("memori > 5", 0, 6, "did you mean memory"),
            ("memory > x", 9, 1, "not a size"),
            ("objects > 5%", 10, 2, "a percentage of what"),
            ("objects >", 0, 9, "limit is missing"),
            ("> 5", 0, 3, "nothing to compare"),
            ("name > 5", 0, 4, "no number"),
            ("memory/s > 5", 0, 8, "in an hour"),
            ("order/h > 5", 0, 5, "not known"),
            ("use > NaN%", 6, 4, "not a percentage"),
            ("use > inf", 6, 3, "not a percentage"),
        ] {
            let problem = Condition::parse(text).unwrap_err();
            assert_eq!((problem.at, problem.len), (at, len), "{text}");
            assert!(problem.why.contains(part), "{text}: {}", problem.why);
        }
    }

    #[test]
    fn only_amounts_add_up() {
        assert!(read("memory > 1").figure.adds_up());
        assert!(read("objects > 1").figure.adds_up());
        for text in [
            "use > 1%",
            "object_size > 1",
            "order > 1",
            "cpu_partial > 1",
        ] {
            assert!(!read(text).figure.adds_up(), "{text}");
        }
    }
}
