//! The bytes of a segment: sections at fixed places, told by a table of contents.
//!
//! The document of the format is docs/SEGMENT.md. All numbers are in the byte order of the
//! process; offsets count from the start of the segment, so that it may lie anywhere.

use super::layout::NAME_BYTES;

/// The first eight bytes.
pub const MAGIC: [u8; 8] = *b"slabcore";
/// Version of the format. A reader refuses any other.
pub const VERSION: u32 = 1;
/// Tells the byte order.
pub const ORDER_MARK: u32 = 0x0102_0304;
/// Bytes of a segment.
pub const BYTES: usize = 1 << 20;
/// Name of the memfd.
pub const NAME: &str = "slabcore-v1";

/// Kinds of sections.
pub mod kind {
    /// Who the process is.
    pub const IDENTITY: u32 = 1;
    /// Names and numbers of structures.
    pub const LAYOUT: u32 = 2;
    /// Names, units and one line on each published figure.
    pub const FIGURES: u32 = 3;
    /// Published figures of engines.
    pub const ENGINES: u32 = 4;
    /// Published figures of caches.
    pub const CACHES: u32 = 5;
    /// What happened on slow paths.
    pub const EVENTS: u32 = 6;
    /// Requests and answers.
    pub const MAILBOX: u32 = 7;
}

/// Places of words in the header.
pub mod head {
    /// The magic.
    pub const MAGIC: usize = 0;
    /// Version and bytes of the header, 32 bits each.
    pub const VERSION: usize = 8;
    /// Bytes of the segment.
    pub const BYTES: usize = 16;
    /// Byte order and number of sections, 32 bits each.
    pub const ORDER: usize = 24;
    /// Written before a change of what is not a record, and after it.
    pub const GENERATION: [usize; 2] = [32, 40];
    /// What the process does: one of [`super::state`].
    pub const STATE: usize = 48;
    /// When a pass of publishing began, and when it ended (nanoseconds, monotonic).
    pub const PASS: [usize; 2] = [56, 64];
    /// The same moment by the wall clock, in nanoseconds since 1970.
    pub const PASS_REAL: usize = 72;
    /// Caches that found no room at the last pass.
    pub const LEFT_OUT: usize = 80;
    /// The table of contents.
    pub const CONTENTS: usize = 128;
    /// Bytes of one entry: kind and bytes of a record, 32 bits each; offset; records.
    pub const ENTRY: usize = 24;
}

/// What the process does.
pub mod state {
    /// It runs.
    pub const RUNS: u64 = 1;
    /// It came to its end.
    pub const ENDED: u64 = 2;
    /// A report ended it.
    pub const FAULT: u64 = 3;
    /// It came to its end, and waits for its watcher to look.
    pub const ENDING: u64 = 4;
}

/// Places in the identity.
pub mod identity {
    /// Process id, as the process sees it.
    pub const PID: usize = 0;
    /// Start of the process in clock ticks after boot; 0 if it could not be read.
    pub const START: usize = 8;
    /// User id.
    pub const UID: usize = 16;
    /// Bytes of a page of the system.
    pub const PAGE: usize = 24;
    /// When the segment was made: monotonic, and by the wall clock, in nanoseconds.
    pub const MADE: [usize; 2] = [32, 40];
    /// Address of the segment in the process.
    pub const AT: usize = 48;
    /// Version of the engine.
    pub const ENGINE: usize = 64;
    /// Bytes of the version.
    pub const ENGINE_BYTES: usize = 64;
    /// Path of the program.
    pub const PROGRAM: usize = 128;
    /// Bytes of the path.
    pub const PROGRAM_BYTES: usize = 384;
    /// Bytes of the section.
    pub const BYTES: usize = 512;
}

/// Places in a pair of the layout.
pub mod pair {
    /// The number.
    pub const NUMBER: usize = super::NAME_BYTES;
    /// Bytes of a pair.
    pub const BYTES: usize = super::NAME_BYTES + 8;
}
/// Pairs at most.
pub const LAYOUT_ROOM: usize = 256;

/// Places in the description of a figure.
pub mod figure {
    /// Whose it is: 0 a cache's, 1 an engine's.
    pub const OF: usize = 0;
    /// 0 rises and falls, 1 only rises.
    pub const RISES: usize = 4;
    /// The name.
    pub const NAME: usize = 8;
    /// The unit.
    pub const UNIT: usize = 56;
    /// Bytes of the unit.
    pub const UNIT_BYTES: usize = 16;
    /// One line.
    pub const DOC: usize = 72;
    /// Bytes of the line.
    pub const DOC_BYTES: usize = 120;
    /// Bytes of a description.
    pub const BYTES: usize = 192;
}
/// Figures at most.
pub const FIGURES_ROOM: usize = 96;

