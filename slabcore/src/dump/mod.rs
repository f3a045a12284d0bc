//! A look into caches: slabs, their objects and where each of them is.
//!
//! Works while the program runs. What is told of an object was true at one moment
//! of the look; where a running thread moved things meanwhile it is
//! [`State::Unknown`], never a guess. When no thread is in an operation everything
//! is known, and the states add up to the counters.
//!
//! How it is confirmed: a slab's list by its word, whose tag every change advances;
//! arrays and lists of slots by the stamps of their rows; debug caches are looked at
//! under the lock of the slab's node. The visitor runs without any lock, slab by slab,
//! and may allocate; what does not fit the room taken beforehand is left out and told.
//!
//! What it does not do: judge. `validate` does.

mod marks;
mod slab;

pub(crate) use marks::{Marks, wanted};
pub(crate) use slab::each_own;

use crate::cache::Cache;
use crate::core::{CacheCore, Path};
use crate::debug::depot::{Frames, Handle};
use crate::debug::layout::ObjectLayout;
use crate::debug::track::Track;
use crate::engine::{self, Engine, EngineCore};
use crate::order::MAX_OBJECTS;
use crate::pages::{state, unpack};
use crate::policy::Policy;
use crate::slab::{NIL, Table};
use crate::sync::Ordering::Relaxed;

/// Pages looked at while the registry's lock is held once.
const PAGES_AT_ONCE: u32 = 4096;
/// Times to look again at the rows of one cache because they changed.
const LOOKS_AGAIN: u32 = 64;

/// Where an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// With the program.
    Allocated,
    /// In its slab's list.
    Free,
    /// In the list of a slab that a slot holds: freed by others, not yet seen by the slot.
    Remote,
    /// In the slot's own list of the slab that it holds.
    Own {
        /// The slot.
        slot: u32,
    },
    /// In the main array of a slot.
    Main {
        /// The slot.
        slot: u32,
    },
    /// In the second array of a slot.
    Spare {
        /// The slot.
        slot: u32,
    },
    /// In a full array of a node's barn.
    Barn {
        /// The node.
        node: u32,
    },
    /// Out of use after damage.
    Quarantined,
    /// It changed while it was looked at, or is in two places.
    Unknown,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Allocated => f.write_str("allocated"),
            Self::Free => f.write_str("in its slab's list"),
            Self::Remote => f.write_str("in its held slab's list"),
            Self::Own { slot } => write!(f, "in slot {slot}'s own list"),
            Self::Main { slot } => write!(f, "in slot {slot}'s main array"),
            Self::Spare { slot } => write!(f, "in slot {slot}'s spare array"),
            Self::Barn { node } => write!(f, "in node {node}'s barn"),
            Self::Quarantined => f.write_str("out of use"),
            Self::Unknown => f.write_str("nobody knows where"),
        }
    }
}

/// Who has a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Nobody: it is on its node's list, or full.
    Nobody,
    /// A slot allocates from it.
    InHand {
        /// The slot.
        slot: u32,
    },
    /// It is on a slot's list of slabs with free objects.
    Partial {
        /// The slot.
        slot: u32,
    },
    /// It is owned by a slot that found it full (hybrid).
    Full {
        /// The slot.
        slot: u32,
    },
}

/// Who allocated and who freed an object, in a debug cache that keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tracks {
    /// The last allocation.
    pub allocated: Option<Track>,
    /// The last free.
    pub freed: Option<Track>,
    /// Bytes asked for; `None` where that is not kept.
    pub requested: Option<usize>,
}

/// A cache, before its slabs.
#[derive(Debug, Clone, Copy)]
pub struct CacheDump<'a> {
    /// Name.
    pub name: &'a str,
    /// Id.
    pub id: u32,
    /// Policy; `None` for a debug cache.
    pub policy: Option<Policy>,
    /// Bytes of an object.
    pub object_size: u32,
    /// Bytes from one object to the next.
    pub slab_size: u32,
    /// Where in its slot an object begins.
    pub object_offset: u32,
    /// Where in its slot a free object's link is.
    pub link_offset: u32,
    /// Alignment.
    pub align: u32,
    /// Page order of a slab.
    pub order: u32,
    /// Objects in a slab of that order.
    pub objs_per_slab: u32,
    /// The parts of a slot, in a debug cache.
    pub layout: Option<&'a ObjectLayout>,
}

