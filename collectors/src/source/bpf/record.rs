//! The records that the snapshot's programs write, and their place in the model.
//!
//! Source of truth: collectors/bpf/snapshot.h, whose numbers a test compares.
//! `objects` of the model are those in use: the room of all slabs, less what is
//! free on partial lists, on processors' slabs, in sheaves and in barns. The
//! kernel's own figure is that and `parked`.

use crate::model::{
    Approx, Cache, CacheId, CpuId, CpuPart, Layer, NodeId, NodePart, Objects, Occupancy, Quantity,
    Slabs,
};

/// Numbers of the header's enumerations: the words of the records, and bits.
macro_rules! numbers {
    ($($name:ident = $value:expr;)*) => {
        $(pub(super) const $name: usize = $value;)*
        /// Every number by its name, to be compared with the header.
        #[cfg(test)]
        const NUMBERS: &[(&str, usize)] = &[$((stringify!($name), $name),)*];
    };
}

numbers! {
    RECORD_CACHE = 1;
    RECORD_NODE = 2;
    RECORD_CPU = 3;
    CACHE_KNOWN = 1;
    CACHE_ADDRESS = 2;
    CACHE_MOVED = 3;
    CACHE_SLAB_SIZE = 4;
    CACHE_OBJECT_SIZE = 5;
    CACHE_ALIGN = 6;
    CACHE_USERSIZE = 7;
    CACHE_ORDER_OBJECTS = 8;
    CACHE_MIN_PARTIAL = 9;
    CACHE_CPU_PARTIAL = 10;
    CACHE_SHEAF_CAPACITY = 11;
    CACHE_DEFRAG_RATIO = 12;
    CACHE_PARTIAL = 13;
    CACHE_SLABS = 14;
    CACHE_TOTAL_OBJECTS = 15;
    CACHE_WALKED = 16;
    CACHE_WALKED_OBJECTS = 17;
    CACHE_WALKED_INUSE = 18;
    CACHE_CPU_SLABS = 19;
    CACHE_CPU_FREE = 20;
    CACHE_CPU_PARTIAL_SLABS = 21;
    CACHE_CPU_PARTIAL_FREE = 22;
    CACHE_SHEAF_OBJECTS = 23;
    CACHE_RCU_OBJECTS = 24;
    CACHE_BARN_OBJECTS = 27;
    CACHE_SAMPLE_SLAB = 28;
    CACHE_SAMPLE_OBJECT = 29;
    CACHE_OCCUPANCY = 30;
    CACHE_CPU_OCCUPANCY = 42;
    CACHE_NAME = 54;
    CACHE_WORDS = 62;
    NODE_NUMBER = 2;
    NODE_PARTIAL = 3;
    NODE_SLABS = 4;
    NODE_TOTAL_OBJECTS = 5;
    NODE_WALKED = 6;
    NODE_WALKED_INUSE = 8;
    NODE_BARN_FULL = 9;
    NODE_BARN_EMPTY = 10;
    NODE_WORDS = 11;
    CPU_NUMBER = 2;
    CPU_FREE = 4;
    CPU_PARTIAL_SLABS = 5;
    CPU_PARTIAL_FREE = 6;
    CPU_SHEAF_MAIN = 7;
    CPU_SHEAF_SPARE = 8;
    CPU_SHEAF_RCU = 9;
    CPU_WORDS = 10;
    MOVED_PARTIAL = 1;
    MOVED_CUT = 2;
    MOVED_CPU = 4;
    MOVED_BARN = 8;
    MOVED_UNREAD = 16;
    MOVED_BETWEEN = 32;
    SETTING_WALK = 0;
    SETTING_PARTS = 1;
    SETTING_BUDGET = 2;
    SETTING_LEFT = 3;
    SETTING_LOST = 4;
    SETTING_UNSEEN = 5;
    SETTING_ENDED = 6;
    PARTS_NODES = 1;
    PARTS_CPUS = 2;
}