/// Places in a record of an engine or a cache.
pub mod record {
    /// Written before and after a change; equal and even: the record is of one moment.
    pub const GENERATION: [usize; 2] = [0, 8];
    /// When it was written, in nanoseconds of the monotonic clock.
    pub const TIME: usize = 16;
    /// Number of the engine, from 1; 0 if the record holds nothing.
    pub const ENGINE: usize = 24;
    /// Id of the cache.
    pub const ID: usize = 28;
    /// Name of the cache, cut to fit, with a zero behind it.
    pub const NAME: usize = 32;
    /// Bytes of the name.
    pub const NAME_BYTES: usize = 96;
    /// The figures, 64 bits each, in the order of their descriptions.
    pub const VALUES: usize = 128;
    /// Figures of a record at most.
    pub const ROOM: usize = 68;
    /// Bytes of a record.
    pub const BYTES: usize = VALUES + ROOM * 8;
}
/// Records of engines.
pub const ENGINES_ROOM: usize = 16;
/// Records of caches.
pub const CACHES_ROOM: usize = 1024;

/// Places in an event.
pub mod event {
    /// Number of the event, from 1; written last, 0 while it is written.
    pub const NUMBER: usize = 0;
    /// When, in nanoseconds of the monotonic clock.
    pub const TIME: usize = 8;
    /// What, and id + 1 of the cache or 0, 32 bits each.
    pub const KIND: usize = 16;
    /// Thread id, and number of the slot or 0, 32 bits each.
    pub const THREAD: usize = 24;
    /// Two numbers, by kind.
    pub const VALUES: usize = 32;
    /// Bytes of an event.
    pub const BYTES: usize = 48;
}
/// Events that are kept. The section begins with the number of all events so far.
pub const EVENTS_ROOM: usize = 1024;
/// Bytes before the first event.
pub const EVENTS_HEAD: usize = 64;

/// Places in the mailbox.
pub mod mailbox {
    /// What is asked: a number << 8 | what.
    pub const REQUEST: usize = 0;
    /// The request that was taken up.
    pub const TAKEN: usize = 8;
    /// The request that was answered.
    pub const DONE: usize = 16;
    /// Of a validation: caches, slabs, slabs unchecked, caches moving, findings beyond the list.
    pub const COUNTS: usize = 24;
    /// Findings in the list.
    pub const FINDINGS: usize = 64;
    /// The list.
    pub const LIST: usize = 72;
    /// Findings at most.
    pub const ROOM: usize = 64;

    /// Figures, and all of them, are to be published now.
    pub const PUBLISH: u64 = 1;
    /// Everything is to be validated.
    pub const VALIDATE: u64 = 2;
    /// Who watched has seen enough: the process may end.
    pub const LEAVE: u64 = 3;
    /// Who watched begins to look: the process waits longer.
    pub const STAY: u64 = 4;
    /// In the place of what was asked, in [`DONE`]: it cannot be done now.
    pub const REFUSED: u64 = 0xff;

    /// Places in a finding: the cache's id and the node.
    pub const CACHE: usize = 0;
    /// Address of the slab, or 0.
    pub const SLAB: usize = 8;
    /// Stable name of the kind.
    pub const CODE: usize = 16;
    /// Bytes of the name.
    pub const CODE_BYTES: usize = 32;
    /// One line.
    pub const TEXT: usize = 48;
    /// Bytes of the line.
    pub const TEXT_BYTES: usize = 208;
    /// Bytes of a finding.
    pub const FINDING_BYTES: usize = 256;
}

/// A section: kind, where it begins, bytes of a record, records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// One of [`kind`].
    pub kind: u32,
    /// Where it begins.
    pub at: usize,
    /// Bytes of a record.
    pub record: usize,
    /// Records.
    pub count: usize,
}

const fn after(section: Section, head: usize) -> usize {
    (section.at + head + section.record * section.count).next_multiple_of(64)
}

const fn section(kind: u32, at: usize, record: usize, count: usize) -> Section {
    Section {
        kind,
        at,
        record,
        count,
    }
}

/// Who the process is.
pub const IDENTITY: Section = section(kind::IDENTITY, 1024, identity::BYTES, 1);
/// Names and numbers.
pub const LAYOUT: Section = section(kind::LAYOUT, after(IDENTITY, 0), pair::BYTES, LAYOUT_ROOM);
/// Descriptions of figures.
pub const FIGURES: Section = section(kind::FIGURES, after(LAYOUT, 0), figure::BYTES, FIGURES_ROOM);
/// The mailbox.
pub const MAILBOX: Section = section(
    kind::MAILBOX,
    after(FIGURES, 0),
    mailbox::LIST + mailbox::ROOM * mailbox::FINDING_BYTES,
    1,
);
/// Engines.
pub const ENGINES: Section = section(
    kind::ENGINES,
    after(MAILBOX, 0),
    record::BYTES,
    ENGINES_ROOM,
);
/// Events.
pub const EVENTS: Section = section(kind::EVENTS, after(ENGINES, 0), event::BYTES, EVENTS_ROOM);
/// Caches, last: most of it is never touched.
pub const CACHES: Section = section(
    kind::CACHES,
    after(EVENTS, EVENTS_HEAD),
    record::BYTES,
    CACHES_ROOM,
);
/// All of them.
pub const SECTIONS: [Section; 7] = [IDENTITY, LAYOUT, FIGURES, MAILBOX, ENGINES, EVENTS, CACHES];

const _: () = assert!(after(CACHES, 0) <= BYTES);
const _: () = assert!(head::CONTENTS + SECTIONS.len() * head::ENTRY <= IDENTITY.at);
