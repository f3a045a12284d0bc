//! Checks of lists, slabs, barns and the page map.

use super::{Fault, Finding, Validation};
use crate::core::{CacheCore, Path};
use crate::dump::State;
use crate::engine::{EngineCore, MAX_CACHES};
use crate::pages::{state, unpack};
use crate::slab::{NIL, Table, Word};
use crate::sync::Ordering::Relaxed;
use crate::sys::PAGE;
use crate::walk::{Broken, MAX_OBJECTS, Seen, steady, walk};

/// Times to look at a slab whose word keeps changing.
const TRIES: usize = 16;

/// Runs looked at while the registry's lock is held once.
const RUNS_AT_ONCE: usize = 1024;

/// Walks a word's list; ends at the first fault.
pub(super) fn check_word(
    core: &CacheCore,
    slab: u32,
    word: Word,
    seen: &mut Seen,
) -> Result<(), Fault> {
    walk(&core.links_to_see(slab), word, seen).map_err(|broken| match broken {
        Broken::Counts => Fault::Counts {
            inuse: word.inuse(),
            objects: word.objects(),
        },
        Broken::Link { object, link } => Fault::BadLink { object, link },
        Broken::Cycle { object } => Fault::Cycle { object },
        Broken::Length { found } => Fault::FreeCount {
            found,
            counted: word.free(),
        },
    })
}

/// Checks a node's partial list and its slabs, under the list lock.
///
/// Others push to the words meanwhile, but nobody takes from them, so what is
/// below a head that was read once stays as it is.
pub(super) fn check_list(core: &CacheCore, node: usize, found: &mut Validation) {
    let table = &core.engine.pages;
    let list = &core.nodes[node].node;
    let _held = list.list_lock.lock();
    let counted = list.nr_partial();
    let mut tell = |slab: u32, fault| {
        let finding = Finding::new(core.id, node as u32, fault);
        found.tell(match slab {
            NIL => finding,
            slab => finding.in_slab(table.address(slab)),
        });
    };
    let (mut at, mut before, mut n) = (list.first(), NIL, 0);
    while at != NIL {
        // A list with a loop is longer than its counter.
        if n > counted || at >= table.frontier() {
            tell(before, Fault::ListBroken);
            return;
        }
        let desc = table.desc(at);
        if desc.prev.load(Relaxed) != before {
            tell(at, Fault::ListBroken);
            return;
        }
        if desc.on_node.load(Relaxed) != 1 {
            tell(at, Fault::OnNodeFlag);
        }
        if desc.cache.load(Relaxed) != core.id + 1 || desc.node.load(Relaxed) as usize != node {
            tell(at, Fault::ForeignSlab);
            return;
        }
        let word = desc.load();
        if word.frozen() {
            tell(at, Fault::ListedFrozen);
        }
        if let Err(fault) = check_word(core, at, word, &mut Seen::new()) {
            tell(at, fault);
        }
        n += 1;
        before = at;
        at = desc.next.load(Relaxed);
    }
    if list.last() != before {
        tell(before, Fault::ListBroken);
    }
    if n != counted {
        tell(NIL, Fault::PartialCount { found: n, counted });
    }
}

/// Checks that full arrays of a barn hold objects that are not free.
pub(super) fn check_barn(core: &CacheCore, node: usize, found: &mut Validation) {
    let part = &core.nodes[node];
    if part.barn.counts().0 == 0 {
        return;
    }
    part.barn.each_full(|sheaf| {
        for place in core.places(sheaf) {
            let mut tell = |finding| found.tell(finding);
            let node = node as u32;
            let barn = State::Barn { node };
            // An object in an array is in use for its slab, which so cannot go away.
            let Some((slab, object)) = core.locate_checked(place.load(Relaxed)) else {
                let fault = Fault::NotAnObject { place: barn };
                tell(Finding::new(core.id, node, fault));
                continue;
            };
            let free = steady(core.desc(slab), 1, |word| {
                let mut seen = Seen::new();
                check_word(core, slab, word, &mut seen).is_ok() && seen.has(object)
            });
            if free == Some(true) {
                let fault = Fault::FreedTwice {
                    object,
                    first: State::Free,
                    second: barn,
                };
                let node = core.desc(slab).node.load(Relaxed);
                let at = core.engine.pages.address(slab);
                tell(Finding::new(core.id, node, fault).in_slab(at));
            }
        }
    });
}

