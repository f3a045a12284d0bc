//! Screen 5: who allocated the objects of the selected cache, or freed them last.
//!
//! Records are those of debugfs (`alloc_traces`, `free_traces`) or of a saved
//! file. On a live kernel they are read when the screen is opened and when it
//! is asked for, never with each sample: opening the file walks every object.

use collectors::analysis::sites::{self, By, Group, GroupChange};
use collectors::columns::show;
use collectors::model::{Approx, Cache, OriginKind, SiteKind, Unit};

use super::note;
use crate::keys::Action;
use crate::model::{Key, Model, Moment, Pick};
use crate::screens::{Body, Page, Screen};
use crate::text::{self, Line};
use crate::theme::Role;

/// The screen.
pub const SCREEN: Screen = Screen {
    name: "sites",
    key: "5",
    title: "Sites",
    doc: "Who allocated the objects of the selected cache",
    moves_list: false,
    around: 0,
    body: Body::Page(page),
    ask: |_, _| {},
};

/// Cells of a number, with the gap before it.
const CELL: usize = 10;

/// The cache whose call sites a live kernel is to be asked for.
pub(crate) fn wanted(model: &Model) -> Option<(Key, String)> {
    if model.screen().name != SCREEN.name || !model.live {
        return None;
    }
    let (key, cache) = model.selected()?;
    let shown = model.time.shown.as_ref()?;
    let id = cache.sysfs_id.as_deref().unwrap_or(&cache.name);
    (shown.snapshot.origin.kind == OriginKind::Kernel).then(|| (key, id.to_owned()))
}

fn page(model: &Model, width: usize) -> Page {
    let lines = |lines| Page {
        lines,
        ..Page::default()
    };
    let (Some(now), Some(key)) = (&model.time.shown, model.subject()) else {
        return lines(vec![Line::dim("no cache is selected")]);
    };
    let look = model.sites.of(key);
    let Some(cache) = look.map(|look| &look.cache).or_else(|| now.cache(key)) else {
        return lines(vec![Line::dim("the cache is not in this sample")]);
    };
    let kernel = now.snapshot.origin.kind == OriginKind::Kernel;
    if kernel && look.is_none() {
        let says = format!("reading the call sites of {} ...", cache.name);
        return lines(note(&says, 0, width, Role::Dim));
    }
    let kind = if model.spot().turned {
        SiteKind::Free
    } else {
        SiteKind::Alloc
    };
    let by = [By::Site, By::Stack][model.spot().view % 2];
    let before = model.sites.before(key).map(|look| &look.cache);
    let changes = match before.and_then(|before| sites::changes(before, cache, kind, by)) {
        Some(changes) => changes,
        None => sites::group(cache, kind, by)
            .into_iter()
            .map(same)
            .collect(),
    };
    let table = Table {
        model,
        width,
        differs: before.is_some(),
    };
    let mut page = Page {
        head: table.head(cache, (kind, by), &from(model, now, key)),
        ..Page::default()
    };
    if changes.is_empty() {
        page.head.pop();
        page.lines = nothing(model, now, key, cache, width);
        return page;
    }
    page.picks = changes.iter().map(pick).collect();
    let picked = page.picked(model);
    for (place, change) in changes.iter().enumerate() {
        page.picks[place].line = page.lines.len();
        page.lines.push(table.line(change));
        if place == picked {
            page.lines.extend(table.detail(&change.group));
        }
    }
    page.lines.extend(warnings(model, key, width));
    page
}

fn same(group: Group) -> GroupChange {
    GroupChange {
        before: group.count,
        after: group.count,
        delta: 0,
        group,
    }
}

fn pick(change: &GroupChange) -> Pick {
    let symbol = change.group.symbol.as_deref().unwrap_or_default();
    Pick {
        line: 0,
        id: format!("{symbol} {}", change.group.stack.join(" ")),
        key: None,
    }
}

/// Where the records are from, and of when.
fn from(model: &Model, now: &Moment, key: Key) -> String {
    let Some(look) = model.sites.of(key) else {
        return match now.snapshot.origin.kind {
            OriginKind::Process => "from the tracks in the process's memory".to_owned(),
            OriginKind::Demo => "from the built-in engine".to_owned(),
            _ => "from the saved file".to_owned(),
        };
    };
    let newest = model.time.newest.as_ref().map_or(look.at, |m| m.at);
    let age = text::span(newest.saturating_sub(look.at));
    let refresh = model.settings.keys.keys_of(Action::Refresh);
    format!(
        "read {age} ago in {:.1?} from /sys/kernel/debug/slab; not with each sample, since that walks every object: {refresh} reads anew",
        look.took
    )
}

