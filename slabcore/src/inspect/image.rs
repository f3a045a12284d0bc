//! Copies of another process's engines, caches, nodes and rows.
//!
//! Numbers only; nothing in here points anywhere. Each list is bounded by what an engine can
//! have, so a loop or a lie costs a bounded time and amount of memory.

use super::Refusal;
use super::budget::{Bounded, Held};
use super::memory::{Part, u16_at, u32_at, u64_at};
use super::shape::Shape;
use crate::policy::Policy;

/// Engines of a process at most: a longer list has no end.
const MOST_ENGINES: usize = 4096;
/// Ranges of an engine at most.
const MOST_RANGES: usize = 64;
/// Bytes of a name at most.
const MOST_NAME: usize = 256;
/// Bytes that are read in one step.
pub(super) const AT_ONCE: usize = 256 << 10;

/// A range of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RangeImage {
    /// Where page 0 would be, and its descriptor, and its map entry.
    pub base: u64,
    pub descs: u64,
    pub map: u64,
    pub first: u32,
    pub count: u32,
    pub frontier: u32,
}

/// A node of a cache.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeImage {
    pub head: u32,
    pub tail: u32,
    pub nr_partial: u32,
    pub nr_slabs: u64,
    pub total_objects: u64,
    pub barn_full: u32,
    pub barn_empty: u32,
    /// Addresses of full arrays, where they were asked for.
    pub full: Vec<u64>,
    /// How often its list's lock was taken, and waited for.
    pub lock: [u64; 2],
    /// Nobody had that lock.
    pub is_free: bool,
}

impl NodeImage {
    /// Its lock was free at two looks and not taken in between. The words of one look are not of
    /// one moment: the lock may have been taken and given back between them, so that the list's
    /// words are older than the lock's. They are compared, too.
    pub fn held_still_until(&self, later: &Self) -> bool {
        let list = |of: &Self| (of.head, of.tail, of.nr_partial);
        self.is_free && later.is_free && self.lock[0] == later.lock[0] && list(self) == list(later)
    }
}

/// A cache.
#[derive(Debug, Clone)]
pub(super) struct CacheImage {
    pub id: u32,
    pub name: String,
    /// `None` for a debug cache.
    pub policy: Option<Policy>,
    pub object_size: u32,
    pub size: u32,
    pub align: u32,
    pub link: u32,
    pub object_offset: u32,
    pub order: u32,
    pub objects: u16,
    pub own_words: u32,
    pub sheaf_capacity: u32,
    pub cpu_partial: u32,
    pub min_partial: u32,
    pub refs: u32,
    pub rows: u64,
    /// Bytes from a row to the next slot's.
    pub stride: u64,
    pub secret: u64,
    pub debug: u64,
    pub nodes: Vec<NodeImage>,
}

/// An engine.
#[derive(Debug, Clone)]
pub(super) struct EngineImage {
    pub nodes: u32,
    /// Address of the table of caches.
    pub table: u64,
    pub ranges: Vec<RangeImage>,
    pub used: u64,
    pub peak: u64,
    pub failed: u64,
    pub decommitted: u64,
    pub large: (u64, u64),
    pub faults: u64,
    pub depot: u64,
    pub guarded: u64,
    pub caches: Vec<CacheImage>,
    /// Slots that have been used, counting the empty one.
    pub slots: u32,
}

impl EngineImage {
    /// Whether an address is of one of its ranges.
    pub fn owns(&self, address: u64, page: u64) -> bool {
        self.ranges.iter().any(|range| {
            let number = address.wrapping_sub(range.base) / page;
            number >= range.first.into() && number - u64::from(range.first) < range.count.into()
        })
    }

    /// The range of a page.
    pub fn range_of(&self, page: u32) -> Option<&RangeImage> {
        let mut ranges = self.ranges.iter();
        ranges.find(|range| page.wrapping_sub(range.first) < range.count)
    }
}

