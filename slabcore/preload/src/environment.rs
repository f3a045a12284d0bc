//! What can be chosen by the environment: the only place that reads it.
//!
//! A value that means nothing is told in one line on standard error, and the program runs as if
//! the variable were not set. A program that runs with more rights than its caller (setuid,
//! file capabilities) takes no choices. Texts are copied, since programs write over their environment.

mod table;

pub(crate) use table::{TABLE, Variable};

use crate::output::{report, say};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use slabcore::{EngineConfig, Report};

/// What was chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub engine: EngineConfig,
    /// A file for reports.
    pub log: Option<&'static CStr>,
    /// Whether to tell what can be chosen.
    pub help: bool,
}

impl Settings {
    pub const fn new() -> Self {
        let mut engine = EngineConfig::new();
        engine.report = Report::Call(report);
        Self {
            engine,
            log: None,
            help: false,
        }
    }

    /// Takes variables over, `NAME=value` each; `complain` gets those that mean nothing: name,
    /// value, and what is wrong.
    pub fn read<'v>(
        variables: impl Iterator<Item = &'v [u8]>,
        complain: &mut dyn FnMut(&str, &str, &str),
    ) -> Self {
        let mut settings = Self::new();
        for text in variables.filter(|text| text.starts_with(b"SLABCORE_")) {
            let Ok(text) = core::str::from_utf8(text) else {
                complain("SLABCORE_*", "?", "is not UTF-8");
                continue;
            };
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            let Some(variable) = TABLE.iter().find(|it| it.name == name) else {
                complain(name, value, "is not known: SLABCORE_HELP=1 shows what is");
                continue;
            };
            // As if not set.
            if value.is_empty() && !variable.may_be_empty {
                continue;
            }
            let mut changed = settings;
            match (variable.set)(&mut changed, value) {
                Ok(()) => settings = changed,
                Err(wrong) => complain(name, value, wrong),
            }
        }
        settings
    }
}

/// Room for texts that are kept.
struct Kept {
    bytes: UnsafeCell<[u8; Self::BYTES]>,
    used: AtomicUsize,
}

// SAFETY: each piece of `bytes` is written once by who took it from `used`, and only read then.
unsafe impl Sync for Kept {}

impl Kept {
    const BYTES: usize = 16 << 10;
}

static KEPT: Kept = Kept {
    bytes: UnsafeCell::new([0; Kept::BYTES]),
    used: AtomicUsize::new(0),
};

/// A copy of a text that stays, with a zero byte behind it; `None` if it is too long.
fn keep(text: &str) -> Option<&'static CStr> {
    let len = text.len() + 1;
    let take = |used: usize| used.checked_add(len).filter(|end| *end <= Kept::BYTES);
    let at = KEPT.used.fetch_update(Relaxed, Relaxed, take).ok()?;
    // SAFETY: `at..at + len` is in the array and was taken by this call only; the byte behind the
    // text is zero from the beginning.
    let bytes = unsafe {
        let to = KEPT.bytes.get().cast::<u8>().add(at);
        core::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
        core::slice::from_raw_parts(to, len)
    };
    CStr::from_bytes_with_nul(bytes).ok()
}

/// As [`keep`], as a text.
fn keep_text(text: &str) -> Option<&'static str> {
    keep(text)?.to_str().ok()
}

/// Whether this process has more rights than who started it.
fn is_privileged() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// What was chosen for this process. Complaints are written if `aloud`.
pub(crate) fn of_process(aloud: bool) -> Settings {
    if is_privileged() {
        return Settings::new();
    }
    let mut complain = |name: &str, value: &str, wrong: &str| {
        if aloud {
            say(format_args!("{name}={value} {wrong}"));
        }
    };
    // SAFETY: the loader or the C library sets it, before there are threads, to a list that
    // ends with null; or it is null still.
    let first = unsafe { libc::environ };
    if first.is_null() {
        let mut buffer = [0; 8192];
        let text = start_of_environment(&mut buffer);
        return Settings::read(text.split(|byte| *byte == 0), &mut complain);
    }
    let texts = (0..).map_while(|at| {
        // SAFETY: entries are strings up to the null one, behind which nothing is read.
        unsafe {
            let text = *first.add(at);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_bytes())
        }
    });
    Settings::read(texts, &mut complain)
}

/// The environment as the kernel has it, while the C library does not know it yet; as much as fits.
fn start_of_environment(buffer: &mut [u8]) -> &[u8] {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero byte; the buffer has the room told; the file is ours.
    let read = unsafe {
        let file = libc::open(c"/proc/self/environ".as_ptr(), flags);
        if file < 0 {
            return &[];
        }
        let read = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(file);
        read
    };
    let text = buffer.get(..usize::try_from(read).unwrap_or(0));
    text.unwrap_or(&[])
}

#[cfg(test)]
mod tests;
