//! The command that is run, and how it ended.

use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use collectors::source::process;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, wait};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGQUIT};

use crate::fail::{Failure, Status};

/// How long a signal waits until it is passed on.
const STEP: Duration = Duration::from_millis(100);

/// A command that runs.
pub(crate) struct Load {
    name: String,
    pid: u32,
    start: Option<u64>,
    /// The process, whatever becomes of its number; `None` where the system has no such thing.
    process: Option<OwnedFd>,
    /// Signals that are passed on, and whether they have come.
    noted: Vec<(Signal, Arc<AtomicBool>)>,
    ended: Receiver<(std::io::Result<ExitStatus>, Instant)>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The program.
    pub(crate) name: String,
    /// Its exit status; `None` if a signal ended it, or if that is not known.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// When.
    pub(crate) at: Instant,
}

impl Load {
    /// Starts it with this program's standard streams.
    pub(crate) fn start(command: &[OsString]) -> Result<Self, Failure> {
        Self::start_with(command, &[])
    }

    /// The same with more variables in its environment.
    pub(crate) fn start_with(
        command: &[OsString],
        environment: &[(&str, OsString)],
    ) -> Result<Self, Failure> {
        let Some((program, args)) = command.split_first() else {
            return Err(Failure::usage("no command was given"));
        };
        // Keys that interrupt are for the command; what it did is told afterwards. Where ends of
        // children are ignored, which is inherited, the system forgets how they ended.
        for signal in [SIGINT, SIGQUIT, SIGCHLD] {
            let noted = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, noted)
                .map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
        }
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(args);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let child = command.spawn().map_err(|e| {
            // As a shell has it.
            let code = if e.kind() == ErrorKind::NotFound {
                127
            } else {
                126
            };
            Failure::new(Status::Command(code), format!("{name}: {e}"))
        })?;
        let pid = child.id();
        // Nobody has waited for it yet, so this is it even if it has ended.
        let start = process::start_of(pid);
        let own = Pid::from_child(&child);
        let process = pidfd_open(own, PidfdFlags::empty()).ok();
        let mut noted = Vec::new();
        for signal in [Signal::TERM, Signal::HUP] {
            let come = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal.as_raw(), Arc::clone(&come))
                .map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
            noted.push((signal, come));
        }
        let (tell, ended) = channel();
        std::thread::spawn(move || {
            let status = wait_for(own);
            // Who waits for it may have failed meanwhile.
            let _ = tell.send((status, Instant::now()));
        });
        Ok(Self {
            name,
            pid,
            start,
            process,
            noted,
            ended,
        })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// When it started, in clock ticks after boot; `None` if that is not known.
    pub(crate) fn start_ticks(&self) -> Option<u64> {
        self.start
    }

    /// Waits for its end, at most so long.
    pub(crate) fn wait(&self, time: Duration) -> Option<Outcome> {
        let end = Instant::now() + time;
        let (status, at) = loop {
            self.pass_on();
            let left = end.saturating_duration_since(Instant::now());
            match self.ended.recv_timeout(left.min(STEP)) {
                Ok((status, at)) => break (status.ok(), at),
                Err(RecvTimeoutError::Timeout) if left > STEP => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => break (None, Instant::now()),
            }
        };
        Some(Outcome {
            name: self.name.clone(),
            code: status.and_then(|s| s.code()),
            signal: status.and_then(|s| s.signal()),
            at,
        })
    }

    /// Who ends this program wants the command to end.
    fn pass_on(&self) {
        for (signal, come) in &self.noted {
            if come.swap(false, Ordering::Relaxed)
                && let Some(process) = &self.process
            {
                // It may have ended just now.
                let _ = pidfd_send_signal(process, *signal);
            }
        }
    }
}

/// Waits for the end of a child. Orphans that are this process's children, since it is the
/// first process of a container, are waited for on the way, so that nothing is left of them.
fn wait_for(child: Pid) -> std::io::Result<ExitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Outcome {
    /// This program's own exit status, by the rule of shells.
    pub(crate) fn status(&self) -> Status {
        let code = self.code.or(self.signal.map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok())
            .map_or(Status::Failed, Status::Command)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = crate::output::text::one_line(&self.name);
        match (self.code, self.signal) {
            (Some(0), _) => write!(f, "{name} ended"),
            (Some(code), _) => write!(f, "{name} ended with status {code}"),
            (None, Some(signal)) => write!(f, "{name} was ended by signal {signal}"),
            (None, None) => write!(f, "{name} ended, how is not known"),
        }
    }
}
