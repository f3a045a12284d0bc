//! The false alarms of validations beside frees, on kernels before 6.1.
//!
//! Source of truth: "mm/slub: restrict sysfs validation to debug caches and make
//! it safe" (Linux 6.1). Before it, a free marked an object (its red zones
//! become 0xbb) some time before the object was on its slab's list, and changed
//! counters at other times than lists. A validation in between finds the mark of
//! a free object where that of a live one (0xcc) should be and "repairs" it; when
//! the free is done, the repaired mark is wrong the other way round.

use crate::analysis::explain::Finding;
use crate::parse::kernel_log::reason::{self, Reason};
use crate::parse::kernel_log::report::{Body, Label, Overwritten, Report, Slub};

/// Red zone of a live object.
const LIVE: u8 = 0xcc;
/// Red zone of a free object.
const FREE: u8 = 0xbb;

/// What a validation finds that came between the steps of a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The object is marked free, and not on the list.
    MarkedFree,
    /// It was repaired to be marked live, and is on the list now.
    MarkedLive,
    /// Counters that differ from the lists by what is under way.
    Counts,
}

/// The shape of a report, when it has one: `under_way` frees at most.
pub(super) fn shape(report: &Report, finding: &Finding, under_way: u64) -> Option<Shape> {
    match &report.body {
        Body::Slub(slub) => match reason::read(slub.reason.as_deref()?).0 {
            Reason::WrongCount(Some(a), Some(b)) => counts(a.abs_diff(b), under_way),
            Reason::Redzone
            | Reason::LeftRedzone
            | Reason::RightRedzone
            | Reason::ObjectCorrupt => {
                let over = slub.overwritten.first()?;
                marks(over).filter(|_| is_whole_zone(slub, finding, over))
            }
            _ => None,
        },
        Body::Validator(found) => counts(found.counted?.abs_diff(found.counter?), under_way),
        _ => None,
    }
}

/// Whether the mark fills the red zone, as far as it is shown.
fn is_whole_zone(slub: &Slub, finding: &Finding, over: &Overwritten) -> bool {
    let all = |bytes: &[u8]| bytes.iter().all(|byte| Some(*byte) == over.found);
    match finding.damage().map(|d| &d.found) {
        // One byte is what the report's line has, without the rows.
        Some(found) if found.len() > 1 => all(found),
        _ => {
            let mut zones = slub.rows.iter().filter(|r| r.label == Label::Redzone);
            zones.clone().next().is_none() || zones.any(|row| all(row.bytes()))
        }
    }
}

fn counts(difference: u64, under_way: u64) -> Option<Shape> {
    (difference <= under_way).then_some(Shape::Counts)
}

/// The shape of a red zone by its first wrong byte.
pub(super) fn marks(over: &Overwritten) -> Option<Shape> {
    match (over.found?, over.expected?) {
        (FREE, LIVE) => Some(Shape::MarkedFree),
        (LIVE, FREE) => Some(Shape::MarkedLive),
        _ => None,
    }
}

/// Why a finding of that shape is likely no fault.
pub(super) fn why(shape: Shape, last_clean: bool) -> String {
    let what = match shape {
        Shape::MarkedFree => {
            "before Linux 6.1 an object that is being freed during a validation is marked free and not on the list yet"
        }
        Shape::MarkedLive => {
            "it is the second half: before Linux 6.1 a validation \"repairs\" the mark of an object that is being freed, which is wrong once the free is done"
        }
        Shape::Counts => {
            "before Linux 6.1 frees during a validation make counters and lists differ by a few"
        }
    };
    let then = if last_clean {
        "; the last validation found nothing"
    } else {
        "; later validations did not find the same again"
    };
    format!("{what}{then}")
}
