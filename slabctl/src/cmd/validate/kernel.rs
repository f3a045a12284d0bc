//! `slabctl validate [CACHE..|--all]`: the kernel's own check, with its verdict.
//!
//! The write that asks for it succeeds for a damaged cache too; what was found
//! is only in the kernel's log. Without that log nothing is written.

use std::io::Write as _;
use std::path::Path;

use collectors::analysis::validate::{self, Examination, Fault, Reach, Verdict};
use collectors::control;
use collectors::model::Snapshot;
use collectors::source::kmsg::Kmsg;

use super::plan::{self, Candidate};
use super::{Row, page, table};
use crate::cli::{Format, Validate as Args};
use crate::cmd::{Context, report, shrink};
use crate::fail::{Failure, Status};
use crate::output::{json, json_validate, text};
use crate::{ask, open};

/// Names that a question or a note lists.
const NAMES: usize = 12;

/// A cache that the kernel was asked to check.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) name: String,
    pub(crate) names: Vec<String>,
    pub(crate) reach: Reach,
    pub(crate) checks: Vec<&'static str>,
    /// Slabs within reach, by the counters before.
    pub(crate) slabs: Option<u64>,
    pub(crate) examination: Examination,
    pub(crate) verdict: Verdict,
}

/// A cache that the kernel does not check.
#[derive(Debug)]
pub(crate) struct Unchecked {
    pub(crate) name: String,
    pub(crate) names: Vec<String>,
    pub(crate) why: String,
    pub(crate) boot_option: String,
}

/// What became of all that was asked for.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) checked: Vec<Checked>,
    pub(crate) unchecked: Vec<Unchecked>,
    /// Nothing was to be checked: it was only asked what can be.
    pub(crate) only_asked: bool,
}

impl Outcome {
    /// All faults, those of other caches that came meanwhile too.
    pub(crate) fn faults(&self) -> impl Iterator<Item = &Fault> {
        let lists = self.checked.iter().map(|one| &one.examination);
        lists.flat_map(|seen| seen.faults.iter().chain(&seen.elsewhere))
    }

    pub(crate) fn more(&self) -> u64 {
        self.checked.iter().map(|one| one.examination.more).sum()
    }

    /// The caches that the kernel really looked at.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(|one| one.examination.passes > 0)
    }

    /// The slabs within reach; `None` where that of one cache is not known, and
    /// where none was looked at.
    pub(crate) fn slabs(&self) -> Option<u64> {
        self.looked_at().next()?;
        self.looked_at().map(|one| one.slabs).sum()
    }

    /// Caches of which nobody can tell whether they are clean.
    pub(crate) fn unknown(&self) -> usize {
        let open = |one: &&Checked| matches!(one.verdict, Verdict::Unknown(_) | Verdict::Refused);
        self.checked.iter().filter(open).count()
    }

    /// Whether all that was checked is clean; `None` when that is not known, as
    /// where there are likely false positives only.
    pub(crate) fn clean(&self) -> Option<bool> {
        if self.faults().any(|fault| fault.false_positive.is_none()) {
            return Some(false);
        }
        let all = self.unknown() == 0 && self.looked_at().next().is_some();
        (all && self.faults().next().is_none()).then_some(true)
    }

    /// Something was found, and all of it is likely no fault.
    fn only_false_alarms(&self) -> bool {
        let mut faults = self.faults().peekable();
        faults.peek().is_some() && faults.all(|fault| fault.false_positive.is_some())
    }

    fn status(&self, named: bool) -> Status {
        let unknown = |one: &Checked| matches!(one.verdict, Verdict::Unknown(_));
        match self.clean() {
            Some(false) => Status::Findings,
            _ if self.checked.iter().any(unknown) => Status::Failed,
            _ if self.only_asked && !self.checked.is_empty() => Status::Ok,
            None if self.only_false_alarms() && self.unknown() == 0 => Status::Ok,
            None => Status::Unavailable,
            Some(true) if named && !self.unchecked.is_empty() => Status::Unavailable,
            Some(true) => Status::Ok,
        }
    }
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    let control = shrink::live(context, "validate")?;
    let snapshot = plan::sample(context)?;
    let candidates = plan::candidates(&control, &snapshot, args)?;
    offered(&candidates)?;
    let (can, cannot): (Vec<_>, Vec<_>) = candidates.iter().partition(|one| one.reach.is_some());
    let named = !args.caches.is_empty();
    let only_asked = !named && !args.all;
    let mut outcome = Outcome {
        checked: Vec::new(),
        unchecked: unchecked(&cannot, &snapshot),
        only_asked,
    };
    if can.is_empty() && context.global.format() == Format::Table {
        return Err(nothing(&snapshot, &outcome, named).into());
    }
    if only_asked {
        return show_plan(context, &snapshot, &can, &outcome);
    }
    if !can.is_empty() {
        let root = context.global.root.as_deref().unwrap_or("/".as_ref());
        let path = root.join("dev/kmsg");
        let mut log = Kmsg::open(&path).map_err(|e| no_log(e, &path))?;
        if !ask::go_on(&question(&can, args.all, &snapshot), args.yes)? {
            context.note("nothing was validated");
            return Ok(Status::Failed);
        }
        for one in &can {
            outcome.checked.push(check(one, &snapshot, &mut log)?);
        }
        settle(&mut outcome, &snapshot, &can);
    }
    write(context, &snapshot, &outcome)?;
    remarks(context, &outcome, named);
    open::say_warnings(&context.global, &snapshot);
    Ok(outcome.status(named))
}

