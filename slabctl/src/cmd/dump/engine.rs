//! `slabctl dump --demo` and `--pid`: looks into caches of an engine.

use std::io::Write as _;

use collectors::filter::Filter;
use collectors::model::{Dump, DumpCache, DumpDemand, DumpSlab};
use collectors::source::Demand;

use super::Which;
use crate::cli::{self, Format};
use crate::cmd::{Context, report};
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::{dump, json, json_dump};

/// Slabs of each cache that are shown, when all caches are and when some are.
const SLABS: [usize; 2] = [2, 16];

/// Runs the command on the engine that the options name.
pub(super) fn run(context: &Context, args: &cli::Dump) -> anyhow::Result<Status> {
    let filter = Filter::patterns(&args.patterns)?;
    let all = args.patterns.is_empty();
    let mut source = open::engine(&context.global)?;
    let wanted = |name: &str| all || filter.accepts_name(name);
    let seen = source.dump(&wanted, demand(args, all));
    let seen = seen.map_err(open::with_hints)?;
    if seen.caches.is_empty() {
        let error = format!("dump: no cache matches {}", args.patterns.join(" "));
        return Err(Failure::new(Status::NoSuchCache, error)
            .hint("slabctl report with the same options lists the caches")
            .into());
    }
    let snapshot = source.sample(&Demand::names())?;
    let mut out = Context::out();
    let table = match context.global.format() {
        Format::Json => {
            json::write(&mut out, &json_dump::of_engine(&snapshot, &seen))?;
            None
        }
        _ if args.object.is_some() => {
            object(&seen, args, &mut out)?;
            None
        }
        _ if args.objects => Some(dump::objects(&seen)),
        Format::Csv | Format::Md => Some(dump::slabs(&seen)),
        _ => {
            dump::write(&seen, &mut out)?;
            None
        }
    };
    if let Some(table) = table {
        report::write_table(context, &table, &mut out)?;
    }
    out.flush()?;
    if seen.cut > 0 && args.object.is_none() {
        let cut = seen.cut;
        context.note(&format!(
            "note: {cut} slabs are left out (--slabs N shows more)"
        ));
    }
    if seen.limited {
        let says = "there is more of it than one look takes: the rest is not shown";
        context.note(&format!("warning: {says}"));
    }
    open::say_warnings(&context.global, &snapshot);
    Ok(Status::Ok)
}

fn demand(args: &cli::Dump, all: bool) -> DumpDemand {
    let [few, some] = SLABS;
    let default = if all { few } else { some };
    let (slabs, address) = match args.object {
        Some(Which::Address(address)) => (1, Some(address)),
        Some(Which::Number(slab, _)) => (slab.saturating_add(1), None),
        None => (args.slabs.unwrap_or(default), None),
    };
    DumpDemand {
        slabs,
        objects: DumpDemand::OBJECTS,
        bytes: args.object.is_some(),
        address,
    }
}

/// Writes the one object that was asked for.
fn object(seen: &Dump, args: &cli::Dump, out: &mut impl std::io::Write) -> anyhow::Result<()> {
    let found = args.object.and_then(|which| {
        let mut caches = seen.caches.iter();
        caches.find_map(|cache| find(cache, which).map(|(slab, index)| (cache, slab, index)))
    });
    let Some((cache, slab, index)) = found else {
        if seen.limited {
            let error = "dump: there is more than one look takes, and the object was not reached";
            return Err(Failure::new(Status::Failed, error).into());
        }
        let error = "dump: no such object in these caches";
        return Err(Failure::new(Status::NoSuchCache, error)
            .hint("slabctl dump CACHE --objects lists them")
            .into());
    };
    dump::write_object(cache, slab, index, out)?;
    Ok(())
}

fn find(cache: &DumpCache, which: Which) -> Option<(&DumpSlab, usize)> {
    let (slab, index) = match which {
        Which::Number(slab, index) => (cache.slabs.get(slab)?, index),
        Which::Address(address) => {
            let slab = cache.slabs.first()?;
            let offset = address.checked_sub(slab.address)?;
            let size = u64::from(cache.slab_size.max(1));
            (slab, usize::try_from(offset / size).ok()?)
        }
    };
    (index < slab.objects.len()).then_some((slab, index))
}
