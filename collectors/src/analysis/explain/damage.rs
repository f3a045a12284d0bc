//! Overwritten bytes, explained: overflow, underflow, use after free.
//!
//! Purpose: from which part was hit, how far from the object and with what, to
//! what happened. Source of truth: check_object() and slab_pad_check() of
//! mm/slub.c. Whoever wrote is never known: the kernel notes who allocates and
//! frees.

use super::finding::{Class, Damage, Finding, ObjectFacts, Operation, Part, State};
use super::layout::Layout;
use super::pattern::{self, FREE, LIVE, Pattern};
use super::words::{bytes, checking, hex, who};
use crate::analysis::validate::is_safe;
use crate::parse::kernel_log::reason::{self, Reason};
use crate::parse::kernel_log::report::{Overwritten, Slub};

/// Explains damage to a part; `None` where only its place tells which.
pub(super) fn explain(finding: &mut Finding, slub: &Slub, layout: &Layout, part: Option<Part>) {
    let lost = padding_line(slub);
    let Some(over) = slub.overwritten.first().or(lost.as_ref()) else {
        unlocated(finding, part);
        return;
    };
    let size = finding.object.as_ref().and_then(|o| o.size);
    let damage = layout.damage(slub, over, part, size);
    let requested = match damage.part {
        Part::KmallocRedzone => layout.requested(&damage),
        _ => None,
    };
    let object = finding.object.get_or_insert_with(ObjectFacts::default);
    object.requested = requested;
    object.state = match (damage.part, damage.expected) {
        (Part::Poison, _) | (_, Some(FREE)) => Some(State::Free),
        (_, Some(LIVE)) => Some(State::InUse),
        _ => None,
    };
    object.damage = Some(damage.clone());
    let patterns = damage
        .expected
        .map_or_else(Vec::new, |e| pattern::read(&damage.found, e));
    match damage.part {
        Part::LeftRedzone | Part::RightRedzone
            if matches!(
                patterns.first(),
                Some(Pattern::FreeMark | Pattern::LiveMark)
            ) =>
        {
            other_state(finding, slub, damage.expected == Some(LIVE));
        }
        Part::RightRedzone => overflow(finding, layout, &damage),
        Part::KmallocRedzone => beyond_request(finding, &damage),
        Part::LeftRedzone => underflow(finding, layout, &damage),
        Part::Poison => after_free(finding, &damage, &patterns),
        Part::ObjectPadding | Part::SlabPadding => padding(finding, &damage),
    }
    describe(finding, &damage, &patterns);
    more(finding, slub);
    finish(finding);
}

/// Damage of the end of a slab is told in the banner itself.
fn padding_line(slub: &Slub) -> Option<Overwritten> {
    let Reason::SlabPadding { from, to, offset } = reason::read(slub.reason.as_deref()?).0 else {
        return None;
    };
    Some(Overwritten {
        what: None,
        from,
        to,
        offset,
        found: None,
        expected: Some(0x5a),
    })
}

/// The line that tells where is missing.
fn unlocated(finding: &mut Finding, part: Option<Part>) {
    finding.class = match part {
        Some(Part::RightRedzone | Part::KmallocRedzone) => Class::Overflow,
        Some(Part::LeftRedzone) => Class::Underflow,
        Some(Part::Poison) => Class::UseAfterFree,
        Some(Part::ObjectPadding | Part::SlabPadding) => Class::Padding,
        None => Class::CannotTell,
    };
    let what = part.map_or("red zone", Part::name);
    finding.headline = format!("{}: {what} overwritten", finding.name());
    finding.not_known("Where and how much: the line that says it is missing.");
    finish(finding);
}

/// How many bytes, for a sentence.
fn amount(damage: &Damage) -> String {
    damage.len.map_or_else(|| "some bytes".to_owned(), bytes)
}

fn size(finding: &Finding) -> Option<u64> {
    finding.object.as_ref().and_then(|o| o.size)
}

fn of_size(finding: &Finding) -> String {
    size(finding).map_or_else(String::new, |n| format!(" of {}", bytes(n)))
}

