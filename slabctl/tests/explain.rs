//! `slabctl explain` as its users run it.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use support::{assert_plain, check_error, data, error, run, slabctl};

const OVERFLOW: &str = "log/slub-5.10-overflow-quoted-deep.txt";
const ACQUITS: &str = "text/oom-nas-nfsd.txt";

#[test]
fn the_status_tells_whether_there_is_something_to_look_into() {
    let found = run(&["explain", OVERFLOW]);
    assert_eq!(found.code, Some(3), "{}", found.stderr);
    assert!(
        found
            .stdout
            .starts_with("1. kmalloc-16: 4 bytes written right behind")
    );
    for quiet in [ACQUITS, "slabinfo/three-rows.txt"] {
        assert_eq!(run(&["explain", quiet]).code, Some(0), "{quiet}");
    }
    // Several logs: one is enough.
    let both = run(&["explain", ACQUITS, OVERFLOW]);
    assert_eq!(both.code, Some(3));
    assert!(both.stdout.contains("== text/oom-nas-nfsd.txt ==\n"));
}

#[test]
fn packed_archived_and_piped_logs_say_the_same() {
    let plain = run(&["explain", OVERFLOW]).stdout;
    let text = fs::read(data(OVERFLOW)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    put("tree/var/log/messages", &text);
    let tree = dir.path().join("tree").to_str().unwrap().to_owned();
    for args in [["explain", &tree], ["--from", &tree]] {
        let args: Vec<&str> = if args[0] == "explain" {
            args.to_vec()
        } else {
            vec!["explain", args[0], args[1]]
        };
        assert_eq!(run(&args).stdout, plain);
    }
    let mut command = slabctl();
    command
        .args(["explain", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), plain);
    assert_eq!(output.status.code(), Some(3));
    let packed = run(&["explain", "log/planted-6.1-console.txt.xz"]);
    assert_eq!(packed.code, Some(3));
    let end = "\n12 findings and 10 consequences; 298 lines read\n";
    assert!(packed.stdout.ends_with(end), "{}", packed.stdout);
}

#[test]
fn every_format_has_the_findings() {
    let json = run(&["explain", "--json", OVERFLOW, ACQUITS]);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(value["schema"], "slabctl.explain/1");
    assert_eq!(value["reports"][0]["object"]["bytes_len"], 4);
    assert_eq!(value["reports"][1]["class"], "not-slab");
    assert_eq!(value["logs"][1]["name"], ACQUITS);
    let lines = run(&["explain", "-o", "jsonl", OVERFLOW, ACQUITS]).stdout;
    assert_eq!(lines.lines().count(), 2);
    let csv = run(&["explain", "--csv", OVERFLOW]).stdout;
    assert_eq!(csv.lines().count(), 2, "{csv}");
    assert!(csv.contains("overflow,kmalloc-16"), "{csv}");
}

#[test]
fn a_log_cannot_command_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let evil = "BUG ev\x1b]0;t\x07il (Not tainted): Object already free\n\
                Allocated in \x1b[2J+0x1/0x2 age=1 cpu=1 pid=1\nFIX ev\x1b]0;t\x07il: Object at \u{9b}31m not freed\n";
    fs::write(&path, evil).unwrap();
    for format in ["table", "json", "jsonl", "md"] {
        let found = run(&["explain", "-o", format, path.to_str().unwrap()]);
        assert_plain(&found.stdout);
        assert_plain(&found.stderr);
    }
}

#[test]
fn what_cannot_be_read_is_named_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().to_str().unwrap();
    assert!(error(&["explain", empty], 1).contains("no kernel log in it"));
    error(&["explain", "/nowhere"], 1);
    error(&["explain", "--demo"], 2);
    assert_eq!(run(&["explain", "--kmsg", "--journal"]).code, Some(2));
    assert_eq!(run(&["explain", "--kmsg", OVERFLOW]).code, Some(2));
}

/// The running kernel's log can be read, or the reason is said.
#[test]
fn the_running_kernel_is_asked_without_waiting() {
    for source in ["--kmsg", "--journal"] {
        let found = run(&["explain", source]);
        match found.code {
            Some(0 | 3) => assert!(found.stdout.contains("read\n"), "{}", found.stdout),
            Some(code) => check_error(&found, code),
            None => panic!("{}", found.stderr),
        }
    }
}

#[test]
fn logs_that_cannot_be_read_are_not_a_clean_bill() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::TempDir::new().unwrap();
    // No log can be opened: the link leads nowhere.
    symlink("nowhere", dir.path().join("kern.log")).unwrap();
    let path = dir.path().to_str().unwrap();
    let refused = run(&["explain", path]);
    assert_eq!(
        (refused.code, &*refused.stdout),
        (Some(1), ""),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("kern.log"), "{}", refused.stderr);
    // One that can be, and the other is named.
    std::fs::write(dir.path().join("messages"), "nothing here\n").unwrap();
    let some = run(&["explain", path]);
    assert_eq!(some.code, Some(0), "{}", some.stderr);
    assert!(some.stderr.contains("warning: kern.log"), "{}", some.stderr);
}

/// A report of a write to a free object, as a log with that prefix has it.
fn report(prefix: &str, stamp: &str, pid: u64) -> String {
    [
        "BUG filp (Not tainted): Poison overwritten".to_owned(),
        "0x00000000fc629507-0x00000000fc629507 @offset=2408. First byte 0x78 instead of 0x6b"
            .to_owned(),
        format!("Allocated in foo+0x1/0x2 age=7 cpu=1 pid={pid}"),
        "Slab 0x0000000077777777 objects=21 used=20 fp=0x0000000000000000 flags=0x200".to_owned(),
        "FIX filp: Restoring Poison 0x00000000fc629507-0x00000000fc629507=0x6b".to_owned(),
    ]
    .map(|line| format!("{prefix}{stamp}{line}\n"))
    .concat()
}

#[test]
fn a_report_that_two_logs_have_is_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    };
    let daemon = "Nov 30 20:00:01 host kernel: ";
    let twice = report("", "[    7.100000] ", 9) + &report("", "[    8.200000] ", 9);
    put("dmesg", &twice);
    // The same two, one of them without the kernel's clock, and one more.
    let messages = report(daemon, "[    7.100000] ", 9)
        + &report(daemon, "", 9)
        + &report(daemon, "", 9)
        + &report(daemon, "[    9.000000] ", 5);
    put("var/log/messages", &messages);
    let path = dir.path().to_str().unwrap();
    let json = run(&["explain", path, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let reports = document["reports"].as_array().unwrap();
    let repeats: Vec<_> = reports.iter().map(|r| &r["repeats"]).collect();
    assert_eq!(repeats, [2, 2], "{}", json.stdout);
    assert_eq!(reports[0]["also_in"][0], "var/log/messages");
    assert_eq!(reports[1]["also_in"], serde_json::Value::Array(Vec::new()));
    assert_eq!(document["logs"][1]["counted_before"], 2);
    let page = run(&["explain", path]).stdout;
    assert!(page.contains("also in    var/log/messages"), "{page}");
    let end = "1 finding, 2 reports counted in an earlier log; 20 lines read\n";
    assert!(page.ends_with(end), "{page}");
}
