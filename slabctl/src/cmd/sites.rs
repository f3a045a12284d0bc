//! `slabctl sites [CACHE]`: who holds what, and what accumulates.

pub(super) mod lines;
mod live;

use std::io::Write as _;

use collectors::analysis::sites::{self, By, Group, GroupChange};
use collectors::model::{Cache, OriginKind, SiteKind, Snapshot};
use collectors::source::Demand;

use super::{Context, report, show, sides};
use crate::cli::{Format, Sites as Args, SitesBy};
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::{json, json_sites, text};

/// The sites of one cache.
#[derive(Debug)]
pub(crate) struct CacheSites {
    pub(crate) name: String,
    /// Every name of the cache, for a merged one.
    pub(crate) names: Vec<String>,
    /// As they are; with two samples, as they changed.
    pub(crate) groups: Vec<GroupChange>,
    /// How many are left out.
    pub(crate) cut: usize,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    if context.global.format() == Format::Jsonl {
        return Err(Failure::usage("sites has no json lines; use --json").into());
    }
    if args.pinned && context.global.pid.is_none() && context.global.core.is_none() {
        let error = "sites --pinned looks into slabs of a process: give --pid or --core";
        return Err(Failure::usage(error).into());
    }
    let kind = if args.freed {
        SiteKind::Free
    } else {
        SiteKind::Alloc
    };
    let (snapshot, list) = match args.diff.as_deref() {
        Some([before, after]) => {
            open::no_demo(&context.global, "sites --diff compares two captures")?;
            let (before, after) = (sides::saved(before)?, sides::saved(after)?);
            let list = compared(&before, &after, args, kind)?;
            (after, list)
        }
        _ => present(context, args, kind)?,
    };
    let differs = args.diff.is_some();
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => {
            let live = snapshot.origin.kind != OriginKind::Capture;
            let now = live.then(jiff::Timestamp::now);
            let document = json_sites::document(&snapshot, kind, differs, &list, now)
                .following(args.sample.next_power_of_two());
            json::write(&mut out, &document)?;
        }
        Format::Csv | Format::Md => {
            report::write_table(context, &lines::table(&list, differs), &mut out)?;
        }
        _ => {
            let scale = context.global.scale();
            lines::pages(&list, differs, args.sample > 1, scale, &mut out)?;
        }
    }
    out.flush()?;
    if list.is_empty() {
        what_to_do(context, &snapshot, args);
    }
    let shown = chosen(&snapshot, args.cache.as_deref());
    open::say_warnings_about(&context.global, &snapshot, &shown);
    Ok(Status::Ok)
}

fn by(args: &Args) -> By {
    match args.by {
        SitesBy::Site => By::Site,
        SitesBy::Stack => By::Stack,
    }
}

/// The sites of a live source or of one capture.
fn present(
    context: &Context,
    args: &Args,
    kind: SiteKind,
) -> anyhow::Result<(Snapshot, Vec<CacheSites>)> {
    let mut demand = Demand::everything();
    demand.only = args.cache.clone().map(|name| vec![name]);
    let mut source = open::source(&context.global)?;
    // Those that programs see are asked for nothing from debugfs.
    demand.sites = !args.live;
    let mut snapshot = source.sample(&demand).map_err(open::with_hints)?;
    if let Some(name) = args.cache.as_deref()
        && chosen(&snapshot, Some(name)).is_empty()
    {
        return Err(show::why_nothing(&mut *source, &demand, name).into());
    }
    if let Some(name) = args.cache.as_deref().filter(|_| args.live) {
        live::follow(context, args, name, &mut snapshot)?;
    }
    let caches = chosen(&snapshot, args.cache.as_deref());
    let mut list = Vec::new();
    for cache in caches {
        let groups = sites::group(cache, kind, by(args));
        let groups = if args.pinned {
            sites::pinning(groups)
        } else {
            groups
        };
        let groups = groups.into_iter().map(unchanged).collect();
        list.extend(listed(cache, groups, args.top));
    }
    Ok((snapshot, list))
}

