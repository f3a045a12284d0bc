//! Where another process's engine has its parts, by the names in its segment.
//!
//! Looked up once and bounded: no structure is larger than [`MOST`], every field lies in its
//! structure, and so does every structure in the one that it is a part of. So whatever a segment
//! says, reading costs a bounded amount, and no field is read that was not copied.

use super::Refusal;
use crate::segment::Segment;

/// Bytes of a structure at most.
const MOST: u64 = 256 << 10;

macro_rules! shapes {
    ($($(#[$doc:meta])* $shape:ident $name:literal { $($field:ident $bytes:literal),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        #[allow(dead_code, reason = "the size of what lies in another structure is checked only")]
        pub(super) struct $shape { pub sizeof: usize, $(pub $field: usize),* }

        impl $shape {
            fn find(segment: &Segment) -> Result<Self, Refusal> {
                let size = segment.number(concat!($name, ".sizeof"))?;
                if size == 0 || size > MOST {
                    return Err(Refusal::Structure(concat!("size of ", $name)));
                }
                Ok(Self {
                    sizeof: size as usize,
                    $($field: {
                        let at = segment.number(concat!($name, ".", stringify!($field)))?;
                        if at.checked_add($bytes).is_none_or(|end| end > size) {
                            return Err(Refusal::Structure(concat!($name, ".", stringify!($field))));
                        }
                        at as usize
                    }),*
                })
            }
        })*
    };
}

shapes! {
    /// An engine.
    EngineShape "engine" { pages 8, nodes 4, table 8, nr_caches 4, present 4, large_bytes 8, large_count 8,
        faults 8, depot 8, guarded 8, next 8 }
    /// Its pages.
    PagesShape "pages" { range 8, more 8, used 8, peak 8, failed 8, decommitted 8 }
    /// A range of them.
    RangeShape "range" { base 8, descs 8, map 8, first 4, count 4, frontier 4 }
    /// A descriptor.
    DescShape "desc" { word 8, owner 8, own 8, prev 4, next 4, cache 4, run 4, own_free 4, queued 4, on_node 4,
        place 4, node 4 }
    /// A cache.
    CacheShape "cache" { id 4, object_size 4, size 4, align 4, link 4, object_offset 4, order 4, objects 2,
        own_words 4, sheaf_capacity 4, cpu_partial 4, rows 8, stride 8, outside 8, min_partial 4, refs 4, nodes 8 }
    /// What it says of itself for others.
    OutsideShape "outside" { name 8, name_len 4, policy 4, secret 8, debug 8 }
    /// A cache's part of a node.
    PartShape "part" { node 8, barn 8 }
    /// A node.
    NodeShape "node" { list_lock 8, head 4, tail 4, nr_partial 4, nr_slabs 8, total_objects 8 }
    /// A barn.
    BarnShape "barn" { nr_full 4, nr_empty 4, full 8, empty 8 }
    /// A lock.
    LockShape "lock" { word 4, taken 8, contended 8 }
    /// A row.
    RowShape "row" { n 4, main 8, head 4, stats 8, slab 4, spare 8, spare_n 4, partial 4, nr_partial 4,
        nr_full 4, changing 4 }
    /// A debugging layer.
    DebugShape "debug" { layout 8, quarantine 8, faults 8 }
    /// Its quarantine.
    QuarantineShape "quarantine" { first 8, count 8 }
    /// Its layout of a slot.
    LayoutShape "layout" { flags 1, object_size 8, align 8, left 8, inuse 8, free_pointer 8, track_size 8,
        poisons 1, keeps_size 1, slab_size 8 }
    /// Sampled objects.
    GuardedShape "guarded" { live 4 }
}

/// Everything that is looked up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub engine: EngineShape,
    pub pages: PagesShape,
    pub range: RangeShape,
    pub desc: DescShape,
    pub cache: CacheShape,
    pub outside: OutsideShape,
    pub part: PartShape,
    pub node: NodeShape,
    pub barn: BarnShape,
    pub lock: LockShape,
    pub row: RowShape,
    pub debug: DebugShape,
    pub quarantine: QuarantineShape,
    pub layout: LayoutShape,
    pub guarded: GuardedShape,
    pub word: WordShape,
    /// Bytes of a page.
    pub page: u64,
    pub max_slots: u32,
    pub max_caches: u32,
    pub max_nodes: u32,
    /// Counters of a row.
    pub stats: usize,
    pub barn_sheaves: u32,
    pub depot_bytes: usize,
    pub quarantine_words: usize,
    /// Run states and places of held slabs, as numbers.
    pub run_slab: u32,
    pub place_current: u32,
    pub place_full: u32,
    /// A slot whose rows a fork left torn.
    pub inside_size: usize,
    pub lost: u32,
    /// Addresses.
    pub root_engines: u64,
    pub root_slots_used: u64,
    pub root_inside: u64,
}

