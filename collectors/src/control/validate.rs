//! One validation of a cache, with what the kernel wrote into its log about it.
//!
//! Purpose: the write succeeds for a corrupted cache too; the verdict is only
//! in the log. So the log is read from the moment before the write. Source of
//! truth: validate_store() and validate_slab() of mm/slub.c, which report before
//! the write returns. What the reports mean is for `analysis::validate`.

use std::io::Read;

use super::Validated;
use crate::Error;
use crate::parse::kernel_log::Scanner;
use crate::parse::kernel_log::report::Report;
use crate::source::kmsg::Kmsg;

/// Bytes of log that are read after a write: more than any kernel's buffer is
/// by default, so that a log that others flood does not keep the reader.
const MAX_LOG: u64 = 64 << 20;
/// Reports that are kept of one validation.
const MAX_REPORTS: usize = 4096;

/// What became of one validation.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// What the kernel answered.
    pub answer: Validated,
    /// The reports in the log since, of anybody.
    pub reports: Vec<Report>,
    /// Why these may not be all of them; `None` when they are.
    pub incomplete: Option<String>,
}

/// Lets `write` ask for a validation, and reads the log from before it on.
///
/// Nothing is written when the log cannot be read up to now.
pub fn look<R: Read>(
    log: &mut Kmsg<R>,
    write: impl FnOnce() -> Result<Validated, Error>,
) -> Result<Look, Error> {
    let unread = |e| Error::from_io("/dev/kmsg", e);
    log.pass_over().map_err(unread)?;
    let mut look = Look {
        answer: write()?,
        reports: Vec::new(),
        incomplete: None,
    };
    let mut rest = (&mut *log).take(MAX_LOG);
    for report in Scanner::new(&mut rest) {
        match report {
            Ok(_) if look.reports.len() >= MAX_REPORTS => {
                look.incomplete = Some(format!("only the first {MAX_REPORTS} reports are kept"));
                break;
            }
            Ok(report) => look.reports.push(report),
            Err(error) => look.incomplete = Some(format!("the log breaks off: {error}")),
        }
    }
    if rest.limit() == 0 {
        look.incomplete = Some("the log is written faster than it can be read".to_owned());
    }
    if log.lost > 0 {
        look.incomplete =
            Some("lines of the log were overwritten before they could be read".to_owned());
    }
    Ok(look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::io;
    use std::rc::Rc;

    /// A log device whose records others append.
    #[derive(Clone, Default)]
    struct Device(Rc<RefCell<VecDeque<Result<String, io::ErrorKind>>>>);

    impl Device {
        fn say(&self, text: &str) {
            let lines = text.lines().map(|line| Ok(format!("3,1,1,-;{line}\n")));
            self.0.borrow_mut().extend(lines);
        }
    }

    impl Read for Device {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.borrow_mut().pop_front() {
                Some(Ok(record)) => {
                    into[..record.len()].copy_from_slice(record.as_bytes());
                    Ok(record.len())
                }
                Some(Err(kind)) => Err(kind.into()),
                None => Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }

    const BANNER: &str = "BUG dentry (Not tainted): Poison overwritten\n\
        0x00000000fc629507-0x00000000fc629507 @offset=2408. First byte 0x78 instead of 0x6b\n";

    #[expect(clippy::unnecessary_wraps, reason = "it stands for a write")]
    fn done() -> Result<Validated, Error> {
        Ok(Validated::Done)
    }

    #[test]
    fn only_what_comes_after_the_write_counts() {
        let device = Device::default();
        device.say(BANNER);
        let mut log = Kmsg::of(device.clone());
        assert_eq!(look(&mut log, done).unwrap().reports, []);
        let write = || {
            device.say(BANNER);
            done()
        };
        let seen = look(&mut log, write).unwrap();
        assert_eq!((seen.reports.len(), seen.incomplete), (1, None));
    }

    #[test]
    fn lost_lines_are_said_and_a_log_that_breaks_off_too() {
        for (kind, part) in [
            (io::ErrorKind::BrokenPipe, "overwritten before"),
            (io::ErrorKind::InvalidData, "breaks off"),
        ] {
            let device = Device::default();
            let mut log = Kmsg::of(device.clone());
            let write = || {
                device.0.borrow_mut().push_back(Err(kind));
                done()
            };
            let seen = look(&mut log, write).unwrap();
            assert!(seen.incomplete.unwrap().contains(part));
        }
    }

    #[test]
    fn nothing_is_written_when_the_log_cannot_be_read() {
        let device = Device::default();
        let refused = Err(io::ErrorKind::PermissionDenied);
        device.0.borrow_mut().push_back(refused);
        let error = look(&mut Kmsg::of(device), || panic!("it was written")).unwrap_err();
        assert!(matches!(error, Error::Permission { .. }), "{error}");
    }
}
