//! The memory of a running process, read by `process_vm_readv`, or else `/proc/PID/mem`.
//!
//! The process goes on meanwhile. What it is, [`Running`] tells: if the number has become another
//! process's, or the process another program by `exec`, which may be one that its user may not
//! look into, nothing is believed that was read since.
//!
//! Rules of the unsafe code: vectors point into buffers that the caller has lent for writing.

use super::memory::{Memory, Part};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Pieces of one call; the system takes up to 1024.
const AT_ONCE: usize = 256;

/// A running process.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    is: Running,
    /// Where `process_vm_readv` is not allowed or not there.
    mem: Option<File>,
}

/// Start of a process in clock ticks after boot.
pub fn start_of(pid: u32) -> io::Result<u64> {
    let text = std::fs::read(format!("/proc/{pid}/stat"))?;
    crate::sys::start_of(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A program that a process runs: another after `exec`, and another for a number used again.
///
/// Where its code and its stack begin is by chance for each `exec`. Where the system does not tell
/// that, because the program may not be looked into, both are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Start of the process in clock ticks after boot.
    start: u64,
    /// Addresses of its code and its stack.
    places: [u64; 3],
}

impl Running {
    /// What a process runs now.
    pub fn of(pid: u32) -> io::Result<Self> {
        let text = std::fs::read(format!("/proc/{pid}/stat"))?;
        let field = |number| crate::sys::field_of(&text, number);
        let unread = || io::Error::from(io::ErrorKind::InvalidData);
        let start = crate::sys::start_of(&text).ok_or_else(unread)?;
        // startcode, endcode, startstack
        let places = [26, 27, 28].map(|number| field(number).unwrap_or(0));
        Ok(Self { start, places })
    }

    /// It is the same process, whatever it runs.
    pub fn is_same_process(&self, other: &Self) -> bool {
        self.start == other.start
    }
}

impl Process {
    /// The process of a number; an error if its memory may not be read.
    pub fn open(pid: u32) -> io::Result<Self> {
        let mut this = Self {
            pid,
            is: Running::of(pid)?,
            mem: None,
        };
        match this.probe() {
            Ok(()) => Ok(this),
            Err(error) => {
                // Some sandboxes refuse the call and allow the file.
                let mem = File::open(format!("/proc/{pid}/mem"));
                this.mem = Some(mem.map_err(|_| error)?);
                Ok(this)
            }
        }
    }

    /// Whether the system would allow reading.
    fn probe(&self) -> io::Result<()> {
        // Nothing is mapped at 1: with permission the answer is a bad address.
        let mut byte = [0u8];
        let parts = &mut [Part::new(1, &mut byte)];
        match self.vectors(parts) {
            Err(error) if error.raw_os_error() != Some(libc::EFAULT) => Err(error),
            _ => Ok(()),
        }
    }

    /// The process's number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// It still runs the program that it ran when it was opened.
    pub fn is_same(&self) -> bool {
        Running::of(self.pid).is_ok_and(|now| now == self.is)
    }

    /// One call; gives how many bytes came in all.
    fn vectors(&self, parts: &mut [Part<'_>]) -> io::Result<usize> {
        let mut local = Vec::with_capacity(parts.len());
        let mut remote = Vec::with_capacity(parts.len());
        for part in parts {
            local.push(libc::iovec {
                iov_base: part.into.as_mut_ptr().cast(),
                iov_len: part.into.len(),
            });
            remote.push(libc::iovec {
                iov_base: part.at as usize as *mut _,
                iov_len: part.into.len(),
            });
        }
        // SAFETY: by the rules of this file; remote addresses are the system's to check.
        let got = unsafe {
            libc::process_vm_readv(
                self.pid.cast_signed(),
                local.as_ptr(),
                local.len() as libc::c_ulong,
                remote.as_ptr(),
                remote.len() as libc::c_ulong,
                0,
            )
        };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// Reads pieces; what could not be read is passed over.
    fn call(&self, mut parts: &mut [Part<'_>]) {
        while !parts.is_empty() {
            let mut got = self.vectors(parts).unwrap_or(0);
            let mut done = 0;
            for part in parts.iter_mut() {
                part.got = got.min(part.into.len());
                got -= part.got;
                if !part.whole() {
                    break;
                }
                done += 1;
            }
            if done == parts.len() {
                return;
            }
            // The call ends at the first place that is not there.
            if let Some(part) = parts.get_mut(done) {
                self.rest(part);
            }
            parts = parts.get_mut(done + 1..).unwrap_or_default();
        }
    }

    /// What can be read of a piece, page by page.
    fn rest(&self, part: &mut Part<'_>) {
        while let Some(rest) = part
            .into
            .get_mut(part.got..)
            .filter(|rest| !rest.is_empty())
        {
            let at = part.at.wrapping_add(part.got as u64);
            let to_page = (4096 - at % 4096) as usize;
            let most = rest.len().min(to_page);
            let Some(rest) = rest.get_mut(..most) else {
                return;
            };
            match self.vectors(&mut [Part::new(at, rest)]) {
                Ok(got) if got > 0 => part.got += got,
                _ => return,
            }
        }
    }
}

impl Memory for Process {
    fn read(&self, parts: &mut [Part<'_>]) {
        if let Some(mem) = &self.mem {
            for part in parts {
                while let Some(rest) = part.into.get_mut(part.got..).filter(|of| !of.is_empty()) {
                    match mem.read_at(rest, part.at.wrapping_add(part.got as u64)) {
                        Ok(got) if got > 0 => part.got += got,
                        _ => break,
                    }
                }
            }
            return;
        }
        for some in parts.chunks_mut(AT_ONCE) {
            self.call(some);
        }
    }

    fn is_live(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_the_rest_is_told() {
        let this = Process::open(std::process::id()).unwrap();
        let page = crate::sys::page_size();
        let at = crate::sys::reserve(4 * page, page);
        assert!(crate::sys::commit(at, 2 * page));
        // SAFETY: committed above, and ours.
        unsafe { (at as *mut u8).write_bytes(7, 2 * page) };
        let mut bytes = [[0u8; 64]; 4];
        let [a, b, c, d] = &mut bytes;
        let end = (at + 2 * page) as u64;
        let mut parts = [
            Part::new(at as u64, a),
            Part::new(end - 32, b),
            Part::new(end, c),
            Part::new(at as u64 + 64, d),
        ];
        this.read(&mut parts);
        assert_eq!(parts.each_ref().map(|part| part.got), [64, 32, 0, 64]);
        assert_eq!(bytes[3], [7; 64], "after a hole reading goes on");
        assert!(this.get(u64::MAX - 3, &mut [0; 8]).is_err());
        assert!(this.is_same());
    }

    #[test]
    fn the_file_gives_the_same() {
        let pid = std::process::id();
        let mut this = Process::open(pid).unwrap();
        this.mem = Some(File::open(format!("/proc/{pid}/mem")).unwrap());
        let text = *b"seen through the file";
        let mut seen = [0u8; 21];
        this.get(&raw const text as u64, &mut seen).unwrap();
        assert_eq!(seen, text);
        assert!(this.get(1, &mut seen).is_err());
    }

    #[test]
    fn exec_makes_another_program_of_the_same_process() {
        use std::io::{Read as _, Write as _};
        let shell = std::process::Command::new("sh")
            .args(["-c", "echo; read line; exec cat"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn();
        let mut shell = shell.unwrap();
        let (mut input, mut output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        output.read_exact(&mut [0]).unwrap();
        let before = Running::of(shell.id()).unwrap();
        let process = Process::open(shell.id()).unwrap();
        assert!(process.is_same() && Running::of(shell.id()).unwrap() == before);
        input.write_all(b"line\nx").unwrap();
        // It is another program once it answers.
        output.read_exact(&mut [0]).unwrap();
        let after = Running::of(shell.id()).unwrap();
        assert!(!process.is_same() && after != before);
        assert!(after.is_same_process(&before));
        drop(input);
        shell.wait().unwrap();
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        // Numbers of processes end at 2^22.
        assert!(Process::open((1 << 22) + 1).is_err());
    }
}
