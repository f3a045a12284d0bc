//! Screen 7: the machine around the caches, and what watching them costs.
//!
//! Sources: /proc/meminfo, /proc/vmstat, /proc/pressure/memory and
//! /proc/buddyinfo; all but the first are read only while this screen is
//! shown, and are kept for the newest sample alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use collectors::analysis::Usage;
use collectors::analysis::reconcile::{Side, reconcile};
use collectors::columns::show;
use collectors::model::{
    Approx, Bytes, Flag, FreeBlocks, OriginKind, Quantity, QuantitySet, Stall, Unit,
};
use collectors::source::Demand;
use collectors::units;

use super::note;
use crate::model::{Model, Moment, shown};
use crate::screens::{Body, Screen};
use crate::text::{self, Line};
use crate::theme::Role;

/// The screen.
pub const SCREEN: Screen = Screen {
    name: "system",
    key: "7",
    title: "System",
    doc: "The machine's memory, its pressure, free blocks, and what watching costs",
    moves_list: false,
    around: 0,
    body: Body::Lines(lines),
    ask,
};

fn ask(_: &Model, demand: &mut Demand) {
    demand.memory = true;
    let own = QuantitySet::of(&[Quantity::Slabs, Quantity::Order]);
    demand.quantities = demand.quantities.union(own);
    demand.flags.push(Flag::ReclaimAccount);
}

/// What the parts are made from.
struct Look<'a> {
    model: &'a Model,
    now: &'a Moment,
    width: usize,
}

fn lines(model: &Model, width: usize) -> Vec<Line> {
    let Some(now) = &model.time.shown else {
        return Vec::new();
    };
    let look = Look { model, now, width };
    let parts = [
        look.meminfo(),
        look.reconciled(),
        look.vmstat(),
        look.pressure(),
        look.blocks(),
        look.cost(),
    ];
    let mut out: Vec<Line> = Vec::new();
    for part in parts {
        if !out.is_empty() {
            out.push(Line::new());
        }
        out.extend(part);
    }
    out
}

