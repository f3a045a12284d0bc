//! Rule files in TOML: rules, or what is wrong and exactly where.
//!
//! The format is in docs/CHECK.md. Conditions are read by
//! `collectors::analysis::check::condition`, caches by the filter language.

use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use collectors::analysis::check::condition::{Condition, Figure};
use collectors::analysis::check::{Rule, Severity};
use collectors::filter::Filter;
use serde::Deserialize;
use toml::Spanned;

/// Largest rule file.
const MAX_FILE: u64 = 1 << 20;
/// Most rules.
const MAX_RULES: usize = 1000;

type Text = Option<Spanned<String>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Spanned<RuleText>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    name: Text,
    caches: Text,
    of: Text,
    warning: Text,
    critical: Text,
    missing: Text,
}

/// What is wrong with a rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    /// The file.
    pub(crate) file: String,
    /// One line.
    pub(crate) why: String,
    /// Where, when it is about a place.
    pub(crate) place: Option<Place>,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// From 1.
    pub(crate) line: usize,
    /// In characters, from 1.
    pub(crate) column: usize,
    /// The line.
    text: String,
    /// Characters that are wrong, in this line.
    len: usize,
}

impl Place {
    fn of(text: &str, span: &Range<usize>) -> Self {
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let to = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let inside = &text[start..end.min(to)];
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: text[from..start].chars().count() + 1,
            text: text[from..to].trim_end_matches('\r').to_owned(),
            len: inside.chars().count().max(1),
        }
    }

    /// The line, and marks below what is wrong.
    pub(crate) fn shown(&self) -> [String; 2] {
        // A tab is as wide above as below.
        let before = self.text.chars().take(self.column - 1);
        let blank = before.map(|c| if c == '\t' { '\t' } else { ' ' });
        let marks = "^".repeat(self.len);
        [self.text.clone(), blank.chain(marks.chars()).collect()]
    }
}

