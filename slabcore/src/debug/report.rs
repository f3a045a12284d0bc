//! Reports in the kernel's wording and order.
//!
//! Source of truth: the log format of `mm/slub.c` in Linux 6.12.117 and 6.15 and later, where the damaged part is
//! named on a line of its own before the banner. Reports printed by a real 6.12 kernel serve as test data and are
//! reproduced byte for byte, except for the kernel's own warning trailer (registers and call trace), instead of which
//! a [`Trace`] of the calling thread may be printed.
//!
//! ```text
//! [Right Redzone overwritten] 0x..-0x.. @offset=2472. First byte 0x12 instead of 0xcc
//! =====...
//! BUG cache (Not tainted): Object corrupt
//! -----...
//!
//! Allocated in main+0x33/0x40 age=1 cpu=0 pid=880
//!  main+0x33/0x40
//! Slab 0x.. objects=25 used=11 fp=0x.. flags=0x200(workingset|node=0)
//! Object 0x.. @offset=2408 fp=0x..
//!
//! Redzone  7f0012345960: cc cc cc cc cc cc cc cc                          ........
//! ...
//! FIX cache: Restoring Right Redzone 0x..-0x..=0xcc
//! ```
//!
//! Two words mean something else than in the kernel: `age` counts milliseconds (the kernel's jiffies at 1000 Hz), and
//! `pid` is a thread id. What it does not do: choose where the text goes, or repair anything.

use core::fmt::{self, Write};

use super::check::Damage;
use super::depot::StackDepot;
use super::flags::DebugFlags;
use super::layout::ObjectLayout;
use super::reason::{Fix, Reason};
use super::track::{Track, TrackKind};

/// The taint field of a process in which nothing went wrong before.
pub const NOT_TAINTED: &str = "Not tainted";
/// The taint field after a first report.
pub const TAINTED: &str = "Tainted: G    B             ";
/// The most bytes of an object that are shown.
pub const MAX_OBJECT_DUMP: usize = 4096;

const ROW: usize = 16;
/// Where the readable column of a dump row starts, counted from the first hex digit.
const READABLE_AT: usize = 49;

/// Writes an address as a function name, as the kernel's `%pS`: `name+0x12/0x34 [object]`.
pub trait Symbolize {
    /// Writes the name, or the address if it has none.
    fn write_symbol(&self, address: u64, out: &mut dyn Write) -> fmt::Result;
}

/// Knows no names: writes `0x` and the address.
#[derive(Clone, Copy, Debug)]
pub struct Addresses;

impl Symbolize for Addresses {
    fn write_symbol(&self, address: u64, out: &mut dyn Write) -> fmt::Result {
        write!(out, "0x{address:x}")
    }
}

/// A slab as a report shows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlabView<'a> {
    /// The address of its descriptor.
    pub descriptor: u64,
    /// The address of its memory; offsets count from here.
    pub memory: u64,
    /// How many objects it has.
    pub objects: u32,
    /// How many are in use.
    pub used: u32,
    /// The head of its free list, or 0.
    pub free_pointer: u64,
    /// Its flags as a number.
    pub flags: u64,
    /// Its flags as text, such as `workingset|node=0`.
    pub flag_names: &'a str,
}

/// An object as a report shows it.
#[derive(Clone, Copy, Debug)]
pub struct ObjectView<'a> {
    /// The bytes of its slot.
    pub slot: &'a [u8],
    /// Where the slot starts in the slab's memory.
    pub slot_at: usize,
    /// The layout of its cache.
    pub layout: &'a ObjectLayout,
    /// The object that its free pointer names, or 0.
    pub free_pointer: u64,
    /// The bytes before the slot, of which the last 16 are shown if there is no red zone; may be empty.
    pub before: &'a [u8],
}

/// What ran when the report was made.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// The CPU.
    pub cpu: u32,
    /// The thread id.
    pub thread: u32,
    /// The thread's name.
    pub name: &'a str,
    /// Return addresses, innermost first.
    pub frames: &'a [usize],
}

