//! Why SLUB printed a report: the text after the banner's `): `.
//!
//! Source of truth: the callers of object_err() and slab_err() in mm/slub.c
//! from 2.6.22 to 7.3. The texts moved between versions; here each meaning has
//! one name. What follows from it is not said here.

use super::report::Pointer;
use super::template::{Values, scan};

/// The reason of a SLUB report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A red zone; which side is told only from 5.10 on.
    Redzone,
    /// The red zone before the object.
    LeftRedzone,
    /// The red zone behind the object.
    RightRedzone,
    /// The part of a kmalloc object that was not asked for (6.2 and later).
    KmallocRedzone,
    /// A free object.
    Poison,
    /// Its last byte.
    EndPoison,
    /// Bytes behind the metadata of an object.
    ObjectPadding,
    /// Bytes behind the last object of a slab.
    SlabPadding {
        /// The first wrong byte.
        from: Pointer,
        /// The last one.
        to: Pointer,
        /// Offset of the first one in the slab.
        offset: Option<u64>,
    },
    /// The damaged part was named before the banner.
    ObjectCorrupt,
    /// The free pointer in an object.
    FreePointer,
    /// A link of the free list.
    FreeChain,
    /// The free list runs in a circle.
    FreeListCycle,
    /// The head of the free list.
    FreeListHead,
    /// An object that is free was freed.
    AlreadyFree,
    /// An object in use was to be given out.
    AlreadyAllocated,
    /// A pointer that is not the start of an object was freed.
    InvalidObject(Pointer),
    /// Something outside any slab was freed.
    OutsideSlab(Pointer),
    /// A page without a cache.
    NoCache(Pointer),
    /// The page belongs to another cache.
    OtherCache,
    /// The page is no slab.
    NotASlab,
    /// More objects than fit in the slab.
    ObjectsOverMax(Option<u64>, Option<u64>),
    /// More in use than there are.
    InUseOverMax(Option<u64>, Option<u64>),
    /// A slab that an earlier report took out of use.
    Disabled,
    /// The counted objects are not what fits in the slab.
    WrongNumber(Option<u64>, Option<u64>),
    /// The counter is not what was counted.
    WrongCount(Option<u64>, Option<u64>),
    /// A list freed at once does not have the length it should have.
    BulkCount,
    /// A slab with so many objects in use, of which so many are to be freed.
    FreesMoreThanUsed(Option<u64>, Option<u64>),
    /// Objects are left at destruction.
    Remaining,
    /// A text that is not known.
    Other,
}

/// Reads a reason. The second value is false when the text ends early.
pub fn read(text: &str) -> (Reason, bool) {
    let text = text.trim_end();
    FORMS
        .iter()
        .find_map(|(template, make)| {
            let values = scan(template, text)?;
            Some((make(&values), values.complete))
        })
        .or_else(|| words(text))
        .or_else(|| first_words(text))
        .unwrap_or((Reason::Other, true))
}

/// Whether the text is a known reason or the beginning of one, for banners
/// without a taint.
pub(super) fn is_known(text: &str) -> bool {
    read(text).0 != Reason::Other
}

type Form = (&'static str, fn(&Values<'_>) -> Reason);

/// Reasons with values.
const FORMS: &[Form] = &[
    ("Padding overwritten. {p}-{p} @offset={d}", padding),
    ("Padding overwritten. {p}-{p}", padding),
    ("Invalid object pointer {p}", |v| {
        Reason::InvalidObject(v.pointer(0))
    }),
    ("Attempt to free object({p}) outside of slab", |v| {
        Reason::OutsideSlab(v.pointer(0))
    }),
    ("No slab cache for object {p}", |v| {
        Reason::NoCache(v.pointer(0))
    }),
    (
        "Wrong object count. Counter is {d} but counted were {d}",
        |v| Reason::WrongCount(v.dec(0), v.dec(1)),
    ),
    (
        "Wrong number of objects. Found {d} but should be {d}",
        |v| Reason::WrongNumber(v.dec(0), v.dec(1)),
    ),
    ("objects {d} > max {d}", |v| {
        Reason::ObjectsOverMax(v.dec(0), v.dec(1))
    }),
    ("inuse {d} > max {d}", |v| {
        Reason::InUseOverMax(v.dec(0), v.dec(1))
    }),
    ("Bulk freelist count({d}) invalid({d})", |_| {
        Reason::BulkCount
    }),
    (
        "Slab has {d} allocated objects but {d} are to be freed",
        |v| Reason::FreesMoreThanUsed(v.dec(0), v.dec(1)),
    ),
    ("Bulk free expected {d} objects but found {d}", |_| {
        Reason::BulkCount
    }),
    ("Objects remaining in {s} on {w}", |_| Reason::Remaining),
    ("Objects remaining on {w}", |_| Reason::Remaining),
];

