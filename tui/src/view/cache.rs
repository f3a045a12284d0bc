//! Screen 2: one cache. What it is, how full its slabs are, which way
//! allocations and frees go, what debugging it has.
//!
//! Each part says where its figures come from. How full the partial slabs are
//! is only known to sources that see the slabs; sysfs gives the mean. Paths are
//! counted by kernels with CONFIG_SLUB_STATS and by the built-in engine;
//! elsewhere only what follows from the sizes of the lists is shown, and says so.

use collectors::columns::{self, Row, show};
use collectors::model::{Approx, Bytes, Cache, Flag, Layer, Objects, Quantity, Slabs, Unit};
use collectors::source::Demand;
use collectors::units::{self, Scale};

use super::flow;
use crate::model::{Key, Model, Moment};
use crate::screens::{Body, Screen};
use crate::text::{self, Line};
use crate::theme::Role;
use crate::widgets;

/// The screen.
pub const SCREEN: Screen = Screen {
    name: "cache",
    key: "2",
    title: "Cache",
    doc: "Everything about the selected cache",
    moves_list: false,
    around: 0,
    body: Body::Lines(lines),
    ask,
};

/// Everything of the selected cache, and nothing more of the others.
fn ask(model: &Model, demand: &mut Demand) {
    if let Some((_, cache)) = model.selected() {
        let id = cache.sysfs_id.as_deref().unwrap_or(&cache.name);
        demand.focus = Some(id.to_owned());
    }
}

/// What the parts are made from.
pub(super) struct Subject<'a> {
    pub(super) model: &'a Model,
    pub(super) now: &'a Moment,
    pub(super) cache: &'a Cache,
    pub(super) key: Key,
    pub(super) width: usize,
}

impl Subject<'_> {
    pub(super) fn scale(&self) -> Scale {
        self.model.settings.scale
    }

    /// A figure as people read it.
    pub(super) fn figure(&self, quantity: Quantity) -> String {
        let figure = self.cache.get(quantity);
        figure.map_or_else(
            || show::UNKNOWN.to_owned(),
            |f| show::number(f, quantity.unit(), self.scale()),
        )
    }
}

fn lines(model: &Model, width: usize) -> Vec<Line> {
    let (Some(now), Some(key)) = (&model.time.shown, model.subject()) else {
        return vec![Line::dim("no cache is selected")];
    };
    let Some(cache) = now.cache(key) else {
        return vec![Line::dim("the cache is not in this sample")];
    };
    let subject = Subject {
        model,
        now,
        cache,
        key,
        width,
    };
    let mut out = identity(&subject);
    out.push(Line::new());
    out.extend(memory(&subject));
    out.push(Line::new());
    out.extend(occupancy(&subject));
    out.push(Line::new());
    out.extend(flow::lines(&subject));
    out.push(Line::new());
    out.extend(debugging(&subject));
    out
}

/// Figures by their columns, as many in a line as fit.
fn grid(subject: &Subject<'_>, keys: &[&str]) -> Vec<Line> {
    let row = Row::new(subject.cache, subject.now.page_size());
    let cells: Vec<(String, String)> = keys
        .iter()
        .filter_map(|key| columns::find(key))
        .map(|column| {
            let value = show::value(column.value(&row), column.unit, subject.scale());
            (column.key.to_owned(), value.into_owned())
        })
        .collect();
    let mut out = Vec::new();
    let mut line = Line::new();
    let mut used = 0;
    for (name, value) in cells {
        // One cell apart at the least.
        let wide = (text::width(&name) + text::width(&value) + 2).next_multiple_of(26);
        if used > 0 && used + wide > subject.width {
            out.push(std::mem::take(&mut line));
            used = 0;
        }
        let pad = wide - text::width(&name) - 1 - text::width(&value);
        let role = if value == show::UNKNOWN {
            Role::Dim
        } else {
            Role::Normal
        };
        line = line
            .with(Role::Dim, format!("{name} "))
            .with(role, value)
            .with(Role::Normal, " ".repeat(pad));
        used += wide;
    }
    out.push(line);
    out
}

