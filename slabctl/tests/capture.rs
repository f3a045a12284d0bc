//! `slabctl capture` and `slabctl doctor` as a user runs them.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;

const SLABINFO: &str = "slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
kmalloc-64           900   1050    192   21    1 : tunables    0    0    0 : slabdata     50     50      0
";

fn slabctl(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slabctl"));
    command.args(args);
    command
}

/// A root with one cache.
fn root() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for (name, text) in [
        ("slab_size", "64\n"),
        ("object_size", "60\n"),
        ("objs_per_slab", "21\n"),
        ("order", "0\n"),
        ("partial", "1 N0=1\n"),
        ("slabs", "50 N0=50\n"),
        ("total_objects", "1050 N0=1050\n"),
        ("objects", "900 N0=900\n"),
    ] {
        put(&format!("sys/kernel/slab/kmalloc-64/{name}"), text);
    }
    put("proc/slabinfo", SLABINFO);
    dir
}

fn out(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn err(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_capture_is_written_once_and_reported_from() {
    let (root, dir) = (root(), tempfile::tempdir().unwrap());
    for name in ["a.tar", "a.tar.gz", "a.tgz", "a.tar.zst"] {
        let file = dir.path().join(name);
        let args = ["capture", text(&file), "--root", text(root.path())];
        let done = slabctl(&args).assert().code(0);
        assert_eq!(out(&done), "");
        assert!(err(&done).contains(", 1 caches, "), "{}", err(&done));
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let report = slabctl(&["report", "--json", "--from", text(&file)]).assert();
        let report: Value = serde_json::from_str(&out(&report.code(0))).unwrap();
        assert_eq!(report["caches"][0]["objects"], 900);
        assert_eq!(report["system"]["page_size_assumed"], false);
        assert!(report["source"]["taken_at"].is_string());

        let before = std::fs::read(&file).unwrap();
        let again = slabctl(&args).assert().code(1);
        assert!(err(&again).contains("--force"), "{}", err(&again));
        assert_eq!(std::fs::read(&file).unwrap(), before);
        slabctl(&args)
            .arg("--force")
            .arg("-q")
            .assert()
            .code(0)
            .stderr("");
    }
    assert_eq!(
        names(dir.path()),
        ["a.tar", "a.tar.gz", "a.tar.zst", "a.tgz"]
    );
}

#[test]
fn a_stream_is_a_plain_tar() {
    let root = root();
    let args = ["capture", "-", "--root", text(root.path())];
    let done = slabctl(&args).assert().code(0);
    let bytes = done.get_output().stdout.clone();
    assert_eq!(&bytes[257..262], b"ustar");
    let report = slabctl(&["report", "--from", "-", "-q"])
        .write_stdin(bytes)
        .assert();
    assert!(out(&report.code(0)).contains("kmalloc-64"));
}

#[test]
fn wrong_use_is_told_before_anything_is_written() {
    let (root, dir) = (root(), tempfile::tempdir().unwrap());
    let file = dir.path().join("a.zip");
    let args = ["capture", text(&file), "--root", text(root.path())];
    let done = slabctl(&args).assert().code(2);
    for suffix in [".tar", ".tar.gz", ".tar.zst"] {
        assert!(err(&done).contains(suffix), "{}", err(&done));
    }
    let file = dir.path().join("a.tar");
    slabctl(&["capture", text(&file), "--from", "x"])
        .assert()
        .code(2);
    // Nothing to capture: no file either.
    let empty = tempfile::tempdir().unwrap();
    let args = ["capture", text(&file), "--root", text(empty.path())];
    slabctl(&args).assert().code(69);
    let nowhere = dir.path().join("none/a.tar");
    let args = ["capture", text(&nowhere), "--root", text(root.path())];
    slabctl(&args).assert().code(1);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn the_doctor_ends_with_what_can_be_used() {
    let (root, empty) = (root(), tempfile::tempdir().unwrap());
    let done = slabctl(&["doctor", "--root", text(root.path())])
        .assert()
        .code(0);
    assert!(
        out(&done).contains("readable  /proc/slabinfo"),
        "{}",
        out(&done)
    );
    slabctl(&["doctor", "--root", text(empty.path())])
        .assert()
        .code(69);
    slabctl(&["doctor", "--from", text(root.path())])
        .assert()
        .code(0);
    slabctl(&["doctor", "--from", text(empty.path())])
        .assert()
        .code(69);
    slabctl(&["doctor", "--from", "/nowhere"]).assert().code(1);
    slabctl(&["doctor", "-o", "jsonl"]).assert().code(2);
}

#[test]
fn the_doctor_speaks_json_and_csv() {
    let root = root();
    let done = slabctl(&["doctor", "--json", "--root", text(root.path())]).assert();
    let document: Value = serde_json::from_str(&out(&done.code(0))).unwrap();
    assert_eq!(document["schema"], "slabctl.doctor/1");
    assert_eq!(document["usable"], true);
    let findings = document["findings"].as_array().unwrap();
    let meminfo = findings.iter().find(|f| f["what"] == "/proc/meminfo");
    assert_eq!(meminfo.unwrap()["state"], "missing");
    let done = slabctl(&["doctor", "--csv", "--root", text(root.path())]).assert();
    assert!(out(&done.code(0)).starts_with("what,state,gives,remark\r\n"));
}

/// As user nobody on the running kernel: 77, a hint, no file.
#[test]
fn without_privilege_both_say_so() {
    if !rustix::process::geteuid().is_root() || !Path::new("/proc/slabinfo").exists() {
        eprintln!("skipped: needs root, to become nobody, and a kernel with /proc/slabinfo");
        return;
    }
    let nobody = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_slabctl"));
        command.args(args).uid(65534).gid(65534).env("LC_ALL", "C");
        command
    };
    if nobody(&["--version"]).output().is_err() {
        eprintln!("skipped: user nobody cannot run the program where it was built");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let file = dir.path().join("a.tar");
    let done = Command::from_std(nobody(&["capture", text(&file)])).assert();
    assert!(err(&done).contains("sudo slabctl"), "{}", err(&done));
    done.code(77);
    assert!(names(dir.path()).is_empty());
    let done = Command::from_std(nobody(&["doctor"])).assert().code(77);
    assert!(
        out(&done).contains("denied    /proc/slabinfo"),
        "{}",
        out(&done)
    );
}
