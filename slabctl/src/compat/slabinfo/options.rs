//! slabinfo's command line.
//!
//! Source of truth: tools/mm/slabinfo.c of Linux 6.12 (and 7.0, where
//! `--partial` began to work). `--from` is added here and has no short form.
//! The options that write to the kernel are understood and refused.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::bre::Pattern;
use crate::compat::getopt::{Getopt, Item, Spec, Value};
use crate::compat::{Request, UsageError};

macro_rules! switches {
    ($($variant:ident $short:literal $long:literal $value:ident $help:literal,)*) => {
        /// One option of the tool.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Switch {
            $(#[doc = $help] $variant,)*
            /// Read a capture instead of the running kernel.
            From,
        }

        const SPECS: &[Spec<Switch>] = &[
            $(Spec::new(Switch::$variant, $short, $long, Value::$value),)*
            Spec::added(Switch::From, "from", Value::Required),
            // The tool's help names it so, but the tool does not take it.
            Spec::added(Switch::DisplayActivity, "display-active", Value::None),
        ];

        const HELP: &[(u8, &str, &str)] = &[$(($short, $long, $help),)*];
    };
}

switches! {
    Aliases b'a' "aliases" None "Names of merged caches.",
    SingleRef b'1' "1ref" None "With -a: caches with one name too.",
    FirstAlias b'f' "first-alias" None "Show merged caches under a name instead of their id.",
    Activity b'A' "activity" None "Busiest caches first (needs CONFIG_SLUB_STATS).",
    Bytes b'B' "Bytes" None "Exact numbers instead of K, M and G.",
    Debug b'd' "debug" Optional "Refused: the attributes are read-only since Linux 5.9.",
    DisplayActivity b'D' "display-activity" None "Columns of activity instead of sizes.",
    Empty b'e' "empty" None "Only caches without slabs.",
    Help b'h' "help" None "This text.",
    Inverted b'i' "inverted" None "Reverse the order; with -a, one line per name.",
    List b'l' "slabs" None "The list (the default).",
    Loss b'L' "Loss" None "Most memory lost first; the Space column shows the loss.",
    Numa b'n' "numa" None "Slabs on each node.",
    Lines b'N' "lines" Required "Only the first so many caches.",
    Ops b'o' "ops" None "Refused: no kernel has that attribute.",
    Partial b'P' "partial" None "Most partial slabs first.",
    Report b'r' "report" None "Everything about each cache.",
    Shrink b's' "shrink" None "Refused: it would write to the kernel.",
    Size b'S' "Size" None "Largest first.",
    Tracking b't' "tracking" None "Who allocated and freed (needs slab_debug=U).",
    Totals b'T' "Totals" None "Sums over the caches.",
    Unreclaim b'U' "Unreclaim" None "Leave out reclaimable caches.",
    Validate b'v' "validate" None "Refused: it would write to the kernel.",
    Xtotals b'X' "Xtotals" None "Sums in bytes, and the largest by size, loss and partial slabs.",
    Zero b'z' "zero" None "Caches without slabs too.",
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Names of merged caches.
    Aliases,
    /// Sums and top lists.
    Xtotals,
    /// Sums.
    Totals,
    /// Slabs on each node.
    Numa,
    /// Call sites.
    Tracking,
    /// One line per cache.
    List,
    /// One block per cache.
    Report,
}

/// What the caches are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Memory held, largest first.
    Size,
    /// Allocations and frees, most first.
    Activity,
    /// Memory lost, most first.
    Loss,
    /// Partial slabs, most first.
    Partial,
    /// Name.
    Name,
}

/// A command line of slabinfo.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Read this capture instead of the running kernel.
    pub(crate) from: Option<PathBuf>,
    /// Only caches with a name that matches.
    pub(crate) pattern: Option<Pattern>,
    /// Only so many lines.
    pub(crate) lines: Option<u64>,
    switches: u32,
}

