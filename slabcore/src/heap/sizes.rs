//! Size classes of a heap: four for each doubling, from 16 bytes on, and one of 8.
//!
//! So at most a fifth of an object is slack. One more is for a page and what belongs to it, which
//! databases and buffers are made of; its objects begin in all sets of the processor's caches.
//!  Every class above 8 is a multiple of 16, the
//! alignment that C asks for. Classes are numbered from 1 on; 0 is what has none.

/// Sizes in bytes; entry 0 is nothing.
pub const SIZES: [usize; KINDS] = [
    0, 8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896,
    1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096, 4416, 5120, 6144, 7168, 8192, 10240,
    12288, 14336, 16384, 20480, 24576, 28672, 32768,
];

/// Names of the classes, as the kernel names its own.
pub const NAMES: [&str; KINDS] = [
    "",
    "kmalloc-8",
    "kmalloc-16",
    "kmalloc-32",
    "kmalloc-48",
    "kmalloc-64",
    "kmalloc-80",
    "kmalloc-96",
    "kmalloc-112",
    "kmalloc-128",
    "kmalloc-160",
    "kmalloc-192",
    "kmalloc-224",
    "kmalloc-256",
    "kmalloc-320",
    "kmalloc-384",
    "kmalloc-448",
    "kmalloc-512",
    "kmalloc-640",
    "kmalloc-768",
    "kmalloc-896",
    "kmalloc-1k",
    "kmalloc-1280",
    "kmalloc-1536",
    "kmalloc-1792",
    "kmalloc-2k",
    "kmalloc-2560",
    "kmalloc-3k",
    "kmalloc-3584",
    "kmalloc-4k",
    "kmalloc-4416",
    "kmalloc-5k",
    "kmalloc-6k",
    "kmalloc-7k",
    "kmalloc-8k",
    "kmalloc-10k",
    "kmalloc-12k",
    "kmalloc-14k",
    "kmalloc-16k",
    "kmalloc-20k",
    "kmalloc-24k",
    "kmalloc-28k",
    "kmalloc-32k",
];

/// Classes, and the one that is none.
pub const KINDS: usize = 43;

/// The largest size that has a class.
pub const LARGEST: usize = SIZES[KINDS - 1];

/// The class that is not of the sequence.
const PAGE_AND_MORE: usize = 4416;

/// Sizes up to this one are looked up.
const TABLE_TO: usize = 1024;

/// The classes of sizes up to 1024, by (bytes + 7) / 8.
pub(super) type Small = [u8; TABLE_TO / 8 + 1];

/// The table, to be kept where it is at hand.
pub(super) const SMALL: Small = small();

const fn small() -> Small {
    let mut table = [1; TABLE_TO / 8 + 1];
    let (mut at, mut kind) = (0, 1);
    while at < table.len() {
        if at * 8 > SIZES[kind] {
            kind += 1;
        }
        table[at] = kind as u8;
        at += 1;
    }
    table
}

/// The class for `size` bytes; 0 above [`LARGEST`].
#[inline]
pub fn kind_of(size: usize) -> usize {
    static TABLE: Small = SMALL;
    look_up(&TABLE, size)
}

/// As [`kind_of`], with the table.
#[inline(always)]
pub(super) fn look_up(table: &Small, size: usize) -> usize {
    match table.get(size.wrapping_add(7) / 8) {
        Some(kind) if size <= TABLE_TO => usize::from(*kind),
        _ => computed(size),
    }
}

/// As [`kind_of`], for more than the table has.
#[inline]
fn computed(size: usize) -> usize {
    if size > LARGEST {
        return 0;
    }
    // Two bits below the highest one of size - 1 tell the quarter of the doubling.
    let last = size - 1;
    let doubling = last.ilog2() as usize;
    let quarter = (last >> (doubling - 2)) & 3;
    // 1025..=1280 is class 22, and 1024 is two to the tenth.
    let kind = 22 + (doubling - 10) * 4 + quarter;
    kind + usize::from(size > PAGE_AND_MORE)
}

/// What grows is given more from here on; smaller objects move at little cost.
const GROWS_FROM: usize = 128;
/// From here on at once the largest class: what is copied matters, and of what is not used most
/// takes no memory.
const GROWS_FAR_FROM: usize = 8193;

