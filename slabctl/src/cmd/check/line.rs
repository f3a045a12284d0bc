//! The line that monitoring systems read: status, what is wrong, performance data.
//!
//! Source of truth: the Monitoring Plugins development guidelines (status line,
//! `'label'=value[unit];warn;crit;min;max`, thresholds as ranges).

use std::fmt::Write as _;

use collectors::analysis::check::condition::{Condition, Figure};
use collectors::analysis::check::{Judged, Outcome, Rule, Severity};
use collectors::columns::show;
use collectors::model::{Approx, Unit};
use collectors::units::{self, Scale};

use crate::output::text;

/// Rules that the line names, and caches of each.
const NAMED: usize = 4;

/// The gravest of all.
pub(super) fn gravest(outcomes: &[Outcome]) -> Severity {
    let all = outcomes.iter().map(|outcome| outcome.severity);
    all.max().unwrap_or(Severity::Unknown)
}

/// The whole line, without its end.
pub(super) fn status(rules: &[Rule], outcomes: &[Outcome], scale: Scale) -> String {
    let severity = gravest(outcomes);
    let mut wrong: Vec<_> = rules
        .iter()
        .zip(outcomes)
        .filter(|(_, o)| o.severity > Severity::Ok)
        .collect();
    wrong.sort_by_key(|(_, outcome)| std::cmp::Reverse(outcome.severity));
    let mut line = head(severity);
    if wrong.is_empty() {
        let count = rules.len();
        let _ = write!(
            line,
            "{count} {} within limits",
            if count == 1 { "rule" } else { "rules" }
        );
    }
    for (n, (rule, outcome)) in wrong.iter().take(NAMED).enumerate() {
        if n > 0 {
            line.push_str("; ");
        }
        if outcome.severity != severity {
            let _ = write!(line, "{} ", outcome.severity.name());
        }
        line.push_str(&about(rule, outcome, scale));
    }
    if let Some(more) = wrong.len().checked_sub(NAMED).filter(|n| *n > 0) {
        let _ = write!(line, "; {more} more");
    }
    let data: Vec<_> = rules
        .iter()
        .zip(outcomes)
        .filter_map(|(r, o)| perfdata(r, o))
        .collect();
    // A bar in a name would begin the performance data.
    let mut line = text::one_line(&line).replace('|', "/");
    if !data.is_empty() {
        let _ = write!(line, " | {}", data.join(" "));
    }
    line
}

/// `SLAB CRITICAL - `.
pub(super) fn head(severity: Severity) -> String {
    format!("SLAB {} - ", severity.name().to_ascii_uppercase())
}

/// A rule that is not fulfilled, in words.
pub(super) fn about(rule: &Rule, outcome: &Outcome, scale: Scale) -> String {
    let name = &rule.name;
    if let Some(why) = &outcome.why {
        return format!("{name}: {why}");
    }
    let Some(figure) = rule.figure() else {
        return name.clone();
    };
    let mut text = format!("{name}: ");
    for (n, hit) in outcome.hits.iter().take(NAMED).enumerate() {
        if n > 0 {
            text.push_str(", ");
        }
        if let Some(cache) = &hit.cache {
            let _ = write!(text, "{cache} ");
        }
        let limit = limit(rule, hit.severity).map_or("", |c| &*c.text);
        let _ = write!(text, "{} ({limit})", value(figure, hit, scale));
    }
    let more = outcome.more + outcome.hits.len().saturating_sub(NAMED);
    if more > 0 {
        let _ = write!(text, ", {more} more");
    }
    text
}

/// The limit that a severity is of.
fn limit(rule: &Rule, severity: Severity) -> Option<&Condition> {
    match severity {
        Severity::Critical => rule.critical.as_ref(),
        _ => rule.warning.as_ref().or(rule.critical.as_ref()),
    }
}

/// A value for people.
fn value(figure: Figure, judged: &Judged, scale: Scale) -> String {
    let mark = if judged.approx { "~" } else { "" };
    if figure.column.unit == Unit::Percent {
        return format!("{mark}{}%", units::percent(judged.value));
    }
    let sign = if judged.value < 0.0 { "-" } else { "" };
    let size = whole(judged.value.abs());
    let shown = show::number(Approx::exact(size), figure.column.unit, scale);
    let per = if figure.per_hour { "/h" } else { "" };
    format!("{mark}{sign}{shown}{per}")
}