impl Options {
    /// Reads the words after the program's name.
    pub(crate) fn parse(words: Vec<OsString>) -> Result<Request<Self>, UsageError> {
        let mut options = Self::default();
        for item in Getopt::new(SPECS, words) {
            match item? {
                Item::Operand(word) if options.pattern.is_none() => {
                    options.pattern = Some(pattern(&word)?);
                }
                Item::Operand(word) => {
                    let word = word.display();
                    return Err(UsageError::new(format!(
                        "one pattern only: '{word}' is a second one"
                    )));
                }
                Item::Option(Switch::Help, _) => return Ok(Request::Print(help())),
                Item::Option(switch, value) => options.add(switch, value)?,
            }
        }
        if options.has(Switch::Xtotals) && options.lines.is_none() {
            options.lines = Some(1);
        }
        Ok(Request::Run(options))
    }

    fn add(&mut self, switch: Switch, value: Option<OsString>) -> Result<(), UsageError> {
        if let Some(why) = refusal(switch, value.as_ref())? {
            return Err(why);
        }
        match switch {
            Switch::From => self.from = value.map(PathBuf::from),
            Switch::Lines => self.lines = Some(lines(value.as_ref())?),
            _ => {}
        }
        self.switches |= 1 << switch as u32;
        Ok(())
    }

    /// Whether the option was given.
    pub(crate) const fn has(&self, switch: Switch) -> bool {
        self.switches & (1 << switch as u32) != 0
    }

    /// What is to be printed: the first of these that was asked for.
    pub(crate) const fn mode(&self) -> Mode {
        if self.has(Switch::Aliases) {
            Mode::Aliases
        } else if self.has(Switch::Xtotals) {
            Mode::Xtotals
        } else if self.has(Switch::Totals) {
            Mode::Totals
        } else if self.has(Switch::Numa) {
            Mode::Numa
        } else if self.has(Switch::Tracking) {
            Mode::Tracking
        } else if self.has(Switch::Report) && !self.has(Switch::List) {
            Mode::Report
        } else {
            Mode::List
        }
    }

    /// The order: the first of these that was asked for.
    pub(crate) const fn sort(&self) -> Sort {
        if self.has(Switch::Size) {
            Sort::Size
        } else if self.has(Switch::Activity) {
            Sort::Activity
        } else if self.has(Switch::Loss) {
            Sort::Loss
        } else if self.has(Switch::Partial) {
            Sort::Partial
        } else {
            Sort::Name
        }
    }

    /// Whether numbers are printed in full.
    pub(crate) const fn exact(&self) -> bool {
        self.has(Switch::Bytes) || self.has(Switch::Xtotals)
    }
}

fn pattern(word: &std::ffi::OsStr) -> Result<Pattern, UsageError> {
    let Some(text) = word.to_str() else {
        let word = word.display();
        return Err(UsageError::new(format!("pattern '{word}' is not UTF-8")));
    };
    Pattern::new(text).map_err(|why| UsageError::new(format!("pattern '{text}': {why}")))
}

fn lines(value: Option<&OsString>) -> Result<u64, UsageError> {
    let text = value.map(|v| v.to_string_lossy().into_owned());
    let text = text.unwrap_or_default();
    match text.trim().parse::<u64>() {
        Ok(lines) if lines > 0 => Ok(lines),
        _ => Err(UsageError::new(format!(
            "-N: '{text}' is not a number of lines, 1 or more"
        ))),
    }
}

/// Why an option is not carried out; `None` for all others.
fn refusal(switch: Switch, value: Option<&OsString>) -> Result<Option<UsageError>, UsageError> {
    let why = match switch {
        Switch::Ops => {
            "-o: no kernel from 2.6.22 to 7.3 has the attribute `ops`; there is nothing to print"
                .to_owned()
        }
        Switch::Validate => {
            "-v: not offered here: the kernel puts the verdict of a write to `validate` in its log \
             only, and refuses the write for caches without debug flags; nothing was written"
                .to_owned()
        }
        Switch::Shrink => {
            "-s: not offered here: it writes to `shrink` of every cache that matches, unasked and \
             without a result to show; nothing was written"
                .to_owned()
        }
        Switch::Debug => debug_refusal(&value.map(|v| v.to_string_lossy()).unwrap_or_default())?,
        _ => return Ok(None),
    };
    Ok(Some(UsageError::new(why)))
}

