//! What lies over a screen: help, menus, prompts and dialogs; one at a time.

use std::time::Duration;

use crate::msg::Change;

/// What lies over the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    /// The keys, those that match what was typed.
    Help {
        /// What was typed.
        search: String,
        /// The first line shown.
        top: usize,
    },
    /// The orders, by slabtop's letters.
    Sort,
    /// The columns; the cursor is on one of them.
    Columns {
        /// Line of the cursor.
        cursor: usize,
    },
    /// A line to type into.
    Prompt(Prompt),
    /// A question before the kernel is changed.
    Confirm {
        /// What would be done.
        change: Change,
        /// To which cache.
        cache: String,
    },
}

/// What a prompt asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// A filter.
    Filter,
    /// A time to go to.
    Jump,
    /// A file for the list.
    Export,
    /// A file for the state of the machine.
    Snapshot,
    /// A command.
    Palette,
}

impl PromptKind {
    /// What stands before the line.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Jump => "go to",
            Self::Export => "write to",
            Self::Snapshot => "write snapshot to",
            Self::Palette => "command",
        }
    }

    /// What may be typed, in a few words.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Filter => "size>10M   kmalloc-*   not partial<100   empty: all",
            Self::Jump => "10:32:07   -90s   empty: the newest",
            Self::Export => {
                "FILE.csv or .json: the list as it is filtered and sorted; .svg or .txt: the screen"
            }
            Self::Snapshot => "FILE.tar, .tar.gz or .tar.zst",
            Self::Palette => "tab completes",
        }
    }
}

/// A line to type into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What it asks for.
    pub kind: PromptKind,
    /// What was typed.
    pub text: String,
    /// What is wrong with it.
    pub error: Option<String>,
}

/// A line about what just happened; it goes away with the next key or after a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What happened.
    pub text: String,
    /// Whether it went wrong.
    pub bad: bool,
    /// When it was shown.
    pub since: Duration,
}

impl Notice {
    /// How long it stays.
    pub const STAYS: Duration = Duration::from_secs(8);
}
