//! What one operation on a debug cache carries along: who runs it, and the report it makes.
//!
//! Reports are written into memory mapped for them while a lock is held, and leave as one piece when no lock is held,
//! so that who receives them may allocate. Nothing here uses the global allocator.

use core::fmt;

use super::depot::{self, MAX_FRAMES, StackDepot};
use super::symbols::{self, Symbols};
use super::track::Track;
use crate::finding::{Fault, Finding};
use crate::segment;
use crate::sys;

/// Bytes of a report at most; what is beyond is cut.
const TEXT_BYTES: usize = 256 << 10;

/// Findings of one operation that are kept as data.
pub const MOST_FINDINGS: usize = 8;

/// Where reports of debug caches go.
#[derive(Debug, Clone, Copy, Default)]
pub enum Report {
    /// To standard error, each with one write.
    #[default]
    Stderr,
    /// To a function, which runs without locks of the engine held.
    Call(fn(&str)),
    /// To a function, with what was found as data: the first [`MOST_FINDINGS`] of an operation.
    Findings(fn(&str, &[Finding])),
}

impl PartialEq for Report {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Stderr, Self::Stderr) => true,
            (Self::Call(a), Self::Call(b)) => std::ptr::fn_addr_eq(*a, *b),
            (Self::Findings(a), Self::Findings(b)) => std::ptr::fn_addr_eq(*a, *b),
            _ => false,
        }
    }
}

impl Eq for Report {}

/// What happens after a fault was reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFault {
    /// The object goes out of use and the program goes on.
    #[default]
    Quarantine,
    /// The process is aborted.
    Abort,
}

/// Zeroed memory from the system, given back when dropped.
#[derive(Debug, Default)]
struct Mapped {
    at: usize,
    bytes: usize,
}

impl Mapped {
    /// At least `bytes` bytes; empty when the system refuses.
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes < bytes {
            *self = Self::default();
            let bytes = bytes.next_multiple_of(sys::PAGE);
            self.at = sys::map_lazy(bytes);
            self.bytes = if self.at == 0 { 0 } else { bytes };
        }
        if self.at == 0 {
            return &mut [];
        }
        // SAFETY: a mapping of that many initialised bytes, ours until dropped and borrowed with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.at as *mut u8, self.bytes) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: our own mapping, or nothing; all borrows have ended.
        unsafe { sys::unmap(self.at, self.bytes) };
    }
}

/// The text of a report.
#[derive(Debug, Default)]
pub struct Text {
    memory: Mapped,
    len: usize,
}

impl Text {
    /// What was written.
    pub fn as_str(&mut self) -> &str {
        let len = self.len;
        if len == 0 {
            return "";
        }
        let bytes = self.memory.room(TEXT_BYTES).get(..len).unwrap_or(&[]);
        // A character may have been cut at the end.
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => bytes
                .get(..error.valid_up_to())
                .and_then(|bytes| core::str::from_utf8(bytes).ok())
                .unwrap_or(""),
        }
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let len = self.len;
        let room = self.memory.room(TEXT_BYTES).get_mut(len..);
        let room = room.unwrap_or(&mut []);
        let n = room.len().min(text.len());
        for (to, from) in room.iter_mut().zip(text.as_bytes()) {
            *to = *from;
        }
        self.len += n;
        Ok(())
    }
}

/// Two buffers of a size, apart from each other.
#[derive(Debug, Default)]
pub struct Scratch(Mapped);

impl Scratch {
    /// Two buffers of `bytes` bytes, or empty ones when the system refuses.
    pub fn pair(&mut self, bytes: usize) -> (&mut [u8], &mut [u8]) {
        let room = self.0.room(bytes.saturating_mul(2));
        match room.split_at_mut_checked(bytes) {
            Some((first, second)) => (first, second.get_mut(..bytes).unwrap_or(&mut [])),
            None => (&mut [], &mut []),
        }
    }
}

/// One operation.
#[derive(Debug)]
pub struct Operation {
    /// Who runs it, if that was asked for.
    pub track: Track,
    frames: [usize; MAX_FRAMES],
    nr_frames: usize,
    /// The report.
    pub text: Text,
    /// Room for copies.
    pub scratch: Scratch,
    /// A fault was found.
    pub fault: bool,
    findings: [Finding; MOST_FINDINGS],
    nr_findings: usize,
}

impl Default for Operation {
    fn default() -> Self {
        Self::new()
    }
}

