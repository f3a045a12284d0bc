//! What the output is: a terminal with a width and colours, or a pipe.

use std::io::IsTerminal as _;

use anstyle::Style;

use crate::cli::{Color, Global};

/// How to write for people here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Columns of the terminal; `None` for a pipe or file, where nothing is left out.
    pub(crate) width: Option<usize>,
    /// Standard output is a terminal.
    pub(crate) terminal: bool,
    /// Colour is wanted here.
    pub(crate) colour: bool,
    /// Style of headings; plain where colour is off.
    pub(crate) heading: Style,
}

impl Screen {
    /// Looks at standard output and the options.
    pub(crate) fn of(global: &Global) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let colour = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let choice = anstream::AutoStream::choice(&std::io::stdout());
                choice != anstream::ColorChoice::Never && (forced() || !dumb())
            }
        };
        Self {
            width: terminal.then(width).flatten(),
            terminal,
            colour,
            heading: if colour {
                Style::new().bold()
            } else {
                Style::new()
            },
        }
    }

    /// No colour, this width.
    pub(crate) const fn plain(width: Option<usize>) -> Self {
        Self {
            width,
            terminal: false,
            colour: false,
            heading: Style::new(),
        }
    }
}

/// The library takes a build server's word (`CI`) over the terminal's.
fn dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

fn forced() -> bool {
    std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0")
}

fn width() -> Option<usize> {
    let from_terminal = rustix::termios::tcgetwinsize(std::io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    from_terminal.or_else(|| std::env::var("COLUMNS").ok()?.parse().ok())
}
