//! Frees, free lists, counters and remaining objects, explained.
//!
//! Source of truth: free_consistency_checks(), on_freelist(), check_slab(),
//! list_slab_objects() of mm/slub.c.

use std::collections::BTreeMap;

use super::boot;
use super::damage::may_be_false_alarm;
use super::finding::{Class, Finding, LeftBy, State};
use super::frames;
use super::layout::Layout;
use super::words::{counted, tracking, who};
use crate::parse::kernel_log::reason::Reason;
use crate::parse::kernel_log::report::Slub;

/// Explains a report that is not about overwritten bytes.
pub(super) fn explain(finding: &mut Finding, slub: &Slub, layout: &Layout, reason: &Reason) {
    match reason {
        Reason::AlreadyFree => double_free(finding, slub, layout),
        Reason::InvalidObject(_) => invalid_free(
            finding,
            "a pointer was freed that is not the start of an object",
            "The pointer is inside a slab of this cache, but not where an object begins: it was changed between allocation and free, or points at a member of the object.",
        ),
        Reason::OutsideSlab(_) => invalid_free(
            finding,
            "memory was freed to a slab cache that is not of a slab",
            "The memory is not of a slab: it is static, on a stack, or from another allocator (vmalloc, pages).",
        ),
        Reason::NoCache(_) => invalid_free(
            finding,
            "an object was freed whose page has no cache",
            "The page of the object was given back already: a late second free, or a free of memory that never was a slab's.",
        ),
        Reason::OtherCache => {
            finding.class = Class::WrongCache;
            finding.headline = format!(
                "{}: an object of another cache was freed to it",
                finding.name()
            );
            finding.certain("The page of the object belongs to another cache.");
            finding.do_next("Free it with kfree() or to the cache it was allocated from.");
        }
        Reason::FreePointer | Reason::FreeChain | Reason::FreeListHead | Reason::FreeListCycle => {
            free_list(finding, slub, layout, reason);
        }
        Reason::BulkCount => {
            simple(
                finding,
                Class::Freelist,
                "a list of objects freed at once has the wrong length",
            );
            finding.likely("Objects were freed twice, or the list was overwritten.");
        }
        Reason::FreesMoreThanUsed(used, freed) => {
            frees_more(finding, slub, layout, (*used, *freed));
        }
        Reason::WrongCount(counter, found) => wrong_count(finding, *counter, *found),
        Reason::WrongNumber(found, right) => {
            simple(
                finding,
                Class::Counters,
                "a slab says it holds another number of objects than fit",
            );
            pair(finding, "It says", *found, "and has room for", *right);
            finding.likely(
                "The description of the slab (struct page or struct slab) was overwritten.",
            );
        }
        Reason::ObjectsOverMax(n, max) => {
            simple(
                finding,
                Class::Counters,
                "a slab says it holds more objects than fit",
            );
            pair(finding, "It says", *n, "where at most", *max);
            finding.likely("The description of the slab was overwritten.");
        }
        Reason::InUseOverMax(n, max) => {
            simple(
                finding,
                Class::Counters,
                "a slab counts more objects in use than it holds",
            );
            pair(finding, "In use", *n, "of", *max);
            finding.likely(
                "Objects were freed twice, or the description of the slab was overwritten.",
            );
        }
        Reason::NotASlab => {
            simple(
                finding,
                Class::Counters,
                "a page on the lists of the cache is no slab",
            );
            finding.likely("The page was given back while it was on a list, or its description was overwritten.");
        }
        Reason::Disabled => {
            simple(
                finding,
                Class::Counters,
                "a slab was used that an earlier report took out of use",
            );
            finding
                .certain("The damage was found before: look for an earlier report on this slab.");
        }
        Reason::AlreadyAllocated => {
            simple(
                finding,
                Class::Freelist,
                "an object that is in use was about to be given out again",
            );
            finding.likely("It was freed twice, or the free list was overwritten.");
        }
        Reason::Remaining => remaining(finding, slub),
        _ => cannot_tell(finding, slub),
    }
}

fn simple(finding: &mut Finding, class: Class, what: &str) {
    finding.class = class;
    finding.headline = format!("{}: {what}", finding.name());
}

fn pair(finding: &mut Finding, first: &str, a: Option<u64>, second: &str, b: Option<u64>) {
    if let (Some(a), Some(b)) = (a, b) {
        finding.certain(format!("{first} {a} {second} {b}."));
    }
}