/// A cache as it was seen, with what only programs need of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// The figures.
    pub(super) cache: Cache,
    /// Address of the kernel's `struct kmem_cache`.
    pub(super) address: u64,
    /// A partial slab's descriptor and a free object in that slab, by address.
    pub(super) sample: Option<(u64, u64)>,
    /// Why the figures are not of one moment: bits `MOVED_*`.
    pub(super) moved: u64,
}

/// Takes records apart. What ends early, or has a length that its kind does not
/// have, ends the reading: the rest is not to be trusted then. The second answer
/// is whether all was read.
pub(super) fn parse(bytes: &[u8]) -> (Vec<Seen>, bool) {
    let words: Vec<u64> = bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_ne_bytes(*word))
        .collect();
    let mut rest = &words[..];
    let mut parts = Parts::default();
    let mut caches = Vec::new();
    while let Some((record, after)) = next(rest) {
        rest = after;
        parts.add(record, &mut caches);
    }
    let whole = rest.is_empty() && bytes.len().is_multiple_of(8) && parts.is_empty();
    (caches, whole)
}

fn next(words: &[u64]) -> Option<(Record<'_>, &[u64])> {
    let head = *words.first()?;
    let kind = usize::try_from(head & 0xffff_ffff).ok()?;
    let length = match kind {
        RECORD_CACHE => CACHE_WORDS,
        RECORD_NODE => NODE_WORDS,
        RECORD_CPU => CPU_WORDS,
        _ => return None,
    };
    let same = usize::try_from(head >> 32).is_ok_and(|told| told == length);
    let (words, after) = words.split_at_checked(length).filter(|_| same)?;
    Some((Record { kind, words }, after))
}

/// One record, of the length that its kind has.
#[derive(Clone, Copy)]
struct Record<'a> {
    kind: usize,
    words: &'a [u64],
}

impl Record<'_> {
    fn word(&self, n: usize) -> u64 {
        self.words.get(n).copied().unwrap_or(0)
    }

    /// The word, if the kernel has it and it could be read.
    fn known(&self, n: usize) -> Option<u64> {
        // All kinds have it at the same place.
        (self.word(CACHE_KNOWN) >> n & 1 == 1).then(|| self.word(n))
    }

    fn buckets(&self, from: usize) -> [u64; 12] {
        std::array::from_fn(|n| self.word(from + n))
    }

    fn text(&self) -> String {
        let bytes = (CACHE_NAME..CACHE_WORDS).flat_map(|n| self.word(n).to_ne_bytes());
        let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Parts that came before their cache.
#[derive(Default)]
struct Parts {
    nodes: Vec<NodePart>,
    cpus: Vec<CpuPart>,
}

impl Parts {
    /// Nothing waits for its cache.
    const fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.cpus.is_empty()
    }

    fn add(&mut self, record: Record<'_>, caches: &mut Vec<Seen>) {
        match record.kind {
            RECORD_NODE => self.nodes.extend(node(record)),
            RECORD_CPU => self.cpus.extend(cpu(record)),
            _ => {
                let id = CacheId(u32::try_from(caches.len()).unwrap_or(u32::MAX));
                let mut cache = Cache::new(id, record.text());
                figures(record, &mut cache);
                cache.nodes = std::mem::take(&mut self.nodes);
                cache.cpus = std::mem::take(&mut self.cpus);
                let sample = (
                    record.word(CACHE_SAMPLE_SLAB),
                    record.word(CACHE_SAMPLE_OBJECT),
                );
                caches.push(Seen {
                    cache,
                    address: record.word(CACHE_ADDRESS),
                    sample: Some(sample).filter(|(slab, object)| *slab != 0 && *object != 0),
                    moved: record.word(CACHE_MOVED),
                });
            }
        }
    }
}

