//! Command lines as GNU `getopt_long` reads them.
//!
//! The drop-in names take the options of tools that were written against
//! getopt: short options run together (`-SN5`), values are attached or follow,
//! long names may be cut where that is unambiguous, options and operands mix,
//! and `--` ends the options. Source of truth: getopt(3) of glibc. The
//! environment variable POSIXLY_CORRECT is not looked at.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use super::UsageError;

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// It takes none.
    None,
    /// It needs one: attached, or the next word.
    Required,
    /// It may have one, attached only.
    Optional,
}

/// One option of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec<T: 'static> {
    /// What the caller knows it by.
    pub(crate) id: T,
    /// Its letter, where it has one.
    pub(crate) short: Option<u8>,
    /// Its long name.
    pub(crate) long: &'static str,
    /// Its value.
    pub(crate) value: Value,
    /// False for a long name that must be written in full, so that a name
    /// added here never makes a short form of the tool's own ambiguous.
    pub(crate) may_be_cut: bool,
}

impl<T> Spec<T> {
    /// An option of the tool itself.
    pub(crate) const fn new(id: T, short: u8, long: &'static str, value: Value) -> Self {
        Self {
            id,
            short: Some(short),
            long,
            value,
            may_be_cut: true,
        }
    }

    /// An option that the tool does not have.
    pub(crate) const fn added(id: T, long: &'static str, value: Value) -> Self {
        Self {
            id,
            short: None,
            long,
            value,
            may_be_cut: false,
        }
    }
}

/// One piece of a command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<T> {
    /// An option with its value.
    Option(T, Option<OsString>),
    /// A word that is no option.
    Operand(OsString),
}

/// Reads a command line piece by piece, in its order.
pub(crate) struct Getopt<T: 'static> {
    specs: &'static [Spec<T>],
    words: std::vec::IntoIter<OsString>,
    /// Letters of a cluster that are still to be read.
    cluster: Vec<u8>,
    only_operands: bool,
}

impl<T: Copy> Getopt<T> {
    /// Reads `words`, without the program's name.
    pub(crate) fn new(specs: &'static [Spec<T>], words: Vec<OsString>) -> Self {
        Self {
            specs,
            words: words.into_iter(),
            cluster: Vec::new(),
            only_operands: false,
        }
    }

    fn short(&mut self, letter: u8) -> Result<Item<T>, UsageError> {
        let spec = self.specs.iter().find(|s| s.short == Some(letter));
        let Some(spec) = spec else {
            let shown = String::from_utf8_lossy(&[letter]).into_owned();
            return Err(UsageError::new(format!("invalid option '-{shown}'")));
        };
        let attached = match spec.value {
            Value::None => None,
            Value::Required | Value::Optional => {
                let rest = std::mem::take(&mut self.cluster);
                (!rest.is_empty()).then(|| OsString::from_vec(rest))
            }
        };
        let value = match (spec.value, attached) {
            (Value::Required, None) => Some(self.next_word(&format!("-{}", letter as char))?),
            (_, attached) => attached,
        };
        Ok(Item::Option(spec.id, value))
    }

    fn next_word(&mut self, option: &str) -> Result<OsString, UsageError> {
        self.words
            .next()
            .ok_or_else(|| UsageError::new(format!("option '{option}' needs a value")))
    }

    fn long(&mut self, text: &[u8]) -> Result<Item<T>, UsageError> {
        let (name, attached) = match text.iter().position(|b| *b == b'=') {
            Some(at) => {
                let (name, value) = text.split_at(at);
                let value = OsStr::from_bytes(value.get(1..).unwrap_or_default());
                (name, Some(value.to_owned()))
            }
            None => (text, None),
        };
        let spec = self.named(name)?;
        let shown = format!("--{}", spec.long);
        let value = match (spec.value, attached) {
            (Value::None, Some(_)) => {
                return Err(UsageError::new(format!("option '{shown}' takes no value")));
            }
            (Value::Required, None) => Some(self.next_word(&shown)?),
            (_, attached) => attached,
        };
        Ok(Item::Option(spec.id, value))
    }

