//! Watching for the end of a process that is waited for (`EngineConfig::watcher`).
//!
//! Where its segment is mapped is looked up once; from then on a look is one read of a kilobyte
//! of its memory. When that is no segment of the process any more, as after `exec`, it is
//! looked up anew, less and less often.

use super::find::{self, says};
use super::memory::Memory as _;
use super::process::Process;
use crate::segment::format::{IDENTITY, head, identity, state};
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

/// Between two searches, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(500)];

/// Watches one process.
#[derive(Debug)]
pub struct Watch {
    pid: u32,
    /// The process's memory, and where the segment is in it.
    seen: Option<(Process, u64)>,
    next: Instant,
    pause: Duration,
}

impl Watch {
    /// Nothing is looked at yet.
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            seen: None,
            next: Instant::now(),
            pause: PAUSES[0],
        }
    }

    /// Whether the process has come to its end and waits for its watcher.
    pub fn is_waiting(&mut self) -> bool {
        if let Some((process, at)) = &self.seen {
            if let Some(now) = state_of(process, *at) {
                return now == state::ENDING;
            }
            self.seen = None;
            self.pause = PAUSES[0];
        }
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSES[1]);
        self.seen = look_up(self.pid);
        let state = { self.seen.as_ref() }.and_then(|(process, at)| state_of(process, *at));
        state == Some(state::ENDING)
    }
}

/// What the process says that it does; `None` if there is no segment of its own.
fn state_of(process: &Process, at: u64) -> Option<u64> {
    let mut bytes = [0; IDENTITY.at + 8];
    process.get(at, &mut bytes).ok()?;
    let of = says(&bytes)?;
    let state = bytes.get(head::STATE..)?.first_chunk()?;
    (of == u64::from(process.pid())).then(|| u64::from_ne_bytes(*state))
}

fn look_up(pid: u32) -> Option<(Process, u64)> {
    let found = find::of_process(pid).ok()??;
    let mut at = [0; 8];
    let place = (IDENTITY.at + identity::AT) as u64;
    found.file.read_exact_at(&mut at, place).ok()?;
    Some((Process::open(pid).ok()?, u64::from_ne_bytes(at)))
}
