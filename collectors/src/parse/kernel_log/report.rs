//! What is read out of a kernel log: one value for each report in it.
//!
//! Purpose: everything a report prints, as values, and nothing that it does
//! not print. Source of truth: mm/slub.c from 2.6.22 on, mm/slab.c up to 6.7,
//! mm/slab_common.c, mm/usercopy.c; for the neighbours mm/kasan/report.c,
//! mm/kfence/report.c and mm/kmemleak.c. What the values mean is not said here.

mod slub;

use crate::model::Cache;
use crate::parse::oom_table::OomMemory;

pub use self::slub::{
    DumpRow, Label, ObjectLine, Overwritten, Remaining, Shape, SlabLine, Slub, Track,
};

/// Frames kept of one stack; the kernel prints 16 of a track.
pub const MAX_FRAMES: usize = 64;
/// Rows of bytes kept of one report: the 4096 bytes of an object and as many
/// of each red zone are a tenth of it.
pub const MAX_ROWS: usize = 8192;
/// Objects kept of one list of remaining objects.
pub const MAX_REMAINING: usize = 512;
/// Further violations, repairs and nodes kept of one report.
pub const MAX_PARTS: usize = 256;
/// Longest text kept of one value, in bytes.
pub const MAX_TEXT: usize = 512;

/// One report.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// First and last line of it, from 1.
    pub lines: (u64, u64),
    /// The time of its first line, as printed.
    pub stamp: Option<String>,
    /// Who printed it, as `T12` or `C3`.
    pub caller: Option<String>,
    /// Who ran when it was found.
    pub detected: Detected,
    /// What kind of report, and its values.
    pub body: Body,
}

/// The kinds of reports.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A debugging report of SLUB.
    Slub(Box<Slub>),
    /// `Slab corruption`: SLAB found a free object written to.
    Corruption(Box<Corruption>),
    /// `slab error in`: SLAB's other checks.
    SlabError(Box<SlabError>),
    /// A cache was destroyed that still has objects.
    CacheDestroy(CacheDestroy),
    /// An object was freed to a cache it is not of.
    WrongCache(WrongCache),
    /// A copy to or from user space beyond what an object allows.
    Usercopy(Usercopy),
    /// An allocation failed for want of a slab.
    AllocationFailure(Box<AllocationFailure>),
    /// Memory ran out, with what the report says of slab.
    Oom(Box<Oom>),
    /// Counted slabs and the counter differ (`validate`).
    Validator(Validator),
    /// The allocator stopped at one of its own checks.
    KernelBug(KernelBug),
    /// No damage: something about the debugging or the names of caches.
    Remark(Remark),
    /// Another tool's report.
    Foreign(Box<Foreign>),
}

/// A text of hexadecimal pointers: `None` for one that was not printed.
pub type Pointer = Option<u64>;

/// A stack, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stack {
    /// The frames, up to [`MAX_FRAMES`].
    pub frames: Vec<Frame>,
}

/// One frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// As printed, such as `kfree+0x49c/0x510` or `smc_release+0x19a/0x230 [smc]`.
    pub symbol: String,
    /// Marked `?`: it was on the stack, and may be from an earlier call.
    pub guess: bool,
}

impl Frame {
    /// The name of the function, without offset and module.
    pub fn function(&self) -> &str {
        let end = self.symbol.find(['+', ' ']).unwrap_or(self.symbol.len());
        let name = &self.symbol[..end];
        // Copies made by the compiler: `foo.isra.0`, `foo.part.15`, `foo.cold`.
        name.split_once('.').map_or(name, |(name, _)| name)
    }
}

/// Who ran when a report was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Detected {
    /// The processor.
    pub cpu: Option<u64>,
    /// The process.
    pub pid: Option<u64>,
    /// Its name.
    pub comm: Option<String>,
    /// The release of the kernel.
    pub kernel: Option<String>,
    /// The taint letters as printed, without `Tainted: `.
    pub taint: Option<String>,
    /// `RIP` of an oops or warning.
    pub instruction: Option<String>,
    /// The stack.
    pub stack: Stack,
}

/// A row of bytes of a SLAB report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlabRow {
    /// Offset of the first byte in the object.
    pub offset: u64,
    /// Up to 16 bytes.
    pub bytes: Vec<u8>,
}

/// SLAB: a free object was written to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Corruption {
    /// The cache; old kernels do not name it.
    pub cache: Option<String>,
    /// The taint field.
    pub taint: Option<String>,
    /// Where the object starts.
    pub start: Pointer,
    /// Its size in bytes.
    pub len: Option<u64>,
    /// The words before and behind it.
    pub redzones: Option<(u64, u64)>,
    /// Who allocated or freed it last.
    pub last_user: Option<String>,
    /// Rows with wrong bytes.
    pub rows: Vec<SlabRow>,
    /// The kernel says that one bit flipped.
    pub single_bit: bool,
    /// How many neighbours follow; their bytes are not wrong.
    pub neighbours: u64,
}

