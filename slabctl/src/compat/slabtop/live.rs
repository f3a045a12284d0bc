//! slabtop that repeats: a frame every so often, keys in between.
//!
//! The terminal's line mode and echo are off while it runs and are put back
//! when it ends in any way but a signal from outside: Ctrl-C comes as a byte.
//! There is no handler for SIGTERM or SIGHUP; `reset` helps after those.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use collectors::source::Source;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use rustix::termios::{isatty, tcgetattr, tcgetwinsize, tcsetattr};

use super::options::{Options, Sort};
use super::{demand, frame};

const INTERRUPT: u8 = 3;
const END_OF_INPUT: u8 = 4;

/// Whether a run repeats: on a terminal, from a source that changes.
pub(crate) fn repeats(options: &Options, source: &dyn Source) -> bool {
    !options.once && source.is_live() && isatty(rustix::stdio::stdout())
}

/// Unbuffered, silent input; dropped, it puts the terminal back.
struct RawInput(Option<Termios>);

impl RawInput {
    /// Nothing changes when standard input is no terminal.
    fn enter() -> io::Result<Self> {
        let stdin = rustix::stdio::stdin();
        if !isatty(stdin) {
            return Ok(Self(None));
        }
        let before = tcgetattr(stdin)?;
        let mut raw = before.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin, OptionalActions::Now, &raw)?;
        Ok(Self(Some(before)))
    }
}

impl Drop for RawInput {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // Nothing is left to be done when this fails.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
        }
    }
}

/// What a key asks for.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Quit,
    Refresh,
    Sort(Sort),
    Nothing,
}

fn action(key: u8) -> Action {
    match key {
        b'q' | b'Q' | INTERRUPT | END_OF_INPUT => Action::Quit,
        b' ' => Action::Refresh,
        key => Sort::from_letter(char::from(key)).map_or(Action::Nothing, Action::Sort),
    }
}

/// Repaints a frame every `options.delay` until `q`.
pub(crate) fn run_live(
    mut options: Options,
    source: &mut dyn Source,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let _raw = RawInput::enter()?;
    let demand = demand(&options);
    let mut keys = Keys { open: true };
    // The screen is cleared once; later frames are painted over the last one.
    out.write_all(b"\x1b[2J")?;
    'frames: loop {
        let snapshot = source.sample(&demand).map_err(crate::open::with_hints)?;
        let next = Instant::now() + options.delay;
        loop {
            paint(&options, &snapshot, out)?;
            match keys.wait(next)? {
                Some(Action::Quit) => break 'frames,
                // The order of a frame can change without a new sample.
                Some(Action::Sort(sort)) => options.sort = sort,
                Some(Action::Nothing) => {}
                Some(Action::Refresh) | None => continue 'frames,
            }
        }
    }
    out.write_all(b"\r\n")?;
    out.flush()?;
    Ok(())
}

fn paint(
    options: &Options,
    snapshot: &collectors::model::Snapshot,
    out: &mut dyn Write,
) -> io::Result<()> {
    let size = tcgetwinsize(rustix::stdio::stdout());
    let (rows, cols) = size.map_or((24, 80), |s| (s.ws_row, s.ws_col));
    let rows = if rows == 0 { 24 } else { rows };
    let cols = if cols == 0 { 80 } else { cols };
    let text = frame(options, snapshot, usize::from(rows), usize::from(cols));
    // Home; each line clears its rest, then the rest of the screen.
    let text = text.replace("\r\n", "\x1b[K\r\n");
    write!(out, "\x1b[H{text}\x1b[K\x1b[J")?;
    out.flush()
}

struct Keys {
    /// False once standard input has ended: then there is only the clock.
    open: bool,
}

impl Keys {
    /// The next key's action, or `None` when the time has come.
    fn wait(&mut self, until: Instant) -> io::Result<Option<Action>> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if !self.open {
                std::thread::sleep(left);
                return Ok(None);
            }
            if !self.ready(left)? {
                continue;
            }
            let mut byte = [0u8; 1];
            match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
                Ok(0) | Err(Errno::IO) => self.open = false,
                Ok(_) => return Ok(Some(action(byte[0]))),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    #[expect(clippy::unused_self, reason = "belongs to the keys")]
    fn ready(&self, left: Duration) -> io::Result<bool> {
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let stdin = rustix::stdio::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(count) => Ok(count > 0),
            // A changed window size interrupts; the frame after it fits again.
            Err(Errno::INTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_what_they_do_in_slabtop() {
        assert_eq!(action(b'q'), Action::Quit);
        assert_eq!(action(INTERRUPT), Action::Quit);
        assert_eq!(action(b' '), Action::Refresh);
        assert_eq!(action(b'c'), Action::Sort(Sort::CacheSize));
        assert_eq!(action(b'C'), Action::Sort(Sort::CacheSize));
        assert_eq!(action(b'x'), Action::Nothing);
        assert_eq!(action(0xff), Action::Nothing);
    }
}
