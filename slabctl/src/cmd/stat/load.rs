//! The command that is run, and how it ended.

use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGQUIT};

use crate::fail::{Failure, Status};

/// A command that runs.
pub(crate) struct Load {
    name: String,
    pid: u32,
    ended: Receiver<std::io::Result<ExitStatus>>,
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
        // Keys that interrupt are for the command; what it did is told afterwards.
        for signal in [SIGINT, SIGQUIT] {
            let noted = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, noted)
                .map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
        }
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(args);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().map_err(|e| {
            // As a shell has it.
            let code = if e.kind() == ErrorKind::NotFound {
                127
            } else {
                126
            };
            Failure::new(Status::Command(code), format!("{name}: {e}"))
        })?;
        let pid = child.id();
        let (tell, ended) = channel();
        std::thread::spawn(move || {
            // Who waits for it may have failed meanwhile.
            let _ = tell.send(child.wait());
        });
        Ok(Self { name, pid, ended })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for its end, at most so long.
    pub(crate) fn wait(&self, time: Duration) -> Option<Outcome> {
        let status = match self.ended.recv_timeout(time) {
            Ok(status) => status.ok(),
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => None,
        };
        Some(Outcome {
            name: self.name.clone(),
            code: status.and_then(|s| s.code()),
            signal: status.and_then(|s| s.signal()),
        })
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
