//! Screen 3: caches by processor or by node.
//!
//! A cell is a number and a shade by its share of the largest one on the
//! screen. Kernels name only the processors and nodes that hold something, so
//! one that a list leaves out holds none; without the list it is not known.
//! Sheaves and barns are seen by readers of kernel memory and by the engine.

mod figure;

use std::collections::BTreeSet;

use collectors::columns::show;
use collectors::model::{Approx, Cache, OriginKind, Quantity, QuantitySet, Unit};
use collectors::source::Demand;

use self::figure::Figure;
use super::canvas::Canvas;
use crate::model::{Model, Moment};
use crate::screens::{Body, Screen};
use crate::text;
use crate::theme::Role;
use crate::widgets;

/// The screen.
pub const SCREEN: Screen = Screen {
    name: "matrix",
    key: "3",
    title: "CPU/Node",
    doc: "What each CPU or node holds of each cache",
    moves_list: true,
    around: 3,
    body: Body::Drawn(draw),
    ask,
};

/// The lists of the side that is shown; those of nodes may cost walks.
fn ask(model: &Model, demand: &mut Demand) {
    let own = if model.spot().turned {
        demand.nodes = true;
        QuantitySet::of(&[Quantity::Slabs, Quantity::Partial, Quantity::CpuSlabs])
    } else {
        demand.cpus = true;
        QuantitySet::of(&[Quantity::SlabsCpuPartial])
    };
    demand.quantities = demand.quantities.union(own);
}

/// The processors or nodes: those that a list names, and those that are online.
fn ids(model: &Model, now: &Moment) -> Vec<u32> {
    let system = &now.snapshot.system;
    let caches = &now.snapshot.caches;
    let turned = model.spot().turned;
    let online = if turned { system.nodes } else { system.cpus };
    // No kernel has more; a broken source may say so.
    let mut ids: BTreeSet<u32> = (0..online.unwrap_or(0).min(8192)).collect();
    if turned {
        ids.extend(caches.iter().flat_map(|c| &c.nodes).map(|p| p.node.0));
    } else {
        ids.extend(caches.iter().flat_map(|c| &c.cpus).map(|p| p.cpu.0));
    }
    ids.into_iter().collect()
}

fn draw(model: &Model, canvas: &mut Canvas<'_>) {
    let Some(now) = &model.time.shown else {
        return;
    };
    let axis = if model.spot().turned { "node" } else { "CPU" };
    let Some((figure, count)) = Figure::chosen(model, now) else {
        let title = format!("what each {axis} holds of each cache");
        canvas.put(0, 0, &title, Role::Header);
        let lines = super::note(&why_nothing(model, now), 2, canvas.width(), Role::Dim);
        for (y, line) in lines.iter().enumerate() {
            canvas.line(0, y + 1, line);
        }
        return;
    };
    let title = format!("{}, by {axis}", figure.title());
    let x = canvas.put(0, 0, &title, Role::Header);
    let grid = Grid::new(model, now, figure, canvas.width(), canvas.height());
    let aside = grid.aside();
    canvas.put_right(canvas.width(), 0, &aside, Role::Accent);
    let other = if model.spot().turned { "CPUs" } else { "nodes" };
    let hint = format!("  v: another of {count} figures, o: {other}");
    if x + text::width(&hint) + text::width(&aside) < canvas.width() {
        canvas.put(x, 0, &hint, Role::Dim);
    }
    grid.draw(canvas);
    let below = canvas.height().saturating_sub(1);
    canvas.put(0, below, &from(model, now), Role::Dim);
}

/// Where the figures are from.
fn from(model: &Model, now: &Moment) -> String {
    let turned = model.spot().turned;
    match now.snapshot.origin.kind {
        OriginKind::Demo | OriginKind::Process => {
            "from the engine's own slots and nodes; a slot stands for a CPU".to_owned()
        }
        OriginKind::Kernel | OriginKind::Capture if turned => {
            "from the N<node>= lists of sysfs; barns are not there".to_owned()
        }
        _ => "from slabs_cpu_partial (sysfs; objects estimated since 5.16); sheaves not shown"
            .to_owned(),
    }
}

/// Why there is nothing by processor or by node.
fn why_nothing(model: &Model, now: &Moment) -> String {
    if model.spot().turned {
        return match now.snapshot.origin.kind {
            OriginKind::Process => "not known: only sums were published".to_owned(),
            OriginKind::Kernel => "not known: the N<node>= lists of /sys/kernel/slab could not be read (they need root)".to_owned(),
            _ => "not in this source: the N<node>= lists of /sys/kernel/slab were not saved".to_owned(),
        };
    }
    let all_empty = now
        .snapshot
        .caches
        .iter()
        .any(|c| c.get(Quantity::SlabsCpuPartial).is_some());
    if all_empty {
        return "no CPU has a partial list with slabs on it now (slabs_cpu_partial in sysfs)"
            .to_owned();
    }
    match now.snapshot.origin.kind {
        OriginKind::Process => "not known: only sums were published".to_owned(),
        OriginKind::Kernel => "not known: no slabs_cpu_partial in /sys/kernel/slab could be read: it needs root and a kernel with CONFIG_SLUB_CPU_PARTIAL, 3.2 to 6.19; sheaves, since 6.18, are not shown by any file, but by slabctl top --bpf".to_owned(),
        _ => "not in this source: slabs_cpu_partial of /sys/kernel/slab was not saved".to_owned(),
    }
}

