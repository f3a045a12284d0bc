//! Rules for monitoring: whether figures of caches are within limits.
//!
//! Purpose: a pure function of rules and one or two snapshots. A figure that is
//! not known is never within limits: the rule's answer is `Unknown` then, unless
//! another cache is beyond them. Reading rules from a file is for the front end.

pub mod condition;

use std::collections::BTreeMap;

use self::condition::{Condition, Figure, Limit};
use super::diff::{Diff, DiffRow, Presence};
use crate::columns::Row;
use crate::filter::Filter;
use crate::model::{Bytes, Snapshot, Unit};

/// Caches beyond a limit that are kept of one rule.
pub const MAX_HITS: usize = 100;

/// What a rule says, from harmless to grave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Within limits.
    Ok,
    /// Nobody can tell.
    Unknown,
    /// Beyond the first limit.
    Warning,
    /// Beyond the second one.
    Critical,
}

impl Severity {
    /// The name in all output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// The severity of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Ok, Self::Unknown, Self::Warning, Self::Critical];
        all.into_iter().find(|severity| severity.name() == name)
    }
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// What it is called.
    pub name: String,
    /// The caches it is about.
    pub caches: Filter,
    /// The sum over the caches is judged, not each one.
    pub sum: bool,
    /// The first limit.
    pub warning: Option<Condition>,
    /// The second one, on the same figure and to the same side.
    pub critical: Option<Condition>,
    /// What it means that there is no such cache.
    pub missing: Severity,
}

impl Rule {
    /// The figure; `None` for a rule without limits.
    pub fn figure(&self) -> Option<Figure> {
        let condition = self.critical.as_ref().or(self.warning.as_ref());
        condition.map(|condition| condition.figure)
    }

    /// Too much is wrong; else too little.
    pub fn above(&self) -> bool {
        let condition = self.critical.as_ref().or(self.warning.as_ref());
        condition.is_none_or(|condition| condition.above)
    }

    /// Whether it needs an earlier sample.
    pub fn needs_growth(&self) -> bool {
        self.figure().is_some_and(|figure| figure.per_hour)
    }

    /// A cache of such a figure changes nothing, whether it belongs to the rule or not.
    fn is_harmless(&self, one: &Judged) -> bool {
        if self.sum {
            one.value == 0.0
        } else {
            self.judge(one.value, one.whole) == Severity::Ok
        }
    }

    fn judge(&self, value: f64, whole: Option<f64>) -> Severity {
        let is = |condition: &Option<Condition>| {
            let condition = condition.as_ref()?;
            Some(condition.op.holds(&value, &condition.number(whole)?))
        };
        let lost = |condition: &Option<Condition>| matches!(condition, Some(c) if matches!(c.limit, Limit::Share(_)) && whole.is_none());
        if is(&self.critical) == Some(true) {
            Severity::Critical
        } else if is(&self.warning) == Some(true) {
            Severity::Warning
        } else if lost(&self.critical) || lost(&self.warning) {
            Severity::Unknown
        } else {
            Severity::Ok
        }
    }
}

/// A cache, or the sum of some, and how it was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The cache; `None` for a sum.
    pub cache: Option<String>,
    /// The figure.
    pub value: f64,
    /// It is an estimate.
    pub approx: bool,
    /// What shares are of, where it is known.
    pub whole: Option<f64>,
    /// How it was judged.
    pub severity: Severity,
}

impl Judged {
    /// Not judged yet, and of no name.
    const fn new(value: f64, approx: bool, whole: Option<f64>) -> Self {
        Self {
            cache: None,
            value,
            approx,
            whole,
            severity: Severity::Ok,
        }
    }
}

/// What became of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The gravest answer.
    pub severity: Severity,
    /// Caches that it was about.
    pub caches: usize,
    /// Of these, how many have no such figure, or belong to the rule only if a
    /// figure that is not known says so.
    pub unknown: usize,
    /// What is beyond a limit, the worst first; [`MAX_HITS`] at most.
    pub hits: Vec<Judged>,
    /// How many more are.
    pub more: usize,
    /// The value nearest to the limit or farthest beyond it.
    pub worst: Option<Judged>,
    /// Why it is not known, or that there is no such cache.
    pub why: Option<String>,
}

/// Judges a rule on the later of two snapshots; `diff` is from the earlier one.
pub fn judge(rule: &Rule, now: &Snapshot, diff: Option<&Diff>) -> Outcome {
    let Some(figure) = rule.figure() else {
        return unknown("the rule has no limit".to_owned());
    };
    if figure.per_hour {
        let Some(diff) = diff else {
            return unknown("a change needs an earlier sample".to_owned());
        };
        if diff.elapsed.is_none_or(|time| time.is_zero()) {
            return unknown("the time between the two samples is not known".to_owned());
        }
    }
    let chosen = Chosen::of(rule, figure, now, diff);
    // With comparisons, no cache is a usual answer.
    if chosen.named == 0 && rule.caches.columns().is_empty() {
        return Outcome {
            severity: rule.missing,
            why: Some("no cache has such a name".to_owned()),
            ..unknown(String::new())
        };
    }
    chosen.outcome(rule)
}

fn unknown(why: String) -> Outcome {
    Outcome {
        severity: Severity::Unknown,
        caches: 0,
        unknown: 0,
        hits: Vec::new(),
        more: 0,
        worst: None,
        why: Some(why),
    }
}

