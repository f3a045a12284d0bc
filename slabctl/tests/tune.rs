//! `slabctl tune` and `shrink` as their users run them: on a tree that stands for /sys, and,
//! where this machine lets us, on one harmless cache and back.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use support::run;
use tempfile::TempDir;

struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let base = dir.path().join("sys/kernel/slab");
        let cache = base.join(":a-0000192");
        fs::create_dir_all(&cache).unwrap();
        symlink(":a-0000192", base.join("dentry")).unwrap();
        for (name, value) in [
            ("min_partial", "5"),
            ("cpu_partial", "30"),
            ("slabs", "100"),
            ("partial", "7"),
            ("objects", "2000"),
            ("total_objects", "2100"),
            ("objs_per_slab", "21"),
            ("order", "0"),
            ("slab_size", "192"),
            ("object_size", "192"),
            ("shrink", ""),
        ] {
            fs::write(cache.join(name), format!("{value}\n")).unwrap();
        }
        Self(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("sys/kernel/slab/dentry").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name))
            .unwrap()
            .trim()
            .to_owned()
    }

    fn run(&self, args: &[&str]) -> support::Run {
        let root = self.0.path().to_str().unwrap();
        run(&[&["--root", root], args].concat())
    }
}

#[test]
fn limits_are_shown_and_nothing_is_written() {
    let machine = Machine::new();
    let shown = machine.run(&["tune", "dentry", "--csv"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let expected = "cache,limit,value\ndentry,cpu_partial,30\ndentry,min_partial,5\n\
                    dentry,remote_node_defrag_ratio,\n";
    assert_eq!(shown.stdout.replace("\r\n", "\n"), expected);
}

#[test]
fn a_change_goes_there_and_back_by_its_undo_file() {
    let machine = Machine::new();
    let undo = machine.0.path().join("undo.txt");
    let undo = undo.to_str().unwrap();
    let there = machine.run(&["tune", "dentry", "min_partial=9", "--yes", "--save", undo]);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert!(
        there
            .stderr
            .contains("back: slabctl tune dentry min_partial=5")
    );
    assert_eq!(machine.read("min_partial"), "9");
    // The undo file is never overwritten, and then nothing is changed.
    let again = machine.run(&["tune", "dentry", "min_partial=7", "--yes", "--save", undo]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert_eq!(machine.read("min_partial"), "9");
    let back = machine.run(&["tune", "--undo", undo, "--yes", "--json"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    let document: Value = serde_json::from_str(&back.stdout).unwrap();
    assert_eq!(document["limits"][0]["before"], 9);
    assert_eq!(document["limits"][0]["after"], 5);
    assert_eq!(machine.read("min_partial"), "5");
}

#[test]
fn nothing_is_changed_without_an_answer() {
    let machine = Machine::new();
    for args in [
        &["tune", "dentry", "min_partial=9"][..],
        &["shrink", "dentry"],
    ] {
        let run = machine.run(args);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains("--yes"), "{}", run.stderr);
    }
    assert_eq!(machine.read("min_partial"), "5");
    assert_eq!(machine.read("shrink"), "");
}

#[test]
fn what_cannot_be_done_is_named_before_anything_is_written() {
    let machine = Machine::new();
    let undo = machine.0.path().join("bad.txt");
    fs::write(&undo, "# x\ndentry min_partial=6\ndentry order=3\n").unwrap();
    let undo = undo.to_str().unwrap();
    for (args, code, says) in [
        (&["tune", "none", "--yes"][..], 4, "no cache is named"),
        (
            &["tune", "dentry", "order=3", "--yes"],
            2,
            "limits are cpu_partial",
        ),
        (&["tune", "--undo", undo, "--yes"], 1, "line 3"),
        (
            &["shrink", "dentry", "../x", "--yes"],
            4,
            "no cache is named",
        ),
        (&["shrink", "dentry", "--yes", "-o", "jsonl"], 2, "--json"),
        (
            &["tune", "dentry", "remote_node_defrag_ratio=1", "--yes"],
            69,
            "does not have",
        ),
    ] {
        let run = machine.run(args);
        assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(says), "{args:?}: {}", run.stderr);
    }
    assert_eq!(machine.read("min_partial"), "5");
    assert_eq!(machine.read("shrink"), "");
    let demo = run(&["shrink", "dentry", "--demo", "--yes"]);
    assert_eq!(demo.code, Some(2), "{}", demo.stderr);
}

#[test]
fn a_change_that_stops_half_way_says_how_to_go_back() {
    let machine = Machine::new();
    // A file that a write is refused to, whoever writes.
    fs::remove_file(machine.file("cpu_partial")).unwrap();
    fs::create_dir(machine.file("cpu_partial")).unwrap();
    let both = ["tune", "dentry", "min_partial=9", "cpu_partial=3", "--yes"];
    let run = machine.run(&both);
    assert_ne!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(
        machine.read("min_partial"),
        "5",
        "it cannot be read, so nothing is written"
    );
    // One that can be read and takes no such value.
    fs::remove_dir(machine.file("cpu_partial")).unwrap();
    symlink("/proc/self/oom_score", machine.file("cpu_partial")).unwrap();
    let run = machine.run(&both);
    assert_eq!(machine.read("min_partial"), "9");
    assert_ne!(run.code, Some(0), "{}", run.stderr);
    let back = "back: slabctl tune dentry min_partial=5";
    assert!(run.stderr.contains(back), "{}", run.stderr);
}

#[test]
fn shrinking_shows_before_and_after() {
    let machine = Machine::new();
    let run = machine.run(&["shrink", "dentry", "--yes", "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(machine.read("shrink"), "1");
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let cache = &document["caches"][0];
    assert_eq!(cache["name"], "dentry");
    assert_eq!(cache["id"], ":a-0000192");
    assert_eq!(cache["before"]["slabs"], 100);
    assert_eq!(cache["after"]["memory_bytes"], 100 * 4096);
}

/// A cache that hardly anything uses.
const HARMLESS: &str = "/sys/kernel/slab/eventpoll_epi/min_partial";

#[test]
fn the_running_kernel_takes_a_limit_and_its_old_value_back() {
    let Ok(before) = fs::read_to_string(HARMLESS) else {
        eprintln!("not run: {HARMLESS} cannot be read here");
        return;
    };
    if fs::OpenOptions::new()
        .write(true)
        .open(Path::new(HARMLESS))
        .is_err()
    {
        eprintln!("not run: {HARMLESS} cannot be written here");
        return;
    }
    let before: u64 = before.trim().parse().unwrap();
    let set = |value: u64| {
        let word = format!("min_partial={value}");
        let run = run(&["tune", "eventpoll_epi", &word, "--yes"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        fs::read_to_string(HARMLESS)
            .unwrap()
            .trim()
            .parse::<u64>()
            .unwrap()
    };
    let (there, back) = (set(before + 1), set(before));
    assert_eq!((there, back), (before + 1, before));
    let shrunk = run(&["shrink", "eventpoll_epi", "--yes"]);
    assert_eq!(shrunk.code, Some(0), "{}", shrunk.stderr);
}