/// The size to ask for when an object moves because it grows: what grows once grows again.
pub fn grown(size: usize) -> usize {
    match size {
        GROWS_FROM..GROWS_FAR_FROM => size.next_power_of_two(),
        GROWS_FAR_FROM..=LARGEST => LARGEST,
        _ => size,
    }
}

/// The sizes to which an object of a class may change without moving: the least, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stays {
    least: u32,
    number: u32,
}

impl Stays {
    /// None.
    pub const NEVER: Self = Self {
        least: 0,
        number: 0,
    };

    /// Those of a class, which is not 0: above a half of it, and what it is given for by [`grown`].
    pub const fn of(kind: usize) -> Self {
        let most = SIZES[kind];
        let least = if most == LARGEST {
            GROWS_FAR_FROM
        } else {
            most / 2 + 1
        };
        Self {
            least: least as u32,
            number: (most + 1 - least) as u32,
        }
    }

    /// Whether a size is one of them.
    #[inline(always)]
    pub const fn has(self, size: usize) -> bool {
        size.wrapping_sub(self.least as usize) < self.number as usize
    }
}

/// Those of all classes.
pub const STAYS: [Stays; KINDS] = {
    let mut all = [Stays::NEVER; KINDS];
    let mut kind = 1;
    while kind < KINDS {
        all[kind] = Stays::of(kind);
        kind += 1;
    }
    all
};

/// The class whose objects have an alignment, too; 0 if there is none.
pub fn kind_of_aligned(size: usize, align: usize) -> usize {
    if align > crate::sys::PAGE {
        return 0;
    }
    let first = kind_of(size.max(align));
    if first == 0 {
        return 0;
    }
    // Slots lie at multiples of their size from a page's start.
    { first..KINDS }
        .find(|kind| SIZES[*kind].is_multiple_of(align))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        for size in 0..=LARGEST {
            let kind = kind_of(size);
            assert!(kind > 0 && SIZES[kind] >= size, "{size}");
            assert!(kind == 1 || SIZES[kind - 1] < size, "{size}");
        }
        assert_eq!(kind_of(LARGEST + 1), 0);
        assert_eq!(kind_of(usize::MAX), 0);
    }

    #[test]
    fn at_most_a_fifth_is_slack_and_c_gets_its_alignment() {
        assert!(SIZES.iter().skip(2).all(|size| size.is_multiple_of(16)));
        for size in 65..=LARGEST {
            assert!((SIZES[kind_of(size)] - size) * 5 <= SIZES[kind_of(size)]);
        }
    }

    #[test]
    fn every_alignment_is_met() {
        for align in (0..=12).map(|bit| 1usize << bit) {
            for size in (0..=LARGEST).step_by(7) {
                let kind = kind_of_aligned(size, align);
                assert!(SIZES[kind] >= size && SIZES[kind].is_multiple_of(align));
            }
        }
        assert_eq!(kind_of_aligned(8, 8192), 0);
    }

    #[test]
    fn what_was_given_room_to_grow_stays_until_that_is_used() {
        for size in 0..=LARGEST + 1 {
            let room = grown(size);
            assert!(room >= size);
            let kind = kind_of(room);
            if kind_of(size) != kind {
                assert!(STAYS[kind].has(size), "{size}");
            }
            assert!(room <= size * 2 || room <= size * 4 && room == LARGEST);
        }
        for kind in 1..KINDS {
            let most = SIZES[kind];
            assert!(STAYS[kind].has(most) && !STAYS[kind].has(most + 1));
            assert!(!STAYS[kind].has(most / 4) && !STAYS[kind].has(0));
            assert!(most == LARGEST || !STAYS[kind].has(most / 2));
        }
        assert!(!STAYS[0].has(0) && !Stays::NEVER.has(0));
    }

    #[test]
    fn names_tell_the_sizes() {
        for (size, name) in SIZES.into_iter().zip(NAMES).skip(1) {
            let of = name.strip_prefix("kmalloc-").unwrap();
            let bytes = match of.strip_suffix('k') {
                Some(kib) => kib.parse::<usize>().unwrap() * 1024,
                None => of.parse().unwrap(),
            };
            assert_eq!(bytes, size, "{name}");
        }
    }
}
