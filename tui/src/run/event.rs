//! What the threads tell the loop, over one bounded channel.

use crate::msg::Change;
use crate::press::Press;

/// The reason why a source could not be opened or read at all.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Something that happened outside.
#[derive(Debug)]
pub enum Event {
    /// A key was pressed.
    Press(Press),
    /// A text was pasted.
    Paste(String),
    /// The terminal changed its size.
    Resized,
    /// The source is open: what it is, and whether another sample can differ.
    Opened {
        /// What is read, in one line.
        describe: String,
        /// Whether another sample can differ.
        live: bool,
    },
    /// A sample, or the reason for none, lies in the mailbox.
    Mail,
    /// The source could not be opened, or not be read even once.
    Failed(SourceError),
    /// Keys can be read no more.
    NoInput(std::io::Error),
    /// A signal that ends the program.
    End(i32),
    /// A signal to stop until somebody says to go on.
    Stop,
    /// The program goes on after it was stopped.
    Continued,
    /// What a piece of work outside came to.
    Done(Result<String, String>),
    /// What a change of the kernel came to.
    Changed(Change, String, Result<String, String>),
}
