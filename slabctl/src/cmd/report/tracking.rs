//! Call sites: who allocated and freed the objects that are in use.

use std::io::Write;

use collectors::model::{CallSite, SiteKind};

use crate::cmd::Context;
use crate::cmd::select::Chosen;
use crate::output::text;

/// Every cache that has call sites, and what to do when none has.
pub(super) fn write(
    context: &Context,
    chosen: &Chosen<'_>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut tracked = 0;
    for row in &chosen.rows {
        let Some(sites) = &row.cache.sites else {
            continue;
        };
        tracked += 1;
        writeln!(out, "{}", text::safe(&row.cache.name))?;
        for (kind, title) in [
            (SiteKind::Alloc, "allocated by"),
            (SiteKind::Free, "last freed by"),
        ] {
            section(sites, kind, title, out)?;
        }
    }
    if tracked == 0 {
        out.flush()?;
        context.note("no call sites here: caches record them only when booted with slab_debug=U (or slab_debug=U,CACHE)");
    }
    Ok(())
}

/// One kind of sites of a cache, most objects first as the kernel lists them.
pub(crate) fn section(
    sites: &[CallSite],
    kind: SiteKind,
    title: &str,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut sites = sites.iter().filter(|s| s.kind == kind).peekable();
    if sites.peek().is_none() {
        return writeln!(out, "  {title}: nothing recorded");
    }
    writeln!(out, "  {title}:")?;
    for site in sites {
        let symbol = site.symbol.as_deref().unwrap_or("<not-available>");
        write!(out, "    {:>8} {}", site.count, text::safe(symbol))?;
        if let Some((all, each)) = site.waste {
            write!(out, " waste={all}/{each}")?;
        }
        if let Some((min, mean, max)) = site.age {
            write!(out, " age={min}/{mean}/{max}")?;
        }
        if let Some((low, high)) = site.pids {
            write!(out, " pid={low}-{high}")?;
        }
        writeln!(out)?;
        for frame in &site.stack {
            writeln!(out, "               {}", text::safe(frame))?;
        }
    }
    Ok(())
}
