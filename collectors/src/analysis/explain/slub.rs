//! A SLUB report, explained.
//!
//! Purpose: the facts that all of them have, and which kind of explanation each
//! reason needs. Source of truth: reference of reasons in
//! `parse::kernel_log::reason`.

use super::finding::{Class, Finding, Kind, ObjectFacts, Part, State};
use super::layout::Layout;
use super::{damage, frames, lists, words};
use crate::parse::kernel_log::reason::{self, Reason};
use crate::parse::kernel_log::report::{Report, Slub};

/// Explains a SLUB report.
pub(super) fn explain(report: &Report, slub: &Slub) -> Finding {
    let mut finding = Finding::new(Kind::Slub, Class::CannotTell);
    finding.detected = report.detected.clone();
    finding.cache = slub
        .cache
        .as_deref()
        .filter(|c| *c != "<unknown>" && *c != "<none>")
        .map(words::cache_name);
    finding.reason.clone_from(&slub.reason);
    finding.slab.clone_from(&slub.slab);
    finding.allocated.clone_from(&slub.allocated);
    finding.freed.clone_from(&slub.freed);
    finding.fixes.clone_from(&slub.fixes);
    finding.operation = frames::operation(&report.detected.stack);
    let user = frames::user(&report.detected.stack);
    finding.detected_by = user.map(|frame| frame.symbol.clone());
    let layout = Layout::of(slub);
    finding.object = object(slub, &layout, &finding);
    let reason = slub
        .reason
        .as_deref()
        .map_or(Reason::Other, |text| reason::read(text).0);
    match part(&reason, slub) {
        Some(part) => damage::explain(&mut finding, slub, &layout, part),
        None => lists::explain(&mut finding, slub, &layout, &reason),
    }
    common(&mut finding, slub, &layout);
    finding
}

fn object(slub: &Slub, layout: &Layout, finding: &Finding) -> Option<ObjectFacts> {
    let line = slub.object.as_ref()?;
    let named = finding.cache.as_ref().and_then(words::size_of_name);
    // At most a page of an object is shown.
    let size = match (layout.size, named) {
        (Some(shown), Some(named)) => Some(shown.max(named)),
        (shown, named) => shown.or(named),
    };
    Some(ObjectFacts {
        address: line.pointer.filter(|_| layout.plain == Some(true)),
        offset_in_slab: line.offset,
        size,
        ..ObjectFacts::default()
    })
}

/// The part that was written to: `Some(None)` where the place tells the side.
#[expect(
    clippy::option_option,
    reason = "not damaged, damaged somewhere, damaged there"
)]
fn part(reason: &Reason, slub: &Slub) -> Option<Option<Part>> {
    let lost = *reason == Reason::Other && slub.reason.is_none();
    if *reason != Reason::ObjectCorrupt && !lost {
        return named(reason);
    }
    let over = slub.overwritten.first()?;
    match (over.what.as_deref(), over.expected) {
        (Some(what), _) => named(&reason::read(&format!("{what} overwritten")).0),
        // The banner was lost: the expected byte tells most of it.
        (None, Some(0x6b | 0xa5)) => Some(Some(Part::Poison)),
        (None, Some(0x5a)) => Some(Some(Part::ObjectPadding)),
        (None, Some(0xcc | 0xbb)) => Some(None),
        (None, _) => None,
    }
}

/// The part that a reason names.
#[expect(
    clippy::option_option,
    reason = "not damaged, damaged somewhere, damaged there"
)]
fn named(reason: &Reason) -> Option<Option<Part>> {
    match reason {
        Reason::Redzone => Some(None),
        Reason::LeftRedzone => Some(Some(Part::LeftRedzone)),
        Reason::RightRedzone => Some(Some(Part::RightRedzone)),
        Reason::KmallocRedzone => Some(Some(Part::KmallocRedzone)),
        Reason::Poison | Reason::EndPoison => Some(Some(Part::Poison)),
        Reason::ObjectPadding => Some(Some(Part::ObjectPadding)),
        Reason::SlabPadding { .. } => Some(Some(Part::SlabPadding)),
        _ => None,
    }
}

/// What is missing from every report, and what helps.
fn common(finding: &mut Finding, slub: &Slub, layout: &Layout) {
    let state = finding.object.as_ref().and_then(|o| o.state);
    if let (Some(allocated), Some(freed)) = (&slub.allocated, &slub.freed) {
        let older = matches!((allocated.age, freed.age), (Some(a), Some(f)) if f > a);
        finding.freed_before = older || state == Some(State::InUse);
    } else if slub.freed.is_some() && state == Some(State::InUse) {
        finding.freed_before = true;
    }
    if finding.freed_before {
        finding.certain(
            "The one who freed it did so in an earlier life of this memory, before it was allocated again.",
        );
    }
    let about_object = slub.object.is_some() && finding.class != Class::Leak;
    if about_object && slub.allocated.is_none() && slub.freed.is_none() {
        finding.not_known("Who allocated and freed the object: the report has no tracks.");
        let option = words::tracking(finding);
        finding.do_next(format!(
            "Boot with {option} to have them in the next report."
        ));
    }
    if slub.object.is_some() && layout.plain == Some(false) {
        finding.not_known("Real addresses: they are hashed (no_hash_pointers at boot shows them).");
    }
    if slub.slab.is_none() && slub.reason.is_some() {
        finding.not_known("The slab: the report is cut off.");
    }
}
