//! What an explanation consists of.
//!
//! Purpose: one finding for each report or group of equal reports: what is
//! certain, what is likely, what is not known, what to do next. It holds values
//! and sentences; how they are laid out is for the front end.

use crate::parse::kernel_log::report::{Detected, NodeSlabs, SlabLine, Tool, Track};

/// What kind of report it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A debugging report of SLUB.
    Slub,
    /// One of SLAB.
    Slab,
    /// `SLUB: Unable to allocate memory`.
    AllocationFailure,
    /// Memory ran out, with figures on slab.
    OomSlabTable,
    /// A cache was destroyed too early.
    CacheDestroy,
    /// An object was freed to another cache.
    WrongCache,
    /// A stopped copy to or from user space.
    Usercopy,
    /// A count of slabs that is wrong.
    Validator,
    /// The allocator stopped itself.
    KernelBug,
    /// No damage: something about the debugging or the names of caches.
    Remark,
    /// A report of another tool.
    Other(Tool),
}

impl Kind {
    /// The name in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slub => "slub",
            Self::Slab => "slab",
            Self::AllocationFailure => "allocation-failure",
            Self::OomSlabTable => "oom-slab-table",
            Self::CacheDestroy => "cache-destroy",
            Self::WrongCache => "wrong-cache",
            Self::Usercopy => "usercopy",
            Self::Validator => "validator",
            Self::KernelBug => "kernel-bug",
            Self::Remark => "remark",
            Self::Other(Tool::Kasan) => "kasan",
            Self::Other(Tool::Kfence) => "kfence",
            Self::Other(Tool::Kmemleak) => "kmemleak",
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A write behind the end of an object.
    Overflow,
    /// A write before its start.
    Underflow,
    /// A write to an object that was free.
    UseAfterFree,
    /// One bit changed.
    BitFlip,
    /// An object was freed twice.
    DoubleFree,
    /// Something that is no object was freed.
    InvalidFree,
    /// An object was freed to another cache.
    WrongCache,
    /// The list of free objects is damaged or incomplete.
    Freelist,
    /// Counters of a slab or cache are wrong.
    Counters,
    /// A write between or behind objects.
    Padding,
    /// Objects were not freed.
    Leak,
    /// A copy beyond the bounds of an object, stopped.
    Usercopy,
    /// No memory for a new slab.
    Shortage,
    /// Slab memory grew large.
    Growth,
    /// Memory is short, and slab is not why.
    NotSlab,
    /// No damage: something about the debugging or the names of caches.
    Remark,
    /// Another tool's report, which explains itself.
    OtherTool,
    /// The text does not say enough.
    CannotTell,
}

impl Class {
    /// All, in the order of the documentation.
    pub const ALL: &[Self] = &[
        Self::Overflow,
        Self::Underflow,
        Self::UseAfterFree,
        Self::BitFlip,
        Self::DoubleFree,
        Self::InvalidFree,
        Self::WrongCache,
        Self::Freelist,
        Self::Counters,
        Self::Padding,
        Self::Leak,
        Self::Usercopy,
        Self::Shortage,
        Self::Growth,
        Self::NotSlab,
        Self::Remark,
        Self::OtherTool,
        Self::CannotTell,
    ];

    /// The name in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Underflow => "underflow",
            Self::UseAfterFree => "use-after-free",
            Self::BitFlip => "bit-flip",
            Self::DoubleFree => "double-free",
            Self::InvalidFree => "invalid-free",
            Self::WrongCache => "wrong-cache",
            Self::Freelist => "freelist",
            Self::Counters => "counters",
            Self::Padding => "padding",
            Self::Leak => "leak",
            Self::Usercopy => "usercopy",
            Self::Shortage => "shortage",
            Self::Growth => "growth",
            Self::NotSlab => "not-slab",
            Self::Remark => "remark",
            Self::OtherTool => "other-tool",
            Self::CannotTell => "cannot-tell",
        }
    }

    /// The name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::UseAfterFree => "use after free",
            Self::BitFlip => "bit flip",
            Self::DoubleFree => "double free",
            Self::InvalidFree => "invalid free",
            Self::WrongCache => "wrong cache",
            Self::Freelist => "free list",
            Self::Usercopy => "copy out of bounds",
            Self::NotSlab => "not a slab problem",
            Self::OtherTool => "another tool's report",
            Self::CannotTell => "cannot tell",
            other => other.name(),
        }
    }

    /// Whether somebody has to look into slab memory or its users.
    pub const fn accuses(self) -> bool {
        !matches!(self, Self::NotSlab | Self::Remark)
    }
}

/// How sure a conclusion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The report says so.
    Certain,
    /// Nothing else that is usual looks like this.
    Likely,
    /// It fits, and so do other causes.
    Possible,
}

impl Confidence {
    /// The name in all output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
        }
    }
}

/// A sentence, and how sure it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// One or two sentences, which say why.
    pub text: String,
    /// How sure.
    pub confidence: Confidence,
}

/// A cache's name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct CacheName {
    /// As printed.
    pub name: String,
    /// Without the control group.
    pub root: String,
    /// The control group's number and name (kernels up to 5.8).
    pub cgroup: Option<(u64, String)>,
}

/// Whether an object was in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Allocated.
    InUse,
    /// Free.
    Free,
}

impl State {
    /// The name in all output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InUse => "in use",
            Self::Free => "free",
        }
    }
}

