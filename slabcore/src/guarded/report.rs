//! Reports about guarded objects, worded as the kernel's.
//!
//! Source of truth: mm/kfence/report.c of Linux 6.12.

use super::{Life, Meta, Who};
use crate::debug::operation::thread_name;
use crate::debug::report::Symbolize as _;
use crate::debug::symbols::Later;
use std::fmt::{self, Write};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// An access beside an object; true for a write, `None` if not known.
    OutOfBounds(Option<bool>),
    /// An access to a freed object.
    AfterFree(Option<bool>),
    /// The pattern around the object was overwritten, first at this address.
    Corruption(usize),
    /// A pointer was freed that is no live object.
    InvalidFree,
}

const fn access(write: Option<bool>) -> &'static str {
    match write {
        Some(true) => "write",
        Some(false) => "read",
        None => "access",
    }
}

/// Writes a report; what does not fit is cut.
pub(crate) fn write(
    out: &mut dyn Write,
    what: What,
    address: usize,
    slot: usize,
    meta: &Meta,
    by: isize,
    who: &Who,
) {
    let _ = parts(out, what, address, slot, meta, by, who);
}

fn parts(
    out: &mut dyn Write,
    what: What,
    address: usize,
    slot: usize,
    meta: &Meta,
    by: isize,
    who: &Who,
) -> fmt::Result {
    writeln!(out, "{:=<66}", "")?;
    write!(out, "BUG: KFENCE: ")?;
    match what {
        What::OutOfBounds(write) => write!(out, "out-of-bounds {}", access(write))?,
        What::AfterFree(write) => write!(out, "use-after-free {}", access(write))?,
        What::Corruption(_) => write!(out, "memory corruption")?,
        What::InvalidFree => write!(out, "invalid free")?,
    }
    write!(out, " in ")?;
    Later.write_symbol(who.frames[0] as u64, out)?;
    write!(out, "\n\n")?;
    match what {
        What::OutOfBounds(write) => {
            let (n, side) = (by.unsigned_abs(), if by < 0 { "left" } else { "right" });
            writeln!(
                out,
                "Out-of-bounds {} at 0x{address:016x} ({n}B {side} of kfence-#{slot}):",
                access(write)
            )?;
        }
        What::AfterFree(write) => writeln!(
            out,
            "Use-after-free {} at 0x{address:016x} (in kfence-#{slot}):",
            access(write)
        )?,
        What::Corruption(at) => {
            writeln!(out, "Corrupted memory at 0x{at:016x} (in kfence-#{slot}):")?;
        }
        What::InvalidFree => {
            writeln!(out, "Invalid free of 0x{address:016x} (in kfence-#{slot}):")?;
        }
    }
    frames(out, who)?;
    let (start, end) = (meta.at, meta.at + meta.size.max(1) - 1);
    let (size, name) = (meta.size, meta.name);
    if meta.life != Life::Unused {
        writeln!(
            out,
            "\nkfence-#{slot}: 0x{start:016x}-0x{end:016x}, size={size}, cache={name}"
        )?;
        done(out, "allocated", &meta.allocated)?;
        if meta.life == Life::Freed {
            done(out, "freed", &meta.freed)?;
        }
    }
    let mut name = [0; 16];
    let name = thread_name(&mut name);
    writeln!(
        out,
        "\nCPU: {} PID: {} Comm: {name}\n{:=<66}",
        who.track.cpu, who.track.thread, ""
    )
}

fn done(out: &mut dyn Write, word: &str, who: &Who) -> fmt::Result {
    let (seconds, nanos) = (
        who.track.time_ns / 1_000_000_000,
        who.track.time_ns % 1_000_000_000,
    );
    writeln!(
        out,
        "\n{word} by task {} on cpu {} at {seconds}.{:06}s:",
        who.track.thread,
        who.track.cpu,
        nanos / 1000
    )?;
    frames(out, who)
}

fn frames(out: &mut dyn Write, who: &Who) -> fmt::Result {
    for frame in who.frames.iter().take(who.len) {
        out.write_char(' ')?;
        Later.write_symbol(*frame as u64, out)?;
        out.write_char('\n')?;
    }
    Ok(())
}
