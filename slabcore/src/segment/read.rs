//! Reading a segment: bytes in, what they say out. Pure, bounded, and trusting nothing.
//!
//! What is beyond the bytes, too large, or of another version is refused in one line. A
//! record that is not of one moment is kept and marked. What it does not do: get the bytes.

use std::collections::BTreeMap;
use std::fmt;

use super::events::Event;
use super::format::{self, Section, event, figure, head, identity, kind, mailbox, pair, record};
use super::layout::NAME_BYTES;
use crate::generation::whole;

/// Bytes of a segment at most, whatever it says.
pub const MOST_BYTES: usize = 16 << 20;
/// Sections at most.
const MOST_SECTIONS: u32 = 64;
/// Bytes of a record, and records, at most.
const MOST_RECORD: usize = 64 << 10;
const MOST_RECORDS: u64 = 64 << 10;

/// Why a segment, or a process, cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It is no segment.
    NoSegment,
    /// It is shorter or longer than a segment can be.
    Length(u64),
    /// It is of another version of the format.
    Version(u32),
    /// It is from a machine with another byte order.
    ByteOrder,
    /// A part of it cannot be true.
    Contents(&'static str),
    /// The engine does not say where it has this.
    Unnamed(String),
    /// An engine's structure cannot be true.
    Structure(&'static str),
    /// There is more than one look reads.
    TooMuch,
    /// Its memory cannot be read there.
    Memory(u64),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSegment => f.write_str("no segment of a slabcore engine"),
            Self::Length(bytes) => write!(f, "{bytes} bytes cannot be a segment"),
            Self::Version(version) => write!(
                f,
                "the segment has format {version}, and this program reads {}",
                format::VERSION
            ),
            Self::ByteOrder => f.write_str("the segment has the byte order of another machine"),
            Self::Contents(what) => write!(f, "the segment's {what} cannot be true"),
            Self::Unnamed(name) => {
                write!(
                    f,
                    "its engine does not say where {name} is: another version"
                )
            }
            Self::Structure(what) => write!(f, "the engine's {what} cannot be true"),
            Self::TooMuch => f.write_str("there is more of it than can be read in one look"),
            Self::Memory(at) => write!(f, "the memory at {at:#x} cannot be read"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Whose segment it is, by its own words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Process id, as the process saw it.
    pub pid: u64,
    /// Start of the process in clock ticks after boot; 0 if not known.
    pub start: u64,
    /// User id.
    pub uid: u64,
    /// Bytes of a page of the system.
    pub page: u64,
    /// When it was made, in nanoseconds of the monotonic clock.
    pub made_ns: u64,
    /// The same by the wall clock, since 1970.
    pub made_real_ns: u64,
    /// Address of the segment in the process.
    pub at: u64,
    /// Version of the engine.
    pub engine: String,
    /// Path of the program.
    pub program: String,
}

/// A published figure's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureName {
    /// It is an engine's, not a cache's.
    pub of_engine: bool,
    /// It never falls.
    pub rises: bool,
    /// Name.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// One line.
    pub doc: String,
}

/// Published figures of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedEngine {
    /// Number of the engine, from 1.
    pub number: u32,
    /// Figures, in the order of the engine's names.
    pub values: Vec<u64>,
    /// They are of one moment.
    pub whole: bool,
}

/// Published figures of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedCache {
    /// Number of the engine, from 1.
    pub engine: u32,
    /// Id of the cache.
    pub id: u32,
    /// Its name, perhaps cut.
    pub name: String,
    /// When, in nanoseconds of the monotonic clock.
    pub time_ns: u64,
    /// Figures, in the order of the caches' names.
    pub values: Vec<u64>,
    /// They are of one moment.
    pub whole: bool,
}

/// All that was published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// The last pass: when it began and ended (monotonic), and by the wall clock. 0: never.
    pub pass_ns: [u64; 2],
    /// The end by the wall clock.
    pub pass_real_ns: u64,
    /// Engines.
    pub engines: Vec<PublishedEngine>,
    /// Caches.
    pub caches: Vec<PublishedCache>,
    /// Caches that found no room.
    pub left_out: u64,
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// Its number, from 1.
    pub number: u64,
    /// When, in nanoseconds of the monotonic clock, to some milliseconds.
    pub time_ns: u64,
    /// What; `None` for a kind of a later version.
    pub what: Option<Event>,
    /// Id of the cache.
    pub cache: Option<u32>,
    /// The slot whose thread it was.
    pub slot: Option<u32>,
    /// Numbers, by kind.
    pub values: [u64; 2],
}

