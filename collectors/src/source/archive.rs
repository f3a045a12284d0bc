//! Tar archives, read without writing anything to disk.
//!
//! Whatever comes in may be hostile: members are wanted by name, every size is
//! capped, paths are normalised, links are recorded and never followed.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use super::tree::{MAX_FILE, MemTree, clean_path, read_capped};
use crate::error::Error;
use crate::model::{Warning, WarningCode, Warnings};

/// Bytes that are kept of one archive.
const MAX_KEPT: u64 = 1 << 30;

/// Members that are looked at.
const MAX_MEMBERS: u64 = 4_000_000;

/// Bytes of headers, long names and extended headers before one member. A name
/// is a member itself in GNU's and pax' formats, and the tar library reads it
/// whole, whatever its size.
const MAX_HEADERS: u64 = 1 << 20;

/// Longest text of an error, in characters.
const MAX_REASON: usize = 200;

/// Longest path that is looked at (`PATH_MAX`).
const MAX_PATH: usize = 4096;

/// Whether the stream starts with a tar header: the magic word, or (for the
/// oldest format) a header checksum that fits.
pub fn is_tar(head: &[u8]) -> bool {
    let Some(block) = head.get(..512) else {
        return false;
    };
    if block[257..262] == *b"ustar" {
        return true;
    }
    let field = String::from_utf8_lossy(&block[148..156]);
    let Ok(stated) = u64::from_str_radix(field.trim_matches(['\0', ' ']), 8) else {
        return false;
    };
    let sum: u64 = block
        .iter()
        .enumerate()
        .map(|(i, b)| u64::from(if (148..156).contains(&i) { b' ' } else { *b }))
        .sum();
    stated == sum && block[0] != 0
}

/// Directories and files whose content matters, wherever they lie in the archive.
const WANTED: &[&str] = &[
    "sys/kernel/slab/",
    "sys/slab/",
    "sys/kernel/debug/slab/",
    "proc/slabinfo",
    "proc/meminfo",
    "proc/vmstat",
    "proc/zoneinfo",
    "proc/buddyinfo",
    "proc/pressure/memory",
    "proc/stat",
    "proc/version",
    "proc/cmdline",
    "proc/uptime",
    "proc/config.gz",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/hostname",
    "sys/devices/system/cpu/online",
    "sys/devices/system/node/online",
    "sys/devices/system/node/has_memory",
    "etc/hostname",
    "boot/config-",
    "sos_commands/memory/slabtop",
    "sos_commands/kernel/ls_",
    "sos_commands/kernel/uname_-a",
    "sos_commands/date/",
    "memory.txt",
    "MANIFEST",
];

/// Names that matter at the top of a capture only.
const WANTED_AT_TOP: &[&str] = &["config", "config-", "date", "uname", "uname-r"];

fn is_wanted(path: &str) -> bool {
    let found = |mark: &str| {
        path.match_indices(mark).any(|(at, _)| {
            let starts = at == 0 || path.as_bytes()[at - 1] == b'/';
            let end = &path[at + mark.len()..];
            let open = mark.ends_with(['/', '-', '_', 'p']);
            starts && (open || end.is_empty())
        })
    };
    if WANTED.iter().any(|mark| found(mark)) {
        return true;
    }
    let depth = path.matches('/').count();
    let name = path.rsplit('/').next().unwrap_or(path);
    depth <= 1
        && WANTED_AT_TOP
            .iter()
            .any(|top| name == *top || (top.ends_with('-') && name.starts_with(top)))
}

/// Reads the wanted members of a tar stream into memory.
///
/// A stream that breaks off keeps what came before, with a warning; one that
/// is broken from the start is an error.
pub fn read_tar(reader: impl Read, path: &Path, warnings: &mut Warnings) -> Result<MemTree, Error> {
    let mut tree = MemTree::new(path);
    each_member(reader, path, warnings, |entry, warnings| {
        take_member(entry, &mut tree, warnings)
    })?;
    Ok(tree)
}