/// Writes reports about one slab of one cache.
#[derive(Clone, Copy)]
pub struct Reporter<'a> {
    /// The name of the cache.
    pub cache: &'a str,
    /// [`NOT_TAINTED`], [`TAINTED`] or a kernel's field.
    pub taint: &'a str,
    /// The slab.
    pub slab: SlabView<'a>,
    /// Where the stacks of tracks are.
    pub depot: Option<StackDepot<'a>>,
    /// Names addresses.
    pub symbols: &'a dyn Symbolize,
    /// The time of the report, on the clock of the tracks.
    pub now_ns: u64,
    /// What ran, if it is to be shown.
    pub trace: Option<Trace<'a>>,
}

impl fmt::Debug for Reporter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter")
            .field("cache", &self.cache)
            .field("slab", &self.slab)
            .finish_non_exhaustive()
    }
}

/// Writes the banner that starts a report.
pub fn write_banner(
    out: &mut dyn Write,
    cache: &str,
    taint: &str,
    reason: fmt::Arguments<'_>,
) -> fmt::Result {
    writeln!(out, "{:=<77}", "")?;
    writeln!(out, "BUG {cache} ({taint}): {reason}")?;
    write!(out, "{:-<77}\n\n", "")
}

/// Writes the report of a pointer that no slab owns; there is no slab to show.
pub fn write_foreign_pointer(out: &mut dyn Write, taint: &str, pointer: u64) -> fmt::Result {
    write_banner(
        out,
        "<unknown>",
        taint,
        format_args!("{}", Reason::NoCache { pointer }),
    )
}

/// Writes bytes in rows of 16, each with a label, its address and a readable column.
pub fn write_dump(out: &mut dyn Write, label: &str, address: u64, bytes: &[u8]) -> fmt::Result {
    for (row, chunk) in bytes.chunks(ROW).enumerate() {
        let at = address.wrapping_add((row * ROW) as u64);
        write!(out, "{label}{at:016x}: ")?;
        for (index, byte) in chunk.iter().enumerate() {
            write!(out, "{}{byte:02x}", if index == 0 { "" } else { " " })?;
        }
        write!(out, "{:1$}", "", READABLE_AT + 1 - chunk.len() * 3)?;
        for &byte in chunk {
            let readable = byte == b' ' || byte.is_ascii_graphic();
            out.write_char(if readable { char::from(byte) } else { '.' })?;
        }
        out.write_char('\n')?;
    }
    Ok(())
}

