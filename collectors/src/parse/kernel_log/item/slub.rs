//! Lines of SLUB's own reports.
//!
//! Source of truth: mm/slub.c from 2.6.22 to 7.3: slab_bug(), print_trailer(),
//! print_tracking(), check_bytes_and_report(), slab_fix(), validate_slab_node().

use super::{Item, Read, clip, clipped, hex_bytes};
use crate::parse::kernel_log::reason;
use crate::parse::kernel_log::report::{
    DumpRow, Label, ObjectLine, Overwritten, SlabLine, Stack, Track,
};
use crate::parse::kernel_log::template::{Values, scan};

/// Reads a line; `None` for other lines.
pub(super) fn line(text: &str) -> Option<Read> {
    if let Some(rest) = text.strip_prefix("INFO: ") {
        return detail(rest);
    }
    match text.as_bytes().first()? {
        b'B' => banner(text).or_else(|| row(text)),
        b'F' => fix(text).or_else(|| detail(text)),
        b'S' => detail(text).or_else(|| plain(text)),
        _ => detail(text),
    }
}

/// A detail of a report, which had `INFO: ` before it up to 5.10.
fn detail(text: &str) -> Option<Read> {
    match text.as_bytes().first()? {
        b'[' | b'0'..=b'9' | b'a'..=b'f' => overwritten(text),
        b'A' => track(
            "Allocated in {s} age={d} cpu={d} pid={d}",
            text,
            Item::Allocated,
        ),
        b'F' => track("Freed in {s} age={d} cpu={d} pid={d}", text, Item::Freed),
        b'S' => slab_line(text),
        b'O' => object_line(text).or_else(|| row(text)),
        b'I' => {
            let values = scan("Invalid pointer {p}", text)?;
            Read::of(Item::InvalidPointer(values.pointer(0)), &values)
        }
        b'R' | b'P' => row(text),
        _ => None,
    }
}

fn banner(text: &str) -> Option<Read> {
    let rest = text.strip_prefix("BUG ")?;
    let field = [" (Not tainted", " (Tainted:"]
        .iter()
        .find_map(|start| rest.find(start));
    let Some(at) = field.filter(|at| *at > 0) else {
        // Up to 3.2 there was no field; then the reason must be a known one.
        let (cache, why) = rest.split_once(": ")?;
        return reason::is_known(why).then(|| Read {
            complete: reason::read(why).1,
            item: Item::Banner {
                cache: clip(cache),
                taint: None,
                reason: clip(why),
            },
        });
    };
    let (cache, field) = (&rest[..at], &rest[at + 2..]);
    let (taint, why) = match field.split_once("):") {
        Some((taint, why)) => (taint, why.trim()),
        None => (field.trim_end_matches(')'), ""),
    };
    Some(Read {
        complete: !why.is_empty() && reason::read(why).1,
        item: Item::Banner {
            cache: clip(cache),
            taint: Some(clip(taint)),
            reason: clip(why),
        },
    })
}

fn overwritten(text: &str) -> Option<Read> {
    let (what, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let (what, rest) = inner.split_once(" overwritten]")?;
            (Some(clip(what)), rest.trim_start())
        }
        None => (None, text),
    };
    let make = |offset, found, expected, v: &Values<'_>| {
        let item = Item::Overwritten(Overwritten {
            what: what.clone(),
            from: v.pointer(0),
            to: v.pointer(1),
            offset,
            found,
            expected,
        });
        Read::of(item, v)
    };
    if rest.is_empty() && what.is_some() {
        // Wrapped right behind the bracket.
        let found = Overwritten {
            what,
            from: None,
            to: None,
            offset: None,
            found: None,
            expected: None,
        };
        return Some(Read {
            item: Item::Overwritten(found),
            complete: false,
        });
    }
    if !rest.starts_with("0x") {
        return None;
    }
    // The offset came with 5.9.
    if let Some(v) = scan("{p}-{p} @offset={d}. First byte {x} instead of {x}", rest) {
        return make(v.dec(2), v.byte(3), v.byte(4), &v);
    }
    let v = scan("{p}-{p}. First byte {x} instead of {x}", rest)?;
    make(None, v.byte(2), v.byte(3), &v)
}