/// Gives the name and content of every regular file of a tar stream whose name
/// is `wanted`, as [`read_tar`] reads it. Nothing is kept.
pub fn read_members(
    reader: impl Read,
    path: &Path,
    warnings: &mut Warnings,
    wanted: fn(&str) -> bool,
    each: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> Result<(), Error> {
    each_member(reader, path, warnings, |entry, _| {
        let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let name = clean_path(&raw).filter(|name| name.len() <= MAX_PATH && wanted(name));
        if let Some(name) = name.filter(|_| entry.header().entry_type().is_file()) {
            each(&name, entry)?;
        }
        Ok(0)
    })
}

/// Walks a tar stream. `take` says how many bytes it keeps of a member.
fn each_member<R: Read>(
    reader: R,
    path: &Path,
    warnings: &mut Warnings,
    mut take: impl FnMut(&mut tar::Entry<'_, Metered<R>>, &mut Warnings) -> io::Result<u64>,
) -> Result<(), Error> {
    let left = Rc::new(Cell::new(MAX_HEADERS));
    let mut archive = tar::Archive::new(Metered {
        inner: reader,
        left: Rc::clone(&left),
    });
    archive.set_ignore_zeros(false);
    let broken = |why: String| Error::Broken {
        path: path.to_owned(),
        why,
    };
    let mut entries = archive.entries().map_err(|e| broken(reason(&e)))?;
    let (mut kept, mut members) = (0u64, 0u64);
    loop {
        left.set(MAX_HEADERS);
        let Some(entry) = entries.next() else {
            check_end(archive.into_inner(), warnings);
            break;
        };
        left.set(u64::MAX);
        members += 1;
        if members > MAX_MEMBERS || kept > MAX_KEPT {
            warnings.push(Warning::new(
                WarningCode::LimitReached,
                format!("archive is too large: stopped after {members} members"),
            ));
            break;
        }
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) if members == 1 => return Err(broken(reason(&error))),
            Err(error) => {
                warnings.push(Warning::new(
                    end_code(&error),
                    format!(
                        "archive breaks off after {} members: {}",
                        members - 1,
                        reason(&error)
                    ),
                ));
                break;
            }
        };
        // What is left of the member is read here, so that only headers remain
        // for the next step.
        let taken = take(&mut entry, warnings)
            .and_then(|bytes| io::copy(&mut entry, &mut io::sink()).map(|_| bytes));
        match taken {
            Ok(bytes) => kept += bytes,
            Err(error) => {
                warnings.push(Warning::new(
                    end_code(&error),
                    format!("archive breaks off inside a member: {}", reason(&error)),
                ));
                break;
            }
        }
    }
    Ok(())
}

/// Whether an archive ends here because of its damage or because of a limit.
fn end_code(error: &io::Error) -> WarningCode {
    if error.kind() == io::ErrorKind::FileTooLarge {
        WarningCode::LimitReached
    } else {
        WarningCode::Truncated
    }
}

/// What went wrong, short and in one line: the tar library quotes the archive.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(MAX_REASON).collect()
}

/// Reads on behind the end of the archive, where only padding may follow: damage
/// of a packed stream can look like that end, and shows in its checksum only.
fn check_end<R: Read>(mut rest: Metered<R>, warnings: &mut Warnings) {
    rest.left.set(MAX_HEADERS);
    if let Err(error) = io::copy(&mut rest, &mut io::sink()) {
        warnings.push(Warning::new(
            end_code(&error),
            format!(
                "archive is damaged behind its last member: {}",
                reason(&error)
            ),
        ));
    }
}

/// A reader that fails when more is read than was allowed for one step.
struct Metered<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("more than {MAX_HEADERS} bytes that belong to no member"),
            ));
        }
        let most = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut buf[..most])?;
        self.left.set(left - read as u64);
        Ok(read)
    }
}

