//! Checks of lists, slabs, barns and the page map.

use super::{Fault, Finding, Validation};
use crate::core::{CacheCore, Path};
use crate::engine::EngineCore;
use crate::order::MAX_OBJECTS;
use crate::pages::{state, unpack};
use crate::slab::{Links, NIL, NONE, Table, Word};
use crate::sync::Ordering::Relaxed;
use crate::sys::PAGE;

/// Times to look at a slab whose word keeps changing.
const TRIES: usize = 16;

/// One bit for each object of a slab.
pub(crate) struct Seen([u64; MAX_OBJECTS / 64 + 1]);

impl Seen {
    pub const fn new() -> Self {
        Self([0; MAX_OBJECTS / 64 + 1])
    }

    /// Marks an object; whether it was marked before.
    pub fn mark(&mut self, object: u16) -> bool {
        let word = &mut self.0[usize::from(object) / 64];
        let bit = 1 << (object % 64);
        let before = *word & bit != 0;
        *word |= bit;
        before
    }

    pub fn has(&self, object: u16) -> bool {
        self.0[usize::from(object) / 64] & (1 << (object % 64)) != 0
    }
}

/// Walks a word's list; ends at the first fault.
fn walk(core: &CacheCore, slab: u32, word: Word, seen: &mut Seen) -> Result<(), Fault> {
    let (inuse, objects) = (word.inuse(), word.objects());
    if inuse > objects || objects == 0 || usize::from(objects) > MAX_OBJECTS {
        return Err(Fault::Counts { inuse, objects });
    }
    let links = core.links(slab);
    let (mut object, mut before, mut found) = (word.head(), NONE, 0u16);
    while object != NONE {
        if object >= objects {
            return Err(Fault::BadLink {
                object: before,
                link: object,
            });
        }
        if seen.mark(object) {
            return Err(Fault::Cycle { object });
        }
        found += 1;
        before = object;
        object = links.get(object);
    }
    if found == word.free() {
        Ok(())
    } else {
        Err(Fault::FreeCount {
            found,
            counted: word.free(),
        })
    }
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
        found.tell(Finding {
            cache: core.id,
            node: node as u32,
            slab: if slab == NIL { 0 } else { table.address(slab) },
            fault,
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
        if let Err(fault) = walk(core, at, word, &mut Seen::new()) {
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
            let mut tell = |slab: usize, fault| {
                found.tell(Finding {
                    cache: core.id,
                    node: node as u32,
                    slab,
                    fault,
                });
            };
            // An object in an array is in use for its slab, which so cannot go away.
            let Some((slab, object)) = core.locate_checked(place.load(Relaxed)) else {
                tell(0, Fault::BarnObject);
                continue;
            };
            let mut seen = Seen::new();
            let word = core.desc(slab).load();
            let walked = walk(core, slab, word, &mut seen);
            let still = core.desc(slab).load() == word;
            if still && walked.is_ok() && seen.has(object) {
                tell(
                    core.engine.pages.address(slab),
                    Fault::BarnObjectFree { object },
                );
            }
        }
    });
}

/// Checks every slab of the engine: map, counts, list.
pub(super) fn check_all(engine: &EngineCore, caches: &[&CacheCore], found: &mut Validation) {
    let pages = &engine.pages;
    let mut page = 1;
    while page < pages.frontier() {
        let (is, order) = unpack(pages.desc(page).run.load(Relaxed));
        let head = pages.head_entry(page).load(Relaxed) == page;
        if head && is == state::SLAB {
            found.slabs += 1;
            check_slab(engine, caches, page, found);
        }
        page = page.saturating_add(if head { 1 << order.min(20) } else { 1 });
    }
    for core in caches {
        check_slab_count(engine, core, found);
    }
}

fn check_slab(engine: &EngineCore, caches: &[&CacheCore], slab: u32, found: &mut Validation) {
    let pages = &engine.pages;
    let desc = pages.desc(slab);
    for _ in 0..TRIES {
        let word = desc.load();
        let id = desc.cache.load(Relaxed);
        let Some(core) = caches.iter().find(|core| core.id + 1 == id) else {
            // Discarded meanwhile, or of a cache made after the list of caches was.
            return;
        };
        let bytes = pages.run_bytes(slab);
        let first = (0..(bytes / PAGE) as u32)
            .find(|page| pages.head_entry(slab + page).load(Relaxed) != slab)
            .map(|page| Fault::PageMap { page });
        let fits = (bytes / core.size as usize).min(MAX_OBJECTS);
        let counts = (usize::from(word.objects()) != fits).then_some(Fault::Counts {
            inuse: word.inuse(),
            objects: word.objects(),
        });
        let fault = first.or(counts).or_else(|| match core.path {
            // Its lists are walked under the lock; somebody may be writing to the slots.
            Path::Debug => None,
            Path::Policy(_) => walk(core, slab, word, &mut Seen::new()).err(),
        });
        // The same word and cache: the slab was this one, and still, all the time.
        if desc.load() == word && desc.cache.load(Relaxed) == id {
            if let Some(fault) = fault {
                found.tell(Finding {
                    cache: core.id,
                    node: desc.node.load(Relaxed),
                    slab: pages.address(slab),
                    fault,
                });
            }
            return;
        }
    }
    found.unchecked += 1;
}

/// Counts a cache's slabs against the counters, under the page lock.
fn check_slab_count(engine: &EngineCore, core: &CacheCore, found: &mut Validation) {
    let pages = &engine.pages;
    let _held = pages.lock.lock();
    let (mut page, mut n) = (1, 0);
    while page < pages.frontier() {
        let desc = pages.desc(page);
        let (is, order) = unpack(desc.run.load(Relaxed));
        let head = pages.head_entry(page).load(Relaxed) == page;
        n += u64::from(head && is == state::SLAB && desc.cache.load(Relaxed) == core.id + 1);
        page = page.saturating_add(if head { 1 << order.min(20) } else { 1 });
    }
    let slabs = |part: &crate::core::NodePart| part.node.nr_slabs.load(Relaxed);
    let counted: u64 = core.nodes.iter().map(slabs).sum();
    if n != counted {
        found.tell(Finding {
            cache: core.id,
            node: 0,
            slab: 0,
            fault: Fault::SlabCount { found: n, counted },
        });
    }
}
