//! The kernel logs in what somebody sent: a text, packed or not, an archive, or
//! a directory.
//!
//! Purpose: gives each log as a stream, however long it is. Which files of an
//! archive are logs is told by their names: a sosreport has some thousands of
//! others. Nothing is kept in memory and nothing written. Source of truth for
//! the names: sos, supportconfig, syslog, journald and this project's captures.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use super::tree::{DirTree, EntryKind, Tree as _};
use super::{archive, packing};
use crate::error::Error;
use crate::model::{Warning, WarningCode, Warnings};

/// Bytes looked at to tell what a file is.
const HEAD: usize = 64 << 10;

/// Directories of a saved tree that have logs in them.
const PLACES: &[&str] = &["", "var/log", "sos_commands/kernel", "sos_commands/logs"];

/// What takes a log: its name inside the source, and its text.
pub type Each<'a> = dyn FnMut(&str, &mut dyn Read) -> io::Result<()> + 'a;

/// Gives every log that `path` names (`-`: standard input) to `each`. A single
/// text has the path as its name, whatever it is called.
pub fn read(path: &Path, each: &mut Each<'_>) -> Result<Warnings, Error> {
    if path.as_os_str() == "-" {
        return stream(io::stdin().lock(), Path::new("standard input"), each);
    }
    let meta = std::fs::metadata(path).map_err(|e| Error::from_io(path, e))?;
    if meta.is_dir() {
        return directory(path, each);
    }
    let file = File::open(path).map_err(|e| Error::from_io(path, e))?;
    stream(BufReader::with_capacity(HEAD, file), path, each)
}

/// The same for a stream.
pub fn stream(reader: impl BufRead, path: &Path, each: &mut Each<'_>) -> Result<Warnings, Error> {
    let mut warnings = Warnings::default();
    let broken = |e: io::Error| Error::Broken {
        path: path.to_owned(),
        why: e.to_string(),
    };
    let mut stream = packing::unpack(reader).map_err(broken)?;
    let mut head = Vec::with_capacity(HEAD);
    let first = stream.by_ref().take(HEAD as u64).read_to_end(&mut head);
    first.map_err(broken)?;
    let is_tar = archive::is_tar(&head);
    if !is_tar {
        refuse_binary(&head, path)?;
    }
    let mut whole = Cursor::new(head).chain(stream);
    if !is_tar {
        each(&path.display().to_string(), &mut whole).map_err(broken)?;
        return Ok(warnings);
    }
    let mut found = false;
    archive::read_members(whole, path, &mut warnings, is_log, &mut |name, member| {
        found = true;
        // A member may be packed once more: messages-20261130.xz.
        each(name, &mut packing::unpack(BufReader::new(member))?)
    })?;
    if found { Ok(warnings) } else { Err(none(path)) }
}

fn directory(path: &Path, each: &mut Each<'_>) -> Result<Warnings, Error> {
    let mut warnings = Warnings::default();
    let tree = DirTree::confined(path).map_err(|e| Error::from_io(path, e))?;
    let (mut found, mut refused) = (false, None);
    for place in PLACES {
        let Ok(entries) = tree.list(place) else {
            continue;
        };
        for entry in entries {
            let name = match *place {
                "" => entry.name,
                place => format!("{place}/{}", entry.name),
            };
            if entry.kind == EntryKind::Directory || !is_log(&name) {
                continue;
            }
            let read = tree.open_file(&name).and_then(|fd| {
                let mut text = packing::unpack(BufReader::with_capacity(HEAD, File::from(fd)))?;
                found = true;
                each(&name, &mut text)
            });
            if let Err(error) = read {
                let warning = Warning::new(WarningCode::Unreadable, error.to_string());
                warnings.push(warning.in_file(&*name));
                refused.get_or_insert_with(|| Error::from_io(path.join(name), error));
            }
        }
    }
    match refused {
        _ if found => Ok(warnings),
        // Logs that nobody could read are not a directory without reports.
        Some(error) => Err(error),
        None => Err(none(path)),
    }
}

