//! What the figures suggest: each remark with its evidence and what would confirm it.
//!
//! One snapshot tells where memory is: holes, long partial lists, debugging,
//! merged names, fallback orders. Growth needs two; whether growth is a leak,
//! no number of samples can prove, so a remark says what shape it has and what
//! would tell. A rule that lacks a figure says nothing.

mod growth;
mod state;
#[cfg(test)]
mod tests;

pub use growth::of_growth;
pub use state::of_snapshot;

use std::cmp::Reverse;

use crate::model::{Approx, Cache};
use crate::units::{Scale, percent, size};

/// Names of the columns that the rules look at.
pub const NEEDS: [&str; 7] = [
    "loss",
    "partial",
    "objects",
    "total_objects",
    "min_partial",
    "aliases",
    "flags",
];

/// What a remark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Live objects grew, in a cache that memory pressure does not shrink.
    LeakShaped,
    /// Live objects grew, in a cache that memory pressure shrinks.
    CacheShaped,
    /// Slabs grew and objects did not, or objects went and slabs stayed.
    GrowingHoles,
    /// One cache holds much of all slab memory.
    Dominant,
    /// Much of the memory held has no object in it.
    Fragmentation,
    /// Many more partial slabs than the kernel keeps empty ones.
    PartialList,
    /// Red zones, poison or tracks make slots larger.
    DebugSizes,
    /// Alignment or metadata takes a large part of each slot.
    Slack,
    /// The ends of slabs hold no object.
    Tail,
    /// Slabs of a smaller order than wanted.
    OrderFallback,
    /// A large cache has several names, and any of them may be the cause.
    MergedNames,
    /// How much of the machine's memory slab is, and how much of that can be reclaimed.
    Share,
}

impl Rule {
    /// Every rule, in the order of the list.
    pub const ALL: [Self; 12] = [
        Self::LeakShaped,
        Self::CacheShaped,
        Self::GrowingHoles,
        Self::Dominant,
        Self::Fragmentation,
        Self::PartialList,
        Self::DebugSizes,
        Self::Slack,
        Self::Tail,
        Self::OrderFallback,
        Self::MergedNames,
        Self::Share,
    ];

    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeakShaped => "leak-shaped-growth",
            Self::CacheShaped => "cache-shaped-growth",
            Self::GrowingHoles => "growing-holes",
            Self::Dominant => "dominant-cache",
            Self::Fragmentation => "fragmentation",
            Self::PartialList => "long-partial-list",
            Self::DebugSizes => "debug-sizes",
            Self::Slack => "slot-slack",
            Self::Tail => "slab-tail",
            Self::OrderFallback => "order-fallback",
            Self::MergedNames => "merged-names",
            Self::Share => "share-of-memory",
        }
    }

    /// How much its remarks matter.
    pub const fn severity(self) -> Severity {
        match self {
            Self::LeakShaped
            | Self::GrowingHoles
            | Self::Fragmentation
            | Self::PartialList
            | Self::DebugSizes
            | Self::OrderFallback => Severity::Look,
            Self::CacheShaped
            | Self::Dominant
            | Self::Slack
            | Self::Tail
            | Self::MergedNames
            | Self::Share => Severity::Know,
        }
    }
}

/// How much a remark matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something may be wrong, or costs memory for nothing.
    Look,
    /// How things are.
    Know,
}

/// A figure that a remark rests on.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(Approx<u64>),
    /// A number of objects, slabs or the like.
    Count(Approx<u64>),
    /// A share, 0 to 1.
    Ratio(Approx<f64>),
    /// Bytes in an hour, signed.
    BytesPerHour(Approx<f64>),
    /// Names.
    Names(Vec<String>),
}

/// A named figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// What it is, as the field is called in JSON documents where it is one.
    pub what: &'static str,
    /// How much.
    pub amount: Amount,
}

impl Evidence {
    /// For people: `partial 640`, `memory_bytes ~1.20G`.
    pub fn text(&self, scale: Scale) -> String {
        let mark = |approx: bool| if approx { "~" } else { "" };
        match &self.amount {
            Amount::Bytes(b) => {
                format!("{} {}{}", self.what, mark(b.approx), size(b.value, scale))
            }
            Amount::Count(n) => format!("{} {}{}", self.what, mark(n.approx), n.value),
            Amount::Ratio(r) => {
                format!("{} {}{}%", self.what, mark(r.approx), percent(r.value))
            }
            Amount::BytesPerHour(r) => {
                let sign = if r.value < 0.0 { "-" } else { "+" };
                let rate = size(whole(r.value.abs()), scale);
                format!("{} {}{sign}{rate}/h", self.what, mark(r.approx))
            }
            Amount::Names(names) => format!("{} {}", self.what, names.join(", ")),
        }
    }
}

/// A figure without its fraction; beyond the range, the largest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts of floats to integers saturate"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// One remark.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// What it is about.
    pub rule: Rule,
    /// The cache's shown name; `None` when it is about all caches.
    pub cache: Option<Box<str>>,
    /// The cache's directory in /sys/kernel/slab, where known.
    pub sysfs_id: Option<Box<str>>,
    /// Bytes that are at stake, by which remarks are sorted.
    pub bytes: Option<Approx<u64>>,
    /// The remark, one sentence.
    pub says: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What would confirm it, or what to do.
    pub next: String,
}

impl Advice {
    fn about(rule: Rule, cache: Option<&Cache>, bytes: Approx<u64>, says: String) -> Self {
        Self {
            rule,
            cache: cache.map(|c| c.name.clone()),
            sysfs_id: cache.and_then(|c| c.sysfs_id.clone()),
            bytes: Some(bytes),
            says,
            evidence: Vec::new(),
            next: String::new(),
        }
    }

    fn with(mut self, what: &'static str, amount: Option<Amount>) -> Self {
        self.evidence
            .extend(amount.map(|amount| Evidence { what, amount }));
        self
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }
}

/// What is too small to speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes at stake below which nothing is said.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 1 << 20 }
    }
}

/// Growth first, then by falling bytes, then by rule and name.
fn sort(list: &mut [Advice]) {
    list.sort_by(|a, b| {
        let key = |x: &Advice| {
            (
                x.rule > Rule::GrowingHoles,
                Reverse(x.bytes.map(|b| b.value)),
                x.rule,
            )
        };
        key(a)
            .cmp(&key(b))
            .then_with(|| a.cache.cmp(&b.cache))
            .then_with(|| a.sysfs_id.cmp(&b.sysfs_id))
    });
}

/// A size for a sentence.
fn bytes(value: Approx<u64>) -> String {
    let mark = if value.approx { "~" } else { "" };
    format!("{mark}{}", size(value.value, Scale::Iec))
}
