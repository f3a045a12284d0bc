//! One frame of slabtop: five lines of sums and a line for each cache.
//!
//! Titles, widths and formulas are those of procps-ng 4.0.2. Counts are 64 bits
//! wide here, a share of nothing is `-`, and names break ties.

use collectors::analysis::Usage;
use collectors::model::{Cache, Quantity, Snapshot};

use super::options::{Options, Sort};
use crate::output::text;

struct Row<'a> {
    cache: &'a Cache,
    objects: Option<u64>,
    active: Option<u64>,
    size: Option<u64>,
    slabs: Option<u64>,
    active_slabs: Option<u64>,
    per_slab: Option<u64>,
    pages: Option<u64>,
    memory: Option<u64>,
}

impl<'a> Row<'a> {
    fn new(cache: &'a Cache, page_size: u64) -> Self {
        let figure = |q| cache.get(q).map(|f| f.value);
        let slabs = figure(Quantity::Slabs);
        Self {
            cache,
            objects: figure(Quantity::TotalObjects),
            active: figure(Quantity::Objects),
            size: figure(Quantity::SlabSize),
            slabs,
            // SLUB counts every slab as active; so does /proc/slabinfo.
            active_slabs: figure(Quantity::ActiveSlabs).or(slabs),
            per_slab: figure(Quantity::ObjsPerSlab),
            pages: cache.pages_per_slab(),
            memory: Usage::of(cache, page_size).memory.map(|m| m.value.get()),
        }
    }

    /// Objects in use in percent of the slots; 0 without slots, as the tool has it.
    fn percent(&self) -> Option<u64> {
        let (active, objects) = (self.active?, self.objects?);
        let percent = (u128::from(active) * 100).checked_div(u128::from(objects));
        u64::try_from(percent.unwrap_or(0).min(100)).ok()
    }

    fn key(&self, sort: Sort) -> Option<u64> {
        match sort {
            Sort::Active => self.active,
            Sort::ObjsPerSlab => self.per_slab,
            Sort::CacheSize => self.memory,
            Sort::Slabs => self.slabs,
            Sort::ActiveSlabs => self.active_slabs,
            Sort::Name => None,
            Sort::Objects => self.objects,
            Sort::PagesPerSlab => self.pages,
            Sort::ObjectSize => self.size,
            Sort::Use => self.percent(),
        }
    }

    fn line(&self) -> String {
        let cell = |v: Option<u64>| v.map_or_else(|| "-".to_owned(), |v| v.to_string());
        let size = self
            .size
            .map_or_else(|| "-".to_owned(), |s| format!("{:.2}K", s as f64 / 1024.0));
        format!(
            "{:>6} {:>6} {:>3}% {size:>8} {:>6} {:>8} {:>9}K {:<23}",
            cell(self.objects),
            cell(self.active),
            cell(self.percent()),
            cell(self.slabs),
            cell(self.per_slab),
            cell(self.memory.map(|m| m / 1024)),
            self.cache.name,
        )
    }
}

/// A frame with the sums and every cache.
pub(crate) fn lines(options: &Options, snapshot: &Snapshot) -> Vec<String> {
    let page_size = snapshot.system.page_size;
    let mut rows: Vec<Row<'_>> = snapshot
        .caches
        .iter()
        .map(|c| Row::new(c, page_size))
        .collect();
    let mut lines = header(&rows);
    // Largest first, unknown last, names break ties.
    rows.sort_by(|a, b| {
        b.key(options.sort)
            .cmp(&a.key(options.sort))
            .then_with(|| a.cache.name.cmp(&b.cache.name))
            .then_with(|| a.cache.id.cmp(&b.cache.id))
    });
    lines.extend(rows.iter().map(Row::line));
    lines
}

/// Adds what is known; nothing known gives nothing.
fn sum(values: impl Iterator<Item = Option<u128>>) -> Option<u128> {
    values.flatten().reduce(u128::saturating_add)
}

fn header(rows: &[Row<'_>]) -> Vec<String> {
    let wide = |v: Option<u64>| v.map(u128::from);
    let times = |n: Option<u64>, size: Option<u64>| Some(u128::from(n?) * u128::from(size?));
    let objects = sum(rows.iter().map(|r| wide(r.objects)));
    let active = sum(rows.iter().map(|r| wide(r.active)));
    let slabs = sum(rows.iter().map(|r| wide(r.slabs)));
    let active_slabs = sum(rows.iter().map(|r| wide(r.active_slabs)));
    let size = sum(rows.iter().map(|r| times(r.objects, r.size)));
    let active_size = sum(rows.iter().map(|r| times(r.active, r.size)));
    let caches = Some(rows.len() as u128);
    let used = sum(rows.iter().map(|r| r.objects.map(|n| u128::from(n > 0))));
    let count = |v: Option<u128>| v.map_or_else(|| "-".to_owned(), |v| v.to_string());
    let kib = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| format!("{:.2}K", v / 1024.0));
    let bytes = |v: Option<u128>| kib(v.map(|v| v as f64));
    let sizes = || rows.iter().filter_map(|r| r.size).map(|s| s as f64);
    let mean = size.zip(objects).filter(|(_, n)| *n > 0);
    let mean = mean.map(|(size, n)| size as f64 / n as f64);
    let first = |title: &str, part: String, whole: String, share: String| {
        format!(" {title:<35}: {part} / {whole} ({share})")
    };
    vec![
        first(
            "Active / Total Objects (% used)",
            count(active),
            count(objects),
            share(active, objects),
        ),
        first(
            "Active / Total Slabs (% used)",
            count(active_slabs),
            count(slabs),
            share(active_slabs, slabs),
        ),
        first(
            "Active / Total Caches (% used)",
            count(used),
            count(caches),
            share(used, caches),
        ),
        first(
            "Active / Total Size (% used)",
            bytes(active_size),
            bytes(size),
            share(active_size, size),
        ),
        format!(
            " {:<35}: {} / {} / {}",
            "Minimum / Average / Maximum Object",
            kib(sizes().reduce(f64::min)),
            kib(mean),
            kib(sizes().reduce(f64::max)),
        ),
        String::new(),
        format!(
            "  OBJS ACTIVE  USE OBJ SIZE  SLABS OBJ/SLAB CACHE SIZE {:<23}",
            "NAME"
        ),
    ]
}

fn share(part: Option<u128>, whole: Option<u128>) -> String {
    match part.zip(whole) {
        Some((part, whole)) if whole > 0 => {
            let percent = (100.0 * part as f64 / whole as f64).min(100.0);
            format!("{percent:.1}%")
        }
        _ => "-".to_owned(),
    }
}

/// A frame for a terminal of this size.
pub(crate) fn frame(options: &Options, snapshot: &Snapshot, rows: usize, cols: usize) -> String {
    let mut out = String::new();
    for (i, line) in lines(options, snapshot).iter().take(rows).enumerate() {
        if i > 0 {
            out.push_str("\r\n");
        }
        out.extend(text::safe(line).chars().take(cols));
    }
    out
}
