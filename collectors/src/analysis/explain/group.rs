//! Which findings are one, and which follow from which.
//!
//! Purpose: a log repeats a fault many times, and one fault has many reports.
//! Equal findings become one; a finding on the same slab or object as an
//! earlier one, of a kind that damage brings with it, is a consequence. Both
//! lists are bounded.

use std::collections::HashMap;

use super::finding::{Class, Conclusion, Confidence, Finding, Kind, Part};

/// Findings that are kept; further ones are counted.
pub const MAX_FINDINGS: usize = 1000;

/// Slabs that are remembered for consequences.
const MAX_SLABS: usize = 4096;

/// What two equal findings have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: Kind,
    /// Not for checks of SLAB: a report that is cut off has none.
    class: Option<Class>,
    cache: Option<String>,
    reason: Option<String>,
    part: Option<Part>,
    offset: Option<i64>,
    size: Option<u64>,
    allocated: Option<String>,
    freed: Option<String>,
    by: Option<String>,
    root: Option<usize>,
}

impl Key {
    fn of(finding: &Finding) -> Self {
        let cut =
            finding.kind == Kind::Slab && finding.reason.as_deref() != Some("Slab corruption");
        let damage = finding.damage().filter(|_| !cut);
        // Addresses and counts differ from one to the next.
        let reason = finding.reason.as_deref().map(|reason| {
            let end = reason
                .find("0x")
                .or_else(|| reason.find(|c: char| c.is_ascii_digit()));
            reason[..end.unwrap_or(reason.len())].to_owned()
        });
        Self {
            kind: finding.kind,
            class: (!cut).then_some(finding.class),
            cache: finding.cache.as_ref().map(|c| c.name.clone()),
            reason,
            part: damage.map(|d| d.part),
            offset: damage.and_then(|d| d.offset_in_object),
            size: finding.object.as_ref().and_then(|o| o.size),
            allocated: finding.allocated.as_ref().map(|t| t.symbol.clone()),
            freed: finding.freed.as_ref().map(|t| t.symbol.clone()),
            by: finding.detected_by.clone(),
            root: finding.consequence_of,
        }
    }
}

/// Collects findings.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub findings: Vec<Finding>,
    /// Reports that were not kept.
    pub more: u64,
    keys: HashMap<Key, usize>,
    /// The first finding on each slab, by cache and address of its descriptor.
    slabs: HashMap<(String, u64), usize>,
    /// Whether all of a group are about one object.
    same_object: Vec<bool>,
}

impl Groups {
    /// Adds a finding: to an equal one, or as a new one. Gives its place.
    pub fn add(&mut self, mut finding: Finding) -> Option<usize> {
        finding.consequence_of = self.root(&finding);
        if let Some(root) = finding.consequence_of {
            follow(&mut finding, root);
        }
        let key = Key::of(&finding);
        if let Some(at) = self.keys.get(&key).copied() {
            self.repeat(at, finding);
            return Some(at);
        }
        if self.findings.len() >= MAX_FINDINGS {
            self.more += 1;
            return None;
        }
        let at = self.findings.len();
        if let Some(slab) = slab_of(&finding).filter(|_| self.slabs.len() < MAX_SLABS) {
            let root = finding.consequence_of.unwrap_or(at);
            self.slabs.entry(slab).or_insert(root);
        }
        self.keys.insert(key, at);
        self.same_object.push(true);
        self.findings.push(finding);
        Some(at)
    }

    fn repeat(&mut self, at: usize, new: Finding) {
        let old = &mut self.findings[at];
        self.same_object[at] &= same_object(old, &new);
        // A report that was cut off learns from a whole one.
        if old.class == Class::CannotTell && new.class != Class::CannotTell {
            let (lines, stamp, repeats) = (old.lines, old.stamp.take(), old.repeats);
            *old = new;
            (old.lines, old.stamp, old.repeats) = (lines, stamp, repeats);
        } else {
            old.last_line = old.last_line.max(new.last_line);
        }
        old.repeats += 1;
    }

    /// The finding that this one follows from.
    fn root(&self, finding: &Finding) -> Option<usize> {
        let follow = |at: usize| self.findings[at].consequence_of.unwrap_or(at);
        if finding.kind == Kind::CacheDestroy {
            let same = |f: &Finding| {
                f.class == Class::Leak && f.kind == Kind::Slub && f.cache == finding.cache
            };
            return self.findings.iter().rposition(same).map(follow);
        }
        let cache = finding.cache.as_ref()?;
        let by_slab = slab_of(finding).and_then(|slab| self.slabs.get(&slab).copied());
        match finding.class {
            Class::Counters | Class::Freelist => by_slab.map(follow),
            // What a repair took out of use is left at the end.
            Class::Leak => {
                let lost = |f: &Finding| {
                    f.cache.as_ref() == Some(cache)
                        && f.fixes.iter().any(|fix| {
                            ["not freed", "djusted", "cleared", "objects used"]
                                .iter()
                                .any(|word| fix.trim_end_matches('.').ends_with(word))
                        })
                };
                by_slab
                    .filter(|at| {
                        let root = follow(*at);
                        self.findings
                            .iter()
                            .enumerate()
                            .any(|(n, f)| follow(n) == root && lost(f))
                    })
                    .map(follow)
            }
            _ => None,
        }
    }

    /// What only the whole list tells.
    pub fn finish(&mut self) {
        for at in 0..self.findings.len() {
            let finding = &mut self.findings[at];
            let count = finding.repeats;
            if finding.class == Class::BitFlip && count > 1 && self.same_object[at] {
                finding.say(
                    Confidence::Likely,
                    format!("Bad memory: the same bit of the same byte at the same address, {count} times."),
                );
            }
        }
        super::related::relate(&mut self.findings);
    }
}

/// Says so, and takes back what would be said of a fault of its own.
fn follow(finding: &mut Finding, root: usize) {
    let why = if finding.kind == Kind::CacheDestroy {
        "it tells of the same objects"
    } else {
        "it is on the same slab, which was damaged or repaired before"
    };
    let conclusion = Conclusion {
        text: format!("It follows from finding {}: {why}.", root + 1),
        confidence: Confidence::Likely,
    };
    finding
        .conclusions
        .retain(|c| c.confidence == Confidence::Certain);
    finding.conclusions.insert(0, conclusion);
    finding.unknown.clear();
    finding.next.clear();
}

fn slab_of(finding: &Finding) -> Option<(String, u64)> {
    let pointer = finding.slab.as_ref()?.pointer.filter(|p| *p != 0)?;
    Some((finding.cache.as_ref()?.name.clone(), pointer))
}

fn same_object(a: &Finding, b: &Finding) -> bool {
    let place = |f: &Finding| {
        let object = f.object.as_ref()?;
        let slab = f.slab.as_ref().and_then(|s| s.pointer);
        Some((
            object.address,
            object.offset_in_slab,
            slab,
            f.damage().map(|d| d.found.clone()),
        ))
    };
    place(a).is_some() && place(a) == place(b)
}
