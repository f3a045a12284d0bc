//! The forms in which slab data reaches a user from another machine.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::path::Path;

use collectors::Error;
use collectors::analysis::consistency;
use collectors::model::{Cache, Layer, Quantity, Snapshot, WarningCode};
use collectors::source::{Demand, Source as _, capture};
use support::raw::Raw;

fn stream(reader: impl BufRead) -> Snapshot {
    capture::from_stream(reader, Path::new("input")).unwrap()
}

fn open(path: &Path) -> Result<Snapshot, Error> {
    capture::open(path)?.sample(&Demand::everything())
}

fn value(cache: &Cache, q: Quantity) -> Option<u64> {
    cache.get(q).map(|f| f.value)
}

fn slabinfo() -> String {
    Raw::of("host-6.18").files["proc/slabinfo"].clone()
}

/// The names and slabs of a snapshot, to compare two ways to read one text.
fn rows(snapshot: &Snapshot) -> Vec<(String, Option<u64>, Option<u64>)> {
    let row = |c: &Cache| {
        (
            c.name.to_string(),
            value(c, Quantity::Objects),
            value(c, Quantity::Slabs),
        )
    };
    snapshot.caches.iter().map(row).collect()
}

fn expected() -> Vec<(String, Option<u64>, Option<u64>)> {
    let rows = Raw::of("host-6.18").rows();
    let row = |(name, [active, _, _, slabs]): (String, [u64; 4])| (name, Some(active), Some(slabs));
    rows.into_iter().map(row).collect()
}

#[test]
fn a_bare_slabinfo_is_read_from_any_packing() {
    let text = slabinfo();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slabinfo.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    gz.write_all(text.as_bytes()).unwrap();
    gz.finish().unwrap();
    let snapshot = open(&path).unwrap();
    assert_eq!(rows(&snapshot), expected());
    assert!(snapshot.system.page_size_assumed);
    assert!(snapshot.warnings.has(WarningCode::PageSizeAssumed));
    let zst = zstd::encode_all(text.as_bytes(), 3).unwrap();
    assert_eq!(rows(&stream(&zst[..])), expected());
}

/// Gives one byte at a time, as a slow pipe may.
struct Trickle<R>(R);

impl<R: Read> Read for Trickle<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = buf.len().min(1);
        self.0.read(&mut buf[..most])
    }
}

#[test]
fn a_stream_may_come_in_any_pieces() {
    let text = slabinfo();
    for size in [1, 7, 4096, 1 << 20] {
        let reader = BufReader::with_capacity(size, Trickle(text.as_bytes()));
        assert_eq!(rows(&stream(reader)), expected(), "{size}");
    }
    let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let reader = BufReader::with_capacity(64, Trickle(&packed[..]));
    assert_eq!(rows(&stream(reader)), expected());
}

#[test]
fn windows_line_ends_change_nothing() {
    let text = slabinfo().replace('\n', "\r\n");
    assert_eq!(rows(&stream(text.as_bytes())), expected());
}

#[test]
fn two_hundred_thousand_rows_are_read_as_they_stream_by() {
    let mut text = slabinfo();
    let first: String = text
        .lines()
        .take(2)
        .fold(String::new(), |s, l| s + l + "\n");
    text = first;
    for i in 0..200_000u32 {
        writeln!(
            text,
            "cache_{i:07}      {i} {i}    192   21    1 : tunables    0    0    0 : slabdata {i} {i}      0"
        )
        .unwrap();
    }
    let snapshot = stream(BufReader::new(text.as_bytes()));
    assert_eq!(snapshot.caches.len(), 200_000);
    let last = &snapshot.caches[199_999];
    assert_eq!(
        (&*last.name, value(last, Quantity::Slabs)),
        ("cache_0199999", Some(199_999))
    );
}

#[test]
fn a_supportconfig_keeps_the_row_that_a_header_would_have_hidden() {
    // supportconfig strips lines that start with # and blank lines, so the
    // header of the columns is gone and the first row stands in its place.
    let mut memory = "#==[ Command ]======================================#\n# /usr/bin/free -k\n              total        used\nMem:       16000000     8000000\n\n#==[ Configuration File ]===========================#\n# /proc/meminfo\nMemTotal:       16000000 kB\nSlab:             657684 kB\nSReclaimable:     600000 kB\n\n#==[ Configuration File ]===========================#\n# /proc/slabinfo\n".to_owned();
    for line in slabinfo().lines() {
        if !line.starts_with('#') && !line.trim().is_empty() {
            memory.push_str(line);
            memory.push('\n');
        }
    }
    memory.push_str(
        "\n#==[ Configuration File ]===========================#\n# /proc/vmstat\nnr_free_pages 100\n",
    );
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("scc_host_261130_1200");
    std::fs::create_dir(&below).unwrap();
    std::fs::write(below.join("memory.txt"), &memory).unwrap();
    for snapshot in [stream(memory.as_bytes()), open(dir.path()).unwrap()] {
        assert_eq!(snapshot.caches.len(), 235);
        assert_eq!(rows(&snapshot), expected());
        let slab = snapshot.system.meminfo.slab.unwrap();
        assert_eq!(slab.get(), 657_684 * 1024);
        assert!(!snapshot.warnings.has(WarningCode::BrokenRow));
    }
}

