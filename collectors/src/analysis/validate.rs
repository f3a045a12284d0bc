//! What validations of a cache by the kernel found, from the reports in its log.
//!
//! Purpose: one fault for each thing that is wrong, with the cache it is of;
//! when to look again; which of them are likely false alarms; and whether a
//! cache is clean, which is said only when the whole log was read. Source of
//! truth: validate_slab() of mm/slub.c, which stops at the first damaged object
//! of a slab, and repairs it: another validation finds the next one.

mod plan;
mod race;
#[cfg(test)]
mod tests;

pub use plan::{Reach, SAFE_SINCE, boot_option, checks, is_safe, reach, why_not};

use self::race::Shape;
use crate::analysis::explain::boot;
use crate::analysis::explain::finding::Operation;
use crate::analysis::explain::{Class, Finding, Kind, explain_report};
use crate::control::{Look, Validated};
use crate::parse::kernel_log::reason::{self, Reason};
use crate::parse::kernel_log::report::{Body, Overwritten, Report};

/// Validations of one cache at most.
pub const MAX_PASSES: u32 = 5;
/// Faults of one cache that are kept.
const MAX_FAULTS: usize = 1000;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The cache, as the report names it; else the one that was validated.
    pub cache: String,
    /// The node of the slab, where the report tells.
    pub node: Option<u32>,
    /// The slab's descriptor as printed, which may be hashed.
    pub slab: Option<u64>,
    /// Bytes from the start of the slab to the first wrong byte, or to the object.
    pub offset: Option<u64>,
    /// Stable name of the kind of fault, as `explain` has it.
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// The reason as the kernel printed it.
    pub reason: Option<String>,
    /// What the kernel did about it, as printed.
    pub repairs: Vec<String>,
    /// Found by a validation (`false`: while the cache was used; `None`: not told).
    pub by_validation: Option<bool>,
    /// The validation during which it was found, from 1.
    pub pass: u32,
    /// It follows from an earlier fault of the same slab, or list of slabs.
    pub follows: bool,
    /// Why it is likely a false alarm; `None` when it is not.
    pub false_positive: Option<String>,
    shape: Option<Shape>,
    /// About the first object of `kmem_cache_node`.
    early: bool,
}

impl Fault {
    fn of(report: &Report, finding: &Finding, cache: &str, under_way: u64) -> Self {
        let cache = finding.cache.as_ref().map_or(cache, |c| &c.name);
        let message = finding.headline.strip_prefix(cache);
        let message = message.and_then(|rest| rest.strip_prefix(": "));
        let slab = finding.slab.as_ref();
        let object = finding.object.as_ref();
        let damage = finding.damage().and_then(|d| d.offset_in_slab);
        let over = match &report.body {
            Body::Slub(found) => found.overwritten.first().and_then(|o| o.offset),
            _ => None,
        };
        Self {
            cache: cache.to_owned(),
            node: slab.and_then(|s| node(s.flags.as_deref()?)),
            slab: slab.and_then(|s| s.pointer),
            offset: over
                .or(damage)
                .or_else(|| object.and_then(|o| o.offset_in_slab)),
            code: finding.class.name(),
            message: message.unwrap_or(&finding.headline).to_owned(),
            reason: finding.reason.clone(),
            repairs: finding.fixes.clone(),
            by_validation: finding.operation.map(|op| op == Operation::Validate),
            pass: 0,
            follows: false,
            false_positive: None,
            shape: race::shape(report, finding, under_way),
            early: matches!(&report.body, Body::Slub(found) if boot::is_first_node(found)),
        }
    }

    /// A further violation of the same object: the kernel prints one line of it.
    fn further(&self, over: &Overwritten) -> Self {
        let what = over.what.as_deref().unwrap_or("something");
        let bytes = match (over.found, over.expected) {
            (Some(found), Some(expected)) => {
                format!(": first byte {found:#04x} instead of {expected:#04x}")
            }
            _ => String::new(),
        };
        let reason = format!("{what} overwritten");
        Self {
            offset: over.offset,
            code: class(&reason, over).name(),
            message: format!("of the same object: {what} overwritten{bytes}"),
            reason: Some(reason),
            repairs: Vec::new(),
            shape: race::marks(over),
            ..self.clone()
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.cache, self.slab, self.offset, self.code, &self.reason)
            == (
                &other.cache,
                other.slab,
                other.offset,
                other.code,
                &other.reason,
            )
    }

    fn is_list_fault(&self) -> bool {
        [Class::Freelist.name(), Class::Counters.name()].contains(&self.code)
    }
}

/// `0x100(slab|node=1|zone=1)`.
fn node(flags: &str) -> Option<u32> {
    let rest = flags.split_once("node=")?.1;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// What an overwritten part means.
fn class(reason: &str, over: &Overwritten) -> Class {
    let free = over.expected == Some(0xbb);
    match reason::read(reason).0 {
        _ if race::marks(over).is_some() => Class::Freelist,
        Reason::Poison | Reason::EndPoison => Class::UseAfterFree,
        Reason::LeftRedzone | Reason::RightRedzone | Reason::Redzone if free => Class::UseAfterFree,
        Reason::LeftRedzone => Class::Underflow,
        Reason::RightRedzone | Reason::KmallocRedzone | Reason::Redzone => Class::Overflow,
        Reason::ObjectPadding | Reason::SlabPadding { .. } => Class::Padding,
        _ => Class::CannotTell,
    }
}

/// Whether a cache is as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel looked, the log was read whole, and nothing is wrong within reach.
    Clean,
    /// Something is wrong.
    Faults,
    /// Nobody can tell, and why.
    Unknown(String),
    /// The kernel refused to look.
    Refused,
}