/// A finding in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFinding {
    /// Id of the cache.
    pub cache: u32,
    /// Node.
    pub node: u32,
    /// Address of the slab.
    pub slab: Option<u64>,
    /// Stable name of the kind.
    pub code: String,
    /// One line.
    pub text: String,
}

/// The answer to a request to validate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The requests asked, taken and answered so far.
    pub requests: [u64; 3],
    /// Caches looked at.
    pub caches: u64,
    /// Slabs looked at.
    pub slabs: u64,
    /// Slabs that did not hold still.
    pub unchecked: u64,
    /// Caches that did not hold still.
    pub moving: u64,
    /// Findings beyond the list.
    pub more: u64,
    /// The findings.
    pub findings: Vec<AnswerFinding>,
}

/// A segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// Whose it is.
    pub identity: Identity,
    /// One of [`format::state`].
    pub state: u64,
    /// Identity and names are whole.
    pub whole: bool,
    /// Names and numbers of structures.
    pub layout: BTreeMap<String, u64>,
    /// Names of the figures.
    pub figures: Vec<FigureName>,
    /// What was published.
    pub published: Published,
    /// Events that are still there, in order, and how many there were.
    pub events: Vec<Noted>,
    /// Events so far.
    pub events_total: u64,
    /// Where the mailbox is, if there is one.
    pub mailbox: Option<usize>,
    /// The mailbox.
    pub answer: Answer,
}

/// Numbers and texts of a copy; zero and nothing outside of it.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn part(self, at: usize, bytes: usize) -> &'a [u8] {
        let part = at.checked_add(bytes).and_then(|end| self.0.get(at..end));
        part.unwrap_or_default()
    }

    fn u64(self, at: usize) -> u64 {
        let bytes = self.part(at, 8).try_into();
        bytes.map_or(0, u64::from_ne_bytes)
    }

    fn u32(self, at: usize) -> u32 {
        let bytes = self.part(at, 4).try_into();
        bytes.map_or(0, u32::from_ne_bytes)
    }

    fn text(self, at: usize, room: usize) -> String {
        let bytes = self.part(at, room);
        let end = bytes.iter().position(|byte| *byte == 0);
        let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

impl Segment {
    /// What a copy says that nobody changed while it was made.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::parse_twice(bytes, bytes)
    }

    /// What the second of two copies of a running process says, one made after the other:
    /// a record that differs between them is marked.
    pub fn parse_twice(before: &[u8], bytes: &[u8]) -> Result<Self, Refusal> {
        let copy = Bytes(bytes);
        let sections = contents(copy)?;
        let find = |kind: u32| sections.iter().find(|of| of.kind == kind).copied();
        let need = |kind, what| find(kind).ok_or(Refusal::Contents(what));
        let [first, second] = head::GENERATION.map(|at| copy.u64(at));
        let mut segment = Self {
            identity: who(copy, need(kind::IDENTITY, "identity")?)?,
            state: copy.u64(head::STATE),
            whole: whole(first, second),
            layout: names(copy, need(kind::LAYOUT, "layout")?),
            figures: figures(copy, need(kind::FIGURES, "names of figures")?),
            ..Self::default()
        };
        let own = |engine| {
            segment
                .figures
                .iter()
                .filter(move |of| of.of_engine == engine)
        };
        let counts = [own(false).count(), own(true).count()];
        let pair = (Bytes(before), copy);
        segment.published = Published {
            pass_ns: head::PASS.map(|at| copy.u64(at)),
            pass_real_ns: copy.u64(head::PASS_REAL),
            engines: engines(pair, need(kind::ENGINES, "engines")?, counts[1]),
            caches: caches(pair, need(kind::CACHES, "caches")?, counts[0]),
            left_out: copy.u64(head::LEFT_OUT),
        };
        // A head before the records, or a record that is larger than it says, may lie outside.
        let inside = |of: &Section, bytes| of.at + bytes <= copy.0.len();
        let events_end = |of: &Section| format::EVENTS_HEAD + of.record * of.count;
        if let Some(section) = find(kind::EVENTS).filter(|of| inside(of, events_end(of))) {
            segment.events_total = copy.u64(section.at);
            segment.events = events(pair, section, segment.events_total);
        }
        let mailbox = |of: &Section| inside(of, format::MAILBOX.record);
        if let Some(section) = find(kind::MAILBOX).filter(mailbox) {
            segment.mailbox = Some(section.at);
            segment.answer = Answer::parse(bytes, section.at);
        }
        Ok(segment)
    }

    /// A number of the layout.
    pub fn number(&self, name: &str) -> Result<u64, Refusal> {
        let number = self.layout.get(name).copied();
        number.ok_or_else(|| Refusal::Unnamed(name.to_owned()))
    }
}

