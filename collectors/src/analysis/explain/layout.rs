//! Which bytes are wrong: from the line that names them and the rows shown.
//!
//! Purpose: offsets and lengths inside the object. Source of truth:
//! print_trailer() and check_bytes_and_report() of mm/slub.c. Addresses are
//! hashed on most kernels since 4.15: only offsets, the order of rows and
//! equal addresses count there, never a difference of two.
//!
//! ```text
//! left red zone | object | right red zone | pointer, tracks (not shown) | padding
//! ```

use super::finding::{Damage, Part};
use super::pattern::{self, POISON, POISON_END};
use crate::parse::kernel_log::report::{DumpRow, Label, Overwritten, Pointer, Slub};

/// Bytes of a damage that are kept.
const MAX_FOUND: usize = 64;

/// Larger differences of addresses are not offsets.
const MAX_DISTANCE: u64 = 1 << 20;

/// A part of a slot as it was shown.
#[derive(Debug, Default)]
pub(super) struct Zone {
    bytes: Vec<u8>,
    /// The address of each row and where it begins in `bytes`.
    rows: Vec<(Pointer, usize)>,
}

impl Zone {
    fn push(&mut self, row: &DumpRow) {
        self.rows.push((row.address, self.bytes.len()));
        self.bytes.extend_from_slice(row.bytes());
    }

    /// Where an address is in `bytes`. A hashed one is found at the start of a row.
    fn position(&self, address: u64, plain: bool) -> Option<usize> {
        self.rows.iter().find_map(|(row, start)| {
            let distance = address.checked_sub((*row)?)?;
            let within = distance == 0 || (plain && distance < 16);
            let at = start + usize::try_from(distance).ok()?;
            (within && at < self.bytes.len()).then_some(at)
        })
    }
}

/// What was shown of a slot.
#[derive(Debug, Default)]
pub(super) struct Layout {
    left: Zone,
    object: Zone,
    right: Zone,
    padding: Zone,
    /// Addresses are real; `None` when that cannot be told.
    pub plain: Option<bool>,
    /// Bytes of the object, when all of it was shown.
    pub size: Option<u64>,
}

impl Layout {
    /// Sorts the rows of a report.
    pub fn of(slub: &Slub) -> Self {
        let mut layout = Self {
            plain: plain(slub),
            ..Self::default()
        };
        for row in &slub.rows {
            match row.label {
                Label::Redzone if layout.object.bytes.is_empty() => layout.left.push(row),
                Label::Redzone => layout.right.push(row),
                Label::Object => layout.object.push(row),
                Label::Padding => layout.padding.push(row),
                Label::BytesBefore => {}
            }
        }
        let whole = !layout.right.bytes.is_empty() || !layout.padding.bytes.is_empty();
        if whole && layout.is_gapless() {
            layout.size = u64::try_from(layout.object.bytes.len())
                .ok()
                .filter(|n| *n > 0);
        }
        layout
    }

    /// Only the last row of the object is short, and no address is left out.
    fn is_gapless(&self) -> bool {
        let object = &self.object;
        let starts = object.rows.iter().enumerate();
        starts.clone().all(|(n, (_, start))| *start == n * 16)
            && (self.plain != Some(true)
                || object
                    .rows
                    .windows(2)
                    .all(|pair| match (pair[0].0, pair[1].0) {
                        (Some(a), Some(b)) => b.checked_sub(a) == Some(16),
                        _ => true,
                    }))
    }

    /// The damage that a line names, in `part` or (when `None`) in the part
    /// that its place tells.
    pub fn damage(
        &self,
        slub: &Slub,
        over: &Overwritten,
        part: Option<Part>,
        size: Option<u64>,
    ) -> Damage {
        let delta = self.distance(slub, over);
        let part = part.unwrap_or(match delta {
            Some(delta) if delta < 0 => Part::LeftRedzone,
            _ => Part::RightRedzone,
        });
        let (zone, base) = self.zone(part, size);
        let expected = over.expected;
        let position = delta
            .zip(base)
            .and_then(|(delta, base)| usize::try_from(delta.checked_sub(base)?).ok())
            .or_else(|| zone.position(over.from?, self.plain == Some(true)))
            .or_else(|| first_wrong(&zone.bytes, expected?));
        let shown = position
            .and_then(|at| zone.bytes.get(at..))
            .unwrap_or_default();
        // Poison ends with a byte of its own.
        let checked = match shown.split_last() {
            Some((&POISON_END, rest)) if part == Part::Poison && expected == Some(POISON) => rest,
            _ => shown,
        };
        let len = self
            .printed_len(over)
            .or_else(|| last_wrong(checked, expected?));
        let wanted = len.map_or(0, |len| usize::try_from(len).unwrap_or(usize::MAX));
        let found = &shown[..wanted.min(shown.len()).min(MAX_FOUND)];
        let found = match (found, over.found) {
            ([], Some(byte)) => vec![byte],
            _ => found.to_vec(),
        };
        let delta = delta.or_else(|| Some(base? + i64::try_from(position?).ok()?));
        Damage {
            part,
            offset_in_object: delta,
            offset_in_slab: over.offset,
            flipped_bit: expected
                .filter(|_| len == Some(1))
                .and_then(|e| pattern::flipped_bit(&found, e)),
            len,
            found,
            expected,
        }
    }

