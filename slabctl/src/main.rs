//! slabctl: slab memory, visible and explained.
//!
//! This file only wires: arguments in, one command, an exit status out.

mod ask;
mod cli;
mod cmd;
mod compat;
mod complete;
mod fail;
mod interval;
mod open;
mod output;
mod screen;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use fail::{Failure, Status};

fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(cli::Cli::command).complete();
    let result = match std::env::args_os()
        .next()
        .and_then(|name| compat::Tool::from_argv0(&name))
    {
        Some(tool) => cmd::compat::run(tool, std::env::args_os().skip(1).collect()),
        None => match cli::Cli::try_parse() {
            Ok(cli) => cmd::run(cli),
            Err(error) => return misused(&error),
        },
    };
    match result {
        Ok(status) => status.into(),
        Err(error) => end(&error),
    }
}

/// Wrong words on the command line, or a request for help. To who runs `check`
/// the usual status would mean that something is critical.
fn misused(error: &clap::Error) -> ExitCode {
    // Nothing more can be done when the output is gone.
    let _ = error.print();
    let check = std::env::args_os().skip(1).any(|word| word == "check");
    if error.use_stderr() && check {
        return Status::CheckUnknown.into();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
}

/// One line for the error, one for each hint. A closed pipe is no error: the
/// reader had enough.
fn end(error: &anyhow::Error) -> ExitCode {
    let broken_pipe = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe);
    if broken_pipe {
        return ExitCode::SUCCESS;
    }
    let failure = error.downcast_ref::<Failure>();
    // Nothing more can be done when standard error is gone too.
    let mut stderr = io::stderr().lock();
    let text = format!("{error:#}");
    let _ = writeln!(stderr, "slabctl: error: {}", output::text::one_line(&text));
    for hint in failure.map_or(&[][..], |f| &f.hints) {
        let _ = writeln!(stderr, "hint: {hint}");
    }
    failure.map_or(Status::Failed, |f| f.status).into()
}
