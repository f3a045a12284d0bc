//! Where the parts of a slot are.
//!
//! Source of truth: the size calculation of `mm/slub.c` (Linux 6.12), checked against the caches of kernels 6.1, 6.12,
//! 6.18, 7.0 and 7.3. One slot, with every flag set:
//!
//! ```text
//! slot            object                  object + inuse          info end                           slot + slab_size
//! |               |                       |                       |                                                 |
//! +---------------+---------------+-------+-------+-------+-------+-------+-----------+---------------------+
//! | left red zone |  object_size  | right | free pointer  | alloc track   | free track| orig_size | padding |
//! |  (Z)          |               |       | (if outside)  |     (U)       |    (U)    | (U, kmalloc)        |
//! +---------------+---------------+-------+---------------+---------------+-----------+---------------------+
//!
//! W         = 8, up(x, a) = x rounded up to a multiple of a
//! inuse     = up(object_size, W), plus W if Z is set and object_size is a multiple of W
//! right     = inuse - object_size: the right red zone with Z, alignment padding without
//! outside   = P, or a constructor, or typesafe by RCU, or Z and (object_size < W, or orig_size is kept)
//! free ptr  = object + inuse if outside, else object + down(object_size / 2, W)
//! info end  = inuse, plus W if outside
//! tracks    = 2 * track_size with U;  orig_size = W with U in a kmalloc cache
//! left      = up(W, align) with Z, else 0;  Z adds another W of padding
//! slab_size = up(info end + tracks + orig_size + (Z: W + left), align)
//! ```
//!
//! A cache may name its own field for the free pointer (kernels 6.12 and later, `free_pointer_at`): then neither RCU
//! nor a constructor moves it outside. What it does not do: choose the order of a slab or count its objects.

use core::fmt;
use core::ops::Range;

use super::flags::DebugFlags;
use super::track::TRACK_SIZE;

/// The size of a machine word, of the free pointer and of the kept request size.
pub const WORD: usize = 8;

/// The largest object, alignment and track that a layout is made for; it keeps every sum far from overflow.
pub const MAX_SIZE: usize = 1 << 40;

/// What a layout is calculated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutSpec {
    /// The bytes that the user of the cache asked for.
    pub size: usize,
    /// The alignment of objects, a power of two; less than a word counts as a word.
    pub align: usize,
    /// The debug flags.
    pub flags: DebugFlags,
    /// True if free objects keep what a constructor put into them.
    pub has_ctor: bool,
    /// True for the general caches, whose requests may be smaller than the object.
    pub kmalloc: bool,
    /// True if free objects may still be read (the kernel's `SLAB_TYPESAFE_BY_RCU`).
    pub typesafe_by_rcu: bool,
    /// A field of the object that may hold the free pointer.
    pub free_pointer_at: Option<usize>,
    /// The size of one track: [`TRACK_SIZE`] here and in kernels since 5.19 on 64-bit machines with a stack depot.
    pub track_size: usize,
}

impl LayoutSpec {
    /// A plain cache: no constructor, not kmalloc, and this crate's track size.
    pub const fn new(size: usize, align: usize, flags: DebugFlags) -> Self {
        Self {
            size,
            align,
            flags,
            has_ctor: false,
            kmalloc: false,
            typesafe_by_rcu: false,
            free_pointer_at: None,
            track_size: TRACK_SIZE,
        }
    }

    /// Calculates the layout.
    pub fn layout(self) -> Result<ObjectLayout, LayoutError> {
        ObjectLayout::from_spec(self)
    }
}

/// Why no layout can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The object has no bytes.
    EmptyObject,
    /// The object, the alignment or the track is larger than [`MAX_SIZE`].
    TooLarge,
    /// The alignment is not a power of two.
    Alignment(usize),
    /// The free pointer would lie outside the object, or not on a word boundary.
    FreePointer(usize),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyObject => f.write_str("an object needs at least one byte"),
            Self::TooLarge => write!(f, "sizes above {MAX_SIZE} bytes are not supported"),
            Self::Alignment(align) => write!(f, "alignment {align} is not a power of two"),
            Self::FreePointer(at) => write!(f, "no free pointer fits at offset {at} of the object"),
        }
    }
}

impl core::error::Error for LayoutError {}