    fn named(&self, name: &[u8]) -> Result<&'static Spec<T>, UsageError> {
        if let Some(spec) = self.specs.iter().find(|s| s.long.as_bytes() == name) {
            return Ok(spec);
        }
        let starts = |s: &&Spec<T>| s.may_be_cut && s.long.as_bytes().starts_with(name);
        let mut candidates = self.specs.iter().filter(starts);
        let shown = String::from_utf8_lossy(name);
        match (candidates.next(), candidates.next()) {
            (Some(spec), None) => Ok(spec),
            (Some(a), Some(b)) => Err(UsageError::new(format!(
                "option '--{shown}' may mean '--{}' or '--{}'",
                a.long, b.long
            ))),
            _ => Err(UsageError::new(format!("invalid option '--{shown}'"))),
        }
    }
}

impl<T: Copy> Iterator for Getopt<T> {
    type Item = Result<Item<T>, UsageError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.cluster.is_empty() {
            let letter = self.cluster.remove(0);
            return Some(self.short(letter));
        }
        let word = self.words.next()?;
        match word.as_bytes() {
            _ if self.only_operands => Some(Ok(Item::Operand(word))),
            b"--" => {
                self.only_operands = true;
                self.next()
            }
            [b'-', b'-', name @ ..] => Some(self.long(name)),
            [b'-', letter, rest @ ..] => {
                self.cluster = rest.to_vec();
                Some(self.short(*letter))
            }
            _ => Some(Ok(Item::Operand(word))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec<char>] = &[
        Spec::new('S', b'S', "Size", Value::None),
        Spec::new('s', b's', "shrink", Value::None),
        Spec::new('l', b'l', "slabs", Value::None),
        Spec::new('N', b'N', "lines", Value::Required),
        Spec::new('d', b'd', "debug", Value::Optional),
        Spec::added('F', "from", Value::Required),
        Spec::new('f', b'f', "first-alias", Value::None),
    ];

    fn read(line: &str) -> Result<String, String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        let mut out = Vec::new();
        for item in Getopt::new(SPECS, words) {
            out.push(match item.map_err(|e| e.to_string())? {
                Item::Option(id, None) => id.to_string(),
                Item::Option(id, Some(v)) => format!("{id}={}", v.display()),
                Item::Operand(word) => format!("<{}>", word.display()),
            });
        }
        Ok(out.join(" "))
    }

    #[test]
    fn every_way_to_write_an_option_is_understood() {
        let cases = [
            ("-SN5", "S N=5"),
            ("-S -N 5", "S N=5"),
            ("--Size --lines=5", "S N=5"),
            ("--lines 5 dentry", "N=5 <dentry>"),
            ("dentry -S", "<dentry> S"),
            ("-dfz -d", "d=fz d"),
            ("-d a", "d <a>"),
            ("--debug=a --debug", "d=a d"),
            ("--li 5 --fir", "N=5 f"),
            ("--f", "f"),
            ("--from x", "F=x"),
            ("-- -S --x", "<-S> <--x>"),
            ("-", "<->"),
        ];
        for (line, want) in cases {
            assert_eq!(read(line).as_deref(), Ok(want), "{line}");
        }
    }

    #[test]
    fn a_wrong_option_is_named() {
        let cases = [
            ("-Sq", "invalid option '-q'"),
            ("--nope", "invalid option '--nope'"),
            ("--s", "option '--s' may mean '--shrink' or '--slabs'"),
            ("-N", "option '-N' needs a value"),
            ("--lines", "option '--lines' needs a value"),
            ("--Size=3", "option '--Size' takes no value"),
            ("--fro x", "invalid option '--fro'"),
        ];
        for (line, want) in cases {
            assert_eq!(read(line).unwrap_err(), want, "{line}");
        }
    }
}