/// The object that a report is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectFacts {
    /// Where it is; `None` when the address is hashed or not printed.
    pub address: Option<u64>,
    /// Bytes from the start of its slab.
    pub offset_in_slab: Option<u64>,
    /// Bytes of the object, as shown or as its cache is named.
    pub size: Option<u64>,
    /// Bytes that were asked for, where that can be told.
    pub requested: Option<u64>,
    /// Whether it was in use.
    pub state: Option<State>,
    /// The bytes that are wrong.
    pub damage: Option<Damage>,
}

/// Which part of a slot was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The red zone before the object.
    LeftRedzone,
    /// The red zone behind it.
    RightRedzone,
    /// What was not asked for of a kmalloc object.
    KmallocRedzone,
    /// A free object.
    Poison,
    /// Padding behind an object's metadata.
    ObjectPadding,
    /// What is left of a slab behind its last object.
    SlabPadding,
}

impl Part {
    /// The name in all output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeftRedzone => "left red zone",
            Self::RightRedzone => "right red zone",
            Self::KmallocRedzone => "kmalloc red zone",
            Self::Poison => "poison",
            Self::ObjectPadding => "object padding",
            Self::SlabPadding => "slab padding",
        }
    }
}

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where.
    pub part: Part,
    /// First wrong byte, from the object's start.
    pub offset_in_object: Option<i64>,
    /// First wrong byte, from the slab's start.
    pub offset_in_slab: Option<u64>,
    /// From the first wrong byte to the last one, both counted.
    pub len: Option<u64>,
    /// What was found there, as far as it was printed.
    pub found: Vec<u8>,
    /// What every one of them should be.
    pub expected: Option<u8>,
    /// The bit that differs, when only one does: its number and whether it is set now.
    pub flipped_bit: Option<(u32, bool)>,
}

/// Objects of one call site that were left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBy {
    /// Who allocated them; `None` where that was not tracked.
    pub symbol: Option<String>,
    /// How many.
    pub objects: u64,
}

/// What the kernel was doing when it noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// An object was being freed.
    Free,
    /// One was being allocated.
    Alloc,
    /// All were being checked.
    Validate,
    /// The cache was being destroyed.
    Destroy,
}

impl Operation {
    /// What was done, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Alloc => "allocation",
            Self::Validate => "validation",
            Self::Destroy => "destruction of the cache",
        }
    }
}

/// A report, or several equal ones, explained.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What kind of report.
    pub kind: Kind,
    /// What happened.
    pub class: Class,
    /// One line that says it.
    pub headline: String,
    /// The cache; `None` when the report does not name it.
    pub cache: Option<CacheName>,
    /// The reason as the kernel printed it.
    pub reason: Option<String>,
    /// The object.
    pub object: Option<ObjectFacts>,
    /// Its slab.
    pub slab: Option<SlabLine>,
    /// Who allocated the object last.
    pub allocated: Option<Track>,
    /// Who freed it last.
    pub freed: Option<Track>,
    /// `freed` is from the life before this one.
    pub freed_before: bool,
    /// Who ran when it was found.
    pub detected: Detected,
    /// What it was doing.
    pub operation: Option<Operation>,
    /// The first function of that stack that is not the allocator's.
    pub detected_by: Option<String>,
    /// What the kernel did about it, as printed.
    pub fixes: Vec<String>,
    /// Objects that were left, by call site, most first.
    pub left: Vec<LeftBy>,
    /// Slabs of the nodes when an allocation failed.
    pub nodes: Vec<NodeSlabs>,
    /// What follows.
    pub conclusions: Vec<Conclusion>,
    /// What the report does not tell.
    pub unknown: Vec<String>,
    /// What to do.
    pub next: Vec<String>,
    /// First and last line of the first of these reports.
    pub lines: (u64, u64),
    /// The last line of the last one.
    pub last_line: u64,
    /// The time of the first one as printed.
    pub stamp: Option<String>,
    /// How many reports say the same, this one counted.
    pub repeats: u64,
    /// The finding that this one follows from, as a position in the list.
    pub consequence_of: Option<usize>,
}

impl Finding {
    /// A finding about which nothing is known yet.
    pub(super) fn new(kind: Kind, class: Class) -> Self {
        Self {
            kind,
            class,
            headline: String::new(),
            cache: None,
            reason: None,
            object: None,
            slab: None,
            allocated: None,
            freed: None,
            freed_before: false,
            detected: Detected::default(),
            operation: None,
            detected_by: None,
            fixes: Vec::new(),
            left: Vec::new(),
            nodes: Vec::new(),
            conclusions: Vec::new(),
            unknown: Vec::new(),
            next: Vec::new(),
            lines: (0, 0),
            last_line: 0,
            stamp: None,
            repeats: 1,
            consequence_of: None,
        }
    }

    pub(super) fn say(&mut self, confidence: Confidence, text: impl Into<String>) {
        let text = text.into();
        self.conclusions.push(Conclusion { text, confidence });
    }

    pub(super) fn certain(&mut self, text: impl Into<String>) {
        self.say(Confidence::Certain, text);
    }

    pub(super) fn likely(&mut self, text: impl Into<String>) {
        self.say(Confidence::Likely, text);
    }

    pub(super) fn possible(&mut self, text: impl Into<String>) {
        self.say(Confidence::Possible, text);
    }

    pub(super) fn not_known(&mut self, text: impl Into<String>) {
        self.unknown.push(text.into());
    }

    pub(super) fn do_next(&mut self, text: impl Into<String>) {
        self.next.push(text.into());
    }

    /// The damage, where there is one.
    pub fn damage(&self) -> Option<&Damage> {
        self.object.as_ref()?.damage.as_ref()
    }

    /// The name of the cache for sentences.
    pub(super) fn name(&self) -> &str {
        self.cache.as_ref().map_or("unnamed cache", |c| &c.name)
    }
}