/// Without the attribute no cache can be checked.
fn offered(candidates: &[Candidate<'_>]) -> Result<(), Failure> {
    if candidates.iter().any(|one| one.dir.has_validate()) {
        return Ok(());
    }
    let error = "this kernel validates no cache: /sys/kernel/slab has no file validate (built without CONFIG_SLUB_DEBUG)";
    Err(Failure::new(Status::Unavailable, error)
        .hint("slabctl validate --demo checks the built-in engine"))
}

fn no_log(error: collectors::Error, path: &Path) -> Failure {
    let failure = Failure::from(error);
    let failure = failure.hint(format!(
        "what a validation finds is only in the kernel's log ({}): nothing was validated",
        path.display()
    ));
    match failure.status {
        Status::Permission => failure.hint("reading it needs root or CAP_SYSLOG"),
        _ => failure,
    }
}

fn unchecked(cannot: &[&Candidate<'_>], snapshot: &Snapshot) -> Vec<Unchecked> {
    let kernel = snapshot.system.kernel.as_deref();
    let one = |it: &&Candidate<'_>| Unchecked {
        name: it.called.clone(),
        names: it.names(),
        why: validate::why_not(it.cache, &it.called, kernel),
        boot_option: validate::boot_option(&it.called, kernel),
    };
    cannot.iter().map(one).collect()
}

/// What will happen, for the person who is asked.
fn question(can: &[&Candidate<'_>], all: bool, snapshot: &Snapshot) -> String {
    let names: Vec<_> = can.iter().map(|one| text::safe(&one.called)).collect();
    let which = match names.len() {
        n if all => format!("all {n} {} that it checks", page::caches(n)),
        n if n > NAMES => format!("{} and {} more", names[..NAMES].join(", "), n - NAMES),
        _ => names.join(", "),
    };
    let old = validate::is_safe(snapshot.system.kernel.as_deref()) == Some(false);
    let race = if old {
        " Before Linux 6.1 frees during the check can look like damage, and are \"repaired\" too."
    } else {
        ""
    };
    format!(
        "validate {which}: the kernel flushes the caches from every CPU, walks their slabs with interrupts off, and repairs what it finds wrong, which taints it (B).{race}"
    )
}

/// Has the kernel check a cache until it finds nothing new.
fn check<R: std::io::Read>(
    one: &Candidate<'_>,
    snapshot: &Snapshot,
    log: &mut Kmsg<R>,
) -> Result<Checked, Failure> {
    let system = &snapshot.system;
    let mut names = one.names();
    // The kernel's reports may have the directory's name.
    names.push(one.dir.id.clone());
    let kernel = system.kernel.as_deref();
    let mut seen = Examination::new(names, kernel, system.cpus);
    let mut broke = None;
    loop {
        match control::look(log, || one.dir.validate()) {
            Ok(look) if seen.add(&look) => {}
            Ok(_) => break,
            Err(error @ collectors::Error::Permission { .. }) => {
                return Err(open::with_hints(error));
            }
            Err(error) => {
                broke = Some(error.to_string());
                break;
            }
        }
    }
    let verdict = match (seen.verdict(), broke) {
        (Verdict::Clean | Verdict::Unknown(_), Some(why)) => Verdict::Unknown(why),
        (verdict, _) => verdict,
    };
    let reach = one.reach.unwrap_or(Reach::PartialSlabs);
    Ok(Checked {
        name: one.called.clone(),
        names: one.names(),
        reach,
        checks: one.checks(),
        slabs: reach.slabs(one.cache),
        examination: seen,
        verdict,
    })
}

/// A cache that the kernel refused is one that cannot be checked.
fn settle(outcome: &mut Outcome, snapshot: &Snapshot, can: &[&Candidate<'_>]) {
    let refused: Vec<_> = can
        .iter()
        .zip(&outcome.checked)
        .filter(|(_, checked)| checked.verdict == Verdict::Refused)
        .map(|(one, _)| *one)
        .collect();
    outcome.unchecked.extend(unchecked(&refused, snapshot));
    outcome
        .checked
        .retain(|checked| checked.verdict != Verdict::Refused);
}

fn write(context: &Context, snapshot: &Snapshot, outcome: &Outcome) -> anyhow::Result<()> {
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => json::write(&mut out, &json_validate::of_kernel(snapshot, outcome))?,
        Format::Csv | Format::Md => {
            let rows = outcome.faults().map(Row::of_kernel);
            report::write_table(context, &table(rows), &mut out)?;
        }
        _ => page::outcome(outcome, &mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// Only says what can be checked.
fn show_plan(
    context: &Context,
    snapshot: &Snapshot,
    can: &[&Candidate<'_>],
    outcome: &Outcome,
) -> anyhow::Result<Status> {
    let mut out = Context::out();
    match context.global.format() {
        Format::Table => page::plan(can, &mut out)?,
        Format::Json => json::write(&mut out, &json_validate::of_plan(snapshot, can, outcome))?,
        _ => return Err(Failure::usage("validate: name caches, or --all").into()),
    }
    out.flush()?;
    remarks(context, outcome, false);
    if can.is_empty() {
        return Ok(Status::Unavailable);
    }
    context.note("nothing was validated: name caches, or --all");
    Ok(Status::Ok)
}

/// What the result does not say by itself.
fn remarks(context: &Context, outcome: &Outcome, named: bool) {
    if named {
        for one in &outcome.unchecked {
            context.note(&format!(
                "{}: not validated: {}",
                text::safe(&one.name),
                text::safe(&one.why)
            ));
        }
    } else if let Some(first) = outcome.unchecked.first() {
        let count = outcome.unchecked.len();
        let every = first.boot_option.split(',').next().unwrap_or_default();
        context.note(&format!(
            "{count} {} cannot be validated: no debug option is on; boot with {every} (all caches) or {every},NAME",
            page::caches(count)
        ));
    }
    let partly = outcome
        .looked_at()
        .filter(|one| one.reach == Reach::PartialSlabs);
    let partly: Vec<_> = partly.map(|one| text::safe(&one.name)).collect();
    if !partly.is_empty() {
        let shown = partly[..partly.len().min(NAMES)].join(", ");
        let more = if partly.len() > NAMES { ", ..." } else { "" };
        context.note(&format!(
            "slabs without a free object were out of reach (the kernel lists them only with the debug option U): {shown}{more}"
        ));
    }
    let others: u64 = outcome
        .checked
        .iter()
        .map(|one| one.examination.others)
        .sum();
    if others > 0 || outcome.faults().next().is_some() {
        context.note("slabctl explain --kmsg tells more about the reports in the log");
    }
}

/// Nothing of what was asked for can be checked: why, and what would help.
fn nothing(snapshot: &Snapshot, outcome: &Outcome, named: bool) -> Failure {
    let kernel = snapshot.system.kernel.as_deref().unwrap_or("this kernel");
    if named {
        let why = outcome.unchecked.iter();
        let why: Vec<_> = why
            .map(|one| format!("{}: {}", one.name, one.why))
            .collect();
        let error = format!("validate: {}", why.join("; "));
        return Failure::new(Status::Unavailable, error);
    }
    let count = outcome.unchecked.len();
    let error = format!(
        "validate: none of the {count} caches can be validated: {kernel} was booted without slab debugging, and refuses to validate a cache that has none"
    );
    let every = validate::boot_option("NAME", Some(kernel));
    let all = every.split(',').next().unwrap_or_default().to_owned();
    Failure::new(Status::Unavailable, error)
        .hint(format!(
            "boot with {all} (all caches) or {every} (one), which makes them larger and slower"
        ))
        .hint("slabctl validate --demo checks the built-in engine")
}
