//! Checks of what slots keep: arrays, and own lists of slabs that they hold.
//!
//! An object is in one place. One that is in two arrays, or in an array and a list,
//! was freed twice. It is told only if all rows had equal stamps before and after, so
//! that everything was read in one moment, and the slab's word did not change.

use super::slabs::check_word;
use super::{Fault, Finding, Validation};
use crate::core::{CacheCore, Path};
use crate::dump::{Marks, State, each_own};
use crate::sync::Ordering::Relaxed;
use crate::walk::Seen;

/// Times to look at rows that keep changing.
const TRIES: usize = 16;

/// What is wrong in one look, if it was of one moment; the first fault only.
type Look = Option<Option<Finding>>;

/// Checks the rows and barns of a cache.
pub(super) fn check(core: &CacheCore, marks: &mut Marks, found: &mut Validation) {
    if core.path == Path::Debug {
        return;
    }
    let mut before = None;
    for _ in 0..TRIES {
        if !marks.gather(core) {
            break;
        }
        match look(core, marks) {
            // Seen twice: processors that order stores less strictly have had time to show them.
            Some(Some(finding)) if before == Some(finding) => return found.tell(finding),
            Some(None) => return,
            seen => before = seen.flatten(),
        }
        std::thread::yield_now();
    }
    found.moving += 1;
}

fn look(core: &CacheCore, marks: &Marks) -> Look {
    let mut fault = None;
    let mut rest = marks.arrays();
    let wrong = |mark: &&(usize, State)| core.locate_checked(mark.0).is_none();
    if let Some((_, place)) = marks.arrays().iter().find(wrong) {
        let kind = Fault::NotAnObject { place: *place };
        fault = Some(Finding::new(core.id, 0, kind));
        rest = &[];
    }
    while let Some((address, _)) = rest.first() {
        let (slab, _) = core.locate(*address);
        let start = core.engine.pages.address(slab);
        let end = start + core.engine.pages.run_bytes(slab);
        let n = rest.partition_point(|mark| mark.0 < end);
        let (here, after) = rest.split_at(n.max(1));
        rest = after;
        fault = look_at_slab(core, slab, here, marks)?;
        if fault.is_some() {
            break;
        }
    }
    for slab in marks.in_hand() {
        if fault.is_none() {
            fault = look_at_slab(core, slab, &[], marks)?;
        }
    }
    marks.still(core).then_some(fault)
}

/// The objects of one slab that are in arrays against each other and against its lists.
fn look_at_slab(core: &CacheCore, slab: u32, marked: &[(usize, State)], marks: &Marks) -> Look {
    let desc = core.desc(slab);
    let word = desc.load();
    let mut listed = Seen::new();
    // A damaged list is told by the checks of slabs.
    let whole = check_word(core, slab, word, &mut listed).is_ok();
    let mut fault = None;
    let mut tell = |object, first, second| {
        let kind = Fault::FreedTwice {
            object,
            first,
            second,
        };
        let node = desc.node.load(Relaxed);
        let finding = Finding::new(core.id, node, kind);
        fault.get_or_insert(finding.in_slab(core.engine.pages.address(slab)));
    };
    let mut own = Seen::new();
    let mut own_place = State::Unknown;
    each_own(core, slab, marks, |object, place| {
        own_place = place;
        if own.mark(object) {
            tell(object, place, place);
            return false;
        }
        if whole && listed.has(object) {
            tell(object, State::Free, place);
        }
        true
    });
    let mut arrays = Seen::new();
    let mut before = State::Unknown;
    for (address, place) in marked {
        let Some((_, object)) = core.locate_checked(*address) else {
            continue;
        };
        if arrays.mark(object) {
            tell(object, before, *place);
        } else if whole && listed.has(object) {
            tell(object, State::Free, *place);
        } else if own.has(object) {
            tell(object, own_place, *place);
        }
        before = *place;
    }
    (desc.load() == word).then_some(fault)
}
