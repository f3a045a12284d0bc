//! A look into caches from outside, as `Engine::dump` gives it inside.
//!
//! A slab's list is confirmed by its word, rows by their stamps, debug caches by how often
//! the lock of the slab's node was taken. What moved is not known, and told so.

use std::collections::BTreeSet;

use super::contents::{self, Contents};
use super::image::{CacheImage, EngineImage};
use super::marks::{Look, Marks};
use super::memory::{Memory, u64_at};
use super::shape::Shape;
use super::slabs::{self, SlabImage};
use super::snapshot::Debug;
use super::{Refusal, StatMap};
use crate::debug::layout::ObjectLayout;
use crate::debug::poison;
use crate::debug::track::{Track, TrackKind};
use crate::dump::{CacheDump, DumpOptions, Holder, Next, SlabDump, State, Totals, Tracks, Visit};
use crate::slab::{Links as _, NONE};

/// Times to look again at what keeps changing.
const TRIES: usize = 8;
/// Entries of a quarantine that are looked at.
const MOST_OUT: usize = 1 << 20;

/// All caches of an engine whose names are wanted.
pub(super) fn engine(
    memory: &dyn Memory,
    shape: &Shape,
    stats: &StatMap,
    engine: &EngineImage,
    options: DumpOptions,
    visit: &mut dyn FnMut(Visit<'_>) -> Next,
) -> Result<Next, Refusal> {
    let slabs = slabs::by_cache(engine, slabs::collect(memory, shape, engine)?);
    for (cache, slabs) in engine.caches.iter().zip(slabs) {
        let look = Look {
            memory,
            shape,
            engine,
            cache,
            fast: stats.fast(),
        };
        let debug = Debug::read(memory, shape, cache);
        match visit(Visit::Cache(describe(cache, debug.layout.as_ref()))) {
            Next::On => {}
            Next::Skip => continue,
            Next::Stop => return Ok(Next::Stop),
        }
        let counted = stats.live(memory, shape, engine, cache)?;
        let slabs = slabs::again(memory, shape, engine, &slabs);
        let mut dumper = Dumper {
            out: quarantined(memory, shape, &debug),
            marks: Marks::gather(&look, &slabs),
            slab: SlabDump::empty(),
            totals: Totals::default(),
            settled: true,
            debug,
            options,
            look,
        };
        match dumper.slabs(&slabs, visit) {
            Next::On => {}
            Next::Skip => continue,
            Next::Stop => return Ok(Next::Stop),
        }
        let mut totals = dumper.totals;
        totals.counted = counted;
        totals.guarded = guarded(memory, shape, engine, cache);
        totals.exact = dumper.settled
            && totals.allocated + totals.guarded == totals.counted
            && stats.live(memory, shape, engine, cache)? == counted;
        if visit(Visit::End(totals)) == Next::Stop {
            return Ok(Next::Stop);
        }
    }
    Ok(Next::On)
}

fn describe<'c>(of: &'c CacheImage, layout: Option<&'c ObjectLayout>) -> CacheDump<'c> {
    CacheDump {
        name: &of.name,
        id: of.id,
        policy: of.policy,
        object_size: of.object_size,
        slab_size: of.size,
        object_offset: of.object_offset,
        link_offset: of.link,
        align: of.align,
        order: of.order,
        objs_per_slab: of.objects.into(),
        layout,
    }
}

/// Sampled objects of a cache on pages of their own.
fn guarded(memory: &dyn Memory, shape: &Shape, engine: &EngineImage, cache: &CacheImage) -> u64 {
    let at = shape.guarded.live as u64 + u64::from(cache.id) * 4;
    let mut word = [0; 4];
    let known = engine.guarded != 0
        && memory
            .get(engine.guarded.wrapping_add(at), &mut word)
            .is_ok();
    if known {
        u32::from_ne_bytes(word).into()
    } else {
        0
    }
}

/// Addresses of objects that are out of use.
pub(super) fn quarantined(memory: &dyn Memory, shape: &Shape, debug: &Debug) -> BTreeSet<u64> {
    let mut out = BTreeSet::new();
    let mut chunk = debug.quarantine;
    let mut bytes = vec![0; shape.quarantine_words * 8];
    let mut seen = 0;
    while chunk != 0 && seen < MOST_OUT && memory.get(chunk, &mut bytes).is_ok() {
        let entries = bytes.chunks(8).skip(1).map(|word| u64_at(word, 0));
        // The lowest bit tells that the object is out, and not only suspected.
        out.extend(
            entries
                .filter(|entry| entry & 1 != 0)
                .map(|entry| entry & !1),
        );
        seen += shape.quarantine_words.max(1);
        chunk = u64_at(&bytes, 0);
    }
    out
}

struct Dumper<'l> {
    look: Look<'l>,
    options: DumpOptions,
    debug: Debug,
    out: BTreeSet<u64>,
    marks: Marks,
    slab: SlabDump,
    totals: Totals,
    settled: bool,
}