/// Everything that is registered, and the room that it takes.
pub(super) fn engines<'b>(
    memory: &'b Bounded<'_>,
    shape: &Shape,
) -> Result<(Vec<EngineImage>, Held<'b>), Refusal> {
    let mut word = [0; 8];
    let mut held = memory.hold::<EngineImage>(0)?;
    memory.get(shape.root_engines, &mut word)?;
    let mut at = u64_at(&word, 0);
    memory.get(shape.root_slots_used, word.get_mut(..4).unwrap_or_default())?;
    let slots = u32_at(&word, 0);
    if slots > shape.max_slots {
        return Err(Refusal::Structure("number of slots"));
    }
    let mut list = Vec::new();
    let mut bytes = vec![0; shape.engine.sizeof];
    while at != 0 {
        if list.len() == MOST_ENGINES {
            return Err(Refusal::Structure("list of engines"));
        }
        memory.get(at, &mut bytes)?;
        held.more::<EngineImage>(1)?;
        list.push(engine(memory, shape, &bytes, slots, &mut held)?);
        at = u64_at(&bytes, shape.engine.next);
    }
    // The newest comes first in the list.
    list.reverse();
    Ok((list, held))
}

fn engine(
    memory: &Bounded<'_>,
    shape: &Shape,
    bytes: &[u8],
    slots: u32,
    held: &mut Held<'_>,
) -> Result<EngineImage, Refusal> {
    let of = &shape.engine;
    let pages = bytes.get(of.pages..).unwrap_or_default();
    let nodes = u32_at(bytes, of.nodes).clamp(1, shape.max_nodes.max(1));
    Ok(EngineImage {
        nodes,
        table: u64_at(bytes, of.table),
        ranges: ranges(memory, shape, pages)?,
        used: u64_at(pages, shape.pages.used),
        peak: u64_at(pages, shape.pages.peak),
        failed: u64_at(pages, shape.pages.failed),
        decommitted: u64_at(pages, shape.pages.decommitted),
        large: (u64_at(bytes, of.large_count), u64_at(bytes, of.large_bytes)),
        faults: u64_at(bytes, of.faults),
        depot: u64_at(bytes, of.depot),
        guarded: u64_at(bytes, of.guarded),
        caches: caches(memory, shape, bytes, nodes, held)?,
        slots,
    })
}

fn ranges(memory: &Bounded<'_>, shape: &Shape, pages: &[u8]) -> Result<Vec<RangeImage>, Refusal> {
    let of = &shape.range;
    let first = pages.get(shape.pages.range..).unwrap_or_default();
    let mut list = vec![range(shape, first)?];
    let mut bytes = vec![0; of.sizeof];
    for n in 0..MOST_RANGES - 1 {
        let at = u64_at(pages, shape.pages.more + n * 8);
        // The places lie in the structure of the pages; the first 0 ends them.
        if at == 0 || shape.pages.more + n * 8 + 8 > shape.pages.sizeof {
            break;
        }
        memory.get(at, &mut bytes)?;
        list.push(range(shape, &bytes)?);
    }
    Ok(list)
}

fn range(shape: &Shape, bytes: &[u8]) -> Result<RangeImage, Refusal> {
    let of = &shape.range;
    let image = RangeImage {
        base: u64_at(bytes, of.base),
        descs: u64_at(bytes, of.descs),
        map: u64_at(bytes, of.map),
        first: u32_at(bytes, of.first),
        count: u32_at(bytes, of.count),
        frontier: u32_at(bytes, of.frontier),
    };
    let end = image.first.checked_add(image.count);
    if end.is_none_or(|end| image.frontier > end) || image.frontier < image.first {
        return Err(Refusal::Structure("range of pages"));
    }
    Ok(image)
}

/// Bytes of a cache that matter: up to its last node that is used, if nodes come last.
fn cache_bytes(shape: &Shape, nodes: u32) -> usize {
    let of = &shape.cache;
    let others = [
        of.object_size,
        of.size,
        of.align,
        of.link,
        of.object_offset,
        of.order,
        of.objects,
        of.own_words,
        of.sheaf_capacity,
        of.cpu_partial,
        of.rows,
        of.stride,
        of.outside,
        of.min_partial,
        of.refs,
    ];
    if others.into_iter().any(|at| at > of.nodes) {
        return of.sizeof;
    }
    let to_nodes = of.nodes + nodes as usize * shape.part.sizeof;
    to_nodes.min(of.sizeof)
}

