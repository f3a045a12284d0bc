//! Captures: what is collected, that it reads back the same, and that its
//! figures are of one moment.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io;
use std::path::Path;

use collectors::Error;
use collectors::model::{Quantity, Snapshot};
use collectors::source::kernel::KernelSource;
use collectors::source::tree::{DirTree, Entry, MemTree, Tree};
use collectors::source::write::{self, Collected, Form, Options};
use collectors::source::{Demand, Source as _, capture};

fn options() -> Options {
    Options {
        traces: false,
        walk_limit: Demand::WALK_LIMIT,
        page_size: Some(65536),
        program: "slabctl test".into(),
    }
}

const SLABINFO: &str = "slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
dentry               900   1050    192   21    1 : tunables    0    0    0 : slabdata     50     50      0
cred_jar              40     42    192   21    1 : tunables    0    0    0 : slabdata      2      2      0
";

/// Two caches, one of them merged, and the machine around them.
fn machine() -> MemTree {
    let mut tree = MemTree::new("machine");
    let mut add = |path: &str, text: &str| tree.insert_file(path, text.as_bytes().to_vec());
    for (dir, slabs, total, objects, partial) in [
        ("dentry", "50", "1050", "900", "20000"),
        (":A-0000192", "2", "42", "40", "1"),
    ] {
        let mut file = |name: &str, text: &str| {
            add(
                &format!("sys/kernel/slab/{dir}/{name}"),
                &format!("{text}\n"),
            );
        };
        file("slab_size", "192");
        file("object_size", "192");
        file("objs_per_slab", "21");
        file("order", "0");
        file("slabs", &format!("{slabs} N0={slabs}"));
        file("total_objects", &format!("{total} N0={total}"));
        file("objects", &format!("{objects} N0={objects}"));
        file("objects_partial", "3 N0=3");
        file("partial", &format!("{partial} N0={partial}"));
        file("ctor", "");
        file("reclaim_account", "1");
        file("shrink", "");
        file("validate", "");
        file("alloc_calls", "7 do_something age=1 pid=1");
    }
    add(
        "sys/kernel/debug/slab/dentry/alloc_traces",
        "5 d_alloc+0x1/0x2 age=1 pid=1 cpus=0\n",
    );
    add("sys/kernel/debug/slab/dentry/free_traces", "");
    add("proc/slabinfo", SLABINFO);
    add("proc/meminfo", "MemTotal: 1000 kB\nSlab: 100 kB\n");
    add("proc/sys/kernel/osrelease", "6.6.1-custom.aarch64\n");
    add("proc/sys/kernel/hostname", "a-host\n");
    add("proc/uptime", "1.0 2.0\n");
    add("sys/devices/system/cpu/online", "0-3\n");
    add("sys/devices/system/node/online", "0\n");
    add(
        "boot/config-6.6.1-custom.aarch64",
        "CONFIG_SLUB=y\n# CONFIG_SLUB_STATS is not set\nCONFIG_SECRET_THING=y\nCONFIG_ARM64_64K_PAGES=y\n",
    );
    add("etc/shadow", "secret");
    tree.insert_link("sys/kernel/slab/cred_jar", ":A-0000192");
    tree.insert_link("sys/kernel/slab/aio_kiocb", ":A-0000192");
    tree
}

