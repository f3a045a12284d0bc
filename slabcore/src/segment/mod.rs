//! The segment: a small file in memory by which other processes see this one.
//!
//! It holds who the process is, where its structures have their parts (`layout`), figures
//! that are copied on slow paths (`publish`), events, and a mailbox. Counters, descriptors
//! and objects stay in private memory: in shared memory a forked child would write into its
//! parent's, and a pointer more on the fast path would cost. Who may read the process reads
//! them there ([`crate::inspect`]); the figures are for the others, and for the dead.
//!
//! The format is told in docs/SEGMENT.md. What it does not do: decide who may read; the
//! system does, by the file's owner and mode.

mod events;
mod figures;
pub mod format;
pub(crate) mod layout;
mod live;
mod make;
mod place;
mod publish;
mod published;
mod read;

pub use events::Event;
pub(crate) use events::event;
pub use figures::{Figure, Of};
pub(crate) use make::{after_fork, begin, ready};
pub use place::Place;
pub use publish::before_exit;
pub(crate) use publish::{after_report, look};
pub use read::{
    Answer, AnswerFinding, FigureName, Identity, Noted, Published, PublishedCache, PublishedEngine,
    Refusal, Segment,
};