fn overflow(finding: &mut Finding, layout: &Layout, damage: &Damage) {
    let free = damage.expected == Some(FREE);
    finding.class = if free {
        Class::UseAfterFree
    } else {
        Class::Overflow
    };
    let object = format!(
        "a {} object{}",
        if free { "free" } else { "live" },
        of_size(finding)
    );
    let behind = match (damage.offset_in_object, size(finding)) {
        (Some(at), Some(size)) => u64::try_from(at).ok().and_then(|at| at.checked_sub(size)),
        _ => None,
    };
    let place = match behind {
        Some(0) => format!("right behind the end of {object}"),
        Some(n) => format!("{} behind the end of {object}", bytes(n)),
        None => format!("behind the end of {object}"),
    };
    finding.headline = format!("{}: {} written {place}", finding.name(), amount(damage));
    match behind {
        Some(0) => {
            finding.certain("The first wrong byte is the first one behind the object.");
            let how = if free {
                "The object had been freed and was still written to, beyond its end."
            } else {
                "A write that began inside the object ran over its end."
            };
            finding.likely(how);
        }
        Some(_) => {
            finding.certain("The bytes right behind the object are as they should be: nothing ran over its end up to here.");
            finding.possible("An index or offset into this object is too large, or a stray pointer was written through.");
        }
        None => {}
    }
    let whole = damage
        .len
        .zip(behind)
        .is_some_and(|(len, behind)| layout.right_len() == len + behind);
    if whole {
        finding.certain("All of the red zone is overwritten: the write may have gone further, into bytes that are not shown.");
    }
    if free {
        finding.certain("The red zone held 0xbb, the mark of a free object: it was hit after the object was freed.");
    }
}

fn beyond_request(finding: &mut Finding, damage: &Damage) {
    finding.class = Class::Overflow;
    let slot = size(finding);
    let requested = finding.object.as_ref().and_then(|o| o.requested);
    let wanted = match (requested, damage.offset_in_object) {
        (Some(n), _) => format!("the {} that were asked for", bytes(n)),
        (None, Some(n)) if n >= 0 => format!("what was asked for, at most {n} bytes"),
        _ => "what was asked for".to_owned(),
    };
    let room = slot.map_or_else(String::new, |n| format!(" (the slot has room for {n})"));
    finding.headline = format!(
        "{}: {} written past {wanted}{room}",
        finding.name(),
        amount(damage)
    );
    finding.certain(
        "The bytes are inside the slot, but behind the part that was asked for: kmalloc keeps a red zone from there to the end of the slot.",
    );
    if let Some(n) = requested {
        finding.likely(format!(
            "The caller asked for {} and {} were written.",
            bytes(n),
            damage
                .len
                .map_or_else(|| "more".to_owned(), |len| bytes(n.saturating_add(len))),
        ));
        let words = damage
            .len
            .is_some_and(|len| len < 4 && (n + len).is_multiple_of(4));
        if words {
            finding.possible(
                "Something that writes whole words of 4 bytes, such as a device (DMA) or a copy loop, was given a buffer that is no whole number of them.",
            );
        }
    }
}

fn underflow(finding: &mut Finding, layout: &Layout, damage: &Damage) {
    let free = damage.expected == Some(FREE);
    finding.class = if free {
        Class::UseAfterFree
    } else {
        Class::Underflow
    };
    let object = if free {
        "a free object"
    } else {
        "a live object"
    };
    finding.headline = format!(
        "{}: {} written before the start of {object}{}",
        finding.name(),
        amount(damage),
        of_size(finding)
    );
    let Some(at) = damage.offset_in_object else {
        return;
    };
    let end = damage.len.and_then(|len| at.checked_add_unsigned(len));
    if end == Some(0) {
        finding.certain("The last wrong byte is the one right before the object.");
        finding.likely("A write through a pointer into this object went below its start (a negative index, a header before the data).");
    } else {
        finding.certain(format!(
            "The damage begins {} before the object.",
            bytes(at.unsigned_abs())
        ));
    }
    if at == -layout.left_len() {
        finding.possible(
            "The object before this one was overrun: the red zone is hit from its first byte on.",
        );
    }
    if free {
        finding.certain("The red zone held 0xbb, the mark of a free object: it was hit after the object was freed.");
    }
}