/// One slab. The same value is used for all slabs, so copy what is to be kept.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the word's flags, as they are"
)]
pub struct SlabDump {
    /// Its address.
    pub address: usize,
    /// Its page order.
    pub order: u32,
    /// Its node.
    pub node: u32,
    /// Objects by its word that are not in the word's list.
    pub inuse: u16,
    /// Held by a slot.
    pub frozen: bool,
    /// The holder wants to be told when enough objects are free.
    pub wake: bool,
    /// In its holder's queue of slabs to look at.
    pub queued: bool,
    /// Marked as being on its node's list.
    pub on_node: bool,
    /// Its place in the node's list, from 0; `None` if it was not seen there.
    pub position: Option<u32>,
    /// Who has it.
    pub holder: Holder,
    /// Where each object is, by index.
    pub states: Vec<State>,
    /// The word's list in order.
    pub chain: Vec<u16>,
    /// The own list of the slot that holds it, in order.
    pub own: Vec<u16>,
    /// The lists are those of one moment.
    pub settled: bool,
    /// By index; empty unless it is a debug cache that keeps tracks.
    pub tracks: Vec<Tracks>,
    /// All bytes of the slab, if asked for. Live objects may have changed meanwhile.
    pub bytes: Vec<u8>,
}

/// Sums of one cache, after its slabs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Slabs.
    pub slabs: u64,
    /// Objects by where they are.
    pub allocated: u64,
    /// In lists of slabs that nobody holds.
    pub free: u64,
    /// In lists of slabs that are held.
    pub remote: u64,
    /// In own lists of slots.
    pub own: u64,
    /// In main arrays of slots.
    pub main: u64,
    /// In second arrays of slots.
    pub spare: u64,
    /// In barns.
    pub barn: u64,
    /// Out of use.
    pub quarantined: u64,
    /// Not known.
    pub unknown: u64,
    /// Sampled objects on pages of their own, which are in no slab; `None` where that is not
    /// known.
    pub guarded: Option<u64>,
    /// Objects in use by the counters; `None` where they were not reached.
    pub counted: Option<u64>,
    /// All of it is of one moment, or nothing changed meanwhile.
    pub exact: bool,
    /// The look came to its limit: what is beyond was not looked at.
    pub cut: bool,
}

impl Totals {
    /// Objects by where they are: allocated, free, remote, own, main, spare, barn, quarantined, unknown.
    pub const fn places(&self) -> [u64; 9] {
        [
            self.allocated,
            self.free,
            self.remote,
            self.own,
            self.main,
            self.spare,
            self.barn,
            self.quarantined,
            self.unknown,
        ]
    }

    pub(crate) fn add(&mut self, states: &[State]) {
        self.slabs += 1;
        for state in states {
            *match state {
                State::Allocated => &mut self.allocated,
                State::Free => &mut self.free,
                State::Remote => &mut self.remote,
                State::Own { .. } => &mut self.own,
                State::Main { .. } => &mut self.main,
                State::Spare { .. } => &mut self.spare,
                State::Barn { .. } => &mut self.barn,
                State::Quarantined => &mut self.quarantined,
                State::Unknown => &mut self.unknown,
            } += 1;
        }
    }
}

/// What a visitor gets to see.
#[derive(Debug)]
pub enum Visit<'a> {
    /// A cache begins.
    Cache(CacheDump<'a>),
    /// One of its slabs, in order of address.
    Slab(&'a SlabDump),
    /// The cache ends.
    End(Totals),
}

/// What a visitor wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    On,
    /// No more of this cache, not even its end.
    Skip,
    /// Nothing more.
    Stop,
}

/// What to look at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DumpOptions {
    /// Copy the bytes of each slab.
    pub bytes: bool,
}

impl Engine {
    /// Shows all caches to a visitor.
    pub fn dump(&self, options: DumpOptions, visit: &mut dyn FnMut(Visit<'_>) -> Next) {
        let mut dumper = Dumper::new(self.core, options);
        for id in 0..self.core.nr_caches.load(Relaxed) {
            if dumper.cache(id, visit) == Next::Stop {
                return;
            }
        }
    }

    /// The frames of a track's stack.
    pub fn stack(&self, stack: Handle) -> Option<Frames> {
        crate::debug::cache::known_depot(self.core)?.get(stack)
    }
}

impl Cache {
    /// Shows this cache to a visitor.
    pub fn dump(&self, options: DumpOptions, visit: &mut dyn FnMut(Visit<'_>) -> Next) {
        Dumper::new(self.core.engine, options).cache(self.core.id, visit);
    }
}

/// Room for one look, taken before any lock.
struct Dumper {
    engine: &'static EngineCore,
    options: DumpOptions,
    marks: Marks,
    slab: SlabDump,
}

/// Where the walk through a cache's slabs is.
struct Walk {
    id: u32,
    /// Address of the cache's name, which no other cache of the engine ever has.
    name: *const u8,
    page: u32,
    looks: u32,
    /// A slab has been shown.
    begun: bool,
    /// The marks were gathered again after that.
    moved: bool,
}

enum Step {
    Slab,
    Pages,
    /// More room is needed for a slab or for marks.
    Room,
    End,
}

impl Dumper {
    fn new(engine: &'static EngineCore, options: DumpOptions) -> Self {
        Self {
            engine,
            options,
            marks: Marks::default(),
            slab: SlabDump::empty(),
        }
    }

