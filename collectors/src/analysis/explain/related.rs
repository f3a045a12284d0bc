//! What several findings tell together.
//!
//! Purpose: two halves of one fault. Nothing here changes what a finding says
//! by itself; it adds what only the pair tells.

use super::finding::{Class, Confidence, Finding};
use super::pattern::{self, Pattern};

/// A machine word.
const WORD: u64 = 8;

/// Adds conclusions to findings that belong together.
pub(super) fn relate(findings: &mut [Finding]) {
    for at in 0..findings.len() {
        if let Some(other) = unlinked(findings, at) {
            let text = format!(
                "Finding {} is the other half: of two neighbouring words one received a pointer and the other NULL. That is the unlinking of a list entry in an object that is free already.",
                other + 1
            );
            findings[at].say(Confidence::Likely, text);
        }
    }
}

/// The finding on the word beside this one's in the same kind of object, where
/// one of the two holds a pointer and the other zeros.
fn unlinked(findings: &[Finding], at: usize) -> Option<usize> {
    let this = &findings[at];
    let (offset, stored) = word(this)?;
    findings.iter().enumerate().position(|(n, other)| {
        n != at
            && other.cache == this.cache
            && word(other).is_some_and(|(o, s)| o.abs_diff(offset) == WORD && s != stored)
    })
}

/// Where a freed object was written to, and whether a pointer was stored
/// (else zeros).
fn word(finding: &Finding) -> Option<(i64, bool)> {
    let damage = finding
        .damage()
        .filter(|_| finding.class == Class::UseAfterFree)?;
    let first = pattern::read(&damage.found, damage.expected?)
        .into_iter()
        .next()?;
    let pointer = match first {
        Pattern::Pointer(_) | Pattern::ListPoison => true,
        Pattern::Zeros(8) => false,
        _ => return None,
    };
    Some((damage.offset_in_object?, pointer))
}