    /// From the object's start to the first wrong byte.
    fn distance(&self, slub: &Slub, over: &Overwritten) -> Option<i64> {
        let object = slub.object.as_ref()?;
        if let (Some(wrong), Some(start)) = (over.offset, object.offset) {
            return i64::try_from(wrong)
                .ok()?
                .checked_sub(i64::try_from(start).ok()?);
        }
        let (wrong, start) = (over.from?, object.pointer?);
        let near = wrong.abs_diff(start) < MAX_DISTANCE;
        if self.plain == Some(false) || !near {
            return (wrong == start).then_some(0);
        }
        i64::try_from(i128::from(wrong) - i128::from(start)).ok()
    }

    /// The rows of a part, and where they begin from the object's start.
    fn zone(&self, part: Part, size: Option<u64>) -> (&Zone, Option<i64>) {
        let len = |zone: &Zone| i64::try_from(zone.bytes.len()).ok();
        match part {
            Part::LeftRedzone => (&self.left, len(&self.left).map(|n| -n)),
            Part::RightRedzone => (
                &self.right,
                self.size.or(size).and_then(|n| i64::try_from(n).ok()),
            ),
            Part::KmallocRedzone | Part::Poison => (&self.object, Some(0)),
            Part::ObjectPadding | Part::SlabPadding => (&self.padding, None),
        }
    }

    /// The length that the two addresses of the line give.
    fn printed_len(&self, over: &Overwritten) -> Option<u64> {
        let (from, to) = (over.from?, over.to?);
        if from == to {
            return Some(1);
        }
        let len = to.checked_sub(from)?.checked_add(1)?;
        (self.plain == Some(true) && len < MAX_DISTANCE).then_some(len)
    }

    /// Bytes asked for: the kmalloc red zone begins there. Exact when the byte
    /// before the damage is not of the red zone.
    pub fn requested(&self, damage: &Damage) -> Option<u64> {
        let at = usize::try_from(damage.offset_in_object?).ok()?;
        let before = self.object.bytes.get(..at)?;
        let exact = before
            .last()
            .is_none_or(|byte| Some(*byte) != damage.expected);
        exact.then(|| u64::try_from(at).ok()).flatten()
    }

    /// Whether all shown bytes of a free object are as they should be.
    pub fn poison_is_whole(&self) -> Option<bool> {
        let (last, body) = self.object.bytes.split_last()?;
        self.size?;
        Some(*last == POISON_END && body.iter().all(|b| *b == POISON))
    }

    /// Bytes of the red zone behind the object that were shown.
    pub fn right_len(&self) -> u64 {
        self.right.bytes.len() as u64
    }

    /// Bytes of the red zone before the object that were shown.
    pub fn left_len(&self) -> i64 {
        i64::try_from(self.left.bytes.len()).unwrap_or_default()
    }
}

fn first_wrong(bytes: &[u8], expected: u8) -> Option<usize> {
    bytes.iter().position(|b| *b != expected)
}

/// Bytes up to the last wrong one.
fn last_wrong(bytes: &[u8], expected: u8) -> Option<u64> {
    let last = bytes.iter().rposition(|b| *b != expected)?;
    u64::try_from(last + 1).ok()
}

/// Whether addresses are real: rows that touch then have addresses that do.
fn plain(slub: &Slub) -> Option<bool> {
    let touching = slub
        .rows
        .windows(2)
        .filter(|pair| pair[1].label != Label::Padding || pair[0].label == Label::Padding);
    let mut counts = [0u32; 2];
    for pair in touching {
        let (Some(a), Some(b)) = (pair[0].address, pair[1].address) else {
            continue;
        };
        let next = a.checked_add(pair[0].bytes().len() as u64);
        counts[usize::from(next == Some(b))] += 1;
    }
    if counts != [0, 0] {
        // Some rows may be left out or mistyped.
        return Some(counts[1] > counts[0]);
    }
    let over = slub.overwritten.first()?;
    let object = slub.object.as_ref()?;
    let offsets = i128::from(over.offset?) - i128::from(object.offset?);
    let addresses = i128::from(over.from?) - i128::from(object.pointer?);
    (offsets != 0).then_some(offsets == addresses)
}
