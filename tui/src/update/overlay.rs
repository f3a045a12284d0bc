//! What a key does while something lies over the screen.

use std::path::PathBuf;
use std::time::Duration;

use collectors::filter::Filter;
use jiff::Timestamp;
use ratatui::crossterm::event::KeyCode;

use super::{act, arrange, command};
use crate::menu;
use crate::model::{Model, Overlay, Prompt, PromptKind, Shown};
use crate::msg::Effect;
use crate::press::Press;

/// Longest line that can be typed.
const LONGEST: usize = 1000;

/// A key for what lies over the screen.
pub(super) fn press(model: &mut Model, at: Duration, press: Press) -> Vec<Effect> {
    let Some(overlay) = model.overlay.take() else {
        return Vec::new();
    };
    // Leaving works from everywhere.
    if press.ctrl && press.code == KeyCode::Char('c') {
        return vec![Effect::Quit { keep: false }];
    }
    match overlay {
        Overlay::Help { search, top } => help(model, press, search, top),
        Overlay::Sort => sort(model, press),
        Overlay::Columns { cursor } => columns(model, press, cursor),
        Overlay::Prompt(prompt) => return prompt_key(model, at, press, prompt),
        Overlay::Confirm { change, cache } => {
            if press.letter() == Some('y') {
                return vec![Effect::Change { change, cache }];
            }
        }
    }
    Vec::new()
}

/// Pasted text goes into a prompt or nowhere.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    if let Some(Overlay::Prompt(prompt)) = &mut model.overlay {
        let clean = text.chars().filter(|c| !c.is_control());
        prompt.text.extend(clean.take(LONGEST));
        prompt.error = None;
    }
    Vec::new()
}

fn help(model: &mut Model, press: Press, mut search: String, mut top: usize) {
    match press.code {
        KeyCode::Esc | KeyCode::Enter | KeyCode::F(1) => return,
        KeyCode::Char('q' | '?') if search.is_empty() => return,
        KeyCode::Down => top += 1,
        KeyCode::Up => top = top.saturating_sub(1),
        KeyCode::PageDown => top += 10,
        KeyCode::PageUp => top = top.saturating_sub(10),
        KeyCode::Backspace => {
            search.pop();
            top = 0;
        }
        _ => {
            if let Some(letter) = press.letter()
                && search.len() < LONGEST
            {
                search.push(letter);
                top = 0;
            }
        }
    }
    let last = crate::view::help::lines(model, &search)
        .len()
        .saturating_sub(1);
    top = top.min(last);
    model.overlay = Some(Overlay::Help { search, top });
}

fn sort(model: &mut Model, press: Press) {
    let Some(letter) = press.letter() else {
        return;
    };
    let found = menu::SORTS.iter().find(|(known, ..)| *known == letter);
    if let Some(shown) = found.and_then(|(_, name, _)| Shown::find(name)) {
        model.list.sort = shown;
        model.list.reverse = false;
        arrange(model);
    }
}

fn columns(model: &mut Model, press: Press, mut cursor: usize) {
    let choices = menu::columns(&model.list.columns);
    let last = choices.len().saturating_sub(1);
    match press.code {
        KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | 'c') => return,
        KeyCode::Down | KeyCode::Char('j') => cursor = (cursor + 1).min(last),
        KeyCode::Up | KeyCode::Char('k') => cursor = cursor.saturating_sub(1),
        KeyCode::PageDown => cursor = (cursor + 10).min(last),
        KeyCode::PageUp => cursor = cursor.saturating_sub(10),
        KeyCode::Home | KeyCode::Char('g') => cursor = 0,
        KeyCode::End | KeyCode::Char('G') => cursor = last,
        KeyCode::Char(' ') => toggle(model, choices.get(cursor)),
        KeyCode::Char('K') => cursor = shift(model, choices.get(cursor), cursor, -1),
        KeyCode::Char('J') => cursor = shift(model, choices.get(cursor), cursor, 1),
        _ => {}
    }
    model.overlay = Some(Overlay::Columns { cursor });
}

fn toggle(model: &mut Model, choice: Option<&Shown>) {
    let Some(choice) = choice else {
        return;
    };
    let shown = &mut model.list.columns;
    match shown.iter().position(|c| c == choice) {
        Some(place) if shown.len() > 1 => {
            shown.remove(place);
        }
        Some(_) => {}
        None => shown.push(*choice),
    }
}

/// Moves a shown column; returns where the cursor goes with it.
fn shift(model: &mut Model, choice: Option<&Shown>, cursor: usize, by: isize) -> usize {
    let shown = &mut model.list.columns;
    let Some(place) = choice.and_then(|choice| shown.iter().position(|c| c == choice)) else {
        return cursor;
    };
    let next = place.saturating_add_signed(by).min(shown.len() - 1);
    shown.swap(place, next);
    next
}