/// A number of zero or more without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of floats saturates"
)]
const fn whole(value: f64) -> u64 {
    value as u64
}

/// `'label'=value[unit];warn;crit;min`, of the value that is nearest to the limit.
fn perfdata(rule: &Rule, outcome: &Outcome) -> Option<String> {
    let (figure, worst) = (rule.figure()?, outcome.worst.as_ref()?);
    let percent = figure.column.unit == Unit::Percent;
    let unit = match figure.column.unit {
        Unit::Percent => "%",
        Unit::Bytes => "B",
        Unit::Seconds => "s",
        _ => "",
    };
    let number = |value: f64| {
        if percent {
            units::decimal(value.max(0.0) * 100.0, 2)
        } else {
            // Without an exponent, and without a fraction that means nothing.
            format!("{:.0}", value.round())
        }
    };
    let range = |condition: &Option<Condition>| {
        let number = condition
            .as_ref()
            .and_then(|c| c.number(worst.whole))
            .map(number);
        let side = if rule.above() { "" } else { ":" };
        number.map_or_else(String::new, |n| format!("{n}{side}"))
    };
    let min = if figure.per_hour { "" } else { "0" };
    // Neither = nor a line end may be in a label; a quote is doubled.
    let label = text::one_line(&rule.name)
        .replace(['=', '|'], "_")
        .replace('\'', "''");
    let (warning, critical) = (range(&rule.warning), range(&rule.critical));
    Some(format!(
        "'{label}'={}{unit};{warning};{critical};{min}",
        number(worst.value)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::filter::Filter;

    fn rule(name: &str, warning: &str, critical: &str) -> Rule {
        let read = |text: &str| (!text.is_empty()).then(|| Condition::parse(text).unwrap());
        Rule {
            name: name.to_owned(),
            caches: Filter::all(),
            sum: false,
            warning: read(warning),
            critical: read(critical),
            missing: Severity::Unknown,
        }
    }

    fn outcome(value: f64, severity: Severity) -> Outcome {
        let one = Judged {
            cache: Some("dentry".to_owned()),
            value,
            approx: false,
            whole: Some(1e9),
            severity,
        };
        Outcome {
            severity,
            caches: 1,
            unknown: 0,
            hits: if severity > Severity::Unknown {
                vec![one.clone()]
            } else {
                Vec::new()
            },
            more: 0,
            worst: Some(one),
            why: None,
        }
    }

    #[test]
    fn the_line_has_status_reason_and_data() {
        let rules = [
            rule("d'entries", "memory > 2GiB", "memory > 4GiB"),
            rule("use", "use < 50%", ""),
        ];
        let fine = [outcome(5.0, Severity::Ok), outcome(0.75, Severity::Ok)];
        assert_eq!(
            status(&rules, &fine, Scale::Iec),
            "SLAB OK - 2 rules within limits | 'd''entries'=5B;2147483648;4294967296;0 'use'=75.00%;50.00:;;0"
        );
        let bad = [
            outcome(5e9, Severity::Critical),
            outcome(0.25, Severity::Warning),
        ];
        assert_eq!(
            status(&rules, &bad, Scale::Iec),
            "SLAB CRITICAL - d'entries: dentry 4.66G (memory > 4GiB); warning use: dentry 25.0% (use < 50%) \
             | 'd''entries'=5000000000B;2147483648;4294967296;0 'use'=25.00%;50.00:;;0"
        );
    }

    #[test]
    fn names_cannot_break_the_line() {
        let rules = [rule("a|b=c\nd", "memory/h > 10%", "")];
        let line = status(&rules, &[outcome(-5.0, Severity::Warning)], Scale::Bytes);
        assert_eq!(line.lines().count(), 1);
        assert_eq!(line.matches('|').count(), 1, "{line}");
        assert!(line.contains("dentry -5"), "{line}");
        // 10 % of what it had.
        assert!(line.ends_with("=-5B;100000000;;"), "{line}");
    }

    #[test]
    fn what_is_not_known_says_why() {
        let mut open = outcome(5.0, Severity::Unknown);
        open.why = Some("no cache has such a name".to_owned());
        open.worst = None;
        let line = status(&[rule("x", "slabs > 1", "")], &[open], Scale::Iec);
        assert_eq!(line, "SLAB UNKNOWN - x: no cache has such a name");
    }
}
