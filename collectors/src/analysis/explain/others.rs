//! Reports of one line and a stack, and those of other tools, explained.
//!
//! Source of truth: mm/slab_common.c, mm/usercopy.c, the heads of KASAN, KFENCE
//! and kmemleak reports.

use super::finding::{Class, Finding, Kind, ObjectFacts};
use super::frames;
use super::words::{bytes, cache_name, size_of_name, tainted, tracking};
use crate::parse::kernel_log::report::{
    CacheDestroy, Foreign, KernelBug, Report, Tool, Track, Usercopy, Validator, WrongCache,
};

/// The largest objects that slabs hold; larger ones get pages of their own.
const LARGEST: u64 = 8192;

fn begin(report: &Report, kind: Kind, class: Class, cache: &str) -> Finding {
    let mut finding = Finding::new(kind, class);
    finding.detected = report.detected.clone();
    finding.cache = (!cache.is_empty()).then(|| cache_name(cache));
    finding.operation = frames::operation(&report.detected.stack);
    finding.detected_by = frames::user(&report.detected.stack).map(|frame| frame.symbol.clone());
    finding
}

pub(super) fn destroy(report: &Report, found: &CacheDestroy) -> Finding {
    let mut finding = begin(report, Kind::CacheDestroy, Class::Leak, &found.cache);
    if found.from.is_some() {
        finding.detected_by.clone_from(&found.from);
    }
    let by = finding.detected_by.clone();
    finding.headline = format!(
        "{}: the cache was destroyed while objects of it were in use{}",
        found.cache,
        by.map_or_else(String::new, |by| format!(", by {by}"))
    );
    finding.certain(
        "Objects leaked, or the cache goes too early. The kernel keeps the cache and its memory.",
    );
    finding.not_known("Which objects and who allocated them: this line does not tell.");
    let option = tracking(&finding);
    finding.do_next(format!(
        "Boot with {option} and do it again: the report then names who allocated them."
    ));
    finding
}

pub(super) fn wrong_cache(report: &Report, found: &WrongCache) -> Finding {
    let mut finding = begin(report, Kind::WrongCache, Class::WrongCache, &found.freed_to);
    finding.reason = Some("wrong slab cache".to_owned());
    let Some(owner) = &found.object_of else {
        finding.class = Class::InvalidFree;
        finding.headline = format!(
            "{}: memory that is in no slab was freed to it",
            found.freed_to
        );
        finding.certain(
            "The page of the object is no slab: it was given back already, or never was one.",
        );
        by_whom(&mut finding);
        return finding;
    };
    if *owner == found.freed_to {
        finding.headline =
            format!("{owner}: an object was freed to another cache of the same name");
        finding.certain("Caches are compared by address, not by name: two caches are called this, and the object is of the other one.");
        if tainted(report.detected.taint.as_deref(), 'R') {
            finding.likely("A module was unloaded by force (taint R) while its objects were in use, and loaded again: its cache was made anew, and the object is of the old one.");
        } else {
            finding.likely("The owner of the cache was unloaded and loaded again, or made a second cache, while objects of the first were in use.");
        }
    } else {
        finding.headline = format!("{}: an object of {owner} was freed to it", found.freed_to);
        finding.certain(format!(
            "The object is of {owner}. The kernel frees it there and goes on."
        ));
        finding.likely("kmem_cache_free() was called with the wrong cache, or the pointer is not what the caller believes.");
    }
    if tainted(report.detected.taint.as_deref(), 'B') {
        finding.certain("The kernel had found damage before this (taint B): an earlier report may be the cause.");
    }
    by_whom(&mut finding);
    finding
}

fn by_whom(finding: &mut Finding) {
    match finding.detected_by.clone() {
        Some(by) => {
            finding.certain(format!("It was freed by {by}."));
            finding.do_next(format!(
                "Look in {by} at where the pointer and the cache come from."
            ));
        }
        None => finding.not_known("Who freed it: the stack is missing."),
    }
}

pub(super) fn usercopy(report: &Report, found: &Usercopy) -> Finding {
    let mut finding = begin(report, Kind::Usercopy, Class::Usercopy, &found.cache);
    let size = finding.cache.as_ref().and_then(size_of_name);
    finding.object = Some(ObjectFacts {
        size,
        ..ObjectFacts::default()
    });
    let direction = if found.exposure {
        "from a kernel object to user space"
    } else {
        "from user space into a kernel object"
    };
    let name = finding
        .cache
        .as_ref()
        .map_or("a cache", |c| &c.root)
        .to_owned();
    finding.headline = match found.size {
        Some(n) => format!("{name}: a copy of {} {direction} was stopped", bytes(n)),
        None => format!("{name}: a copy {direction} was stopped"),
    };
    if let (Some(offset), Some(n)) = (found.offset, found.size) {
        finding.certain(format!(
            "It began at byte {offset} of the object and was {} long.",
            bytes(n)
        ));
        let end = offset.saturating_add(n);
        match size {
            Some(size) if end > size => finding.certain(format!("That is {} beyond the end of the object.", bytes(end - size))),
            Some(_) => finding.likely("It is inside the object, in a part that may not be copied (no usercopy region)."),
            None if n >= LARGEST => finding.likely("No slab object is that large: the pointer or the length is wrong altogether, not by some bytes."),
            None => finding.possible("It leaves the part of the object that may be copied (its usercopy region), or the object."),
        }
    }
    if let Some((id, cgroup)) = finding.cache.as_ref().and_then(|c| c.cgroup.clone()) {
        finding.certain(format!(
            "The object is charged to control group {id} ({cgroup})."
        ));
    }
    finding.certain("Nothing was copied: the kernel stopped the task.");
    match finding.detected_by.clone() {
        Some(by) => finding.do_next(format!("Look in {by} at the length and the pointer.")),
        None => finding.not_known("Who copied: the stack is missing."),
    }
    finding
}

