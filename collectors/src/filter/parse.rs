//! Words to an expression: the grammar, the comparisons, the name patterns.

use globset::GlobBuilder;
use regex::{Regex, RegexBuilder};

use super::token::{Token, tokenize};
use super::{Expr, MAX_DEPTH, Op, REGEX_LIMIT, bad};
use crate::columns::{self, Column};
use crate::error::Error;
use crate::model::Unit;
use crate::units;

/// Parses a whole filter.
pub(super) fn expression(text: &str) -> Result<Expr, Error> {
    let tokens = tokenize(text)?;
    if tokens.is_empty() {
        return Ok(Expr::All);
    }
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        depth: 0,
    };
    let expr = parser.or()?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => Err(bad(format!("unexpected {:?} in filter", token.text()))),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn or(&mut self) -> Result<Expr, Error> {
        let mut list = vec![self.and()?];
        while self.take(&Token::Or) {
            list.push(self.and()?);
        }
        Ok(if list.len() == 1 {
            list.remove(0)
        } else {
            Expr::Or(list)
        })
    }

    fn and(&mut self) -> Result<Expr, Error> {
        let mut list = vec![self.not()?];
        loop {
            let explicit = self.take(&Token::And);
            let more = !matches!(self.peek(), None | Some(Token::Or | Token::Close));
            if !explicit && !more {
                break;
            }
            list.push(self.not()?);
        }
        Ok(if list.len() == 1 {
            list.remove(0)
        } else {
            Expr::And(list)
        })
    }

    fn not(&mut self) -> Result<Expr, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(bad("filter is nested too deeply"));
        }
        let result = if self.take(&Token::Not) {
            self.not().map(|e| Expr::Not(Box::new(e)))
        } else {
            self.primary()
        };
        self.depth -= 1;
        result
    }

    fn primary(&mut self) -> Result<Expr, Error> {
        let Some(token) = self.peek() else {
            return Err(bad("filter ends too early"));
        };
        self.at += 1;
        match token {
            Token::Open => {
                let inner = self.or()?;
                if self.take(&Token::Close) {
                    Ok(inner)
                } else {
                    Err(bad("filter has an unclosed parenthesis"))
                }
            }
            Token::Word(word) => pattern(word),
            Token::Compare(column, op, value) => comparison(column, op, value),
            other => Err(bad(format!("unexpected {:?} in filter", other.text()))),
        }
    }
}

fn comparison(name: &str, op: &str, value: &str) -> Result<Expr, Error> {
    let column = columns::find(name).ok_or_else(|| {
        let near = columns::similar(name);
        let hint = if near.is_empty() {
            "see `slabctl report --list-columns`".to_owned()
        } else {
            format!("did you mean {}?", near.join(", "))
        };
        bad(format!("no column {name:?} to filter by: {hint}"))
    })?;
    if value.is_empty() {
        return Err(bad(format!("{name}{op} lacks a value")));
    }
    let op = match op {
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        "=" | "==" => Op::Equal,
        "!=" => Op::NotEqual,
        "~" => return Ok(Expr::Match(column, true, regex(value)?)),
        _ => return Ok(Expr::Match(column, false, regex(value)?)),
    };
    if column.unit == Unit::Text {
        return Ok(Expr::Text(column, op, value.to_owned()));
    }
    let number = number(column, value)
        .ok_or_else(|| bad(format!("{value:?} is not a number to compare {name} with")))?;
    Ok(Expr::Number(column, op, number))
}

/// Percentages are given in percent, with or without the sign: `use<50`.
fn number(column: &Column, value: &str) -> Option<f64> {
    match column.unit {
        Unit::Percent => {
            let value: f64 = value.trim_end_matches('%').parse().ok()?;
            value.is_finite().then_some(value / 100.0)
        }
        Unit::Bytes => units::parse_size(value).map(|v| v as f64),
        _ => units::parse_count(value).map(|v| v as f64),
    }
}

/// A name pattern: `/regex/`, or a glob that must match the whole name.
pub(super) fn pattern(text: &str) -> Result<Expr, Error> {
    let ids = text.contains(':');
    if let Some(inner) = text.strip_prefix('/') {
        let inner = inner
            .strip_suffix('/')
            .ok_or_else(|| bad(format!("regex {text:?} has no closing slash")))?;
        return Ok(Expr::Regex(regex(inner)?, ids));
    }
    let glob = GlobBuilder::new(text)
        .backslash_escape(true)
        .literal_separator(false)
        .build();
    if text.contains(['*', '?']) {
        let glob = glob.map_err(|e| bad(format!("bad pattern {text:?}: {}", e.kind())))?;
        return Ok(Expr::Glob(glob.compile_matcher(), ids));
    }
    // Names such as `slab-[16]` hold glob characters: they are themselves first.
    let itself = Expr::Regex(regex(&format!("^{}$", regex::escape(text)))?, ids);
    Ok(match glob {
        Ok(glob) if text.contains(['[', '{']) => {
            Expr::Or(vec![itself, Expr::Glob(glob.compile_matcher(), ids)])
        }
        _ => itself,
    })
}

fn regex(text: &str) -> Result<Regex, Error> {
    RegexBuilder::new(text)
        .size_limit(REGEX_LIMIT)
        .build()
        .map_err(|e| {
            let reason = e.to_string();
            // The crate's message is many lines; the last says what is wrong.
            let last = reason.lines().last().unwrap_or_default();
            bad(format!(
                "bad regex {text:?}: {}",
                last.trim_start_matches("error: ")
            ))
        })
}
