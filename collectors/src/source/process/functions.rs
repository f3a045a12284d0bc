//! The functions in the symbol tables of an ELF file, and their names.
//!
//! Tables are read in pieces, and of each function its address and the place of its name are
//! kept; names are read when they are asked for. So what is held does not depend on what the
//! file says that it has. What it does not do: read debug information.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use object::Endianness;
use object::elf::{
    FileHeader64, PT_LOAD, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, SectionHeader64, Sym64,
};
use object::pod;
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _};

use super::limited::Limited;

/// Bytes of headers and lists of parts that are read of a file.
const HEADERS: u64 = 8 << 20;
/// Symbols that are read in one step.
const AT_ONCE: usize = 4096;
/// Bytes of a name, as the file has it and as it is told, that are used.
const MOST_NAME: usize = 512;

/// How many symbols of all files may still be looked at, and functions kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub symbols: usize,
    pub functions: usize,
}

impl Room {
    /// Those of several programs with millions of symbols; 24 bytes a function are held.
    pub const MOST: Self = Self {
        symbols: 8 << 20,
        functions: 1 << 20,
    };
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    address: u64,
    /// Where in the file its name is.
    name: u64,
    bytes: u32,
}

/// The functions of one file.
#[derive(Debug)]
pub(super) struct Functions {
    file: File,
    /// Offset in the file, its bytes, and the address there.
    segments: Vec<(u64, u64, u64)>,
    /// In order of address.
    list: Vec<Function>,
}

impl Functions {
    /// Reads the tables; `None` if it is no ELF file of a 64-bit machine.
    pub fn read(file: File, room: &mut Room) -> Option<Self> {
        let data = Limited::new(file.try_clone().ok()?, HEADERS);
        let header = FileHeader64::<Endianness>::parse(&data).ok()?;
        let endian = header.endian().ok()?;
        let parts = header.program_headers(endian, &data).ok()?.iter();
        let loads = parts.filter(|of| of.p_type(endian) == PT_LOAD);
        let segments =
            loads.map(|of| (of.p_offset(endian), of.p_filesz(endian), of.p_vaddr(endian)));
        let mut this = Self {
            file,
            segments: segments.collect(),
            list: Vec::new(),
        };
        let sections = header.section_headers(endian, &data).unwrap_or_default();
        for section in sections {
            if [SHT_SYMTAB, SHT_DYNSYM].contains(&section.sh_type(endian)) {
                let names = sections.get(section.sh_link(endian) as usize);
                names.and_then(|names| this.table(endian, section, names, room));
            }
        }
        this.list.sort_unstable();
        this.list.dedup();
        Some(this)
    }

    /// Reads one table; `None` where it is cut.
    fn table(
        &mut self,
        endian: Endianness,
        table: &SectionHeader64<Endianness>,
        names: &SectionHeader64<Endianness>,
        room: &mut Room,
    ) -> Option<()> {
        let each = size_of::<Sym64<Endianness>>();
        let all = usize::try_from(table.sh_size(endian)).ok()? / each;
        let mut left = all.min(room.symbols);
        room.symbols -= left;
        let mut at = table.sh_offset(endian);
        let mut bytes = vec![0; each * left.min(AT_ONCE)];
        while left > 0 {
            let some = left.min(AT_ONCE);
            let piece = bytes.get_mut(..some * each)?;
            self.file.read_exact_at(piece, at).ok()?;
            let (symbols, _) = pod::slice_from_bytes::<Sym64<Endianness>>(piece, some).ok()?;
            for symbol in symbols {
                let is_code = [STT_FUNC, STT_GNU_IFUNC].contains(&symbol.st_type());
                let name = u64::from(symbol.st_name(endian));
                let has_name = name != 0 && name < names.sh_size(endian);
                if !is_code || symbol.is_undefined(endian) || !has_name {
                    continue;
                }
                room.functions = room.functions.checked_sub(1)?;
                self.list.push(Function {
                    address: symbol.st_value(endian),
                    name: names.sh_offset(endian).checked_add(name)?,
                    bytes: u32::try_from(symbol.st_size(endian)).unwrap_or(u32::MAX),
                });
            }
            left -= some;
            at = at.checked_add((some * each) as u64)?;
        }
        Some(())
    }

