//! What is wrong with a slab, and what was done about it, in the kernel's words.
//!
//! Source of truth: the messages of `mm/slub.c`, Linux 6.12 and (free list cycles) 6.18. Damaged bytes have their own
//! kinds in [`super::check`].

use core::fmt;

use super::check::{Damage, DamageKind, Fill};

/// Why a report is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Bytes of an object's slot are wrong; a line before the banner says which.
    ObjectCorrupt,
    /// An object was freed a second time.
    AlreadyFree,
    /// A pointer into a slab, but not to the start of an object.
    InvalidPointer {
        /// The pointer that was freed.
        pointer: u64,
    },
    /// A pointer to memory that is no slab.
    OutsideSlab {
        /// The pointer that was freed.
        pointer: u64,
    },
    /// A pointer into a slab that no cache owns.
    NoCache {
        /// The pointer that was freed.
        pointer: u64,
    },
    /// The object belongs to another cache.
    OtherCache,
    /// A free pointer names no object of the slab.
    FreepointerCorrupt,
    /// An object on the free list links to something that is no object of the slab.
    FreechainCorrupt,
    /// The free list comes back to an object that it passed already.
    FreelistCycle,
    /// The object that an allocation got from the free list is none.
    FreelistPointerFails,
    /// The slab's memory is not marked as a slab.
    NotASlab,
    /// The slab claims more objects than fit.
    TooManyObjects {
        /// What it claims.
        objects: u32,
        /// What fits.
        max: u32,
    },
    /// The slab claims more objects in use than it has.
    TooManyInUse {
        /// What it claims.
        inuse: u32,
        /// What it has.
        max: u32,
    },
    /// The slab was taken out of use after an earlier failure.
    Disabled,
    /// The slab's number of objects is wrong.
    WrongNumber {
        /// What the slab says.
        found: u32,
        /// What is right.
        expected: u32,
    },
    /// The number of objects in use does not fit the free list.
    WrongCount {
        /// What the slab says.
        counter: u32,
        /// What the free list leaves.
        counted: u32,
    },
    /// A cache was destroyed with objects in use.
    ObjectsRemaining,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ObjectCorrupt => f.write_str("Object corrupt"),
            Self::AlreadyFree => f.write_str("Object already free"),
            Self::InvalidPointer { pointer } => {
                write!(f, "Invalid object pointer 0x{pointer:016x}")
            }
            Self::OutsideSlab { pointer } => {
                write!(
                    f,
                    "Attempt to free object(0x{pointer:016x}) outside of slab"
                )
            }
            Self::NoCache { pointer } => write!(f, "No slab cache for object 0x{pointer:016x}"),
            Self::OtherCache => f.write_str("page slab pointer corrupt."),
            Self::FreepointerCorrupt => f.write_str("Freepointer corrupt"),
            Self::FreechainCorrupt => f.write_str("Freechain corrupt"),
            Self::FreelistCycle => f.write_str("Freelist cycle detected"),
            Self::FreelistPointerFails => f.write_str("Freelist Pointer check fails"),
            Self::NotASlab => f.write_str("Not a valid slab page"),
            Self::TooManyObjects { objects, max } => write!(f, "objects {objects} > max {max}"),
            Self::TooManyInUse { inuse, max } => write!(f, "inuse {inuse} > max {max}"),
            Self::Disabled => {
                f.write_str("Slab disabled since SLUB metadata consistency check failed")
            }
            Self::WrongNumber { found, expected } => {
                write!(
                    f,
                    "Wrong number of objects. Found {found} but should be {expected}"
                )
            }
            Self::WrongCount { counter, counted } => {
                write!(
                    f,
                    "Wrong object count. Counter is {counter} but counted were {counted}"
                )
            }
            Self::ObjectsRemaining => f.write_str("Objects remaining on __kmem_cache_shutdown()"),
        }
    }
}

/// What was done after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fix {
    /// Bytes were written back; addresses of the first and the last one.
    Restoring {
        /// The part.
        kind: DamageKind,
        /// The first byte's address.
        from: u64,
        /// The last byte's address.
        to: u64,
        /// What they hold now.
        value: u8,
    },
    /// The slab's free list was dropped.
    FreelistCleared,
    /// The slab's number of objects was set right.
    NumberAdjusted,
    /// The slab's number of objects in use was set right.
    CountAdjusted,
    /// The slab was taken out of use.
    AllUsed,
    /// The object was left as it is.
    NotFreed {
        /// The pointer that was to be freed.
        pointer: u64,
    },
    /// The rest of a free list was cut off.
    Isolated,
}

impl Fix {
    /// The repair of damaged bytes in a slot (or slab, for slab padding) at an address. `None` for a free pointer,
    /// whose repair the kernel does not print.
    pub fn of_damage(damage: &Damage, memory_at: u64) -> Option<Self> {
        let Fill::Byte(value) = damage.fill() else {
            return None;
        };
        Some(Self::Restoring {
            kind: damage.kind(),
            from: memory_at.wrapping_add(damage.first() as u64),
            to: memory_at.wrapping_add(damage.last() as u64),
            value,
        })
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Restoring {
                kind,
                from,
                to,
                value,
            } => {
                write!(
                    f,
                    "Restoring {} 0x{from:016x}-0x{to:016x}=0x{value:x}",
                    kind.what()
                )
            }
            Self::FreelistCleared => f.write_str("Freelist cleared"),
            Self::NumberAdjusted => f.write_str("Number of objects adjusted"),
            Self::CountAdjusted => f.write_str("Object count adjusted"),
            Self::AllUsed => f.write_str("Marking all objects used"),
            Self::NotFreed { pointer } => write!(f, "Object at 0x{pointer:016x} not freed"),
            Self::Isolated => f.write_str("Isolate corrupted freechain"),
        }
    }
}