impl Reporter<'_> {
    fn object_address(&self, object: &ObjectView<'_>) -> u64 {
        self.slab
            .memory
            .wrapping_add((object.slot_at + object.layout.object_at()) as u64)
    }

    fn slot_address(&self, object: &ObjectView<'_>) -> u64 {
        self.slab.memory.wrapping_add(object.slot_at as u64)
    }

    fn banner(&self, out: &mut dyn Write, reason: Reason) -> fmt::Result {
        write_banner(out, self.cache, self.taint, format_args!("{reason}"))
    }

    /// Writes the line `FIX cache: action`.
    pub fn fix(&self, out: &mut dyn Write, fix: Fix) -> fmt::Result {
        writeln!(out, "FIX {}: {fix}", self.cache)
    }

    /// Reports one damaged part of an object, before it is repaired, with its FIX line.
    ///
    /// The kernel shows the object with the first damage only; pass `first` false for the further ones of a check.
    /// A broken free pointer has no FIX line.
    pub fn damage(
        &self,
        out: &mut dyn Write,
        damage: &Damage,
        object: &ObjectView<'_>,
        first: bool,
    ) -> fmt::Result {
        let slot = self.slot_address(object);
        let Some(Fix::Restoring {
            from, to, value, ..
        }) = Fix::of_damage(damage, slot)
        else {
            return self.object(out, Reason::FreepointerCorrupt, object);
        };
        writeln!(
            out,
            "[{}] 0x{from:016x}-0x{to:016x} @offset={}. First byte 0x{:x} instead of 0x{value:x}",
            damage.kind(),
            damage.in_slab(object.slot_at),
            damage.found().first(),
        )?;
        if first {
            self.object(out, Reason::ObjectCorrupt, object)?;
        }
        self.fix(
            out,
            Fix::Restoring {
                kind: damage.kind(),
                from,
                to,
                value,
            },
        )
    }

    /// Reports something about an object: banner, tracks, slab, object and its bytes.
    pub fn object(
        &self,
        out: &mut dyn Write,
        reason: Reason,
        object: &ObjectView<'_>,
    ) -> fmt::Result {
        self.banner(out, reason)?;
        self.tracks(out, object)?;
        self.slab_line(out)?;
        let address = self.object_address(object);
        write!(
            out,
            "Object 0x{address:016x} @offset={} fp=0x{:016x}\n\n",
            object.slot_at + object.layout.object_at(),
            object.free_pointer,
        )?;
        self.object_dump(out, object)?;
        self.trace(out)
    }

    /// Reports a pointer that should be an object of the slab and is none.
    pub fn bad_pointer(&self, out: &mut dyn Write, reason: Reason, pointer: u64) -> fmt::Result {
        self.banner(out, reason)?;
        self.slab_line(out)?;
        writeln!(out, "Invalid pointer 0x{pointer:016x}")?;
        self.trace(out)
    }

    /// Reports a pointer that is of no slab: there is none to show.
    pub fn outside(&self, out: &mut dyn Write, reason: Reason, pointer: u64) -> fmt::Result {
        self.banner(out, reason)?;
        self.trace(out)?;
        self.fix(out, Fix::NotFreed { pointer })
    }

    /// Reports something about the slab itself.
    pub fn slab(&self, out: &mut dyn Write, reason: Reason) -> fmt::Result {
        self.banner(out, reason)?;
        self.slab_line(out)?;
        self.trace(out)
    }

    /// Reports damaged bytes behind the last object, with the FIX line. `tail` is all the memory behind it, which
    /// starts at `tail_at` in the slab.
    pub fn slab_padding(
        &self,
        out: &mut dyn Write,
        damage: &Damage,
        tail: &[u8],
        tail_at: usize,
    ) -> fmt::Result {
        let Some(fix) = Fix::of_damage(damage, self.slab.memory) else {
            return Ok(());
        };
        if let Fix::Restoring { from, to, .. } = fix {
            let (what, at) = (damage.kind(), damage.first());
            let reason = format_args!("{what}. 0x{from:016x}-0x{to:016x} @offset={at}");
            write_banner(out, self.cache, self.taint, reason)?;
        }
        write_dump(
            out,
            "Padding ",
            self.slab.memory.wrapping_add(tail_at as u64),
            tail,
        )?;
        self.slab_line(out)?;
        self.trace(out)?;
        self.fix(out, fix)
    }

    /// Reports the objects that are left when a cache is destroyed.
    pub fn objects_remaining<'o>(
        &self,
        out: &mut dyn Write,
        live: impl Iterator<Item = ObjectView<'o>>,
    ) -> fmt::Result {
        self.banner(out, Reason::ObjectsRemaining)?;
        for object in live {
            let at = object.slot_at + object.layout.object_at();
            writeln!(
                out,
                "Object 0x{:016x} @offset={at}",
                self.object_address(&object)
            )?;
            self.tracks(out, &object)?;
        }
        self.slab_line(out)?;
        self.trace(out)
    }

    /// Writes the line of one allocation or free for the flag `T`; a free shows the object's bytes too.
    pub fn operation(
        &self,
        out: &mut dyn Write,
        kind: TrackKind,
        object: &ObjectView<'_>,
    ) -> fmt::Result {
        let address = self.object_address(object);
        let word = if kind == TrackKind::Allocated {
            "alloc"
        } else {
            "free"
        };
        let SlabView {
            used, free_pointer, ..
        } = self.slab;
        writeln!(
            out,
            "TRACE {} {word} 0x{address:016x} inuse={used} fp=0x{free_pointer:016x}",
            self.cache,
        )?;
        if kind == TrackKind::Freed {
            let bytes = object.slot.get(object.layout.object()).unwrap_or(&[]);
            write_dump(out, "Object ", address, bytes)?;
        }
        self.trace(out)
    }

    fn slab_line(&self, out: &mut dyn Write) -> fmt::Result {
        let SlabView {
            descriptor,
            objects,
            used,
            free_pointer,
            flags,
            flag_names,
            ..
        } = self.slab;
        writeln!(
            out,
            "Slab 0x{descriptor:016x} objects={objects} used={used} fp=0x{free_pointer:016x} \
             flags=0x{flags:x}({flag_names})",
        )
    }

    fn tracks(&self, out: &mut dyn Write, object: &ObjectView<'_>) -> fmt::Result {
        for kind in [TrackKind::Allocated, TrackKind::Freed] {
            if let Some(track) = Track::load(object.slot, object.layout, kind) {
                self.track(out, kind, &track)?;
            }
        }
        Ok(())
    }

    fn track(&self, out: &mut dyn Write, kind: TrackKind, track: &Track) -> fmt::Result {
        write!(out, "{} in ", kind.word())?;
        self.symbols.write_symbol(track.caller, out)?;
        let age = self.now_ns.saturating_sub(track.time_ns) / 1_000_000;
        writeln!(out, " age={age} cpu={} pid={}", track.cpu, track.thread)?;
        let kept = track
            .stack
            .and_then(|handle| self.depot.as_ref()?.get(handle));
        let Some(frames) = kept else {
            return writeln!(out, "object allocation/free stack trace missing");
        };
        self.frames(out, frames.as_slice().iter().copied())
    }

    fn frames(&self, out: &mut dyn Write, frames: impl Iterator<Item = u64>) -> fmt::Result {
        for address in frames {
            out.write_char(' ')?;
            self.symbols.write_symbol(address, out)?;
            out.write_char('\n')?;
        }
        Ok(())
    }

    fn object_dump(&self, out: &mut dyn Write, object: &ObjectView<'_>) -> fmt::Result {
        let layout = object.layout;
        let slot = self.slot_address(object);
        let show = |out: &mut dyn Write, label: &str, range: core::ops::Range<usize>| {
            let at = slot.wrapping_add(range.start as u64);
            write_dump(out, label, at, object.slot.get(range).unwrap_or(&[]))
        };
        let red = layout.flags().contains(DebugFlags::RED_ZONE);
        if red {
            show(out, "Redzone  ", 0..layout.object_at())?;
        } else if let Some((_, before)) = object.before.split_last_chunk::<ROW>() {
            write_dump(out, "Bytes b4 ", slot.wrapping_sub(ROW as u64), before)?;
        }
        let body = layout.object();
        show(
            out,
            "Object   ",
            body.start..body.end.min(body.start + MAX_OBJECT_DUMP),
        )?;
        if red {
            show(out, "Redzone  ", layout.right())?;
        }
        show(out, "Padding  ", layout.padding())
    }

    fn trace(&self, out: &mut dyn Write) -> fmt::Result {
        let Some(Trace {
            cpu,
            thread,
            name,
            frames,
        }) = self.trace
        else {
            return Ok(());
        };
        writeln!(out, "CPU: {cpu} PID: {thread} Comm: {name} {}", self.taint)?;
        writeln!(out, "Call Trace:\n <TASK>")?;
        self.frames(out, frames.iter().map(|&frame| frame as u64))?;
        writeln!(out, " </TASK>")
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
