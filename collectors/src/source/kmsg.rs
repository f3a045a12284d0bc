//! The running kernel's log, from its oldest line to now.
//!
//! Purpose: /dev/kmsg as a reader that ends where waiting would begin. Source
//! of truth: Documentation/ABI/testing/dev-kmsg. A read gives one record, needs
//! room for all of it, and fails once with EPIPE when records were overwritten
//! before they were read. The records' form is for `parse::kernel_log`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::Error;

/// Room for one record; the kernel's own limit is 8 KiB.
const RECORD: usize = 16 << 10;

/// The kernel's log.
#[derive(Debug)]
pub struct Kmsg<R = File> {
    inner: R,
    record: Vec<u8>,
    at: usize,
    len: usize,
    /// How often records were overwritten before they were read.
    pub lost: u64,
}

impl Kmsg {
    /// Opens the log, at its oldest line.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)
            .map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => Error::Unavailable {
                    what: path.display().to_string(),
                    why: "this kernel or container has no log device".to_owned(),
                },
                _ => Error::from_io(path, e),
            })?;
        Ok(Self::of(file))
    }
}

impl<R: Read> Kmsg<R> {
    /// The log behind any reader that gives a record at a time and fails with
    /// `WouldBlock` (or ends) where waiting would begin.
    pub fn of(inner: R) -> Self {
        Self {
            inner,
            record: vec![0; RECORD],
            at: 0,
            len: 0,
            lost: 0,
        }
    }

    /// Passes over everything up to now: what is read next was written later.
    /// What was lost before now is forgotten.
    pub fn pass_over(&mut self) -> io::Result<()> {
        loop {
            self.next_record()?;
            if self.len == 0 {
                self.lost = 0;
                return Ok(());
            }
        }
    }

    fn next_record(&mut self) -> io::Result<()> {
        (self.at, self.len) = (0, 0);
        loop {
            match self.inner.read(&mut self.record) {
                Ok(len) => {
                    self.len = len;
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.lost += 1,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl<R: Read> Read for Kmsg<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.len {
            self.next_record()?;
        }
        let rest = &self.record[self.at..self.len];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Gives a record at a time, as the device does.
    struct Device(VecDeque<Result<&'static str, io::ErrorKind>>);

    impl Read for Device {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.pop_front() {
                Some(Ok(record)) if record.len() > into.len() => {
                    Err(io::ErrorKind::InvalidInput.into())
                }
                Some(Ok(record)) => {
                    into[..record.len()].copy_from_slice(record.as_bytes());
                    Ok(record.len())
                }
                Some(Err(kind)) => Err(kind.into()),
                None => Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }

    #[test]
    fn it_ends_where_waiting_would_begin() {
        let records = [
            Ok("6,1,10,-;first\n"),
            Err(io::ErrorKind::BrokenPipe),
            Ok("6,5,20,-;second\n DEVICE=+usb\n"),
        ];
        let mut log = Kmsg::of(Device(records.into_iter().collect()));
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        assert_eq!(text, "6,1,10,-;first\n6,5,20,-;second\n DEVICE=+usb\n");
        assert_eq!(log.lost, 1);
    }

    #[test]
    fn what_is_passed_over_is_not_read_and_its_losses_do_not_count() {
        let records = [
            Ok("6,1,10,-;old\n"),
            Err(io::ErrorKind::BrokenPipe),
            Ok("6,9,11,-;old too\n"),
            Err(io::ErrorKind::WouldBlock),
            Ok("6,10,20,-;new\n"),
        ];
        let mut log = Kmsg::of(Device(records.into_iter().collect()));
        log.pass_over().unwrap();
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        assert_eq!(text, "6,10,20,-;new\n");
        assert_eq!(log.lost, 0);
    }

    #[test]
    fn errors_are_not_the_end() {
        let mut log = Kmsg::of(Device([Err(io::ErrorKind::PermissionDenied)].into()));
        assert!(log.read(&mut [0; 10]).is_err());
        let missing = Kmsg::open(Path::new("/nowhere/kmsg")).unwrap_err();
        assert!(matches!(missing, Error::Unavailable { .. }));
    }
}
