//! Shell completions: a short script that asks this program as one types, so
//! that `slabctl show kmalloc-1<TAB>` offers the caches there are.

use std::io::Write as _;

use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Zsh};

use super::Context;
use crate::cli::Shell;
use crate::fail::Status;

/// Prints the script for a shell.
pub(crate) fn run(shell: Shell) -> anyhow::Result<Status> {
    let completer: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::Zsh => &Zsh,
    };
    let mut out = Context::out();
    completer.write_registration("COMPLETE", "slabctl", "slabctl", "slabctl", &mut out)?;
    out.flush()?;
    Ok(Status::Ok)
}
