//! slabtop's command line.
//!
//! Source of truth: procps-ng 4.0.2, slabtop(1). `--from` is added here and
//! has no short form.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::compat::getopt::{Getopt, Item, Spec, Value};
use crate::compat::{Request, UsageError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    Delay,
    Once,
    Sort,
    Help,
    Version,
    From,
}

const SPECS: &[Spec<Switch>] = &[
    Spec::new(Switch::Delay, b'd', "delay", Value::Required),
    Spec::new(Switch::Sort, b's', "sort", Value::Required),
    Spec::new(Switch::Once, b'o', "once", Value::None),
    Spec::new(Switch::Help, b'h', "help", Value::None),
    Spec::new(Switch::Version, b'V', "version", Value::None),
    Spec::added(Switch::From, "from", Value::Required),
];

/// What the caches are ordered by. All but the name put the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    /// Objects in use.
    Active,
    /// Slots in a slab.
    ObjsPerSlab,
    /// Memory held.
    CacheSize,
    /// Slabs.
    Slabs,
    /// Slabs with an object in use.
    ActiveSlabs,
    /// Name, in its order.
    Name,
    /// Slots.
    #[default]
    Objects,
    /// Pages in a slab.
    PagesPerSlab,
    /// Bytes of a slot.
    ObjectSize,
    /// Share of the slots in use.
    Use,
}

impl Sort {
    const LETTERS: [(char, Self, &'static str); 10] = [
        ('a', Self::Active, "objects in use"),
        ('b', Self::ObjsPerSlab, "objects in a slab"),
        ('c', Self::CacheSize, "memory held"),
        ('l', Self::Slabs, "slabs"),
        ('v', Self::ActiveSlabs, "slabs with an object in use"),
        ('n', Self::Name, "name"),
        ('o', Self::Objects, "objects (the default)"),
        ('p', Self::PagesPerSlab, "pages in a slab"),
        ('s', Self::ObjectSize, "size of an object"),
        ('u', Self::Use, "share in use"),
    ];

    /// The order that a letter or key stands for.
    pub(crate) fn from_letter(letter: char) -> Option<Self> {
        let letter = letter.to_ascii_lowercase();
        let found = Self::LETTERS.iter().find(|(l, ..)| *l == letter);
        found.map(|(_, sort, _)| *sort)
    }
}

/// A command line of slabtop.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Read this capture instead of the running kernel.
    pub(crate) from: Option<PathBuf>,
    /// Time between two frames.
    pub(crate) delay: Duration,
    /// One frame, all caches.
    pub(crate) once: bool,
    /// The order.
    pub(crate) sort: Sort,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            from: None,
            delay: Duration::from_secs(3),
            once: false,
            sort: Sort::default(),
        }
    }
}

impl Options {
    /// Reads the words after the program's name.
    pub(crate) fn parse(words: Vec<OsString>) -> Result<Request<Self>, UsageError> {
        let mut options = Self::default();
        let mut delayed = false;
        for item in Getopt::new(SPECS, words) {
            match item? {
                Item::Operand(word) => {
                    let word = word.display();
                    return Err(UsageError::new(format!("'{word}' is no option")));
                }
                Item::Option(Switch::Help, _) => return Ok(Request::Print(help())),
                Item::Option(Switch::Version, _) => {
                    let version = env!("CARGO_PKG_VERSION");
                    return Ok(Request::Print(format!("slabtop from slabctl {version}\n")));
                }
                Item::Option(Switch::Once, _) => options.once = true,
                Item::Option(Switch::From, value) => options.from = value.map(PathBuf::from),
                Item::Option(Switch::Delay, value) => {
                    options.delay = delay(&value.unwrap_or_default())?;
                    delayed = true;
                }
                Item::Option(Switch::Sort, value) => {
                    options.sort = sort(&value.unwrap_or_default())?;
                }
            }
        }
        if options.once && delayed {
            return Err(UsageError::new("-d and -o exclude each other"));
        }
        Ok(Request::Run(options))
    }
}

fn delay(value: &OsString) -> Result<Duration, UsageError> {
    match value.to_str().and_then(|v| v.trim().parse::<u32>().ok()) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(u64::from(seconds))),
        _ => Err(UsageError::new(format!(
            "-d: '{}' is not a number of seconds, 1 or more",
            value.display()
        ))),
    }
}

fn sort(value: &OsString) -> Result<Sort, UsageError> {
    let text = value.to_string_lossy();
    let letter = text.chars().next();
    letter.and_then(Sort::from_letter).ok_or_else(|| {
        let letters: Vec<String> = Sort::LETTERS.iter().map(|l| l.0.to_string()).collect();
        UsageError::new(format!("-s: '{text}' is none of {}", letters.join(", ")))
    })
}

fn help() -> String {
    let mut text = String::from(
        "Shows the slab caches of the running kernel or of a capture, as slabtop does.\n\n\
         Usage: slabtop [OPTIONS]\n\n\
         Options:\n  \
         -d, --delay SECS   Time between two frames (3).\n  \
         -o, --once         One frame with all caches.\n  \
         -s, --sort LETTER  The order, see below.\n  \
         -h, --help         This text.\n  \
         -V, --version      The version.\n      \
         --from=PATH    Read a capture: a directory, an archive or a saved slabinfo.\n\n\
         Letters, and keys while it runs:\n",
    );
    for (letter, _, words) in Sort::LETTERS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {letter}  {words}");
    }
    text.push_str(
        "Other keys: space for a new frame, q to quit. Unknown figures are shown as -.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        match Options::parse(words) {
            Ok(Request::Run(options)) => Ok(options),
            Ok(Request::Print(text)) => Err(text),
            Err(e) => Err(e.to_string()),
        }
    }

    #[test]
    fn options_of_the_tool_are_understood() {
        let options = parse("-o -sc").unwrap();
        assert!(options.once && options.sort == Sort::CacheSize);
        let options = parse("--delay=10 --sort u").unwrap();
        assert_eq!(options.delay, Duration::from_secs(10));
        assert_eq!(options.sort, Sort::Use);
        assert_eq!(parse("").unwrap().delay, Duration::from_secs(3));
        assert!(parse("-V").unwrap_err().starts_with("slabtop from slabctl"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (line, why) in [
            ("-d 0", "not a number of seconds"),
            ("-d abc", "not a number of seconds"),
            ("-d 1 -o", "exclude each other"),
            ("-s z", "is none of a, b, c"),
            ("x", "'x' is no option"),
        ] {
            assert!(parse(line).unwrap_err().contains(why), "{line}");
        }
    }
}