fn prompt_key(model: &mut Model, at: Duration, press: Press, mut prompt: Prompt) -> Vec<Effect> {
    match press.code {
        KeyCode::Esc => return Vec::new(),
        KeyCode::Enter => return enter(model, at, prompt),
        KeyCode::Backspace => {
            prompt.text.pop();
        }
        KeyCode::Char('u' | 'l') if press.ctrl => prompt.text.clear(),
        KeyCode::Tab if prompt.kind == PromptKind::Palette => {
            if let Some(name) = command::complete(&prompt.text) {
                prompt.text = name;
            }
        }
        _ => {
            if let Some(letter) = press.letter()
                && prompt.text.len() < LONGEST
            {
                prompt.text.push(letter);
            }
        }
    }
    prompt.error = None;
    model.overlay = Some(Overlay::Prompt(prompt));
    Vec::new()
}

fn enter(model: &mut Model, at: Duration, mut prompt: Prompt) -> Vec<Effect> {
    let text = prompt.text.trim().to_owned();
    let done = match prompt.kind {
        PromptKind::Filter => filter(model, &text).map(|()| Vec::new()),
        PromptKind::Jump => jump(model, &text).map(|()| Vec::new()),
        PromptKind::Export => export(&text),
        PromptKind::Snapshot => snapshot(&text),
        PromptKind::Palette => command::run(model, at, &text),
    };
    done.unwrap_or_else(|error| {
        prompt.error = Some(error);
        model.overlay = Some(Overlay::Prompt(prompt));
        Vec::new()
    })
}

/// Sets the filter.
pub(super) fn filter(model: &mut Model, text: &str) -> Result<(), String> {
    let filter = if text.is_empty() {
        Filter::all()
    } else {
        // A bare word finds a part of a name, as people expect of a prompt.
        let bare = text
            .chars()
            .all(|c| c.is_alphanumeric() || "_-.".contains(c));
        let wanted = if bare {
            format!("*{text}*")
        } else {
            text.to_owned()
        };
        Filter::parse(&wanted).map_err(|e| e.to_string())?
    };
    model.list.filter = filter;
    text.clone_into(&mut model.list.filter_text);
    model.list.top = 0;
    arrange(model);
    Ok(())
}

/// Goes to a time: `-90s` before the newest sample, or one of the clock.
pub(super) fn jump(model: &mut Model, text: &str) -> Result<(), String> {
    let newest = model.time.newest.as_ref().ok_or("no sample yet")?;
    if text.is_empty() {
        model.time.pause(false);
        arrange(model);
        return Ok(());
    }
    let back = if let Some(ago) = text.strip_prefix('-') {
        collectors::units::parse_time(ago).ok_or("write -90s or -5m")?
    } else {
        let taken = newest.snapshot.origin.taken_at;
        let now = taken.ok_or("the source tells no time")?;
        ago(now, text, &model.settings.zone).ok_or("write 10:32:07, 10:32 or -90s")?
    };
    let kept = model.time.history.span(newest);
    let at = newest.at.saturating_sub(back);
    if back > kept + model.settings.interval {
        return Err(format!(
            "only the last {} are kept",
            crate::text::span(kept)
        ));
    }
    model.time.go_to(at);
    arrange(model);
    Ok(())
}

/// How long before `now` the clock showed that time last.
fn ago(now: Timestamp, text: &str, zone: &jiff::tz::TimeZone) -> Option<Duration> {
    let clock: jiff::civil::Time = text.parse().ok()?;
    let now = now.to_zoned_datetime(zone.clone());
    let today = now.with().time(clock).build().ok()?;
    let then = if today > now {
        today.yesterday().ok()?
    } else {
        today
    };
    now.timestamp()
        .duration_since(then.timestamp())
        .try_into()
        .ok()
}

/// Asks for the list, or the screen, to be written.
pub(super) fn export(text: &str) -> Result<Vec<Effect>, String> {
    let path = PathBuf::from(text);
    let form = path.extension().and_then(|e| e.to_str());
    match form {
        Some("csv" | "json") => Ok(vec![Effect::Export { path }]),
        Some("svg" | "txt") => Ok(vec![Effect::Picture { path }]),
        _ => Err("the name tells the form: .csv, .json; .svg, .txt for the screen".to_owned()),
    }
}

/// Asks for a snapshot of the machine.
pub(super) fn snapshot(text: &str) -> Result<Vec<Effect>, String> {
    if text.is_empty() {
        return Err("a name is needed: .tar, .tar.gz or .tar.zst".to_owned());
    }
    let path = PathBuf::from(text);
    Ok(vec![Effect::Snapshot { path }])
}

/// Sets the columns from a list of names.
pub(super) fn set_columns(model: &mut Model, text: &str) -> Result<(), String> {
    let mut columns = Vec::new();
    for name in text.split([',', ' ']).filter(|n| !n.is_empty()) {
        let column = menu::column(name)?;
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    if columns.is_empty() {
        return Err("name at least one column".to_owned());
    }
    model.list.columns = columns;
    Ok(())
}

/// Sets the order by the name of a column.
pub(super) fn set_sort(model: &mut Model, text: &str) -> Result<(), String> {
    model.list.sort = menu::column(text)?;
    arrange(model);
    Ok(())
}

/// Sets the time between samples.
pub(super) fn set_interval(
    model: &mut Model,
    at: Duration,
    text: &str,
) -> Result<Vec<Effect>, String> {
    let interval = collectors::units::parse_time(text).ok_or("write 500ms, 2s or 1m")?;
    if interval < Duration::from_millis(100) {
        return Err("100ms at the least".to_owned());
    }
    Ok(act::set_interval(model, at, interval))
}
