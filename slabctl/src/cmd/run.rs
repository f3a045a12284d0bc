//! `slabctl run -- COMMAND`: runs a program on slabcore, and looks at its heap when it ends.
//!
//! The library is found beside this program. At its end the program waits until it has been
//! looked at (`SLABCORE_WATCHER`): so the heap is seen as it is then, and nothing has to be traced.

mod debug;
mod program;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use collectors::source::process::{self, ProcessSource, Watcher};
use collectors::source::{Demand, Engines as _, Source as _};

use super::select::Selection;
use super::stat::load::{Load, Outcome};
use super::{Context, report, sites, validate};
use crate::cli::{DemoPolicy, Format, Run as Args};
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::text::one_line;
use crate::screen::Screen;

/// The library's file.
const LIBRARY: &str = "libslabcore_preload.so";
/// Between two looks at a program that is to be told of, at least and at most: it waits at its end
/// for a twentieth of its time.
const STEPS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];
/// How long a program has to check itself.
const ANSWER: Duration = Duration::from_secs(20);
/// Between two looks at the clock where it is not.
const LONG: Duration = Duration::from_secs(3600);

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    check(context, args)?;
    let library = library()?;
    program::check(&args.command)?;
    let kept = args.keep.then(kept);
    let load = Load::start_with(&args.command, &environment(args, &library, kept.as_deref()))?;
    let mut watch = Watcher::new(load.pid());
    let begun = Instant::now();
    let mut looked = None;
    let outcome = loop {
        let open = is_watched(args) && looked.is_none();
        if let Some(outcome) = load.wait(if open { step(begun) } else { LONG }) {
            break outcome;
        }
        if open && watch.is_waiting() {
            looked = Some(look(context, args, load.pid()));
            // Whatever came of it, the program must not wait.
            watch.let_go();
        }
    };
    if is_watched(args) && looked.is_none() {
        context.note(&format!(
            "warning: {outcome} without waiting to be looked at: {}",
            unseen(&outcome)
        ));
    }
    if let Some(kept) = &kept {
        tell_kept(context, &load, kept);
    }
    // What went wrong is told when the program has ended, not instead of waiting for that.
    Ok(match looked.transpose()? {
        Some(false) => Status::Findings,
        // What was not checked is not sound.
        None if args.validate && outcome.code == Some(0) => Status::Unavailable,
        _ => outcome.status(),
    })
}

/// How a program may end that was not looked at.
fn unseen(outcome: &Outcome) -> &'static str {
    if outcome.signal.is_some() {
        "a signal ends it at once"
    } else {
        "by quick_exit or a call of the system, or it ran without the library, which programs that are static or setuid do"
    }
}

fn step(begun: Instant) -> Duration {
    let [least, most] = STEPS;
    (begun.elapsed() / 20).clamp(least, most)
}

/// Whether there is something to be told at the program's end.
fn is_watched(args: &Args) -> bool {
    args.report || args.validate || args.leaks
}

fn check(context: &Context, args: &Args) -> Result<(), Failure> {
    open::no_demo(
        &context.global,
        "run starts a program of its own; --demo is none",
    )?;
    if context.global.from.is_some() || context.global.root.is_some() {
        return Err(Failure::usage(
            "run starts a program of its own: no --from, no --root",
        ));
    }
    if args.report && (args.validate || args.leaks) && context.global.format() != Format::Table {
        return Err(Failure::usage(
            "the report as a document is one: no --validate and --leaks beside it",
        ));
    }
    let select = &args.select;
    let selects = select.filter.is_some() || select.sort.is_some() || select.top.is_some();
    if (selects || select.reverse) && !args.report {
        return Err(Failure::usage(
            "--filter, --sort, --reverse and --top are of --report",
        ));
    }
    if let Some(text) = &args.debug {
        debug::check(text)?;
    }
    // Before the program runs, not at its end.
    Selection::new(&[], select, None).map(|_| ())
}

/// Where the program's last figures are, if they are the program's.
fn tell_kept(context: &Context, load: &Load, kept: &Path) {
    let start = load.start_ticks();
    let program = start.and_then(|start| process::left_by(kept, load.pid(), start));
    let says = match program {
        Some(program) => {
            let program = one_line(&program);
            format!(
                "note: the last figures of {program}: slabctl report --from {}",
                kept.display()
            )
        }
        None => "warning: no figures were kept: it ran without the library, or there is no tmpfs with 1 MiB at /dev/shm".to_owned(),
    };
    context.note(&says);
}