fn node(record: Record<'_>) -> Option<NodePart> {
    let number = u32::try_from(record.word(NODE_NUMBER)).ok()?;
    let whole = record.known(NODE_WALKED) == record.known(NODE_PARTIAL);
    Some(NodePart {
        slabs: record.known(NODE_SLABS).map(Slabs),
        total_objects: record.known(NODE_TOTAL_OBJECTS).map(Objects),
        partial: record.known(NODE_PARTIAL).map(Slabs),
        // Which node's objects a processor has parked is not known, so neither
        // is how many of the node's are in use.
        objects_partial: record
            .known(NODE_WALKED_INUSE)
            .filter(|_| whole)
            .map(Objects),
        barn_full: record.known(NODE_BARN_FULL),
        barn_empty: record.known(NODE_BARN_EMPTY),
        ..NodePart::new(NodeId(number))
    })
}

fn cpu(record: Record<'_>) -> Option<CpuPart> {
    let number = u32::try_from(record.word(CPU_NUMBER)).ok()?;
    Some(CpuPart {
        objects_cpu_slab: record.known(CPU_FREE).map(Objects),
        objects_cpu_partial: record.known(CPU_PARTIAL_FREE).map(Objects),
        slabs_cpu_partial: record.known(CPU_PARTIAL_SLABS).map(Slabs),
        sheaf_main: record.known(CPU_SHEAF_MAIN).map(Objects),
        sheaf_spare: record.known(CPU_SHEAF_SPARE).map(Objects),
        sheaf_rcu_free: record.known(CPU_SHEAF_RCU).map(Objects),
        ..CpuPart::new(CpuId(number))
    })
}

/// Words that are a figure as they are.
const PLAIN: [(usize, Quantity); 10] = [
    (CACHE_SLAB_SIZE, Quantity::SlabSize),
    (CACHE_OBJECT_SIZE, Quantity::ObjectSize),
    (CACHE_ALIGN, Quantity::Align),
    (CACHE_USERSIZE, Quantity::Usersize),
    (CACHE_MIN_PARTIAL, Quantity::MinPartial),
    (CACHE_CPU_PARTIAL, Quantity::CpuPartial),
    (CACHE_SHEAF_CAPACITY, Quantity::SheafCapacity),
    (CACHE_SLABS, Quantity::Slabs),
    (CACHE_TOTAL_OBJECTS, Quantity::TotalObjects),
    (CACHE_PARTIAL, Quantity::Partial),
];

fn figures(record: Record<'_>, cache: &mut Cache) {
    let mut exact = |quantity, value: Option<u64>| {
        if let Some(value) = value {
            cache.set_exact(quantity, value, Layer::Bpf);
        }
    };
    for (word, quantity) in PLAIN {
        // A count below zero is none.
        let count = record.known(word).filter(|n| i64::try_from(*n).is_ok());
        exact(quantity, count);
    }
    let oo = record.known(CACHE_ORDER_OBJECTS);
    exact(Quantity::ObjsPerSlab, oo.map(|oo| oo & 0xffff));
    exact(Quantity::Order, oo.map(|oo| oo >> 16));
    let pages = oo.and_then(|oo| 1u64.checked_shl(u32::try_from(oo >> 16).ok()?));
    exact(Quantity::PagesPerSlab, pages);
    let ratio = record.known(CACHE_DEFRAG_RATIO).map(|tenths| tenths / 10);
    exact(Quantity::RemoteNodeDefragRatio, ratio);

    let moved = record.word(CACHE_MOVED);
    let has = |bits: usize| moved & bits as u64 != 0;
    let mut figure = |quantity, value: Option<u64>, moving: usize| {
        if let Some(value) = value {
            let approx = has(moving);
            cache.set(quantity, Approx { value, approx }, Layer::Bpf);
        }
    };
    let listed = MOVED_PARTIAL | MOVED_CUT;
    let lists = Lists::of(record);
    let partial_slabs = record.known(CACHE_CPU_PARTIAL_SLABS);
    let on_cpus = record
        .known(CACHE_CPU_SLABS)
        .map(|n| n.saturating_add(partial_slabs.unwrap_or(0)));
    figure(Quantity::ObjectsPartial, lists.map(|l| l.inuse), listed);
    figure(Quantity::CpuSlabs, on_cpus, MOVED_CPU);
    figure(Quantity::SlabsCpuPartial, partial_slabs, MOVED_CPU);
    figure(
        Quantity::ObjectsCpuPartial,
        record.known(CACHE_CPU_PARTIAL_FREE),
        MOVED_CPU,
    );
    let parked = parked(record);
    let near = MOVED_CPU | MOVED_BARN | MOVED_BETWEEN;
    figure(Quantity::Parked, parked, near);
    let total = cache.get(Quantity::TotalObjects).map(|of| of.value);
    if let (Some(total), Some(lists), Some(parked)) = (total, lists, parked) {
        let free = lists.free.saturating_add(parked);
        // More free objects than there is room for: something moved unseen.
        let approx = moved != 0 || free > total;
        let value = total.saturating_sub(free);
        cache.set(Quantity::Objects, Approx { value, approx }, Layer::Bpf);
    }
    cache.occupancy = occupancy(record, on_cpus, lists).map(|of| {
        Box::new(Approx {
            value: of,
            approx: moved != 0,
        })
    });
}

