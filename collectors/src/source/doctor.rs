//! What a machine or a capture offers, what is missing, and what to do.
//!
//! Everything is probed: a file is there, is refused, or is not there. The
//! kernel's version decides only how a boot option is spelled.

mod capture;
mod debugging;
mod machine;
mod programs;

pub(crate) use debugging::{boot_words, version};

pub use capture::capture;
pub use machine::machine;

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is there and can be read.
    Readable,
    /// It is there; permission is missing.
    Denied,
    /// It is not there.
    Missing,
    /// It is there with nothing in it.
    Empty,
    /// The kernel can do it, and it is not switched on or not built in.
    Off,
}

impl State {
    /// All states.
    pub const ALL: [Self; 5] = [
        Self::Readable,
        Self::Denied,
        Self::Missing,
        Self::Empty,
        Self::Off,
    ];

    /// The stable word in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Readable => "readable",
            Self::Denied => "denied",
            Self::Missing => "missing",
            Self::Empty => "empty",
            Self::Off => "off",
        }
    }
}

/// One thing that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A file, or what it is about.
    pub what: String,
    /// What became of it.
    pub state: State,
    /// What it is good for.
    pub gives: String,
    /// What was seen, why it is missing, what to do; may be empty.
    pub remark: String,
    /// One of the needed ones has to be readable, or nothing can be shown.
    pub needed: bool,
}

impl Finding {
    fn new(what: impl Into<String>, state: State, gives: &str) -> Self {
        Self {
            what: what.into(),
            state,
            gives: gives.to_owned(),
            remark: String::new(),
            needed: false,
        }
    }

    fn remark(mut self, remark: impl Into<String>) -> Self {
        self.remark = remark.into();
        self
    }

    fn needed(mut self) -> Self {
        self.needed = true;
        self
    }
}

/// The state that an attempt to read came to.
fn state_of<T>(result: &std::io::Result<T>) -> State {
    match result {
        Ok(_) => State::Readable,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => State::Denied,
        Err(_) => State::Missing,
    }
}
