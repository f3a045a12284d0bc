//! Checks of the bytes of slots, and their repair.
//!
//! Source of truth: the object check of `mm/slub.c`, Linux 6.12: the same parts, in the same order, under the same
//! names. One check stops at the first damaged part; [`check_object`] with its result restored, repeated until it
//! returns nothing, yields what the kernel reports one after the other.
//!
//! A live object's own bytes are never read (up to the requested size), so a program may write them meanwhile; but a
//! slice promises that nobody writes, so use [`super::raw`] for objects that other threads have.
//!
//! What it does not do: follow free lists, or know which words are good free pointers; a [`LinkRule`] says that.

use core::fmt;
use core::ops::Range;

use super::flags::DebugFlags;
use super::layout::{ObjectLayout, WORD};
use super::poison::{self, POISON_END, POISON_FREE, POISON_INUSE, State};

/// How many damaged bytes a [`Damage`] keeps.
pub const FOUND_BYTES: usize = 16;

/// Which part of a slot or slab is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DamageKind {
    /// Guard bytes before the object.
    LeftRedzone,
    /// Guard bytes behind the object.
    RightRedzone,
    /// Guard bytes behind the requested size, inside a kmalloc object.
    KmallocRedzone,
    /// Alignment bytes behind the object, where there is no red zone.
    AlignmentPadding,
    /// The body of a free object.
    Poison,
    /// The last byte of a free object.
    EndPoison,
    /// Filler at the end of a slot.
    ObjectPadding,
    /// The free pointer.
    FreePointer,
    /// The memory of a slab behind its last slot.
    SlabPadding,
}

impl DamageKind {
    /// The kernel's name of the part, as in `[Right Redzone overwritten]` and `Restoring Right Redzone`.
    pub const fn what(self) -> &'static str {
        match self {
            Self::LeftRedzone => "Left Redzone",
            Self::RightRedzone => "Right Redzone",
            Self::KmallocRedzone => "kmalloc Redzone",
            Self::AlignmentPadding => "Alignment padding",
            Self::Poison => "Poison",
            Self::EndPoison => "End Poison",
            Self::ObjectPadding => "Object padding",
            Self::FreePointer => "Freepointer",
            Self::SlabPadding => "slab padding",
        }
    }
}

impl fmt::Display for DamageKind {
    /// `Right Redzone overwritten`, `Freepointer corrupt`, `Padding overwritten`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FreePointer => f.write_str("Freepointer corrupt"),
            Self::SlabPadding => f.write_str("Padding overwritten"),
            other => write!(f, "{} overwritten", other.what()),
        }
    }
}

/// What a restored part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Each byte has this value.
    Byte(u8),
    /// The eight bytes of the free pointer, as stored.
    Word(u64),
}

/// Damaged bytes, kept up to [`FOUND_BYTES`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Found {
    bytes: [u8; FOUND_BYTES],
    len: u8,
}

impl Found {
    /// Copies the first bytes of a slice.
    pub fn new(bytes: &[u8]) -> Self {
        let mut kept = [0; FOUND_BYTES];
        let mut len = 0;
        for (to, from) in kept.iter_mut().zip(bytes) {
            *to = *from;
            len += 1;
        }
        Self { bytes: kept, len }
    }

    /// The kept bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// The first damaged byte.
    pub fn first(&self) -> u8 {
        self.bytes[0]
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.bytes())
    }
}

/// One damaged part: from the first to the last wrong byte. Right bytes in between count as damaged too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    kind: DamageKind,
    first: usize,
    last: usize,
    fill: Fill,
    found: Found,
}

impl Damage {
    /// Which part is damaged.
    pub fn kind(&self) -> DamageKind {
        self.kind
    }

    /// The first wrong byte, counted from the start of the checked slot (or slab, for slab padding).
    pub fn first(&self) -> usize {
        self.first
    }

    /// The last wrong byte, counted likewise.
    pub fn last(&self) -> usize {
        self.last
    }

    /// The damaged bytes, counted likewise.
    pub fn range(&self) -> Range<usize> {
        self.first..self.last + 1
    }