/// Checks the header and gives the sections, all inside the copy.
fn contents(copy: Bytes<'_>) -> Result<Vec<Section>, Refusal> {
    if copy.part(head::MAGIC, 8) != format::MAGIC {
        return Err(Refusal::NoSegment);
    }
    let len = copy.0.len();
    if !(head::CONTENTS..=MOST_BYTES).contains(&len) {
        return Err(Refusal::Length(len as u64));
    }
    if copy.u32(head::ORDER) == format::ORDER_MARK.swap_bytes() {
        return Err(Refusal::ByteOrder);
    }
    if copy.u32(head::VERSION) != format::VERSION {
        return Err(Refusal::Version(copy.u32(head::VERSION)));
    }
    if copy.u64(head::BYTES) != len as u64 || copy.u32(head::ORDER) != format::ORDER_MARK {
        return Err(Refusal::Length(copy.u64(head::BYTES)));
    }
    let n = copy.u32(head::ORDER + 4);
    if n > MOST_SECTIONS {
        return Err(Refusal::Contents("table of contents"));
    }
    let places = (head::CONTENTS..).step_by(head::ENTRY).take(n as usize);
    places.map(|at| section(copy, at)).collect()
}

fn section(copy: Bytes<'_>, at: usize) -> Result<Section, Refusal> {
    let wrong = Refusal::Contents("table of contents");
    let (record, count) = (copy.u32(at + 4) as usize, copy.u64(at + 16));
    let start = usize::try_from(copy.u64(at + 8)).map_err(|_| wrong.clone())?;
    let end = (record as u64).checked_mul(count);
    let end = end.and_then(|bytes| bytes.checked_add(start as u64));
    let fits = end.is_some_and(|end| end <= copy.0.len() as u64);
    if !fits || record > MOST_RECORD || count > MOST_RECORDS || start % 8 != 0 {
        return Err(wrong);
    }
    Ok(Section {
        kind: copy.u32(at),
        at: start,
        record,
        count: count as usize,
    })
}

fn records(section: Section, head: usize) -> impl Iterator<Item = usize> {
    (0..section.count).map(move |n| section.at + head + n * section.record)
}

fn who(copy: Bytes<'_>, section: Section) -> Result<Identity, Refusal> {
    if section.record < identity::BYTES || section.count == 0 {
        return Err(Refusal::Contents("identity"));
    }
    let number = |place| copy.u64(section.at + place);
    Ok(Identity {
        pid: number(identity::PID),
        start: number(identity::START),
        uid: number(identity::UID),
        page: number(identity::PAGE),
        made_ns: number(identity::MADE[0]),
        made_real_ns: number(identity::MADE[1]),
        at: number(identity::AT),
        engine: copy.text(section.at + identity::ENGINE, identity::ENGINE_BYTES),
        program: copy.text(section.at + identity::PROGRAM, identity::PROGRAM_BYTES),
    })
}

fn names(copy: Bytes<'_>, section: Section) -> BTreeMap<String, u64> {
    let pairs = records(section, 0).filter(|_| section.record >= pair::BYTES);
    pairs
        .map(|at| (copy.text(at, NAME_BYTES), copy.u64(at + pair::NUMBER)))
        .filter(|(name, _)| !name.is_empty())
        .collect()
}

fn figures(copy: Bytes<'_>, section: Section) -> Vec<FigureName> {
    let all = records(section, 0).filter(|_| section.record >= figure::BYTES);
    // Figures that there is no room for in a record do not exist.
    all.take(2 * record::ROOM)
        .map(|at| FigureName {
            of_engine: copy.u32(at + figure::OF) == 1,
            rises: copy.u32(at + figure::RISES) == 1,
            name: copy.text(at + figure::NAME, NAME_BYTES),
            unit: copy.text(at + figure::UNIT, figure::UNIT_BYTES),
            doc: copy.text(at + figure::DOC, figure::DOC_BYTES),
        })
        .filter(|of| !of.name.is_empty())
        .collect()
}