fn none(path: &Path) -> Error {
    Error::Unrecognised {
        path: path.to_owned(),
        why: "no kernel log in it: looked for dmesg, messages, kern.log, syslog, journalctl, console.log, boot.txt".to_owned(),
    }
}

/// Whether a file of an archive is a log, by its name.
pub fn is_log(path: &str) -> bool {
    const STARTS: &[&str] = &[
        "dmesg",
        "messages",
        "kern.log",
        "kernel.log",
        "syslog",
        "journalctl",
        "console",
        "kmsg",
        "boot.log",
        "boot.txt",
        "vmcore-dmesg",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    let start = STARTS.iter().find(|start| name.starts_with(*start));
    // `messages-20261130.xz` is one, `console-setup` and `syslog-ng.conf` are not.
    start.is_some_and(|start| {
        let rest = &name[start.len()..];
        let plain = rest.is_empty() || rest.starts_with(['.', '_']);
        let dated = rest.starts_with('-') && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        let options = *start == "dmesg" || *start == "journalctl";
        (plain || dated || options) && Path::new(rest).extension() != Some("conf".as_ref())
    })
}

/// A file of zeros, machine code or records is no text.
fn refuse_binary(head: &[u8], path: &Path) -> Result<(), Error> {
    let zeros = head.iter().fold(0usize, |n, b| n + usize::from(*b == 0));
    let why = if head.starts_with(b"LPKSHHRH") {
        "a journal file: journalctl -k --file FILE prints its text"
    } else if zeros > head.len() / 100 {
        "binary data that is no archive this program reads (tar, gzip, zstd, xz)"
    } else {
        return Ok(());
    };
    Err(Error::Unrecognised {
        path: path.to_owned(),
        why: why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Result<Vec<(String, String)>, Error> {
        let mut list = Vec::new();
        read(path, &mut |name, text| {
            let mut body = String::new();
            text.read_to_string(&mut body)?;
            list.push((name.to_owned(), body));
            Ok(())
        })?;
        Ok(list)
    }

    #[test]
    fn logs_of_a_directory_and_an_archive_are_found_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, body: &[u8]| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, body).unwrap();
        };
        put("dmesg", b"one");
        put("proc/slabinfo", b"no");
        put("var/log/messages-20261130", b"two");
        put("var/log/syslog-ng.conf", b"no");
        put("sos_commands/kernel/dmesg_-T", b"three");
        let found = names(dir.path()).unwrap();
        let bodies: Vec<_> = found.iter().map(|(_, body)| &**body).collect();
        assert_eq!(bodies, ["one", "two", "three"]);

        let mut builder = tar::Builder::new(Vec::new());
        builder.append_dir_all("sosreport-x", dir.path()).unwrap();
        let packed = dir.path().join("x.tar");
        std::fs::write(&packed, builder.into_inner().unwrap()).unwrap();
        let mut bodies: Vec<_> = names(&packed)
            .unwrap()
            .into_iter()
            .map(|(_, b)| b)
            .collect();
        bodies.sort();
        assert_eq!(bodies, ["one", "three", "two"]);
    }

    #[test]
    fn a_text_is_a_log_whatever_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mail.eml");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(names(&path).unwrap()[0].1, "text");
        std::fs::write(&path, "").unwrap();
        assert_eq!(
            names(&path).unwrap().len(),
            1,
            "an empty log has no reports"
        );
    }

    #[test]
    fn what_is_no_log_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        for (body, word) in [(&b"LPKSHHRH\0\0"[..], "journalctl"), (&[0; 100], "binary")] {
            std::fs::write(&path, body).unwrap();
            assert!(names(&path).unwrap_err().to_string().contains(word));
        }
        let empty = tempfile::tempdir().unwrap();
        assert!(names(empty.path()).is_err());
        assert!(names(Path::new("/nowhere")).is_err());
    }
}
