//! One slab: its word's list, its holder's list, and what the marks say of its objects.

use super::marks::{Marks, has_cpu_slab, has_owners};
use super::{Holder, SlabDump, State};
use crate::core::{CacheCore, Path};
use crate::pages::unpack;
use crate::slab::{Desc, Links, NONE, Word, place};
use crate::slot::MAX_SLOTS;
use crate::sync::Ordering::{Acquire, Relaxed};

/// Times to look at a slab whose word keeps changing.
const TRIES: usize = 16;

impl SlabDump {
    pub(crate) fn empty() -> Self {
        Self {
            address: 0,
            order: 0,
            node: 0,
            inuse: 0,
            frozen: false,
            wake: false,
            queued: false,
            on_node: false,
            position: None,
            holder: Holder::Nobody,
            states: Vec::new(),
            chain: Vec::new(),
            own: Vec::new(),
            settled: false,
            tracks: Vec::new(),
            bytes: Vec::new(),
        }
    }

    pub(super) fn reserve(&mut self, objects: usize, bytes: usize) {
        self.clear();
        self.states.reserve(objects);
        self.chain.reserve(objects);
        self.own.reserve(objects);
        self.tracks.reserve(objects);
        self.bytes.reserve(bytes);
    }

    pub(crate) fn clear(&mut self) {
        self.states.clear();
        self.chain.clear();
        self.own.clear();
        self.tracks.clear();
        self.bytes.clear();
    }

    /// Whether a slab of so many objects can be looked at without allocating.
    pub(super) fn has_room(&self, objects: u16) -> bool {
        let n = usize::from(objects);
        let of = [
            self.states.capacity(),
            self.chain.capacity(),
            self.own.capacity(),
            self.tracks.capacity(),
        ];
        of.into_iter().all(|capacity| capacity >= n)
    }

    /// Looks at a slab; false if it is the cache's no more.
    pub(super) fn look(&mut self, core: &CacheCore, slab: u32, marks: &Marks, bytes: bool) -> bool {
        if core.path == Path::Debug {
            return self.look_locked(core, slab, marks, bytes);
        }
        let desc = core.desc(slab);
        for _ in 0..TRIES {
            let word = desc.load();
            if desc.cache.load(Acquire) != core.id + 1 || !self.has_room(word.objects()) {
                return false;
            }
            self.read(core, slab, word, marks);
            let sound = self.lists(core, slab, word);
            if bytes {
                self.copy(core, slab);
            }
            // A flush of marks that no longer hold may have moved anything but the word's list.
            let still = marks.still(core);
            let same = desc.load() == word && desc.cache.load(Relaxed) == core.id + 1;
            self.settled = same && still && sound;
            if same {
                self.tell(core, slab, word, marks, still && sound);
                return true;
            }
        }
        self.states.fill(State::Unknown);
        true
    }

    /// What the descriptor says.
    fn read(&mut self, core: &CacheCore, slab: u32, word: Word, marks: &Marks) {
        let desc = core.desc(slab);
        self.clear();
        self.address = core.engine.pages.address(slab);
        self.order = unpack(desc.run.load(Relaxed)).1;
        self.node = desc.node.load(Relaxed);
        self.inuse = word.inuse();
        self.frozen = word.frozen();
        self.wake = word.wake();
        self.queued = desc.queued.load(Relaxed) == 1;
        self.on_node = desc.on_node.load(Relaxed) == 1;
        self.position = marks.position(slab);
        self.holder = holder_of(core, slab, marks);
        self.states
            .resize(usize::from(word.objects()), State::Allocated);
    }

    /// Follows both lists; false where one leads astray.
    fn lists(&mut self, core: &CacheCore, slab: u32, word: Word) -> bool {
        let objects = word.objects();
        let links = core.links_to_see(slab);
        let (chain, own) = (&mut self.chain, &mut self.own);
        let sound = follow(&links, word.head(), objects, word.free(), |object| {
            push(chain, object)
        });
        let own = own_objects(core, slab, self.holder, |object| push(own, object));
        sound && own && self.chain.len() == usize::from(word.free())
    }

    /// Sets the states from lists that did not change and from the marks.
    fn tell(&mut self, core: &CacheCore, slab: u32, word: Word, marks: &Marks, sure: bool) {
        self.tell_lists(word, has_owners(core), sure);
        if !sure {
            return;
        }
        let size = usize::from(word.objects()) * core.size as usize;
        for (address, state) in marks.arrays_in(self.address..self.address + size) {
            if let Some((_, object)) = core.locate_checked(*address) {
                debug_assert_eq!(core.locate(*address).0, slab);
                put(&mut self.states, object, *state, true);
            }
        }
    }

    /// Sets the states from lists that did not change. `owners`: slabs have owners (hybrid).
    pub(crate) fn tell_lists(&mut self, word: Word, owners: bool, sure: bool) {
        let taken = match self.holder {
            Holder::InHand { .. } | Holder::Full { .. } => State::Remote,
            Holder::Partial { .. } if owners => State::Remote,
            _ => State::Free,
        };
        let slot = match self.holder {
            Holder::InHand { slot } | Holder::Partial { slot } | Holder::Full { slot } => slot,
            Holder::Nobody => 0,
        };
        if !sure {
            // What is in the word's list is known all the same.
            self.states.fill(State::Unknown);
        }
        let known = self.chain.len() == usize::from(word.free());
        let in_chain = if known { taken } else { State::Unknown };
        for object in &self.chain {
            put(&mut self.states, *object, in_chain, sure);
        }
        if !sure {
            return;
        }
        for object in &self.own {
            put(&mut self.states, *object, State::Own { slot }, true);
        }
    }

