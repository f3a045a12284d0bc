//! `slabctl explain`: the slab reports of a kernel log, in plain words.

mod page;
mod twice;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use collectors::analysis::explain::{Explainer, Explanation, Identity, explain_report};
use collectors::model::{Warning, WarningCode, Warnings};
use collectors::parse::kernel_log::Scanner;
use collectors::source::kmsg::Kmsg;
use collectors::source::logs;

use self::twice::{Place, Seen};
use super::{Context, report};
use crate::cli::{Explain, Format};
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_explain, jsonl};

/// A log and what was found in it.
#[derive(Debug)]
pub(crate) struct Log {
    /// A path, a member of an archive, or what was read.
    pub(crate) name: String,
    /// Lines read.
    pub(crate) lines: u64,
    /// What was found.
    pub(crate) explanation: Explanation,
    /// What could not be read.
    pub(crate) warnings: Warnings,
    /// The other logs that have reports of a finding, by its place.
    pub(crate) also_in: BTreeMap<usize, BTreeSet<String>>,
    /// Reports that are counted in an earlier log.
    pub(crate) counted_before: u64,
}

impl Log {
    /// Reads and explains a log of any length. One that breaks off keeps what
    /// came before.
    pub(crate) fn read(name: &str, text: impl Read) -> Self {
        Self::beside(name, text, &mut Seen::default(), &mut [])
    }

