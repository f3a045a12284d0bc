//! Who holds the objects of a process's debug caches: the tracks of live objects, by stack.
//!
//! Source of truth: the tracks that caches with the flag U keep in their slots, and the
//! engine's depot of stacks. Ages are in milliseconds.

use std::collections::BTreeMap;

use slabcore::debug::depot::Handle;
use slabcore::debug::track::Track;
use slabcore::dump::{DumpOptions, Next, SlabDump, State, Visit};
use slabcore::inspect::{Memory, Reach, Refusal};

use super::looks::Looks;
use crate::model::{AgeUnit, CallSite, CpuId, NodeId, Objects, Pinned, SiteKind};
use crate::source::inside::Inside as _;

/// Sites that are told apart; the rest of each cache are one site without a name.
const MOST: usize = 16 << 10;
/// Processors and nodes of all sites, and bytes of all their names, at most.
const MOST_PLACES: usize = 1 << 20;
const MOST_NAMES: usize = 12 << 20;

/// Of one cache: number of its engine, id, and its sites.
pub(super) type CacheSites = (usize, u32, Vec<CallSite>);

type Key = (bool, Option<Handle>, u64);

/// What is known of the objects of one site.
#[derive(Debug, Default)]
struct Sum {
    count: u64,
    waste: u64,
    age: Option<(u64, u64)>,
    ages: u64,
    threads: Option<(i64, i64)>,
    cpus: Vec<CpuId>,
    nodes: Vec<NodeId>,
    pinned: Pinned,
    /// The last sparse slab that counted.
    slab: usize,
}

/// How much may still be kept.
struct Room {
    sites: usize,
    places: usize,
    names: usize,
}

/// The sites of all caches whose names are wanted and that keep tracks, as far as the look goes.
pub(super) fn read<M: Memory>(
    looks: &Looks<'_, M>,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<(Vec<CacheSites>, Reach), Refusal> {
    let mut room = Room {
        sites: MOST,
        places: MOST_PLACES,
        names: MOST_NAMES,
    };
    let mut list: Vec<CacheSites> = Vec::new();
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    let mut now = (0, 0, 0);
    let mut slot = 0;
    let reach = looks.dump_all(DumpOptions::default(), &mut |engine, visit| {
        match visit {
            Visit::Cache(of) => {
                let tracks = of
                    .layout
                    .is_some_and(|layout| !layout.alloc_track().is_empty());
                if !tracks || !wanted(of.name) {
                    return Next::Skip;
                }
                now = (engine, of.id, u64::from(of.object_size));
                slot = of.slab_size.into();
                sums.clear();
            }
            Visit::Slab(slab) => add(&mut sums, &mut room, slab, looks.now(), (now.2, slot)),
            Visit::End(_) => {
                let all = std::mem::take(&mut sums);
                let sites = all
                    .into_iter()
                    .map(|(key, sum)| site(looks, &mut room, engine, key, sum));
                list.push((now.0, now.1, sites.collect()));
            }
        }
        Next::On
    })?;
    Ok((list, reach))
}

/// `size`: bytes of an object, and of its slot.
fn add(
    sums: &mut BTreeMap<Key, Sum>,
    room: &mut Room,
    slab: &SlabDump,
    now: u64,
    (size, slot): (u64, u64),
) {
    let live = slab
        .states
        .iter()
        .filter(|of| **of == State::Allocated)
        .count() as u64;
    let free = (slab.states.len() as u64).saturating_sub(live);
    // Each of its live objects pins a part of what is free.
    let share = (live > 0 && live <= free).then(|| free * slot / live);
    for (state, tracks) in slab.states.iter().zip(&slab.tracks) {
        if *state != State::Allocated {
            continue;
        }
        let wasted = tracks
            .requested
            .map_or(0, |bytes| size.saturating_sub(bytes as u64));
        for (freed, track) in [(false, tracks.allocated), (true, tracks.freed)] {
            let Some(track) = track else {
                continue;
            };
            let key = (freed, track.stack, track.caller);
            let known = sums.contains_key(&key);
            let key = if known || room.sites > 0 {
                key
            } else {
                (freed, None, 0)
            };
            room.sites -= usize::from(!known && room.sites > 0);
            let sum = sums.entry(key).or_default();
            sum.waste += if freed { 0 } else { wasted };
            if let Some(share) = share.filter(|_| !freed) {
                sum.pinned.objects += 1;
                sum.pinned.bytes = sum.pinned.bytes.saturating_add(share);
                sum.pinned.slabs += u64::from(sum.slab != slab.address);
                sum.slab = slab.address;
            }
            one(sum, room, &track, now, slab.node);
        }
    }
}

fn one(sum: &mut Sum, room: &mut Room, track: &Track, now: u64, node: u32) {
    let age = now.saturating_sub(track.time_ns) / 1_000_000;
    let thread = i64::from(track.thread);
    sum.count += 1;
    sum.ages = sum.ages.saturating_add(age);
    let (least, most) = sum.age.unwrap_or((age, age));
    sum.age = Some((least.min(age), most.max(age)));
    let (low, high) = sum.threads.unwrap_or((thread, thread));
    sum.threads = Some((low.min(thread), high.max(thread)));
    let cpu = CpuId(track.cpu);
    if !sum.cpus.contains(&cpu) && sum.cpus.len() < 4096 && room.places > 0 {
        room.places -= 1;
        sum.cpus.push(cpu);
    }
    let node = NodeId(node);
    if !sum.nodes.contains(&node) && sum.nodes.len() < 64 && room.places > 0 {
        room.places -= 1;
        sum.nodes.push(node);
    }
}

fn site<M: Memory>(
    looks: &Looks<'_, M>,
    room: &mut Room,
    engine: usize,
    key: Key,
    sum: Sum,
) -> CallSite {
    let (freed, stack, caller) = key;
    let stack = stack.and_then(|stack| looks.stack(engine, stack));
    let named = |address: u64| {
        let frame = looks.frame(address);
        frame.symbol.unwrap_or_else(|| format!("{address:#x}"))
    };
    // Where there is no more room for names, the caller's remains.
    let stack = stack.filter(|_| room.names > 0).unwrap_or_default();
    let stack: Vec<String> = stack.into_iter().map(named).collect();
    let bytes = stack.iter().map(|of| of.len() + size_of::<String>());
    room.names = room.names.saturating_sub(bytes.sum());
    let mut sum = sum;
    sum.cpus.sort_unstable();
    sum.nodes.sort_unstable();
    CallSite {
        kind: if freed {
            SiteKind::Free
        } else {
            SiteKind::Alloc
        },
        count: Objects(sum.count),
        symbol: (caller != 0).then(|| named(caller)),
        waste: (sum.waste > 0).then(|| (sum.waste, sum.waste / sum.count.max(1))),
        age: sum
            .age
            .map(|(least, most)| (least, sum.ages / sum.count.max(1), most)),
        age_unit: AgeUnit::Milliseconds,
        pinned: (!freed).then_some(sum.pinned),
        pids: sum.threads,
        cpus: sum.cpus,
        nodes: sum.nodes,
        stack,
    }
}
