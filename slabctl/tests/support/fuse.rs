//! A filesystem of one file that this process serves by FUSE, until it does not answer any more.
//!
//! Source of truth: the kernel's `include/uapi/linux/fuse.h`, protocol 7.31.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// What the file is called.
const NAME: &str = "program";
/// Bytes of a request and of what is read at once, at most.
const BYTES: u32 = 1 << 17;
/// The error for what this filesystem does not have.
const NO_CALL: i32 = 38;

/// A mounted filesystem.
pub struct Served {
    dir: tempfile::TempDir,
    silent: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    unanswered: Arc<AtomicU64>,
    server: Option<JoinHandle<()>>,
}

struct Server {
    device: File,
    file: File,
    silent: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    unanswered: Arc<AtomicU64>,
}

impl Served {
    /// Serves a copy of a program; an error where that is not allowed.
    pub fn mount(program: &Path) -> std::io::Result<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse")?;
        let dir = tempfile::tempdir()?;
        let options = format!(
            "fd={},rootmode=40755,user_id=0,group_id=0",
            device.as_raw_fd()
        );
        let options = std::ffi::CString::new(options)?;
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        mount("slabctl-test", dir.path(), "fuse", flags, &*options)?;
        let [silent, ended] = [false, false].map(|of| Arc::new(AtomicBool::new(of)));
        let unanswered = Arc::new(AtomicU64::new(0));
        let server = Server {
            device,
            file: File::open(program)?,
            silent: Arc::clone(&silent),
            ended: Arc::clone(&ended),
            unanswered: Arc::clone(&unanswered),
        };
        Ok(Self {
            dir,
            silent,
            ended,
            unanswered,
            server: Some(std::thread::spawn(move || server.run())),
        })
    }

    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(NAME)
    }

    /// Nothing is answered from now on.
    pub fn fall_silent(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }

    /// Requests that came since and got no answer.
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::SeqCst)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // With the server goes the device: whoever waits gets an error.
        let server = self.server.take().map(JoinHandle::join);
        assert!(server.is_some_and(|of| of.is_ok()));
        unmount(self.dir.path(), UnmountFlags::DETACH).unwrap();
    }
}

impl Server {
    fn run(&self) {
        let mut request = vec![0; BYTES as usize + 4096];
        let pause = Timespec::try_from(Duration::from_millis(20)).unwrap();
        while !self.ended.load(Ordering::SeqCst) {
            let mut fds = [PollFd::new(&self.device, PollFlags::IN)];
            if poll(&mut fds, Some(&pause)).unwrap_or(0) == 0 {
                continue;
            }
            // One that was interrupted meanwhile is gone.
            let Ok(got) = (&self.device).read(&mut request) else {
                continue;
            };
            let request = &request[..got];
            if self.silent.load(Ordering::SeqCst) {
                self.unanswered.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            let Some(answer) = self.answer(request) else {
                continue;
            };
            let (error, body) = answer.map_or_else(|error| (-error, Vec::new()), |body| (0, body));
            let mut out = words(&[16 + u32::try_from(body.len()).unwrap()]);
            out.extend(error.to_ne_bytes());
            out.extend(&request[8..16]);
            out.extend(body);
            // Who asked may be gone.
            let _ = (&self.device).write(&out);
        }
    }

    /// The answer to a request; `None` where none is expected.
    fn answer(&self, request: &[u8]) -> Option<Result<Vec<u8>, i32>> {
        let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().unwrap());
        let (what, node) = (word(4), long(16));
        Some(match what {
            // LOOKUP: node, generation, how long both are true, attributes.
            1 if request[40..].starts_with(NAME.as_bytes()) => {
                let mut body = longs(&[2, 0, 0, 0, 0]);
                body.extend(self.attributes(2));
                Ok(body)
            }
            1 => Err(2),
            // FORGET, BATCH_FORGET, INTERRUPT
            2 | 42 | 36 => return None,
            // GETATTR
            3 => {
                let mut body = longs(&[0, 0]);
                body.extend(self.attributes(node));
                Ok(body)
            }
            // OPEN, OPENDIR
            14 | 27 => Ok(longs(&[0, 0])),
            // READ
            15 => {
                let mut bytes = vec![0; word(56).min(BYTES) as usize];
                let got = self.file.read_at(&mut bytes, long(48)).unwrap_or(0);
                bytes.truncate(got);
                Ok(bytes)
            }
            // INIT: version, read ahead, flags, numbers of requests, the longest write.
            26 => {
                let mut body = words(&[7, 31, BYTES, 0, 0, BYTES]);
                body.resize(64, 0);
                Ok(body)
            }
            // RELEASE, FLUSH, RELEASEDIR
            18 | 25 | 29 => Ok(Vec::new()),
            _ => Err(NO_CALL),
        })
    }

    fn attributes(&self, node: u64) -> Vec<u8> {
        let (mode, len) = match node {
            1 => (0o040_755, 0),
            _ => (0o100_755, self.file.metadata().map_or(0, |of| of.len())),
        };
        let mut of = longs(&[node, len, len.div_ceil(512), 0, 0, 0]);
        of.extend(words(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0]));
        of
    }
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|of| of.to_ne_bytes()).collect()
}

fn longs(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|of| of.to_ne_bytes()).collect()
}
