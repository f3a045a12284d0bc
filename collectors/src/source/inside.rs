//! A look into the caches of an engine, in the model: of the built-in one, or of a process's.
//!
//! Source of truth: `slabcore::Engine::dump` and `slabcore::inspect`. Slabs beyond the demand are
//! counted but not kept.

use slabcore::debug::depot::Handle;
use slabcore::debug::layout::{ObjectLayout, Region};
use slabcore::debug::track::Track;
use slabcore::dump::{
    CacheDump, DumpOptions, Holder as Held, Next, SlabDump, State, Totals, Tracks, Visit,
};
use slabcore::inspect::Reach;

use crate::model::{
    Dump, DumpCache, DumpDemand, DumpObject, DumpSlab, DumpTrack, Frame, Holder, Part, Place,
};

/// What can be looked into: the built-in engine, or a process's.
pub(super) trait Inside {
    /// What a refused look says.
    type Error;

    /// Shows all caches, with the number of their engine.
    fn dump(
        &self,
        options: DumpOptions,
        visit: &mut dyn FnMut(usize, Visit<'_>) -> Next,
    ) -> Result<Reach, Self::Error>;

    /// The frames of a track's stack.
    fn stack(&self, engine: usize, stack: Handle) -> Option<Vec<u64>>;

    /// A code address with its name.
    fn frame(&self, address: u64) -> Frame;

    /// The time that tracks are compared with, in nanoseconds of their clock.
    fn now(&self) -> u64;
}

/// Looks at the caches whose names are wanted.
pub(super) fn look<I: Inside>(
    inside: &I,
    wanted: &dyn Fn(&str) -> bool,
    demand: DumpDemand,
) -> Result<Dump, I::Error> {
    let mut look = Look {
        inside,
        demand,
        engine: 0,
        now: inside.now(),
        objects: demand.objects.min(DumpDemand::OBJECTS),
        room: demand.slabs.saturating_mul(A_SLAB).clamp(LEAST, MOST),
        dump: Dump::default(),
    };
    let options = DumpOptions {
        bytes: demand.bytes,
    };
    let reach = inside.dump(options, &mut |engine, visit| {
        look.engine = engine;
        match visit {
            Visit::Cache(of) if !wanted(of.name) => return Next::Skip,
            Visit::Cache(of) => look.dump.caches.push(cache(&of)),
            Visit::Slab(of) => look.slab(of),
            Visit::End(totals) => look.end(&totals),
        }
        Next::On
    })?;
    look.dump.limited = reach == Reach::Cut;
    Ok(look.dump)
}

/// Bytes that are kept: of each slab that is asked for, and at least and at most of all.
const A_SLAB: usize = 1 << 20;
const LEAST: usize = 16 << 20;
const MOST: usize = 256 << 20;

struct Look<'i, I> {
    inside: &'i I,
    demand: DumpDemand,
    /// Number of the engine that is looked at.
    engine: usize,
    now: u64,
    /// Objects, and bytes, that may still be kept.
    objects: usize,
    room: usize,
    dump: Dump,
}