/// A part of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// Guard bytes before the object.
    LeftRedzone,
    /// The object's own bytes.
    Object,
    /// Between the object and `inuse`: guard bytes with `Z`, otherwise alignment.
    Right,
    /// The free pointer, if it lies behind the object.
    FreePointer,
    /// Who allocated.
    AllocTrack,
    /// Who freed.
    FreeTrack,
    /// The requested size of a kmalloc object.
    OrigSize,
    /// Filler up to the end of the slot.
    Padding,
}

/// The calculated layout. Unless said otherwise, offsets count from the start of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLayout {
    flags: DebugFlags,
    object_size: usize,
    align: usize,
    left: usize,
    inuse: usize,
    free_pointer: usize,
    track_size: usize,
    poisons: bool,
    keeps_size: bool,
    slab_size: usize,
}

#[cfg(not(any(loom, shuttle)))]
crate::segment::layout::fields!(ObjectLayout, "layout": flags, object_size, align, left, inuse, free_pointer,
    track_size, poisons, keeps_size, slab_size);

/// The numbers of a layout in another process.
#[cfg(not(any(loom, shuttle)))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayoutParts {
    pub flags: u8,
    pub poisons: bool,
    pub keeps_size: bool,
    /// Object, alignment, left red zone, inuse, free pointer, track, slot.
    pub sizes: [u64; 7],
}

const fn up(value: usize, align: usize) -> usize {
    (value + align - 1) & !(align - 1)
}

impl ObjectLayout {
    /// The layout of a cache with this crate's tracks.
    pub fn new(
        size: usize,
        align: usize,
        flags: DebugFlags,
        has_ctor: bool,
        kmalloc: bool,
    ) -> Result<Self, LayoutError> {
        LayoutSpec {
            has_ctor,
            kmalloc,
            ..LayoutSpec::new(size, align, flags)
        }
        .layout()
    }

    fn from_spec(spec: LayoutSpec) -> Result<Self, LayoutError> {
        let LayoutSpec {
            size,
            flags,
            track_size,
            ..
        } = spec;
        if size == 0 {
            return Err(LayoutError::EmptyObject);
        }
        if size > MAX_SIZE || spec.align > MAX_SIZE || track_size > MAX_SIZE {
            return Err(LayoutError::TooLarge);
        }
        if !spec.align.is_power_of_two() {
            return Err(LayoutError::Alignment(spec.align));
        }
        let align = spec.align.max(WORD);
        let red = flags.contains(DebugFlags::RED_ZONE);
        let tracks = flags.contains(DebugFlags::STORE_USER);
        let keeps_size = tracks && spec.kmalloc;

        let mut inuse = up(size, WORD);
        if red && inuse == size {
            inuse += WORD;
        }
        let keeps_content =
            (spec.has_ctor || spec.typesafe_by_rcu) && spec.free_pointer_at.is_none();
        let outside = keeps_content
            || flags.contains(DebugFlags::POISON)
            || (red && (size < WORD || keeps_size));
        let free_pointer = match spec.free_pointer_at {
            _ if outside => inuse,
            Some(at) if at % WORD != 0 || at > size || size - at < WORD => {
                return Err(LayoutError::FreePointer(at));
            }
            Some(at) => at,
            None => (size / 2) & !(WORD - 1),
        };

        let left = if red { up(WORD, align) } else { 0 };
        let mut end = inuse + if outside { WORD } else { 0 };
        end += if tracks { 2 * track_size } else { 0 };
        end += if keeps_size { WORD } else { 0 };
        end += if red { WORD + left } else { 0 };
        Ok(Self {
            flags,
            object_size: size,
            align,
            left,
            inuse,
            free_pointer,
            track_size: if tracks { track_size } else { 0 },
            poisons: flags.contains(DebugFlags::POISON) && !spec.has_ctor && !spec.typesafe_by_rcu,
            keeps_size,
            slab_size: up(end, align),
        })
    }

