//! What the doctor says of machines and captures: states, reasons, remedies.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use collectors::Error;
use collectors::source::doctor::{self, Finding, State};

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const SLABINFO: &str = "slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
kmalloc-64           900   1050    192   21    1 : tunables    0    0    0 : slabdata     50     50      0
";

/// A kernel before 6.9 with one merged cache, nothing tracked, no counters.
fn machine(root: &Path) {
    let slab = "sys/kernel/slab/:0000064";
    for (name, text) in [
        ("slab_size", "64\n"),
        ("partial", "20001 N0=20001\n"),
        ("total_objects", "1050 N0=1050\n"),
        ("validate", ""),
    ] {
        put(root, &format!("{slab}/{name}"), text);
    }
    for link in ["kmalloc-64", "eventpoll"] {
        let at = root.join("sys/kernel/slab").join(link);
        std::os::unix::fs::symlink(":0000064", at).unwrap();
    }
    put(root, "proc/slabinfo", SLABINFO);
    put(root, "proc/meminfo", "MemTotal: 1000 kB\nSlab: 100 kB\n");
    put(root, "proc/sys/kernel/osrelease", "5.14.0-570.el9.x86_64\n");
    put(root, "proc/cmdline", "quiet slub_debug=-\n");
    put(
        root,
        "config",
        "CONFIG_SLUB=y\n# CONFIG_SLUB_STATS is not set\nCONFIG_PAGE_OWNER=y\n",
    );
    std::fs::create_dir_all(root.join("sys/kernel/debug/slab")).unwrap();
}

fn find<'a>(findings: &'a [Finding], what: &str) -> &'a Finding {
    let found = findings.iter().find(|f| f.what.contains(what));
    found.unwrap_or_else(|| panic!("{what} is not in {findings:#?}"))
}

#[test]
fn a_machine_is_told_what_is_missing_and_what_to_boot_with() {
    let dir = tempfile::tempdir().unwrap();
    machine(dir.path());
    let findings = doctor::machine(dir.path());
    let says = |what: &str, state: State, words: &str| {
        let finding = find(&findings, what);
        assert_eq!(finding.state, state, "{finding:?}");
        assert!(finding.remark.contains(words), "{finding:?}");
    };
    says("/proc/slabinfo", State::Readable, "1 rows");
    says("/proc/vmstat", State::Missing, "");
    says("merged", State::Readable, "slub_nomerge");
    says(
        "longest",
        State::Readable,
        "kmalloc-64: 20001 slabs; 1 caches are over",
    );
    says("counters", State::Off, "CONFIG_SLUB_STATS");
    says("slab debugging", State::Readable, "validate");
    says("debug/slab", State::Empty, "slub_debug=U");
    says("boot options", State::Readable, "slub_debug=-");
    says("page_owner", State::Off, "page_owner=on");
    says("allocinfo", State::Off, "CONFIG_MEM_ALLOC_PROFILING");
    says("era", State::Readable, "cpu-slabs");
    assert!(find(&findings, "/proc/slabinfo").needed);
}

#[test]
fn what_was_switched_on_is_readable() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    machine(root);
    put(root, "sys/kernel/slab/:0000064/alloc_fastpath", "5 C0=5\n");
    put(root, "sys/kernel/debug/slab/kmalloc-64/alloc_traces", "");
    put(root, "sys/kernel/debug/page_owner", "");
    put(root, "proc/allocinfo", "allocinfo - version: 1.0\n");
    put(root, "dev/kmsg", "");
    let findings = doctor::machine(root);
    for what in ["counters", "page_owner", "allocinfo", "kmsg"] {
        assert_eq!(find(&findings, what).state, State::Readable, "{what}");
    }
    let tracked = find(&findings, "debug/slab");
    assert_eq!(tracked.remark, "1 caches: kmalloc-64");
    put(root, "proc/sys/vm/mem_profiling", "0\n");
    let findings = doctor::machine(root);
    assert_eq!(find(&findings, "allocinfo").state, State::Off);
}

#[test]
fn an_empty_root_has_nothing_needed_and_no_promise() {
    let dir = tempfile::tempdir().unwrap();
    for findings in [
        doctor::machine(dir.path()),
        doctor::machine(&dir.path().join("nowhere")),
        doctor::capture(dir.path()).unwrap(),
    ] {
        assert!(findings.iter().any(|f| f.needed));
        assert!(
            findings.iter().all(|f| f.state != State::Readable),
            "{findings:#?}"
        );
    }
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_hang() {
    let dir = tempfile::tempdir().unwrap();
    machine(dir.path());
    std::fs::create_dir(dir.path().join("dev")).unwrap();
    for path in ["dev/kmsg", "proc/allocinfo"] {
        let path = dir.path().join(path);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    }
    doctor::machine(dir.path());
}

#[test]
fn a_sosreport_has_no_contents_of_sysfs_and_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("sosreport-host");
    put(&root, "proc/slabinfo", SLABINFO);
    put(&root, "proc/meminfo", "");
    put(
        &root,
        "sos_commands/kernel/ls_-lt_.sys.kernel.slab",
        "total 0\nlrwxrwxrwx. 1 root root 0 Feb  1 10:00 eventpoll -> :0000064\ndrwxr-xr-x. 2 root root 0 Feb  1 10:00 :0000064\n",
    );
    let findings = doctor::capture(dir.path()).unwrap();
    let sysfs = find(&findings, "sys/kernel/slab/*");
    assert_eq!(sysfs.state, State::Missing);
    assert!(sysfs.remark.contains("partial lists unknown"), "{sysfs:?}");
    assert_eq!(find(&findings, "proc/slabinfo").state, State::Readable);
    assert_eq!(find(&findings, "proc/meminfo").state, State::Empty);
    assert_eq!(find(&findings, "ls_-lt_").state, State::Readable);
    assert_eq!(find(&findings, "figure: partial").state, State::Missing);
    assert_eq!(find(&findings, "figure: slabs").state, State::Readable);
    assert!(
        find(&findings, "figure: page size")
            .remark
            .contains("assumed")
    );
    assert!(find(&findings, "warning: page-size-assumed").state == State::Readable);
}

#[test]
fn a_bare_text_is_named_and_a_foreign_one_is_not_usable() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "slabinfo.txt", SLABINFO);
    let findings = doctor::capture(&dir.path().join("slabinfo.txt")).unwrap();
    assert!(findings[0].needed && findings[0].state == State::Readable);
    put(dir.path(), "letter", "dear reader\n");
    let findings = doctor::capture(&dir.path().join("letter")).unwrap();
    assert!(findings[0].needed && findings[0].state == State::Missing);
    let error = doctor::capture(&dir.path().join("none")).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}
