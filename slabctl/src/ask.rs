//! Asks before something is changed.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::fail::Failure;

/// Whether to go on: `yes` was said on the command line, or is typed now.
///
/// Without a terminal nobody can be asked, so nothing is done.
pub(crate) fn go_on(question: &str, yes: bool) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(
            Failure::usage(format!("{question} nobody can be asked here"))
                .hint("--yes goes on without a question"),
        );
    }
    let mut err = io::stderr().lock();
    let asked = write!(err, "{question} Go on? [y/N] ").and_then(|()| err.flush());
    let mut answer = String::new();
    let answered = asked.and_then(|()| io::stdin().lock().read_line(&mut answer));
    let word = answer.trim().to_ascii_lowercase();
    Ok(answered.is_ok() && matches!(&*word, "y" | "yes"))
}
