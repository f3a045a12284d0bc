//! A report of SLAB, explained.
//!
//! Source of truth: mm/slab.c up to 6.7: check_poison_obj(), verify_redzone_free(),
//! and the red zone words of include/linux/poison.h and, before 2.6.23, of
//! include/linux/slab.h.

use super::damage::likeness;
use super::finding::{Class, Damage, Finding, Kind, ObjectFacts, Part, State};
use super::frames;
use super::pattern::{self, POISON, POISON_END, Pattern};
use super::words::{bytes, cache_name, hex, size_of_name};
use crate::parse::kernel_log::report::{Corruption, Report, SlabError, Stack, Track};

/// Bytes of a damage that are kept.
const MAX_FOUND: usize = 64;

/// What a word of a red zone says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Free,
    InUse,
    Damaged,
}

const FREE_WORDS: [u64; 2] = [0x5a2c_f071, 0x09f9_1102_9d74_e35b];
const USED_WORDS: [u64; 2] = [0x170f_c2a5, 0xd841_56c5_6356_88c0];

fn word(value: u64) -> Word {
    if FREE_WORDS.contains(&value) {
        Word::Free
    } else if USED_WORDS.contains(&value) {
        Word::InUse
    } else {
        Word::Damaged
    }
}

/// Explains `Slab corruption`.
pub(super) fn corruption(report: &Report, found: &Corruption) -> Finding {
    let mut finding = Finding::new(Kind::Slab, Class::UseAfterFree);
    finding.detected = report.detected.clone();
    finding.cache = found.cache.as_deref().map(cache_name);
    finding.reason = Some("Slab corruption".to_owned());
    let damage = poison_damage(found);
    finding.object = Some(ObjectFacts {
        address: found.start,
        size: found.len,
        state: Some(State::Free),
        damage: damage.clone(),
        ..ObjectFacts::default()
    });
    finding.freed = found.last_user.as_ref().map(|symbol| Track {
        symbol: symbol.clone(),
        age: None,
        cpu: None,
        pid: None,
        stack: Stack::default(),
    });
    let Some(damage) = damage else {
        finding.headline = format!("{}: a free object was written to", finding.name());
        finding.not_known("Which bytes: they are not shown.");
        neighbours(&mut finding, found);
        return finding;
    };
    let patterns = pattern::read(&damage.found, damage.expected.unwrap_or(POISON));
    describe(&mut finding, &damage, &patterns, found);
    neighbours(&mut finding, found);
    finding
}

fn describe(finding: &mut Finding, damage: &Damage, patterns: &[Pattern], found: &Corruption) {
    let flip = damage.flipped_bit.filter(|_| {
        !patterns
            .iter()
            .any(|p| matches!(p, Pattern::Decrement | Pattern::Increment))
    });
    let at = damage.offset_in_object.unwrap_or_default();
    if let Some((bit, set)) = flip {
        finding.class = Class::BitFlip;
        let done = if set { "was set" } else { "was cleared" };
        finding.headline = format!(
            "{}: bit {bit} {done} in a free object, at byte {at}",
            finding.name()
        );
    } else {
        let count = damage.len.map_or_else(|| "some bytes".to_owned(), bytes);
        finding.headline = format!(
            "{}: {count} written into a free object, at byte {at}",
            finding.name()
        );
    }
    finding.certain(
        "The object was free: its bytes have to be 0x6b (the last one 0xa5), and these were not.",
    );
    finding.certain(format!(
        "Found {}, expected {POISON:02x}.",
        hex(&damage.found)
    ));
    if found.single_bit {
        finding.certain("The kernel itself calls it a single bit error, probably bad memory.");
    }
    for pattern in patterns {
        likeness(finding, damage, pattern);
    }
    finding.not_known("Who wrote: the kernel notes who used the object last, not who writes.");
    if flip.is_none() {
        if let Some(track) = finding.freed.clone() {
            finding.do_next(format!(
                "Look for pointers to the object that outlive its free in {}.",
                track.symbol
            ));
        }
        finding.do_next("A kernel with KASAN names the writer at the moment of the write.");
    } else if let Some(track) = finding.freed.clone() {
        finding.certain(format!(
            "{} freed the object; nothing says that it wrote.",
            track.symbol
        ));
    }
}

fn neighbours(finding: &mut Finding, found: &Corruption) {
    let Some((first, second)) = found.redzones else {
        return;
    };
    match (word(first), word(second)) {
        (Word::Free, Word::Free) => finding.certain(
            "Both red zones hold the mark of a free object: nothing ran over into it from its neighbours.",
        ),
        (Word::InUse, Word::InUse) => finding.possible(
            "Both red zones hold the mark of an object in use: it may have been given out while it was checked.",
        ),
        _ => finding.certain("A red zone of the object is damaged too: something larger ran over it."),
    }
    if found.neighbours > 0 {
        finding.certain(
            "The objects before and behind it are shown for comparison; they are not damaged.",
        );
    }
}

/// From the first to the last byte of the rows that is not poison.
fn poison_damage(found: &Corruption) -> Option<Damage> {
    let last = found.len.and_then(|len| len.checked_sub(1));
    let wrong = |offset: u64, byte: u8| {
        byte != POISON && !(byte == POISON_END && last.is_none_or(|last| last == offset))
    };
    let bytes = || {
        found.rows.iter().flat_map(|row| {
            let places = row.offset..;
            places.zip(row.bytes.iter().copied())
        })
    };
    let (from, _) = bytes().find(|(at, byte)| wrong(*at, *byte))?;
    let (to, _) = bytes().filter(|(at, byte)| wrong(*at, *byte)).last()?;
    let held: Vec<u8> = bytes()
        .filter(|(at, _)| (from..=to).contains(at))
        .map(|(_, byte)| byte)
        .take(MAX_FOUND)
        .collect();
    let len = to.checked_sub(from)?.checked_add(1);
    Some(Damage {
        part: Part::Poison,
        offset_in_object: i64::try_from(from).ok(),
        offset_in_slab: None,
        len,
        flipped_bit: pattern::flipped_bit(&held, POISON),
        found: held,
        expected: Some(POISON),
    })
}

