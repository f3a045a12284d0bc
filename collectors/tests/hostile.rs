//! Input that somebody made to hurt: no panic, no hang, no memory beyond the
//! caps, nothing read from outside of it, and what is good in it is kept.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use collectors::Error;
use collectors::model::{Snapshot, WarningCode};
use collectors::source::{Demand, Source as _, capture};
use proptest::prelude::*;
use support::raw::kernel;
use support::tree::{Fake, Shape};

/// Far more than any of these takes, even unoptimised on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn fake() -> Fake {
    Fake::new(Shape::default())
}

fn stream(bytes: &[u8]) -> Result<Snapshot, Error> {
    capture::from_stream(bytes, Path::new("input"))
}

fn open(path: &Path) -> Result<Snapshot, Error> {
    capture::open(path)?.sample(&Demand::everything())
}

/// A tar that is built header by header, since a builder refuses bad ones.
#[derive(Default)]
struct Tar(Vec<u8>);

impl Tar {
    fn header(&mut self, path: &str, kind: tar::EntryType, size: u64, target: &str) {
        let mut header = tar::Header::new_gnu();
        let gnu = header.as_gnu_mut().unwrap();
        gnu.name[..path.len()].copy_from_slice(path.as_bytes());
        gnu.linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
    }

    fn file(&mut self, path: &str, body: &[u8]) {
        self.header(path, tar::EntryType::Regular, body.len() as u64, "");
        self.0.extend_from_slice(body);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
    }

    fn tree(&mut self, fake: &Fake) {
        for (path, text) in &fake.files {
            self.file(path, text.as_bytes());
        }
        self.file("proc/slabinfo", fake.slabinfo().as_bytes());
    }

    fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&[0; 1024]);
        self.0
    }
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut out = liblzma::write::XzEncoder::new(Vec::new(), 0);
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn has(snapshot: &Snapshot, code: WarningCode, part: &str) -> bool {
    let mut list = snapshot.warnings.iter().filter(|w| w.code == code);
    list.any(|w| w.to_string().contains(part))
}

#[test]
fn members_that_point_outside_are_left_out_and_the_rest_is_read() {
    let mut tar = Tar::default();
    tar.file("../../../etc/proc/slabinfo", b"no");
    tar.file("x/../../proc/slabinfo", b"no");
    tar.header(
        "sys/kernel/slab/evil",
        tar::EntryType::Symlink,
        0,
        "../../../../etc",
    );
    tar.tree(&fake());
    let snapshot = stream(&tar.end()).unwrap();
    assert_eq!(snapshot.caches.len(), 20);
    assert!(has(
        &snapshot,
        WarningCode::StrayEntry,
        "../../../etc/proc/slabinfo"
    ));
    assert!(has(&snapshot, WarningCode::DanglingLink, "evil"));
}

#[test]
fn absolute_members_are_taken_as_relative() {
    let mut tar = Tar::default();
    tar.file("/proc/slabinfo", fake().slabinfo().as_bytes());
    assert_eq!(stream(&tar.end()).unwrap().caches.len(), 20);
}

#[test]
fn links_are_never_followed() {
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link] {
        let mut tar = Tar::default();
        tar.header("proc/slabinfo", kind, 0, "/etc/shadow");
        assert!(matches!(
            stream(&tar.end()),
            Err(Error::Unrecognised { .. } | Error::Unavailable { .. })
        ));
        // Links in a circle, as files and as caches.
        let mut tar = Tar::default();
        tar.header("proc/meminfo", kind, 0, "proc/vmstat");
        tar.header("proc/vmstat", kind, 0, "proc/meminfo");
        tar.header("sys/kernel/slab/a", kind, 0, "b");
        tar.header("sys/kernel/slab/b", kind, 0, "a");
        tar.tree(&fake());
        let snapshot = stream(&tar.end()).unwrap();
        assert_eq!(snapshot.caches.len(), 20);
        assert!(has(&snapshot, WarningCode::DanglingLink, "slab/a"));
    }
}

#[test]
fn a_size_that_is_a_lie_costs_the_member_only() {
    let mut tar = Tar::default();
    tar.tree(&fake());
    tar.header("proc/meminfo", tar::EntryType::Regular, 1 << 60, "");
    tar.0.extend_from_slice(b"MemTotal: 1 kB\n");
    let snapshot = stream(&tar.end()).unwrap();
    assert_eq!(snapshot.caches.len(), 20);
    assert!(has(&snapshot, WarningCode::LimitReached, "proc/meminfo"));
}