fn debug_refusal(letters: &str) -> Result<String, UsageError> {
    let wanted = match letters.to_ascii_uppercase().as_str() {
        "" | "-" => "-".to_owned(),
        "A" => "FZPU".to_owned(),
        other => other.to_owned(),
    };
    let known = |c| "FZPUT".contains(c);
    if wanted != "-" && !wanted.chars().all(known) {
        return Err(UsageError::new(format!(
            "-d: '{letters}' is not made of the letters a, f, z, p, u, t"
        )));
    }
    let boot = if wanted == "-" {
        "without slab_debug".to_owned()
    } else {
        format!("with slab_debug={wanted}")
    };
    Ok(format!(
        "-d: the debug attributes are read-only since Linux 5.9; boot {boot} instead \
         (slub_debug before 6.9); nothing was changed"
    ))
}

fn help() -> String {
    let mut text = String::from(
        "Reads the slab caches of the running kernel or of a capture, with slabinfo's options.\n\n\
         Usage: slabinfo [OPTIONS] [PATTERN]\n\n\
         PATTERN is a basic regular expression, compared without regard to case with every\n\
         name of a cache; caches that match anywhere are shown.\n\n\
         Options:\n",
    );
    for (short, long, help) in HELP {
        let value = match *long {
            "lines" => "=K",
            "debug" => "[=LETTERS]",
            _ => "",
        };
        let name = format!("--{long}{value}");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  -{}, {name:<20} {help}", char::from(*short));
    }
    text.push_str(
        "      --from=PATH          Read a capture: a directory, an archive or a saved slabinfo.\n",
    );
    text.push_str(
        "\nWith one cache left, the list becomes its report. Unknown figures are shown as -.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Options {
        let words = line.split_whitespace().map(OsString::from).collect();
        match Options::parse(words) {
            Ok(Request::Run(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        let words = line.split_whitespace().map(OsString::from).collect();
        Options::parse(words).unwrap_err().to_string()
    }

    #[test]
    fn options_of_the_tool_mean_what_they_do_there() {
        assert_eq!(parse("").mode(), Mode::List);
        assert_eq!(parse("-r").mode(), Mode::Report);
        assert_eq!(parse("-r -l").mode(), Mode::List);
        assert_eq!(parse("-nr").mode(), Mode::Numa);
        assert_eq!(parse("-aXT").mode(), Mode::Aliases);
        assert_eq!(parse("-LS").sort(), Sort::Size);
        assert_eq!(parse("--partial").sort(), Sort::Partial);
        assert_eq!(parse("--display-active -SN5").lines, Some(5));
        assert!(parse("--from=x.tar.xz").from.is_some());
        let totals = parse("-X");
        assert!(totals.exact() && totals.lines == Some(1));
    }

    #[test]
    fn a_line_count_that_is_none_is_refused() {
        for bad in ["-Nabc", "-N 0", "--lines=-3", "-N5x"] {
            assert!(refused(bad).contains("not a number of lines"), "{bad}");
        }
    }

    #[test]
    fn options_that_would_write_are_refused_and_say_why() {
        assert!(refused("-v").contains("log only"));
        assert!(refused("-s dentry").contains("nothing was written"));
        assert!(refused("-da").contains("boot with slab_debug=FZPU instead"));
        assert!(refused("-dz").contains("slab_debug=Z"));
        assert!(refused("-d").contains("without slab_debug"));
        assert!(refused("-dq").contains("not made of the letters"));
        assert!(refused("-o").contains("no kernel"));
    }

    #[test]
    fn a_second_pattern_and_a_broken_one_are_refused() {
        assert!(refused("a b").contains("one pattern only"));
        assert_eq!(refused(r"\(a"), r"pattern '\(a': a \( has no \)");
    }

    #[test]
    fn help_names_every_option() {
        let Ok(Request::Print(text)) = Options::parse(vec!["-h".into()]) else {
            panic!("no help");
        };
        for spec in SPECS.iter().filter(|s| s.long != "display-active") {
            assert!(text.contains(&format!("--{}", spec.long)), "{}", spec.long);
        }
    }
}