fn caches(
    memory: &Bounded<'_>,
    shape: &Shape,
    engine: &[u8],
    nodes: u32,
    held: &mut Held<'_>,
) -> Result<Vec<CacheImage>, Refusal> {
    let table = u64_at(engine, shape.engine.table);
    let used = u32_at(engine, shape.engine.nr_caches);
    if used > shape.max_caches {
        return Err(Refusal::Structure("number of caches"));
    }
    let present = |id: &u32| u32_at(engine, shape.engine.present + *id as usize * 4) != 0;
    let ids: Vec<u32> = (0..used).filter(present).collect();
    let each = cache_bytes(shape, nodes);
    held.more::<(Named, [u8; MOST_NAME])>(ids.len())?;
    held.more::<NodeImage>(ids.len() * nodes as usize)?;
    let mut list = Vec::with_capacity(ids.len());
    let mut room = vec![0; each * (AT_ONCE / each).clamp(1, 256)];
    for some in ids.chunks(room.len() / each) {
        let mut parts: Vec<Part<'_>> = { room.chunks_mut(each) }
            .zip(some)
            .map(|(into, id)| {
                let at = u64::from(*id) * shape.cache.sizeof as u64;
                Part::new(table.wrapping_add(at), into)
            })
            .collect();
        memory.read(&mut parts);
        if let Some(part) = parts.iter().find(|part| !part.whole()) {
            return Err(memory.missing(part.at));
        }
        let from = list.len();
        for (part, id) in parts.iter().zip(some) {
            list.push(cache(shape, part.into, *id, nodes)?);
        }
        name_them(memory, list.get_mut(from..).unwrap_or_default());
    }
    Ok(list.into_iter().map(|named| named.cache).collect())
}

/// A cache, and where its name is.
struct Named {
    cache: CacheImage,
    name: u64,
    len: usize,
}

fn cache(shape: &Shape, bytes: &[u8], id: u32, nodes: u32) -> Result<Named, Refusal> {
    let of = &shape.cache;
    let outside = bytes.get(of.outside..).unwrap_or_default();
    let number = |at| u32_at(bytes, at);
    let policy = match u32_at(outside, shape.outside.policy) {
        0 => None,
        n => {
            Some({ Policy::ALL.get(n as usize - 1).copied() }.ok_or(Refusal::Structure("policy"))?)
        }
    };
    let image = CacheImage {
        id,
        name: String::new(),
        policy,
        object_size: number(of.object_size),
        size: number(of.size),
        align: number(of.align),
        link: number(of.link),
        object_offset: number(of.object_offset),
        order: number(of.order),
        objects: u16_at(bytes, of.objects),
        own_words: number(of.own_words),
        sheaf_capacity: number(of.sheaf_capacity),
        cpu_partial: number(of.cpu_partial),
        min_partial: number(of.min_partial),
        refs: number(of.refs),
        rows: u64_at(bytes, of.rows),
        stride: u64_at(bytes, of.stride),
        secret: u64_at(outside, shape.outside.secret),
        debug: u64_at(outside, shape.outside.debug),
        nodes: { 0..nodes as usize }
            .map(|n| node(shape, bytes, of.nodes + n * shape.part.sizeof, false))
            .collect(),
    };
    let whole = image.size != 0
        && image.size <= 64 << 20
        && image.link < image.size
        && image.object_offset < image.size
        && image.order <= 20
        && image.sheaf_capacity <= 1 << 16
        && (shape.row.sizeof as u64..=1 << 24).contains(&image.stride);
    if !whole {
        return Err(Refusal::Structure("cache"));
    }
    Ok(Named {
        cache: image,
        name: u64_at(outside, shape.outside.name),
        len: u32_at(outside, shape.outside.name_len) as usize,
    })
}

