//! The commands: each takes what was asked for and writes to standard output.

pub(crate) mod advise;
pub(crate) mod bench;
pub(crate) mod capture;
pub(crate) mod cells;
pub(crate) mod check;
pub(crate) mod compat;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod explain;
pub(crate) mod man;
pub(crate) mod ps;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod select;
pub(crate) mod show;
pub(crate) mod shrink;
pub(crate) mod sides;
pub(crate) mod sites;
pub(crate) mod stat;
pub(crate) mod top;
pub(crate) mod tune;
pub(crate) mod validate;

use std::io::{self, BufWriter, Write};

use crate::cli::{Cli, Command, Global};
use crate::fail::{Failure, Status};
use crate::screen::Screen;

/// What every command needs to know.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) global: Global,
    pub(crate) screen: Screen,
}

impl Context {
    /// Standard output, buffered.
    pub(crate) fn out() -> BufWriter<io::StdoutLock<'static>> {
        BufWriter::with_capacity(64 << 10, io::stdout().lock())
    }

    /// A remark on standard error, unless told to be quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.global.quiet {
            crate::open::say(&format!("slabctl: {text}"));
        }
    }
}

/// Runs the command that was typed.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Status> {
    let context = Context {
        screen: Screen::of(&cli.global),
        global: cli.global,
    };
    match cli.command {
        None => report::run(&context, &report::plain()),
        Some(Command::Report(args)) => report::run(&context, &args),
        Some(Command::Show(args)) => show::run(&context, &args),
        Some(Command::Diff(args)) => diff::run(&context, &args),
        Some(Command::Advise(args)) => advise::run(&context, &args),
        Some(Command::Check(args)) => Ok(check::run(&context, &args)),
        Some(Command::Sites(args)) => sites::run(&context, &args),
        Some(Command::Shrink(args)) => shrink::run(&context, &args),
        Some(Command::Tune(args)) => tune::run(&context, &args),
        Some(Command::Bench(args)) => bench::run(&context, &args),
        Some(Command::Stat(args)) => stat::run(&context, &args),
        Some(Command::Top(args)) => top::run(&context, &args),
        Some(Command::Capture(args)) => capture::run(&context, &args),
        Some(Command::Dump(args)) => dump::run(&context, &args),
        Some(Command::Validate(args)) => validate::run(&context, &args),
        Some(Command::Explain(args)) => explain::run(&context, &args),
        Some(Command::Run(args)) => run::run(&context, &args),
        Some(Command::Ps) => ps::run(&context),
        Some(Command::Doctor) => doctor::run(&context),
        Some(Command::Schema { name }) => schema(name.as_deref()),
        Some(Command::Completions { shell }) => completions::run(shell),
        Some(Command::Man { dir }) => man::run(dir.as_deref()),
        Some(Command::Compat { args }) => compat::from_command(&context, args),
    }
}

fn schema(name: Option<&str>) -> anyhow::Result<Status> {
    let known = crate::output::schema::names();
    if let Some(name) = name.filter(|name| !known.contains(name)) {
        let error = format!("schema: {name:?}: no such document");
        return Err(Failure::usage(error)
            .hint(format!("known are {}", known.join(", ")))
            .into());
    }
    let mut out = Context::out();
    schema::run(name, &mut out)?;
    out.flush()?;
    Ok(Status::Ok)
}