fn padding(values: &Values<'_>) -> Reason {
    Reason::SlabPadding {
        from: values.pointer(0),
        to: values.pointer(1),
        offset: values.dec(2),
    }
}

/// The beginning of a reason with values, cut or wrapped after a word.
fn first_words(text: &str) -> Option<(Reason, bool)> {
    FORMS.iter().find_map(|(template, make)| {
        let rest = template.strip_prefix(text)?;
        let partial = !text.is_empty() && rest.starts_with(' ');
        partial.then(|| (make(&Values::default()), false))
    })
}

/// Reasons without values. Longer texts before those they begin with.
fn words(text: &str) -> Option<(Reason, bool)> {
    const WORDS: &[(&str, Reason)] = &[
        ("Left Redzone overwritten", Reason::LeftRedzone),
        ("Right Redzone overwritten", Reason::RightRedzone),
        ("kmalloc Redzone overwritten", Reason::KmallocRedzone),
        ("Redzone overwritten", Reason::Redzone),
        ("Poison overwritten", Reason::Poison),
        ("End Poison overwritten", Reason::EndPoison),
        ("Object padding overwritten", Reason::ObjectPadding),
        ("Alignment padding overwritten", Reason::ObjectPadding),
        ("Object corrupt", Reason::ObjectCorrupt),
        ("Freepointer corrupt", Reason::FreePointer),
        ("Freechain corrupt", Reason::FreeChain),
        ("Freelist cycle detected", Reason::FreeListCycle),
        ("Freelist Pointer check fails", Reason::FreeListHead),
        ("Object already free", Reason::AlreadyFree),
        ("Object is on free-list", Reason::AlreadyAllocated),
        ("Object already allocated", Reason::AlreadyAllocated),
        ("page slab pointer corrupt", Reason::OtherCache),
        ("slab slab pointer corrupt", Reason::OtherCache),
        ("slab pointer corrupt", Reason::OtherCache),
        ("Not a valid slab page", Reason::NotASlab),
        (
            "Slab disabled since SLUB metadata consistency check failed",
            Reason::Disabled,
        ),
    ];
    WORDS.iter().find_map(|(words, reason)| {
        if scan(words, text).is_some() {
            return Some((reason.clone(), true));
        }
        // Cut or wrapped after a word.
        let rest = words.strip_prefix(text)?;
        let partial = !text.is_empty() && rest.starts_with(' ');
        partial.then(|| (reason.clone(), false))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_all_versions() {
        for (text, reason) in [
            ("Right Redzone overwritten", Reason::RightRedzone),
            ("Redzone overwritten", Reason::Redzone),
            ("End Poison overwritten", Reason::EndPoison),
            ("page slab pointer corrupt.", Reason::OtherCache),
            (
                "Wrong object count. Counter is 10 but counted were 24",
                Reason::WrongCount(Some(10), Some(24)),
            ),
            ("inuse 9 > max 8", Reason::InUseOverMax(Some(9), Some(8))),
            (
                "Slab has 0 allocated objects but 1 are to be freed",
                Reason::FreesMoreThanUsed(Some(0), Some(1)),
            ),
            (
                "Attempt to free object(0xffff8880) outside of slab",
                Reason::OutsideSlab(Some(0xffff_8880)),
            ),
            (
                "Objects remaining in a b on __kmem_cache_shutdown()",
                Reason::Remaining,
            ),
            (
                "Objects remaining on __kmem_cache_shutdown()",
                Reason::Remaining,
            ),
            (
                "Objects remaining in x on kmem_cache_close()",
                Reason::Remaining,
            ),
            (
                "Padding overwritten. 0xffff8880-0xffff8881 @offset=4080",
                Reason::SlabPadding {
                    from: Some(0xffff_8880),
                    to: Some(0xffff_8881),
                    offset: Some(4080),
                },
            ),
            ("a reason of tomorrow", Reason::Other),
        ] {
            assert_eq!(read(text), (reason, true), "{text}");
        }
    }

    #[test]
    fn a_reason_that_ends_early_says_so() {
        for text in [
            "Objects",
            "Objects remaining in ",
            "Wrong object count. Counter",
            "Objects remaining in x on",
            "Wrong object count. Counter is 10",
            "Right Redzone",
            "Slab disabled since SLUB",
        ] {
            assert!(!read(text).1, "{text}");
        }
    }
}
