//! Lines about the debugging itself, and about names: no damage.
//!
//! Source of truth: trace(), parse_slub_debug_flags() and slab_sysfs_init() of
//! mm/slub.c, kmem_cache_sanity_check() of mm/slab_common.c.

use super::{Item, Read, clip, clipped};
use crate::parse::kernel_log::report::Remark;
use crate::parse::kernel_log::template::scan;

/// Reads a line; `None` for other lines.
pub(super) fn line(text: &str) -> Option<Read> {
    match text.as_bytes().first()? {
        b'T' => traced(text, "TRACE {s} alloc {p} inuse={d} fp={p}", true)
            .or_else(|| traced(text, "TRACE {s} free {p} inuse={d} fp={p}", false)),
        b's' => option(text),
        b'S' => not_shown(text),
        b'k' => same_name(text),
        _ => None,
    }
}

fn traced(text: &str, template: &str, alloc: bool) -> Option<Read> {
    let v = scan(template, text)?;
    v.text(1)?;
    let cache = clipped(v.text(0));
    Read::of(Item::Remark(Remark::Traced { cache, alloc }), &v)
}

/// `slab_debug option 'x' unknown. skipped`, `slub_` before 6.9.
fn option(text: &str) -> Option<Read> {
    let (word, rest) = text.split_once(" option '")?;
    let known = matches!(word, "slab_debug" | "slub_debug");
    let (letter, _) = rest.split_once("' unknown. skipped").filter(|_| known)?;
    let remark = Remark::UnknownOption {
        word: word.to_owned(),
        option: clip(letter),
    };
    Read::whole(Item::Remark(remark))
}

fn not_shown(text: &str) -> Option<Read> {
    let rest = text.strip_prefix("SLUB: Unable to add ")?;
    let rest = rest.strip_suffix(" to sysfs")?;
    let cache = rest
        .strip_prefix("boot slab ")
        .or(rest.strip_prefix("cache "))?;
    Read::whole(Item::Remark(Remark::NotShown { cache: clip(cache) }))
}

fn same_name(text: &str) -> Option<Read> {
    let rest = text.strip_prefix("kmem_cache of name '")?;
    let cache = rest.strip_suffix("' already exists")?;
    Read::whole(Item::Remark(Remark::SameName { cache: clip(cache) }))
}
