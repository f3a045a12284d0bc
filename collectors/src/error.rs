//! Errors that end a reading. Lesser trouble is a warning in the snapshot.

use std::io;
use std::path::PathBuf;

/// Why a source gave no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that is needed could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Reading needs more privilege.
    #[error("cannot read {}: permission denied", path.display())]
    Permission {
        /// Which file.
        path: PathBuf,
    },
    /// The kernel does not offer the interface.
    #[error("{what} is not there: {why}")]
    Unavailable {
        /// Which interface.
        what: String,
        /// The probable reason.
        why: String,
    },
    /// A capture holds nothing that is known.
    #[error("{}: no slab data found: {why}", path.display())]
    Unrecognised {
        /// Which input.
        path: PathBuf,
        /// What was looked for.
        why: String,
    },
    /// An archive or compressed stream is broken from the start.
    #[error("{}: {why}", path.display())]
    Broken {
        /// Which input.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A capture could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A pattern or filter does not parse.
    #[error("{0}")]
    Filter(String),
}

impl Error {
    /// An I/O error with its path, told apart by kind.
    pub fn from_io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        if source.kind() == io::ErrorKind::PermissionDenied {
            Self::Permission { path }
        } else {
            Self::Read { path, source }
        }
    }
}
