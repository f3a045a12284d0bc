//! The palette: commands by name, some with a word behind them.

use std::time::Duration;

use super::{act, overlay, say};
use crate::keys::bindings;
use crate::model::{Model, Overlay};
use crate::msg::Effect;
use crate::theme::Theme;

/// Commands that take a word, with what it is.
const WITH_WORD: [(&str, &str); 8] = [
    ("columns", "LIST"),
    ("export", "FILE"),
    ("filter", "EXPR"),
    ("interval", "TIME"),
    ("jump", "TIME"),
    ("snapshot", "FILE"),
    ("sort", "COLUMN"),
    ("theme", "NAME"),
];

/// Every command with the word it takes, sorted.
pub(crate) fn names() -> Vec<(&'static str, &'static str)> {
    let mut list: Vec<(&str, &str)> = bindings()
        .into_iter()
        .filter(|b| !WITH_WORD.iter().any(|(name, _)| *name == b.name))
        .map(|b| (b.name, ""))
        .chain(WITH_WORD)
        .collect();
    list.sort_unstable();
    list
}

/// The only command, or the common beginning of those, that begin with `text`.
pub(super) fn complete(text: &str) -> Option<String> {
    let text = text.trim_start();
    let fit: Vec<(&str, &str)> = names()
        .into_iter()
        .filter(|(name, _)| name.starts_with(text))
        .collect();
    let (first, word) = *fit.first()?;
    if fit.len() == 1 {
        let gap = if word.is_empty() { "" } else { " " };
        return Some(format!("{first}{gap}"));
    }
    let common = fit.iter().fold(first.len(), |len, (name, _)| {
        let same = first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b);
        len.min(same.count())
    });
    first.get(..common).map(str::to_owned)
}

/// Runs a command line.
pub(super) fn run(model: &mut Model, at: Duration, line: &str) -> Result<Vec<Effect>, String> {
    let (name, word) = line
        .split_once(' ')
        .map_or((line, ""), |(n, w)| (n, w.trim()));
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if !word.is_empty() {
        return with_word(model, at, name, word);
    }
    if let Some(binding) = bindings().into_iter().find(|b| b.name == name) {
        return Ok(act::act(model, at, binding.action));
    }
    if let Some((_, word)) = WITH_WORD.iter().find(|(known, _)| *known == name) {
        return Err(format!("{name} {word}"));
    }
    let table = names();
    let near = collectors::similar::closest(name, table.iter().map(|(n, _)| *n));
    Err(match near.first() {
        Some(best) => format!("no command {name:?}: did you mean {best}?"),
        None => format!("no command {name:?}"),
    })
}

fn with_word(
    model: &mut Model,
    at: Duration,
    name: &str,
    word: &str,
) -> Result<Vec<Effect>, String> {
    match name {
        "columns" => overlay::set_columns(model, word)?,
        "export" => return overlay::export(word),
        "filter" => overlay::filter(model, word)?,
        "interval" => return overlay::set_interval(model, at, word),
        "jump" => overlay::jump(model, word)?,
        "snapshot" if model.settings.can_capture => return overlay::snapshot(word),
        "snapshot" => {
            return Err("only a running kernel can be written into a snapshot".to_owned());
        }
        "sort" => overlay::set_sort(model, word)?,
        "theme" => {
            model.settings.theme = Theme::from_name(word).ok_or_else(|| {
                let known = Theme::NAMES.map(|(name, _)| name);
                format!("no theme {word:?}: there are {}", known.join(", "))
            })?;
            say(model, at, format!("theme {word}"));
        }
        _ => return Err(format!("{name} takes no word")),
    }
    model.overlay = None::<Overlay>;
    Ok(Vec::new())
}