fn track(template: &str, text: &str, make: fn(Track) -> Item) -> Option<Read> {
    let values = scan(template, text)?;
    let track = Track {
        symbol: clipped(values.text(0)),
        age: values.dec(1),
        cpu: values.dec(2),
        pid: values.dec(3),
        stack: Stack::default(),
    };
    Read::of(make(track), &values)
}

fn slab_line(text: &str) -> Option<Read> {
    // `objects=` came with 2.6.26.
    let with = scan("Slab {p} objects={d} used={d} fp={p} flags={r}", text);
    let (values, first) = match with {
        Some(values) => (values, 1),
        None => (scan("Slab {p} used={d} fp={p} flags={r}", text)?, 0),
    };
    let flags = values.text(first + 3);
    let whole = flags.is_some_and(|f| !f.contains('(') || f.contains(')'));
    let slab = SlabLine {
        pointer: values.pointer(0),
        objects: (first == 1).then(|| values.dec(1)).flatten(),
        used: values.dec(first + 1),
        free_pointer: values.pointer(first + 2),
        flags: flags.map(clip),
    };
    Some(Read {
        item: Item::Slab(slab),
        complete: values.complete && whole,
    })
}

fn object_line(text: &str) -> Option<Read> {
    let values = scan("Object {p} @offset={d} fp={p}", text)?;
    // A dump row begins alike: `Object 0x1234:  6b 6b`.
    values.text(1)?;
    let object = ObjectLine {
        pointer: values.pointer(0),
        offset: values.dec(1),
        free_pointer: values.pointer(2),
    };
    Read::of(Item::Object(object), &values)
}

/// `Redzone  ffff888004c6cd20: bb bb ..`, with `0x` up to 3.5.
fn row(text: &str) -> Option<Read> {
    const LABELS: [(&str, Label); 4] = [
        ("Redzone ", Label::Redzone),
        ("Object ", Label::Object),
        ("Padding ", Label::Padding),
        ("Bytes b4 ", Label::BytesBefore),
    ];
    let (label, rest) = LABELS
        .iter()
        .find_map(|(word, label)| Some((*label, text.strip_prefix(word)?)))?;
    let (address, bytes) = rest.trim_start().split_once(':')?;
    let values = scan("{p}", address).filter(|v| v.text(0) == Some(address))?;
    let (bytes, complete) = hex_bytes(bytes)?;
    let row = DumpRow::new(label, values.pointer(0), &bytes);
    Some(Read {
        item: Item::Row(row),
        complete,
    })
}

/// Lines without a banner.
fn plain(text: &str) -> Option<Read> {
    let rest = text.strip_prefix("SLUB")?;
    if let Some(v) = scan(" {s}: {d} partial slabs counted but counter={d}", rest)
        && v.signed(1).is_some()
    {
        return validator(true, &v);
    }
    if let Some(v) = scan(": {s} {d} slabs counted but counter={d}", rest)
        && v.signed(1).is_some()
    {
        return validator(false, &v);
    }
    let v = scan(" {s}: no slab for object {p}", rest).filter(|v| v.text(1).is_some())?;
    let reason = format!("No slab cache for object {}", v.text(1)?);
    let item = Item::Banner {
        cache: clipped(v.text(0)),
        taint: None,
        reason,
    };
    Read::of(item, &v)
}

fn fix(text: &str) -> Option<Read> {
    const ACTIONS: [&str; 8] = [
        "Restoring ",
        "Freelist cleared",
        "Number of objects adjusted",
        "Object count adjusted",
        "Marking all objects used",
        "Object at ",
        "Isolate corrupted",
        "Attempt to ",
    ];
    let rest = text.strip_prefix("FIX ")?;
    // A name may have a colon in it, but none before a blank.
    let (cache, action) = rest.split_once(": ")?;
    let known = ACTIONS.iter().any(|start| action.starts_with(start));
    known.then(|| Read {
        item: Item::Fix {
            cache: clip(cache),
            action: clip(action),
        },
        complete: true,
    })
}

fn validator(partial: bool, v: &Values<'_>) -> Option<Read> {
    let item = Item::Validator {
        cache: clipped(v.text(0)),
        partial,
        counted: v.signed(1),
        counter: v.signed(2),
    };
    Read::of(item, v)
}