    /// Notes where an object is, by what is known for sure.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn put(&mut self, object: u16, state: State) {
        put(&mut self.states, object, state, true);
    }

    /// An object that looks allocated is out of use.
    pub(crate) fn take_out(&mut self, object: u16) {
        if let Some(state) = self.states.get_mut(usize::from(object))
            && *state == State::Allocated
        {
            *state = State::Quarantined;
        }
    }

    /// A debug cache's slab, under its node's lock.
    fn look_locked(&mut self, core: &CacheCore, slab: u32, marks: &Marks, bytes: bool) -> bool {
        let desc = core.desc(slab);
        let node = desc.node.load(Relaxed);
        let _held = core.part_of(slab).node.list_lock.lock();
        let word = desc.load();
        if desc.cache.load(Acquire) != core.id + 1
            || desc.node.load(Relaxed) != node
            || !self.has_room(word.objects())
        {
            return false;
        }
        self.read(core, slab, word, marks);
        self.settled = core.at_rest(slab) && self.lists(core, slab, word);
        if bytes {
            self.copy(core, slab);
        }
        if !self.settled {
            self.states.fill(State::Unknown);
            return true;
        }
        self.tell(core, slab, word, marks, true);
        let Some(hooks) = core.hooks else {
            return true;
        };
        for object in 0..word.objects() {
            let at = core.object_ref(slab, object);
            if self.states.get(usize::from(object)) == Some(&State::Allocated) && hooks.is_out(&at)
            {
                self.take_out(object);
            }
            if let Some(tracks) = hooks.tracks(&at) {
                self.tracks.push(tracks);
            }
        }
        true
    }

    /// Copies the slab's bytes as far as there is room.
    fn copy(&mut self, core: &CacheCore, slab: u32) {
        let run = core.engine.pages.run_bytes(slab);
        self.bytes.clear();
        for at in 0..run.min(self.bytes.capacity()) {
            // SAFETY: the run is mapped and stays so, whoever has it; its bytes are only shown, and
            // read one volatile byte at a time since their users may write them.
            let byte = unsafe { ((self.address + at) as *const u8).read_volatile() };
            self.bytes.push(byte);
        }
    }
}

/// Follows a list until `see` declines; false when it leaves the slab or does not end after `most`.
fn follow(
    links: &impl Links,
    head: u16,
    objects: u16,
    most: u16,
    mut see: impl FnMut(u16) -> bool,
) -> bool {
    let mut at = head;
    for _ in 0..most {
        if at == NONE {
            break;
        }
        if at >= objects || !see(at) {
            return false;
        }
        at = links.get(at);
    }
    true
}

/// Adds an object where there is room.
fn push(list: &mut Vec<u16>, object: u16) -> bool {
    let room = list.len() < list.capacity();
    if room {
        list.push(object);
    }
    room
}

/// Notes where an object is; in two places at once it is unknown where.
fn put(states: &mut [State], object: u16, state: State, sure: bool) {
    if let Some(place) = states.get_mut(usize::from(object)) {
        let fresh = *place == State::Allocated || !sure;
        *place = if fresh { state } else { State::Unknown };
    }
}

/// Who has a slab.
fn holder_of(core: &CacheCore, slab: u32, marks: &Marks) -> Holder {
    if has_owners(core) {
        owner(core, core.desc(slab))
    } else {
        marks.holder(slab)
    }
}

/// Visits the holder's own objects of a slab until `see` declines; false when they lead astray.
fn own_objects(
    core: &CacheCore,
    slab: u32,
    holder: Holder,
    mut see: impl FnMut(u16) -> bool,
) -> bool {
    let objects = core.desc(slab).load().objects();
    match holder {
        Holder::InHand { slot } if has_cpu_slab(core) => {
            let links = core.links_to_see(slab);
            follow(&links, core.row(slot).head(), objects, objects, see)
        }
        Holder::Nobody => true,
        _ if has_owners(core) => {
            let mut n = 0;
            let mut own = core.own_objects(slab);
            let whole = own.all(|object| {
                n += 1;
                object < objects && see(object)
            });
            whole && n == core.own_free(slab)
        }
        _ => true,
    }
}

/// Visits the holder's own objects of a slab, with the place they are in, until `see` declines.
pub(crate) fn each_own(
    core: &CacheCore,
    slab: u32,
    marks: &Marks,
    mut see: impl FnMut(u16, State) -> bool,
) {
    let holder = holder_of(core, slab, marks);
    let slot = match holder {
        Holder::InHand { slot } | Holder::Partial { slot } | Holder::Full { slot } => slot,
        Holder::Nobody => 0,
    };
    own_objects(core, slab, holder, |object| {
        see(object, State::Own { slot })
    });
}

/// The slot that owns a slab, by its descriptor.
fn owner(core: &CacheCore, desc: &Desc) -> Holder {
    let owner = desc.owner.load(Relaxed);
    let slot = owner as u32;
    if owner >> 32 != u64::from(core.id + 1) || slot >= MAX_SLOTS {
        return Holder::Nobody;
    }
    match desc.place.load(Relaxed) {
        place::CURRENT => Holder::InHand { slot },
        place::FULL => Holder::Full { slot },
        _ => Holder::Partial { slot },
    }
}
