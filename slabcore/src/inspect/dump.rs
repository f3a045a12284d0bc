//! A look into caches from outside, as `Engine::dump` gives it inside.
//!
//! A slab's list is confirmed by its word, rows by their stamps, debug caches by how often
//! the lock of the slab's node was taken. What moved is not known, and told so.

use super::budget::{Bounded, Held};
use super::contents::{self, Contents};
use super::image::{CacheImage, EngineImage};
use super::marks::{Look, Marks};
use super::memory::u64_at;
use super::shape::Shape;
use super::slabs::{self, SlabImage, Spot};
use super::snapshot::Debug;
use super::{Reach, Refusal, StatMap};
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
    memory: &Bounded<'_>,
    shape: &Shape,
    stats: &StatMap,
    engine: &EngineImage,
    options: DumpOptions,
    visit: &mut dyn FnMut(Visit<'_>) -> Next,
) -> Result<(Next, Reach), Refusal> {
    let mut reach = Reach::Whole;
    let spots = slabs::collect(memory, shape, engine)?;
    for cache in &engine.caches {
        let look = Look {
            memory,
            shape,
            engine,
            cache,
            fast: stats.fast(),
        };
        let debug = Debug::read(memory, shape, cache);
        let layout = debug.as_ref().and_then(|of| of.layout.as_ref());
        match visit(Visit::Cache(describe(cache, layout))) {
            Next::On => {}
            Next::Skip => continue,
            Next::Stop => return Ok((Next::Stop, reach)),
        }
        let mut totals = Totals::default();
        let seen = one(
            &look,
            stats,
            debug,
            spots.of(cache.id),
            options,
            &mut totals,
            visit,
        );
        match seen {
            Ok(Next::On) => {}
            Ok(Next::Skip) => continue,
            Ok(Next::Stop) => return Ok((Next::Stop, reach)),
            Err(Refusal::TooMuch) => {
                totals.cut = true;
                reach = Reach::Cut;
            }
            Err(other) => return Err(other),
        }
        if visit(Visit::End(totals)) == Next::Stop || memory.is_spent() {
            return Ok((Next::Stop, reach));
        }
    }
    Ok((Next::On, reach))
}

/// The slabs of one cache, and their sums.
fn one<'l>(
    look: &Look<'l>,
    stats: &StatMap,
    debug: Option<Debug>,
    spots: &[Spot],
    options: DumpOptions,
    totals: &mut Totals,
    visit: &mut dyn FnMut(Visit<'_>) -> Next,
) -> Result<Next, Refusal> {
    let (memory, shape, engine, cache) = (look.memory, look.shape, look.engine, look.cache);
    let counted = stats.live(memory, shape, engine, cache)?;
    totals.counted = Some(counted);
    let (slabs, _held) = slabs::images(memory, shape, engine, spots)?;
    let mut dumper = Dumper {
        out: quarantined(memory, shape, debug.as_ref())?,
        marks: Marks::gather(look, &slabs)?,
        slab: SlabDump::empty(),
        totals,
        settled: true,
        debug: debug.unwrap_or_default(),
        options,
        look: *look,
    };
    match dumper.slabs(&slabs, visit)? {
        Next::On => {}
        other => return Ok(other),
    }
    let settled = dumper.settled && dumper.out.whole;
    totals.guarded = guarded(look);
    let known = totals.guarded.map(|guarded| totals.allocated + guarded);
    let still = stats.live(memory, shape, engine, cache)? == counted;
    totals.exact = settled && still && known == Some(counted);
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

/// Sampled objects of a cache on pages of their own; `None` where that cannot be read.
fn guarded(look: &Look<'_>) -> Option<u64> {
    if look.engine.guarded == 0 {
        return Some(0);
    }
    let at = look.shape.guarded.live as u64 + u64::from(look.cache.id) * 4;
    let mut word = [0; 4];
    let at = look.engine.guarded.wrapping_add(at);
    look.memory.get(at, &mut word).ok()?;
    Some(u32::from_ne_bytes(word).into())
}

/// Addresses of objects that are out of use, in order.
#[derive(Debug)]
pub(super) struct Quarantined<'b> {
    list: Vec<u64>,
    /// All of them are known.
    pub whole: bool,
    _held: Held<'b>,
}

impl Quarantined<'_> {
    pub fn contains(&self, address: u64) -> bool {
        self.list.binary_search(&address).is_ok()
    }
}

/// What a debugging layer keeps out of use; nothing is known without the layer.
pub(super) fn quarantined<'b>(
    memory: &'b Bounded<'_>,
    shape: &Shape,
    debug: Option<&Debug>,
) -> Result<Quarantined<'b>, Refusal> {
    let mut list = Vec::new();
    let mut held = memory.hold::<u64>(0)?;
    let mut chunk = debug.map_or(0, |of| of.quarantine);
    let mut whole = debug.is_some();
    let mut bytes = vec![0; shape.quarantine_words * 8];
    let mut seen = 0;
    while chunk != 0 {
        memory.step()?;
        whole = seen < MOST_OUT && memory.get(chunk, &mut bytes).is_ok();
        if !whole {
            break;
        }
        held.more::<[u64; 2]>(shape.quarantine_words)?;
        let entries = bytes.chunks(8).skip(1).map(|word| u64_at(word, 0));
        // The lowest bit tells that the object is out, and not only suspected.
        let out = entries.filter(|entry| entry & 1 != 0);
        list.extend(out.map(|entry| entry & !1));
        seen += shape.quarantine_words.max(1);
        chunk = u64_at(&bytes, 0);
    }
    list.sort_unstable();
    Ok(Quarantined {
        list,
        whole,
        _held: held,
    })
}

struct Dumper<'l, 't> {
    look: Look<'l>,
    options: DumpOptions,
    debug: Debug,
    out: Quarantined<'l>,
    marks: Marks<'l>,
    slab: SlabDump,
    totals: &'t mut Totals,
    settled: bool,
}

impl Dumper<'_, '_> {
    fn slabs(
        &mut self,
        all: &[SlabImage],
        visit: &mut dyn FnMut(Visit<'_>) -> Next,
    ) -> Result<Next, Refusal> {
        let mut rest = all;
        while !rest.is_empty() {
            let (some, after) = rest.split_at(contents::batch(&self.look, rest).min(rest.len()));
            rest = after;
            let mut copies = contents::copy(&self.look, some)?;
            // Rows that moved since they were copied are copied again, but not for ever.
            for _ in 0..TRIES {
                if self.marks.still(&self.look)? && copies.list.iter().all(|of| of.same) {
                    break;
                }
                // The room of the old ones is given back first.
                drop(copies);
                self.marks.again(&self.look, all)?;
                copies = contents::copy(&self.look, some)?;
            }
            let still = self.marks.still(&self.look)?;
            for copy in &copies.list {
                self.tell(copy, still);
                self.settled &= self.slab.settled;
                self.totals.add(&self.slab.states);
                match visit(Visit::Slab(&self.slab)) {
                    Next::On => {}
                    other => return Ok(other),
                }
            }
        }
        Ok(Next::On)
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
        self.slab.settled = of.same && sure && self.out.whole;
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
            if self.out.contains(of.object(&self.look, object)) {
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