impl Look<'_> {
    fn size(&self, bytes: Approx<u64>) -> String {
        show::number(bytes, Unit::Bytes, self.model.settings.scale)
    }

    fn dim(&self, says: &str) -> Vec<Line> {
        note(says, 2, self.width, Role::Dim)
    }

    /// A change in a second.
    fn rate(&self, now: u64, before: Option<u64>, unit: Unit) -> (String, Role) {
        if !self.model.live {
            // One moment has no rates.
            return (String::new(), Role::Dim);
        }
        let elapsed = self
            .model
            .time
            .elapsed_since(self.model.time.before.as_ref());
        let delta = before.map(|before| Approx::exact(i128::from(now) - i128::from(before)));
        let rate = delta.and_then(|d| shown::per_second(d, elapsed?));
        let role = match rate.map(|r| r.value) {
            Some(v) if v > 0 => Role::Up,
            Some(v) if v < 0 => Role::Down,
            _ => Role::Dim,
        };
        let text = shown::text(rate, unit, self.model.settings.scale);
        (format!("{text:>9}/s"), role)
    }

    /// Why figures of a file are not there; `needs` is what a kernel needs.
    fn why(&self, needs: &str) -> String {
        let newest = self.model.time.newest.as_ref();
        match self.now.snapshot.origin.kind {
            OriginKind::Demo => "there is no machine behind the demonstration".to_owned(),
            OriginKind::Process => "a process has no figures of the machine".to_owned(),
            OriginKind::Capture => "not in this file".to_owned(),
            OriginKind::Kernel if newest.is_some_and(|n| n.at != self.now.at) => {
                "not kept for samples before the newest".to_owned()
            }
            OriginKind::Kernel if self.now.snapshot.system.vmstat.is_empty() => {
                "read while this screen is shown: with the next sample".to_owned()
            }
            OriginKind::Kernel => format!("not known: {needs}"),
        }
    }

    fn meminfo(&self) -> Vec<Line> {
        let mut out = vec![
            Line::heading("Slab in the machine's memory").with(Role::Dim, "  from /proc/meminfo"),
        ];
        let info = &self.now.snapshot.system.meminfo;
        let before = self.model.time.before.as_ref();
        let before = before.map(|b| b.snapshot.system.meminfo);
        let all = |info: &collectors::model::MemInfo| {
            [
                ("Slab", info.slab),
                ("SReclaimable", info.s_reclaimable),
                ("SUnreclaim", info.s_unreclaim),
                ("KReclaimable", info.k_reclaimable),
                ("MemTotal", info.mem_total),
                ("MemFree", info.mem_free),
                ("MemAvailable", info.mem_available),
                ("PageTables", info.page_tables),
                ("KernelStack", info.kernel_stack),
                ("Percpu", info.percpu),
            ]
        };
        let old = before.map(|info| all(&info));
        let total = info.mem_total.map(Bytes::get).filter(|t| *t > 0);
        let mut missing = Vec::new();
        for (place, (name, figure)) in all(info).into_iter().enumerate() {
            let Some(figure) = figure.map(Bytes::get) else {
                missing.push(name);
                continue;
            };
            let was = old.and_then(|old| old[place].1).map(Bytes::get);
            let (rate, role) = self.rate(figure, was, Unit::Bytes);
            let share = total.map_or_else(String::new, |total| {
                format!(
                    "{:>7}% of memory",
                    units::percent(figure as f64 / total as f64)
                )
            });
            out.push(
                Line::new()
                    .with(Role::Dim, format!("  {name:<14}"))
                    .with(
                        Role::Normal,
                        format!("{:>9}", self.size(Approx::exact(figure))),
                    )
                    .with(role, rate)
                    .with(Role::Dim, share),
            );
        }
        if out.len() == 1 {
            out.extend(self.dim(&self.why("/proc/meminfo could not be read")));
        } else if !missing.is_empty() {
            out.extend(self.dim(&format!("not there: {}", missing.join(", "))));
        }
        out
    }

    /// The sum of the caches beside the kernel's own figures.
    fn reconciled(&self) -> Vec<Line> {
        let mut out = vec![
            Line::heading("The caches against it"),
            Line::dim(format!(
                "  {:<14}{:>9}{:>10}{:>12}",
                "", "caches", "kernel", "unexplained"
            )),
        ];
        let result = reconcile(&self.now.snapshot);
        for (name, side) in [
            ("all", &result.all),
            ("reclaimable", &result.reclaimable),
            ("unreclaimable", &result.unreclaimable),
        ] {
            out.push(self.side(name, side));
        }
        for note in &result.notes {
            out.extend(self.dim(note));
        }
        out
    }

    fn side(&self, name: &str, side: &Side) -> Line {
        let unknown = || show::UNKNOWN.to_owned();
        let sum = side.caches.total.map(|t| t.map(Bytes::get));
        let sum = sum.map_or_else(unknown, |t| self.size(t));
        let kernel = side.meminfo.map(|b| Approx::exact(b.get()));
        let kernel = kernel.map_or_else(unknown, |t| self.size(t));
        let scale = self.model.settings.scale;
        let rest = shown::text(side.difference, Unit::Bytes, scale);
        Line::new()
            .with(Role::Dim, format!("  {name:<14}"))
            .with(Role::Normal, format!("{sum:>9}{kernel:>10}{rest:>12}"))
    }

    fn vmstat(&self) -> Vec<Line> {
        let mut out = vec![
            Line::heading("Slab in the kernel's counters").with(Role::Dim, "  from /proc/vmstat"),
        ];
        let stat = &self.now.snapshot.system.vmstat;
        let before = self.model.time.before.as_ref();
        for (name, value) in stat.iter().filter(|(name, _)| name.contains("slab")) {
            let was = before.and_then(|b| b.snapshot.system.vmstat.get(name));
            let (rate, role) = self.rate(*value, was.copied(), Unit::Count);
            let unit = if name.starts_with("nr_") {
                "pages"
            } else {
                "since boot"
            };
            out.push(
                Line::new()
                    .with(Role::Dim, format!("  {name:<24}"))
                    .with(Role::Normal, format!("{value:>12}"))
                    .with(Role::Dim, format!(" {unit:<10}"))
                    .with(role, rate),
            );
        }
        if out.len() == 1 {
            out.extend(self.dim(&self.why("/proc/vmstat has no line about slabs")));
        }
        out
    }

    fn pressure(&self) -> Vec<Line> {
        let mut out = vec![
            Line::heading("Tasks that stood still for memory")
                .with(Role::Dim, "  from /proc/pressure/memory"),
        ];
        let Some(pressure) = self.now.snapshot.system.pressure else {
            let needs = "the kernel shows no /proc/pressure/memory (before 4.20, without CONFIG_PSI, or booted with psi=0)";
            out.extend(self.dim(&self.why(needs)));
            return out;
        };
        out.push(Line::dim(format!(
            "  {:<8}{:>9}{:>9}{:>9}{:>12}",
            "", "10 s", "60 s", "300 s", "since boot"
        )));
        for (name, stall) in [("some", pressure.some), ("full", pressure.full)] {
            let high = stall.avg10 >= 1000;
            let role = if high { Role::Warn } else { Role::Normal };
            let sign = if high { "!" } else { " " };
            let Stall {
                avg10,
                avg60,
                avg300,
                total_us,
            } = stall;
            let percent = |n: u32| format!("{}.{:02}%", n / 100, n % 100);
            let total = text::span(std::time::Duration::from_micros(total_us));
            out.push(
                Line::new()
                    .with(Role::Dim, format!("{sign} {name:<8}"))
                    .with(
                        role,
                        format!(
                            "{:>9}{:>9}{:>9}{total:>12}",
                            percent(avg10),
                            percent(avg60),
                            percent(avg300)
                        ),
                    ),
            );
        }
        out
    }

    /// Which orders the caches use: caches, bytes held.
    fn orders(&self) -> BTreeMap<usize, (u64, u64)> {
        let mut orders = BTreeMap::new();
        for cache in &self.now.snapshot.caches {
            let order = cache
                .get(Quantity::Order)
                .and_then(|o| usize::try_from(o.value).ok());
            let memory = Usage::of(cache, self.now.page_size()).memory;
            let memory = memory.map_or(0, |m| m.value.get());
            if let (Some(order), true) = (order, memory > 0) {
                let entry: &mut (u64, u64) = orders.entry(order).or_default();
                entry.0 += 1;
                entry.1 = entry.1.saturating_add(memory);
            }
        }
        orders
    }

    /// Free blocks of the orders that caches use: of exactly this order, and
    /// with those that larger ones can be split into.
    fn blocks(&self) -> Vec<Line> {
        const CELL: usize = 16;
        let mut out = vec![
            Line::heading("Free blocks for the orders that caches use").with(
                Role::Dim,
                "  from /proc/buddyinfo: exactly / with larger ones split",
            ),
        ];
        let orders = self.orders();
        if orders.is_empty() {
            out.extend(self.dim("the orders of the caches are not known here"));
            return out;
        }
        let fit = (self.width.saturating_sub(20) / CELL).max(1);
        let zones = &self.now.snapshot.system.free_blocks;
        let list: Vec<(usize, (u64, u64))> = orders.into_iter().collect();
        for part in list.chunks(fit) {
            let row = |name: &str, role, cell: &dyn Fn(usize, u64, u64) -> String| {
                let mut text = format!("  {name:<18}");
                for (order, (count, bytes)) in part {
                    let _ = write!(text, "{:>CELL$}", cell(*order, *count, *bytes));
                }
                Line::new().with(role, text)
            };
            out.push(row("", Role::Header, &|order, _, _| {
                format!("order {order}")
            }));
            out.push(row("caches", Role::Dim, &|_, count, _| count.to_string()));
            out.push(row("bytes held", Role::Dim, &|_, _, bytes| {
                self.size(Approx::exact(bytes))
            }));
            for zone in zones {
                let name = format!("node {} {}", zone.node.0, zone.zone);
                out.push(row(&name, Role::Normal, &|order, _, _| free(zone, order)));
            }
        }
        if zones.is_empty() {
            out.extend(self.dim(&self.why("/proc/buddyinfo could not be read")));
        }
        out
    }

    fn cost(&self) -> Vec<Line> {
        let model = self.model;
        let mut out = vec![Line::heading("What watching costs")];
        let mut row = |name: &str, value: String| {
            out.push(
                Line::new()
                    .with(Role::Dim, format!("  {name:<24}"))
                    .with(Role::Normal, value),
            );
        };
        let cost = model.cost.map_or_else(
            || "not known before the first five seconds".to_owned(),
            |cost| format!("{}% of one processor", units::decimal(cost * 100.0, 2)),
        );
        row("this program", cost);
        row("the shown sample", format!("read in {:.1?}", self.now.took));
        if model.live {
            row("a sample every", format!("{:?}", model.settings.interval));
            row("samples not looked at", model.replaced.to_string());
        }
        if let Some(newest) = &model.time.newest {
            let history = &model.time.history;
            row(
                "earlier samples kept",
                format!(
                    "{} over {}",
                    history.len(),
                    text::span(history.span(newest))
                ),
            );
        }
        out
    }
}

fn free(zone: &FreeBlocks, order: usize) -> String {
    match (zone.exactly(order), zone.at_least(order)) {
        (Some(exactly), Some(all)) => format!("{exactly} / {all}"),
        _ => show::UNKNOWN.to_owned(),
    }
}