/// Explains `slab error in`.
pub(super) fn error(report: &Report, found: &SlabError) -> Finding {
    let mut finding = Finding::new(Kind::Slab, Class::CannotTell);
    finding.detected = report.detected.clone();
    finding.cache = found.cache.as_deref().map(cache_name);
    finding.reason.clone_from(&found.message);
    finding.operation = frames::operation(&report.detected.stack);
    finding.detected_by = frames::user(&report.detected.stack).map(|frame| frame.symbol.clone());
    finding.object = Some(ObjectFacts {
        address: found.object,
        size: finding.cache.as_ref().and_then(size_of_name),
        ..ObjectFacts::default()
    });
    let message = found.message.as_deref().unwrap_or_default();
    if message.starts_with("double free detected") {
        finding.class = Class::DoubleFree;
        finding.headline = format!("{}: an object was freed twice", finding.name());
        finding.certain("Both red zones already hold the mark of a free object.");
    } else if message.contains("Can't free all objects") {
        finding.class = Class::Leak;
        finding.headline = format!(
            "{}: objects were left when the cache was destroyed",
            finding.name()
        );
    } else if message.contains("constructor") {
        finding.class = Class::Overflow;
        finding.headline = format!(
            "{}: the constructor wrote outside of its object",
            finding.name()
        );
    } else {
        outside(&mut finding, found);
    }
    if let Some(by) = finding.detected_by.clone() {
        let operation = finding
            .operation
            .map_or("use", super::finding::Operation::name);
        finding.certain(format!("It was noticed at the {operation} by {by}."));
    } else {
        finding.not_known("Who used the object: the stack is missing.");
    }
    finding
}

/// `memory outside object was overwritten`
fn outside(finding: &mut Finding, found: &SlabError) {
    finding.headline = format!(
        "{}: memory outside of an object was overwritten",
        finding.name()
    );
    let Some((first, second)) = found.redzones else {
        finding.not_known("Which side and how many bytes: the line with the red zones is missing.");
        return;
    };
    if let Some(object) = &mut finding.object {
        object.state = Some(State::InUse);
    }
    match (word(first), word(second)) {
        (Word::Damaged, Word::Damaged) => {
            finding.certain("Both red zones are damaged: something larger ran over the object.");
            finding.likely(
                "The object before it was overrun, or a stray pointer was written through.",
            );
        }
        (_, Word::Damaged) => behind(finding, second),
        (Word::Damaged, _) => {
            finding.class = Class::Underflow;
            finding.headline = format!(
                "{}: bytes written before the start of a live object",
                finding.name()
            );
            finding.certain("Only the red zone before the object is damaged.");
            finding.possible("The object before this one was overrun.");
        }
        (Word::Free, Word::Free) => {
            finding.class = Class::DoubleFree;
            finding.headline = format!("{}: an object was freed twice", finding.name());
        }
        _ => finding.not_known("What is wrong: both red zones hold known marks."),
    }
}

/// The word behind the object is damaged: which of its bytes?
fn behind(finding: &mut Finding, found: u64) {
    finding.class = Class::Overflow;
    let wide = found > u64::from(u32::MAX);
    let expected = USED_WORDS[usize::from(wide)];
    let width = if wide { 8 } else { 4 };
    let (new, old) = (found.to_le_bytes(), expected.to_le_bytes());
    let differs = |at: &usize| new[*at] != old[*at];
    let low = (0..width).rev().find(differs).map_or(0, |at| at + 1);
    let high = (0..width).find(differs).map_or(0, |at| width - at);
    // Little-endian machines keep the low byte first, right behind the object.
    let (len, held): (usize, Vec<u8>) = if low <= high {
        (low, new[..low].to_vec())
    } else {
        (
            high,
            new[width - high..width].iter().rev().copied().collect(),
        )
    };
    let size = finding.object.as_ref().and_then(|o| o.size);
    let of = size.map_or_else(String::new, |n| format!(" of {}", bytes(n)));
    finding.headline = format!(
        "{}: {} written right behind the end of a live object{of}",
        finding.name(),
        bytes(len as u64)
    );
    finding.certain(format!(
        "The red zone before the object is whole; of the one behind it ({found:#x} instead of {expected:#x}) {} differ{}.",
        bytes(len as u64),
        if len == 1 { "s" } else { "" }
    ));
    let damage = Damage {
        part: Part::RightRedzone,
        offset_in_object: size.and_then(|n| i64::try_from(n).ok()),
        offset_in_slab: None,
        len: Some(len as u64),
        flipped_bit: None,
        found: held,
        expected: (len == 1).then(|| if low <= high { old[0] } else { old[width - 1] }),
    };
    if let Some(byte) = damage.expected {
        finding.certain(format!(
            "Found {}, expected {byte:02x}.",
            hex(&damage.found)
        ));
    }
    for pattern in pattern::read(&damage.found, damage.expected.unwrap_or(0)) {
        if !matches!(pattern, Pattern::Flip(..)) {
            likeness(finding, &damage, &pattern);
        }
    }
    finding.not_known("Who wrote: the kernel notes who used the object last, not who writes.");
    finding.do_next("Compare the size that was asked for with what is written into the object.");
    if let Some(object) = &mut finding.object {
        object.damage = Some(damage);
    }
}
