//! `slabctl top`: the live screen.
//!
//! This is the wiring: options and environment in, the screen of the `tui`
//! crate on a terminal.

mod host;
mod look;

use std::time::Duration;

use collectors::filter::Filter;
use tui::model::{List, Settings};
use tui::run::{Error, Open, Options};

use super::Context;
use crate::cli::Top;
use crate::fail::{Failure, Status};
use crate::{interval, open};

/// Shortest time between two samples.
const SHORTEST: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Top) -> anyhow::Result<Status> {
    if args.list_keys {
        let mut out = Context::out();
        std::io::Write::write_all(&mut out, tui::keys::document().as_bytes())?;
        std::io::Write::flush(&mut out)?;
        return Ok(Status::Ok);
    }
    let options = Options {
        settings: settings(context, args)?,
        list: list(args)?,
        screen: screen(args)?,
        alternate: !args.no_alt_screen,
    };
    let host = host::Files::new(&context.global);
    match tui::run::run(options, opener(context), Box::new(host)) {
        Ok(()) => Ok(Status::Ok),
        Err(error) => Err(failure(error)),
    }
}

/// Opens the source that the options name, on the thread that reads it.
fn opener(context: &Context) -> Open {
    let mut global = context.global.clone();
    // The header says that it is a demonstration; a line would spoil the screen.
    global.quiet = true;
    Box::new(move || Ok(open::source(&global)?))
}

fn failure(error: Error) -> anyhow::Error {
    let error = match error {
        Error::Source(error) => error,
        other @ Error::Terminal(_) => return other.into(),
    };
    match error.downcast::<Failure>() {
        Ok(failure) => (*failure).into(),
        Err(error) => match error.downcast::<collectors::Error>() {
            Ok(error) => open::with_hints(*error).into(),
            Err(error) => anyhow::anyhow!("{error}"),
        },
    }
}

fn settings(context: &Context, args: &Top) -> Result<Settings, Failure> {
    let global = &context.global;
    let time = |text: &Option<String>, otherwise: Duration| match text {
        Some(text) => interval::parse(text),
        None => Ok(otherwise),
    };
    let standard = Settings::default();
    let every = time(&args.interval, standard.interval)?;
    if every < SHORTEST {
        return Err(Failure::usage(format!(
            "--interval {every:?}: {SHORTEST:?} at the least"
        )));
    }
    Ok(Settings {
        theme: look::theme(context, args)?,
        glyphs: look::glyphs(args.ascii),
        scale: global.scale(),
        interval: every,
        history: time(&args.history, standard.history)?,
        zone: jiff::tz::TimeZone::system(),
        allow_write: args.allow_write,
        can_capture: global.from.is_none() && global.demo.is_none(),
        ..standard
    })
}

fn list(args: &Top) -> Result<List, Failure> {
    let mut list = List {
        reverse: args.reverse,
        hide_empty: !args.all,
        ..List::default()
    };
    let typed = args.filter.clone().unwrap_or_default();
    list.filter = Filter::patterns(&args.patterns)?.and(match &args.filter {
        Some(text) => Filter::parse(text)?,
        None => Filter::all(),
    });
    let typed = [args.patterns.join(" "), typed].join(" ");
    typed.trim().clone_into(&mut list.filter_text);
    let column = |name: &str| tui::menu::column(name).map_err(Failure::usage);
    if let Some(name) = &args.sort {
        list.sort = column(name)?;
    }
    if !args.columns.is_empty() {
        let names = args.columns.iter().filter(|name| !name.is_empty());
        list.columns = names.map(|name| column(name)).collect::<Result<_, _>>()?;
    }
    Ok(list)
}

fn screen(args: &Top) -> Result<usize, Failure> {
    let Some(name) = &args.screen else {
        return Ok(0);
    };
    tui::screens::place(name).ok_or_else(|| {
        let names: Vec<_> = tui::screens::SCREENS.iter().map(|s| s.name).collect();
        Failure::usage(format!("no screen {name:?}"))
            .hint(format!("there are {}", names.join(", ")))
    })
}
