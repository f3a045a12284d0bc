//! The terminal: taken over, given back, whatever happens.

use std::io::{self, BufWriter, Stdout, Write as _};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use signal_hook::consts::SIGTSTP;

/// Where frames are drawn.
pub type Backend = CrosstermBackend<BufWriter<Stdout>>;

/// A frame is written at once.
const BUFFER: usize = 32 << 10;

/// A backend on standard output.
pub fn backend() -> Backend {
    CrosstermBackend::new(BufWriter::with_capacity(BUFFER, io::stdout()))
}

/// The terminal while it is taken over; dropped, it is given back.
#[derive(Debug)]
pub struct Taken {
    alternate: bool,
}

impl Taken {
    /// Takes the terminal over; `alternate` is whether on a screen of its own.
    pub fn take(alternate: bool) -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back(alternate);
            before(info);
            if std::thread::current().name() != Some("main") {
                // The loop would draw over the message.
                std::process::exit(101);
            }
        }));
        // Made first, so that what was taken by then is given back if the rest fails.
        let taken = Self { alternate };
        take(alternate)?;
        Ok(taken)
    }

    /// Stops the program until somebody says to go on, with the terminal given back.
    pub fn suspend(&self) -> io::Result<()> {
        give_back(self.alternate);
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        take(self.alternate)
    }

    /// Takes the terminal over again after somebody else may have used it.
    pub fn retake(&self) -> io::Result<()> {
        // The library believes what it set to be set still.
        disable_raw_mode()?;
        take(self.alternate)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back(self.alternate);
    }
}

fn take(alternate: bool) -> io::Result<()> {
    enable_raw_mode()?;
    let mut out = io::stdout();
    if alternate {
        execute!(out, EnterAlternateScreen)?;
    }
    execute!(out, Hide, EnableBracketedPaste)
}

/// Nothing is left to be done where one of these fails.
fn give_back(alternate: bool) {
    let mut out = io::stdout();
    let _ = execute!(out, DisableBracketedPaste, Show);
    if alternate {
        let _ = execute!(out, LeaveAlternateScreen);
    } else {
        let _ = out.write_all(b"\r\n");
    }
    let _ = out.flush();
    let _ = disable_raw_mode();
}
