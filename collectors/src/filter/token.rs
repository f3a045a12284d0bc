//! The words of a filter.

use super::bad;
use crate::columns;
use crate::error::Error;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Word(String),
    Compare(String, &'static str, String),
}

impl Token {
    /// The token as it was typed, for messages.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Open => "(".into(),
            Self::Close => ")".into(),
            Self::And => "and".into(),
            Self::Or => "or".into(),
            Self::Not => "not".into(),
            Self::Word(word) => word.clone(),
            Self::Compare(column, op, value) => format!("{column}{op}{value}"),
        }
    }
}

pub(super) const OPERATORS: [&str; 9] = [">=", "<=", "==", "!=", "!~", ">", "<", "=", "~"];

/// Splits at blanks outside quotes, and at parentheses that stand apart from
/// a word: `(a or b)`, but not `gfs2_glock(aspace)`.
pub(super) fn tokenize(text: &str) -> Result<Vec<Token>, Error> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('(') {
            tokens.push(Token::Open);
            rest = after.trim_start();
            continue;
        }
        if let Some(after) = rest.strip_prefix(')') {
            tokens.push(Token::Close);
            rest = after.trim_start();
            continue;
        }
        // `!dentry`, but not the operators of a comparison that lost its column.
        if let Some(after) = rest.strip_prefix('!')
            && !after.starts_with(['=', '~'])
        {
            tokens.push(Token::Not);
            rest = after.trim_start();
            continue;
        }
        let (word, after) = take_word(rest)?;
        let (after, joined) = join_spaced_comparison(&word, after)?;
        tokens.push(classify(joined.unwrap_or(word)));
        rest = after.trim_start();
    }
    Ok(tokens)
}

/// Reads one word: up to a blank, a quote's end, or a closing parenthesis
/// that was not opened inside the word.
fn take_word(text: &str) -> Result<(String, &str), Error> {
    let mut word = String::new();
    let mut depth = 0u32;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => return Ok((word, &text[at..])),
            (None, ')') if depth == 0 => return Ok((word, &text[at..])),
            (None, c) => {
                match c {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                word.push(c);
            }
        }
    }
    if quote.is_some() {
        return Err(bad(format!("unclosed quote in filter {text:?}")));
    }
    Ok((word, ""))
}

/// `size > 10M` with blanks: the column, the operator and the value are three
/// words that make one comparison.
fn join_spaced_comparison<'a>(
    word: &str,
    after: &'a str,
) -> Result<(&'a str, Option<String>), Error> {
    let ends_open = OPERATORS.iter().any(|op| word.ends_with(op)) && word.len() > 1;
    let trimmed = after.trim_start();
    if ends_open && !trimmed.is_empty() {
        let (value, after) = take_word(trimmed)?;
        return Ok((after, Some(format!("{word}{value}"))));
    }
    let Some(op) = OPERATORS.iter().find(|op| trimmed.starts_with(**op)) else {
        return Ok((after, None));
    };
    if columns::find(word).is_none() {
        return Ok((after, None));
    }
    let after_op = trimmed[op.len()..].trim_start();
    let (value, after) = take_word(after_op)?;
    Ok((after, Some(format!("{word}{op}{value}"))))
}

fn classify(word: String) -> Token {
    match word.to_ascii_lowercase().as_str() {
        "and" | "&&" => return Token::And,
        "or" | "||" => return Token::Or,
        "not" => return Token::Not,
        _ => {}
    }
    // A regex pattern may hold any operator.
    if word.starts_with('/') {
        return Token::Word(word);
    }
    let found = OPERATORS
        .iter()
        .filter_map(|op| Some((word.find(op)?, *op)))
        .min_by_key(|(at, op)| (*at, std::cmp::Reverse(op.len())));
    // `page->ptl` is a cache's name, not a comparison with a column `page-`.
    match found {
        Some((at, op)) if at > 0 && is_column_word(&word[..at]) => {
            let value = word[at + op.len()..].to_owned();
            Token::Compare(word[..at].to_owned(), op, value)
        }
        _ => Token::Word(word),
    }
}

fn is_column_word(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
