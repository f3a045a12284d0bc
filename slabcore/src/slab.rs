//! One slab: its descriptor, its packed word, and the free of a chain of objects.
//!
//! Source of truth: `struct slab` and `__slab_free` of mm/slub.c in Linux 6.12.
//! Differences: the free list is an index, not a pointer, so that list, counts
//! and flags fit in one 64-bit word; the word has a tag that every change
//! advances. What becomes of a slab after a free is decided by the callers.
//!
//! Layout of the word, from bit 0: head 16 (0xffff is "none"), inuse 16,
//! objects 15, frozen 1, wake 1, tag 15. `inuse` counts objects that are not in
//! the word's own list: given out, or in the list of whoever holds the slab.

use crate::sync::{AtomicU32, AtomicU64, Guard, Lock, Ordering, fence};

/// No object.
pub const NONE: u16 = 0xffff;
/// No slab: descriptor 0 stands for nothing.
pub const NIL: u32 = 0;

const FROZEN: u64 = 1 << 47;
const WAKE: u64 = 1 << 48;
const TAG: u64 = 1 << 49;

/// A value of the slab word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    /// The word of a slab of which no object is in the word's list.
    pub const fn taken(objects: u16, frozen: bool) -> Self {
        let word = Self((objects as u64) << 32).with_list(NONE, objects);
        word.with_frozen(frozen)
    }
    /// First free object, or [`NONE`].
    pub const fn head(self) -> u16 {
        self.0 as u16
    }
    /// Objects that are not in the word's list.
    pub const fn inuse(self) -> u16 {
        (self.0 >> 16) as u16
    }
    /// Objects of the slab.
    pub const fn objects(self) -> u16 {
        (self.0 >> 32) as u16 & 0x7fff
    }
    /// Objects in the word's list.
    pub const fn free(self) -> u16 {
        self.objects().wrapping_sub(self.inuse())
    }
    /// Held by one slot; other slots must not put it on a list.
    pub const fn frozen(self) -> bool {
        self.0 & FROZEN != 0
    }
    /// The holder wants to be told when enough objects are free.
    pub const fn wake(self) -> bool {
        self.0 & WAKE != 0
    }
    /// The holder wants to be told, and has not been because too few objects are free.
    pub const fn asks(self, wake: u16) -> bool {
        self.wake() && self.free() < wake
    }
    /// Number of changes, modulo 2^15.
    pub const fn tag(self) -> u16 {
        (self.0 >> 49) as u16
    }
    /// With another list.
    #[must_use]
    pub const fn with_list(self, head: u16, inuse: u16) -> Self {
        Self(self.0 & !0xffff_ffff | head as u64 | (inuse as u64) << 16)
    }
    /// With the whole list taken away.
    #[must_use]
    pub const fn emptied(self) -> Self {
        self.with_list(NONE, self.objects())
    }
    /// With the frozen bit set or clear.
    #[must_use]
    pub const fn with_frozen(self, on: bool) -> Self {
        Self(if on {
            self.0 | FROZEN
        } else {
            self.0 & !FROZEN
        })
    }
    /// With the wake bit set or clear.
    #[must_use]
    pub const fn with_wake(self, on: bool) -> Self {
        Self(if on { self.0 | WAKE } else { self.0 & !WAKE })
    }
    /// A word whose parts another process has kept in its own order.
    pub const fn of_parts(head: u16, inuse: u16, objects: u16, frozen: bool, wake: bool) -> Self {
        Self::taken(objects & 0x7fff, frozen)
            .with_list(head, inuse)
            .with_wake(wake)
    }
    const fn tagged_after(self, old: Self) -> Self {
        Self(self.0 & (TAG - 1) | (old.0 & !(TAG - 1)).wrapping_add(TAG))
    }
}

/// Links between free objects, kept in the objects.
pub trait Links {
    /// The object after `object` in its list.
    fn get(&self, object: u16) -> u16;
    /// Sets the object after `object`.
    fn set(&self, object: u16, next: u16);
}

