//! What bytes look like.
//!
//! Purpose: from what was found where something else should be, to what wrote
//! it. Source of truth: include/linux/poison.h for the marks; addresses of
//! 64-bit kernels begin with ones (x86, arm64) or 0xc0 (powerpc). A likeness
//! is no proof, and several may fit.

/// A likeness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    /// One bit of one byte: its number, and whether it is set now.
    Flip(u32, bool),
    /// One less than it was.
    Decrement,
    /// One more than it was.
    Increment,
    /// One zero byte.
    Nul,
    /// So many zero bytes.
    Zeros(usize),
    /// A pointer into the kernel.
    Pointer(u64),
    /// What list_del() leaves in an entry.
    ListPoison,
    /// Readable text.
    Text(String),
    /// The red zone of a free object where that of a live one should be.
    FreeMark,
    /// The red zone of a live object where that of a free one should be.
    LiveMark,
    /// The same byte all along.
    Fill(u8),
    /// A number of 4 bytes, little-endian.
    Word(u32),
}

/// Red zone of a live object.
pub(super) const LIVE: u8 = 0xcc;
/// Red zone of a free object.
pub(super) const FREE: u8 = 0xbb;
/// A free object's bytes.
pub(super) const POISON: u8 = 0x6b;
/// Its last byte.
pub(super) const POISON_END: u8 = 0xa5;

/// What `found` looks like where every byte should be `expected`; the most
/// telling likeness first.
pub(super) fn read(found: &[u8], expected: u8) -> Vec<Pattern> {
    let mut list = Vec::new();
    let [first, ..] = *found else {
        return list;
    };
    let same = found.iter().all(|b| *b == first);
    if found.len() == 1 {
        single(first, expected, &mut list);
    } else if same && first == FREE && expected == LIVE {
        list.push(Pattern::FreeMark);
    } else if same && first == LIVE && expected == FREE {
        list.push(Pattern::LiveMark);
    } else if same && first == 0 {
        list.push(Pattern::Zeros(found.len()));
    } else if let Some(pointer) = pointer(found) {
        list.push(pointer);
    } else if let Some(text) = readable(found) {
        list.push(Pattern::Text(text));
    } else if same {
        list.push(Pattern::Fill(first));
    } else if let Ok(word) = <[u8; 4]>::try_from(found) {
        list.push(Pattern::Word(u32::from_le_bytes(word)));
    }
    list
}

fn single(found: u8, expected: u8, list: &mut Vec<Pattern>) {
    let changed = found ^ expected;
    if expected == POISON && found == expected - 1 {
        list.push(Pattern::Decrement);
    }
    if expected == POISON && found == expected + 1 {
        list.push(Pattern::Increment);
    }
    if found == 0 {
        list.push(Pattern::Nul);
    }
    if changed.is_power_of_two() {
        list.push(Pattern::Flip(
            changed.trailing_zeros(),
            found & changed != 0,
        ));
    }
}

/// The bit that differs, when one does.
pub(super) fn flipped_bit(found: &[u8], expected: u8) -> Option<(u32, bool)> {
    let [byte] = *found else { return None };
    let changed = byte ^ expected;
    changed
        .is_power_of_two()
        .then(|| (changed.trailing_zeros(), byte & changed != 0))
}

/// The first 8 bytes as a pointer, in either byte order.
fn pointer(found: &[u8]) -> Option<Pattern> {
    let word = <[u8; 8]>::try_from(found.get(..8)?).ok()?;
    for value in [u64::from_le_bytes(word), u64::from_be_bytes(word)] {
        if matches!(
            value,
            0xdead_0000_0000_0100 | 0xdead_0000_0000_0122 | 0xdead_0000_0000_0200
        ) {
            return Some(Pattern::ListPoison);
        }
        let high = value >> 48;
        // Beyond the marks of memory itself, such as 0xffffffffffffffff.
        let plain = value != u64::MAX && value & 0xffff_ffff != 0;
        if plain && (high == 0xffff || high == 0xff11 || high == 0xc000) {
            return Some(Pattern::Pointer(value));
        }
    }
    None
}

fn readable(found: &[u8]) -> Option<String> {
    // The end of a string may have its terminator.
    let text = found.strip_suffix(&[0]).unwrap_or(found);
    let shown = |b: &u8| b.is_ascii_graphic() || *b == b' ';
    (text.len() >= 3 && text.iter().all(shown)).then(|| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_by_their_likeness() {
        assert_eq!(read(&[0x2b], POISON), [Pattern::Flip(6, false)]);
        assert_eq!(
            read(&[0x6a], POISON),
            [Pattern::Decrement, Pattern::Flip(0, false)]
        );
        assert_eq!(read(&[0x6c], POISON), [Pattern::Increment]);
        assert_eq!(read(&[0], LIVE), [Pattern::Nul]);
        assert_eq!(read(&[0; 8], POISON), [Pattern::Zeros(8)]);
        let pointer = 0xffff_8881_9344_e518_u64;
        assert_eq!(
            read(&pointer.to_le_bytes(), POISON),
            [Pattern::Pointer(pointer)]
        );
        assert_eq!(
            read(&pointer.to_be_bytes(), POISON),
            [Pattern::Pointer(pointer)]
        );
        assert_eq!(
            read(&0xdead_0000_0000_0122_u64.to_le_bytes(), POISON),
            [Pattern::ListPoison]
        );
        assert_eq!(read(b"eth0\0", LIVE), [Pattern::Text("eth0".into())]);
        assert_eq!(read(&[FREE; 8], LIVE), [Pattern::FreeMark]);
        assert_eq!(read(&[LIVE; 8], FREE), [Pattern::LiveMark]);
        assert_eq!(read(&[0, 0, 0, 0xc0], LIVE), [Pattern::Word(0xc000_0000)]);
        assert_eq!(read(&[0xff; 6], LIVE), [Pattern::Fill(0xff)]);
        assert_eq!(read(&[], LIVE), []);
        assert_eq!(read(&[0x12, 0x34], LIVE), []);
    }

    #[test]
    fn a_flip_has_one_bit() {
        assert_eq!(flipped_bit(&[0x6f], POISON), Some((2, true)));
        assert_eq!(flipped_bit(&[0x6f, 0x6f], POISON), None);
        assert_eq!(flipped_bit(&[0x60], POISON), None);
    }
}
