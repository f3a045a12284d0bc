//! Debug flags and the option text that sets them.
//!
//! Source of truth: `slab_debug` of Linux 6.12 (`Documentation/mm/slub.rst`, `mm/slub.c`). The text is a list of
//! blocks parted by `;`. A block is letters, and after the first `,` a list of caches it is for:
//!
//! ```text
//! FZPU                          these flags for every cache
//! P,dentry,kmalloc-*            poison two families of caches only; the rest keeps the built-in default
//! FZPU,kmalloc-64;P,dentry*;F   the first block that lists a cache wins; a block without list is for the others
//! ,dentry                       no letters: FZPU
//! -                             nothing
//! ```
//!
//! The text stays borrowed and is searched again for each cache, as the kernel does, because a cache is created
//! seldom and an allocator cannot allocate to remember a list.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};
use core::str::FromStr;

/// A set of debug flags, one letter each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DebugFlags(u8);

/// Letter and flag, in the order in which they are printed.
const LETTERS: [(char, DebugFlags); 6] = [
    ('F', DebugFlags::CONSISTENCY),
    ('Z', DebugFlags::RED_ZONE),
    ('P', DebugFlags::POISON),
    ('U', DebugFlags::STORE_USER),
    ('T', DebugFlags::TRACE),
    ('A', DebugFlags::FAIL),
];

impl DebugFlags {
    /// No debugging.
    pub const NONE: Self = Self(0);
    /// `F`: check slabs and free lists on each operation.
    pub const CONSISTENCY: Self = Self(1);
    /// `Z`: red zones before and behind each object.
    pub const RED_ZONE: Self = Self(2);
    /// `P`: poison free objects, fill padding.
    pub const POISON: Self = Self(4);
    /// `U`: remember who allocated and who freed.
    pub const STORE_USER: Self = Self(8);
    /// `T`: print each allocation and free.
    pub const TRACE: Self = Self(16);
    /// `A`: let allocations fail on purpose.
    pub const FAIL: Self = Self(32);
    /// `FZPU`: what an option without letters means.
    pub const DEFAULT: Self = Self(1 | 2 | 4 | 8);

    /// True if every flag of `other` is set here.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if at least one flag of `other` is set here.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True if no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flags of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags as a number, for a descriptor; bit order as declared here.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The flags of a number made by [`DebugFlags::bits`]; unknown bits are dropped.
    pub const fn from_bits_truncate(bits: u8) -> Self {
        Self(bits & 63)
    }

    /// True if the flags change the layout of a slot (`Z`, `P` or `U`).
    pub const fn changes_layout(self) -> bool {
        self.0 & (2 | 4 | 8) != 0
    }

    fn of_letter(letter: char) -> Option<Self> {
        let upper = letter.to_ascii_uppercase();
        LETTERS
            .iter()
            .find(|(known, _)| *known == upper)
            .map(|&(_, flag)| flag)
    }
}

impl BitOr for DebugFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for DebugFlags {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

impl fmt::Display for DebugFlags {
    /// Prints the letters in the order FZPUTA, or `-` for none; the text can be read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        for (letter, flag) in LETTERS {
            if self.contains(flag) {
                fmt::Write::write_char(f, letter)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DebugFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DebugFlags({self})")
    }
}

/// A letter that stands for no debug flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLetter {
    /// The letter as written.
    pub letter: char,
    /// Its byte offset in the option text.
    pub at: usize,
}

impl fmt::Display for UnknownLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slab_debug option '{}' unknown. skipped", self.letter)
    }
}

impl core::error::Error for UnknownLetter {}

impl FromStr for DebugFlags {
    type Err = UnknownLetter;

    /// Reads the letters of one block, case-insensitively. No letters mean FZPU; `-` drops what stands before it.
    fn from_str(letters: &str) -> Result<Self, UnknownLetter> {
        match (read_letters(letters), unknown_in(letters).next()) {
            (_, Some((at, letter))) => Err(UnknownLetter { letter, at }),
            (flags, None) => Ok(flags),
        }
    }
}

