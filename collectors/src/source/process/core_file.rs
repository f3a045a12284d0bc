//! A core file: the memory of a process that is dead, or was copied.
//!
//! Source of truth: ELF core files of Linux (`core(5)`): `PT_LOAD` parts of memory, and the
//! note `NT_FILE` of mapped files. The segment is found by its first bytes, so the process's
//! `coredump_filter` must keep shared anonymous memory (bit 1, which is the default), for a
//! segment in a file shared files (bit 3, which is not).

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use object::Endianness;
use object::elf::{FileHeader64, NT_FILE, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use slabcore::inspect::{Inspector, Limits, Memory, Part, Refusal};
use slabcore::segment::{Segment, format};

use super::limited::Limited;
use super::looks::{self, Looks};
use super::symbols::{Mapping, Symbols};
use super::{segment, sites};
use crate::error::Error;
use crate::model::{
    Dump, DumpDemand, Origin, OriginKind, Snapshot, Warning, WarningCode, Warnings,
};
use crate::source::engine;
use crate::source::{Demand, Engines, Source, Verdict};

/// Parts of memory, and mapped files, at most.
const MOST: usize = 1 << 17;

/// How long a look at a core takes.
const LONGEST: Duration = Duration::from_secs(60);
/// Bytes of tables and notes that are read: a list of as many files takes less.
const MOST_BYTES: u64 = 32 << 20;

/// A part of memory and where it is in the file.
#[derive(Debug, Clone, Copy)]
struct Load {
    start: u64,
    end: u64,
    offset: u64,
}

/// The memory in a core file.
#[derive(Debug)]
pub(super) struct CoreMemory {
    file: File,
    /// In order of address.
    loads: Vec<Load>,
}

impl CoreMemory {
    fn open(path: &Path) -> Result<(Self, Vec<Mapping>), Error> {
        let file = slabcore::inspect::open_plain(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidInput => Error::Unrecognised {
                path: path.to_owned(),
                why: "no plain file".to_owned(),
            },
            _ => Error::from_io(path, error),
        })?;
        let broken = |why: &str| Error::Broken {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let copy = file.try_clone().map_err(|e| Error::from_io(path, e))?;
        let data = Limited::new(copy, MOST_BYTES);
        let header = FileHeader64::<Endianness>::parse(&data);
        let header = header.map_err(|_| broken("no ELF file of a 64-bit machine"))?;
        let endian = header
            .endian()
            .map_err(|_| broken("its byte order is not known"))?;
        if header.e_type(endian) != object::elf::ET_CORE {
            return Err(broken("an ELF file, but no core"));
        }
        let parts = header.program_headers(endian, &data);
        let parts = parts.map_err(|_| broken("its table of parts is cut"))?;
        let (mut loads, mut files) = (Vec::new(), Vec::new());
        for part in parts.iter().take(MOST) {
            let (start, bytes) = (part.p_vaddr(endian), part.p_filesz(endian));
            if part.p_type(endian) == PT_LOAD && bytes > 0 {
                loads.push(Load {
                    start,
                    end: start.saturating_add(bytes),
                    offset: part.p_offset(endian),
                });
            }
            if part.p_type(endian) == PT_NOTE
                && let Ok(Some(mut notes)) = part.notes(endian, &data)
            {
                while let Ok(Some(note)) = notes.next() {
                    if note.n_type(endian) == NT_FILE {
                        files = mapped_files(note.desc());
                    }
                }
            }
        }
        loads.sort_unstable_by_key(|of| of.start);
        Ok((Self { file, loads }, files))
    }

    /// The segments in it.
    fn segments(&self) -> impl Iterator<Item = Result<Segment, Refusal>> {
        let begins = |of: &&Load| {
            let mut start = [0; 8];
            self.get(of.start, &mut start).is_ok() && start == format::MAGIC
        };
        self.loads.iter().filter(begins).map(|of| {
            let mut bytes = vec![0; format::BYTES];
            self.get(of.start, &mut bytes)?;
            Segment::parse(&bytes)
        })
    }
}

impl Memory for CoreMemory {
    fn read(&self, parts: &mut [Part<'_>]) {
        for part in parts {
            while part.got < part.into.len() {
                let at = part.at.wrapping_add(part.got as u64);
                let after = self.loads.partition_point(|of| of.start <= at);
                let load = after.checked_sub(1).and_then(|n| self.loads.get(n));
                let Some(load) = load.filter(|of| at < of.end) else {
                    break;
                };
                let Some(rest) = part.into.get_mut(part.got..) else {
                    break;
                };
                let most = usize::try_from(load.end - at).unwrap_or(usize::MAX);
                let most = most.min(rest.len());
                let offset = load.offset.saturating_add(at - load.start);
                match rest
                    .get_mut(..most)
                    .map(|into| self.file.read_at(into, offset))
                {
                    Some(Ok(got)) if got > 0 => part.got += got,
                    _ => break,
                }
            }
        }
    }

    fn is_live(&self) -> bool {
        false
    }
}

/// The list of files in the note: their number, the size of a page, for each start, end and
/// offset in pages; then the paths, each with a zero behind it.
fn mapped_files(desc: &[u8]) -> Vec<Mapping> {
    let word = |n: usize| {
        let bytes = n.checked_mul(8).and_then(|at| desc.get(at..at + 8));
        bytes
            .and_then(|of| of.try_into().ok())
            .map(u64::from_ne_bytes)
    };
    let (Some(n), Some(page)) = (word(0), word(1)) else {
        return Vec::new();
    };
    let n = usize::try_from(n).unwrap_or(MOST).min(MOST);
    let names = desc.get(16 + n * 24..).unwrap_or_default();
    let names = names.split(|byte| *byte == 0);
    let mapping = |(n, name): (usize, &[u8])| {
        let field = |k| word(2 + n * 3 + k);
        let place = (field(0)?, field(1)?);
        let offset = field(2)?.checked_mul(page)?;
        Some(Mapping::new(place, offset, &String::from_utf8_lossy(name)))
    };
    (0..n).zip(names).filter_map(mapping).collect()
}

/// A core file of a process on slabcore's engine.
#[derive(Debug)]
pub struct CoreSource {
    path: PathBuf,
    segment: Segment,
    inspector: Inspector<CoreMemory>,
    symbols: Symbols,
}

impl CoreSource {
    /// `exe`: the program, where it is not at the path that the core tells.
    pub fn open(path: &Path, exe: Option<&Path>) -> Result<Self, Error> {
        let (memory, mut files) = CoreMemory::open(path)?;
        let broken = |why: String| Error::Broken {
            path: path.to_owned(),
            why,
        };
        let mut segments = memory.segments();
        let segment = segments.next().ok_or_else(|| Error::Unrecognised {
            path: path.to_owned(),
            why: "a core without a segment of slabcore's engine: another allocator's, or shared memory was left out (coredump_filter, bit 1, or 3 if the segment is in a file)".to_owned(),
        })?;
        drop(segments);
        let segment = segment.map_err(|why| broken(why.to_string()))?;
        if let Some(exe) = exe {
            let program = Path::new(&segment.identity.program);
            for file in files.iter_mut().filter(|of| of.path == program) {
                exe.clone_into(&mut file.path);
                file.deleted = false;
            }
        }
        let inspector = Inspector::new(memory, &segment);
        let inspector = inspector.map_err(|why| broken(why.to_string()))?;
        // A file makes nobody wait, and its user named it.
        inspector.limit(Limits {
            time: LONGEST,
            ..Limits::DEFAULT
        });
        Ok(Self {
            path: path.to_owned(),
            inspector,
            segment,
            symbols: Symbols::of(files),
        })
    }

    fn broken(&self, why: &Refusal) -> Error {
        Error::Broken {
            path: self.path.clone(),
            why: why.to_string(),
        }
    }

    /// The last moment that the process told of: ages are counted to it.
    fn end(&self) -> u64 {
        let event = self.segment.events.last().map_or(0, |of| of.time_ns);
        event.max(self.segment.published.pass_ns[1])
    }

    fn looks(&self) -> Result<Looks<'_, CoreMemory>, Refusal> {
        Looks::new(&self.inspector, &self.symbols, self.end())
    }
}

impl Source for CoreSource {
    fn describe(&self) -> String {
        let of = &self.segment.identity;
        format!(
            "{}: core of process {} ({})",
            self.path.display(),
            of.pid,
            of.program
        )
    }

    fn is_live(&self) -> bool {
        false
    }

    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, Error> {
        let engines = self.inspector.snapshot().map_err(|why| self.broken(&why))?;
        let origin = Origin {
            taken_at: segment::taken_at(&self.segment),
            ..Origin::new(OriginKind::Process, self.describe())
        };
        let mut warnings = Warnings::default();
        let says = "figures are of the moment when the core was made; ages are counted to the last sign of the process before it";
        warnings.push(Warning::new(WarningCode::Note, says));
        let engine = self.segment.identity.engine.clone();
        let mut snapshot = engine::snapshot(&engines, engine, origin, warnings);
        if demand.sites {
            let wanted = |name: &str| {
                let only = demand.only.as_ref();
                only.is_none_or(|only| only.iter().any(|of| of == name))
            };
            let seen = self.looks().and_then(|looks| sites::read(&looks, &wanted));
            let put = looks::put_sites(&mut snapshot, &engines, seen);
            put.map_err(|why| self.broken(&why))?;
        }
        Ok(snapshot)
    }
}

impl Engines for CoreSource {
    fn validate(&mut self) -> Result<Verdict, Error> {
        looks::validate(&self.inspector).map_err(|why| self.broken(&why))
    }

    fn dump(&mut self, wanted: &dyn Fn(&str) -> bool, demand: DumpDemand) -> Result<Dump, Error> {
        let dump = self.looks().and_then(|looks| looks.dump(wanted, demand));
        dump.map_err(|why| self.broken(&why))
    }

    fn ask(&mut self, _: Duration) -> Result<Option<Verdict>, Error> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_of_files_is_read_within_bounds() {
        let words =
            |list: &[u64]| -> Vec<u8> { list.iter().flat_map(|n| n.to_ne_bytes()).collect() };
        let mut note = words(&[2, 4096, 0x1000, 0x3000, 1, 0x5000, 0x6000, 0]);
        note.extend(b"/bin/a\0/lib/b.so\0");
        let files = mapped_files(&note);
        assert_eq!(files.len(), 2);
        assert_eq!((files[0].start, files[0].offset), (0x1000, 4096));
        assert_eq!(files[1].path.to_str(), Some("/lib/b.so"));
        assert_eq!(mapped_files(&words(&[u64::MAX, 4096])), []);
        assert_eq!(mapped_files(&words(&[1, u64::MAX, 1, 2, 3])), []);
        assert_eq!(mapped_files(b"short"), []);
    }
}
