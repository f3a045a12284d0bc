//! The drop-in names: `slabinfo` and `slabtop` with those tools' own options.
//!
//! Called through a link with one of these names, or as `slabctl compat NAME`,
//! the program takes the tool's options and prints its columns. Every
//! deliberate difference is listed in docs/COMPAT.md. Nothing here reads a
//! kernel or a file: figures come as a [`Snapshot`] from a source, and nothing
//! here writes to a kernel.

#[cfg(test)]
mod fixture;
pub(crate) mod getopt;
mod printable;
pub(crate) mod slabinfo;
pub(crate) mod slabtop;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use collectors::model::Snapshot;
use collectors::source::{Demand, Source};

use crate::open;
use crate::output::text;

/// A tool whose place the program takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The kernel's tools/mm/slabinfo.
    Slabinfo,
    /// procps-ng's slabtop.
    Slabtop,
}

impl Tool {
    /// The tool by which the program was called, from its zeroth argument.
    pub(crate) fn from_argv0(argv0: &OsStr) -> Option<Self> {
        Self::from_name(Path::new(argv0).file_name()?)
    }

    /// The tool of that name.
    pub(crate) fn from_name(name: &OsStr) -> Option<Self> {
        [Self::Slabinfo, Self::Slabtop]
            .into_iter()
            .find(|tool| name == tool.name())
    }

    /// Its name, which begins its messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Slabinfo => "slabinfo",
            Self::Slabtop => "slabtop",
        }
    }
}

/// A command line that asks for something, or for a text about the tool.
#[derive(Debug)]
pub(crate) enum Request<O> {
    /// Carry this out.
    Run(O),
    /// Print this and stop.
    Print(String),
}

/// A command line that cannot be carried out. The exit code is [`Outcome::USAGE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageError(String);

impl UsageError {
    /// An error with this one line.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Outcome {
    /// The exit code.
    pub(crate) code: u8,
    /// Lines for standard error, without the tool's name.
    pub(crate) notes: Vec<String>,
}

impl Outcome {
    /// The exit code of a command line that cannot be carried out.
    pub(crate) const USAGE: u8 = 2;
}

/// Opens the running kernel, or the capture at a path.
pub(crate) type Open<'a> = dyn FnMut(Option<&Path>) -> anyhow::Result<Box<dyn Source>> + 'a;

/// Runs a tool on the words after its name. Returns the exit code; what has to
/// be said goes to `err`. Failures to read are the caller's to report.
pub(crate) fn run(
    tool: Tool,
    words: Vec<OsString>,
    open: &mut Open<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<u8> {
    let done = match tool {
        Tool::Slabinfo => run_slabinfo(words, open, out, err),
        Tool::Slabtop => run_slabtop(words, open, out, err),
    };
    match done {
        // The reader has seen enough, as `slabinfo | head` does.
        Err(e) if is_broken_pipe(&e) => Ok(0),
        other => other,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Says what is wrong with a command line.
fn usage(tool: Tool, error: &UsageError, err: &mut dyn Write) -> io::Result<u8> {
    let name = tool.name();
    writeln!(err, "{name}: error: {}", text::one_line(&error.to_string()))?;
    writeln!(err, "hint: {name} -h lists the options")?;
    Ok(Outcome::USAGE)
}

fn run_slabinfo(
    words: Vec<OsString>,
    open: &mut Open<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<u8> {
    let options = match slabinfo::Options::parse(words) {
        Ok(Request::Run(options)) => options,
        Ok(Request::Print(text)) => {
            out.write_all(text.as_bytes())?;
            return Ok(0);
        }
        Err(e) => return Ok(usage(Tool::Slabinfo, &e, err)?),
    };
    let mut source = open(options.from.as_deref())?;
    let mut snapshot = sample(source.as_mut(), &slabinfo::first_demand(&options))?;
    if let Some(more) = slabinfo::second_demand(&options, &snapshot) {
        snapshot = sample(source.as_mut(), &more)?;
    }
    let outcome = slabinfo::run(&options, &snapshot, out)?;
    out.flush()?;
    say(Tool::Slabinfo, &snapshot, &outcome, err)?;
    Ok(outcome.code)
}

fn run_slabtop(
    words: Vec<OsString>,
    open: &mut Open<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<u8> {
    let options = match slabtop::Options::parse(words) {
        Ok(Request::Run(options)) => options,
        Ok(Request::Print(text)) => {
            out.write_all(text.as_bytes())?;
            return Ok(0);
        }
        Err(e) => return Ok(usage(Tool::Slabtop, &e, err)?),
    };
    let mut source = open(options.from.as_deref())?;
    if slabtop::repeats(&options, source.as_ref()) {
        slabtop::run_live(options, source.as_mut(), out)?;
        return Ok(0);
    }
    let snapshot = sample(source.as_mut(), &slabtop::demand(&options))?;
    let outcome = slabtop::run(&options, &snapshot, out)?;
    out.flush()?;
    say(Tool::Slabtop, &snapshot, &outcome, err)?;
    Ok(outcome.code)
}

/// One sample, with hints when it fails.
fn sample(source: &mut dyn Source, demand: &Demand) -> anyhow::Result<Snapshot> {
    Ok(source.sample(demand).map_err(open::with_hints)?)
}

/// Prints the warnings of the source and the notes of the run.
fn say(tool: Tool, snapshot: &Snapshot, outcome: &Outcome, err: &mut dyn Write) -> io::Result<()> {
    let name = tool.name();
    for warning in &snapshot.warnings {
        let warning = text::one_line(&warning.to_string());
        writeln!(err, "{name}: warning: {warning}")?;
    }
    let more = snapshot.warnings.suppressed();
    if more > 0 {
        writeln!(err, "{name}: warning: {more} more are not shown")?;
    }
    for note in &outcome.notes {
        writeln!(err, "{name}: {}", text::one_line(note))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_decides_by_its_last_part_only() {
        let tool = |text: &str| Tool::from_argv0(OsStr::new(text));
        assert_eq!(tool("/usr/sbin/slabinfo"), Some(Tool::Slabinfo));
        assert_eq!(tool("slabtop"), Some(Tool::Slabtop));
        assert_eq!(tool("/opt/slabtop/slabctl"), None);
        assert_eq!(tool("slabinfo.old"), None);
        assert_eq!(tool(""), None);
    }

    fn run_words(tool: Tool, words: &[&str]) -> (u8, String, String) {
        let words = words.iter().map(OsString::from).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut open = |_: Option<&Path>| -> anyhow::Result<Box<dyn Source>> {
            anyhow::bail!("must not be opened")
        };
        let code = run(tool, words, &mut open, &mut out, &mut err).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (code, text(out), text(err))
    }

    #[test]
    fn a_refused_option_reads_nothing_and_ends_with_2() {
        for option in ["-s", "-v", "-d", "-o", "-Q", "-N0"] {
            let (code, out, err) = run_words(Tool::Slabinfo, &[option]);
            assert_eq!((code, out.as_str()), (2, ""), "{option}");
            assert!(err.starts_with("slabinfo: error: "), "{err}");
        }
        let (code, _, err) = run_words(Tool::Slabtop, &["-d1", "-o"]);
        assert_eq!(code, 2);
        assert!(err.starts_with("slabtop: error: "), "{err}");
    }

    #[test]
    fn help_goes_to_standard_output_and_succeeds() {
        for tool in [Tool::Slabinfo, Tool::Slabtop] {
            let (code, out, err) = run_words(tool, &["-h"]);
            assert_eq!((code, err.as_str()), (0, ""));
            assert!(out.contains("Usage: "));
        }
    }
}