/// The nodes' partial lists, whole or as far as they were walked and drawn out
/// from that.
#[derive(Clone, Copy)]
struct Lists {
    walked: u64,
    partial: u64,
    inuse: u64,
    free: u64,
}

impl Lists {
    fn of(record: Record<'_>) -> Option<Self> {
        let walked = record.known(CACHE_WALKED)?;
        let objects = record.known(CACHE_WALKED_OBJECTS)?;
        let inuse = record.known(CACHE_WALKED_INUSE)?;
        let mut lists = Self {
            walked,
            partial: record.known(CACHE_PARTIAL)?,
            inuse,
            free: objects.saturating_sub(inuse),
        };
        if record.word(CACHE_MOVED) & MOVED_CUT as u64 != 0 {
            // Nothing can be drawn out from nothing.
            if walked == 0 {
                return None;
            }
            lists.inuse = lists.scale(lists.inuse);
            lists.free = lists.scale(lists.free);
        }
        Some(lists)
    }

    fn scale(&self, count: u64) -> u64 {
        let whole = u128::from(count) * u128::from(self.partial);
        let scaled = whole.checked_div(u128::from(self.walked)).unwrap_or(0);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// Free objects that the kernel's own figures count as in use. `None` where the
/// kernel keeps some in a place that is not known.
fn parked(record: Record<'_>) -> Option<u64> {
    let slabs = record.known(CACHE_CPU_FREE);
    let sheaves = record.known(CACHE_SHEAF_OBJECTS);
    slabs.or(sheaves)?;
    let mut sum = slabs.unwrap_or(0);
    sum = sum.saturating_add(record.known(CACHE_CPU_PARTIAL_FREE).unwrap_or(0));
    if record.known(CACHE_SHEAF_CAPACITY).unwrap_or(0) > 0 {
        for word in [CACHE_SHEAF_OBJECTS, CACHE_RCU_OBJECTS, CACHE_BARN_OBJECTS] {
            sum = sum.saturating_add(record.known(word)?);
        }
    }
    Some(sum)
}

/// All slabs by how full they are: those on lists and on processors as they
/// were seen; the others are full, or they would be on a list.
fn occupancy(record: Record<'_>, on_cpus: Option<u64>, lists: Option<Lists>) -> Option<Occupancy> {
    let slabs = record
        .known(CACHE_SLABS)
        .filter(|n| i64::try_from(*n).is_ok())?;
    let lists = lists?;
    let mut buckets = record.buckets(CACHE_OCCUPANCY);
    if record.word(CACHE_MOVED) & MOVED_CUT as u64 != 0 {
        buckets = buckets.map(|count| lists.scale(count));
    }
    let cpus = record.buckets(CACHE_CPU_OCCUPANCY);
    for (bucket, more) in buckets.iter_mut().zip(cpus) {
        *bucket = bucket.saturating_add(more);
    }
    let seen = lists.partial.saturating_add(on_cpus.unwrap_or(0));
    buckets[11] = buckets[11].saturating_add(slabs.saturating_sub(seen));
    Some(Occupancy(buckets))
}

#[cfg(test)]
mod tests;
