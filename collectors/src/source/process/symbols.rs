//! Names of code addresses of another process, from the symbol tables of its files.
//!
//! Source of truth: the process's map of files (`/proc/PID/maps`, or the note of a core) and
//! the ELF files themselves. An address becomes
//! `function+0x1a [file]`; in a file without symbols `file+0x1ca2b`, which
//! `addr2line -e FILE 0x1ca2b` resolves where there is debug information elsewhere.
//! What it does not do: read debug information, so no lines and no inlined functions.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::aside;
use super::files::Files;
use super::functions::{Functions, Room};
use crate::model::Frame;

/// Bytes of a list of mapped files that are looked at.
const MOST: u64 = 8 << 20;
/// How long the symbols of one file are waited for.
const LONGEST: Duration = Duration::from_secs(1);
/// Files whose symbols are read at most.
const MOST_FILES: usize = 4096;

/// A mapped part of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Offset of its first byte in the file.
    pub offset: u64,
    pub path: PathBuf,
    /// The file has no name any more: what is at the path is another.
    pub deleted: bool,
}

impl Mapping {
    /// By a path as the system tells it.
    pub fn new((start, end): (u64, u64), offset: u64, path: &str) -> Self {
        let kept = path.strip_suffix(" (deleted)");
        Self {
            start,
            end,
            offset,
            path: kept.unwrap_or(path).into(),
            deleted: kept.is_some(),
        }
    }
}

/// Mapped files, and the names in those that were needed so far.
#[derive(Debug)]
pub(super) struct Symbols {
    /// In order of address.
    mappings: Vec<Mapping>,
    whose: Files,
    files: RefCell<HashMap<PathBuf, Option<Functions>>>,
    room: Cell<Room>,
    stuck: Cell<bool>,
    /// No file is read after it.
    until: Cell<Option<Instant>>,
}

impl Symbols {
    /// Of a running process.
    pub fn of_process(pid: u32) -> Self {
        let maps = File::open(format!("/proc/{pid}/maps"));
        let maps = maps.map(|file| parse_maps(BufReader::new(file.take(MOST))));
        Self::new(maps.unwrap_or_default(), Files::Of(pid))
    }

    /// Of known parts of files.
    pub fn of(mappings: Vec<Mapping>) -> Self {
        Self::new(mappings, Files::Here)
    }

    fn new(mut mappings: Vec<Mapping>, whose: Files) -> Self {
        mappings.sort_unstable_by_key(|of| of.start);
        Self {
            mappings,
            whose,
            files: RefCell::default(),
            room: Cell::new(Room::MOST),
            stuck: Cell::new(false),
            until: Cell::new(None),
        }
    }

    /// Files are read until then; names in those that were not read yet are missing.
    pub fn limit(&self, until: Instant) {
        self.until.set(Some(until));
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
        let after = self.mappings.partition_point(|of| of.start <= call);
        let mapping = self.mappings.get(after.checked_sub(1)?)?;
        if call >= mapping.end {
            return None;
        }
        let file = mapping.path.file_name()?.to_string_lossy();
        let offset = (call - mapping.start).checked_add(mapping.offset)?;
        let mut files = self.files.borrow_mut();
        if !files.contains_key(&mapping.path)
            && files.len() < MOST_FILES
            && let Some(time) = self.time()
        {
            files.insert(mapping.path.clone(), self.read(mapping, time));
        }
        let functions = files.get(&mapping.path).and_then(Option::as_ref);
        let place = functions.and_then(|of| of.address(offset));
        let at = place.unwrap_or(offset).saturating_add(1);
        let function = functions.zip(place);
        let function = function.and_then(|(of, place)| of.function(place));
        Some(match function {
            Some((start, name)) => format!("{name}+{:#x} [{file}]", at - start),
            None => format!("{file}+{at:#x}"),
        })
    }

    /// How long one more file may take; `None` if there is no time left.
    fn time(&self) -> Option<Duration> {
        let Some(until) = self.until.get() else {
            return Some(LONGEST);
        };
        let left = until.saturating_duration_since(Instant::now());
        Some(left.min(LONGEST)).filter(|left| !left.is_zero())
    }

    /// A file that lets its reader wait is left behind, and no other is tried.
    fn read(&self, mapping: &Mapping, time: Duration) -> Option<Functions> {
        if self.stuck.get() {
            return None;
        }
        let (whose, mapping, mut room) = (self.whose, mapping.clone(), self.room.get());
        let read = aside::within(time, move || {
            let file = whose.open(&mapping).ok();
            (file.and_then(|file| Functions::read(file, &mut room)), room)
        });
        self.stuck.set(read.is_none());
        let (functions, room) = read?;
        self.room.set(room);
        functions
    }
}

/// The parts of files that hold code, in the text of a `maps` file.
fn parse_maps(text: impl std::io::BufRead) -> Vec<Mapping> {
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        fields.next()?.contains('x').then_some(())?;
        let offset = fields.next()?;
        // The path is the sixth field, and may have blanks.
        let path = line.get(line.find('/')?..)?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapping::new((hex(start)?, hex(end)?), hex(offset)?, path))
    };
    let lines = text.split(b'\n').map_while(Result::ok);
    lines
        .filter_map(|bytes| line(&String::from_utf8_lossy(&bytes)))
        .collect()
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
7f0000007000-7f0000008000 r--p 00000000 08:01 13 /tmp/data
7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0 [vdso]
nonsense";
        let maps = parse_maps(text.as_bytes());
        let of = |n: usize| {
            (
                maps[n].start,
                maps[n].offset,
                maps[n].path.to_str().unwrap(),
            )
        };
        assert_eq!(maps.len(), 2);
        assert_eq!(of(0), (0x7f00_0000_1000, 0x3000, "/usr/lib/a b.so"));
        assert_eq!(
            (of(1).2, maps[0].deleted, maps[1].deleted),
            ("/tmp/gone", false, true)
        );
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
    fn without_time_no_file_is_read_and_later_it_is() {
        let symbols = Symbols::of_process(std::process::id());
        let address = a_function_with_a_name() as u64 + 3;
        let named = || symbols.frame(address).symbol.unwrap();
        symbols.limit(Instant::now());
        assert!(!named().contains("a_function_with_a_name"), "{}", named());
        symbols.limit(Instant::now() + LONGEST);
        assert!(named().contains("a_function_with_a_name"), "{}", named());
    }

    #[test]
    fn what_is_no_program_names_nothing() {
        let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let mapping = |path: PathBuf| Mapping::new((0x1000, 0x2000), 0x40, path.to_str().unwrap());
        let symbols = Symbols::of(vec![mapping(path)]);
        assert_eq!(
            symbols.frame(0x1011).symbol.as_deref(),
            Some("Cargo.toml+0x51")
        );
        let symbols = Symbols::of(vec![mapping("/dev/null".into())]);
        assert_eq!(symbols.frame(0x1011).symbol.as_deref(), Some("null+0x51"));
    }
}
