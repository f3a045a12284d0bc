//! What a message does to the model. No I/O and no clock: the time comes with
//! the message, and what is to be done outside is returned as effects.

mod act;
mod command;

pub(crate) use command::names as command_names;
mod overlay;

use std::time::Duration;

use crate::model::{Model, Notice, Sample};
use crate::msg::{Effect, Msg};
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
    };
    if model
        .notice
        .as_ref()
        .is_some_and(|n| at.saturating_sub(n.since) > Notice::STAYS)
    {
        model.notice = None;
    }
    keep_visible(model);
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

fn take(model: &mut Model, sample: Sample) {
    model.trouble = None;
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
    if model.time.push(sample) {
        arrange(model);
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
    model.list.scroll(view::overview::lines(height));
    let last = model.screen().lines(model).saturating_sub(height);
    if let Some(top) = model.scroll.get_mut(model.screen) {
        *top = (*top).min(last);
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
