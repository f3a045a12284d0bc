//! What each action of the key table does.

use std::time::Duration;

use collectors::units::Scale;

use super::{arrange, complain, say};
use crate::keys::Action;
use crate::model::{Model, Overlay, Prompt, PromptKind, Shown};
use crate::msg::{Change, Effect};
use crate::screens::SCREENS;
use crate::view;

/// Times between two samples that `+` and `_` go through, in milliseconds.
const INTERVALS: [u64; 9] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// Does what was asked for.
pub(super) fn act(model: &mut Model, at: Duration, action: Action) -> Vec<Effect> {
    match action {
        Action::Quit => return vec![Effect::Quit { keep: false }],
        Action::QuitKeep => return vec![Effect::Quit { keep: true }],
        Action::Suspend => return vec![Effect::Suspend],
        Action::Redraw => return vec![Effect::Redraw],
        Action::Help => {
            model.overlay = Some(Overlay::Help {
                search: String::new(),
                top: 0,
            });
        }
        Action::Back => back(model),
        Action::Down => step(model, 1),
        Action::Up => step(model, -1),
        Action::PageDown => step(model, page(model)),
        Action::PageUp => step(model, -page(model)),
        Action::HalfDown => step(model, page(model) / 2),
        Action::HalfUp => step(model, -(page(model) / 2)),
        Action::Top => step(model, isize::MIN),
        Action::Bottom => step(model, isize::MAX),
        Action::Open => open(model),
        Action::Left | Action::Right | Action::View | Action::Turn => around(model, action),
        Action::Refresh => return refresh(model, at),
        Action::NextScreen => show(model, (model.screen + 1) % SCREENS.len()),
        Action::PreviousScreen => show(model, (model.screen + SCREENS.len() - 1) % SCREENS.len()),
        Action::LastScreen => show(model, model.last_screen),
        Action::Screen(place) => show(model, place),
        Action::Filter
        | Action::Jump
        | Action::Export
        | Action::Snapshot
        | Action::Palette
        | Action::Sort
        | Action::Columns => return ask(model, at, action),
        Action::SortLeft => move_sort(model, -1),
        Action::SortRight => move_sort(model, 1),
        Action::Reverse | Action::Units | Action::HideEmpty | Action::Aliases | Action::Deltas => {
            return switch(model, at, action);
        }
        Action::Pause
        | Action::StepBack
        | Action::StepForward
        | Action::MinuteBack
        | Action::MinuteForward => travel(model, action),
        Action::Faster => return interval(model, at, -1),
        Action::Slower => return interval(model, at, 1),
        Action::Mark => return mark(model, at),
        Action::ClearMark => {
            model.time.mark = None;
            model.sites.marked = None;
            model.since_mark = false;
            arrange(model);
        }
        Action::Validate => return change(model, at, Change::Validate),
        Action::Shrink => return change(model, at, Change::Shrink),
    }
    Vec::new()
}

/// Lines of a page.
fn page(model: &Model) -> isize {
    isize::try_from(view::body_height(model).max(1)).unwrap_or(1)
}

/// Moves the cursor of the list, or scrolls a screen that has none.
fn step(model: &mut Model, by: isize) {
    let moved = |from: usize, last: usize| from.saturating_add_signed(by).min(last);
    if model.screen().moves_list {
        let last = model.list.lines.len().saturating_sub(1);
        let index = moved(model.list.index(), last);
        model.list.select(index);
        return;
    }
    if let Some(page) = model.screen().page(model).filter(|p| !p.picks.is_empty()) {
        let now = page.picked(model);
        let next = moved(now, page.picks.len() - 1);
        // At the last one, what is below it can still be scrolled to.
        let at_end = next == now && by > 0;
        if let Some(spot) = model.spots.get_mut(model.screen) {
            spot.pick(&page.picks, next);
            spot.away = at_end;
        }
        if !at_end {
            return;
        }
    }
    let last = view::last_top(model);
    if let Some(top) = model.scroll.get_mut(model.screen) {
        *top = moved(*top, last);
    }
}

/// Shows another screen.
pub(super) fn show(model: &mut Model, place: usize) {
    if place >= SCREENS.len() || place == model.screen {
        return;
    }
    if model.list.selected.is_none() {
        // Otherwise the cache looked at would be whichever comes first.
        model.list.select(0);
    }
    model.last_screen = model.screen;
    model.screen = place;
}

/// Shows the cache under the cursor, or the one that the picked line is about.
fn open(model: &mut Model) {
    let Some(place) = crate::screens::place("cache") else {
        return;
    };
    if model.screen().moves_list {
        show(model, place);
    } else if let Some(page) = model.screen().page(model)
        && let Some(key) = page.picks.get(page.picked(model)).and_then(|p| p.key)
    {
        model.list.selected = Some((key, None));
        show(model, place);
    }
}

/// Moves sideways, or shows another view of the screen.
fn around(model: &mut Model, action: Action) {
    let Some(spot) = model.spots.get_mut(model.screen) else {
        return;
    };
    match action {
        Action::Left => spot.across = spot.across.saturating_sub(1),
        Action::Right => spot.across = spot.across.saturating_add(1),
        Action::View => spot.view = spot.view.wrapping_add(1),
        _ => {
            spot.turned ^= true;
            spot.across = 0;
        }
    }
}

/// Call sites are asked for again.
fn refresh(model: &mut Model, at: Duration) -> Vec<Effect> {
    if view::sites::wanted(model).is_none() {
        return say(model, at, "nothing here is read on demand only");
    }
    model.sites.asked = None;
    say(model, at, "reading the call sites")
}

