//! Asking a process to do something, through the mailbox of its segment.
//!
//! One asks at a time (a lock on the file); the request is one word, written where the segment
//! says that its mailbox is, and nothing else is written. A request without an answer stays,
//! and is answered when the process next looks.

use super::find;
use crate::generation::Requests;
use crate::segment::format::IDENTITY;
use crate::segment::{Answer, format, format::mailbox};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::time::{Duration, Instant};

/// Between two looks at the answer.
const STEP: Duration = Duration::from_millis(2);

/// Has a process validate its engines; `None` if it did not in time, or others ask all the time.
pub fn ask_to_validate(pid: u32, wait: Duration) -> io::Result<Option<Answer>> {
    let end = Instant::now() + wait;
    let Some(mailbox) = Mailbox::open(pid)? else {
        return Ok(None);
    };
    if !mailbox.ask(mailbox::VALIDATE, end)? {
        return Ok(None);
    }
    let mut bytes = vec![0; format::MAILBOX.record];
    mailbox.file.read_exact_at(&mut bytes, mailbox.at)?;
    Ok(Some(Answer::parse(&bytes, 0)))
}

/// Tells a process that waits for its watcher that it may end.
pub fn let_go(pid: u32, wait: Duration) -> io::Result<bool> {
    match Mailbox::open(pid)? {
        Some(mailbox) => mailbox.ask(mailbox::LEAVE, Instant::now() + wait),
        None => Ok(false),
    }
}

/// Tells such a process that its watcher begins to look, so that it waits longer.
pub fn have_wait(pid: u32, wait: Duration) -> io::Result<bool> {
    match Mailbox::open(pid)? {
        Some(mailbox) => mailbox.ask(mailbox::STAY, Instant::now() + wait),
        None => Ok(false),
    }
}

/// The mailbox of a running process.
struct Mailbox {
    file: File,
    at: u64,
}

impl Mailbox {
    fn open(pid: u32) -> io::Result<Option<Self>> {
        let found = find::of_process(pid)?.ok_or(io::ErrorKind::NotFound)?;
        let segment = find::read(&found.file).map_err(io::Error::other)?;
        let at = segment.mailbox.ok_or(io::ErrorKind::Unsupported)? as u64;
        if segment.identity.pid != u64::from(pid) {
            // A child that has no segment of its own yet: its parent would answer.
            return Ok(None);
        }
        // The process's own memory, never a file that it chose: wherever its segment says that
        // it is mapped, what is written there is the process's.
        let mut options = File::options();
        let options = options.read(true).write(true).custom_flags(libc::O_CLOEXEC);
        let file = options.open(format!("/proc/{pid}/mem"))?;
        // It may have become another program by `exec` since its segment was read, and the open
        // file is of the memory that it has now: that must be where the segment is.
        let mut head = [0; IDENTITY.at + 8];
        file.read_exact_at(&mut head, segment.identity.at)?;
        if find::says(&head) != Some(pid.into()) {
            return Ok(None);
        }
        let at = segment.identity.at.wrapping_add(at);
        Ok(Some(Self { file, at }))
    }

    fn word(&self, place: usize) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file
            .read_exact_at(&mut bytes, self.at.wrapping_add(place as u64))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Asks, and waits for the answer; false if none came, or a refusal.
    fn ask(&self, what: u64, end: Instant) -> io::Result<bool> {
        while self.file.try_lock().is_err() {
            if Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(STEP);
        }
        let last = self.word(mailbox::REQUEST)?.max(self.word(mailbox::DONE)?);
        let request = Requests::next(last, what);
        let at = self.at.wrapping_add(mailbox::REQUEST as u64);
        self.file.write_all_at(&request.to_ne_bytes(), at)?;
        loop {
            match self.word(mailbox::DONE)? {
                done if done == request => return Ok(true),
                done if done == request | mailbox::REFUSED => return Ok(false),
                _ => {}
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(STEP);
        }
    }
}