    /// How many bytes lie between the first and the last wrong byte, both included.
    #[expect(clippy::len_without_is_empty, reason = "damage has at least one byte")]
    pub fn len(&self) -> usize {
        self.last - self.first + 1
    }

    /// The first wrong byte counted from the object: negative before it.
    pub fn from_object(&self, layout: &ObjectLayout) -> isize {
        self.first.cast_signed() - layout.object_at().cast_signed()
    }

    /// The first wrong byte counted from the slab, for a slot that starts at `slot_at` in it (0 for slab padding).
    pub fn in_slab(&self, slot_at: usize) -> usize {
        slot_at + self.first
    }

    /// What the part should hold. For raw memory: write this to [`Damage::range`].
    pub fn fill(&self) -> Fill {
        self.fill
    }

    /// The expected byte; `None` for a free pointer.
    pub fn expected(&self) -> Option<u8> {
        match self.fill {
            Fill::Byte(value) => Some(value),
            Fill::Word(_) => None,
        }
    }

    /// The bytes that were found, from the first wrong one on.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Writes the expected bytes over the damage, as the kernel's FIX does. A broken free pointer becomes the end of
    /// the list, so the rest of the list is lost.
    pub fn restore(&self, slot_or_slab: &mut [u8]) {
        let Some(bytes) = slot_or_slab.get_mut(self.range()) else {
            return;
        };
        match self.fill {
            Fill::Byte(value) => bytes.fill(value),
            Fill::Word(word) => {
                for (to, from) in bytes.iter_mut().zip(word.to_ne_bytes()) {
                    *to = from;
                }
            }
        }
    }
}

/// Which stored words are good free pointers of one slot.
///
/// Any `Fn(u64) -> bool` will do where a stored 0 ends the list; a cache that encodes its pointers says with
/// [`LinkRule::end`] how the end looks.
pub trait LinkRule {
    /// True if the stored word ends the list or names a slot of the same slab.
    fn is_valid(&self, stored: u64) -> bool;

    /// The stored word that ends the list; it must be valid.
    fn end(&self) -> u64 {
        0
    }
}

impl<F: Fn(u64) -> bool> LinkRule for F {
    fn is_valid(&self, stored: u64) -> bool {
        self(stored)
    }
}

/// Accepts every free pointer, for slots that are not linked.
#[derive(Clone, Copy, Debug)]
pub struct AnyLink;

impl LinkRule for AnyLink {
    fn is_valid(&self, _stored: u64) -> bool {
        true
    }
}

/// Compares bytes with one value; eight at a time while they are equal.
fn first_other(bytes: &[u8], value: u8) -> Option<usize> {
    let pattern = [value; WORD];
    let equal = bytes
        .chunks_exact(WORD)
        .take_while(|chunk| *chunk == pattern)
        .count()
        * WORD;
    let rest = bytes.get(equal..)?;
    rest.iter()
        .position(|&byte| byte != value)
        .map(|at| equal + at)
}

fn check_bytes(memory: &[u8], kind: DamageKind, range: Range<usize>, value: u8) -> Option<Damage> {
    let start = range.start;
    let bytes = memory.get(range)?;
    let first = first_other(bytes, value)?;
    let wrong = bytes.get(first..)?;
    let last = first + wrong.iter().rposition(|&byte| byte != value)?;
    Some(Damage {
        kind,
        first: start + first,
        last: start + last,
        fill: Fill::Byte(value),
        found: Found::new(bytes.get(first..=last)?),
    })
}

fn check_red_zones(slot: &[u8], state: State, layout: &ObjectLayout) -> Option<Damage> {
    let red = state.red();
    let object = layout.object();
    check_bytes(slot, DamageKind::LeftRedzone, 0..object.start, red)
        .or_else(|| check_bytes(slot, DamageKind::RightRedzone, layout.right(), red))
        .or_else(|| {
            if state == State::Free {
                return None;
            }
            let slack = object.start + poison::orig_size(slot, layout)..object.end;
            check_bytes(slot, DamageKind::KmallocRedzone, slack, red)
        })
}

