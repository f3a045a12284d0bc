//! How the caches are spread around their sums: the extended totals.
//!
//! [`Extended`] is the table that `slabinfo -T` and `-X` print
//! (tools/mm/slabinfo.c of Linux 6.12), over the caches that hold slabs. Where
//! it differs from the tool, on purpose:
//!
//! * the tool leaves out caches without objects too; their slabs are memory
//!   held, so they count here;
//! * the average of partial objects is a number of objects; the tool prints a
//!   percentage in that cell;
//! * the total of a share is weighted (all partial slabs over all slabs);
//!   its average is the plain mean over the caches, as in the tool, but not
//!   made of percentages cut to integers;
//! * a cache that lacks a figure is left out of that row and counted, where
//!   the tool takes the figure for 0.

use super::{Adder, Sum};
use crate::analysis::Usage;
use crate::model::{Approx, Bytes, Cache, Quantity, Unit};

/// One cell of the extended table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// A number of the row's unit.
    Whole(u64),
    /// A share, 0 to 1.
    Share(f64),
}

impl Figure {
    /// The number as a float.
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Share(r) => r,
        }
    }
}

/// One row of the extended table.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtendedRow {
    /// Stable name, for example `partial_slabs`.
    pub name: &'static str,
    /// What the cells count; shares of [`Unit::Percent`] are 0 to 1.
    pub unit: Unit,
    /// Mean over the caches, or over the objects in the rows per object.
    pub average: Option<Approx<f64>>,
    /// Smallest of the caches.
    pub min: Option<Approx<Figure>>,
    /// Largest of the caches.
    pub max: Option<Approx<Figure>>,
    /// All caches together; `None` in the rows per object.
    pub total: Option<Approx<Figure>>,
    /// Caches of the population that lack the figure.
    pub missing: u64,
}

/// What `slabinfo -T` and `-X` print.
///
/// The population is the caches that are known to hold at least one slab.
#[derive(Debug, Clone, PartialEq)]
pub struct Extended {
    /// Caches in all.
    pub caches: u64,
    /// Caches in the population.
    pub active: u64,
    /// Caches that do not tell whether they hold a slab; not in the population.
    pub unknown: u64,
    /// Loss over used payload (the tool's `MRatio`); can exceed 1.
    pub loss_to_used: Option<Approx<f64>>,
    /// Objects on partial slabs over all objects in use (the tool's `ORatio`).
    pub partial_objects_share: Option<Approx<f64>>,
    /// Figures per cache: objects, slabs, partial slabs and their share,
    /// partial objects and their share, memory, used, loss.
    pub rows: Vec<ExtendedRow>,
    /// Figures per object: memory, user, loss. The average is over the objects
    /// in use, smallest and largest are over the caches.
    pub per_object: Vec<ExtendedRow>,
}

type Cell = Option<Approx<u64>>;
/// A part and the whole that it is a share of.
type Part = (Cell, Cell);

impl Extended {
    /// Makes the table for `caches` of a machine with pages of `page_size` bytes.
    pub fn of<'a>(caches: impl IntoIterator<Item = &'a Cache>, page_size: u64) -> Self {
        let (mut all, mut unknown) = (0, 0);
        let mut active = Vec::new();
        for cache in caches {
            all += 1;
            match cache.is_empty() {
                Some(false) => active.push((cache, Usage::of(cache, page_size))),
                Some(true) => {}
                None => unknown += 1,
            }
        }
        let rows = per_cache(&active);
        let total = |name: &str| rows.iter().find(|r| r.name == name).and_then(|r| r.total);
        Self {
            caches: all,
            active: active.len() as u64,
            unknown,
            loss_to_used: quotient(total("loss"), total("used")),
            partial_objects_share: total("partial_objects_share").map(|t| t.map(Figure::as_f64)),
            per_object: per_object(&active),
            rows,
        }
    }
}

fn quotient(part: Option<Approx<Figure>>, whole: Option<Approx<Figure>>) -> Option<Approx<f64>> {
    let (part, whole) = (part?, whole?);
    (whole.value.as_f64() > 0.0).then(|| part.zip_with(whole, |p, w| p.as_f64() / w.as_f64()))
}