    /// The cache of a walk, if it is still there; the registry's lock is held.
    fn core(&self, walk: &Walk) -> Option<&'static CacheCore> {
        let core = self.engine.cache(walk.id)?;
        (core.name.as_ptr() == walk.name).then_some(core)
    }

    fn cache(&mut self, id: u32, visit: &mut dyn FnMut(Visit<'_>) -> Next) -> Next {
        let engine = self.engine;
        // What is copied is not the cache's: names and layouts live as long as the engine.
        let Some(head) = engine::with_registry(|| engine.cache(id).map(describe)) else {
            return Next::On;
        };
        match visit(Visit::Cache(head)) {
            Next::On => {}
            other => return other,
        }
        let mut walk = Walk {
            id,
            name: head.name.as_ptr(),
            page: 1,
            looks: LOOKS_AGAIN,
            begun: false,
            moved: false,
        };
        self.make_room(&walk, head.objs_per_slab as usize);
        let mut totals = Totals::default();
        let mut settled = true;
        loop {
            match engine::with_registry(|| self.step(&mut walk)) {
                Step::Pages => {}
                Step::Room => self.make_room(&walk, MAX_OBJECTS),
                Step::End => break,
                Step::Slab => {
                    settled &= self.slab.settled;
                    totals.add(&self.slab.states);
                    match visit(Visit::Slab(&self.slab)) {
                        Next::On => {}
                        other => return other,
                    }
                }
            }
        }
        let still = engine::with_registry(|| {
            self.core(&walk).is_some_and(|core| {
                totals.counted = Some(core.counters().live());
                core.path == Path::Debug || self.marks.still(core)
            })
        });
        let guarded = engine.guarded.map_or(0, |pool| pool.live(id));
        totals.guarded = Some(guarded);
        let known = Some(totals.allocated + guarded);
        totals.exact = settled && still && !walk.moved && known == totals.counted;
        match visit(Visit::End(totals)) {
            Next::Stop => Next::Stop,
            _ => Next::On,
        }
    }

    /// Takes the room for the marks and slabs of a cache. No lock is held.
    fn make_room(&mut self, walk: &Walk, objects: usize) {
        let wanted = engine::with_registry(|| self.core(walk).map(wanted));
        if let Some(wanted) = wanted {
            self.marks.reserve(wanted);
        }
        let bytes = if self.options.bytes {
            // A slab of one object may be of a high order.
            crate::sys::PAGE << crate::order::MAX_ORDER
        } else {
            0
        };
        self.slab.reserve(objects, bytes);
    }

    /// Looks at the next slab. The registry's lock is held: the cache stays, no slot is flushed.
    fn step(&mut self, walk: &mut Walk) -> Step {
        let Some(core) = self.core(walk) else {
            return Step::End;
        };
        if !self.marks.still(core) && walk.looks > 0 {
            walk.looks -= 1;
            walk.moved |= walk.begun;
            if !self.marks.gather(core) {
                return Step::Room;
            }
        }
        let pages = &core.engine.pages;
        let end = walk.page.saturating_add(PAGES_AT_ONCE);
        while walk.page < pages.frontier() {
            let page = walk.page;
            if page >= end {
                return Step::Pages;
            }
            let desc = pages.desc(page);
            let (is, order) = unpack(desc.run.load(Relaxed));
            let head = pages.head_entry(page).load(Relaxed) == page && page != NIL;
            if head && is == state::SLAB && desc.cache.load(Relaxed) == core.id + 1 {
                if !self.slab.has_room(desc.load().objects()) {
                    return Step::Room;
                }
                walk.page = page.saturating_add(1 << order.min(20));
                if self.slab.look(core, page, &self.marks, self.options.bytes) {
                    walk.begun = true;
                    return Step::Slab;
                }
                continue;
            }
            walk.page = page.saturating_add(if head { 1 << order.min(20) } else { 1 });
        }
        Step::End
    }
}

fn describe(core: &'static CacheCore) -> CacheDump<'static> {
    CacheDump {
        name: core.name,
        id: core.id,
        policy: match core.path {
            Path::Policy(policy) => Some(policy),
            Path::Debug => None,
        },
        object_size: core.object_size,
        slab_size: core.size,
        object_offset: core.object_offset,
        link_offset: core.link,
        align: core.align,
        order: core.order,
        objs_per_slab: u32::from(core.objects),
        layout: core.hooks.and_then(crate::hooks::DebugHooks::layout),
    }
}