    /// The address that an offset in the file has there.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let (start, _, address) = segments
            .find(|(start, bytes, _)| offset.checked_sub(*start).is_some_and(|n| n < *bytes))?;
        (offset - start).checked_add(*address)
    }

    /// The function that an address is in, and where it starts.
    pub fn function(&self, address: u64) -> Option<(u64, String)> {
        let after = self.list.partition_point(|of| of.address <= address);
        let before = self.list.get(..after)?;
        // Several names may be at one place, and an assembler's symbol may have no size.
        let near = before.iter().rev().take(8);
        let inside = near.filter(|of| address - of.address < u64::from(of.bytes.max(1)));
        let mut named = inside.filter_map(|of| Some((of.address, self.name(of.name)?)));
        named.next()
    }

    fn name(&self, at: u64) -> Option<String> {
        let mut bytes = [0; MOST_NAME];
        let got = self.file.read_at(&mut bytes, at).ok()?;
        let bytes = bytes.get(..got)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(got);
        let name = std::str::from_utf8(bytes.get(..end)?).ok()?;
        let mut told = Short(String::new());
        // A name that becomes too long is cut.
        let _ = write!(told, "{:#}", rustc_demangle::demangle(name));
        Some(told.0).filter(|name| !name.is_empty())
    }
}

/// The beginning of a text: a short name may stand for a very long one.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MOST_NAME.saturating_sub(self.0.len());
        let fits = text.char_indices().map(|(at, of)| at + of.len_utf8());
        let end = fits.take_while(|end| *end <= room).last().unwrap_or(0);
        self.0.push_str(text.get(..end).unwrap_or_default());
        if end == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> (Vec<u8>, Functions) {
        let path = std::env::current_exe().unwrap();
        let functions = Functions::read(File::open(&path).unwrap(), &mut { Room::MOST });
        (std::fs::read(path).unwrap(), functions.unwrap())
    }

    #[test]
    fn a_program_has_functions_with_names() {
        let (_, own) = own();
        assert!(own.list.len() > 1000, "{}", own.list.len());
        let named = own.list.iter().take(1000);
        let named = named.filter_map(|of| own.function(of.address)).count();
        assert!(named > 900, "{named}");
    }

    #[test]
    fn tables_that_are_said_to_be_huge_end_with_the_file_and_the_room() {
        let (mut bytes, own) = own();
        let data = Limited::new(own.file.try_clone().unwrap(), HEADERS);
        let header = FileHeader64::<Endianness>::parse(&data).unwrap();
        let endian = header.endian().unwrap();
        let at = usize::try_from(header.e_shoff(endian)).unwrap();
        let sections = header.section_headers(endian, &data).unwrap();
        for (n, section) in sections.iter().enumerate() {
            if [SHT_SYMTAB, SHT_DYNSYM].contains(&section.sh_type(endian)) {
                let size = at + n * size_of::<SectionHeader64<Endianness>>() + 32;
                bytes[size..size + 8].copy_from_slice(&(1u64 << 40).to_ne_bytes());
            }
        }
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        // Ends in the middle of a table, and after a terabyte of nothing.
        for len in [bytes.len() as u64, 1 << 42] {
            file.set_len(len).unwrap();
            let mut room = Room {
                symbols: 100_000,
                functions: 500,
            };
            let read = Functions::read(file.try_clone().unwrap(), &mut room).unwrap();
            assert!(read.list.len() <= 500 && room.symbols == 0, "{room:?}");
        }
    }

    #[test]
    fn a_name_that_grows_without_end_is_cut() {
        let mut short = Short(String::new());
        assert!(write!(short, "{}", "ä".repeat(1000)).is_err());
        assert_eq!(short.0.len(), MOST_NAME);
    }
}
