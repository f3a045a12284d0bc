//! What a report of SLUB says.
//!
//! Source of truth: `mm/slub.c` (`print_trailer`, `slab_bug`, `object_err`, `check_bytes_and_report`), Linux 2.6.22 to 7.3.

use super::{Pointer, Stack};

/// Which shape of report, which tells roughly how old the kernel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// No taint in the banner: up to 3.2.
    NoTaint,
    /// Lines start with `INFO:`: 3.6 to 5.10.
    Info,
    /// Without it: 5.14 to 6.14.
    Plain,
    /// The damaged part in brackets before the banner: 6.15 and later, 6.12 stable.
    Bracket,
}

/// Who allocated or freed an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// As printed, such as `usb_get_status+0x2b/0xac`.
    pub symbol: String,
    /// Jiffies between then and the report.
    pub age: Option<u64>,
    /// The processor.
    pub cpu: Option<u64>,
    /// The process that ran, which an interrupt may have borrowed.
    pub pid: Option<u64>,
    /// The stack.
    pub stack: Stack,
}

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overwritten {
    /// The part, such as `Right Redzone`; `None` where only the banner says.
    pub what: Option<String>,
    /// The first wrong byte.
    pub from: Pointer,
    /// The last wrong byte.
    pub to: Pointer,
    /// Offset of the first one in the slab (5.9 and later).
    pub offset: Option<u64>,
    /// The first wrong byte's value.
    pub found: Option<u8>,
    /// What it should be.
    pub expected: Option<u8>,
}

/// The line on the slab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlabLine {
    /// Its descriptor.
    pub pointer: Pointer,
    /// Objects it has room for.
    pub objects: Option<u64>,
    /// Objects in use, with those that a CPU holds free.
    pub used: Option<u64>,
    /// The first free object.
    pub free_pointer: Pointer,
    /// The flags as printed.
    pub flags: Option<String>,
}

/// The line on the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectLine {
    /// Where it is.
    pub pointer: Pointer,
    /// Bytes from the start of the slab.
    pub offset: Option<u64>,
    /// The next free object, as its own pointer says.
    pub free_pointer: Pointer,
}

/// Which part of a slot a row of bytes shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// A red zone, before or behind the object.
    Redzone,
    /// The bytes before the object, where there is no red zone.
    BytesBefore,
    /// The object.
    Object,
    /// Padding behind the metadata, or at the end of a slab.
    Padding,
}

/// A row of up to 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpRow {
    /// The part.
    pub label: Label,
    /// The printed address, which may be hashed.
    pub address: Pointer,
    bytes: [u8; 16],
    len: u8,
}

impl DumpRow {
    /// A row of the first 16 of `bytes`.
    pub fn new(label: Label, address: Pointer, bytes: &[u8]) -> Self {
        let mut row = [0; 16];
        let len = bytes.len().min(16);
        row[..len].copy_from_slice(&bytes[..len]);
        Self {
            label,
            address,
            bytes: row,
            len: u8::try_from(len).unwrap_or(16),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// An object that was left when its cache was destroyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remaining {
    /// Where it is.
    pub object: ObjectLine,
    /// Who allocated it.
    pub allocated: Option<Track>,
}

/// A SLUB report. Where its head was lost, `cache` and `reason` are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slub {
    /// The cache as the banner (or a repair) names it.
    pub cache: Option<String>,
    /// The taint field of the banner as printed; `None` without a field.
    pub taint: Option<String>,
    /// The reason as printed.
    pub reason: Option<String>,
    /// Lines start with `INFO:`.
    pub info: bool,
    /// What was overwritten, the first one first.
    pub overwritten: Vec<Overwritten>,
    /// Who allocated the object last.
    pub allocated: Option<Track>,
    /// Who freed it last.
    pub freed: Option<Track>,
    /// Its slab.
    pub slab: Option<SlabLine>,
    /// The object.
    pub object: Option<ObjectLine>,
    /// A pointer that is no object (`Invalid pointer`).
    pub invalid: Pointer,
    /// The bytes shown.
    pub rows: Vec<DumpRow>,
    /// Objects left at destruction.
    pub remaining: Vec<Remaining>,
    /// Objects left that are not in the list.
    pub more_remaining: u64,
    /// What the kernel did about it, as printed.
    pub fixes: Vec<String>,
}

impl Slub {
    /// Which shape it has.
    pub fn shape(&self) -> Shape {
        let bracket = self.overwritten.iter().any(|o| o.what.is_some())
            || self.reason.as_deref().is_some_and(|reason| {
                reason == "Object corrupt" || reason.starts_with("Objects remaining on")
            });
        if bracket {
            Shape::Bracket
        } else if self.taint.is_none() && self.reason.is_some() {
            Shape::NoTaint
        } else if self.info {
            Shape::Info
        } else {
            Shape::Plain
        }
    }
}