impl<I: Inside> Look<'_, I> {
    fn slab(&mut self, of: &SlabDump) {
        let Some(cache) = self.dump.caches.last_mut() else {
            return;
        };
        let start = of.address as u64;
        let end = start.saturating_add(4096u64 << of.order.min(20));
        let here = |address| (start..end).contains(&address);
        if self.demand.address.is_some_and(|address| !here(address)) {
            return;
        }
        if cache.slabs.len() >= self.demand.slabs || of.states.len() > self.objects {
            self.dump.cut += 1;
            return;
        }
        let Some(slab) = self.kept(of) else {
            self.dump.cut += 1;
            return;
        };
        self.objects -= of.states.len();
        if let Some(cache) = self.dump.caches.last_mut() {
            cache.slabs.push(slab);
        }
    }

    /// What is kept of a slab; `None` where there is no room for it.
    fn kept(&mut self, of: &SlabDump) -> Option<DumpSlab> {
        let lists = 2 * (of.chain.len() + of.own.len()) + of.bytes.len();
        let mut room = self.room.checked_sub(lists)?;
        let tracks = of.tracks.iter().copied();
        let tracks = tracks.chain(std::iter::repeat(Tracks::default()));
        let mut objects = Vec::with_capacity(of.states.len());
        for (state, tracks) in of.states.iter().zip(tracks) {
            let object = self.object(*state, tracks);
            room = room.checked_sub(bytes(&object))?;
            objects.push(object);
        }
        self.room = room;
        Some(DumpSlab {
            address: of.address as u64,
            order: of.order,
            node: of.node,
            inuse: of.inuse.into(),
            holder: match of.holder {
                Held::Nobody => Holder::Nobody,
                Held::InHand { slot } => Holder::InHand(slot),
                Held::Partial { slot } => Holder::Partial(slot),
                Held::Full { slot } => Holder::Full(slot),
            },
            listed: of.position,
            queued: of.queued,
            settled: of.settled,
            objects,
            chain: of.chain.clone(),
            own: of.own.clone(),
            bytes: self.demand.bytes.then(|| of.bytes.clone()),
        })
    }

    fn object(&self, state: State, tracks: Tracks) -> DumpObject {
        DumpObject {
            place: place(state),
            requested: tracks.requested.map(|bytes| bytes as u64),
            allocated: tracks.allocated.map(|track| self.track(track)),
            freed: tracks.freed.map(|track| self.track(track)),
        }
    }

    fn track(&self, track: Track) -> DumpTrack {
        let stack = track
            .stack
            .and_then(|of| self.inside.stack(self.engine, of));
        let stack = stack.unwrap_or_else(|| vec![track.caller]);
        DumpTrack {
            thread: track.thread,
            cpu: track.cpu,
            age_ms: self.now.saturating_sub(track.time_ns) / 1_000_000,
            stack: { stack.into_iter() }
                .map(|at| self.inside.frame(at))
                .collect(),
        }
    }

    fn end(&mut self, totals: &Totals) {
        if let Some(cache) = self.dump.caches.last_mut() {
            cache.slabs_total = totals.slabs;
            cache.places = totals.places();
            cache.counted = totals.counted;
            cache.exact = totals.exact;
            cache.limited = totals.cut;
        }
    }
}

/// Bytes that an object takes.
fn bytes(of: &DumpObject) -> usize {
    let frame = |of: &Frame| size_of::<Frame>() + of.symbol.as_ref().map_or(0, String::len);
    let track = |of: &Option<DumpTrack>| {
        let stack = of
            .as_ref()
            .map(|of| of.stack.iter().map(frame).sum::<usize>());
        stack.unwrap_or(0)
    };
    size_of::<DumpObject>() + track(&of.allocated) + track(&of.freed)
}

const fn place(state: State) -> Place {
    match state {
        State::Allocated => Place::Allocated,
        State::Free => Place::Free,
        State::Remote => Place::Remote,
        State::Own { slot } => Place::Own(slot),
        State::Main { slot } => Place::Main(slot),
        State::Spare { slot } => Place::Spare(slot),
        State::Barn { node } => Place::Barn(node),
        State::Quarantined => Place::Quarantined,
        _ => Place::Unknown,
    }
}

fn cache(of: &CacheDump<'_>) -> DumpCache {
    let flags = of.layout.map(ObjectLayout::flags);
    DumpCache {
        name: of.name.to_owned(),
        policy: of.policy.map(slabcore::Policy::name),
        debug: match flags {
            Some(flags) => flags.to_string(),
            None if of.policy.is_some() => "-".to_owned(),
            // A debug cache whose layer could not be read.
            None => "?".to_owned(),
        },
        object_size: of.object_size,
        slab_size: of.slab_size,
        object_offset: of.object_offset,
        objs_per_slab: of.objs_per_slab,
        parts: parts(of),
        slabs_total: 0,
        places: [0; 9],
        counted: None,
        exact: false,
        limited: false,
        slabs: Vec::new(),
    }
}

fn parts(of: &CacheDump<'_>) -> Vec<Part> {
    let Some(layout) = of.layout else {
        let object = Part {
            name: "object",
            range: 0..of.object_size as usize,
        };
        let rest = Part {
            name: "padding",
            range: of.object_size as usize..of.slab_size as usize,
        };
        return [object, rest]
            .into_iter()
            .filter(|part| !part.range.is_empty())
            .collect();
    };
    let regions = layout.regions().into_iter();
    let named = regions.map(|(region, range)| Part {
        name: match region {
            Region::LeftRedzone => "left red zone",
            Region::Object => "object",
            Region::Right => "right red zone",
            Region::FreePointer => "free pointer",
            Region::AllocTrack => "alloc track",
            Region::FreeTrack => "free track",
            Region::OrigSize => "requested size",
            Region::Padding => "padding",
        },
        range,
    });
    named.filter(|part| !part.range.is_empty()).collect()
}