/// Why there are no records, and how to get them.
fn nothing(model: &Model, now: &Moment, key: Key, cache: &Cache, width: usize) -> Vec<Line> {
    let mut out = Vec::new();
    for says in sites::why_none(&now.snapshot, &[cache], Some(&cache.name)) {
        out.extend(note(&says, 2, width, Role::Normal));
    }
    out.extend(warnings(model, key, width));
    out
}

/// What could not be read.
fn warnings(model: &Model, key: Key, width: usize) -> Vec<Line> {
    let looked = model.sites.of(key).map(|look| look.warnings.iter());
    let lines = looked.into_iter().flatten();
    lines
        .flat_map(|says| note(says, 2, width, Role::Warn))
        .collect()
}

/// The records as lines.
struct Table<'a> {
    model: &'a Model,
    width: usize,
    /// Whether there are records of the mark to compare with.
    differs: bool,
}

impl Table<'_> {
    fn size(&self, bytes: Option<u64>) -> String {
        let scale = self.model.settings.scale;
        bytes.map_or_else(
            || show::UNKNOWN.to_owned(),
            |b| show::number(Approx::exact(b), Unit::Bytes, scale),
        )
    }

    /// Numbers that fit beside a symbol, the most important first.
    fn titles(&self) -> Vec<&'static str> {
        let mut titles = vec!["Objects"];
        if self.differs {
            titles.push("+Mark");
        }
        titles.extend(["Bytes", "Waste"]);
        titles.truncate((self.width.saturating_sub(16) / CELL).max(1));
        titles
    }

    fn symbol(&self) -> usize {
        let numbers = CELL * self.titles().len();
        self.width.saturating_sub(1 + numbers).clamp(1, 60)
    }

    fn head(&self, cache: &Cache, view: (SiteKind, By), from: &str) -> Vec<Line> {
        let what = match view.0 {
            SiteKind::Alloc => "who allocated the objects in use",
            SiteKind::Free => "who freed them before they were allocated",
        };
        let by = match view.1 {
            By::Site => "by function",
            By::Stack => "by stack",
        };
        let mut heads = Line::heading(format!(" {:<w$}", "Function", w = self.symbol()));
        for title in self.titles() {
            heads = heads.with(Role::Header, format!("{title:>CELL$}"));
        }
        let mut out = vec![
            Line::heading(format!("{}  ", cache.name))
                .with(Role::Normal, format!("{what}, {by}"))
                .with(Role::Dim, "  v: grouping, o: frees"),
        ];
        out.extend(note(from, 0, self.width, Role::Dim));
        out.push(heads);
        out
    }

    fn line(&self, change: &GroupChange) -> Line {
        let cells = self.symbol();
        let symbol = change.group.symbol.as_deref().unwrap_or("<not-available>");
        let symbol = text::clean(symbol);
        let symbol = text::fit(&symbol, cells, self.model.settings.glyphs.cut);
        let pad = " ".repeat(cells.saturating_sub(text::width(&symbol)));
        let mut line = Line::plain(format!(" {symbol}{pad}"));
        for title in self.titles() {
            let (text, role) = match title {
                "Objects" => (change.after.to_string(), Role::Normal),
                "+Mark" => delta(change.delta),
                "Bytes" => (self.size(change.group.bytes), Role::Normal),
                _ => (self.size(change.group.waste), Role::Dim),
            };
            line = line.with(role, format!("{text:>CELL$}"));
        }
        line
    }

    /// What else is known, and the stack from the innermost frame.
    fn detail(&self, group: &Group) -> Vec<Line> {
        let details = group.details(self.model.settings.scale);
        let mut out = note(&details.join(", "), 4, self.width, Role::Dim);
        if group.stack.is_empty() {
            let says = match group.stacks {
                0 => "no stack is recorded: kernels record them since 5.19, with CONFIG_STACKDEPOT",
                _ => "v groups by stack and shows each",
            };
            out.extend(note(says, 4, self.width, Role::Dim));
        }
        let frames = group.stack.iter();
        out.extend(frames.map(|frame| Line::plain(format!("      {frame}"))));
        out
    }
}

fn delta(delta: i128) -> (String, Role) {
    match delta {
        0 => ("0".to_owned(), Role::Normal),
        d if d > 0 => (format!("+{d}"), Role::Up),
        d => (d.to_string(), Role::Down),
    }
}