    /// The same beside the logs in `before`: a report that one of them has is
    /// counted there.
    fn beside(name: &str, text: impl Read, seen: &mut Seen, before: &mut [Self]) -> Self {
        let mut scanner = Scanner::new(text);
        let mut explainer = Explainer::default();
        let mut warnings = Warnings::default();
        let (log, mut counted_before) = (before.len(), 0);
        for found in scanner.by_ref() {
            match found {
                Ok(found) => {
                    let finding = explain_report(&found);
                    let identity = Identity::of(&found, &finding);
                    if let Some(place) = seen.before(&identity, log) {
                        counted_before += 1;
                        if let (Some(log), Some(at)) = (before.get_mut(place.log), place.finding) {
                            log.also_in.entry(at).or_default().insert(name.to_owned());
                        }
                        continue;
                    }
                    let finding = explainer.add_explained(&found, finding);
                    seen.remember(identity, Place { log, finding });
                }
                Err(error) => warnings.push(
                    Warning::new(
                        WarningCode::Truncated,
                        format!("the log breaks off: {error}"),
                    )
                    .in_file(name),
                ),
            }
        }
        let explanation = explainer.finish();
        for note in &explanation.notes {
            warnings.push(Warning::new(WarningCode::Note, note.as_str()).in_file(name));
        }
        Self {
            name: name.to_owned(),
            lines: scanner.lines(),
            explanation,
            warnings,
            also_in: BTreeMap::new(),
            counted_before,
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Explain) -> anyhow::Result<Status> {
    open::no_demo(
        &context.global,
        "explain reads logs; the built-in engine has none",
    )?;
    let live = args.journal || args.kmsg || !saved(context, args);
    let logs = if args.journal {
        vec![journal()?]
    } else if live {
        vec![kmsg()?]
    } else {
        files(context, args)?
    };
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => json::write(&mut out, &json_explain::document(&logs, live))?,
        Format::Jsonl => lines(&logs, &mut out)?,
        Format::Csv | Format::Md => report::write_table(context, &table(&logs), &mut out)?,
        Format::Table => page::write(&logs, args.all, &context.screen, &mut out)?,
    }
    out.flush()?;
    for warning in logs.iter().flat_map(|log| &log.warnings) {
        let kind = if warning.code == WarningCode::Note {
            "note"
        } else {
            "warning"
        };
        context.note(&format!(
            "{kind}: {}",
            crate::output::text::one_line(&warning.to_string())
        ));
    }
    let accused = logs.iter().any(|log| log.explanation.accuses());
    Ok(if accused {
        Status::Findings
    } else {
        Status::Ok
    })
}

fn saved(context: &Context, args: &Explain) -> bool {
    !args.files.is_empty() || context.global.from.is_some() || context.global.root.is_some()
}

/// The files that were named, or what --from or --root names.
fn files(context: &Context, args: &Explain) -> anyhow::Result<Vec<Log>> {
    let mut paths: Vec<&PathBuf> = args.files.iter().collect();
    paths.extend(
        context
            .global
            .from
            .as_ref()
            .or(context.global.root.as_ref()),
    );
    let (mut found, mut seen) = (Vec::new(), Seen::default());
    for path in paths {
        let warnings = logs::read(path, &mut |name, text| {
            let log = Log::beside(name, text, &mut seen, &mut found);
            found.push(log);
            Ok(())
        })
        .map_err(Failure::from)?;
        if let Some(last) = found.last_mut() {
            last.warnings.append(warnings);
        }
    }
    Ok(found)
}

fn kmsg() -> anyhow::Result<Log> {
    const PATH: &str = "/dev/kmsg";
    let hint = |error: collectors::Error| {
        let failure = Failure::from(error);
        match failure.status {
            Status::Permission => failure
                .hint("the kernel's log needs root or CAP_SYSLOG: sudo slabctl explain")
                .hint("or explain a saved log: slabctl explain FILE"),
            _ => failure.hint("explain a saved log: dmesg | slabctl explain -"),
        }
    };
    let mut device = Kmsg::open(Path::new(PATH)).map_err(hint)?;
    let mut log = Log::read(PATH, &mut device);
    if device.lost > 0 {
        let warning = Warning::new(
            WarningCode::Incomplete,
            "lines were overwritten by newer ones while the log was read",
        );
        log.warnings.push(warning.in_file(PATH));
    }
    Ok(log)
}

fn journal() -> anyhow::Result<Log> {
    const NAME: &str = "journalctl -k";
    let mut child: Child = Command::new("journalctl")
        .args(["-k", "-q", "--no-pager", "-o", "short-monotonic"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| {
            Failure::new(Status::Unavailable, format!("cannot run journalctl: {e}")).hint(
                "without journald: slabctl explain --kmsg, or slabctl explain /var/log/kern.log",
            )
        })?;
    let log = match child.stdout.take() {
        Some(text) => Log::read(NAME, text),
        None => Log::read(NAME, io::empty()),
    };
    let done = child.wait_with_output()?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        let why = crate::output::text::one_line(why.lines().next().unwrap_or("it failed"));
        return Err(Failure::new(Status::Failed, format!("{NAME}: {why}"))
            .hint("reading the journal of the system needs root or the group systemd-journal")
            .into());
    }
    Ok(log)
}

/// One report a line.
fn lines(logs: &[Log], out: &mut impl Write) -> anyhow::Result<()> {
    let mut first = 0;
    for (at, log) in logs.iter().enumerate() {
        for (n, finding) in log.explanation.findings.iter().enumerate() {
            jsonl::line(out, &json_explain::report(log, n, finding, at, first))?;
        }
        first += log.explanation.findings.len();
    }
    Ok(())
}

fn table(logs: &[Log]) -> Table {
    let mut table = Table::new(vec![
        Head::left("Log"),
        Head::right("Line"),
        Head::left("Class"),
        Head::left("Cache"),
        Head::right("Repeats"),
        Head::right("Follows"),
        Head::left("What"),
    ]);
    let mut first = 0;
    for log in logs {
        for finding in &log.explanation.findings {
            let follows = finding
                .consequence_of
                .map(|at| (first + at + 1).to_string());
            let cache = finding.cache.as_ref().map(|c| Cell::text(&*c.name));
            table.row(vec![
                Cell::text(&*log.name),
                Cell::text(finding.lines.0.to_string()),
                Cell::text(finding.class.name()),
                cache.unwrap_or_else(Cell::missing),
                Cell::text(finding.repeats.to_string()),
                follows.map_or_else(Cell::missing, Cell::text),
                Cell::text(&*finding.headline),
            ]);
        }
        first += log.explanation.findings.len();
    }
    table
}