#[test]
fn a_sosreport_gets_its_merge_groups_from_the_listing() {
    let raw = Raw::of("host-6.18");
    let mut listing = "total 0\n".to_owned();
    for id in raw.directories() {
        writeln!(listing, "drwxr-xr-x. 2 root root 0 Oct  2 02:54 {id}").unwrap();
    }
    for (name, target) in &raw.links {
        let Some(name) = name.strip_prefix("sys/kernel/slab/") else {
            continue;
        };
        writeln!(
            listing,
            "lrwxrwxrwx. 1 root root 0 Oct  2 02:54 {name} -> {target}"
        )
        .unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("sosreport-host-2026-11-30-abcdefg");
    for (path, text) in [
        ("proc/slabinfo", slabinfo().as_str()),
        ("sos_commands/kernel/ls_-lt_.sys.kernel.slab", &listing),
        (
            "sos_commands/kernel/uname_-a",
            "Linux host 6.18.44 #1 SMP x86_64 GNU/Linux\n",
        ),
    ] {
        let path = top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let snapshot = open(dir.path()).unwrap();
    assert_eq!(rows(&snapshot), expected());
    assert_eq!(snapshot.system.kernel.as_deref(), Some("6.18.44"));
    // As the archive with the directories themselves has it.
    let whole = open(&support::raw::kernel("host-6.18")).unwrap();
    let groups = |s: &Snapshot| -> Vec<_> {
        let of = |c: &Cache| (c.name.clone(), c.sysfs_id.clone(), c.aliases.clone());
        s.caches.iter().map(of).collect()
    };
    let (ours, theirs) = (groups(&snapshot), groups(&whole));
    let differing: Vec<_> = ours.iter().zip(&theirs).filter(|(a, b)| a != b).collect();
    assert!(differing.is_empty(), "{differing:?}");
    assert!(
        snapshot
            .caches
            .iter()
            .all(|c| c.get(Quantity::Partial).is_none())
    );
}

#[test]
fn a_sosreport_without_slabinfo_gives_what_slabtop_printed() {
    let dir = tempfile::tempdir().unwrap();
    let memory = dir.path().join("sos_commands/memory");
    std::fs::create_dir_all(&memory).unwrap();
    let text = include_bytes!("data/text/slabtop-6.18.txt");
    std::fs::write(memory.join("slabtop_-o"), text).unwrap();
    let kernel = dir.path().join("sos_commands/kernel");
    std::fs::create_dir_all(&kernel).unwrap();
    let listing = "total 0\ndrwxr-xr-x 2 root root ? 0 Oct  2 02:54 dentry\ndrwxr-xr-x 2 root root ? 0 Oct  2 02:54 :0000128\n";
    std::fs::write(kernel.join("ls_-alZ_.sys.kernel.slab"), listing).unwrap();
    let snapshot = open(dir.path()).unwrap();
    assert!(snapshot.caches.len() > 5);
    let dentry = snapshot.named("dentry").next().unwrap();
    assert!(dentry.layers.contains(Layer::Slabtop));
    assert_eq!(dentry.sysfs_id.as_deref(), Some("dentry"));
    assert!(value(dentry, Quantity::Slabs).is_some());
}

#[test]
fn a_copied_slab_directory_needs_no_path_above_it() {
    let raw = Raw::of("deb6.1-cloud");
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in &raw.files {
        if let Some(rest) = path.strip_prefix("sys/kernel/slab/") {
            let path = dir.path().join(rest);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    for (path, target) in &raw.links {
        if let Some(rest) = path.strip_prefix("sys/kernel/slab/") {
            std::os::unix::fs::symlink(target, dir.path().join(rest)).unwrap();
        }
    }
    let snapshot = open(dir.path()).unwrap();
    assert_eq!(snapshot.caches.len(), 153);
    let dentry = snapshot.named("dentry").next().unwrap();
    assert_eq!(value(dentry, Quantity::Slabs), Some(722));
    let merged = snapshot.named("vm_area_struct").next().unwrap();
    assert_eq!(merged.sysfs_id.as_deref(), Some(":A-0000152"));
    assert!(snapshot.warnings.has(WarningCode::PageSizeAssumed));
}

#[test]
fn rows_of_control_groups_say_whose_they_are() {
    let text = include_bytes!("data/slabinfo/memcg-grep.txt");
    let snapshot = stream(&text[..]);
    assert!(!snapshot.caches.is_empty());
    for cache in &snapshot.caches {
        let group = cache.cgroup.as_deref().unwrap();
        assert!(group.contains("kubepods"), "{group}");
        assert!(cache.layers.contains(Layer::Memcg));
    }
}

#[test]
fn a_text_that_ends_inside_a_row_says_that_rows_may_be_missing() {
    let text = slabinfo();
    let snapshot = stream(&text.as_bytes()[..text.len() - 40]);
    assert_eq!(snapshot.caches.len(), 234);
    assert!(snapshot.warnings.has(WarningCode::Truncated));
    assert!(consistency::is_partial(&snapshot));
}

#[test]
fn one_capture_gives_the_same_snapshot_every_time() {
    let path = support::raw::kernel("custom7.3-lite-stats-numa2");
    assert_eq!(open(&path).unwrap(), open(&path).unwrap());
}

#[test]
fn the_last_sample_is_the_same_as_any_other() {
    let path = support::raw::kernel("host-6.18");
    let mut source = capture::open(&path).unwrap();
    let demand = Demand::everything();
    let sampled = source.sample(&demand).unwrap();
    assert_eq!(source.last_sample(&demand).unwrap(), sampled);
}

#[test]
fn the_caches_asked_for_are_all_that_is_given() {
    let path = support::raw::kernel("host-6.18");
    let mut source = capture::open(&path).unwrap();
    let mut demand = Demand::everything();
    demand.only = Some(vec!["dentry".into(), "kmalloc-64".into()]);
    let names: Vec<String> = source
        .sample(&demand)
        .unwrap()
        .caches
        .iter()
        .map(|c| c.name.to_string())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
