//! What can happen, and what is to be done outside about it.

use std::path::PathBuf;
use std::time::Duration;

use collectors::source::Demand;

use crate::model::Sample;
use crate::press::Press;

/// Something that happened. When it did comes with it: the update has no clock.
#[derive(Debug)]
pub enum Msg {
    /// A key was pressed.
    Press(Press),
    /// A text was pasted.
    Paste(String),
    /// The terminal has this width and height.
    Resize(u16, u16),
    /// A sample was taken.
    Sample(Box<Sample>),
    /// A sample could not be taken.
    Trouble(String),
    /// What an effect came to, in a line for people.
    Done(Result<String, String>),
    /// What a change of the kernel came to: which, of which cache, and a line for people.
    Changed(Change, String, Result<String, String>),
}

/// A change of the kernel's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Check all slabs of a cache.
    Validate,
    /// Give back empty slabs of a cache.
    Shrink,
}

/// Something to be done outside. The update asks; the loop does it.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Leave, with the screen as it is or as it was before.
    Quit {
        /// Whether the last frame stays.
        keep: bool,
    },
    /// Stop until somebody says to go on.
    Suspend,
    /// Paint everything anew.
    Redraw,
    /// From now on, samples are to have this.
    Demand(Box<Demand>),
    /// Read the call sites of the cache with this directory or name, once.
    Look(String),
    /// From now on, samples are to be this far apart.
    Interval(Duration),
    /// Write the list as it is shown: which caches of the shown snapshot, in
    /// which order, and by which columns.
    Export {
        /// Where to.
        path: PathBuf,
    },
    /// Write the screen, as SVG or as text by the name's ending.
    Picture {
        /// Where to.
        path: PathBuf,
    },
    /// Write all slab state of the machine.
    Snapshot {
        /// Where to.
        path: PathBuf,
    },
    /// Change the kernel's state.
    Change {
        /// How.
        change: Change,
        /// The directory or name of the cache.
        cache: String,
    },
}
