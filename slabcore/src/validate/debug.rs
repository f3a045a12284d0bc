//! Checks of debug caches: free lists and bytes, slab by slab under the node's lock.
//!
//! Nothing of a slab but live objects' own bytes changes while that lock is held,
//! so each finding is confirmed by it. Damage is repaired on the spot.

use super::{Finding, Seen, Validation};
use crate::core::{CacheCore, Path};
use crate::debug::operation::Operation;
use crate::pages::{state, unpack};
use crate::slab::Table;
use crate::sync::Ordering::Relaxed;

/// Calls `each` for every slab that the page map says is the cache's.
fn each_slab(core: &CacheCore, mut each: impl FnMut(u32)) {
    let pages = &core.engine.pages;
    for page in pages.heads() {
        let desc = pages.desc(page);
        let (is, _) = unpack(desc.run.load(Relaxed));
        if is == state::SLAB && desc.cache.load(Relaxed) == core.id + 1 {
            each(page);
        }
    }
}

/// Checks all slabs of a debug cache; reports go to the operation's text.
pub(super) fn check_bytes(core: &CacheCore, found: &mut Validation, op: &mut Operation) {
    let Some(hooks) = core.hooks.filter(|_| core.path == Path::Debug) else {
        return;
    };
    each_slab(core, |slab| {
        let node = core.desc(slab).node.load(Relaxed);
        let held = core.part_of(slab).node.list_lock.lock();
        if !core.at_rest(slab) || core.desc(slab).node.load(Relaxed) != node {
            return;
        }
        let at = core.engine.pages.address(slab);
        let mut tell = |finding: Finding| found.tell(finding.in_slab(at));
        let mut seen = Seen::new();
        core.mend(&held, slab, &mut seen, op, &mut tell);
        // After a repair the list is shorter than the marks, or as long.
        let of = core.slab_ref(slab);
        hooks.check_slab(&of, &|object| seen.has(object), op, &mut tell);
        core.unlist_full(&held, slab);
    });
}

/// Reports what is in use in a cache that ends.
pub(crate) fn report_remaining(core: &CacheCore, op: &mut Operation) {
    let Some(hooks) = core.hooks else {
        return;
    };
    each_slab(core, |slab| {
        let held = core.part_of(slab).node.list_lock.lock();
        if core.at_rest(slab) {
            let mut seen = Seen::new();
            core.mend(&held, slab, &mut seen, op, &mut |_| ());
            hooks.on_remaining(&core.slab_ref(slab), &|object| seen.has(object), op);
        }
    });
}