/// Linked objects of one slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// First object.
    pub head: u16,
    /// Last object; its link is not set.
    pub tail: u16,
    /// How many.
    pub len: u16,
}

impl Chain {
    /// A chain of one object.
    pub const fn one(object: u16) -> Self {
        Self {
            head: object,
            tail: object,
            len: 1,
        }
    }
}

/// Where the holder of a slab keeps it; the holder's own note.
pub mod place {
    /// On no list of a slot.
    pub const NOWHERE: u32 = 0;
    /// The slab that is allocated from.
    pub const CURRENT: u32 = 1;
    /// On the slot's list of slabs with free objects.
    pub const PARTIAL: u32 = 2;
    /// On the slot's list of slabs that were full when last seen.
    pub const FULL: u32 = 3;
}

/// What is known of a page run; for a slab, everything but the objects.
///
/// All zero is a valid descriptor of nothing.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Desc {
    /// The packed word.
    pub word: AtomicU64,
    /// Cache id << 32 | slot that owns the slab (hybrid); changed under that slot's wake queue lock.
    pub owner: AtomicU64,
    /// The owner's free objects, a bit for each, or the address of such bits (`own.rs`).
    pub own: AtomicU64,
    /// Previous in a list; protected by the list's lock or owner.
    pub prev: AtomicU32,
    /// Next in a list; as `prev`.
    pub next: AtomicU32,
    /// Cache id + 1 while the run is a slab, else 0; written under the page lock.
    pub cache: AtomicU32,
    /// State, order and cleanness of the page run; written under the page lock.
    pub run: AtomicU32,
    /// Number of objects that `own` tells of. Meaningful only while owned.
    pub own_free: AtomicU32,
    /// Next in a wake queue; under its lock.
    pub queue_next: AtomicU32,
    /// 1 while in a wake queue; under its lock.
    pub queued: AtomicU32,
    /// 1 while on the node's partial list; under the list lock.
    pub on_node: AtomicU32,
    /// One of [`place`]; the holder's.
    pub place: AtomicU32,
    /// Node of the slab; set once.
    pub node: AtomicU32,
}

#[cfg(not(any(loom, shuttle)))]
crate::segment::layout::fields!(Desc, "desc": word, owner, own, prev, next, cache, run, own_free, queued,
    on_node, place, node);

/// Finds descriptors by index.
pub trait Table {
    /// The descriptor of index `index`.
    fn desc(&self, index: u32) -> &Desc;
}

/// What a free does to a slab that was full and is held by nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WasFull {
    /// It goes to the node's list: needs the list lock before the change.
    ToNode,
    /// It is frozen for the freeing slot's partial list.
    FreezeForSlot,
    /// It goes to the freeing slot's partial list as it is.
    ToSlot,
}

/// A chain that has been freed, and what the freeing thread has to do now.
#[derive(Debug)]
pub struct Freed<'l> {
    /// The word before.
    pub old: Word,
    /// The word after.
    pub new: Word,
    /// The list lock, if the change may need a change of the node's list.
    pub guard: Option<Guard<'l>>,
    /// Whether the slab is on the node's list; known when `guard` is held.
    pub on_node: bool,
    /// The wake bit was set and has been cleared by this free: tell the owner.
    pub tell: bool,
    /// Attempts that lost against others.
    pub retries: u32,
}