fn after_free(finding: &mut Finding, damage: &Damage, patterns: &[Pattern]) {
    let flip = damage.flipped_bit.filter(|_| {
        !patterns
            .iter()
            .any(|p| matches!(p, Pattern::Decrement | Pattern::Increment))
    });
    finding.class = if flip.is_some() {
        Class::BitFlip
    } else {
        Class::UseAfterFree
    };
    let at = damage
        .offset_in_object
        .map_or_else(String::new, |at| format!(", at byte {at}"));
    finding.headline = match flip {
        Some((bit, set)) => format!(
            "{}: bit {bit} {} in a free object{at}",
            finding.name(),
            if set { "was set" } else { "was cleared" }
        ),
        None => format!(
            "{}: {} written into a free object{at}",
            finding.name(),
            amount(damage)
        ),
    };
    finding.certain("The object was free: its bytes have to be 0x6b, and these were not.");
}

fn padding(finding: &mut Finding, damage: &Damage) {
    finding.class = Class::Padding;
    let place = if damage.part == Part::SlabPadding {
        "behind the last object of a slab"
    } else {
        "between two objects"
    };
    finding.headline = format!("{}: {} written {place}", finding.name(), amount(damage));
    finding.certain("The bytes belong to no object: they are padding and have to be 0x5a.");
    finding.likely(
        "An object before them was overrun by far, or a stray pointer was written through.",
    );
    finding.possible("The allocator and another debugging tool disagree on the layout (KASAN metadata did once).");
}

/// The red zone tells that the object is free (or in use), and the slab counts
/// it the other way.
fn other_state(finding: &mut Finding, slub: &Slub, marked_free: bool) {
    finding.class = Class::Freelist;
    if let Some(object) = &mut finding.object {
        object.state = None;
    }
    let (is, counted) = if marked_free {
        ("free", "in use")
    } else {
        ("in use", "free")
    };
    finding.headline = format!(
        "{}: an object is marked {is} and counted as {counted}",
        finding.name()
    );
    finding.certain(format!(
        "All of the red zone holds the mark of an object that is {is}: nobody wrote over it, its state and the slab's list disagree.",
    ));
    if may_be_false_alarm(finding) {
        finding.possible(
            "A false alarm: before Linux 6.1 an object that was being freed during the validation looks like this. Validate again while the cache is quiet.",
        );
    }
    if slub.allocated.is_none() && slub.freed.is_none() {
        finding.likely("The free list was cut or cleared before, after damage to it, and the objects behind the cut count as in use since.");
    }
}

/// Whether it was found by a validation that is not known to be safe beside frees.
pub(super) fn may_be_false_alarm(finding: &Finding) -> bool {
    finding.operation == Some(Operation::Validate)
        && is_safe(finding.detected.kernel.as_deref()) != Some(true)
}

/// What was found, and what it looks like.
fn describe(finding: &mut Finding, damage: &Damage, patterns: &[Pattern]) {
    let Some(expected) = damage.expected else {
        return;
    };
    if !damage.found.is_empty() {
        let whole = damage
            .len
            .is_none_or(|len| len <= damage.found.len() as u64);
        finding.certain(format!(
            "Found {}{}, expected {expected:02x}.",
            hex(&damage.found),
            if whole { "" } else { " first" }
        ));
    }
    if damage.len.is_none() {
        finding.not_known("How many bytes: addresses are hashed and the bytes are not shown.");
    }
    for pattern in patterns {
        likeness(finding, damage, pattern);
    }
    if finding.class == Class::UseAfterFree && patterns.is_empty() {
        finding.likely(
            "Somebody kept a pointer to the object and wrote through it after it was freed.",
        );
    }
}

