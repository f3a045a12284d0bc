//! Functions of the running kernel and its modules, by address.
//!
//! Source of truth: /proc/kallsyms. Without the right to see addresses
//! (CAP_SYSLOG, kernel.kptr_restrict) they are all 0, and nothing is found.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// All functions, sorted.
#[derive(Debug, Default)]
pub(super) struct Symbols(Vec<Symbol>);

#[derive(Debug, PartialEq, Eq)]
struct Symbol {
    at: u64,
    name: Box<str>,
    module: Option<Box<str>>,
}

impl Symbols {
    /// Those of the running kernel; none where they cannot be read.
    pub(super) fn read() -> Self {
        File::open("/proc/kallsyms").map_or_else(
            |_| Self::default(),
            |file| Self::parse(BufReader::with_capacity(1 << 16, file)),
        )
    }

    fn parse(text: impl BufRead) -> Self {
        let lines = text.lines().map_while(Result::ok);
        let mut list: Vec<Symbol> = lines.filter_map(|line| symbol(&line)).collect();
        // Of several names the first is kept.
        list.sort_by_key(|symbol| symbol.at);
        list.dedup_by_key(|symbol| symbol.at);
        Self(list)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As the kernel prints it: `vfs_open+0x2d/0xe0 [module]`; an address that
    /// is in no function as a number.
    pub(super) fn name(&self, address: u64) -> String {
        let after = self.0.partition_point(|symbol| symbol.at <= address);
        let Some(symbol) = after.checked_sub(1).and_then(|i| self.0.get(i)) else {
            return format!("{address:#x}");
        };
        let offset = address - symbol.at;
        let size = self.0.get(after).map_or(0, |next| next.at - symbol.at);
        let place = format!("{}+{offset:#x}/{size:#x}", symbol.name);
        match &symbol.module {
            Some(module) => format!("{place} [{module}]"),
            None => place,
        }
    }
}

fn symbol(line: &str) -> Option<Symbol> {
    let mut words = line.split_ascii_whitespace();
    let at = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_function = matches!(words.next()?, "t" | "T" | "w" | "W");
    let name = words.next()?;
    let module = words
        .next()
        .map(|word| word.trim_matches(['[', ']']).into());
    (is_function && at != 0).then(|| Symbol {
        at,
        name: name.into(),
        module,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_function_that_it_is_in() {
        let text = "\
ffffffff81000100 T second
ffffffff81000000 T first
ffffffff81000100 t also_second
ffffffff81000180 D data
ffffffff81000200 t third
ffffffffc0000000 t inside\t[some_module]
";
        let symbols = Symbols::parse(text.as_bytes());
        assert_eq!(symbols.name(0xffff_ffff_8100_0010), "first+0x10/0x100");
        assert_eq!(symbols.name(0xffff_ffff_8100_01ff), "second+0xff/0x100");
        assert_eq!(
            symbols.name(0xffff_ffff_c000_0008),
            "inside+0x8/0x0 [some_module]"
        );
        assert_eq!(symbols.name(0x1234), "0x1234");
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let symbols = Symbols::parse("0000000000000000 T first\n".as_bytes());
        assert!(symbols.is_empty());
        assert_eq!(symbols.name(0xffff_ffff_8100_0010), "0xffffffff81000010");
    }
}