/// The flags that letters stand for; unknown letters are skipped, no letters are FZPU.
fn read_letters(letters: &str) -> DebugFlags {
    if letters.is_empty() {
        return DebugFlags::DEFAULT;
    }
    let mut flags = DebugFlags::NONE;
    for letter in letters.chars() {
        if letter == '-' {
            flags = DebugFlags::NONE;
        } else if let Some(flag) = DebugFlags::of_letter(letter) {
            flags |= flag;
        }
    }
    flags
}

/// Letters that are neither a flag nor `-` nor `O`, with their offsets.
fn unknown_in(letters: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    letters.char_indices().filter(|&(_, letter)| {
        letter != '-'
            && !letter.eq_ignore_ascii_case(&'o')
            && DebugFlags::of_letter(letter).is_none()
    })
}

/// One block of the option text.
#[derive(Clone, Copy)]
struct Block<'a> {
    letters: &'a str,
    list: Option<&'a str>,
    at: usize,
}

impl Block<'_> {
    fn lists(&self, cache: &str) -> bool {
        self.list.is_some_and(|list| {
            list.split(',')
                .any(|pattern| pattern_matches(pattern, cache))
        })
    }
}

/// A pattern is a whole name, or a prefix up to its first `*`; what follows a `*` is ignored, as in the kernel.
fn pattern_matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((prefix, _)) => name.starts_with(prefix),
        None => pattern == name,
    }
}

/// The blocks of a text, empty ones left out.
fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut at = 0;
    text.split(';').filter_map(move |block| {
        let start = at;
        at += block.len() + 1;
        if block.is_empty() {
            return None;
        }
        Some(match block.split_once(',') {
            Some((letters, list)) => Block {
                letters,
                list: Some(list),
                at: start,
            },
            None => Block {
                letters: block,
                list: None,
                at: start,
            },
        })
    })
}

/// A debug option text, read as the kernel reads `slab_debug=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugOptions<'a> {
    text: &'a str,
    global: Option<DebugFlags>,
    avoid_higher_order: bool,
}

impl<'a> DebugOptions<'a> {
    /// Reads an option text. Every text is accepted; [`DebugOptions::unknown`] names letters without meaning.
    ///
    /// An empty text means FZPU for every cache.
    pub fn parse(text: &'a str) -> Self {
        let mut global = None;
        let mut any = false;
        for block in blocks(text) {
            any = true;
            if block.list.is_none() {
                global = Some(read_letters(block.letters));
            }
        }
        if !any {
            // The kernel takes a text of semicolons only for one block without flags.
            global = Some(if text.is_empty() {
                DebugFlags::DEFAULT
            } else {
                DebugFlags::NONE
            });
        }
        let avoid_higher_order = blocks(text).any(|block| block.letters.contains(['o', 'O']));
        Self {
            text,
            global,
            avoid_higher_order,
        }
    }

    /// What the text says for a cache: the first block that lists it, or else the last block without a list.
    ///
    /// `None` means that the text leaves this cache alone, so that a built-in default applies.
    pub fn flags_for(&self, cache: &str) -> Option<DebugFlags> {
        blocks(self.text)
            .find(|block| block.lists(cache))
            .map(|block| read_letters(block.letters))
            .or(self.global)
    }

    /// The flags of the last block without a list, if there is one.
    pub fn global(&self) -> Option<DebugFlags> {
        self.global
    }

    /// True if a letter `O` asks to leave caches alone whose slabs would have to grow for debugging.
    pub fn avoid_higher_order(&self) -> bool {
        self.avoid_higher_order
    }

    /// The letters that mean nothing and were skipped.
    pub fn unknown(&self) -> impl Iterator<Item = UnknownLetter> + 'a {
        blocks(self.text).flat_map(|block| {
            unknown_in(block.letters).map(move |(at, letter)| UnknownLetter {
                letter,
                at: block.at + at,
            })
        })
    }
}

