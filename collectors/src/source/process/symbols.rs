//! Names of code addresses of another process, from the symbol tables of its files.
//!
//! Source of truth: the process's map of files (`/proc/PID/maps`, or the note of a core) and
//! the ELF files themselves, read with the `object` crate. An address becomes
//! `function+0x1a [file]`; in a file without symbols `file+0x1ca2b`, which
//! `addr2line -e FILE 0x1ca2b` resolves where there is debug information elsewhere.
//! What it does not do: read debug information, so no lines and no inlined functions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use object::read::{ReadCache, ReadRef};
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};
use slabcore::inspect::open_plain;

use crate::model::Frame;

/// Mapped parts of files that are kept.
const MOST: usize = 1 << 16;
/// Symbols of one file that are kept.
const MOST_SYMBOLS: usize = 1 << 21;
/// Bytes of a name, as the file has it, that are used.
const MOST_NAME: usize = 512;
/// Bytes of all names of a file at most.
const MOST_NAMES: usize = 64 << 20;

/// A mapped part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Offset of its first byte in the file.
    pub offset: u64,
    pub path: PathBuf,
}

/// Mapped files, and the names in those that were needed so far.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    mappings: Vec<Mapping>,
    /// Where the paths begin: the process may have a root of its own.
    root: PathBuf,
    files: RefCell<HashMap<PathBuf, Option<Names>>>,
}

/// The functions of one file.
#[derive(Debug)]
struct Names {
    /// Offset in the file, its bytes, and the address there.
    segments: Vec<(u64, u64, u64)>,
    /// Address, bytes, name; in order of address.
    functions: Vec<(u64, u64, String)>,
}

impl Symbols {
    /// Of a running process.
    pub fn of_process(pid: u32) -> Self {
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps"));
        Self {
            mappings: text.map(|text| parse_maps(&text)).unwrap_or_default(),
            root: format!("/proc/{pid}/root").into(),
            files: RefCell::default(),
        }
    }

    /// Of known parts of files.
    pub fn of(mappings: Vec<Mapping>) -> Self {
        Self {
            mappings,
            root: "/".into(),
            files: RefCell::default(),
        }
    }

    /// A return address with its name.
    pub fn frame(&self, address: u64) -> Frame {
        Frame {
            address,
            symbol: self.name(address),
        }
    }

    fn name(&self, address: u64) -> Option<String> {
        // A return address may already be that of the next function.
        let call = address.checked_sub(1)?;
        let mut mappings = self.mappings.iter();
        let mapping = mappings.find(|of| (of.start..of.end).contains(&call))?;
        let file = mapping.path.file_name()?.to_string_lossy();
        let offset = call - mapping.start + mapping.offset;
        let mut files = self.files.borrow_mut();
        let names = files
            .entry(mapping.path.clone())
            .or_insert_with(|| self.open(&mapping.path).ok());
        let place = names.as_ref().and_then(|names| names.address(offset));
        let at = place.unwrap_or(offset) + 1;
        let function = names.as_ref().zip(place);
        let function = function.and_then(|(names, place)| names.function(place));
        Some(match function {
            Some((start, name)) => format!("{name}+{:#x} [{file}]", at - start),
            None => format!("{file}+{at:#x}"),
        })
    }

    fn open(&self, path: &Path) -> io::Result<Names> {
        let below = path.strip_prefix("/").unwrap_or(path);
        let file = open_plain(&self.root.join(below)).or_else(|_| open_plain(path))?;
        Names::read(&ReadCache::new(file)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Names {
    fn read<'d>(data: impl ReadRef<'d>) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let segments = file.segments().map(|of| {
            let (offset, bytes) = of.file_range();
            (offset, bytes, of.address())
        });
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let functions =
            symbols.filter(|of| of.kind() == object::SymbolKind::Text && !of.is_undefined());
        // Names of a file may all be one that is long.
        let mut room = MOST_NAMES;
        let functions = functions.take(MOST_SYMBOLS).filter_map(|of| {
            let name = of.name().ok().filter(|name| !name.is_empty())?;
            let name = name.get(..MOST_NAME).unwrap_or(name);
            let name: Box<str> = format!("{:#}", rustc_demangle::demangle(name)).into();
            room = room.checked_sub(name.len())?;
            Some((of.address(), of.size(), name.into_string()))
        });
        let mut functions: Vec<_> = functions.collect();
        functions.sort_unstable();
        Some(Self {
            segments: segments.collect(),
            functions,
        })
    }

    /// The address that an offset in the file has there.
    fn address(&self, offset: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let (start, _, address) = segments
            .find(|(start, bytes, _)| offset.checked_sub(*start).is_some_and(|n| n < *bytes))?;
        (offset - start).checked_add(*address)
    }

    /// The function that an address is in, and where it starts.
    fn function(&self, address: u64) -> Option<(u64, &str)> {
        let after = self.functions.partition_point(|of| of.0 <= address);
        let before = self.functions.get(..after)?;
        // Several names may be at one place, and an assembler's symbol may have no size.
        let near = before.iter().rev().take(8);
        let mut inside = near.filter(|of| address - of.0 < of.1.max(1));
        inside.next().map(|of| (of.0, &*of.2))
    }
}

/// The parts of files in the text of a `maps` file.
fn parse_maps(text: &str) -> Vec<Mapping> {
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let offset = fields.nth(1)?;
        // The path is the sixth field, and may have blanks.
        let path = line.get(line.find('/')?..)?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapping {
            start: hex(start)?,
            end: hex(end)?,
            offset: hex(offset)?,
            path: path.trim_end_matches(" (deleted)").into(),
        })
    };
    text.lines().filter_map(line).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_files_is_read() {
        let text = "\
7f0000001000-7f0000002000 r-xp 00003000 08:01 12 /usr/lib/a b.so
7f0000003000-7f0000004000 rw-p 00000000 00:00 0
7f0000005000-7f0000006000 r-xp 00000000 08:01 13 /tmp/gone (deleted)
7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0 [vdso]
nonsense";
        let maps = parse_maps(text);
        let of = |n: usize| {
            (
                maps[n].start,
                maps[n].offset,
                maps[n].path.to_str().unwrap(),
            )
        };
        assert_eq!(maps.len(), 2);
        assert_eq!(of(0), (0x7f00_0000_1000, 0x3000, "/usr/lib/a b.so"));
        assert_eq!(of(1).2, "/tmp/gone");
    }

    #[inline(never)]
    fn a_function_with_a_name() -> usize {
        std::hint::black_box(a_function_with_a_name as fn() -> usize as usize)
    }

    #[test]
    fn ones_own_functions_are_named() {
        let symbols = Symbols::of_process(std::process::id());
        let frame = symbols.frame(a_function_with_a_name() as u64 + 3);
        let name = frame.symbol.unwrap();
        assert!(
            name.contains("symbols::tests::a_function_with_a_name+0x3 ["),
            "{name}"
        );
        assert_eq!(symbols.frame(0).symbol, None);
        assert_eq!(symbols.frame(4096).symbol, None);
    }

    #[test]
    fn what_is_no_program_names_nothing() {
        let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let (start, end, offset) = (0x1000, 0x2000, 0x40);
        let mapping = |path| Mapping {
            start,
            end,
            offset,
            path,
        };
        let symbols = Symbols::of(vec![mapping(path)]);
        assert_eq!(
            symbols.frame(0x1011).symbol.as_deref(),
            Some("Cargo.toml+0x51")
        );
        let symbols = Symbols::of(vec![mapping("/dev/null".into())]);
        assert_eq!(symbols.frame(0x1011).symbol.as_deref(), Some("null+0x51"));
    }
}
