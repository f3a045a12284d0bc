//! One block of `slabinfo -r`, the report on a single cache.
//!
//! Purpose: the figures of its five-row table and the facts above it. Source
//! of truth: tools/mm/slabinfo.c of Linux 6.12 and its real output. What
//! follows the table (call sites, nodes, counters) is not read here.

use super::slabinfo_tool::sane;
use crate::model::{Cache, CacheId, Flag, Layer, Quantity};

const LAYER: Layer = Layer::SlabinfoTool;

/// A block that is being read.
pub(super) struct Block {
    cache: Cache,
}

impl Block {
    /// `Slabcache: kmalloc-64       Aliases:  0 Order :  0 Objects: 1871`.
    pub(super) fn starts(line: &str) -> Option<Self> {
        let rest = line.trim_start().strip_prefix("Slabcache: ")?;
        let (name, rest) = rest.split_once(" Aliases:")?;
        let name = name.trim();
        if name.is_empty() {
            return None;
        }
        let mut cache = Cache::new(CacheId(0), name);
        let words: Vec<&str> = rest
            .split([':', ' '])
            .filter(|w| !w.is_empty())
            .take(5)
            .collect();
        if let [aliases, "Order", order, "Objects", objects] = words.as_slice() {
            for (quantity, text) in [
                (Quantity::AliasCount, aliases),
                (Quantity::Order, order),
                (Quantity::Objects, objects),
            ] {
                if let Some(value) = sane(text) {
                    cache.set_exact(quantity, value, LAYER);
                }
            }
        }
        Some(Self { cache })
    }

    /// Takes what it knows from a line of the block.
    pub(super) fn line(&mut self, line: &str) {
        let line = line.trim();
        if let Some(fact) = line.strip_prefix("** ") {
            if let Some((_, flag)) = FACTS.iter().find(|(text, _)| fact == *text) {
                self.cache.flags.put(*flag, true);
            }
        } else if line.starts_with("Sizes (bytes)") {
            // The facts end here; one that was not printed does not hold.
            for (_, flag) in FACTS {
                if self.cache.flags.get(flag).is_none() {
                    self.cache.flags.put(flag, false);
                }
            }
        } else {
            self.row(line);
        }
    }

    /// The cache, as far as the block told of it.
    pub(super) fn cache(self) -> Cache {
        self.cache
    }

    /// Four cells of `label: value`; the labels may touch the values.
    fn row(&mut self, line: &str) {
        let cells: Vec<&str> = line.splitn(6, ':').collect();
        let [label, size, slabs, state, memory] = cells.as_slice() else {
            return;
        };
        let Some(row) = ROWS.iter().find(|r| r.label == label.trim()) else {
            return;
        };
        let first = |cell: &str| {
            cell.split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        for (quantity, cell) in [(row.size, size), (row.slabs, slabs), (row.memory, memory)] {
            if let (Some(quantity), Some(value)) = (quantity, sane(&first(cell))) {
                self.cache.set_exact(quantity, value, LAYER);
            }
        }
        match first(state).as_str() {
            "On" => self.cache.flags.put(row.flag, true),
            "Off" => self.cache.flags.put(row.flag, false),
            _ => {}
        }
    }
}

const FACTS: [(&str, Flag); 4] = [
    ("Hardware cacheline aligned", Flag::HwcacheAlign),
    ("Memory is allocated in a special DMA zone", Flag::CacheDma),
    ("Slabs are destroyed via RCU", Flag::DestroyByRcu),
    ("Reclaim accounting active", Flag::ReclaimAccount),
];

/// What the four cells of a row mean; `None` for a figure that follows from others.
struct Cells {
    label: &'static str,
    size: Option<Quantity>,
    slabs: Option<Quantity>,
    flag: Flag,
    memory: Option<Quantity>,
}

const ROWS: [Cells; 5] = [
    Cells {
        label: "Object",
        size: Some(Quantity::ObjectSize),
        slabs: Some(Quantity::Slabs),
        flag: Flag::SanityChecks,
        memory: Some(Quantity::ReportedTotal),
    },
    Cells {
        label: "SlabObj",
        size: Some(Quantity::SlabSize),
        slabs: None,
        flag: Flag::RedZone,
        memory: Some(Quantity::ReportedUsed),
    },
    Cells {
        label: "SlabSiz",
        size: None,
        slabs: Some(Quantity::Partial),
        flag: Flag::Poison,
        memory: None,
    },
    Cells {
        label: "Loss",
        size: None,
        slabs: Some(Quantity::CpuSlabs),
        flag: Flag::StoreUser,
        memory: None,
    },
    Cells {
        label: "Align",
        size: Some(Quantity::Align),
        slabs: Some(Quantity::ObjsPerSlab),
        flag: Flag::Trace,
        memory: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Approx, Bytes, Objects, Slabs};

    const REPORT: &str = include_str!("../../tests/data/text/slabinfo-tool-report-6.18.txt");

    #[test]
    fn every_block_of_a_report_is_a_cache() {
        let parsed = super::super::slabinfo_tool::parse(REPORT.as_bytes());
        assert!(parsed.warnings.is_empty());
        let [dma, plain] = parsed.caches.as_slice() else {
            panic!("{}", parsed.caches.len());
        };
        assert_eq!(&*dma.name, "dma-kmalloc-64");
        assert!(dma.flags.is_set(Flag::CacheDma));
        assert_eq!(plain.flags.get(Flag::CacheDma), Some(false));
        assert_eq!(plain.flags.get(Flag::StoreUser), Some(false));
        assert_eq!(plain.object_size(), Some(Approx::exact(Bytes(64))));
        assert_eq!(plain.slab_size(), Some(Approx::exact(Bytes(64))));
        assert_eq!(plain.objects(), Some(Approx::exact(Objects(1871))));
        assert_eq!(plain.objs_per_slab(), Some(Approx::exact(Objects(64))));
        assert_eq!(plain.slabs(), Some(Approx::exact(Slabs(31))));
        assert_eq!(plain.partial(), Some(Approx::exact(Slabs(4))));
        assert_eq!(plain.cpu_slabs(), Some(Approx::exact(Slabs(8))));
        let total = plain.get(Quantity::ReportedTotal).unwrap().value;
        let used = plain.get(Quantity::ReportedUsed).unwrap().value;
        assert_eq!((total, used), (31 * 4096, 1871 * 64));
    }

    #[test]
    fn a_cell_may_touch_its_label() {
        let mut block = Block::starts("Slabcache: x Aliases: 2 Order : 0 Objects: 7").unwrap();
        block.line("Object :64  Total  :12345678   Sanity Checks : On  Total:50567897088");
        let cache = block.cache();
        assert_eq!(cache.slabs(), Some(Approx::exact(Slabs(12_345_678))));
        assert!(cache.flags.is_set(Flag::SanityChecks));
        assert_eq!(cache.get(Quantity::AliasCount), Some(Approx::exact(2)));
    }
}