fn check_poison(slot: &[u8], layout: &ObjectLayout) -> Option<Damage> {
    let object = layout.object();
    let end = object.end - 1;
    check_bytes(slot, DamageKind::Poison, object.start..end, POISON_FREE)
        .or_else(|| check_bytes(slot, DamageKind::EndPoison, end..object.end, POISON_END))
}

fn check_link(slot: &[u8], layout: &ObjectLayout, links: &impl LinkRule) -> Option<Damage> {
    let range = layout.free_pointer();
    let stored = poison::free_pointer(slot, layout);
    if links.is_valid(stored) {
        return None;
    }
    Some(Damage {
        kind: DamageKind::FreePointer,
        first: range.start,
        last: range.end - 1,
        fill: Fill::Word(links.end()),
        found: Found::new(slot.get(range)?),
    })
}

/// Finds the first damaged part of a slot: left red zone, right red zone, kmalloc red zone (or alignment padding),
/// poison, end poison, object padding, free pointer.
///
/// What the flags do not cover is not looked at. The free pointer is checked whatever the flags are, except in a live
/// object that it lies inside of.
pub fn check_object(
    slot: &[u8],
    state: State,
    layout: &ObjectLayout,
    links: &impl LinkRule,
) -> Option<Damage> {
    let red = layout.flags().contains(DebugFlags::RED_ZONE);
    let poison = layout.flags().contains(DebugFlags::POISON);
    let mut damage = None;
    if red {
        damage = check_red_zones(slot, state, layout);
    } else if poison {
        damage = check_bytes(
            slot,
            DamageKind::AlignmentPadding,
            layout.right(),
            POISON_INUSE,
        );
    }
    if poison {
        if state == State::Free && layout.poisons_objects() {
            damage = damage.or_else(|| check_poison(slot, layout));
        }
        damage = damage.or_else(|| {
            check_bytes(
                slot,
                DamageKind::ObjectPadding,
                layout.padding(),
                POISON_INUSE,
            )
        });
    }
    if layout.free_pointer_outside() || state == State::Free {
        damage = damage.or_else(|| check_link(slot, layout, links));
    }
    damage
}

/// Checks a slot and repairs it until it is clean; `found` is called with each damage before its repair, together
/// with the slot as it is then. Returns how many parts were damaged.
pub fn check_and_restore(
    slot: &mut [u8],
    state: State,
    layout: &ObjectLayout,
    links: &impl LinkRule,
    mut found: impl FnMut(&Damage, &[u8]),
) -> usize {
    // Each repair cleans one of seven parts; the bound holds even against a rule whose end is not valid.
    for count in 0..8 {
        let Some(damage) = check_object(slot, state, layout, links) else {
            return count;
        };
        found(&damage, slot);
        damage.restore(slot);
    }
    8
}

/// Checks the memory behind the last of `objects` slots. Needs `P`.
pub fn check_slab_padding(slab: &[u8], objects: usize, layout: &ObjectLayout) -> Option<Damage> {
    if !layout.flags().contains(DebugFlags::POISON) {
        return None;
    }
    let start = objects.checked_mul(layout.slab_size())?;
    check_bytes(
        slab,
        DamageKind::SlabPadding,
        start..slab.len(),
        POISON_INUSE,
    )
}

/// What the red zones say about a slot, for telling a double free from an overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Both red zones are those of a free object.
    Free,
    /// Both red zones are those of a live object.
    Live,
    /// There are none, or they are damaged or disagree.
    Unclear,
}

/// Reads the state that a slot shows. Poison alone does not tell, since a fresh live object holds it too.
pub fn looks(slot: &[u8], layout: &ObjectLayout) -> Looks {
    if !layout.flags().contains(DebugFlags::RED_ZONE) {
        return Looks::Unclear;
    }
    let is = |state: State| {
        let whole = |range| {
            slot.get(range)
                .is_some_and(|bytes| first_other(bytes, state.red()).is_none())
        };
        whole(0..layout.object_at()) && whole(layout.right())
    };
    if is(State::Free) {
        Looks::Free
    } else if is(State::Live) {
        Looks::Live
    } else {
        Looks::Unclear
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
