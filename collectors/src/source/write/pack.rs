//! Packs collected files into a tar archive and puts it in its place.
//!
//! The archive depends on the files and the time of the capture alone: members
//! are sorted, owned by root, and carry the capture's time. The file appears
//! whole or not at all.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::Collected;
use crate::error::Error;
use crate::source::tree::Node;

/// The directory all members are in, so that unpacking by hand is tidy.
const TOP: &str = "slabctl-capture";

/// Some thousand tiny files: level 9 is a third smaller than 3, in well under
/// a second.
const ZSTD_LEVEL: i32 = 9;

/// How the archive is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Not compressed.
    Tar,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

impl Form {
    /// Told from a file's name; `None` for a suffix that is not written.
    pub fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let suffixes = [
            (".tar", Self::Tar),
            (".tar.gz", Self::Gzip),
            (".tgz", Self::Gzip),
            (".tar.zst", Self::Zstd),
        ];
        suffixes
            .into_iter()
            .find_map(|(suffix, form)| name.ends_with(suffix).then_some(form))
    }
}

/// The archive's bytes.
pub fn pack(collected: &Collected, form: Form) -> io::Result<Vec<u8>> {
    match form {
        Form::Tar => archive(collected, Vec::new()),
        Form::Gzip => {
            let level = flate2::Compression::best();
            archive(collected, flate2::write::GzEncoder::new(Vec::new(), level))?.finish()
        }
        Form::Zstd => {
            let encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
            archive(collected, encoder)?.finish()
        }
    }
}

fn archive<W: Write>(collected: &Collected, out: W) -> io::Result<W> {
    let mtime = u64::try_from(collected.taken_at.as_second()).unwrap_or(0);
    let mut builder = tar::Builder::new(out);
    for (path, node) in collected.files.nodes() {
        let path = format!("{TOP}/{path}");
        let mut header = tar::Header::new_gnu();
        header.set_mtime(mtime);
        header.set_uid(0);
        header.set_gid(0);
        match node {
            Node::File(bytes) => {
                header.set_entry_type(tar::EntryType::Regular);
                header.set_mode(0o644);
                header.set_size(bytes.len() as u64);
                builder.append_data(&mut header, path, &bytes[..])?;
            }
            Node::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_mode(0o777);
                header.set_size(0);
                builder.append_link(&mut header, path, target)?;
            }
        }
    }
    builder.into_inner()
}

/// Writes `bytes` to `path`, mode 0600. Without `force` a file that is there is
/// left alone, even one that appears while this runs.
pub fn save(bytes: &[u8], path: &Path, force: bool) -> Result<(), Error> {
    put(bytes, path, force).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

/// Removes the unfinished file, whatever happens.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a rename it is gone already.
        let _ = rustix::fs::unlink(&self.0);
    }
}

fn put(bytes: &[u8], path: &Path, force: bool) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.part", std::process::id()));
    let temporary = path.with_file_name(hidden);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&temporary, flags, Mode::RUSR | Mode::WUSR)?;
    let temporary = Unfinished(temporary);
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    file.sync_all()?;
    if force {
        return Ok(rustix::fs::rename(&temporary.0, path)?);
    }
    match rustix::fs::renameat_with(CWD, &temporary.0, CWD, path, RenameFlags::NOREPLACE) {
        // Some file systems cannot do that; a second link is as strict.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            Ok(rustix::fs::link(&temporary.0, path)?)
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_there_stays_unless_forced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar");
        save(b"first", &path, false).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let Err(Error::Write { source, .. }) = save(b"second", &path, false) else {
            panic!("it was overwritten");
        };
        assert_eq!(source.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        save(b"second", &path, true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(names(dir.path()), ["a.tar"], "nothing else is left");
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.tar");
        std::fs::create_dir(&path).unwrap();
        assert!(save(b"x", &path, true).is_err());
        assert!(save(b"x", &path, false).is_err());
        assert!(save(b"x", &dir.path().join("none/c.tar"), false).is_err());
        assert_eq!(names(dir.path()), ["b.tar"]);
    }

    #[test]
    fn the_suffix_tells_the_form() {
        let form = |name: &str| Form::of_name(Path::new(name));
        assert_eq!(form("x/slab.tar.zst"), Some(Form::Zstd));
        assert_eq!(form("slab.tgz"), Some(Form::Gzip));
        assert_eq!(form("slab.tar.gz"), Some(Form::Gzip));
        assert_eq!(form("slab.tar"), Some(Form::Tar));
        assert_eq!(form("slab.zip"), None);
        assert_eq!(form("slab.tar.xz"), None);
        assert_eq!(form(""), None);
    }
}