    /// A layout that another process made; `None` if its parts do not fit each other.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn of_parts(parts: &LayoutParts) -> Option<Self> {
        let [
            object_size,
            align,
            left,
            inuse,
            free_pointer,
            track_size,
            slab_size,
        ] = parts.sizes.map(|of| of as usize);
        let this = Self {
            flags: DebugFlags::from_bits_truncate(parts.flags),
            object_size,
            align,
            left,
            inuse,
            free_pointer,
            track_size,
            poisons: parts.poisons,
            keeps_size: parts.keeps_size,
            slab_size,
        };
        let small = parts.sizes.iter().all(|of| *of <= MAX_SIZE as u64);
        let fits = small
            && align.is_power_of_two()
            && object_size <= inuse
            && free_pointer % WORD == 0
            && this.free_pointer().end <= slab_size
            && this.orig_size().end <= slab_size;
        fits.then_some(this)
    }

    /// The debug flags the layout was made for.
    pub fn flags(&self) -> DebugFlags {
        self.flags
    }

    /// The bytes of the object.
    pub fn object_size(&self) -> usize {
        self.object_size
    }

    /// The alignment of slots and objects, at least a word.
    pub fn align(&self) -> usize {
        self.align
    }

    /// The bytes of the whole slot, the kernel's `slab_size` in sysfs.
    pub fn slab_size(&self) -> usize {
        self.slab_size
    }

    /// Where the object starts in the slot; the length of the left red zone.
    pub fn object_at(&self) -> usize {
        self.left
    }

    /// The object and what follows it up to its metadata, counted from the object as in the kernel.
    pub fn inuse(&self) -> usize {
        self.inuse
    }

    /// Where the free pointer is, counted from the object as the kernel's `offset`.
    pub fn free_pointer_offset(&self) -> usize {
        self.free_pointer
    }

    /// True if the free pointer lies behind the object, so that a free object keeps all its bytes.
    pub fn free_pointer_outside(&self) -> bool {
        self.free_pointer >= self.inuse
    }

    /// True if free objects are filled with poison: `P` is set and nothing may look at a free object.
    pub fn poisons_objects(&self) -> bool {
        self.poisons
    }

    /// True if the slot keeps the size that was asked for (`U` in a kmalloc cache).
    pub fn keeps_orig_size(&self) -> bool {
        self.keeps_size
    }

    /// The place of the object's bytes.
    pub fn object(&self) -> Range<usize> {
        self.left..self.left + self.object_size
    }

    /// The place of the bytes between the object and its metadata.
    pub fn right(&self) -> Range<usize> {
        self.left + self.object_size..self.left + self.inuse
    }

    /// The place of the free pointer, inside or outside the object.
    pub fn free_pointer(&self) -> Range<usize> {
        let at = self.left + self.free_pointer;
        at..at + WORD
    }

    fn info_end(&self) -> usize {
        self.left + self.inuse + if self.free_pointer_outside() { WORD } else { 0 }
    }

    /// The place of the track of the last allocation; empty without `U`.
    pub fn alloc_track(&self) -> Range<usize> {
        let at = self.info_end();
        at..at + self.track_size
    }

    /// The place of the track of the last free; empty without `U`.
    pub fn free_track(&self) -> Range<usize> {
        let at = self.info_end() + self.track_size;
        at..at + self.track_size
    }

    /// The place of the requested size; empty where none is kept.
    pub fn orig_size(&self) -> Range<usize> {
        let at = self.info_end() + 2 * self.track_size;
        at..at + if self.keeps_size { WORD } else { 0 }
    }

    /// The place of the filler at the slot's end; may be empty.
    pub fn padding(&self) -> Range<usize> {
        self.orig_size().end..self.slab_size
    }

    /// All parts in order of address. Together they cover the slot without gaps; some may be empty.
    pub fn regions(&self) -> [(Region, Range<usize>); 8] {
        let outside = self.left + self.inuse..self.info_end();
        [
            (Region::LeftRedzone, 0..self.left),
            (Region::Object, self.object()),
            (Region::Right, self.right()),
            (Region::FreePointer, outside),
            (Region::AllocTrack, self.alloc_track()),
            (Region::FreeTrack, self.free_track()),
            (Region::OrigSize, self.orig_size()),
            (Region::Padding, self.padding()),
        ]
    }

    /// Which part a byte of the slot belongs to; `None` behind the slot.
    pub fn region_of(&self, at: usize) -> Option<Region> {
        self.regions()
            .into_iter()
            .find(|(_, range)| range.contains(&at))
            .map(|(region, _)| region)
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