fn back(model: &mut Model) {
    if model.screen != 0 {
        show(model, 0);
    } else if !model.list.filter.is_all() {
        model.list.filter = collectors::filter::Filter::all();
        model.list.filter_text.clear();
        arrange(model);
    }
}

fn prompt(model: &mut Model, kind: PromptKind, text: String) {
    model.overlay = Some(Overlay::Prompt(Prompt {
        kind,
        text,
        error: None,
    }));
}

fn ask(model: &mut Model, at: Duration, action: Action) -> Vec<Effect> {
    match action {
        Action::Filter => {
            let text = model.list.filter_text.clone();
            prompt(model, PromptKind::Filter, text);
        }
        Action::Jump => prompt(model, PromptKind::Jump, String::new()),
        Action::Export => prompt(model, PromptKind::Export, String::new()),
        Action::Palette => prompt(model, PromptKind::Palette, String::new()),
        Action::Snapshot if model.settings.can_capture => {
            prompt(model, PromptKind::Snapshot, String::new());
        }
        Action::Snapshot => {
            return complain(
                model,
                at,
                "only a running kernel can be written into a snapshot",
            );
        }
        Action::Columns => model.overlay = Some(Overlay::Columns { cursor: 0 }),
        _ => model.overlay = Some(Overlay::Sort),
    }
    Vec::new()
}

fn move_sort(model: &mut Model, by: isize) {
    let columns = &model.list.columns;
    let sortable: Vec<&Shown> = columns.iter().filter(|c| **c != Shown::Trend).collect();
    let Some(last) = sortable.len().checked_sub(1) else {
        return;
    };
    let now = sortable.iter().position(|c| **c == model.list.sort);
    let next = now.map_or(0, |n| n.saturating_add_signed(by).min(last));
    model.list.sort = *sortable[next];
    arrange(model);
}

fn switch(model: &mut Model, at: Duration, action: Action) -> Vec<Effect> {
    let on = |on: bool, yes: &str, no: &str| if on { yes.to_owned() } else { no.to_owned() };
    let text = match action {
        Action::Units => {
            model.settings.scale = match model.settings.scale {
                Scale::Iec => Scale::Si,
                Scale::Si => Scale::Bytes,
                Scale::Bytes => Scale::Iec,
            };
            match model.settings.scale {
                Scale::Iec => "sizes in powers of 1024".to_owned(),
                Scale::Si => "sizes in powers of 1000".to_owned(),
                Scale::Bytes => "sizes in bytes".to_owned(),
            }
        }
        Action::HideEmpty => {
            model.list.hide_empty ^= true;
            on(
                model.list.hide_empty,
                "empty caches are hidden",
                "empty caches are shown",
            )
        }
        Action::Aliases => {
            model.list.by_name ^= true;
            on(
                model.list.by_name,
                "one line for each name",
                "one line for each cache",
            )
        }
        Action::Deltas if model.time.mark.is_none() => {
            return complain(model, at, "no mark to compare with: m sets one");
        }
        Action::Deltas => {
            model.since_mark ^= true;
            on(
                model.since_mark,
                "changes since the mark",
                "changes for a second",
            )
        }
        _ => {
            model.list.reverse ^= true;
            on(model.list.reverse, "smallest first", "largest first")
        }
    };
    arrange(model);
    say(model, at, text)
}

fn travel(model: &mut Model, action: Action) {
    const MINUTE: Duration = Duration::from_secs(60);
    let now = model.time.shown.as_ref().map_or(Duration::ZERO, |m| m.at);
    match action {
        Action::StepBack => model.time.go(model.time.back + 1),
        Action::StepForward => model.time.go(model.time.back.saturating_sub(1)),
        Action::MinuteBack => model.time.go_to(now.saturating_sub(MINUTE)),
        Action::MinuteForward => model.time.go_to(now + MINUTE),
        _ => model.time.pause(!model.time.paused),
    }
    arrange(model);
}

fn interval(model: &mut Model, at: Duration, by: isize) -> Vec<Effect> {
    let now = u64::try_from(model.settings.interval.as_millis()).unwrap_or(u64::MAX);
    let next = if by < 0 {
        INTERVALS.iter().rev().find(|ms| **ms < now)
    } else {
        INTERVALS.iter().find(|ms| **ms > now)
    };
    match next {
        Some(ms) => set_interval(model, at, Duration::from_millis(*ms)),
        None => Vec::new(),
    }
}

/// Changes the time between two samples.
pub(super) fn set_interval(model: &mut Model, at: Duration, interval: Duration) -> Vec<Effect> {
    if !model.live {
        return complain(model, at, "a saved file does not change");
    }
    model.settings.interval = interval;
    say(model, at, format!("a sample every {interval:?}"));
    vec![Effect::Interval(interval)]
}

fn mark(model: &mut Model, at: Duration) -> Vec<Effect> {
    let Some(shown) = &model.time.shown else {
        return Vec::new();
    };
    model.time.mark = Some(shown.clone());
    model.sites.marked.clone_from(&model.sites.now);
    arrange(model);
    say(model, at, "marked: d shows the changes since now")
}

fn change(model: &mut Model, at: Duration, change: Change) -> Vec<Effect> {
    if !model.settings.allow_write {
        return complain(model, at, "changing the kernel needs --allow-write");
    }
    if !model.settings.can_capture {
        // The name of a cache of another source may be one of this kernel's too.
        return complain(model, at, "only a running kernel can be changed");
    }
    let Some((_, cache)) = model.selected() else {
        return Vec::new();
    };
    let id = cache.sysfs_id.as_deref().unwrap_or(&cache.name).to_owned();
    model.overlay = Some(Overlay::Confirm { change, cache: id });
    Vec::new()
}
