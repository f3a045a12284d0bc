//! Lines about allocations that failed and memory that ran out.
//!
//! Source of truth: slab_out_of_memory() of mm/slub.c, mm/oom_kill.c,
//! mm/show_mem.c. The rows of the table of caches are not told apart here:
//! see `oom.rs`.

use super::{FailureCache, Item, Read, clip, clipped};
use crate::parse::kernel_log::report::NodeSlabs;
use crate::parse::kernel_log::template::scan;

/// Reads a line; `None` for other lines.
pub(super) fn line(text: &str) -> Option<Read> {
    match text.as_bytes().first()? {
        b'S' => text
            .strip_prefix("SLUB: Unable to allocate memory on")
            .and_then(heading),
        b'c' => cache(text),
        b'n' => node(text),
        b'M' if text.starts_with("Mem-Info:") => Read::whole(Item::MemInfo),
        b'U' if text.starts_with("Unreclaimable slab info:") => Read::whole(Item::SlabTable),
        b'T' if text.starts_with("Tasks state") => Read::whole(Item::EndOom),
        b'O' if text.starts_with("Out of memory") => Read::whole(Item::EndOom),
        b'o' if text.starts_with("oom-kill:") => Read::whole(Item::EndOom),
        _ => None,
    }
    // These begin with a name.
    .or_else(|| oom(text))
    .or_else(|| {
        let debug = text.contains("debugging increased min order");
        debug.then(|| Read::whole(Item::FailureDebug)).flatten()
    })
}

fn heading(rest: &str) -> Option<Read> {
    let (v, node) = match scan(" CPU {d} (of node {d}) on node {d}, gfp={r}", rest) {
        Some(v) => (v, 2),
        None => match scan(" node {d}, gfp={r}", rest) {
            Some(v) => (v, 0),
            None => (scan(" node {d} (gfp={s})", rest)?, 0),
        },
    };
    let gfp = v.text(node + 1);
    let whole = gfp.is_some_and(|g| !g.contains('(') || g.contains(')'));
    let item = Item::Failure {
        node: v.signed(node),
        gfp: gfp.map(clip),
    };
    Some(Read {
        item,
        complete: v.complete && whole,
    })
}

fn cache(text: &str) -> Option<Read> {
    const FORM: &str =
        "cache: {s}, object size: {d}, buffer size: {d}, default order: {d}, min order: {d}";
    let v = scan(FORM, text).filter(|v| v.dec(1).is_some())?;
    let order = |at| v.dec(at).and_then(|n| u32::try_from(n).ok());
    let item = Item::FailureCache(FailureCache {
        cache: clipped(v.text(0)),
        object_size: v.dec(1),
        slot_size: v.dec(2),
        order: order(3),
        min_order: order(4),
    });
    Read::of(item, &v)
}

fn node(text: &str) -> Option<Read> {
    let v = scan("node {d}: slabs: {d}, objs: {d}, free: {d}", text)?;
    let item = Item::FailureNode(NodeSlabs {
        node: v.dec(0)?,
        slabs: v.dec(1)?,
        objects: v.dec(2)?,
        free: v.dec(3)?,
    });
    Read::of(item, &v)
}

fn oom(text: &str) -> Option<Read> {
    let (comm, rest) = text.split_once(" invoked oom-killer:")?;
    let order = rest.split_once("order=").map(|(_, n)| n);
    let order = order.and_then(|n| n.split([',', ' ']).next()?.parse().ok());
    Read::whole(Item::Oom {
        comm: Some(clip(comm)),
        order,
    })
}