/// The part of the table that fits.
struct Grid<'a> {
    model: &'a Model,
    now: &'a Moment,
    figure: Figure,
    ids: Vec<u32>,
    /// The first column shown, and how many.
    first: usize,
    shown: usize,
    name: usize,
    sum: usize,
    cell: usize,
    most: u64,
    rows: usize,
}

impl<'a> Grid<'a> {
    fn new(model: &'a Model, now: &'a Moment, figure: Figure, width: usize, height: usize) -> Self {
        let ids = ids(model, now);
        let rows = height.saturating_sub(SCREEN.around);
        let visible = || model.list.lines.iter().skip(model.list.top).take(rows);
        let caches = visible().filter_map(|line| now.snapshot.caches.get(line.place));
        let mut most = 0;
        let mut sum = 0;
        for cache in caches {
            let values = || ids.iter().filter_map(|id| figure.value(cache, *id));
            most = values().fold(most, u64::max);
            sum = values().fold(0, u64::saturating_add).max(sum);
        }
        let digits = |n: u64| usize::try_from(n.checked_ilog10().unwrap_or(0)).unwrap_or(0) + 1;
        let label = ids.last().map_or(1, |id| digits(u64::from(*id))) + 1;
        // A number, its shade and a gap; at the left the name and the sum.
        let cell = digits(most).max(label) + 2;
        let name = (width / 3).clamp(8, 28);
        let sum = digits(sum).max(3) + 2;
        let left = 1 + name + sum + 1;
        let shown = (width.saturating_sub(left) / cell).min(ids.len());
        let first = model
            .spot()
            .across
            .min(ids.len().saturating_sub(shown.max(1)));
        Self {
            model,
            now,
            figure,
            ids,
            first,
            shown,
            name,
            sum,
            cell,
            most,
            rows,
        }
    }

    /// Where the sums end; the columns begin a cell further.
    const fn sum_end(&self) -> usize {
        1 + self.name + self.sum
    }

    fn columns(&self) -> &[u32] {
        let end = (self.first + self.shown).min(self.ids.len());
        self.ids.get(self.first..end).unwrap_or_default()
    }

    fn draw(&self, canvas: &mut Canvas<'_>) {
        let lines = &self.model.list.lines;
        let visible: Vec<&Cache> = lines
            .iter()
            .skip(self.model.list.top)
            .take(self.rows)
            .filter_map(|line| self.now.snapshot.caches.get(line.place))
            .collect();
        self.heads(canvas);
        let selected = self.model.list.index();
        for (n, cache) in visible.iter().enumerate() {
            self.row(cache, n + 2, canvas);
            if self.model.list.top + n == selected {
                canvas.put(0, n + 2, ">", Role::Normal);
                canvas.tint(n + 2, Role::Selected);
            }
        }
        if lines.is_empty() {
            canvas.put(
                2,
                2,
                "no cache passes: / changes the filter, z shows empty ones",
                Role::Dim,
            );
        }
    }

    fn heads(&self, canvas: &mut Canvas<'_>) {
        canvas.put(1, 1, "Cache", Role::Header);
        canvas.put_right(self.sum_end(), 1, "all", Role::Header);
        let mut end = self.sum_end() + 1;
        let letter = if self.model.spot().turned { 'N' } else { 'C' };
        for id in self.columns() {
            end += self.cell;
            canvas.put_right(end - 2, 1, &format!("{letter}{id}"), Role::Header);
        }
    }

    /// How many columns are out of sight.
    fn aside(&self) -> String {
        let before = self.first;
        let after = self.ids.len() - self.first - self.columns().len();
        if before + after == 0 {
            return String::new();
        }
        format!(" {before} to the left, {after} to the right: h l")
    }

    /// The sum over all columns, shown or not; an estimate where one is not known.
    fn total(&self, cache: &Cache) -> String {
        let values = || self.ids.iter().map(|id| self.figure.value(cache, *id));
        if values().all(|value| value.is_none()) {
            return show::UNKNOWN.to_owned();
        }
        let sum = values().flatten().fold(0, u64::saturating_add);
        let approx = values().any(|value| value.is_none());
        show::number(
            Approx { value: sum, approx },
            Unit::Count,
            self.model.settings.scale,
        )
    }

    fn row(&self, cache: &Cache, y: usize, canvas: &mut Canvas<'_>) {
        let name = text::fit(&cache.name, self.name, canvas.glyphs.cut);
        canvas.put(1, y, &name, Role::Normal);
        canvas.put_right(self.sum_end(), y, &self.total(cache), Role::Normal);
        let mut end = self.sum_end() + 1;
        for id in self.columns() {
            end += self.cell;
            match self.figure.value(cache, *id) {
                None => canvas.put_right(end - 2, y, show::UNKNOWN, Role::Dim),
                Some(0) => canvas.put_right(end - 2, y, "0", Role::Dim),
                Some(value) => {
                    let share = value as f64 / self.most.max(1) as f64;
                    let sign = widgets::shade(share, &canvas.glyphs);
                    canvas.put_right(end - 2, y, &value.to_string(), Role::Normal);
                    canvas.put(end - 2, y, &sign.to_string(), Role::Accent);
                }
            }
        }
    }
}