fn identity(subject: &Subject<'_>) -> Vec<Line> {
    let cache = subject.cache;
    let mut title = Line::heading(&*cache.name);
    if let Some(id) = cache.sysfs_id.as_deref().filter(|id| *id != &*cache.name) {
        title = title.with(Role::Dim, format!("  /sys/kernel/slab/{id}"));
    }
    let mut out = vec![title];
    match cache.aliases.as_deref() {
        Some([]) => out.push(Line::dim("no other name is merged into it")),
        Some(names) => {
            let text = format!("merged with it: {}", names.join(" "));
            let lines = text::wrap(&text, subject.width.max(1));
            out.extend(lines.into_iter().map(Line::plain));
        }
        None => out.push(Line::dim("which names are merged is not in this source")),
    }
    let sizes = [
        "object_size",
        "slab_size",
        "objs_per_slab",
        "order",
        "align",
        "usersize",
        "min_partial",
        "cpu_partial",
        "sheaf_capacity",
        "remote_node_defrag_ratio",
        "reclaim",
        "ctor",
    ];
    out.extend(grid(subject, &sizes));
    out
}

fn memory(subject: &Subject<'_>) -> Vec<Line> {
    let row = Row::new(subject.cache, subject.now.page_size());
    let usage = row.usage;
    let mut out = vec![Line::heading("Memory")];
    let counts = [
        "memory",
        "slabs",
        "objects",
        "total_objects",
        "object_use",
        "partial",
        "cpu_slabs",
        "slabs_cpu_partial",
        "objects_cpu_partial",
        "objects_partial",
    ];
    out.extend(grid(subject, &counts));
    let whole = usage.memory.map(|m| m.value.get()).filter(|m| *m > 0);
    let parts = [
        ("used", usage.used),
        ("slack", usage.slack),
        ("free", usage.free),
        ("padding", usage.padding),
    ];
    for (name, part) in parts {
        let (Some(whole), Some(part)) = (whole, part) else {
            continue;
        };
        let share = part.value.get() as f64 / whole as f64;
        let bar = widgets::bar(share, 20, &subject.model.settings.glyphs);
        let size = show::number(part.map(Bytes::get), Unit::Bytes, subject.scale());
        out.push(
            Line::new()
                .with(Role::Dim, format!("  {name:<8}"))
                .with(Role::Normal, format!("{bar} {size:>7} "))
                .with(Role::Normal, format!("{:>5}%", units::percent(share))),
        );
    }
    out.extend(trend(subject));
    out
}

/// The slabs held, over as many samples as there is room for.
fn trend(subject: &Subject<'_>) -> Option<Line> {
    let cells = subject.width.saturating_sub(36).min(120);
    let time = &subject.model.time;
    let keys = [subject.key];
    let mut series = time
        .history
        .series(subject.now, time.back, cells, Quantity::Slabs, &keys);
    let values = series.remove(&subject.key)?;
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().min()?, known().max()?);
    let chart = widgets::chart(
        &values,
        values.len().min(cells),
        &subject.model.settings.glyphs,
    );
    Some(
        Line::new()
            .with(Role::Dim, "  slabs   ")
            .with(Role::Normal, chart)
            .with(
                Role::Dim,
                format!(" {low} to {high} in {} samples", values.len()),
            ),
    )
}

/// How full the slabs are.
fn occupancy(subject: &Subject<'_>) -> Vec<Line> {
    let mut out = vec![Line::heading("How full the slabs are")];
    if let Some(occupancy) = &subject.cache.occupancy {
        out.extend(histogram(subject, &occupancy.value.0));
        out.push(Line::dim(measured(subject, occupancy.approx)));
    } else {
        out.extend(mean(subject));
    }
    out.extend(per_node(subject));
    out
}

