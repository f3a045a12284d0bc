//! Lines that many kinds of reports have, and reports of one line.
//!
//! Source of truth: dump_stack_print_info() of lib/dump_stack.c, __warn() of
//! kernel/panic.c, kmem_cache_destroy() and cache_from_obj() of
//! mm/slab_common.c and mm/slab.h, mm/usercopy.c.

use super::{Item, Read, clip, clipped};
use crate::parse::kernel_log::template::scan;

/// Reads a line; `None` for other lines.
pub(super) fn line(text: &str) -> Option<Read> {
    match text.as_bytes().first()? {
        b'=' | b'-' => ruler(text),
        b'C' if text.starts_with("Call Trace") => Read::whole(Item::CallTrace),
        b'C' | b'P' => cpu(text),
        b'W' => warning(text),
        b'R' => instruction(text),
        b'u' | b'B' => usercopy(text),
        b'k' => kernel_bug(text)
            .or_else(|| destroy(text))
            .or_else(|| wrong_cache(text)),
        _ => wrong_cache(text),
    }
}

/// User space has addresses instead of names.
fn instruction(text: &str) -> Option<Read> {
    let v = scan("RIP: {r}", text)?;
    let symbol = v.text(0)?.rsplit_once(':').map_or(v.text(0)?, |(_, s)| s);
    if symbol.starts_with("0x") {
        return None;
    }
    Read::of(Item::Instruction(clip(symbol)), &v)
}

fn ruler(text: &str) -> Option<Read> {
    let first = text.as_bytes()[0];
    if text.len() >= 30 && text.bytes().all(|b| b == first) {
        Read::whole(Item::Rule)
    } else if text.contains("[ cut here ]") {
        Read::whole(Item::CutHere)
    } else if text.starts_with("---[ end ") {
        Read::whole(Item::EndTrace)
    } else {
        None
    }
}

/// `CPU: 7 PID: 151472 Comm: trinity-c61 Tainted: G    B   5.9.0-rc6 #2`, and
/// `Pid: 1, comm: swapper Not tainted 2.6.30 #1` up to 3.10.
fn cpu(text: &str) -> Option<Read> {
    const FORMS: [(&str, Option<usize>, usize); 3] = [
        ("CPU: {d} UID: {d} PID: {d} Comm: {r}", Some(0), 2),
        ("CPU: {d} PID: {d} Comm: {r}", Some(0), 1),
        ("Pid: {d}, comm: {r}", None, 0),
    ];
    let found = FORMS.iter().find_map(|(form, cpu, pid)| {
        let v = scan(form, text)?;
        Some((cpu.and_then(|at| v.dec(at)), v.dec(*pid), v.text(pid + 1)))
    });
    let (cpu, pid, rest) = found?;
    let rest = rest.unwrap_or_default();
    let ends = [" Not tainted", " Tainted:", " Kdump:"];
    let end = ends.iter().filter_map(|e| rest.find(e)).min();
    let (comm, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let is_release = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.') && !word.ends_with('.')
    };
    let kernel = rest.split_ascii_whitespace().find(|word| is_release(word));
    let taint = rest.split_once("Tainted: ").map(|(_, letters)| {
        letters
            .split_once(kernel.unwrap_or("\n"))
            .map_or(letters, |(letters, _)| letters)
    });
    Some(Read {
        complete: kernel.is_some(),
        item: Item::Cpu {
            cpu,
            pid,
            comm: clip(comm),
            taint: taint.map(clip),
            kernel: kernel.map(clip),
        },
    })
}

/// `WARNING: CPU: 3 PID: 906 at mm/slub.c:1257 ..`, or since 6.18
/// `WARNING: mm/slub.c:1257 at object_err+0x1/0x2, CPU#3: sh/925`.
fn warning(text: &str) -> Option<Read> {
    let rest = text.strip_prefix("WARNING: ")?;
    if let Some(v) = scan("CPU: {d} PID: {d} at {r}", rest) {
        return Read::whole(Item::Warning {
            cpu: v.dec(0),
            pid: v.dec(1),
            comm: None,
        });
    }
    let v = scan("{s} at {s}, CPU#{d}: {r}", rest);
    let who = v.as_ref().and_then(|v| v.text(3)?.rsplit_once('/'));
    Read::whole(Item::Warning {
        cpu: v.as_ref().and_then(|v| v.dec(2)),
        pid: who.and_then(|(_, pid)| pid.parse().ok()),
        comm: who.map(|(comm, _)| clip(comm)),
    })
}

fn kernel_bug(text: &str) -> Option<Read> {
    let v = scan("kernel BUG at mm/sl{s}.c:{d}", text)?;
    let place = format!("mm/sl{}.c:{}", v.text(0)?, v.text(1)?);
    Read::of(Item::KernelBug(place), &v)
}

fn destroy(text: &str) -> Option<Read> {
    let v = scan("kmem_cache_destroy {s}: Slab cache still has objects", text)?;
    if !v.complete && !text.contains(": Sl") {
        return None;
    }
    let from = text.split_once("when called from ");
    let from = from.map(|(_, from)| clip(from));
    // Before 5.17 nothing follows.
    let complete = v.complete && (from.is_some() || text.ends_with("objects"));
    let cache = clipped(v.text(0));
    Some(Read {
        item: Item::Destroy { cache, from },
        complete,
    })
}

fn wrong_cache(text: &str) -> Option<Read> {
    if let Some(v) = scan("kmem_cache_free({s}, {p}): object {r}", text) {
        let why = v.text(2)?;
        let object_of = why.strip_prefix("belongs to different cache").map(clip);
        let complete = object_of
            .as_ref()
            .map_or(why.ends_with("page"), |name| !name.is_empty());
        let item = Item::WrongCache {
            freed_to: clipped(v.text(0)),
            object_of,
            object: v.pointer(1),
        };
        return Some(Read {
            item,
            complete: v.complete && complete,
        });
    }
    let v = scan("{w} Wrong slab cache. {s} but object is from {r}", text)?;
    v.text(1)?;
    let item = Item::WrongCache {
        freed_to: clipped(v.text(1)),
        object_of: v.text(2).map(clip),
        object: None,
    };
    Read::of(item, &v)
}

/// `usercopy: Kernel memory exposure attempt detected from SLUB object 'x'
/// (offset 1, size 2)!`; up to 4.15 `.. from ffff8801 (kmalloc-64) (128 bytes)`.
fn usercopy(text: &str) -> Option<Read> {
    let known = text.starts_with("usercopy: ") || text.starts_with("Bad or missing usercopy");
    let (_, rest) = text.split_once("ernel memory ").filter(|_| known)?;
    if let Some(v) = scan(
        "{w} attempt detected {w} {w} object '{s}' (offset {d}, size {d})!",
        rest,
    ) {
        let object = v
            .text(2)
            .is_none_or(|what| what == "SLUB" || what == "SLAB");
        let item = Item::Usercopy {
            exposure: v.text(0) == Some("exposure"),
            cache: clipped(v.text(3)),
            offset: v.dec(4),
            size: v.dec(5),
        };
        return if object && v.text(3).is_some() {
            Read::of(item, &v)
        } else {
            None
        };
    }
    let v = scan("{w} attempt detected {w} {p} ({s}) ({d} bytes)", rest)?;
    let cache = clip(v.text(3)?);
    // Other kinds of memory are named in angle brackets.
    let item = Item::Usercopy {
        exposure: v.text(0) == Some("exposure"),
        cache,
        offset: None,
        size: v.dec(4),
    };
    if v.text(3)?.starts_with('<') {
        None
    } else {
        Read::of(item, &v)
    }
}
