//! Following a free list that others change: marks, faults, and the proof that it held still.
//!
//! Source of truth: `on_freelist` and `validate_slab` of mm/slub.c in Linux 6.12. There the free path of
//! debug caches takes a lock so that validation finds no healthy object broken; here every
//! change of a word advances its tag, so a reader looks, and looks at the word again
//! (`Desc::still`). Frees pay nothing for it.

use crate::slab::{Desc, Links, NONE, Word};

/// Objects of a slab at most: the word's counter has 15 bits.
pub const MAX_OBJECTS: usize = 32_767;

/// One bit for each object of a slab.
#[derive(Debug)]
pub struct Seen([u64; MAX_OBJECTS / 64 + 1]);

impl Default for Seen {
    fn default() -> Self {
        Self::new()
    }
}

impl Seen {
    /// No object is marked.
    pub const fn new() -> Self {
        Self([0; MAX_OBJECTS / 64 + 1])
    }

    /// Marks an object; whether it was marked before.
    pub fn mark(&mut self, object: u16) -> bool {
        let word = &mut self.0[usize::from(object) / 64];
        let bit = 1 << (object % 64);
        let before = *word & bit != 0;
        *word |= bit;
        before
    }

    /// Whether an object is marked.
    pub fn has(&self, object: u16) -> bool {
        self.0[usize::from(object) / 64] & (1 << (object % 64)) != 0
    }
}

/// What is wrong with a word or its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// More objects in use than the slab has, or none at all.
    Counts,
    /// The link of `object` (or the head, 0xffff) leads out of the slab.
    Link {
        /// Whose link.
        object: u16,
        /// Where it leads.
        link: u16,
    },
    /// An object is in the list twice.
    Cycle {
        /// The object.
        object: u16,
    },
    /// The list has another length than the word says.
    Length {
        /// Objects found.
        found: u16,
    },
}

/// Walks a word's list and marks its objects; ends at the first fault.
pub fn walk(links: &impl Links, word: Word, seen: &mut Seen) -> Result<(), Broken> {
    if word.inuse() > word.objects() || word.objects() == 0 {
        return Err(Broken::Counts);
    }
    let (mut object, mut before, mut found) = (word.head(), NONE, 0u16);
    while object != NONE {
        if object >= word.objects() {
            return Err(Broken::Link {
                object: before,
                link: object,
            });
        }
        if seen.mark(object) {
            return Err(Broken::Cycle { object });
        }
        found += 1;
        before = object;
        object = links.get(object);
    }
    if found == word.free() {
        Ok(())
    } else {
        Err(Broken::Length { found })
    }
}

/// What `look` sees of a slab whose word stayed the same meanwhile; `None` if it never did
/// in `tries` attempts.
pub fn steady<T>(desc: &Desc, tries: usize, mut look: impl FnMut(Word) -> T) -> Option<T> {
    (0..tries).find_map(|_| {
        let word = desc.load();
        let seen = look(word);
        desc.still(word).then_some(seen)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Fixed(&'static [u16]);
    impl Links for Fixed {
        fn get(&self, object: u16) -> u16 {
            self.0[usize::from(object)]
        }
        fn set(&self, _: u16, _: u16) {}
    }

    fn of(links: &'static [u16], head: u16, inuse: u16) -> Result<(), Broken> {
        let word = Word::taken(4, false).with_list(head, inuse);
        walk(&Fixed(links), word, &mut Seen::new())
    }

    #[test]
    fn each_fault_of_a_list_has_its_name() {
        assert_eq!(of(&[1, 2, NONE, 0], 0, 1), Ok(()));
        assert_eq!(of(&[], NONE, 4), Ok(()));
        assert_eq!(of(&[], NONE, 5), Err(Broken::Counts));
        let (object, link) = (1, 9);
        assert_eq!(of(&[1, 9], 0, 0), Err(Broken::Link { object, link }));
        let (object, link) = (NONE, 4);
        assert_eq!(of(&[], 4, 3), Err(Broken::Link { object, link }));
        assert_eq!(of(&[1, 0], 0, 0), Err(Broken::Cycle { object: 0 }));
        assert_eq!(of(&[NONE], 0, 2), Err(Broken::Length { found: 1 }));
    }

    #[test]
    fn what_moved_is_looked_at_again_and_at_last_given_up() {
        let desc = Desc::default();
        desc.reset(Word::taken(4, false));
        let mut looks = 0;
        let seen = steady(&desc, 3, |word| {
            looks += 1;
            if looks == 1 {
                desc.update(Some);
            }
            word
        });
        assert_eq!((seen, looks), (Some(desc.load()), 2));
        assert_eq!(steady(&desc, 3, |_| desc.update(Some)), None);
    }
}