/// The used records of a section: where, whether whole, and the figures.
fn used(
    (before, copy): (Bytes<'_>, Bytes<'_>),
    section: Section,
    figures: usize,
) -> impl Iterator<Item = (usize, bool, Vec<u64>)> {
    let figures = figures.min(section.record.saturating_sub(record::VALUES) / 8);
    let used =
        move |at: &usize| section.record >= record::VALUES && copy.u32(at + record::ENGINE) != 0;
    records(section, 0).filter(used).map(move |at| {
        let [first, second] = record::GENERATION.map(|place| copy.u64(at + place));
        let same = before.part(at, section.record) == copy.part(at, section.record);
        let values = (0..figures).map(|n| copy.u64(at + record::VALUES + n * 8));
        (at, same && whole(first, second), values.collect())
    })
}

fn engines(pair: (Bytes<'_>, Bytes<'_>), section: Section, n: usize) -> Vec<PublishedEngine> {
    used(pair, section, n)
        .map(|(at, whole, values)| PublishedEngine {
            number: pair.1.u32(at + record::ENGINE),
            values,
            whole,
        })
        .collect()
}

fn caches(pair: (Bytes<'_>, Bytes<'_>), section: Section, n: usize) -> Vec<PublishedCache> {
    let copy = pair.1;
    used(pair, section, n)
        .map(|(at, whole, values)| PublishedCache {
            engine: copy.u32(at + record::ENGINE),
            id: copy.u32(at + record::ID),
            name: copy.text(at + record::NAME, record::NAME_BYTES),
            time_ns: copy.u64(at + record::TIME),
            values,
            whole,
        })
        .collect()
}

fn events((before, copy): (Bytes<'_>, Bytes<'_>), section: Section, total: u64) -> Vec<Noted> {
    if section.record < event::BYTES {
        return Vec::new();
    }
    let some = |number: u32| number.checked_sub(1);
    let mut list: Vec<Noted> = records(section, format::EVENTS_HEAD)
        .filter(|at| before.part(*at, section.record) == copy.part(*at, section.record))
        .map(|at| Noted {
            number: copy.u64(at + event::NUMBER),
            time_ns: copy.u64(at + event::TIME),
            what: Event::from_number(copy.u32(at + event::KIND)),
            cache: some(copy.u32(at + event::KIND + 4)),
            slot: Some(copy.u32(at + event::THREAD)).filter(|slot| *slot != 0),
            values: [0, 8].map(|n| copy.u64(at + event::VALUES + n)),
        })
        .filter(|of| of.number != 0 && of.number <= total)
        .collect();
    list.sort_unstable_by_key(|of| of.number);
    list
}

impl Answer {
    /// The mailbox at a place of a copy.
    pub fn parse(bytes: &[u8], at: usize) -> Self {
        let copy = Bytes(bytes);
        let at = |place: usize| at.saturating_add(place);
        let [caches, slabs, unchecked, moving, more] =
            [0, 8, 16, 24, 32].map(|n| copy.u64(at(mailbox::COUNTS + n)));
        let n = copy.u64(at(mailbox::FINDINGS)).min(mailbox::ROOM as u64) as usize;
        let list = (0..n).map(|n| at(mailbox::LIST + n * mailbox::FINDING_BYTES));
        Self {
            requests: [mailbox::REQUEST, mailbox::TAKEN, mailbox::DONE].map(|n| copy.u64(at(n))),
            caches,
            slabs,
            unchecked,
            moving,
            more,
            findings: list
                .map(|at| AnswerFinding {
                    cache: copy.u32(at + mailbox::CACHE),
                    node: copy.u32(at + mailbox::CACHE + 4),
                    slab: Some(copy.u64(at + mailbox::SLAB)).filter(|slab| *slab != 0),
                    code: copy.text(at + mailbox::CODE, mailbox::CODE_BYTES),
                    text: copy.text(at + mailbox::TEXT, mailbox::TEXT_BYTES),
                })
                .collect(),
        }
    }
}