/// Beside this program, or where packages put libraries of a program.
fn library() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    let places = [".", "../lib/slabctl", "../lib"];
    let dir = own.parent().unwrap_or("/".as_ref());
    let mut paths = places.iter().map(|place| dir.join(place).join(LIBRARY));
    let found = paths.find(|path| path.is_file());
    let found = found.and_then(|path| path.canonicalize().ok());
    let found = found.ok_or_else(|| {
        let error = format!("run: {LIBRARY} is not beside {}", own.display());
        Failure::new(Status::Unavailable, error)
            .hint("cargo build --release puts both in one place")
    })?;
    // The loader takes LD_PRELOAD apart at these (ld.so(8)).
    let text = found.as_os_str().as_encoded_bytes();
    if text.iter().any(|byte| b" :\t\n".contains(byte)) {
        let path = found.display();
        let error =
            format!("run: the loader cannot preload {path}: a space or colon is in its path");
        return Err(Failure::new(Status::Unavailable, error)
            .hint("slabctl and its library work from any path without them"));
    }
    Ok(found)
}

/// Where the last figures of the program are kept: a file of this run, which the program's
/// children, finding it there, leave alone.
fn kept() -> PathBuf {
    let now = std::time::SystemTime::now();
    let now = now
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |of| of.as_nanos());
    format!("/dev/shm/slabcore-run-{}-{now}", std::process::id()).into()
}

/// Starts a command that waits at its end until it has been looked at.
pub(crate) fn start(command: &[OsString], policy: Option<DemoPolicy>) -> anyhow::Result<Load> {
    let library = library()?;
    program::check(command)?;
    let mut list = preloaded(&library, policy);
    list.extend(watched());
    Ok(Load::start_with(command, &list)?)
}

/// The library before all others, and its policy.
fn preloaded(library: &Path, policy: Option<DemoPolicy>) -> Vec<(&'static str, OsString)> {
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|of| !of.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let mut list = vec![("LD_PRELOAD", preload)];
    if let Some(policy) = policy {
        list.push(("SLABCORE_POLICY", policy_name(policy).into()));
    }
    list
}

/// Who is waited for at the end, and that there is a segment by which he finds the program.
fn watched() -> Vec<(&'static str, OsString)> {
    let mut list = vec![("SLABCORE_WATCHER", std::process::id().to_string().into())];
    if std::env::var_os("SLABCORE_SEGMENT").is_some_and(|of| of == "off") {
        list.push(("SLABCORE_SEGMENT", "memfd".into()));
    }
    list
}

fn environment(args: &Args, library: &Path, kept: Option<&Path>) -> Vec<(&'static str, OsString)> {
    let mut list = preloaded(library, args.policy);
    if let Some(debug) = debug::option(args.debug.as_deref(), args.leaks) {
        list.push(("SLABCORE_DEBUG", debug.into()));
    }
    if is_watched(args) {
        list.extend(watched());
    }
    if let Some(kept) = kept {
        let place = format!("file:{}", kept.display());
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
            report::write_plain(&plain, &snapshot, &args.select, &mut out)?;
        }
        if args.leaks {
            let mut held = Vec::new();
            sites::held(&snapshot, context.global.scale(), &mut held)?;
            if held.is_empty() {
                writeln!(
                    out,
                    "still allocated at the end: nothing that a call site is known of"
                )?;
            } else {
                writeln!(out, "still allocated at the end, by stack:")?;
                out.write_all(&held)?;
            }
        }
        // They are told on standard error, too.
        drop(out);
        open::say_warnings(&context.global, &snapshot);
        out = std::io::stderr().lock();
    }
    if !args.validate {
        return Ok(true);
    }
    let before = source.reports().ok_or_else(|| {
        let why = "how many reports the program made is not known: its memory could not be read";
        Failure::new(Status::Failed, why)
    })?;
    if before > 0 {
        let s = if before == 1 { "" } else { "s" };
        writeln!(out, "{before} report{s} while it ran")?;
    }
    // It waits, so it answers; it looks at guards and poison, too, and says what it finds.
    let asked = source.ask(ANSWER).map_err(open::with_hints)?;
    let verdict = match asked {
        Some(verdict) => verdict,
        None => source.validate().map_err(open::with_hints)?,
    };
    validate::engine::lines(&verdict, &mut out)?;
    match validate::engine::status(&verdict) {
        Status::Ok => Ok(before == 0),
        Status::Findings => Ok(false),
        status => Err(Failure::new(status, "the heap was not checked, or not all of it").into()),
    }
}
