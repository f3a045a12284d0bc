//! How a run ends: the exit status and the one line that explains it.

use std::fmt;
use std::process::ExitCode;

use collectors::Error;

/// Exit status of a run, as the manual lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Done.
    Ok,
    /// Failed.
    Failed,
    /// Wrong usage.
    Usage,
    /// Done, and something was found.
    Findings,
    /// No such cache.
    NoSuchCache,
    /// The source is not available on this machine.
    Unavailable,
    /// Permission is missing.
    Permission,
    /// A command was run, and ended with this.
    Command(u8),
    /// `check`: a figure is beyond the first limit.
    CheckWarning,
    /// `check`: a figure is beyond the second limit.
    CheckCritical,
    /// `check`: nobody can tell.
    CheckUnknown,
}

impl Status {
    /// The status of a code that another part of the program chose.
    pub(crate) const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Ok,
            2 => Self::Usage,
            3 => Self::Findings,
            4 => Self::NoSuchCache,
            69 => Self::Unavailable,
            77 => Self::Permission,
            _ => Self::Failed,
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            // Of a check they are what monitoring systems expect of a plugin.
            Self::Failed | Self::CheckWarning => 1,
            Self::Usage | Self::CheckCritical => 2,
            Self::Findings | Self::CheckUnknown => 3,
            Self::NoSuchCache => 4,
            Self::Unavailable => 69,
            Self::Permission => 77,
            Self::Command(code) => code,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.code())
    }
}

/// An error with its exit status and, where it helps, the command to try.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    message: String,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Status::Usage, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let status = match error {
            Error::Permission { .. } => Status::Permission,
            Error::Unavailable { .. } => Status::Unavailable,
            Error::Filter(_) => Status::Usage,
            _ => Status::Failed,
        };
        Self::new(status, message)
    }
}