fn text(tree: &dyn Tree, path: &str) -> String {
    tree.read_text(path)
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn in_memory(collected: &Collected) -> Snapshot {
    let date = text(&collected.files, "date").trim().parse().unwrap();
    let tree = Box::new(collected.files.clone());
    let mut source = KernelSource::saved(tree, "memory".into(), Some(date));
    source.sample(&Demand::everything()).unwrap()
}

fn reread(collected: &Collected, dir: &Path, name: &str) -> Snapshot {
    let path = dir.join(name);
    let form = Form::of_name(&path).unwrap();
    write::save(&write::pack(collected, form).unwrap(), &path, false).unwrap();
    let mut source = capture::open(&path).unwrap();
    source.sample(&Demand::everything()).unwrap()
}

fn assert_reads_back(collected: &Collected) {
    let dir = tempfile::tempdir().unwrap();
    let mut before = in_memory(collected);
    for name in ["a.tar", "a.tar.gz", "a.tgz", "a.tar.zst"] {
        let after = reread(collected, dir.path(), name);
        before.origin.detail.clone_from(&after.origin.detail);
        assert_eq!(before, after, "{name}");
    }
}

#[test]
fn a_capture_reads_back_as_it_was_collected() {
    let collected = write::collect(&machine(), &options()).unwrap();
    assert_eq!(collected.caches, 2);
    assert_reads_back(&collected);
    let snapshot = in_memory(&collected);
    assert_eq!(snapshot.system.page_size, 65536);
    assert!(!snapshot.system.page_size_assumed);
    assert_eq!(snapshot.system.hostname.as_deref(), Some("a-host"));
    assert_eq!(snapshot.system.config["CONFIG_SLUB"], "y");
    assert_eq!(snapshot.origin.taken_at, Some(collected.taken_at));
    let cred = snapshot.named("aio_kiocb").next().unwrap();
    assert_eq!(&*cred.name, "cred_jar");
    assert_eq!(cred.objects().unwrap().value.get(), 40);
}

#[test]
fn a_long_partial_list_is_not_walked_and_the_figure_is_an_estimate() {
    let collected = write::collect(&machine(), &options()).unwrap();
    let left_out: Vec<&str> = collected.left_out.iter().map(|a| &*a.path).collect();
    assert_eq!(
        left_out,
        [
            "sys/kernel/slab/dentry/objects",
            "sys/kernel/slab/dentry/objects_partial"
        ]
    );
    let manifest = text(&collected.files, "MANIFEST");
    assert!(
        manifest.contains("left-out sys/kernel/slab/dentry/objects: 20000 partial slabs are over"),
        "{manifest}"
    );
    let snapshot = in_memory(&collected);
    let dentry = snapshot.named("dentry").next().unwrap();
    let objects = dentry.get(Quantity::Objects).unwrap();
    assert!(objects.approx, "from /proc/slabinfo, which stops counting");
    let cred = snapshot.named("cred_jar").next().unwrap();
    assert!(!cred.get(Quantity::Objects).unwrap().approx);
}

#[test]
fn nothing_else_gets_into_a_capture() {
    let collected = write::collect(&machine(), &options()).unwrap();
    let paths: Vec<&str> = collected.files.paths().collect();
    for never in [
        "shrink",
        "validate",
        "alloc_calls",
        "alloc_traces",
        "shadow",
        "boot",
    ] {
        assert!(!paths.iter().any(|p| p.contains(never)), "{never}");
    }
    assert_eq!(
        text(&collected.files, "config"),
        "CONFIG_SLUB=y\n# CONFIG_SLUB_STATS is not set\nCONFIG_ARM64_64K_PAGES=y\n"
    );
    let with = Options {
        traces: true,
        ..options()
    };
    let collected = write::collect(&machine(), &with).unwrap();
    let dentry = "sys/kernel/debug/slab/dentry/alloc_traces";
    assert!(collected.files.paths().any(|p| p == dentry));
    assert_reads_back(&collected);
    assert!(
        in_memory(&collected)
            .named("dentry")
            .next()
            .unwrap()
            .sites
            .is_some()
    );
}

#[test]
fn the_manifest_names_every_file_with_its_size() {
    let collected = write::collect(&machine(), &options()).unwrap();
    let manifest = text(&collected.files, "MANIFEST");
    assert!(manifest.starts_with("slabctl-capture 1\n"), "{manifest}");
    for line in ["page-size: 65536", "caches: 2", "changed: 0", "compared: 2"] {
        assert!(manifest.lines().any(|l| l == line), "{line}: {manifest}");
    }
    for path in collected.files.paths().filter(|p| *p != "MANIFEST") {
        let expected = match collected.files.read(path) {
            Ok(bytes) => format!("file {} {path}", bytes.len()),
            Err(_) => format!("link {path} -> :A-0000192"),
        };
        assert!(manifest.lines().any(|l| l == expected), "{expected}");
    }
    assert!(manifest.contains("unread proc/vmstat: "), "{manifest}");
}

#[test]
fn the_same_files_and_time_give_the_same_bytes() {
    let collected = write::collect(&machine(), &options()).unwrap();
    for form in [Form::Tar, Form::Gzip, Form::Zstd] {
        let once = write::pack(&collected, form).unwrap();
        assert_eq!(once, write::pack(&collected, form).unwrap());
    }
    let bytes = write::pack(&collected, Form::Tar).unwrap();
    let mut archive = tar::Archive::new(&bytes[..]);
    let mut before = String::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let header = entry.header();
        assert!(before < path, "{before} stands before {path}");
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
        let time = i64::try_from(header.mtime().unwrap()).unwrap();
        assert_eq!(time, collected.taken_at.as_second());
        before = path;
    }
}

/// A machine some of whose files behave.
struct Odd<'a> {
    tree: MemTree,
    /// Texts of /proc/slabinfo, one for each reading; the last one stays.
    slabinfo: Vec<String>,
    readings: Cell<usize>,
    denied: &'a dyn Fn(&str) -> bool,
}

impl Tree for Odd<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if (self.denied)(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if path == "proc/slabinfo" && !self.slabinfo.is_empty() {
            let n = self.readings.replace(self.readings.get() + 1);
            return Ok(self.slabinfo[n.min(self.slabinfo.len() - 1)]
                .clone()
                .into_bytes());
        }
        self.tree.read(path)
    }
    fn list(&self, path: &str) -> io::Result<Vec<Entry>> {
        self.tree.list(path)
    }
    fn root(&self) -> &Path {
        self.tree.root()
    }
    fn descend(&self, path: &str) -> io::Result<Box<dyn Tree>> {
        self.tree.descend(path)
    }
}

fn odd(slabinfo: Vec<String>, denied: &dyn Fn(&str) -> bool) -> Odd<'_> {
    Odd {
        tree: machine(),
        slabinfo,
        readings: Cell::new(0),
        denied,
    }
}