/// The validations of one cache.
#[derive(Debug, Clone)]
pub struct Examination {
    names: Vec<String>,
    kernel: Option<String>,
    under_way: u64,
    /// How many validations there were.
    pub passes: u32,
    /// What is wrong with the cache, each once.
    pub faults: Vec<Fault>,
    /// What was reported of other caches meanwhile.
    pub elsewhere: Vec<Fault>,
    /// Faults that are not kept.
    pub more: u64,
    /// Reports of other kinds that came meanwhile.
    pub others: u64,
    incomplete: Option<String>,
    refused: bool,
    last_clean: bool,
    again: Vec<usize>,
}

impl Examination {
    /// Of a cache with these names, on a kernel of that release with so many CPUs.
    pub fn new(names: Vec<String>, kernel: Option<&str>, cpus: Option<u32>) -> Self {
        Self {
            names,
            kernel: kernel.map(str::to_owned),
            under_way: u64::from(cpus.unwrap_or(1)),
            passes: 0,
            faults: Vec::new(),
            elsewhere: Vec::new(),
            more: 0,
            others: 0,
            incomplete: None,
            refused: false,
            last_clean: false,
            again: Vec::new(),
        }
    }

    /// Takes the next validation; true when another one may tell more.
    pub fn add(&mut self, look: &Look) -> bool {
        if look.answer == Validated::NotDebugged {
            self.refused = true;
            return false;
        }
        self.passes += 1;
        self.last_clean = true;
        let mut promising = false;
        for report in &look.reports {
            promising |= self.report(report);
        }
        if let Some(why) = &look.incomplete {
            self.incomplete.get_or_insert_with(|| why.clone());
        }
        promising && self.passes < MAX_PASSES
    }

    /// Takes a report; true when it has something new that does not only follow
    /// from what is known.
    fn report(&mut self, report: &Report) -> bool {
        let finding = explain_report(report);
        if !matches!(finding.kind, Kind::Slub | Kind::Validator) {
            self.others += 1;
            return false;
        }
        let own = self.names.first().map_or("", String::as_str);
        let first = Fault::of(report, &finding, own, self.under_way);
        let further: Vec<_> = match &report.body {
            Body::Slub(slub) => slub.overwritten.iter().skip(1).collect(),
            _ => Vec::new(),
        };
        let further: Vec<_> = further
            .into_iter()
            .map(|over| first.further(over))
            .collect();
        let mut promising = false;
        for fault in std::iter::once(first).chain(further) {
            promising |= self.fault(fault);
        }
        promising
    }

    fn fault(&mut self, mut fault: Fault) -> bool {
        fault.pass = self.passes;
        let own = self.names.contains(&fault.cache);
        self.last_clean &= !own;
        let list = if own {
            &mut self.faults
        } else {
            &mut self.elsewhere
        };
        if let Some(at) = list.iter().position(|old| old.is_same(&fault)) {
            if own && list[at].pass < fault.pass {
                self.again.push(at);
            }
            return false;
        }
        if list.len() >= MAX_FAULTS {
            self.more += 1;
            return false;
        }
        // A slab with a damaged list is taken off the lists of slabs, which are
        // then shorter than their counters.
        let same = |old: &Fault| match fault.slab {
            Some(_) => old.slab == fault.slab,
            None => old.cache == fault.cache && old.is_list_fault(),
        };
        fault.follows = fault.is_list_fault() && list.iter().any(same);
        let racy = fault.shape.is_some() && is_safe(self.kernel.as_deref()) == Some(false);
        let promising = own && (!fault.follows || racy);
        list.push(fault);
        promising
    }

    /// What to make of it all. Marks likely false alarms.
    pub fn verdict(&mut self) -> Verdict {
        if self.refused {
            return Verdict::Refused;
        }
        self.mark_false_alarms();
        match &self.incomplete {
            _ if !self.faults.is_empty() => Verdict::Faults,
            Some(why) => Verdict::Unknown(why.clone()),
            None if self.passes == 0 => Verdict::Unknown("it was not validated".to_owned()),
            None => Verdict::Clean,
        }
    }

    /// Why the reports may not be all; `None` when they are.
    pub fn incomplete(&self) -> Option<&str> {
        self.incomplete.as_deref()
    }

    /// Marks what is likely no fault: of the race of old kernels only when all
    /// have a shape of it, since one real fault brings others of these shapes
    /// with it, and none comes back.
    fn mark_false_alarms(&mut self) {
        if self.incomplete.is_some() {
            return;
        }
        for (at, fault) in self.faults.iter_mut().enumerate() {
            if fault.early && !self.again.contains(&at) {
                fault.false_positive = Some(format!("{}; it was mended", boot::WHY));
            }
        }
        self.mark_race();
    }

    fn mark_race(&mut self) {
        let old = is_safe(self.kernel.as_deref()) == Some(false);
        let all = self.faults.iter().all(|fault| fault.shape.is_some());
        if !old || !all || !self.again.is_empty() {
            return;
        }
        for fault in &mut self.faults {
            fault.follows = false;
            fault.false_positive = fault.shape.map(|shape| race::why(shape, self.last_clean));
        }
    }
}