impl Desc {
    /// The word's present value.
    #[inline]
    pub fn load(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// Whether the word is still this one, after links have been read: then they were the
    /// links of this word, and not what a later holder wrote to the objects.
    pub fn still(&self, word: Word) -> bool {
        // Together with the fence of whoever took the objects; an acquire load alone would
        // not keep the reads of links before it.
        fence(Ordering::Acquire);
        Word(self.word.load(Ordering::Relaxed)) == word
    }

    /// Whether the slab is marked as listed although by its word it is not: a slab that is
    /// held or full is on no list. Only to be believed if the word is [`Desc::still`] the same.
    pub fn marked_wrongly(&self, word: Word) -> bool {
        (word.frozen() || word.head() == NONE) && self.on_node.load(Ordering::Relaxed) != 0
    }

    /// Sets the word of a slab that nobody else can reach, keeping the tag going.
    pub fn reset(&self, word: Word) {
        let old = Word(self.word.load(Ordering::Relaxed));
        self.word.store(word.tagged_after(old).0, Ordering::Release);
        fence(Ordering::Release);
    }

    /// Empties the list of a slab that is about to be discarded: its memory may go back to
    /// the system, and read as zero, before the descriptor says that it is no slab.
    pub fn retire(&self) {
        self.reset(Word::taken(self.load().objects(), true));
    }

    /// One attempt to replace `old`; the tag advances.
    #[inline]
    pub fn replace(&self, old: Word, new: Word) -> bool {
        let new = new.tagged_after(old).0;
        self.word
            .compare_exchange(old.0, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// As `replace`, by whoever may write to the objects of the list from then on.
    #[inline]
    fn replace_and_write(&self, old: Word, new: Word) -> bool {
        let done = self.replace(old, new);
        // What is written to the objects is seen by others after the word: see `still`.
        fence(Ordering::Release);
        done
    }

    /// Changes the word until it succeeds or `change` declines; gives old and new.
    #[inline]
    pub fn update(&self, mut change: impl FnMut(Word) -> Option<Word>) -> Option<(Word, Word)> {
        loop {
            let old = self.load();
            let new = change(old)?;
            if self.replace_and_write(old, new) {
                return Some((old, new));
            }
        }
    }

    /// Frees a chain into the word's list.
    ///
    /// The slab cannot go away before the word changes, because the chain's
    /// objects are in use until then. Afterwards this thread may touch it only
    /// if it holds the list lock and the slab is on the list, or if it is the
    /// one that must list it.
    #[inline]
    pub fn free_chain<'l>(
        &self,
        links: &impl Links,
        chain: Chain,
        was_full: WasFull,
        wake: u16,
        list_lock: &'l Lock,
    ) -> Freed<'l> {
        let mut retries = 0;
        loop {
            let old = self.load();
            let full = old.head() == NONE;
            links.set(chain.tail, old.head());
            let mut new = old.with_list(chain.head, old.inuse().wrapping_sub(chain.len));
            let mut tell = false;
            let mut guard = None;
            let mut on_node = false;
            if old.frozen() {
                tell = old.wake() && new.free() >= wake;
                new = new.with_wake(old.wake() && !tell);
            } else if full && was_full != WasFull::ToNode {
                new = new.with_frozen(was_full == WasFull::FreezeForSlot);
            } else if full || new.inuse() == 0 {
                guard = Some(list_lock.lock());
                // Read before the change: afterwards a holder may discard the slab.
                on_node = self.on_node.load(Ordering::Relaxed) != 0;
            }
            if self.replace(old, new) {
                return Freed {
                    old,
                    new,
                    guard,
                    on_node,
                    tell,
                    retries,
                };
            }
            retries += 1;
        }
    }

    /// Takes the whole list of a slab that this thread holds; the word is then
    /// full and has the given frozen bit. The chain's last link is [`NONE`].
    #[inline]
    pub fn take_all(&self, frozen: bool) -> (u16, u16) {
        loop {
            let old = self.load();
            let new = old.emptied().with_frozen(frozen).with_wake(false);
            if self.replace_and_write(old, new) {
                return (old.head(), old.free());
            }
        }
    }

    /// Takes the whole list of a slab that this thread owns if it has at least `wake`
    /// objects; else sets the wake bit, so that the free that makes it so many tells.
    #[inline]
    pub fn take_or_ask(&self, wake: u16) -> Option<(u16, u16)> {
        let (old, _) = self.update(|old| {
            Some(if old.free() >= wake {
                old.emptied()
            } else {
                old.with_wake(true)
            })
        })?;
        (old.free() >= wake).then_some((old.head(), old.free()))
    }

    /// Pops up to `want` objects of a slab that only this thread may take from:
    /// others push, so a list below a head that has not changed is as it was.
    /// Gives the first object, their number, and whether some are left and the
    /// slab still held; follow the links for the rest. When none is left, the
    /// slab is full and whoever frees into it may list it at once.
    pub fn take_some(&self, links: &impl Links, want: u16) -> (u16, u16, bool) {
        loop {
            let old = self.load();
            let mut rest = old.head();
            let mut got = 0;
            while got < want && rest != NONE {
                rest = links.get(rest);
                got += 1;
            }
            if got == 0 {
                return (NONE, 0, true);
            }
            // A list that ends early is broken: what is behind stays out of use.
            let inuse = match rest {
                NONE => old.objects(),
                _ => old.inuse() + got,
            };
            if self.replace_and_write(old, old.with_list(rest, inuse)) {
                return (old.head(), got, rest != NONE);
            }
        }
    }

    /// Lets go of a held slab, splicing the holder's own chain to the list.
    #[inline]
    pub fn thaw(&self, links: &impl Links, own: Option<Chain>) -> Word {
        loop {
            let old = self.load();
            let mut new = old.with_frozen(false).with_wake(false);
            if let Some(own) = own {
                links.set(own.tail, old.head());
                new = new.with_list(own.head, old.inuse().wrapping_sub(own.len));
            }
            if self.replace(old, new) {
                return new;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::RefCell;

    struct Plain(RefCell<Vec<u16>>);
    impl Links for Plain {
        fn get(&self, object: u16) -> u16 {
            self.0.borrow()[usize::from(object)]
        }
        fn set(&self, object: u16, next: u16) {
            self.0.borrow_mut()[usize::from(object)] = next;
        }
    }

    fn slab(objects: u16) -> (Desc, Plain, Lock) {
        let desc = Desc::default();
        desc.reset(Word::taken(objects, false));
        let links = Plain(RefCell::new(vec![NONE; usize::from(objects)]));
        (desc, links, Lock::new())
    }

    #[test]
    fn fields_of_the_word_do_not_mix() {
        let word = Word::taken(0x7fff, true).with_list(0x1234, 0x5678);
        assert_eq!((word.head(), word.inuse()), (0x1234, 0x5678));
        assert_eq!(word.objects(), 0x7fff);
        assert!(word.frozen() && !word.wake() && word.tag() == 0);
        let word = word.with_wake(true).with_frozen(false);
        assert!(word.wake() && !word.frozen() && word.objects() == 0x7fff);
    }

    #[test]
    fn the_tag_wraps_without_touching_the_rest() {
        let (desc, _, _) = slab(3);
        for _ in 0..(1 << 15) + 5 {
            desc.update(Some);
        }
        let word = desc.load();
        assert_eq!((word.objects(), word.inuse(), word.head()), (3, 3, NONE));
        assert!(!word.frozen() && !word.wake());
    }

    #[test]
    fn what_is_freed_can_be_taken() {
        let (desc, links, lock) = slab(4);
        links.set(2, 1);
        let chain = Chain {
            head: 2,
            tail: 1,
            len: 2,
        };
        let freed = desc.free_chain(&links, chain, WasFull::ToNode, 0, &lock);
        assert!(freed.guard.is_some() && freed.old.head() == NONE);
        drop(freed);
        let freed = desc.free_chain(&links, Chain::one(0), WasFull::ToNode, 0, &lock);
        assert!(freed.guard.is_none(), "neither full nor empty: no lock");
        drop(freed);
        assert_eq!(desc.take_some(&links, 1), (0, 1, true));
        assert_eq!(desc.load().free(), 2);
        assert_eq!(desc.take_all(true), (2, 2));
        assert_eq!(desc.load().inuse(), 4);
    }

    #[test]
    fn the_owner_is_told_once_and_only_at_the_threshold() {
        let (desc, links, lock) = slab(4);
        desc.update(|w| Some(w.with_frozen(true).with_wake(true)));
        let tell = |object| {
            desc.free_chain(&links, Chain::one(object), WasFull::ToNode, 2, &lock)
                .tell
        };
        assert_eq!([0, 1, 2].map(tell), [false, true, false]);
    }
}
