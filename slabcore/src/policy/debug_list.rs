//! Free lists of debug caches, which are followed without trusting them.
//!
//! Source of truth: `on_freelist` of mm/slub.c in Linux 6.12. Differences: a damaged
//! list keeps its sound part, and the hooks are told which objects it lost. All of it
//! runs under the list lock of the slab's node.

use crate::core::CacheCore;
use crate::debug::operation::Operation;
use crate::hooks::SlabRef;
use crate::slab::{Links, NONE};
use crate::sync::{Guard, Ordering::Relaxed};
use crate::validate::{Fault, Finding, Seen};

impl CacheCore {
    /// Whether the first object of a list and its link are what they should be.
    pub(super) fn head_is_good(&self, slab: u32) -> bool {
        let word = self.desc(slab).load();
        let (head, objects) = (word.head(), word.objects());
        if head >= objects {
            return false;
        }
        let next = self.links(slab).get(head);
        let live = |object| {
            self.hooks
                .is_some_and(|hooks| hooks.looks_live(&self.object_ref(slab, object)))
        };
        (next == NONE || next < objects) && !live(head) && (next == NONE || !live(next))
    }

    /// Walks a list: whether it is sound, as far as can be seen without marks, and
    /// whether `object` is in it.
    pub(super) fn scan(&self, slab: u32, object: u16) -> (bool, bool) {
        let word = self.desc(slab).load();
        let links = self.links(slab);
        let (mut at, mut n, mut found) = (word.head(), 0, false);
        while at != NONE {
            if at >= word.objects() || n > word.free() {
                return (false, found);
            }
            found |= at == object;
            n += 1;
            at = links.get(at);
        }
        (n == word.free(), found)
    }

    /// Walks a list, marks its objects, and cuts or recounts it where it is damaged.
    /// The slab stays on the node's list even if nothing is left of its own.
    pub fn mend(
        &self,
        _held: &Guard<'_>,
        slab: u32,
        seen: &mut Seen,
        op: &mut Operation,
        tell: &mut dyn FnMut(Finding),
    ) {
        let before = self.slab_ref(slab);
        let Some((left, last, fault)) = self.find_fault(&before, slab, seen) else {
            return;
        };
        let Some(hooks) = self.hooks else {
            return;
        };
        // Reported first, while the damaged link can be shown.
        hooks.on_list_fault(&before, fault, left, op);
        let cut = !matches!(fault, Fault::FreeCount { .. });
        if cut && last != NONE {
            self.links(slab).set(last, NONE);
        }
        let head = if cut && last == NONE {
            NONE
        } else {
            before.head
        };
        let inuse = before.objects.saturating_sub(left);
        self.desc(slab)
            .update(|word| Some(word.with_list(head, inuse)));
        tell(Finding::new(self.id, before.node, fault).in_slab(before.address));
        for object in (0..before.objects).filter(|&object| !seen.has(object)) {
            hooks.on_lost(&self.object_ref(slab, object));
        }
    }

    /// The first fault of a list, with the number of sound objects and the last of them.
    fn find_fault(&self, of: &SlabRef, slab: u32, seen: &mut Seen) -> Option<(u16, u16, Fault)> {
        let links = self.links(slab);
        let (mut at, mut before, mut n) = (of.head, NONE, 0u16);
        while at != NONE {
            let wild = at >= of.objects
                || self
                    .hooks
                    .is_some_and(|hooks| hooks.looks_live(&self.object_ref(slab, at)));
            if wild {
                let (object, link) = (before, at);
                return Some((n, before, Fault::BadLink { object, link }));
            }
            if seen.mark(at) {
                return Some((n, before, Fault::Cycle { object: at }));
            }
            n += 1;
            before = at;
            at = links.get(at);
        }
        let counted = of.objects.wrapping_sub(of.inuse);
        (n != counted).then_some((n, before, Fault::FreeCount { found: n, counted }))
    }

    /// Takes a slab off the node's list if it has no free object.
    pub fn unlist_full(&self, held: &Guard<'_>, slab: u32) {
        let desc = self.desc(slab);
        if desc.on_node.load(Relaxed) == 1 && desc.load().head() == NONE {
            let node = &self.part_of(slab).node;
            node.remove(held, &self.engine.pages, slab);
        }
    }
}
