//! `slabctl top`: the live screen.
//!
//! This is the wiring: options and environment in, the screen of the `tui`
//! crate on a terminal.

mod config;
mod host;
mod look;

use collectors::filter::Filter;
use tui::config::SHORTEST;
use tui::glyphs::Glyphs;
use tui::model::{List, Settings};
use tui::run::{Error, LinesError, Open, Options};

use super::Context;
use crate::cli::{Paths, Top};
use crate::fail::{Failure, Status};
use crate::{interval, open};

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Top) -> anyhow::Result<Status> {
    if args.list_keys {
        let mut out = Context::out();
        std::io::Write::write_all(&mut out, tui::keys::document().as_bytes())?;
        std::io::Write::flush(&mut out)?;
        return Ok(Status::Ok);
    }
    let options = options(context, args)?;
    if args.linear || !context.screen.terminal || look::is_dumb() {
        return as_lines(context, args, options);
    }
    if args.count.is_some() {
        return Err(Failure::usage("--count goes with --linear").into());
    }
    let host = host::Files::new(&context.global);
    match tui::run::run(options, opener(context, args.paths.how), Box::new(host)) {
        Ok(()) => Ok(Status::Ok),
        Err(error) => Err(failure(error)),
    }
}

fn as_lines(context: &Context, args: &Top, options: Options) -> anyhow::Result<Status> {
    if args.count == Some(0) {
        return Err(Failure::usage("--count 0 would show nothing").into());
    }
    let mut source = open::counted(&context.global, args.paths.how)?;
    let mut out = Context::out();
    match tui::run::lines(options, &mut *source, args.count, &mut out) {
        Ok(()) => Ok(Status::Ok),
        Err(LinesError::Source(error)) => Err(open::with_hints(error).into()),
        Err(LinesError::Write(error)) => Err(error.into()),
    }
}

/// Opens the source that the options name, on the thread that reads it.
fn opener(context: &Context, paths: Option<Paths>) -> Open {
    let mut global = context.global.clone();
    // The header says that it is a demonstration; a line would spoil the screen.
    global.quiet = true;
    Box::new(move || Ok(open::counted(&global, paths)?))
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

/// The configuration, then the options, which have the last word.
fn options(context: &Context, args: &Top) -> Result<Options, Failure> {
    let global = &context.global;
    let mut settings = Settings {
        glyphs: look::glyphs(),
        zone: jiff::tz::TimeZone::system(),
        allow_write: args.allow_write,
        can_capture: global.from.is_none() && !open::has_engine(global),
        ..Settings::default()
    };
    let mut list = List::default();
    config::apply(args.config.as_deref(), &mut settings, &mut list)?;
    if args.ascii {
        settings.glyphs = Glyphs::ASCII;
    }
    if global.bytes || global.si || global.iec {
        settings.scale = global.scale();
    }
    if let Some(text) = &args.interval {
        settings.interval = interval::parse(text)?;
        if settings.interval < SHORTEST {
            return Err(Failure::usage(format!(
                "--interval {text}: {SHORTEST:?} at the least"
            )));
        }
    }
    if let Some(text) = &args.history {
        settings.history = interval::parse(text)?;
    }
    settings.theme = look::theme(context, args, settings.theme)?;
    shape(args, &mut list)?;
    Ok(Options {
        settings,
        list,
        screen: screen(args)?,
        alternate: !args.no_alt_screen,
    })
}

/// Which caches, in which order, with which columns.
fn shape(args: &Top, list: &mut List) -> Result<(), Failure> {
    list.reverse = args.reverse;
    if args.all {
        list.hide_empty = false;
    }
    if !args.patterns.is_empty() || args.filter.is_some() {
        let typed = args.filter.as_deref().unwrap_or_default();
        list.filter = Filter::patterns(&args.patterns)?.and(match typed {
            "" => Filter::all(),
            text => Filter::parse(text)?,
        });
        list.filter_text = one_filter(&args.patterns, typed);
    }
    let column = |name: &str| tui::menu::column(name).map_err(Failure::usage);
    if let Some(name) = &args.sort {
        list.sort = column(name)?;
    }
    if !args.columns.is_empty() {
        let names = args.columns.iter().filter(|name| !name.is_empty());
        list.columns = names.map(|name| column(name)).collect::<Result<_, _>>()?;
    }
    Ok(())
}

/// The patterns, any of which may hold, and the expression, as one text of the filter language.
fn one_filter(patterns: &[String], expression: &str) -> String {
    let patterns = patterns.join(" or ");
    match (&*patterns, expression) {
        (all, "") | ("", all) => all.to_owned(),
        (patterns, expression) => format!("({patterns}) and ({expression})"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_one_filter_that_means_the_same() {
        let text = |patterns: &[&str], expression: &str| {
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
            let text = one_filter(&patterns, expression);
            assert!(Filter::parse(&text).is_ok(), "{text}");
            text
        };
        assert_eq!(text(&["kmalloc-*", "dentry"], ""), "kmalloc-* or dentry");
        assert_eq!(text(&[], "size>1M or part>9"), "size>1M or part>9");
        let both = text(&["a*", "b*"], "size>1M or part>9");
        assert_eq!(both, "(a* or b*) and (size>1M or part>9)");
    }
}