/// The start of the character at or before a byte.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Reads a rule file.
pub(super) fn read(path: &Path) -> Result<Vec<Rule>, Broken> {
    let file = path.display().to_string();
    let broken = |why: String| Broken {
        file: file.clone(),
        why,
        place: None,
    };
    let mut text = String::new();
    let opened =
        std::fs::File::open(path).and_then(|f| f.take(MAX_FILE + 1).read_to_string(&mut text));
    opened.map_err(|e| broken(e.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(broken("larger than 1 MiB".to_owned()));
    }
    parse(&text).map_err(|(why, span)| Broken {
        file: file.clone(),
        why,
        place: span.map(|span| Place::of(&text, &span)),
    })
}

/// What is wrong, and which bytes are.
type Wrong = (String, Option<Range<usize>>);

fn parse(text: &str) -> Result<Vec<Rule>, Wrong> {
    let file: File = toml::from_str(text).map_err(|e| {
        let why = e.message().replace('\n', " ");
        (why, e.span())
    })?;
    if file.rule.is_empty() {
        return Err(("no rule in it: write [[rule]]".to_owned(), None));
    }
    if file.rule.len() > MAX_RULES {
        return Err((format!("more than {MAX_RULES} rules"), None));
    }
    let rules = file.rule.into_iter();
    rules.map(|rule| one(text, rule)).collect()
}

fn one(text: &str, rule: Spanned<RuleText>) -> Result<Rule, Wrong> {
    let head = rule.span();
    let rule = rule.into_inner();
    let warning = condition(text, rule.warning.as_ref())?;
    let critical = condition(text, rule.critical.as_ref())?;
    let figure = |c: &Option<Condition>| c.as_ref().map(|c| (c.figure, c.above));
    match (figure(&warning), figure(&critical)) {
        (None, None) => {
            let why = "the rule has neither warning nor critical".to_owned();
            return Err((why, Some(head)));
        }
        (Some(a), Some(b)) if a != b => {
            let why = "warning and critical compare different figures, or to different sides: write two rules".to_owned();
            return Err((why, rule.critical.map(|c| c.span())));
        }
        _ => {}
    }
    let caches = match &rule.caches {
        Some(caches) => {
            Filter::parse(caches.get_ref()).map_err(|e| (e.to_string(), Some(caches.span())))?
        }
        None => Filter::all(),
    };
    let missing = word(
        rule.missing.as_ref(),
        "missing",
        Severity::from_name,
        "ok, unknown, warning or critical",
    )?;
    let of = |word: &str| ["each", "sum"].iter().position(|known| *known == word);
    let sum = word(rule.of.as_ref(), "of", of, "each or sum")? == Some(1);
    let made = Rule {
        name: name(
            rule.name.as_ref(),
            rule.caches.as_ref(),
            critical.as_ref().or(warning.as_ref()).map(|c| c.figure),
        )?,
        caches,
        sum,
        warning,
        critical,
        missing: missing.unwrap_or(Severity::Unknown),
    };
    if sum && !made.figure().is_some_and(|figure| figure.adds_up()) {
        let why = "a sum of this figure means nothing".to_owned();
        return Err((why, rule.of.map(|of| of.span())));
    }
    Ok(made)
}

fn condition(text: &str, given: Option<&Spanned<String>>) -> Result<Option<Condition>, Wrong> {
    let Some(given) = given else { return Ok(None) };
    let span = given.span();
    Condition::parse(given.get_ref())
        .map(Some)
        .map_err(|problem| {
            // Inside the quotes, where the text stands there as it is.
            let inside = text.get(span.start + 1..span.end.saturating_sub(1));
            let plain = inside == Some(given.get_ref());
            let start = span.start + 1 + problem.at;
            let exact = start..start + problem.len;
            (problem.why, Some(if plain { exact } else { span }))
        })
}

fn word<T>(
    given: Option<&Spanned<String>>,
    key: &str,
    read: impl Fn(&str) -> Option<T>,
    known: &str,
) -> Result<Option<T>, Wrong> {
    let Some(given) = given else { return Ok(None) };
    let value = read(given.get_ref());
    let wrong = || (format!("{key} is {known}"), Some(given.span()));
    value.map(Some).ok_or_else(wrong)
}

/// The given name, or one made of the caches and the condition.
fn name(
    given: Option<&Spanned<String>>,
    caches: Option<&Spanned<String>>,
    figure: Option<Figure>,
) -> Result<String, Wrong> {
    if let Some(given) = given {
        if given.get_ref().trim().is_empty() {
            return Err(("the name is empty".to_owned(), Some(given.span())));
        }
        return Ok(given.get_ref().clone());
    }
    let caches = caches.map_or("all caches", |c| c.get_ref());
    Ok(format!(
        "{caches} {}",
        figure.map(|f| f.name()).unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> (String, Option<[String; 2]>) {
        let (why, span) = parse(text).unwrap_err();
        (why, span.map(|span| Place::of(text, &span).shown()))
    }

    #[test]
    fn a_rule_is_read_with_its_defaults() {
        let rules = parse(
            "[[rule]]\ncaches = 'dentry or inode_cache'\nwarning = 'memory > 1G'\n\
             [[rule]]\nname = 'all'\nof = 'sum'\nmissing = 'ok'\ncritical = 'objects/h > 1M'\n",
        )
        .unwrap();
        assert_eq!(rules[0].name, "dentry or inode_cache memory");
        assert!(!rules[0].sum && rules[0].missing == Severity::Unknown);
        assert!(rules[1].sum && rules[1].missing == Severity::Ok && rules[1].needs_growth());
        assert!(rules[1].caches.is_all());
    }

    #[test]
    fn what_is_wrong_has_marks_below_it() {
        for (text, part, marked) in [
            ("", "no rule in it", ""),
            (
                "[[rule]]\nwarning = 'memori > 5'\n",
                "did you mean memory",
                "memori",
            ),
            (
                "[[rule]]\nwarning = \"memory > 5 apples\"\n",
                "not a size",
                "5 apples",
            ),
            (
                "[[rule]]\nwarning = \"memory \\u003e x\"\n",
                "not a size",
                "\"memory \\u003e x\"",
            ),
            ("[[rule]]\nwarn = 'memory > 5'\n", "unknown field", "warn"),
            ("[[rule]]\nwarning = 5\n", "invalid type", "5"),
            ("[[rule]\n", "unclosed", ""),
            (
                "[[rule]]\nname = 'x'\n",
                "neither warning nor critical",
                "[[rule]]",
            ),
            (
                "[[rule]]\nwarning = 'memory > 5'\ncritical = 'slabs > 5'\n",
                "two rules",
                "'slabs > 5'",
            ),
            (
                "[[rule]]\nwarning = 'memory > 5'\ncritical = 'memory < 5'\n",
                "two rules",
                "'memory < 5'",
            ),
            (
                "[[rule]]\ncaches = 'a and ('\nwarning = 'memory > 5'\n",
                "ends too early",
                "'a and ('",
            ),
            (
                "[[rule]]\nof = 'any'\nwarning = 'memory > 5'\n",
                "each or sum",
                "'any'",
            ),
            (
                "[[rule]]\nmissing = 'no'\nwarning = 'memory > 5'\n",
                "ok, unknown",
                "'no'",
            ),
            (
                "[[rule]]\nof = 'sum'\nwarning = 'use < 5%'\n",
                "means nothing",
                "'sum'",
            ),
            (
                "[[rule]]\nname = ' '\nwarning = 'use < 5%'\n",
                "name is empty",
                "' '",
            ),
        ] {
            let (why, shown) = wrong(text);
            assert!(why.contains(part), "{text}: {why}");
            let Some([line, marks]) = shown else {
                assert_eq!(marked, "", "{text}");
                continue;
            };
            let start = marks.find('^').unwrap();
            let found: String = line
                .chars()
                .skip(start)
                .take(marks.matches('^').count())
                .collect();
            assert_eq!(found, marked, "{text}: {why}\n{line}\n{marks}");
        }
    }

    #[test]
    fn places_count_characters_and_keep_tabs() {
        let text = "a\n\tä = 'memory'\r\n";
        let at = text.find('\'').unwrap();
        let place = Place::of(text, &(at..at + 8));
        assert_eq!((place.line, place.column), (2, 6));
        assert_eq!(
            place.shown(),
            ["\tä = 'memory'".to_owned(), "\t    ^^^^^^^^".to_owned()]
        );
        // Beyond the end, and over a line end.
        assert_eq!(Place::of("ab", &(9..12)).column, 3);
        assert_eq!(Place::of("ab\ncd", &(0..5)).shown()[1], "^^");
    }
}