fn double_free(finding: &mut Finding, slub: &Slub, layout: &Layout) {
    finding.class = Class::DoubleFree;
    if let Some(object) = &mut finding.object {
        object.state = Some(State::Free);
    }
    finding.headline = format!("{}: an object was freed twice", finding.name());
    let first = finding.freed.clone();
    match (&first, finding.detected_by.clone()) {
        (Some(first), Some(second)) if frames::same_function(&first.symbol, &second) => {
            let both = format!(", both times by {}", function(&second));
            finding.headline.push_str(&both);
            finding.certain(format!(
                "The first free was by {}, and the second comes from the same function.",
                who(first)
            ));
            finding.likely("The same path ran twice for one object: a missing reference, a list entry visited twice, an error path that frees again.");
        }
        (Some(first), Some(second)) => {
            let two = format!(
                ", by {} and by {}",
                function(&first.symbol),
                function(&second)
            );
            finding.headline.push_str(&two);
            finding.certain(format!(
                "The first free was by {}, the second by {second}.",
                who(first)
            ));
            finding.likely("Two owners: each of them believes that it has to free the object.");
        }
        (Some(first), None) => {
            finding.certain(format!("The first free was by {}.", who(first)));
            finding.not_known("Who freed it again: the stack is missing.");
        }
        (None, Some(second)) => {
            finding.certain(format!("The second free was by {second}."));
            finding.not_known("Who freed it first: the report has no track of it.");
        }
        (None, None) => finding.not_known("Who freed it, both times."),
    }
    let head = slub.slab.as_ref().and_then(|s| s.free_pointer);
    if head.is_some() && head == slub.object.as_ref().and_then(|o| o.pointer) {
        finding.certain(
            "It is the first on the slab's free list: nothing of this slab was freed in between.",
        );
    }
    match layout.poison_is_whole() {
        Some(true) => finding.certain("Nothing was written to the object between the two frees: all its bytes are still poison."),
        Some(false) => finding.certain("The object was also written to after its first free: its bytes are not all poison."),
        None => {}
    }
    if finding.fixes.iter().any(|fix| fix.ends_with("not freed")) {
        finding.certain("The kernel ignored the second free.");
    }
    finding.do_next("Find out which of the two frees is one too many; set the pointer to NULL or take a reference.");
}

/// A slab has fewer objects in use than are to be freed.
fn frees_more(
    finding: &mut Finding,
    slub: &Slub,
    layout: &Layout,
    (used, freed): (Option<u64>, Option<u64>),
) {
    if (used, freed) == (Some(0), Some(1)) {
        finding.certain("No object of the slab was in use when this one was freed.");
        double_free(finding, slub, layout);
        return;
    }
    simple(
        finding,
        Class::Freelist,
        "more objects were freed at once than the slab has in use",
    );
    pair(finding, "In use", used, "to be freed", freed);
    finding.likely("Objects were freed twice, or the list of them was overwritten.");
}

fn function(symbol: &str) -> &str {
    symbol.split(['+', ' ']).next().unwrap_or(symbol)
}

fn invalid_free(finding: &mut Finding, what: &str, why: &str) {
    finding.class = Class::InvalidFree;
    finding.headline = format!("{}: {what}", finding.name());
    if finding.cache.is_none() {
        what.clone_into(&mut finding.headline);
    }
    finding.certain(why);
    if let Some(by) = finding.detected_by.clone() {
        finding.certain(format!("It was freed by {by}."));
        finding.do_next(format!(
            "Look in {} at where the pointer comes from.",
            function(&by)
        ));
    } else {
        finding.not_known("Who freed it: the stack is missing.");
    }
    if finding.fixes.iter().any(|fix| fix.ends_with("not freed")) {
        finding.certain("The kernel ignored the free.");
    }
}

fn free_list(finding: &mut Finding, slub: &Slub, layout: &Layout, reason: &Reason) {
    finding.class = Class::Freelist;
    let live = boot::is_live(slub);
    if let Some(object) = &mut finding.object {
        object.state = Some(if live { State::InUse } else { State::Free });
    }
    let what = match reason {
        Reason::FreePointer if live => "the link of an object in use is not what it should be",
        Reason::FreeListCycle => "the free list of a slab runs in a circle",
        Reason::FreeListHead => "the free list of a slab begins at an invalid address",
        _ => "the link from a free object to the next one is overwritten",
    };
    finding.headline = format!("{}: {what}", finding.name());
    match reason {
        _ if boot::is_first_node(slub) => finding.likely(format!("A false alarm: {}.", boot::WHY)),
        Reason::FreeListCycle => {
            finding.likely("An object was freed twice.");
        }
        _ if live => finding.likely("Somebody ran over the end of the object, or of the one before it."),
        _ => finding.likely("Somebody wrote to the free object (a use after free), or ran over the end of the object before it."),
    }
    let link = slub.object.as_ref().and_then(|o| o.free_pointer);
    if let Some(link) = link.filter(|_| layout.plain == Some(true)) {
        finding.certain(format!("The link holds {link:#x}."));
    }
    if layout.poison_is_whole() == Some(true) {
        finding.certain(
            "All bytes of the object itself are still poison: only the link behind it was hit.",
        );
    }
    if let Some(track) = finding.freed.clone() {
        finding.do_next(format!(
            "Look for pointers to the object that outlive its free in {}.",
            who(&track)
        ));
    }
    finding.not_known("Who wrote: the kernel notes who allocates and frees, not who writes.");
}