/// A node; with the addresses of its barn's full arrays, if wanted.
fn node(shape: &Shape, bytes: &[u8], at: usize, arrays: bool) -> NodeImage {
    let node = bytes.get(at + shape.part.node..).unwrap_or_default();
    let barn = bytes.get(at + shape.part.barn..).unwrap_or_default();
    let lock = shape.node.list_lock;
    let barn_full = u32_at(barn, shape.barn.nr_full).min(shape.barn_sheaves);
    let full = (0..barn_full as usize).filter(|_| arrays);
    let full = full.map(|n| u64_at(barn, shape.barn.full + n * 8));
    NodeImage {
        head: u32_at(node, shape.node.head),
        tail: u32_at(node, shape.node.tail),
        nr_partial: u32_at(node, shape.node.nr_partial),
        nr_slabs: u64_at(node, shape.node.nr_slabs),
        total_objects: u64_at(node, shape.node.total_objects),
        barn_full,
        barn_empty: u32_at(barn, shape.barn.nr_empty).min(shape.barn_sheaves),
        full: full.collect(),
        lock: [shape.lock.taken, shape.lock.contended].map(|at| u64_at(node, lock + at)),
        is_free: u32_at(node, lock + shape.lock.word) == 0,
    }
}

/// The nodes of a cache as they are now, with the arrays of their barns.
pub(super) fn nodes(
    memory: &Bounded<'_>,
    shape: &Shape,
    engine: &EngineImage,
    cache: &CacheImage,
) -> Result<Vec<NodeImage>, Refusal> {
    let each = shape.part.sizeof;
    let mut bytes = vec![0; each * engine.nodes as usize];
    let at = u64::from(cache.id) * shape.cache.sizeof as u64 + shape.cache.nodes as u64;
    memory.get(engine.table.wrapping_add(at), &mut bytes)?;
    let parts = (0..engine.nodes as usize).map(|n| node(shape, &bytes, n * each, true));
    Ok(parts.collect())
}

/// Reads the names of some caches; one that cannot be read is named by its number.
fn name_them(memory: &Bounded<'_>, caches: &mut [Named]) {
    let mut room = vec![[0u8; MOST_NAME]; caches.len()];
    let mut parts: Vec<Part<'_>> = { room.iter_mut() }
        .zip(caches.iter())
        .map(|(into, of)| {
            let into = into.get_mut(..of.len.min(MOST_NAME)).unwrap_or_default();
            Part::new(of.name, into)
        })
        .collect();
    memory.read(&mut parts);
    for (part, of) in parts.iter().zip(caches) {
        of.cache.name = if part.whole() {
            String::from_utf8_lossy(part.into).into_owned()
        } else {
            format!("cache {}", of.cache.id)
        };
    }
}

/// The rows of some slots of a cache, from `slot` on, as bytes.
pub(super) fn rows(
    memory: &Bounded<'_>,
    shape: &Shape,
    cache: &CacheImage,
    slot: u32,
    into: &mut [u8],
) -> Result<(), Refusal> {
    let at = |slot| cache.rows.wrapping_add(u64::from(slot) * cache.stride);
    let each = shape.row.sizeof;
    if cache.stride == each as u64 {
        return memory.get(at(slot), into);
    }
    let chunks = into.chunks_mut(each).zip(slot..);
    let mut parts: Vec<_> = chunks
        .map(|(into, slot)| Part::new(at(slot), into))
        .collect();
    memory.read(&mut parts);
    match parts.iter().find(|part| !part.whole()) {
        None => Ok(()),
        Some(part) => Err(memory.missing(part.at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_list_that_are_older_than_its_locks_are_not_of_one_moment() {
        let node = |head, taken, is_free| NodeImage {
            head,
            lock: [taken, 0],
            is_free,
            ..NodeImage::default()
        };
        let now = node(7, 5, true);
        assert!(now.held_still_until(&now));
        for torn in [node(3, 5, true), node(7, 4, true), node(7, 5, false)] {
            assert!(!torn.held_still_until(&now) && !now.held_still_until(&torn));
        }
    }
}
