//! What a message does to the model. No I/O and no clock: the time comes with
//! the message, and what is to be done outside is returned as effects.

mod act;
mod command;

pub(crate) use command::names as command_names;
mod overlay;

use std::time::Duration;

use crate::model::{Changed, Look, Model, Notice, Sample};
use crate::msg::{Change, Effect, Msg};
use crate::press::Press;
use crate::view;

/// Applies a message that came `at` this time from the start of the program.
pub fn update(model: &mut Model, at: Duration, msg: Msg) -> Vec<Effect> {
    let before = model.demand();
    let mut effects = match msg {
        Msg::Press(press) => press_key(model, at, press),
        Msg::Paste(text) => overlay::paste(model, &text),
        Msg::Resize(width, height) => {
            model.size = (width, height);
            Vec::new()
        }
        Msg::Sample(sample) => {
            take(model, *sample);
            Vec::new()
        }
        Msg::Trouble(why) => {
            model.trouble = Some(why);
            Vec::new()
        }
        Msg::Done(Ok(text)) => say(model, at, text),
        Msg::Done(Err(text)) => complain(model, at, text),
        Msg::Changed(change, cache, done) => changed(model, at, change, cache, done),
    };
    if model
        .notice
        .as_ref()
        .is_some_and(|n| at.saturating_sub(n.since) > Notice::STAYS)
    {
        model.notice = None;
    }
    keep_visible(model);
    effects.extend(look(model));
    let demand = model.demand();
    if demand != before {
        effects.push(Effect::Demand(Box::new(demand)));
    }
    effects
}

fn press_key(model: &mut Model, at: Duration, press: Press) -> Vec<Effect> {
    model.notice = None;
    if model.overlay.is_some() {
        return overlay::press(model, at, press);
    }
    match model.settings.keys.action(press) {
        Some(action) => act::act(model, at, action),
        None => Vec::new(),
    }
}

fn take(model: &mut Model, mut sample: Sample) {
    if model.trouble.take().is_some() {
        // The sample with call sites may have been the one that failed.
        model.sites.asked = None;
    }
    model.replaced += sample.replaced;
    let (now, cpu) = (sample.at, sample.cpu_time);
    match model.spent {
        // Over five seconds, so that the figure can be read.
        Some((then, _)) if now.saturating_sub(then) < Duration::from_secs(5) => {}
        Some((then, spent)) => {
            let wall = now.saturating_sub(then).as_secs_f64();
            model.cost = Some(cpu.saturating_sub(spent).as_secs_f64() / wall);
            model.spent = Some((now, cpu));
        }
        None => model.spent = Some((now, cpu)),
    }
    let read = sample.sites.take();
    if model.time.push(sample) {
        arrange(model);
    }
    let look = read.zip(model.time.newest.as_ref());
    if let Some(look) = look.and_then(|(read, newest)| Look::new(read, newest)) {
        model.sites.now = Some(look);
    }
}

/// Asks for call sites when their screen is opened, or shows another cache.
fn look(model: &mut Model) -> Option<Effect> {
    let wanted = crate::view::sites::wanted(model);
    let key = wanted.as_ref().map(|(key, _)| *key);
    if key == model.sites.asked {
        return None;
    }
    model.sites.asked = key;
    wanted.map(|(_, id)| Effect::Look(id))
}

/// Says what a change of the kernel came to, and remembers it.
fn changed(
    model: &mut Model,
    at: Duration,
    change: Change,
    cache: String,
    done: Result<String, String>,
) -> Vec<Effect> {
    model.changes.truncate(Changed::KEPT - 1);
    let entry = Changed {
        change,
        cache,
        done: done.clone(),
        at,
    };
    model.changes.insert(0, entry);
    match done {
        Ok(text) => say(model, at, text),
        Err(text) => complain(model, at, text),
    }
}

/// Makes the lines of the list anew.
fn arrange(model: &mut Model) {
    let Some(shown) = &model.time.shown else {
        return;
    };
    let base = if model.since_mark {
        model.time.mark.as_ref()
    } else {
        model.time.before.as_ref()
    };
    model.list.arrange(shown, base);
}

/// Scrolls the list to its cursor and holds the other screens inside their lines.
fn keep_visible(model: &mut Model) {
    let height = view::body_height(model);
    let around = match model.screen() {
        screen if screen.moves_list => screen.around,
        _ => view::overview::SCREEN.around,
    };
    model.list.scroll(height.saturating_sub(around));
    let top = view::top(model);
    if let Some(kept) = model.scroll.get_mut(model.screen) {
        *kept = top;
    }
}

fn say(model: &mut Model, at: Duration, text: impl Into<String>) -> Vec<Effect> {
    model.notice = Some(Notice {
        text: text.into(),
        bad: false,
        since: at,
    });
    Vec::new()
}

fn complain(model: &mut Model, at: Duration, text: impl Into<String>) -> Vec<Effect> {
    model.notice = Some(Notice {
        text: text.into(),
        bad: true,
        since: at,
    });
    Vec::new()
}

#[cfg(test)]
mod tests;