pub(super) fn validator(report: &Report, found: &Validator) -> Finding {
    let mut finding = begin(report, Kind::Validator, Class::Counters, &found.cache);
    let which = if found.partial {
        "partial slabs"
    } else {
        "slabs"
    };
    let show = |n: Option<i64>| n.map_or_else(|| "an unknown number".to_owned(), |n| n.to_string());
    finding.headline = format!(
        "{}: {} {which} counted where the counter says {}",
        found.cache,
        show(found.counted),
        show(found.counter)
    );
    finding.possible("The list was changed while it was counted, or the counter or list is damaged. Validate again while the cache is quiet.");
    finding
}

pub(super) fn kernel_bug(report: &Report, found: &KernelBug) -> Finding {
    let mut finding = begin(report, Kind::KernelBug, Class::CannotTell, "");
    finding.headline = format!(
        "the allocator stopped at one of its own checks ({})",
        found.place
    );
    finding
        .certain("The allocator found its own structures, or a pointer given to it, impossible.");
    if let Some(at) = report.detected.instruction.clone() {
        finding.certain(format!("It was in {at}."));
    }
    finding.likely(
        "Memory was corrupted before this, most often by a double free or a use after free.",
    );
    if let Some(by) = finding.detected_by.clone() {
        finding.certain(format!("It was called by {by}, who need not be at fault."));
    }
    let option = super::words::checking(&finding).replace(",CACHE", "");
    finding.do_next(format!(
        "Boot with {option} to have the damage reported where it is found first."
    ));
    finding
}

pub(super) fn foreign(report: &Report, found: &Foreign) -> Finding {
    let cache = found.cache.as_deref().unwrap_or_default();
    let mut finding = begin(report, Kind::Other(found.tool), Class::OtherTool, cache);
    finding.operation = None;
    finding.reason = Some(found.kind.clone());
    finding.object = Some(ObjectFacts {
        address: found.address,
        size: found.object_size.or(if found.tool == Tool::Kmemleak {
            found.size
        } else {
            None
        }),
        ..ObjectFacts::default()
    });
    let named = |track: &Option<Track>| {
        let mut track = track.clone()?;
        let frame = frames::user(&track.stack).or_else(|| track.stack.frames.first());
        track.symbol = frame.map_or_else(|| "a task".to_owned(), |f| f.symbol.clone());
        Some(track)
    };
    finding.allocated = named(&found.allocated);
    finding.freed = named(&found.freed);
    if found.tool == Tool::Kmemleak {
        leak(&mut finding, found);
        return finding;
    }
    let tool = super::tool_name(found.tool);
    let function = found.function.as_deref().unwrap_or_default();
    finding.headline = format!(
        "{tool}: {}{}{function}",
        found.kind,
        if function.is_empty() { "" } else { " in " }
    );
    finding.certain(format!(
        "This is a report of {tool}, not of the allocator: it names the access itself."
    ));
    if let (Some(access), Some(size)) = (&found.access, found.size) {
        let address = found
            .address
            .map_or_else(String::new, |a| format!(" at {a:#x}"));
        finding.certain(format!("{access} of {}{address}.", bytes(size)));
    }
    if let Some(place) = &found.place {
        let end = if place.ends_with("of") {
            " the object"
        } else {
            ""
        };
        finding.certain(format!(
            "The address is {}{end}.",
            place.trim_end_matches(':')
        ));
    }
    if found.kind.contains("out-of-bounds") && finding.freed.is_some() {
        finding.freed_before = true;
        finding.certain("The one who freed the object did so in an earlier life of this memory.");
    }
    finding.do_next(format!(
        "Read the stack of the access in the log: its first function that is not {tool}'s did it."
    ));
    finding
}

fn leak(finding: &mut Finding, found: &Foreign) {
    let size = found.size.map_or_else(|| "some bytes".to_owned(), bytes);
    let by = finding.detected_by.clone();
    finding.headline = format!(
        "kmemleak: {size} that nothing points to{}",
        by.map_or_else(String::new, |by| format!(", allocated by {by}"))
    );
    finding.certain("This is a report of kmemleak, not of the allocator: no pointer to the object was found in memory.");
    finding.possible("A leak, or a pointer that is kept in a form kmemleak does not see (a physical address, an offset).");
    finding.do_next("Scan again (echo scan > /sys/kernel/debug/kmemleak): what stays is leaked.");
}