fn per_cache(active: &[(&Cache, Usage)]) -> Vec<ExtendedRow> {
    use Quantity::{Objects, ObjectsPartial, Partial, Slabs};
    let of = |q: Quantity| active.iter().map(move |(c, _)| c.get(q));
    let parts = |part, whole| active.iter().map(move |(c, _)| (c.get(part), c.get(whole)));
    let bytes = |f: fn(&Usage) -> Option<Approx<Bytes>>| {
        active
            .iter()
            .map(move |(_, u)| f(u).map(|b| b.map(Bytes::get)))
    };
    vec![
        counts("objects", Unit::Objects, of(Objects)),
        counts("slabs", Unit::Slabs, of(Slabs)),
        counts("partial_slabs", Unit::Slabs, of(Partial)),
        shares("partial_slabs_share", parts(Partial, Slabs)),
        counts("partial_objects", Unit::Objects, of(ObjectsPartial)),
        shares("partial_objects_share", parts(ObjectsPartial, Objects)),
        counts("memory", Unit::Bytes, bytes(|u| u.memory)),
        counts("used", Unit::Bytes, bytes(|u| u.used)),
        counts("loss", Unit::Bytes, bytes(|u| u.loss)),
    ]
}

fn per_object(active: &[(&Cache, Usage)]) -> Vec<ExtendedRow> {
    let row = |name, size: fn(&Cache) -> Cell| {
        let sizes = active
            .iter()
            .map(move |(c, _)| (size(c), c.get(Quantity::Objects)));
        weighted(name, sizes)
    };
    vec![
        row("memory", |c| c.get(Quantity::SlabSize)),
        row("user", |c| c.get(Quantity::ObjectSize)),
        row("loss", |c| {
            let slot = c.get(Quantity::SlabSize)?;
            Some(slot.zip_with(c.get(Quantity::ObjectSize)?, u64::saturating_sub))
        }),
    ]
}

fn counts(name: &'static str, unit: Unit, cells: impl Iterator<Item = Cell>) -> ExtendedRow {
    let mut row = ExtendedRow::new(name, unit);
    let mut sum = Adder::default();
    let mut present = 0u64;
    for cell in cells {
        sum.add(cell);
        if let Some(figure) = cell {
            present += 1;
            row.widen(figure.map(Figure::Whole));
        }
    }
    let sum: Sum<u64> = sum.sum();
    row.missing = sum.missing;
    row.total = sum.total.map(|t| t.map(Figure::Whole));
    if present > 0 {
        row.average = sum.total.map(|t| t.map(|t| t as f64 / present as f64));
    }
    row
}

fn shares(name: &'static str, cells: impl Iterator<Item = Part>) -> ExtendedRow {
    let mut row = ExtendedRow::new(name, Unit::Percent);
    let (mut parts, mut wholes) = (Adder::default(), Adder::default());
    let (mut sum, mut present, mut approx) = (0.0, 0u64, false);
    for cell in cells {
        let (Some(part), Some(whole)) = cell else {
            row.missing += 1;
            continue;
        };
        parts.add(Some(part));
        wholes.add(Some(whole));
        if let Some(share) = share(part, whole) {
            present += 1;
            sum += share.value;
            approx |= share.approx;
            row.widen(share.map(Figure::Share));
        }
    }
    approx |= row.missing > 0;
    if present > 0 {
        row.average = Some(Approx {
            value: sum / present as f64,
            approx,
        });
    }
    row.total = parts.total.zip(wholes.total).and_then(|(part, whole)| {
        let mut total = share(part, whole)?.map(Figure::Share);
        total.approx |= approx;
        Some(total)
    });
    row
}

/// A share held inside 0 to 1; `None` of nothing.
fn share(part: Approx<u64>, whole: Approx<u64>) -> Option<Approx<f64>> {
    if whole.value == 0 {
        return None;
    }
    let mut share = part.zip_with(whole, |p, w| (p as f64 / w as f64).min(1.0));
    share.approx |= part.value > whole.value;
    Some(share)
}