/// Zeros, or whatever byte, without holding them.
fn run(byte: u8, len: u64) -> impl Read {
    io::repeat(byte).take(len)
}

#[test]
fn a_long_name_without_end_is_refused() {
    // The name of a member is a member itself in GNU's format.
    for kind in [
        tar::EntryType::GNULongName,
        tar::EntryType::GNULongLink,
        tar::EntryType::XHeader,
    ] {
        let start = Instant::now();
        let mut tar = Tar::default();
        tar.tree(&fake());
        tar.header("././@LongLink", kind, 1 << 40, "");
        let head = tar.0;
        let read = std::cell::Cell::new(0u64);
        let tail = Counted {
            inner: run(b'x', 1 << 40),
            read: &read,
        };
        let input = BufReader::new(io::Cursor::new(head).chain(tail));
        let snapshot = capture::from_stream(input, Path::new("input")).unwrap();
        assert_eq!(snapshot.caches.len(), 20);
        assert!(read.get() < 64 << 20, "{kind:?}: {} bytes held", read.get());
        assert!(start.elapsed() < LONG);
    }
}

struct Counted<'a, R> {
    inner: R,
    read: &'a std::cell::Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.read.set(self.read.get() + n as u64);
        Ok(n)
    }
}

#[test]
fn a_gigabyte_of_zeros_is_refused_at_once() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let chunk = vec![0u8; 1 << 20];
    for _ in 0..64 {
        packer.write_all(&chunk).unwrap();
    }
    // A gzip file may have several members: the same one sixteen times.
    let bomb = packer.finish().unwrap().repeat(16);
    assert!(bomb.len() < 16 << 20);
    let start = Instant::now();
    assert!(matches!(stream(&bomb), Err(Error::Unrecognised { .. })));
    assert!(start.elapsed() < Duration::from_secs(5));
    // As a member: passed over as too large, and what follows is read.
    let mut head = Tar::default();
    head.header("proc/slabinfo", tar::EntryType::Regular, 1 << 30, "");
    let mut tail = Tar::default();
    tail.file("sys/kernel/slab/x/slabs", b"1\n");
    tail.file("sys/kernel/slab/x/slab_size", b"8\n");
    let mut whole = gz(&head.0);
    whole.extend_from_slice(&bomb);
    whole.extend_from_slice(&gz(&tail.end()));
    let snapshot = stream(&whole).unwrap();
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
    assert_eq!(snapshot.caches.len(), 1);
    assert!(has(&snapshot, WarningCode::LimitReached, "proc/slabinfo"));
}

#[test]
fn a_stream_that_breaks_off_keeps_what_came_before() {
    let mut tar = Tar::default();
    tar.file("proc/slabinfo", fake().slabinfo().as_bytes());
    // Does not compress, so that a cut of the stream is a cut in here.
    let mut random = support::tree::Lcg(1);
    let noise: Vec<u8> = (0..300_000)
        .map(|_| random.below(256).to_le_bytes()[0])
        .collect();
    tar.file("proc/vmstat", &noise);
    let plain = tar.end();
    for packed in [
        gz(&plain),
        xz(&plain),
        zstd::encode_all(&plain[..], 1).unwrap(),
    ] {
        let cut = &packed[..packed.len() / 2];
        let snapshot = stream(cut).unwrap();
        assert_eq!(snapshot.caches.len(), 20);
        assert!(snapshot.warnings.has(WarningCode::Truncated));
        let _ = stream(&packed[..20]).unwrap_err();
    }
}

#[test]
fn files_without_content_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let error = open(&empty).unwrap_err().to_string();
    assert!(error.contains("empty"), "{error}");
    let none = dir.path().join("none");
    std::fs::create_dir(&none).unwrap();
    assert!(matches!(open(&none), Err(Error::Unrecognised { .. })));
    assert!(open(&dir.path().join("nowhere")).is_err());
}

#[test]
fn a_sparse_file_of_five_gigabytes_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(5 << 30).unwrap();
    let start = Instant::now();
    assert!(matches!(open(&path), Err(Error::Unrecognised { .. })));
    // The same inside a directory, where a real one would be.
    std::fs::create_dir(dir.path().join("proc")).unwrap();
    std::fs::rename(&path, dir.path().join("proc/slabinfo")).unwrap();
    assert!(open(dir.path()).is_err());
    assert!(start.elapsed() < LONG);
}