/// SLAB: another check failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlabError {
    /// The check.
    pub function: String,
    /// The cache.
    pub cache: Option<String>,
    /// What it says.
    pub message: Option<String>,
    /// Where the object is.
    pub object: Pointer,
    /// The words before and behind it.
    pub redzones: Option<(u64, u64)>,
}

/// A cache was destroyed too early.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheDestroy {
    /// The cache.
    pub cache: String,
    /// Who destroyed it.
    pub from: Option<String>,
}

/// An object was freed to a cache it is not of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WrongCache {
    /// The cache it was freed to.
    pub freed_to: String,
    /// The cache it is of; `None` when it is in no slab.
    pub object_of: Option<String>,
    /// The object, where it is printed.
    pub object: Pointer,
}

/// A copy that hardened usercopy stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usercopy {
    /// From the kernel to user space.
    pub exposure: bool,
    /// The cache.
    pub cache: String,
    /// Where in the object it began.
    pub offset: Option<u64>,
    /// How many bytes.
    pub size: Option<u64>,
}

/// Slabs of a node when an allocation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeSlabs {
    /// The node.
    pub node: u64,
    /// Slabs on it.
    pub slabs: u64,
    /// Objects they have room for.
    pub objects: u64,
    /// Free ones among them.
    pub free: u64,
}

/// An allocation failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllocationFailure {
    /// The first line was there.
    pub headed: bool,
    /// The node asked for; -1 is any.
    pub node: Option<i64>,
    /// What kind of memory, as printed.
    pub gfp: Option<String>,
    /// The cache.
    pub cache: Option<String>,
    /// Bytes of an object.
    pub object_size: Option<u64>,
    /// Bytes of a slot.
    pub slot_size: Option<u64>,
    /// Pages of a slab, as an order.
    pub order: Option<u32>,
    /// The smallest order it falls back to.
    pub min_order: Option<u32>,
    /// Debugging made the smallest order larger.
    pub debug_order: bool,
    /// The nodes.
    pub nodes: Vec<NodeSlabs>,
}

/// Memory ran out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Oom {
    /// Who asked.
    pub comm: Option<String>,
    /// How much, as an order.
    pub order: Option<u32>,
    /// Figures of the whole machine.
    pub memory: OomMemory,
    /// Pages that the report's counters account for, slab with them; `None`
    /// when too few were printed.
    pub accounted: Option<u64>,
    /// The table of unreclaimable caches, where one was printed.
    pub caches: Vec<Cache>,
}

/// Slabs counted are not what the counter says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validator {
    /// The cache.
    pub cache: String,
    /// Only the partial slabs.
    pub partial: bool,
    /// Counted.
    pub counted: Option<i64>,
    /// What the counter says.
    pub counter: Option<i64>,
}

/// The allocator stopped at one of its own checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelBug {
    /// The file and line, as `mm/slub.c:305`.
    pub place: String,
}

/// A line that tells of no damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// An allocation or a free was logged (`slab_debug=T`).
    Traced {
        /// The cache.
        cache: String,
        /// An allocation.
        alloc: bool,
    },
    /// A letter of the boot option that the kernel does not know.
    UnknownOption {
        /// The boot option.
        word: String,
        /// The letter.
        option: String,
    },
    /// A cache has no directory in sysfs.
    NotShown {
        /// The cache.
        cache: String,
    },
    /// A cache was made with the name of another one (6.12 and later).
    SameName {
        /// The name.
        cache: String,
    },
}

/// Whose report it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// The address sanitizer.
    Kasan,
    /// Sampled guard pages.
    Kfence,
    /// The leak scanner.
    Kmemleak,
}

/// Another tool's report: what can be read without knowing its grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Whose.
    pub tool: Tool,
    /// Its kind, such as `slab-out-of-bounds`; of kmemleak nothing.
    pub kind: String,
    /// The function named.
    pub function: Option<String>,
    /// `Read` or `Write`.
    pub access: Option<String>,
    /// Bytes accessed, or of the unreferenced object.
    pub size: Option<u64>,
    /// The address.
    pub address: Pointer,
    /// The cache.
    pub cache: Option<String>,
    /// Bytes of an object of it.
    pub object_size: Option<u64>,
    /// Where the address is, as printed: `4 bytes to the right of`.
    pub place: Option<String>,
    /// Who allocated the object.
    pub allocated: Option<Track>,
    /// Who freed it.
    pub freed: Option<Track>,
}