fn weighted(name: &'static str, cells: impl Iterator<Item = Part>) -> ExtendedRow {
    let mut row = ExtendedRow::new(name, Unit::Bytes);
    let (mut bytes, mut objects, mut approx) = (0.0, 0.0, false);
    for cell in cells {
        let (Some(size), Some(count)) = cell else {
            row.missing += 1;
            continue;
        };
        row.widen(size.map(Figure::Whole));
        bytes += size.value as f64 * count.value as f64;
        objects += count.value as f64;
        approx |= size.approx || count.approx;
    }
    if objects > 0.0 {
        row.average = Some(Approx {
            value: bytes / objects,
            approx: approx || row.missing > 0,
        });
    }
    row
}

impl ExtendedRow {
    const fn new(name: &'static str, unit: Unit) -> Self {
        Self {
            name,
            unit,
            average: None,
            min: None,
            max: None,
            total: None,
            missing: 0,
        }
    }

    fn widen(&mut self, figure: Approx<Figure>) {
        let value = figure.value.as_f64();
        if self.min.is_none_or(|m| value < m.value.as_f64()) {
            self.min = Some(figure);
        }
        if self.max.is_none_or(|m| value > m.value.as_f64()) {
            self.max = Some(figure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::sysfs;
    use crate::model::Layer;

    fn row<'a>(rows: &'a [ExtendedRow], name: &str) -> &'a ExtendedRow {
        rows.iter().find(|r| r.name == name).unwrap()
    }

    #[test]
    fn shares_have_a_plain_mean_and_a_weighted_total() {
        // 1 of 100 slabs and 1 of 2 slabs are partial.
        let caches = [
            sysfs(100, 3190, 1, 22),
            sysfs(2, 40, 1, 8),
            sysfs(0, 0, 0, 0),
        ];
        let table = Extended::of(&caches, 4096);
        assert_eq!((table.caches, table.active, table.unknown), (3, 2, 0));
        let share = row(&table.rows, "partial_slabs_share");
        assert_eq!(share.average, Some(Approx::exact(0.255)));
        assert_eq!(share.total, Some(Approx::exact(Figure::Share(2.0 / 102.0))));
        assert_eq!(share.max, Some(Approx::exact(Figure::Share(0.5))));
        let objects = row(&table.rows, "partial_objects");
        assert_eq!(
            objects.average,
            Some(Approx::exact(15.0)),
            "not a percentage"
        );
        assert_eq!(objects.total, Some(Approx::exact(Figure::Whole(30))));
        let ratio = table.partial_objects_share.unwrap().value;
        assert!((ratio - 30.0 / 3230.0).abs() < 1e-12);
    }

    #[test]
    fn per_object_averages_are_weighted_by_objects() {
        let mut big = sysfs(1, 10, 0, 0);
        big.set_exact(Quantity::ObjectSize, 1000, Layer::Sysfs);
        big.set_exact(Quantity::SlabSize, 1024, Layer::Sysfs);
        let table = Extended::of(&[sysfs(1, 30, 1, 30), big], 4096);
        let memory = row(&table.per_object, "memory");
        assert_eq!(memory.average, Some(Approx::exact(352.0)));
        assert_eq!(memory.min, Some(Approx::exact(Figure::Whole(128))));
        assert_eq!(memory.total, None);
        let loss = row(&table.per_object, "loss");
        assert_eq!(loss.average, Some(Approx::exact(27.0)));
    }

    #[test]
    fn a_slab_without_objects_is_still_memory() {
        let table = Extended::of(&[sysfs(4, 0, 4, 0)], 4096);
        assert_eq!(table.active, 1);
        let memory = row(&table.rows, "memory");
        assert_eq!(memory.total, Some(Approx::exact(Figure::Whole(16_384))));
        let share = row(&table.rows, "partial_objects_share");
        assert_eq!((share.average, share.total), (None, None));
        assert_eq!(table.loss_to_used, None);
    }

    #[test]
    fn a_race_stays_inside_one_hundred_percent() {
        let table = Extended::of(&[sysfs(3, 96, 5, 100)], 4096);
        let share = row(&table.rows, "partial_slabs_share");
        assert_eq!(share.total, Some(Approx::estimate(Figure::Share(1.0))));
    }
}