#[test]
fn a_pipe_or_a_link_in_a_directory_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let proc = dir.path().join("proc");
    std::fs::create_dir(&proc).unwrap();
    let mode = rustix::fs::Mode::RWXU;
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, proc.join("slabinfo"), fifo, mode, 0).unwrap();
    assert!(open(dir.path()).is_err());
    std::fs::remove_file(proc.join("slabinfo")).unwrap();
    // A file that holds rows, but outside of the capture.
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(outside.path(), fake().slabinfo()).unwrap();
    for target in [outside.path().to_owned(), PathBuf::from("/etc/shadow")] {
        std::os::unix::fs::symlink(&target, proc.join("slabinfo")).unwrap();
        assert!(open(dir.path()).is_err(), "{}", target.display());
        std::fs::remove_file(proc.join("slabinfo")).unwrap();
    }
    // As one attribute among good ones.
    let good = tempfile::tempdir().unwrap();
    fake().write(good.path());
    let victim = good.path().join("sys/kernel/slab/cache_00003/align");
    std::fs::remove_file(&victim).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", &victim).unwrap();
    let snapshot = open(good.path()).unwrap();
    assert_eq!(snapshot.caches.len(), 20);
    let cache = snapshot.named("cache_00003").next().unwrap();
    assert_eq!(cache.get(collectors::model::Quantity::Align), None);
}

#[test]
fn a_directory_that_is_linked_into_itself_ends() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("proc")).unwrap();
    std::os::unix::fs::symlink(".", dir.path().join("sys")).unwrap();
    assert!(open(dir.path()).is_err());
}

#[test]
fn warnings_do_not_grow_with_the_input() {
    let mut text = fake().slabinfo();
    for _ in 0..50_000 {
        text.push_str("broken 1 2 3\n");
    }
    let snapshot = stream(text.as_bytes()).unwrap();
    assert_eq!(snapshot.caches.len(), 20);
    let kept = snapshot.warnings.iter().count();
    assert!(kept <= 1001, "{kept}");
    assert!(kept as u64 + snapshot.warnings.suppressed() >= 1000);
}

#[test]
fn a_listing_with_as_many_groups_as_links_is_read_at_once() {
    let mut text = String::new();
    for n in 0..60_000 {
        let _ = writeln!(text, "lrwxrwxrwx 1 root root 0 n{n} -> :A-{n:07}");
    }
    let start = Instant::now();
    let snapshot = stream(text.as_bytes()).unwrap();
    assert_eq!(snapshot.caches.len(), 60_000);
    assert!(start.elapsed() < LONG / 4, "{:?}", start.elapsed());
}

#[test]
fn an_archive_that_ends_before_its_slab_data_says_so() {
    let mut header = tar::Header::new_gnu();
    header.set_path("var/log/lastlog").unwrap();
    header.set_size(4096);
    header.set_cksum();
    let bytes = [header.as_bytes().as_slice(), &[0; 600]].concat();
    let error = stream(&bytes).unwrap_err().to_string();
    assert!(error.contains("archive breaks off"), "{error}");
}

#[test]
fn a_listing_that_is_cut_off_says_so() {
    let text = "lrwxrwxrwx 1 root root 0 cred -> :A-0000192\nlrwxrwxrwx 1 ro";
    let snapshot = stream(text.as_bytes()).unwrap();
    assert_eq!(snapshot.caches.len(), 1);
    assert!(has(&snapshot, WarningCode::Truncated, "line 2"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        let _ = stream(&bytes);
    }

    #[test]
    fn arbitrary_bytes_after_a_magic_number_never_panic(
        which in 0..3usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..2048),
    ) {
        let magic: [&[u8]; 3] = [
            &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
            &[0x28, 0xb5, 0x2f, 0xfd],
            &[0xfd, b'7', b'z', b'X', b'Z', 0],
        ];
        let _ = stream(&[magic[which], &bytes].concat());
    }

    #[test]
    fn a_mutated_tree_never_panics(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..60),
    ) {
        let mut tar = Tar::default();
        let shape = Shape { caches: 3, merged_every: 2, nodes: 2, cpus: 2, counters: true };
        tar.tree(&Fake::new(shape));
        let mut bytes = tar.end();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(snapshot) = stream(&bytes) {
            let _ = collectors::analysis::totals::Totals::of(&snapshot.caches, snapshot.system.page_size);
            prop_assert!(snapshot.warnings.iter().count() <= 2000);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_archive_of_a_real_kernel_never_panics(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        keep in 0.1..1.0f64,
    ) {
        let mut bytes = std::fs::read(kernel("custom6.1-SLAB-debug-numa2")).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
        bytes.truncate((bytes.len() as f64 * keep) as usize);
        let _ = stream(&bytes);
    }
}
