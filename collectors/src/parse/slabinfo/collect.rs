//! Rows of slabinfo to caches of the model.
//!
//! Which allocator wrote the file shows only in its rows: SLUB prints zeros for
//! tunables and repeats `num_slabs` as `active_slabs`, which then says nothing.

use std::io::BufRead;

use super::legacy::exact_ratio;
use super::{Columns, Reader, Row, Slabinfo};
use crate::model::{
    Allocator, Cache, CacheId, Layer, Quantity, SlabTunables, Warning, WarningCode, Warnings,
};
use crate::parse::Parsed;

/// Turns rows into caches as they come.
pub(super) struct Collector {
    caches: Vec<Cache>,
    warnings: Warnings,
    max_rows: usize,
    cgroup: Option<Box<str>>,
    slab: bool,
    statistics: bool,
    /// `active_slabs` of rows so far, until a row shows that this is SLAB.
    undecided: Vec<Option<u64>>,
}

impl Collector {
    pub(super) fn new(max_rows: usize) -> Self {
        Self {
            caches: Vec::new(),
            warnings: Warnings::default(),
            max_rows,
            cgroup: None,
            slab: false,
            statistics: false,
            undecided: Vec::new(),
        }
    }

    /// All rows are of this control group.
    pub(super) fn of_cgroup(mut self, cgroup: &str) -> Self {
        self.cgroup = Some(cgroup.into());
        self
    }

    pub(super) fn is_full(&self) -> bool {
        self.caches.len() >= self.max_rows
    }

    pub(super) fn warn_full(&mut self) {
        let text = format!("only the first {} rows were read", self.max_rows);
        self.warnings
            .push(Warning::new(WarningCode::LimitReached, text));
    }

    /// Adds a row; `file` is the one that `grep` named before it.
    pub(super) fn add(&mut self, row: &Row<'_>, file: Option<&str>) {
        let id = CacheId(u32::try_from(self.caches.len()).unwrap_or(u32::MAX));
        let mut cache = Cache::new(id, row.name);
        cache.cgroup = file.and_then(cgroup_of).or_else(|| self.cgroup.clone());
        let layer = if cache.cgroup.is_some() {
            Layer::Memcg
        } else {
            Layer::Slabinfo
        };
        fill(&mut cache, &row.columns, layer);
        let columns = &row.columns;
        self.statistics |= columns.statistics.is_some();
        if self.slab || shows_slab(columns) {
            self.decide();
            add_slab(&mut cache, columns.active_slabs, columns.tunables, layer);
            cache.slab_statistics = columns.statistics.map(Box::new);
        } else {
            self.undecided.push(columns.active_slabs);
        }
        self.caches.push(cache);
    }

    /// A row showed that this is SLAB: gives the earlier rows their figures.
    fn decide(&mut self) {
        self.slab = true;
        let zeros = SlabTunables {
            sharedfactor: Some(0),
            ..SlabTunables::default()
        };
        for (cache, active) in self.caches.iter_mut().zip(self.undecided.drain(..)) {
            let layer = cache.origin(Quantity::Objects).unwrap_or(Layer::Slabinfo);
            add_slab(cache, active, Some(zeros), layer);
        }
    }

    pub(super) fn finish<R: BufRead>(self, reader: &mut Reader<R>) -> Slabinfo {
        let head = reader.head();
        let allocator = if self.slab {
            Allocator::Slab
        } else if self.caches.is_empty() || reader.is_look_alike() {
            Allocator::Unknown
        } else {
            Allocator::Slub
        };
        let mut warnings = reader.take_warnings();
        warnings.append(self.warnings);
        Slabinfo {
            parsed: Parsed {
                caches: self.caches,
                warnings,
                broken_rows: reader.broken_rows(),
            },
            version: head.version,
            allocator,
            statistics: head.statistics || self.statistics,
            smp: head.smp,
            header_seen: head.seen,
            look_alike: reader.is_look_alike(),
        }
    }
}

/// Version 1.x is SLAB always; later only SLAB has tunables and statistics.
fn shows_slab(columns: &Columns) -> bool {
    let tuned = columns
        .tunables
        .is_some_and(|t| t.limit != 0 || t.batchcount != 0 || t.sharedfactor.unwrap_or(0) != 0);
    columns.objperslab.is_none() || tuned || columns.statistics.is_some()
}

fn add_slab(
    cache: &mut Cache,
    active_slabs: Option<u64>,
    tunables: Option<SlabTunables>,
    layer: Layer,
) {
    if let Some(active) = active_slabs {
        cache.set_exact(Quantity::ActiveSlabs, active, layer);
    }
    cache.tunables = tunables.map(Box::new);
}

fn fill(cache: &mut Cache, columns: &Columns, layer: Layer) {
    let figures = [
        (Quantity::Objects, Some(columns.active_objs)),
        (Quantity::TotalObjects, Some(columns.num_objs)),
        (Quantity::SlabSize, columns.objsize),
        (Quantity::ObjsPerSlab, columns.objperslab),
        (Quantity::PagesPerSlab, columns.pagesperslab),
        (Quantity::Slabs, columns.num_slabs),
    ];
    for (quantity, value) in figures {
        if let Some(value) = value {
            cache.set_exact(quantity, value, layer);
        }
    }
    if let Some(pages) = columns.pagesperslab.filter(|p| p.is_power_of_two()) {
        cache.set_exact(Quantity::Order, u64::from(pages.trailing_zeros()), layer);
    }
    // SLAB has slabs of one order only, so version 1.1 gives this exactly.
    if let (None, Some(slabs)) = (columns.objperslab, columns.num_slabs)
        && let Some(each) = exact_ratio(columns.num_objs, slabs)
    {
        cache.set_exact(Quantity::ObjsPerSlab, each, Layer::Derived);
    }
}

/// The control group of `/sys/fs/cgroup/memory//a.slice/memory.kmem.slabinfo`,
/// as /proc/<pid>/cgroup writes it.
fn cgroup_of(file: &str) -> Option<Box<str>> {
    let dir = file.strip_suffix("memory.kmem.slabinfo")?;
    let below = ["cgroup/memory/", "cgroup/"]
        .iter()
        .find_map(|mount| dir.split_once(mount))
        .map_or(dir, |(_, below)| below);
    let group = below.trim_start_matches("./").trim_matches('/');
    Some(format!("/{group}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_is_named_as_the_kernel_names_it() {
        let group = |file| cgroup_of(file).map(String::from);
        assert_eq!(
            group("/sys/fs/cgroup/memory//a.slice/b.scope/memory.kmem.slabinfo").as_deref(),
            Some("/a.slice/b.scope")
        );
        assert_eq!(group("memory.kmem.slabinfo").as_deref(), Some("/"));
        assert_eq!(group("./a/memory.kmem.slabinfo").as_deref(), Some("/a"));
        assert_eq!(group("/proc/slabinfo"), None);
    }
}