impl Dumper<'_> {
    fn slabs(&mut self, all: &[SlabImage], visit: &mut dyn FnMut(Visit<'_>) -> Next) -> Next {
        let mut rest = all;
        while !rest.is_empty() {
            let (some, after) = rest.split_at(contents::batch(&self.look, rest).min(rest.len()));
            rest = after;
            let mut copies = contents::copy(&self.look, some);
            // Rows that moved since they were copied are copied again, but not for ever.
            for _ in 0..TRIES {
                if self.marks.still(&self.look) && copies.iter().all(|of| of.same) {
                    break;
                }
                self.marks = Marks::gather(&self.look, all);
                copies = contents::copy(&self.look, some);
            }
            let still = self.marks.still(&self.look);
            for copy in &copies {
                self.tell(copy, still);
                self.settled &= self.slab.settled;
                self.totals.add(&self.slab.states);
                match visit(Visit::Slab(&self.slab)) {
                    Next::On => {}
                    other => return other,
                }
            }
        }
        Next::On
    }

    /// Fills in the slab.
    fn tell(&mut self, of: &Contents, still: bool) {
        let look = self.look;
        let (slab, word) = (&of.slab, of.word);
        let objects = word.objects();
        self.slab.clear();
        self.slab.address = slab.address as usize;
        self.slab.order = slab.order;
        self.slab.node = slab.node;
        self.slab.inuse = word.inuse();
        self.slab.frozen = word.frozen();
        self.slab.wake = word.wake();
        self.slab.queued = slab.queued;
        self.slab.on_node = slab.on_node == 1;
        self.slab.position = self.marks.position(slab.page);
        let debug = look.cache.policy.is_none();
        self.slab.holder = if debug {
            Holder::Nobody
        } else {
            self.marks.holder(&look, slab)
        };
        self.slab
            .states
            .resize(usize::from(objects), State::Allocated);
        let sound = self.lists(of) && !of.bytes.is_empty();
        if self.options.bytes {
            self.slab.bytes.extend_from_slice(&of.bytes);
        }
        // A slab of a debug cache is its slab's word's alone.
        let sure = sound && (still || debug);
        self.slab.settled = of.same && sure;
        if !of.same {
            self.slab.states.fill(State::Unknown);
            return;
        }
        self.slab.tell_lists(word, look.has_owners(), sure);
        if sure {
            self.mark(of);
        }
        if debug {
            self.debug_parts(of);
        }
    }

    /// Follows both lists; false where one leads astray.
    fn lists(&mut self, of: &Contents) -> bool {
        let links = of.links(&self.look);
        let objects = of.word.objects();
        let follow = |head: u16, most: u16, out: &mut Vec<u16>| {
            let mut at = head;
            for _ in 0..most {
                if at == NONE {
                    return true;
                }
                if at >= objects {
                    return false;
                }
                out.push(at);
                at = links.get(at);
            }
            true
        };
        let free = of.word.free().min(objects);
        let chain = follow(of.word.head(), free, &mut self.slab.chain);
        let own = match self.slab.holder {
            Holder::InHand { slot } if self.look.has_cpu_slab() => {
                follow(self.marks.head(slot), objects, &mut self.slab.own)
            }
            Holder::Nobody => true,
            _ => {
                self.slab
                    .own
                    .extend(of.own().filter(|object| *object < objects));
                !self.look.has_owners() || self.slab.own.len() == of.slab.own_free as usize
            }
        };
        chain && own && self.slab.chain.len() == usize::from(of.word.free())
    }

    /// Sets the states of objects in arrays.
    fn mark(&mut self, of: &Contents) {
        let start = of.slab.address;
        let size = u64::from(self.look.cache.size);
        let end = start.saturating_add(u64::from(of.word.objects()) * size);
        for (address, state) in self.marks.arrays_in(start..end) {
            let offset = address - start;
            if offset % size == u64::from(self.look.cache.object_offset) {
                self.slab.put((offset / size) as u16, *state);
            }
        }
    }

    /// What a debugging layer keeps of each object.
    fn debug_parts(&mut self, of: &Contents) {
        let Some(layout) = &self.debug.layout else {
            return;
        };
        for object in 0..of.word.objects() {
            let Some(slot) = of.slot(&self.look, object) else {
                return;
            };
            let at = of.slab.address + u64::from(object) * u64::from(self.look.cache.size);
            let at = at + u64::from(self.look.cache.object_offset);
            if self.out.contains(&at) {
                self.slab.take_out(object);
            }
            if !layout.alloc_track().is_empty() {
                self.slab.tracks.push(tracks(slot, layout));
            }
        }
    }
}

/// Who had an object, by its slot.
pub(super) fn tracks(slot: &[u8], layout: &ObjectLayout) -> Tracks {
    Tracks {
        allocated: Track::load(slot, layout, TrackKind::Allocated),
        freed: Track::load(slot, layout, TrackKind::Freed),
        requested: { layout.keeps_orig_size() }.then(|| poison::orig_size(slot, layout)),
    }
}
