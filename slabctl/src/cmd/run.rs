//! `slabctl run -- COMMAND`: runs a program on slabcore, and looks at its heap when it ends.
//!
//! The library is found beside this program. At its end the program waits until it has been
//! looked at (`SLABCORE_WATCHER`): so the heap is seen as it is then, and nothing has to be traced.

mod program;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use collectors::source::process::{self, ProcessSource};
use collectors::source::{Demand, Engines as _, Source as _};

use super::stat::load::{Load, Outcome};
use super::{Context, report, sites, validate};
use crate::cli::{DemoPolicy, Run as Args};
use crate::fail::{Failure, Status};
use crate::open;
use crate::screen::Screen;

/// The library's file.
const LIBRARY: &str = "libslabcore_preload.so";
/// Between two looks at the program.
const STEP: Duration = Duration::from_millis(10);

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    open::no_demo(
        &context.global,
        "run starts a program of its own; --demo is none",
    )?;
    if context.global.from.is_some() || context.global.root.is_some() {
        return Err(Failure::usage("run starts a program of its own: no --from, no --root").into());
    }
    let library = library()?;
    program::check(&args.command)?;
    let load = Load::start_with(&args.command, &environment(args, &library))?;
    let watched = args.report || args.validate || args.leaks;
    let mut clean = None;
    let outcome = loop {
        if let Some(outcome) = load.wait(STEP) {
            break outcome;
        }
        if watched && clean.is_none() && process::is_waiting(load.pid()) {
            let looked = look(context, args, load.pid());
            // Whatever came of it, the program must not wait.
            process::let_go(load.pid());
            clean = Some(looked?);
        }
    };
    tell(context, args, &load, &outcome, clean);
    Ok(match (outcome.status(), clean) {
        (_, Some(false)) => Status::Findings,
        (status, _) => status,
    })
}

/// What could not be looked at, and where the last figures are.
fn tell(context: &Context, args: &Args, load: &Load, outcome: &Outcome, clean: Option<bool>) {
    if (args.report || args.validate || args.leaks) && clean.is_none() {
        context.note(&format!(
            "warning: {outcome} without waiting to be looked at: by a signal, by _exit, or without the library"
        ));
    }
    let kept = kept(&load.pid().to_string());
    if args.keep && kept.exists() {
        context.note(&format!("note: slabctl report --from {}", kept.display()));
    }
}

/// Beside this program, or where packages put libraries of a program.
fn library() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    let places = [".", "../lib/slabctl", "../lib"];
    let dir = own.parent().unwrap_or("/".as_ref());
    let mut paths = places.iter().map(|place| dir.join(place).join(LIBRARY));
    let found = paths.find(|path| path.is_file());
    let found = found.and_then(|path| path.canonicalize().ok());
    found.ok_or_else(|| {
        let error = format!("run: {LIBRARY} is not beside {}", own.display());
        Failure::new(Status::Unavailable, error)
            .hint("cargo build --release puts both in one place")
    })
}

/// Where the last figures of a process are kept.
fn kept(pid: &str) -> PathBuf {
    format!("/dev/shm/slabcore-{pid}").into()
}

fn environment(args: &Args, library: &std::path::Path) -> Vec<(&'static str, OsString)> {
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|of| !of.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let mut list = vec![("LD_PRELOAD", preload)];
    let leaks = args.leaks.then(|| "U".to_owned());
    if let Some(debug) = args.debug.clone().or(leaks) {
        list.push(("SLABCORE_DEBUG", debug.into()));
    }
    if let Some(policy) = args.policy {
        list.push(("SLABCORE_POLICY", policy_name(policy).into()));
    }
    if args.report || args.validate || args.leaks {
        let own = std::process::id().to_string();
        list.push(("SLABCORE_WATCHER", own.into()));
    }
    if args.keep {
        let place = format!("file:{}", kept("%p").display());
        list.push(("SLABCORE_SEGMENT", place.into()));
    }
    list
}

const fn policy_name(policy: DemoPolicy) -> &'static str {
    match policy {
        DemoPolicy::Classic => "classic",
        DemoPolicy::CpuPartial => "cpu-partial",
        DemoPolicy::DelayedFreeze => "delayed-freeze",
        DemoPolicy::Sheaves => "sheaves",
        DemoPolicy::Hybrid => "hybrid",
    }
}

/// Tells what was asked for of a program that waits at its end; whether its heap is sound.
fn look(context: &Context, args: &Args, pid: u32) -> anyhow::Result<bool> {
    let mut source = ProcessSource::open(pid).map_err(open::with_hints)?;
    let mut out = std::io::stderr().lock();
    let plain = Context {
        screen: Screen::plain(None),
        global: context.global.clone(),
    };
    if args.report || args.leaks {
        let demand = Demand {
            sites: args.leaks,
            ..Demand::everything()
        };
        let snapshot = source.sample(&demand).map_err(open::with_hints)?;
        if args.report {
            report::write_plain(&plain, &snapshot, &mut out)?;
        }
        if args.leaks {
            writeln!(out, "still allocated at the end, by stack:")?;
            sites::held(&snapshot, context.global.scale(), &mut out)?;
        }
    }
    if !args.validate {
        return Ok(true);
    }
    let verdict = source.validate().map_err(open::with_hints)?;
    validate::engine::lines(&verdict, &mut out)?;
    Ok(verdict.faults.is_empty())
}