impl Operation {
    /// An operation that nobody is known to run.
    pub fn new() -> Self {
        Self {
            track: Track::default(),
            frames: [0; MAX_FRAMES],
            nr_frames: 0,
            text: Text::default(),
            scratch: Scratch::default(),
            fault: false,
            findings: [const { Finding::new(0, 0, Fault::AlreadyFree) }; MOST_FINDINGS],
            nr_findings: 0,
        }
    }

    /// Finds out who runs this. The engine's own frames are left out, told by `own_code` (see
    /// [`crate::EngineConfig::own_code`]), or if that is empty by the functions on the way into it. Not to be called with
    /// a lock held.
    pub fn identify(&mut self, depot: Option<&StackDepot<'_>>, own_code: (usize, usize)) {
        // The library around the engine may have many frames where nothing is inlined.
        let mut deep = [0; 2 * MAX_FRAMES];
        let n = depot::capture(0, &mut deep);
        let frames = deep.get(..n).unwrap_or(&[]);
        let own = own_code.0..own_code.1;
        let skip = if own.is_empty() {
            let known = frames.iter().take(10).rposition(|&frame| {
                // A return address may already be that of the next function.
                crate::cache::is_entry(depot::function_of(frame.wrapping_sub(1)))
            });
            known.map_or(0, |at| at + 1)
        } else {
            frames
                .iter()
                .take_while(|frame| own.contains(frame))
                .count()
        };
        let skip = skip.min(n.saturating_sub(1));
        self.nr_frames = 0;
        for (to, from) in self.frames.iter_mut().zip(frames.iter().skip(skip)) {
            *to = *from;
            self.nr_frames += 1;
        }
        let frames = self.frames.get(..self.nr_frames).unwrap_or(&[]);
        self.track = Track {
            caller: frames.first().map_or(0, |&frame| frame as u64),
            stack: depot.and_then(|depot| depot.save(frames)),
            cpu: cpu(),
            thread: thread_id(),
            time_ns: now_ns(),
        };
    }

    /// The stack, innermost frame first.
    pub fn frames(&self) -> &[usize] {
        self.frames.get(..self.nr_frames).unwrap_or(&[])
    }

    /// The text to write to, and the frames.
    pub(super) fn parts(&mut self) -> (&mut Text, &[usize], &mut Scratch) {
        let frames = self.frames.get(..self.nr_frames).unwrap_or(&[]);
        (&mut self.text, frames, &mut self.scratch)
    }

    /// Sends the text off and forgets it. Not to be called with a lock held.
    pub fn send(&mut self, to: Report) {
        if self.text.as_str().is_empty() {
            return;
        }
        let mut named = Text::default();
        // Writing to a text does not fail; what does not fit is cut.
        let _ = symbols::expand(self.text.as_str(), &Symbols, &mut named);
        self.text.clear();
        let text = named.as_str();
        match to {
            Report::Stderr => {
                // SAFETY: the buffer is readable for its length. What does not get through is lost.
                unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
            }
            Report::Call(call) => call(text),
            Report::Findings(call) => {
                call(text, self.findings.get(..self.nr_findings).unwrap_or(&[]));
            }
        }
        self.nr_findings = 0;
        if self.fault {
            segment::after_report(false);
        }
    }

    /// Notes a fault that the text reports.
    pub fn found(&mut self, finding: Finding) {
        self.fault = true;
        if let Some(place) = self.findings.get_mut(self.nr_findings) {
            *place = finding;
            self.nr_findings += 1;
        }
    }
}

/// Ends the process after a report, with the last figures published. No lock is held.
pub(crate) fn stop() -> ! {
    segment::after_report(true);
    std::process::abort()
}

/// Nanoseconds of the monotonic clock.
pub fn now_ns() -> u64 {
    // SAFETY: an all-zero timespec is valid, and the call fills it.
    let now = unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
        now
    };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The processor this runs on.
pub fn cpu() -> u32 {
    // SAFETY: no preconditions.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The thread's number in the system.
pub fn thread_id() -> u32 {
    // SAFETY: no preconditions.
    u32::try_from(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap_or(0)
}

/// The thread's name, in a buffer.
pub fn thread_name(buffer: &mut [u8; 16]) -> &str {
    // SAFETY: the call writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, buffer.as_mut_ptr()) };
    let len = buffer.iter().position(|&b| b == 0).unwrap_or(buffer.len());
    core::str::from_utf8(buffer.get(..len).unwrap_or(&[])).unwrap_or("?")
}