fn wrong_count(finding: &mut Finding, counter: Option<u64>, found: Option<u64>) {
    simple(
        finding,
        Class::Counters,
        "a slab counts another number of objects in use than are not on its free list",
    );
    if let (Some(counter), Some(found)) = (counter, found) {
        finding.headline = format!(
            "{}: a slab counts {counter} objects in use, and {found} are not on its free list",
            finding.name()
        );
        let what = if found > counter {
            "The free list is shorter than it should be: it was cut, or objects were lost from it."
        } else {
            "The free list is longer than it should be: objects were freed twice."
        };
        finding.likely(what);
        if counter.abs_diff(found) <= 2 && may_be_false_alarm(finding) {
            finding.possible("A false alarm: before Linux 6.1 frees during a validation make the two differ by a few.");
        }
    }
}

fn remaining(finding: &mut Finding, slub: &Slub) {
    finding.class = Class::Leak;
    let shown = slub.remaining.len() as u64 + slub.more_remaining;
    let used = slub
        .slab
        .as_ref()
        .and_then(|s| s.used)
        .filter(|used| *used > 0);
    let count = used.unwrap_or(shown).max(shown);
    let by = finding.detected_by.clone();
    finding.headline = format!(
        "{}: {} left when the cache was destroyed{}",
        finding.name(),
        if count == 0 {
            "objects".to_owned()
        } else {
            counted(count, "object")
        },
        by.as_deref()
            .map_or_else(String::new, |by| format!(" by {}", function(by))),
    );
    finding.certain("The cache was destroyed while objects of it were in use: they leaked, or the cache goes too early.");
    let mut sites: BTreeMap<Option<&str>, u64> = BTreeMap::new();
    for object in &slub.remaining {
        let symbol = object.allocated.as_ref().map(|track| &*track.symbol);
        *sites.entry(symbol).or_default() += 1;
    }
    if slub.more_remaining > 0 {
        *sites.entry(None).or_default() += slub.more_remaining;
    }
    let mut left: Vec<LeftBy> = sites
        .into_iter()
        .map(|(symbol, objects)| LeftBy {
            symbol: symbol.map(str::to_owned),
            objects,
        })
        .collect();
    left.sort_by_key(|site| std::cmp::Reverse(site.objects));
    let known = left.iter().find_map(|site| site.symbol.clone());
    finding.left = left;
    if let [only] = &*slub.remaining {
        finding.object = Some(super::finding::ObjectFacts {
            offset_in_slab: only.object.offset,
            state: Some(State::InUse),
            ..super::finding::ObjectFacts::default()
        });
        finding.allocated.clone_from(&only.allocated);
    }
    if let Some(symbol) = known {
        finding.do_next(format!("Find the free that belongs to {symbol}."));
    } else {
        finding.not_known("Who allocated them: that is not tracked.");
        let option = tracking(finding);
        finding.do_next(format!(
            "Boot with {option}, do it again, and read who holds objects before the cache goes: slabctl report --tracking (alloc_traces)."
        ));
    }
    if used.is_some_and(|used| used > shown && shown > 0) {
        finding.not_known("Some of the objects: they are not listed.");
    }
}

fn cannot_tell(finding: &mut Finding, slub: &Slub) {
    finding.class = Class::CannotTell;
    if slub.reason.is_some() {
        let reason = finding.reason.clone().unwrap_or_default();
        finding.headline = format!("{}: {reason}", finding.name());
        finding.not_known("What this reason means: it is not known to this program.");
    } else if slub.fixes.is_empty() {
        finding.headline = format!(
            "{}: a part of a report, without its first lines",
            finding.name()
        );
        finding.not_known("What was found: the lines that say it are not in the log.");
        finding.do_next("Look for an older log (journalctl -k, /var/log): the kernel's buffer holds only the newest lines.");
    } else {
        finding.headline = format!(
            "{}: a repair, without the report it belongs to",
            finding.name()
        );
        finding.certain("The kernel found damage and repaired it: memory was corrupted before.");
        finding.not_known("What was found: the report is not in the log.");
        finding.do_next("Look for an older log (journalctl -k, /var/log): the kernel's buffer holds only the newest lines.");
    }
}
