//! Where lines and reports go: standard error, or a file, without allocating.
//!
//! The file is opened for each report, since programs close descriptors that they do not know
//! and get their numbers for something else. It is a regular file, never what a link points to,
//! and is appended to.

use core::ffi::CStr;
use core::fmt::{self, Write};
use std::sync::OnceLock;

/// Bytes of a line at most; what is beyond is cut.
const LINE: usize = 512;

/// The path of the file for reports, if there is one.
static LOG: OnceLock<&'static CStr> = OnceLock::new();

/// Has reports written to a file from now on.
pub(crate) fn set_log(path: &'static CStr) {
    // Set by whoever is first; all would set the same.
    let _ = LOG.set(path);
}

/// Writes all of a text, as far as the system takes it.
fn write_all(file: i32, mut text: &[u8]) {
    while !text.is_empty() {
        // SAFETY: the bytes are readable.
        let done = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
        match usize::try_from(done).map(|done| text.get(done..)) {
            Ok(Some(rest)) if done > 0 => text = rest,
            // SAFETY: this thread's errno, always there.
            Err(_) if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            _ => return,
        }
    }
}

/// Opens the file; `None` if it is not what it should be.
fn open(path: &CStr) -> Option<i32> {
    let flags = libc::O_WRONLY
        | libc::O_CREAT
        | libc::O_APPEND
        | libc::O_NOFOLLOW
        | libc::O_CLOEXEC
        | libc::O_NONBLOCK
        | libc::O_NOCTTY;
    // SAFETY: the path ends with a zero byte.
    let file = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if file < 0 {
        return None;
    }
    // SAFETY: an all-zero record is valid, and the call fills it.
    let regular = unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        libc::fstat(file, &raw mut stat) == 0
            && stat.st_mode & libc::S_IFMT == libc::S_IFREG
            && stat.st_nlink == 1
    };
    if !regular {
        // SAFETY: opened above, known to nobody else.
        unsafe { libc::close(file) };
        return None;
    }
    Some(file)
}

/// Writes a report of the engine.
pub(crate) fn report(text: &str) {
    if let Some(path) = LOG.get()
        && let Some(file) = open(path)
    {
        write_all(file, text.as_bytes());
        // SAFETY: opened above, known to nobody else.
        unsafe { libc::close(file) };
        return;
    }
    write_all(2, text.as_bytes());
}

/// A line that is being written.
struct Line {
    bytes: [u8; LINE],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is kept for the end of the line.
        let room = self.bytes.get_mut(self.len..LINE - 1).unwrap_or(&mut []);
        let n = room.len().min(text.len());
        for (to, from) in room.iter_mut().zip(text.as_bytes()) {
            // A value of the environment may have anything in it.
            *to = if from.is_ascii_control() { b'?' } else { *from };
        }
        self.len += n;
        Ok(())
    }
}

/// Writes `slabcore: ` and a line to standard error, in one write.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let mut line = Line {
        bytes: [0; LINE],
        len: 0,
    };
    // Writing to a line does not fail; what does not fit is cut.
    let _ = write!(line, "slabcore: {text}");
    if let Some(end) = line.bytes.get_mut(line.len) {
        *end = b'\n';
        line.len += 1;
    }
    write_all(2, line.bytes.get(..line.len).unwrap_or(&[]));
}