impl fmt::Display for DebugOptions<'_> {
    /// Prints the option in a settled form: letters in order, empty blocks left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for block in blocks(self.text) {
            if !first {
                f.write_str(";")?;
            }
            first = false;
            write!(f, "{}", read_letters(block.letters))?;
            if block.letters.contains(['o', 'O']) {
                f.write_str("O")?;
            }
            if let Some(list) = block.list {
                write!(f, ",{list}")?;
            }
        }
        match (first, self.global) {
            (true, Some(flags)) => write!(f, "{flags}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str, cache: &str) -> String {
        DebugOptions::parse(text)
            .flags_for(cache)
            .map_or_else(|| "none".into(), |flags| flags.to_string())
    }

    #[test]
    fn letters_mean_what_the_kernel_says() {
        for (letters, expected) in [
            ("", "FZPU"),
            ("fzpu", "FZPU"),
            ("UPZF", "FZPU"),
            ("ta", "TA"),
            ("-", "-"),
            ("FZ-", "-"),
            ("FZ-p", "P"),
        ] {
            assert_eq!(
                letters.parse::<DebugFlags>().unwrap().to_string(),
                expected,
                "{letters:?}"
            );
        }
        let error = "FZQ".parse::<DebugFlags>().unwrap_err();
        assert_eq!(error, UnknownLetter { letter: 'Q', at: 2 });
        assert_eq!(error.to_string(), "slab_debug option 'Q' unknown. skipped");
    }

    #[test]
    fn blocks_choose_caches() {
        let text = "FZPU,kmalloc-64;P,dentry*";
        assert_eq!(of(text, "kmalloc-64"), "FZPU");
        assert_eq!(of(text, "kmalloc-640"), "none");
        assert_eq!(of(text, "kmalloc-6"), "none");
        assert_eq!(of(text, "dentry"), "P");
        assert_eq!(of(text, "dentry_x"), "P");
        assert_eq!(of(text, "inode"), "none");
    }

    #[test]
    fn the_first_list_wins_and_the_last_global_block() {
        let text = "Z;FZ,a*;;P,ab;U";
        assert_eq!(of(text, "ab"), "FZ");
        assert_eq!(of(text, "b"), "U");
        assert_eq!(of("-,ab;FZPU", "ab"), "-");
        assert_eq!(of(",ab", "ab"), "FZPU");
        assert_eq!(of(",ab", "b"), "none");
        assert_eq!(of("", "b"), "FZPU");
        assert_eq!(of(";;", "b"), "-");
        assert_eq!(of("F,", "b"), "none");
        assert_eq!(of("F,*", "b"), "F");
    }

    #[test]
    fn odd_letters_are_named_with_their_place() {
        let options = DebugOptions::parse("FX;zy,dentry;O");
        let unknown: Vec<_> = options.unknown().map(|u| (u.letter, u.at)).collect();
        assert_eq!(unknown, [('X', 1), ('y', 4)]);
        assert!(options.avoid_higher_order());
        assert_eq!(options.to_string(), "F;Z,dentry;-O");
    }

    proptest! {
        #[test]
        fn flags_read_back(bits in 0u8..64) {
            let flags = DebugFlags::from_bits_truncate(bits);
            prop_assert_eq!(flags.to_string().parse::<DebugFlags>(), Ok(flags));
            prop_assert_eq!(flags.to_string().to_lowercase().parse::<DebugFlags>(), Ok(flags));
        }

        #[test]
        fn a_settled_text_means_the_same(text in "[FZpuTAo\\-x;,a-c*]{0,24}", cache in "[a-c]{1,4}") {
            let options = DebugOptions::parse(&text);
            let printed = options.to_string();
            let again = DebugOptions::parse(&printed);
            prop_assert_eq!(again.flags_for(&cache), options.flags_for(&cache), "{} -> {}", text, printed);
            prop_assert_eq!(again.avoid_higher_order(), options.avoid_higher_order());
            prop_assert_eq!(again.unknown().count(), 0);
            prop_assert_eq!(again.to_string(), printed);
        }

        #[test]
        fn any_text_is_read(text in any::<String>(), cache in any::<String>()) {
            let options = DebugOptions::parse(&text);
            let _ = options.flags_for(&cache);
            for unknown in options.unknown() {
                prop_assert!(text[unknown.at..].starts_with(unknown.letter));
            }
        }
    }
}
