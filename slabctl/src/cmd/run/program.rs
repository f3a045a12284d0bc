//! Whether a program can have a library put before its own.
//!
//! The loader does it, so not for one that is linked statically or is of another machine; and
//! it ignores the wish for one that runs with more rights than who starts it: `AT_SECURE` in
//! the manual page ld.so(8), by a mode, or by capabilities of the file (capabilities(7)).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::fail::{Failure, Status};

/// Refuses a program for which it would do nothing. One that is not found is left to fail
/// when it is started.
pub(super) fn check(command: &[OsString]) -> Result<(), Failure> {
    let Some(path) = command.first().and_then(|name| find(name)) else {
        return Ok(());
    };
    let name = path.display();
    let why = match kind(&path, 0) {
        Kind::Static => {
            format!("{name} is linked statically: no library can be put before its own")
        }
        Kind::Privileged => {
            format!("{name} runs with more rights than you: the system ignores LD_PRELOAD for it")
        }
        Kind::Foreign => format!("{name} is of another machine than slabctl and its library"),
        Kind::Fine => return Ok(()),
    };
    Err(Failure::new(Status::Unavailable, format!("run: {why}")))
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Fine,
    Static,
    Privileged,
    Foreign,
}

/// As the system finds a program.
fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(name.into());
    }
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|dir| dir.join(name));
    places.find(|path| {
        path.metadata()
            .is_ok_and(|of| of.is_file() && of.mode() & 0o111 != 0)
    })
}

/// `depth`: scripts whose interpreter is a script end somewhere.
fn kind(path: &Path, depth: u32) -> Kind {
    let Ok(of) = path.metadata() else {
        return Kind::Fine;
    };
    let mut start = [0; 256];
    let Ok(mut file) = File::open(path) else {
        return Kind::Fine;
    };
    let got = file.read(&mut start).unwrap_or(0);
    let start = start.get(..got).unwrap_or_default();
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut words = line.split(u8::is_ascii_whitespace);
        let word = words.find(|word| !word.is_empty());
        let next = word.map(|word| Path::new(OsStr::from_bytes(word)));
        return next
            .filter(|_| depth < 4)
            .map_or(Kind::Fine, |next| kind(next, depth + 1));
    }
    // Of a script the system takes neither.
    if is_privileged(path, &of) {
        return Kind::Privileged;
    }
    if start.starts_with(b"\x7fELF") && start.get(4..20).is_some_and(|of| !is_of_here(of)) {
        return Kind::Foreign;
    }
    match has_loader(start, &mut file) {
        Some(false) => Kind::Static,
        _ => Kind::Fine,
    }
}

/// Whether a program would get rights that who starts it has not.
fn is_privileged(path: &Path, of: &std::fs::Metadata) -> bool {
    let ignored = rustix::fs::statvfs(path)
        .is_ok_and(|of| of.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID));
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let other = |bit: u32, is: u32, own: u32| of.mode() & bit != 0 && is != own;
    // The bit of a group without that to execute is another thing: a lock on records.
    let set =
        other(0o4000, of.uid(), user) || (of.mode() & 0o010 != 0 && other(0o2000, of.gid(), group));
    let mut value = [0u8; 64];
    let capable =
        user != 0 && rustix::fs::getxattr(path, "security.capability", &mut value[..]).is_ok();
    !ignored && (set || capable)
}

/// Class, byte order and machine of an ELF header, from its fifth byte on.
fn is_of_here(header: &[u8]) -> bool {
    let machine = if cfg!(target_arch = "aarch64") {
        183
    } else {
        62
    };
    header.starts_with(&[2, 1]) && header.get(14..16) == Some(&[machine, 0])
}

/// Whether an ELF file names a loader; `None` for what is none, or is cut.
fn has_loader(start: &[u8], file: &mut File) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let part = start.get(at..at + bytes)?;
        Some(
            part.iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        )
    };
    // 64 bits, and the byte order of the machines that slabcore runs on.
    if start.get(..6) != Some(b"\x7fELF\x02\x01") {
        return None;
    }
    let (at, size, n) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut table = vec![0; usize::try_from(size * n).ok()?];
    file.read_exact(&mut table).ok()?;
    let mut entries = table.chunks(usize::try_from(size).ok().filter(|of| *of >= 4)?);
    Some(entries.any(|entry| entry.starts_with(&PT_INTERP.to_le_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_static_and_scripts_are_told_apart() {
        assert_eq!(kind(Path::new("/bin/sh"), 0), Kind::Fine);
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        std::fs::write(&script, "#! /bin/sh -e\ntrue\n").unwrap();
        assert_eq!(kind(&script, 0), Kind::Fine);
        // A header of 64 bytes and one entry of the table, which is a load, or a loader.
        let mut elf = vec![0; 120];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18] = if cfg!(target_arch = "aarch64") {
            183
        } else {
            62
        };
        (elf[32], elf[54], elf[56], elf[64]) = (64, 56, 1, 1);
        std::fs::write(&script, &elf).unwrap();
        assert_eq!(kind(&script, 0), Kind::Static);
        elf[64] = 3;
        std::fs::write(&script, &elf).unwrap();
        assert_eq!(kind(&script, 0), Kind::Fine);
        elf[4] = 1;
        std::fs::write(&script, &elf).unwrap();
        assert_eq!(kind(&script, 0), Kind::Foreign, "32 bits");
        elf[4] = 2;
        elf[18] = 8;
        std::fs::write(&script, &elf).unwrap();
        assert_eq!(kind(&script, 0), Kind::Foreign, "another processor");
        elf[18] = if cfg!(target_arch = "aarch64") {
            183
        } else {
            62
        };
        elf.truncate(70);
        std::fs::write(&script, &elf).unwrap();
        assert_eq!(kind(&script, 0), Kind::Fine, "cut: it will fail by itself");
    }
}