fn none(_: &str) -> bool {
    false
}

#[test]
fn caches_that_change_meanwhile_are_read_again_and_named() {
    let moved = SLABINFO.replace("slabdata     50     50", "slabdata     51     51");
    // Quiet at the second attempt.
    let texts = vec![SLABINFO.into(), moved.clone(), SLABINFO.into()];
    let collected = write::collect(&odd(texts, &none), &options()).unwrap();
    let changes = collected.changes.unwrap();
    assert_eq!((changes.attempts, changes.changed.len()), (2, 0));

    // Never quiet: three attempts, then the one nearest to sysfs.
    let texts = (0..6).map(|n| {
        if n % 2 == 0 {
            moved.clone()
        } else {
            SLABINFO.into()
        }
    });
    let collected = write::collect(&odd(texts.collect(), &none), &options()).unwrap();
    assert_eq!(text(&collected.files, "proc/slabinfo"), SLABINFO);
    let manifest = text(&collected.files, "MANIFEST");
    assert!(manifest.lines().any(|l| l == "attempts: 3"), "{manifest}");
    assert!(
        manifest.lines().any(|l| l == "changed dentry"),
        "{manifest}"
    );
    assert_reads_back(&collected);
}

#[test]
fn without_permission_for_sysfs_the_names_are_kept() {
    let denied = |path: &str| path.starts_with("sys/kernel/slab/");
    let collected = write::collect(&odd(Vec::new(), &denied), &options()).unwrap();
    let snapshot = in_memory(&collected);
    let cred = snapshot.named("aio_kiocb").next().unwrap();
    assert_eq!(cred.get(Quantity::Slabs).unwrap().value, 2);
    assert_eq!(cred.get(Quantity::ObjectSize), None, "unknown, not zero");
    assert!(
        collected
            .unread
            .iter()
            .any(|a| a.path.ends_with("dentry/slab_size"))
    );
    assert_reads_back(&collected);
}

#[test]
fn nothing_readable_is_an_error_that_says_why() {
    let denied = |path: &str| path.contains("slab");
    let error = write::collect(&odd(Vec::new(), &denied), &options()).unwrap_err();
    assert!(matches!(error, Error::Permission { .. }), "{error}");
    let error = write::collect(&MemTree::new("empty"), &options()).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
}

/// The running kernel's capture; `None`, and a line that says so, without root.
fn live() -> Option<Collected> {
    if !rustix::process::geteuid().is_root() || std::fs::read("/proc/slabinfo").is_err() {
        eprintln!("skipped: needs root and a kernel with /proc/slabinfo");
        return None;
    }
    let page_size = u64::try_from(rustix::param::page_size()).ok();
    let options = Options {
        page_size,
        ..options()
    };
    let tree = DirTree::trusted("/").unwrap();
    Some(write::collect(&tree, &options).unwrap())
}

#[test]
fn the_running_kernels_capture_reads_back() {
    if let Some(collected) = live() {
        assert_reads_back(&collected);
    }
}

/// `slabs << order` of sysfs is `num_slabs * pagesperslab` of /proc/slabinfo for
/// every cache that held still.
#[test]
fn sysfs_and_slabinfo_of_one_capture_agree() {
    let Some(collected) = live() else { return };
    let Some(changes) = &collected.changes else {
        eprintln!("skipped: no /sys/kernel/slab here");
        return;
    };
    let only = |path: &str| {
        let mut tree = MemTree::new("part");
        for (name, node) in collected.files.nodes() {
            match node {
                collectors::source::tree::Node::File(bytes) if name.starts_with(path) => {
                    tree.insert_file(name, bytes.clone());
                }
                collectors::source::tree::Node::Link(to) if name.starts_with(path) => {
                    tree.insert_link(name, to);
                }
                _ => {}
            }
        }
        let mut source = KernelSource::saved(Box::new(tree), path.into(), None);
        source.sample(&Demand::everything()).unwrap()
    };
    let (sysfs, slabinfo) = (only("sys/kernel/slab"), only("proc/slabinfo"));
    let (mut left, mut right, mut compared) = (0u64, 0u64, 0usize);
    for row in &slabinfo.caches {
        let moved = changes.changed.iter().any(|name| **name == *row.name);
        let mut rows = slabinfo.named(&row.name);
        let one_row = rows.next().is_some() && rows.next().is_none();
        let Some(cache) = sysfs.named(&row.name).next().filter(|_| !moved && one_row) else {
            continue;
        };
        let pages =
            |c: &collectors::model::Cache| Some(c.slabs()?.value.get() * c.pages_per_slab()?);
        let (a, b) = (pages(cache).unwrap(), pages(row).unwrap());
        assert_eq!(a, b, "{}: changed: {:?}", row.name, changes.changed);
        left += a;
        right += b;
        compared += 1;
    }
    assert_eq!(left, right);
    assert!(
        compared * 2 > changes.compared,
        "only {compared} of {} caches held still",
        changes.compared
    );
}