/// What wrote such bytes.
pub(super) fn likeness(finding: &mut Finding, damage: &Damage, pattern: &Pattern) {
    let free = damage.part == Part::Poison;
    match pattern {
        Pattern::Decrement => finding.likely(
            "0x6a is 0x6b minus one: something was decremented after the object was freed, such as a reference count. One put (or drop) too many.",
        ),
        Pattern::Increment => finding.likely(
            "0x6c is 0x6b plus one: something was incremented after the object was freed, such as a reference count taken too late.",
        ),
        Pattern::Flip(bit, set) => flip(finding, *bit, *set),
        Pattern::Nul if free => finding.possible("A zero byte was stored: a flag, or the end of a string."),
        Pattern::Nul => finding.likely("One zero byte right behind: the end of a string, which needs a byte more than its length (off by one)."),
        Pattern::Zeros(n) if free && *n % 8 == 0 => finding.likely("A NULL pointer or zero was stored in a freed structure, as removing it from a list does."),
        Pattern::Zeros(n) => finding.possible(format!("{n} zero bytes: a field or the rest of a buffer was cleared.")),
        Pattern::Pointer(value) => finding.likely(format!(
            "The bytes are a pointer into the kernel ({value:#x}): a link of a list or tree was written{}.",
            if free { " after the object was freed" } else { "" }
        )),
        Pattern::ListPoison => finding.likely("The bytes are what list_del() leaves: the object was taken off a list after it was freed."),
        Pattern::Text(text) => finding.likely(format!("The bytes are text: \"{text}\".")),
        Pattern::Fill(byte) => finding.possible(format!("All bytes are {byte:#04x}: memory was filled or cleared.")),
        Pattern::Word(value) => finding.possible(format!(
            "As a little-endian number of 4 bytes it is {value:#x}: one element of an array too many."
        )),
        Pattern::FreeMark | Pattern::LiveMark => {}
    }
}

fn flip(finding: &mut Finding, bit: u32, set: bool) {
    let done = if set { "set" } else { "cleared" };
    if finding.class == Class::BitFlip {
        finding.likely(format!(
            "Exactly one bit differs (bit {bit} is {done}): memory that loses or gains a bit does this, and few programs do."
        ));
        finding.possible(format!(
            "A flag was {done} in the object after it was freed."
        ));
        finding.do_next("Test the memory (memtest86+, or EDAC and mcelog for logged errors) before looking for a bug.");
    } else {
        finding.possible(format!("Bad memory: the value also differs in one bit only (bit {bit}). Then it would hit other caches too."));
    }
}

/// Further parts of the same object.
fn more(finding: &mut Finding, slub: &Slub) {
    let rest = slub.overwritten.get(1..).unwrap_or_default();
    let mut names: Vec<&str> = rest.iter().filter_map(|o| o.what.as_deref()).collect();
    names.dedup();
    if !names.is_empty() {
        finding.certain(format!(
            "Also overwritten in the same check: {}.",
            names.join(", ")
        ));
    }
}

/// Who was near, and what to do.
fn finish(finding: &mut Finding) {
    if matches!(finding.class, Class::Freelist) {
        return;
    }
    let when = match (finding.operation, &finding.detected_by) {
        (Some(Operation::Validate), _) => Some("the validation of the cache".to_owned()),
        (Some(operation), Some(by)) => Some(format!("the {} by {by}", operation.name())),
        _ => None,
    };
    if let Some(when) = when {
        finding.certain(format!(
            "It was noticed at {when}; it happened some time before."
        ));
    }
    finding.not_known("Who wrote: the kernel notes who allocates and frees, not who writes.");
    match finding.class {
        Class::Overflow => {
            if let Some(track) = finding.allocated.clone() {
                finding.do_next(format!(
                    "Compare the size asked for in {} with what is written into it.",
                    track.symbol
                ));
            }
        }
        Class::UseAfterFree => {
            if let Some(track) = finding.freed.clone() {
                finding.do_next(format!(
                    "Look for pointers to the object that outlive its free in {}.",
                    who(&track)
                ));
            }
        }
        _ => {}
    }
    if finding.class != Class::BitFlip {
        let option = checking(finding);
        finding.do_next(format!(
            "A kernel with KASAN or KFENCE names the writer at the moment of the write; {option} narrows the time."
        ));
    }
}