/// Places of bits in a slab's word.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordShape {
    head: u32,
    inuse: u32,
    objects: u32,
    frozen: u32,
    wake: u32,
}

impl WordShape {
    fn find(segment: &Segment) -> Result<Self, Refusal> {
        let bit = |name: &str| match segment.number(name)? {
            bit @ 0..=63 => Ok(bit as u32),
            _ => Err(Refusal::Structure("places of bits in a word")),
        };
        Ok(Self {
            head: bit("word.head")?,
            inuse: bit("word.inuse")?,
            objects: bit("word.objects")?,
            frozen: bit("word.frozen")?,
            wake: bit("word.wake")?,
        })
    }

    /// The parts of a word.
    pub fn read(self, raw: u64) -> crate::slab::Word {
        let bit = |at: u32| raw >> at & 1 != 0;
        crate::slab::Word::of_parts(
            (raw >> self.head) as u16,
            (raw >> self.inuse) as u16,
            (raw >> self.objects) as u16,
            bit(self.frozen),
            bit(self.wake),
        )
    }
}

/// A number, of which more than `most` cannot be true.
fn bounded(segment: &Segment, name: &'static str, most: u64) -> Result<u32, Refusal> {
    let number = segment.number(name)?;
    if number > most {
        return Err(Refusal::Structure(name));
    }
    Ok(number as u32)
}

impl Shape {
    /// What a segment says.
    pub fn find(segment: &Segment) -> Result<Self, Refusal> {
        let page = segment.number("const.page")?;
        if !page.is_power_of_two() || !(512..=1 << 20).contains(&page) {
            return Err(Refusal::Structure("size of a page"));
        }
        let number = |name, most| bounded(segment, name, most);
        let this = Self {
            engine: EngineShape::find(segment)?,
            pages: PagesShape::find(segment)?,
            range: RangeShape::find(segment)?,
            desc: DescShape::find(segment)?,
            cache: CacheShape::find(segment)?,
            outside: OutsideShape::find(segment)?,
            part: PartShape::find(segment)?,
            node: NodeShape::find(segment)?,
            barn: BarnShape::find(segment)?,
            lock: LockShape::find(segment)?,
            row: RowShape::find(segment)?,
            debug: DebugShape::find(segment)?,
            quarantine: QuarantineShape::find(segment)?,
            layout: LayoutShape::find(segment)?,
            guarded: GuardedShape::find(segment)?,
            word: WordShape::find(segment)?,
            page,
            max_slots: number("const.max_slots", 1 << 16)?,
            max_caches: number("const.max_caches", 1 << 14)?,
            max_nodes: number("const.max_nodes", 16)?,
            stats: number("const.stats", 256)? as usize,
            barn_sheaves: number("const.barn_sheaves", 256)?,
            depot_bytes: number("const.depot_bytes", 64 << 20)? as usize,
            quarantine_words: number("quarantine.words", 1 << 16)? as usize,
            run_slab: number("run.slab", 255)?,
            place_current: number("place.current", 255)?,
            place_full: number("place.full", 255)?,
            inside_size: number("inside.size", 4096)? as usize,
            lost: number("inside.lost", u32::MAX.into())?,
            root_engines: segment.number("root.engines")?,
            root_slots_used: segment.number("root.slots_used")?,
            root_inside: segment.number("root.inside")?,
        };
        if this.parts().iter().all(|(part, whole)| part <= whole) && this.desc.sizeof <= 4096 {
            Ok(this)
        } else {
            Err(Refusal::Structure("sizes"))
        }
    }

    /// Where parts end, and the structures that they lie in.
    fn parts(&self) -> [(usize, usize); 15] {
        let words = self.barn_sheaves as usize * 8;
        let caches = self.max_caches as usize * 4;
        let nodes = self.max_nodes as usize * self.part.sizeof;
        [
            (self.engine.pages + self.pages.sizeof, self.engine.sizeof),
            (self.engine.present + caches, self.engine.sizeof),
            (self.pages.range + self.range.sizeof, self.pages.sizeof),
            (self.cache.nodes + nodes, self.cache.sizeof),
            (self.cache.outside + self.outside.sizeof, self.cache.sizeof),
            (self.part.node + self.node.sizeof, self.part.sizeof),
            (self.part.barn + self.barn.sizeof, self.part.sizeof),
            (self.node.list_lock + self.lock.sizeof, self.node.sizeof),
            (self.barn.full + words, self.barn.sizeof),
            (self.barn.empty + words, self.barn.sizeof),
            (self.row.stats + self.stats * 8, self.row.sizeof),
            (self.debug.layout + self.layout.sizeof, self.debug.sizeof),
            (
                self.debug.quarantine + self.quarantine.sizeof,
                self.debug.sizeof,
            ),
            (self.guarded.live + caches, self.guarded.sizeof),
            (16, self.quarantine_words * 8),
        ]
    }
}
