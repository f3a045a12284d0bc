//! The loop: events in, frames out.
//!
//! It draws when something changed, at most every 25 milliseconds, and waits
//! otherwise. Reading the source, waiting for keys and writing files are done
//! by other threads, so a key is answered while a sample takes its time.

mod app;
mod event;
mod lines;
mod sampler;
mod terminal;
mod threads;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::time::{Duration, Instant};

pub use app::App;
pub use event::{Event, SourceError};
pub use lines::{LinesError, lines};
pub use sampler::{Control, Mailbox, Open, Sampling};
pub use threads::Job;

use crate::host::Host;
use crate::model::{Model, Settings};
use ratatui::Terminal;

/// Messages that may wait for the loop.
const QUEUE: usize = 64;

/// How long the terminal is left alone until the source says whether it can be
/// read: most failures are known by then, and are told as a plain line.
const PATIENCE: Duration = Duration::from_millis(60);

/// Why the live screen ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source could not be opened, or not be read even once.
    #[error("{0}")]
    Source(SourceError),
    /// The terminal did not do what was asked of it.
    #[error("terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// How to show it.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the program was started with.
    pub settings: Settings,
    /// The model before the first sample: its list's filter, order, columns.
    pub list: crate::model::List,
    /// The screen to begin with.
    pub screen: usize,
    /// Draw on the terminal's alternate screen.
    pub alternate: bool,
}

/// Shows a source until the user leaves.
pub fn run(options: Options, open: Open, host: Box<dyn Host>) -> Result<(), Error> {
    let start = Instant::now();
    let (events, inbox) = sync_channel(QUEUE);
    let (control, orders) = channel();
    let mailbox = Arc::new(Mailbox::default());
    let mut model = Model::new(options.settings, "the source", true);
    model.list = options.list;
    model.screen = options.screen;
    sampler::spawn(Sampling {
        open,
        start,
        demand: model.demand(),
        interval: model.settings.interval,
        mailbox: Arc::clone(&mailbox),
        events: events.clone(),
        control: orders,
    })?;
    let early = wait_for_source(&inbox)?;
    threads::signals(events.clone())?;
    let jobs = threads::worker(host, events.clone())?;
    let taken = terminal::Taken::take(options.alternate)?;
    threads::input(events)?;
    let mut app = App {
        terminal: Terminal::new(terminal::backend())?,
        model,
        start,
        control,
        jobs,
        mailbox,
        taken: Some(taken),
        ended: None,
    };
    app.resized()?;
    for event in early {
        app.event(event)?;
    }
    let end = app.work(&inbox);
    let frame = app.last_frame();
    drop(app);
    finish(end?, &frame)
}

/// Gives the source a moment; what it says by then is returned.
fn wait_for_source(inbox: &Receiver<Event>) -> Result<Vec<Event>, Error> {
    let until = Instant::now() + PATIENCE;
    let mut early = Vec::new();
    loop {
        match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Failed(error)) => return Err(Error::Source(error)),
            Ok(event) => {
                let first = matches!(event, Event::Mail);
                early.push(event);
                if first {
                    return Ok(early);
                }
            }
            Err(RecvTimeoutError::Timeout) => return Ok(early),
            Err(RecvTimeoutError::Disconnected) => {
                let error = io::Error::other("the thread that reads the source ended");
                return Err(error.into());
            }
        }
    }
}

/// How the loop ended.
#[derive(Debug)]
pub enum End {
    /// The user left; whether the last frame is to stay.
    Left {
        /// Whether the last frame is to stay.
        keep: bool,
    },
    /// A signal.
    Signal(i32),
    /// The source could not be read even once.
    Source(SourceError),
}

fn finish(end: End, frame: &str) -> Result<(), Error> {
    use std::io::Write as _;
    match end {
        End::Left { keep } => {
            if keep {
                io::stdout().write_all(frame.as_bytes())?;
            }
            Ok(())
        }
        End::Signal(signal) => {
            signal_hook::low_level::emulate_default_handler(signal)?;
            Ok(())
        }
        End::Source(error) => Err(Error::Source(error)),
    }
}

/// No colour from now on, whatever a theme says.
pub fn without_colour() {
    ratatui::crossterm::style::force_color_output(false);
}

/// Colour from now on, whatever NO_COLOR says.
pub fn with_colour() {
    ratatui::crossterm::style::force_color_output(true);
}

#[cfg(test)]
mod tests;