/// Who holds what, of a snapshot that a command took on its way.
pub(crate) fn held(
    snapshot: &Snapshot,
    scale: collectors::units::Scale,
    out: &mut impl std::io::Write,
) -> std::io::Result<()> {
    let caches = snapshot.caches.iter();
    let list: Vec<CacheSites> = caches
        .filter_map(|cache| {
            let groups = sites::group(cache, SiteKind::Alloc, By::Stack);
            listed(cache, groups.into_iter().map(unchanged).collect(), None)
        })
        .collect();
    lines::pages(&list, false, false, scale, out)
}

pub(super) fn unchanged(group: Group) -> GroupChange {
    GroupChange {
        before: group.count,
        after: group.count,
        delta: 0,
        group,
    }
}

fn chosen<'s>(snapshot: &'s Snapshot, name: Option<&'s str>) -> Vec<&'s Cache> {
    match name {
        Some(name) => snapshot.named(name).collect(),
        None => snapshot.caches.iter().collect(),
    }
}

/// A cache without records is no line of the list.
fn listed(cache: &Cache, mut groups: Vec<GroupChange>, top: Option<usize>) -> Option<CacheSites> {
    let all = groups.len();
    groups.truncate(top.unwrap_or(usize::MAX));
    (all > 0).then(|| CacheSites {
        name: cache.name.to_string(),
        names: cache.names().map(str::to_owned).collect(),
        cut: all - groups.len(),
        groups,
    })
}

fn compared(
    before: &Snapshot,
    after: &Snapshot,
    args: &Args,
    kind: SiteKind,
) -> Result<Vec<CacheSites>, Failure> {
    // Two bare lists of sites do not name their caches: they are of one.
    let bare = before.caches.len() == 1 && after.caches.len() == 1;
    let name = args.cache.as_deref().filter(|_| !bare);
    let caches = chosen(after, name);
    if let Some(name) = name.filter(|_| caches.is_empty()) {
        let error = format!("no cache, alias or sysfs id {name:?} in the later capture");
        return Err(Failure::new(Status::NoSuchCache, error));
    }
    let (mut list, mut comparable) = (Vec::new(), 0);
    for new in caches {
        let first = before.caches.first().filter(|_| bare);
        let old = first.or_else(|| before.named(&new.name).next());
        if let Some(mut changed) = old.and_then(|old| sites::changes(old, new, kind, by(args))) {
            comparable += 1;
            changed.retain(|c| c.delta != 0);
            list.extend(listed(new, changed, args.top));
        }
    }
    if comparable == 0 {
        return Err(nothing_to_compare(before, after, args));
    }
    Ok(list)
}

/// No cache has records on both sides: says which side lacks them.
fn nothing_to_compare(before: &Snapshot, after: &Snapshot, args: &Args) -> Failure {
    let recorded = |side: &Snapshot| {
        let caches = chosen(side, args.cache.as_deref());
        caches.iter().any(|cache| cache.sites.is_some())
    };
    let lacks = match (recorded(before), recorded(after)) {
        (false, false) => "neither capture has",
        (false, true) => "the earlier capture does not have",
        (true, false) => "the later capture does not have",
        (true, true) => "no cache of both captures has",
    };
    let of = args.cache.as_deref().unwrap_or("any cache");
    Failure::new(
        Status::Unavailable,
        format!("sites --diff: {lacks} call sites of {of}"),
    )
    .hint("slabctl capture --traces saves them, where the kernel was booted with slab_debug=U")
}

/// Why there are no sites, and how to get them.
fn what_to_do(context: &Context, snapshot: &Snapshot, args: &Args) {
    if args.diff.is_some() {
        context.note("no difference in call sites between the two");
        return;
    }
    if args.live {
        context.note("nothing that was allocated meanwhile is left");
        return;
    }
    let caches = chosen(snapshot, args.cache.as_deref());
    for line in sites::why_none(snapshot, &caches, args.cache.as_deref()) {
        context.note(&text::safe(&line));
    }
}