/// A change in an hour, with what it is a share of.
fn per_hour(figure: Figure, row: &DiffRow) -> Option<Judged> {
    let change = figure.change(&row.changes)?;
    let per_hour = change.per_hour?;
    let before = change.before.map(|before| before.value as f64);
    Some(Judged::new(per_hour.value, per_hour.approx, before))
}

/// The caches of a rule with their figures.
struct Chosen {
    /// Caches whose name fits.
    named: usize,
    /// Caches of the rule.
    caches: usize,
    /// Of these, caches that may not be: a comparison hangs on what is not known.
    undecided: usize,
    values: Vec<Judged>,
    memory: Option<f64>,
}

impl Chosen {
    fn of(rule: &Rule, figure: Figure, now: &Snapshot, diff: Option<&Diff>) -> Self {
        let mut chosen = Self {
            named: 0,
            caches: 0,
            undecided: 0,
            values: Vec::new(),
            memory: now.system.meminfo.mem_total.map(|b| Bytes::get(b) as f64),
        };
        let rows = diff.map_or(&[][..], |diff| &diff.rows);
        let changed = rows.iter().filter_map(|row| Some((row.after?, row)));
        let changed: BTreeMap<_, _> = changed.collect();
        for (at, cache) in now.caches.iter().enumerate() {
            let row = Row::new(cache, now.system.page_size);
            let mut names = cache.names().chain(cache.sysfs_id.as_deref());
            chosen.named += usize::from(names.any(|name| rule.caches.accepts_name(name)));
            let belongs = rule.caches.holds(&row);
            // A share of nothing is not a figure that is missing.
            let nothing = figure.column.unit == Unit::Percent && cache.is_empty() == Some(true);
            if belongs == Some(false) || nothing {
                continue;
            }
            let judged = if figure.per_hour {
                changed.get(&at).and_then(|row| per_hour(figure, row))
            } else {
                let value = figure.column.value(&row);
                let number = value.number();
                number.map(|n| Judged::new(n, value.is_approx(), chosen.memory))
            };
            if belongs.is_none() && judged.as_ref().is_some_and(|one| rule.is_harmless(one)) {
                continue;
            }
            chosen.caches += 1;
            if belongs.is_none() {
                chosen.undecided += 1;
                continue;
            }
            chosen.values.extend(judged.map(|one| Judged {
                cache: Some(cache.name.to_string()),
                ..one
            }));
        }
        if rule.sum && figure.per_hour && rule.caches.columns().is_empty() {
            // What a cache that is gone gave back is a part of the sum.
            for row in rows.iter().filter(|row| row.presence == Presence::Vanished) {
                let lost = per_hour(figure, row)
                    .filter(|lost| lost.whole.is_some() && rule.caches.accepts_name(&row.name));
                chosen.caches += usize::from(lost.is_some());
                chosen.values.extend(lost.map(|lost| Judged {
                    cache: Some(row.name.to_string()),
                    ..lost
                }));
            }
        }
        chosen
    }

    fn outcome(self, rule: &Rule) -> Outcome {
        let unknown = self.caches - self.values.len();
        let mut values = if rule.sum {
            self.summed(rule)
        } else {
            self.values
        };
        for one in &mut values {
            one.severity = rule.judge(one.value, one.whole);
        }
        let above = rule.above();
        values.sort_by(|a, b| {
            let order = if above {
                b.value.total_cmp(&a.value)
            } else {
                a.value.total_cmp(&b.value)
            };
            b.severity
                .cmp(&a.severity)
                .then(order)
                .then_with(|| a.cache.cmp(&b.cache))
        });
        let worst = values.first().cloned();
        let gravest = worst.as_ref().map_or(Severity::Ok, |one| one.severity);
        let beyond = |one: &Judged| one.severity > Severity::Unknown;
        let hits = values.iter().filter(|one| beyond(one)).count();
        let severity = match gravest {
            Severity::Ok if unknown > 0 => Severity::Unknown,
            other => other,
        };
        let why = match severity {
            Severity::Unknown if self.undecided > 0 && unknown == self.undecided => Some(format!(
                "whether {unknown} of {} caches belong to it hangs on figures that are not known",
                self.caches
            )),
            Severity::Unknown if unknown > 0 => Some(format!(
                "the figure of {unknown} of {} caches is not known",
                self.caches
            )),
            Severity::Unknown => Some("the machine's memory is not known".to_owned()),
            _ => None,
        };
        values.retain(beyond);
        values.truncate(MAX_HITS);
        Outcome {
            severity,
            caches: self.caches,
            unknown,
            more: hits - values.len(),
            hits: values,
            worst,
            why,
        }
    }

    /// The sum. Where a figure is missing it is a lower bound, which may only
    /// tell that there is too much.
    fn summed(&self, rule: &Rule) -> Vec<Judged> {
        let growth = rule.needs_growth();
        let short = self.values.len() < self.caches;
        if short && (!rule.above() || growth) {
            return Vec::new();
        }
        let whole = if growth {
            self.values.iter().map(|one| one.whole).sum()
        } else {
            self.memory
        };
        let sum = self.values.iter().map(|one| one.value).sum();
        let approx = short || self.values.iter().any(|one| one.approx);
        vec![Judged::new(sum, approx, whole)]
    }
}

#[cfg(test)]
mod tests;