fn take_member<R: Read>(
    entry: &mut tar::Entry<'_, R>,
    tree: &mut MemTree,
    warnings: &mut Warnings,
) -> io::Result<u64> {
    if entry.path_bytes().len() > MAX_PATH {
        return Ok(0);
    }
    let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let Some(name) = clean_path(&raw) else {
        if raw.split('/').any(|p| p == "..") {
            warnings.push(
                Warning::new(
                    WarningCode::StrayEntry,
                    "member outside the archive's own directory, passed over",
                )
                .in_file(raw),
            );
        }
        return Ok(0);
    };
    let kind = entry.header().entry_type();
    if !is_wanted(&name) {
        return Ok(0);
    }
    if kind.is_symlink() || kind.is_hard_link() {
        if let Some(target) = entry.link_name_bytes() {
            let target = &target[..target.len().min(MAX_PATH)];
            tree.insert_link(&name, &String::from_utf8_lossy(target));
            return Ok((name.len() + target.len()) as u64);
        }
        return Ok(0);
    }
    if !kind.is_file() && kind != tar::EntryType::Continuous && !kind.is_gnu_sparse() {
        return Ok(0);
    }
    if entry.size() > MAX_FILE {
        warnings.push(
            Warning::new(
                WarningCode::LimitReached,
                format!("member of {} bytes, left out", entry.size()),
            )
            .in_file(name),
        );
        return Ok(0);
    }
    let mut bytes = Vec::new();
    read_capped(entry, MAX_FILE, &mut bytes)?;
    let size = (name.len() + bytes.len()) as u64;
    tree.insert_file(&name, bytes);
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::packing::unpack;
    use crate::source::tree::{EntryKind, Tree as _};

    fn tar_of(build: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        build(&mut builder);
        builder.into_inner().unwrap()
    }

    fn add(builder: &mut tar::Builder<Vec<u8>>, path: &str, data: &[u8]) {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        // The builder refuses "..", a hostile archive does not.
        let name = &mut header.as_gnu_mut().unwrap().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        builder.append(&header, data).unwrap();
    }

    fn read(bytes: &[u8]) -> (MemTree, Warnings) {
        let mut warnings = Warnings::default();
        let tree = read_tar(bytes, Path::new("x.tar"), &mut warnings).unwrap();
        (tree, warnings)
    }

    #[test]
    fn wanted_members_are_kept_and_the_rest_is_not() {
        let bytes = tar_of(|b| {
            add(b, "sosreport-x/proc/slabinfo", b"slabinfo - version: 2.1\n");
            add(b, "sosreport-x/var/log/messages", b"secret");
            add(b, "./sys/kernel/slab/dentry/slabs", b"3\n");
            add(b, "sosreport-x/notproc/slabinfo.txt", b"no");
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            b.append_link(&mut header, "sys/kernel/slab/cred", ":A-0000192")
                .unwrap();
        });
        assert!(is_tar(&bytes));
        let (tree, warnings) = read(&bytes);
        assert_eq!(
            tree.paths().collect::<Vec<_>>(),
            [
                "sosreport-x/proc/slabinfo",
                "sys/kernel/slab/cred",
                "sys/kernel/slab/dentry/slabs"
            ]
        );
        assert!(warnings.is_empty());
        let slab = tree.list("sys/kernel/slab").unwrap();
        assert_eq!(slab[0].kind, EntryKind::Link(":A-0000192".into()));
    }

    #[test]
    fn members_outside_the_archive_are_named_and_left_out() {
        let bytes = tar_of(|b| {
            add(b, "../../proc/slabinfo", b"x");
            add(b, "/proc/slabinfo", b"y");
        });
        let (tree, warnings) = read(&bytes);
        assert_eq!(tree.read("proc/slabinfo").unwrap(), b"y");
        assert!(warnings.has(WarningCode::StrayEntry));
    }

    #[test]
    fn a_cut_archive_keeps_what_came_before() {
        let bytes = tar_of(|b| {
            add(b, "proc/slabinfo", &[b'x'; 2000]);
            add(b, "proc/meminfo", &[b'y'; 2000]);
        });
        let (tree, warnings) = read(&bytes[..4000]);
        assert_eq!(tree.read("proc/slabinfo").unwrap().len(), 2000);
        assert!(warnings.has(WarningCode::Truncated));
    }

    #[test]
    fn a_member_that_claims_to_be_huge_is_left_out() {
        let bytes = tar_of(|b| {
            let mut header = tar::Header::new_gnu();
            header.set_path("proc/slabinfo").unwrap();
            header.set_size(1 << 40);
            header.set_cksum();
            b.get_mut().extend_from_slice(header.as_bytes());
        });
        let (tree, warnings) = read(&bytes);
        assert_eq!(tree.paths().count(), 0);
        assert!(warnings.has(WarningCode::LimitReached));
    }

    /// A header of a 64 GiB member, then a gigabyte of zeros: small streams one
    /// after the other, so that making it costs nothing.
    fn bomb(pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let slabinfo = tar_of(|b| add(b, "proc/slabinfo", b"slabinfo - version: 2.1\n"));
        let mut header = tar::Header::new_gnu();
        header.set_path("var/log/lastlog").unwrap();
        header.set_size(64 << 30);
        header.set_cksum();
        let mut out = pack(&[&slabinfo[..1024], header.as_bytes()].concat());
        out.extend(pack(&vec![0; 16 << 20]).repeat(64));
        out
    }

    #[test]
    fn a_bomb_ends_soon_and_what_came_before_it_stays() {
        use std::io::Write as _;
        let xz = bomb(|bytes| {
            let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
            xz.write_all(bytes).unwrap();
            xz.finish().unwrap()
        });
        let zstd = bomb(|bytes| zstd::encode_all(bytes, 1).unwrap());
        for bytes in [xz, zstd] {
            let mut warnings = Warnings::default();
            let stream = unpack(&bytes[..]).unwrap();
            let tree = read_tar(stream, Path::new("x.tar"), &mut warnings).unwrap();
            assert!(tree.read("proc/slabinfo").is_ok());
            let warning = warnings.iter().next().unwrap();
            assert_eq!(warning.code, WarningCode::LimitReached);
            assert!(warning.message.contains("2000 times"), "{warning:?}");
        }
    }

    #[test]
    fn damage_that_looks_like_the_end_is_told() {
        use std::io::Write as _;
        let mut bytes = tar_of(|b| add(b, "proc/slabinfo", b"slabinfo - version: 2.1\n"));
        assert!(read(&bytes).1.is_empty());
        bytes.resize(10_240, 0);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&bytes).unwrap();
        let mut packed = gz.finish().unwrap();
        let of = |packed: &[u8]| {
            let mut warnings = Warnings::default();
            let tree = read_tar(unpack(packed).unwrap(), Path::new("x"), &mut warnings).unwrap();
            assert_eq!(tree.paths().count(), 1);
            warnings
        };
        assert!(of(&packed).is_empty());
        // Another checksum than that of the content.
        let at = packed.len() - 8;
        packed[at] ^= 1;
        assert!(of(&packed).has(WarningCode::Truncated));
    }

    #[test]
    fn what_the_library_quotes_stays_in_one_line() {
        let mut bytes = tar_of(|b| {
            add(b, "proc/slabinfo", b"x");
            add(b, "line\nbreak", b"y");
        });
        // The second header has no number as its checksum.
        bytes[1024 + 148..1024 + 156].copy_from_slice(b"zz\nzz\nzz");
        let (_, warnings) = read(&bytes);
        assert!(warnings.has(WarningCode::Truncated));
        for warning in &warnings {
            assert!(!warning.message.contains('\n'), "{warning:?}");
        }
    }
}