/// Checks some slabs from a page on: map, counts, list. Gives the page to go on with, if any.
pub(super) fn check_some(engine: &EngineCore, from: u32, found: &mut Validation) -> Option<u32> {
    let mut heads = engine.pages.heads_from(from);
    for page in heads.by_ref().take(RUNS_AT_ONCE) {
        if unpack(engine.pages.desc(page).run.load(Relaxed)).0 == state::SLAB {
            found.slabs += 1;
            check_slab(engine, page, found);
        }
    }
    heads.next()
}

fn check_slab(engine: &EngineCore, slab: u32, found: &mut Validation) {
    let pages = &engine.pages;
    let desc = pages.desc(slab);
    let look = |word: Word| {
        let id = desc.cache.load(Relaxed);
        // None if it was discarded meanwhile.
        let core = engine.cache(id.checked_sub(1)?)?;
        let node = desc.node.load(Relaxed);
        let fault = check_shape(engine, core, slab, word).or_else(|| match core.path {
            // Its lists are walked under the lock; somebody may be writing to the slots.
            Path::Debug => None,
            Path::Policy(_) => check_word(core, slab, word, &mut Seen::new())
                .err()
                .or_else(|| desc.marked_wrongly(word).then_some(Fault::OnNodeFlag)),
        });
        Some((id, core.id, node, fault?))
    };
    match steady(desc, TRIES, look) {
        // The same word and cache: the slab was this one, and still, all the time.
        Some(Some((id, cache, node, fault))) if desc.cache.load(Relaxed) == id => {
            found.tell(Finding::new(cache, node, fault).in_slab(pages.address(slab)));
        }
        Some(_) => {}
        None => found.unchecked += 1,
    }
}

/// Checks the page map of a slab and the number of its objects.
fn check_shape(engine: &EngineCore, core: &CacheCore, slab: u32, word: Word) -> Option<Fault> {
    let pages = &engine.pages;
    let bytes = pages.run_bytes(slab);
    let fits = (bytes / core.size as usize).min(MAX_OBJECTS);
    (0..(bytes / PAGE) as u32)
        .find(|page| pages.head_entry(slab + page).load(Relaxed) != slab)
        .map(|page| Fault::PageMap { page })
        .or_else(|| {
            (usize::from(word.objects()) != fits).then_some(Fault::Counts {
                inuse: word.inuse(),
                objects: word.objects(),
            })
        })
}

/// Counts the slabs of all caches against their counters, under the page lock.
pub(super) fn check_counts(engine: &EngineCore, found: &mut Validation) {
    let pages = &engine.pages;
    let mut n = [0u64; MAX_CACHES as usize];
    let _held = pages.lock.lock();
    for page in pages.heads() {
        let desc = pages.desc(page);
        let id = desc.cache.load(Relaxed).wrapping_sub(1) as usize;
        if unpack(desc.run.load(Relaxed)).0 == state::SLAB
            && let Some(n) = n.get_mut(id)
        {
            *n += 1;
        }
    }
    for core in engine.caches() {
        let slabs = |part: &crate::core::NodePart| part.node.nr_slabs.load(Relaxed);
        let counted: u64 = core.nodes.iter().map(slabs).sum();
        let there = n.get(core.id as usize).copied().unwrap_or(0);
        if there != counted {
            let fault = Fault::SlabCount {
                found: there,
                counted,
            };
            found.tell(Finding::new(core.id, 0, fault));
        }
    }
}