/// Who looked at the slabs.
fn measured(subject: &Subject<'_>, approx: bool) -> &'static str {
    let bpf = subject.cache.layers.contains(Layer::Bpf);
    match (bpf, approx) {
        (false, _) => {
            "  measured: every slab, by the engine itself; free objects near CPUs count as in use"
        }
        (true, false) => {
            "  measured: every slab on a list, by BPF; free objects near CPUs count as in use"
        }
        (true, true) => {
            "  ~ by BPF: lists moved, or were too long to walk; free objects near CPUs count as in use"
        }
    }
}

fn histogram(subject: &Subject<'_>, buckets: &[u64; 12]) -> Vec<Line> {
    let most = buckets.iter().copied().max().unwrap_or(0).max(1);
    let label = |n: usize| match n {
        0 => "empty".to_owned(),
        11 => "full".to_owned(),
        n => format!("{}-{}%", (n - 1) * 10, n * 10),
    };
    buckets
        .iter()
        .enumerate()
        .map(|(n, count)| {
            let bar = widgets::bar(
                *count as f64 / most as f64,
                30,
                &subject.model.settings.glyphs,
            );
            Line::new()
                .with(Role::Dim, format!("  {:>7} ", label(n)))
                .with(Role::Normal, format!("{bar} {count}"))
        })
        .collect()
}

/// The mean is all that the sizes of the lists tell.
fn mean(subject: &Subject<'_>) -> Vec<Line> {
    let cache = subject.cache;
    let (partial, each) = (cache.partial(), cache.objs_per_slab());
    let why = "a histogram needs a source that sees the slabs: --bpf does, sysfs does not";
    let mut out = Vec::new();
    match (partial, cache.objects_partial(), each) {
        (Some(partial), _, _) if partial.value.get() == 0 => {
            out.push(Line::plain(
                "  no partial slab: all slabs are full, empty or with a CPU",
            ));
            return out;
        }
        (Some(partial), Some(objects), Some(each)) if each.value.get() > 0 => {
            let room = partial.value.get().saturating_mul(each.value.get());
            let share = objects.value.get() as f64 / room as f64;
            let bar = widgets::bar(share, 30, &subject.model.settings.glyphs);
            let approx = partial.approx || objects.approx || share > 1.0;
            let percent = show::percent(Approx {
                value: share.min(1.0),
                approx,
            });
            out.push(
                Line::new()
                    .with(Role::Dim, "  mean    ")
                    .with(Role::Normal, format!("{bar} {percent}%"))
                    .with(
                        Role::Dim,
                        format!(" of {partial} partial slabs", partial = partial.value),
                    ),
            );
            out.push(Line::dim(
                "  mean only: objects_partial / (partial x objs_per_slab), from sysfs",
            ));
        }
        _ => out.push(Line::dim(format!(
            "  not known: partial {}, objects_partial {}",
            subject.figure(Quantity::Partial),
            subject.figure(Quantity::ObjectsPartial)
        ))),
    }
    let lines = text::wrap(why, subject.width.saturating_sub(2).max(1));
    out.extend(lines.into_iter().map(|l| Line::dim(format!("  {l}"))));
    out
}

fn per_node(subject: &Subject<'_>) -> Vec<Line> {
    let nodes = &subject.cache.nodes;
    if nodes.len() < 2 {
        return Vec::new();
    }
    let show = |f: Option<u64>| f.map_or_else(|| show::UNKNOWN.to_owned(), |f| f.to_string());
    nodes
        .iter()
        .map(|node| {
            Line::new()
                .with(Role::Dim, format!("  node {:<3}", node.node.0))
                .with(
                    Role::Normal,
                    format!(
                        "slabs {} partial {} objects on them {}",
                        show(node.slabs.map(Slabs::get)),
                        show(node.partial.map(Slabs::get)),
                        show(node.objects_partial.map(Objects::get))
                    ),
                )
        })
        .collect()
}

fn debugging(subject: &Subject<'_>) -> Vec<Line> {
    let flags = subject.cache.flags;
    let mut out = vec![Line::heading("Debugging")];
    let kinds = [
        Flag::SanityChecks,
        Flag::RedZone,
        Flag::Poison,
        Flag::StoreUser,
        Flag::Trace,
        Flag::Failslab,
    ];
    let on: Vec<&str> = kinds
        .iter()
        .filter(|f| flags.is_set(**f))
        .map(|f| f.name())
        .collect();
    let unknown: Vec<&str> = kinds
        .iter()
        .filter(|f| flags.get(**f).is_none())
        .map(|f| f.name())
        .collect();
    if on.is_empty() && unknown.len() < kinds.len() {
        out.push(Line::plain("  off"));
    }
    if !on.is_empty() {
        let text = format!("  on: {}", on.join(" "));
        out.push(Line::new().with(Role::Warn, text));
    }
    if !unknown.is_empty() {
        out.push(Line::dim(format!("  not known: {}", unknown.join(" "))));
    }
    out
}
