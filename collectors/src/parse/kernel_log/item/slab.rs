//! Lines of the debugging reports of SLAB.
//!
//! Source of truth: mm/slab.c up to 6.7: __slab_error(), check_poison_obj(),
//! print_objinfo(), dump_line(), verify_redzone_free().

use super::{Item, Read, clip, clipped, hex_bytes};
use crate::parse::kernel_log::report::SlabRow;
use crate::parse::kernel_log::template::scan;

/// Reads a line; `None` for other lines.
pub(super) fn line(text: &str) -> Option<Read> {
    match text.as_bytes().first()? {
        b's' => error(text),
        b'S' => corruption(text),
        b'R' => {
            let v = scan("Redzone: {x}/{x}", text)?;
            Read::of(Item::Redzones(v.hex(0)?, v.hex(1)?), &v)
        }
        b'L' => {
            let v = scan("Last user: {r}", text)?;
            Read::of(Item::LastUser(last_user(v.text(0)?)), &v)
        }
        b'N' => neighbour("Next obj: start={p}, len={d}", text),
        b'P' => neighbour("Prev obj: start={p}, len={d}", text),
        b'0'..=b'9' | b'a'..=b'f' => redzones(text).or_else(|| row(text)),
        _ => None,
    }
}

fn error(text: &str) -> Option<Read> {
    let v = scan("slab error in {s}(): cache `{s}': {r}", text)?;
    let message = v.text(2);
    let item = Item::SlabError {
        function: clipped(v.text(0)),
        cache: v.text(1).map(clip),
        message: message.map(clip),
    };
    // The one message that is long enough to be wrapped.
    let whole = message.is_some_and(|m| m != "memory outside object");
    Some(Read {
        item,
        complete: v.complete && whole,
    })
}

fn neighbour(template: &str, text: &str) -> Option<Read> {
    Read::of(Item::Neighbour, &scan(template, text)?)
}

/// `dd20cb64: redzone 1:0x170fc2a5, redzone 2:0x170fc200.`
fn redzones(text: &str) -> Option<Read> {
    let v = scan("{x}: redzone 1:{x}, redzone 2:{x}", text)?;
    let words = (v.hex(1)?, v.hex(2)?);
    Read::of(
        Item::RedzonePair {
            object: v.pointer(0),
            words,
        },
        &v,
    )
}

/// `[<ffffffff8015caac>](end_bio_bh_io_sync+0x35/0x39)` or `(foo+0x1/0x2)`.
fn last_user(text: &str) -> String {
    let inner = text
        .rsplit_once('(')
        .and_then(|(_, inner)| inner.split_once(')'));
    clip(inner.map_or(text, |(inner, _)| inner))
}

/// `1f0: 18 e5 44 ..`
fn row(text: &str) -> Option<Read> {
    let (offset, bytes) = text.split_once(": ")?;
    if !(3..=6).contains(&offset.len()) {
        return None;
    }
    let offset = u64::from_str_radix(offset, 16).ok()?;
    let (bytes, complete) = hex_bytes(bytes)?;
    Some(Read {
        item: Item::SlabRow(SlabRow { offset, bytes }),
        complete,
    })
}

fn corruption(text: &str) -> Option<Read> {
    if text.starts_with("Single bit error detected") {
        return Read::whole(Item::SingleBit);
    }
    let rest = text.strip_prefix("Slab corruption")?.trim_start();
    let (taint, rest) = match rest.strip_prefix('(').and_then(|r| r.split_once("):")) {
        Some((taint, rest)) => (Some(clip(taint)), rest),
        None => (None, rest.strip_prefix(':').unwrap_or(rest)),
    };
    let rest = rest.trim_start();
    let (cache, rest) = match rest.find("start=") {
        Some(at) => (clip(&rest[..at]), &rest[at..]),
        None => (clip(rest), ""),
    };
    let values = scan("start={p}, len={d}", rest);
    let item = Item::Corruption {
        cache: (!cache.is_empty()).then_some(cache),
        taint,
        start: values.and_then(|v| v.pointer(0)),
        len: values.and_then(|v| v.dec(1)),
    };
    Some(Read {
        item,
        complete: values.is_some_and(|v| v.complete),
    })
}
