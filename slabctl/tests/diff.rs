//! `slabctl diff` as its users run it: two saved slabinfo texts, one command.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

#[path = "../src/output/check.rs"]
#[expect(dead_code, reason = "the schema itself is checked where it is made")]
mod check;

const HEAD: &str = "\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> \
: tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
";

/// Name, objects in use, slot size, objects a slab, slabs (of one page).
type Line = (&'static str, u64, u64, u64, u64);

const BEFORE: [Line; 4] = [
    ("dentry", 42_000, 192, 21, 2000),
    ("kmalloc-64", 6400, 64, 64, 100),
    ("old_cache", 32, 128, 32, 1),
    ("steady", 10, 400, 10, 1),
];

/// dentry grew by 4096000 bytes (50 %), kmalloc-64 shrank by half.
const AFTER: [Line; 4] = [
    ("dentry", 63_000, 192, 21, 3000),
    ("kmalloc-64", 3200, 64, 64, 50),
    ("new_cache", 64, 128, 32, 2),
    ("steady", 10, 400, 10, 1),
];

struct Files {
    dir: TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self {
            dir: TempDir::new().unwrap(),
        };
        for (name, lines) in [("before", BEFORE), ("after", AFTER)] {
            let rows = lines.map(|(name, objects, size, per_slab, slabs)| {
                let room = per_slab * slabs;
                format!(
                    "{name} {objects} {room} {size} {per_slab} 1 \
                     : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"
                )
            });
            fs::write(files.path(name), format!("{HEAD}{}", rows.concat())).unwrap();
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `slabctl diff before after OPTIONS`.
    fn diff(&self, options: &[&str]) -> Output {
        let mut command = slabctl();
        command.current_dir(self.dir.path());
        command.args(["diff", "before", "after"]).args(options);
        command.output().unwrap()
    }

    fn json(&self, options: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(options);
        let output = self.diff(&all);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn slabctl() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("slabctl"));
    command.env_remove("COLUMNS");
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

/// The row of a cache.
fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["caches"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no {name} in {document}"))
}

fn names(document: &Value) -> Vec<&str> {
    let rows = document["caches"].as_array().unwrap();
    rows.iter().filter_map(|row| row["name"].as_str()).collect()
}

#[test]
fn the_table_shows_growth_and_what_came_and_went() {
    let output = Files::new().diff(&[]);
    assert_eq!(code(&output), Some(0));
    let words: Vec<String> = stdout(&output)
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        words,
        [
            "Name Space Now Change Objects Slabs Part",
            "dentry 7.81M 11.7M +3.91M +21000 +1000 -",
            "new_cache new - 8192 +8192 +64 +2 -",
            "old_cache gone 4096 - -4096 -32 -1 -",
            "kmalloc-64 400K 200K -200K -3200 -50 -",
            "total, all caches 8.21M 11.9M +3.71M +17832 +951 -",
        ]
    );
    assert!(stderr(&output).contains("--elapsed"), "{output:?}");
}

#[test]
fn the_json_has_exact_figures() {
    let document = Files::new().json(&[]);
    let dentry = row(&document, "dentry");
    assert_eq!(dentry["status"], "both");
    assert_eq!(dentry["objects"]["before"], 42_000);
    assert_eq!(dentry["objects"]["after"], 63_000);
    assert_eq!(dentry["memory_bytes"]["delta"], 1000 * 4096);
    assert_eq!(dentry["memory_bytes"]["per_hour"], Value::Null);
    assert_eq!(row(&document, "new_cache")["status"], "appeared");
    let old = row(&document, "old_cache");
    assert_eq!(old["status"], "vanished");
    assert_eq!(old["objects"]["delta"], -32);
    assert_eq!(document["totals"]["slabs"]["delta"], 951);
    assert_eq!(document["generated_at"], Value::Null);
    assert_eq!(document["before"]["source"]["detail"], "before");
    assert_eq!(document["source"]["detail"], "after");
    // The page size is assumed on each side, and each side says so.
    let warnings = document["warnings"].as_array().unwrap();
    let sides: Vec<_> = warnings.iter().map(|w| w["side"].as_str()).collect();
    assert_eq!(sides, [Some("before"), Some("after")]);
}

#[test]
fn unchanged_caches_are_shown_when_asked_for() {
    let files = Files::new();
    assert!(!names(&files.json(&[])).contains(&"steady"));
    assert!(names(&files.json(&["--all"])).contains(&"steady"));
}

#[test]
fn the_document_and_its_lines_follow_their_schemas() {
    let files = Files::new();
    let schema = |name: &str| -> Value {
        let output = slabctl().args(["schema", name]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    for options in [&[][..], &["--all", "--elapsed", "1h"]] {
        let errors = check::errors(&schema("diff"), &files.json(options));
        assert_eq!(errors, Vec::<String>::new());
    }
    let lines = files.diff(&["--output", "jsonl"]);
    let lines = stdout(&lines);
    assert_eq!(lines.lines().count(), 4);
    for line in lines.lines() {
        let line = serde_json::from_str(line).unwrap();
        let errors = check::errors(&schema("diff-row"), &line);
        assert_eq!(errors, Vec::<String>::new());
    }
}

#[test]
fn the_same_captures_give_the_same_bytes() {
    let files = Files::new();
    for format in ["table", "json", "jsonl", "csv", "md"] {
        let run = || files.diff(&["--output", format, "--elapsed", "1h"]);
        let (first, second) = (run(), run());
        assert!(!first.stdout.is_empty(), "{format}");
        assert_eq!(first.stdout, second.stdout, "{format}");
        assert_eq!(first.stderr, second.stderr, "{format}");
    }
}

#[test]
fn growth_beyond_the_threshold_is_status_3() {
    let files = Files::new();
    for (threshold, found) in [
        ("4095999", 3),
        ("4096000", 0),
        ("3M", 3),
        ("4M", 0),
        // new_cache held nothing before: more than any percentage.
        ("51%", 3),
    ] {
        let output = files.diff(&["--threshold", threshold, "--exit-code"]);
        assert_eq!(code(&output), Some(found), "{threshold}");
        let output = files.diff(&["--threshold", threshold]);
        assert_eq!(code(&output), Some(0), "{threshold} without --exit-code");
    }
    let document = files.json(&["--threshold", "3M"]);
    assert_eq!(names(&document), ["dentry"]);
    let document = files.json(&["--threshold", "49%"]);
    assert_eq!(names(&document), ["dentry", "new_cache"]);
}

#[test]
fn only_chosen_caches_count_for_the_status() {
    let files = Files::new();
    let with = |filter: &str| {
        let options = ["--filter", filter, "--threshold", "1M", "--exit-code"];
        code(&files.diff(&options))
    };
    assert_eq!(with("dentry"), Some(3));
    assert_eq!(with("kmalloc-*"), Some(0));
    // --top only shortens what is shown: dentry comes last here.
    let last = ["-r", "-n", "1", "--threshold", "5K", "--exit-code"];
    assert_eq!(code(&files.diff(&last)), Some(3));
}

#[test]
fn without_a_threshold_any_change_is_status_3() {
    let files = Files::new();
    assert_eq!(code(&files.diff(&["--exit-code"])), Some(3));
    let steady = ["--exit-code", "--all", "--filter", "steady"];
    assert_eq!(code(&files.diff(&steady)), Some(0));
    let shrank = ["--exit-code", "--filter", "kmalloc-64"];
    assert_eq!(code(&files.diff(&shrank)), Some(3));
}

#[test]
fn a_memory_that_is_not_known_is_not_silently_below_the_threshold() {
    let files = Files::new();
    let text = "slabinfo - version: 1.0\ndentry 100 200\n";
    fs::write(files.path("before"), text).unwrap();
    fs::write(files.path("after"), text.replace("100", "150")).unwrap();
    let output = files.diff(&["--threshold", "1", "--exit-code"]);
    assert_eq!(code(&output), Some(0));
    assert!(
        stderr(&output).contains("not held against the threshold: 1 of the caches"),
        "{output:?}"
    );
}

#[test]
fn wrong_usage_is_status_2() {
    let files = Files::new();
    for options in [
        &["--threshold", "rubbish"][..],
        &["--threshold", "-5%"],
        &["--elapsed", "soon"],
        &["--elapsed", "0"],
        &["--sort", "ctor"],
        &["--filter", "size>"],
        &["--top", "0"],
        &["--interval", "1s"],
        &["--from", "before"],
    ] {
        let output = files.diff(options);
        assert_eq!(code(&output), Some(2), "{options:?}");
        assert!(output.stdout.is_empty(), "{options:?}");
    }
    let output = slabctl().arg("diff").output().unwrap();
    assert_eq!(code(&output), Some(2));
    let output = slabctl().args(["diff", "-", "-"]).output().unwrap();
    assert_eq!(code(&output), Some(2));
}

#[test]
fn the_elapsed_time_gives_growth_per_hour() {
    let files = Files::new();
    let document = files.json(&["--elapsed", "30m"]);
    assert_eq!(document["elapsed_seconds"], 1800.0);
    let dentry = row(&document, "dentry");
    assert_eq!(dentry["objects"]["per_hour"], 42_000.0);
    assert_eq!(row(&document, "kmalloc-64")["slabs"]["per_hour"], -100.0);
    let output = files.diff(&["--elapsed", "30m", "--bytes"]);
    let text = stdout(&output);
    assert!(
        text.contains("Space/h") && text.contains("+8192000"),
        "{text}"
    );
    assert!(stderr(&output).contains("30m between the two"));
}

#[test]
fn captures_with_a_time_need_no_elapsed() {
    let files = Files::new();
    for (name, time) in [("before", "10:00"), ("after", "12:00")] {
        let text = fs::read(files.path(name)).unwrap();
        fs::remove_file(files.path(name)).unwrap();
        fs::create_dir_all(files.path(name).join("proc")).unwrap();
        fs::write(files.path(name).join("proc/slabinfo"), text).unwrap();
        let date = format!("2026-01-31T{time}:00+01:00\n");
        fs::write(files.path(name).join("date"), date).unwrap();
    }
    let document = files.json(&[]);
    assert_eq!(document["elapsed_seconds"], 7200.0);
    assert_eq!(row(&document, "dentry")["slabs"]["per_hour"], 500.0);
}

#[test]
fn rows_are_sorted_by_change() {
    let files = Files::new();
    let growth = ["dentry", "new_cache", "old_cache", "kmalloc-64"];
    assert_eq!(names(&files.json(&[])), growth);
    let shrunk = ["kmalloc-64", "old_cache", "new_cache", "dentry"];
    assert_eq!(names(&files.json(&["--sort", "objects", "-r"])), shrunk);
    assert_eq!(
        names(&files.json(&["--sort", "objects", "-r", "-n", "2"])),
        shrunk[..2]
    );
    let by_name = ["dentry", "kmalloc-64", "new_cache", "old_cache"];
    assert_eq!(names(&files.json(&["--sort", "name"])), by_name);
}

#[test]
fn a_filter_holds_when_it_holds_on_either_side() {
    let files = Files::new();
    assert_eq!(
        names(&files.json(&["--filter", "*_cache"])),
        ["new_cache", "old_cache"]
    );
    assert_eq!(names(&files.json(&["--filter", "slabs>2500"])), ["dentry"]);
    assert_eq!(
        names(&files.json(&["--filter", "objects=6400"])),
        ["kmalloc-64"]
    );
}

#[test]
fn csv_has_the_caches_alone_and_every_figure() {
    let output = Files::new().diff(&["--csv"]);
    let text = stdout(&output);
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + 4);
    let column = |name: &str| lines[0].iter().position(|head| *head == name).unwrap();
    assert_eq!(lines[1][column("memory_delta")], "4096000");
    assert_eq!(lines[1][column("memory_per_hour")], "", "unknown is empty");
    assert_eq!(lines[2][column("status")], "appeared");
    assert_eq!(lines[3][column("objects_delta")], "-32");
}

#[test]
fn one_capture_is_compared_with_the_source_of_the_options() {
    let files = Files::new();
    let mut command = slabctl();
    command.current_dir(files.dir.path());
    command.args(["diff", "before", "--from", "after", "--json"]);
    let output = command.output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document, files.json(&[]));
}

#[test]
fn a_missing_file_is_one_line_and_status_1() {
    let files = Files::new();
    for paths in [["before", "nowhere"], ["nowhere", "after"]] {
        let mut command = slabctl();
        command.current_dir(files.dir.path());
        let output = command.arg("diff").args(paths).output().unwrap();
        assert_eq!(code(&output), Some(1));
        assert!(output.stdout.is_empty());
        let text = stderr(&output);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("nowhere"), "{text}");
    }
}

#[test]
fn a_saved_file_has_no_interval() {
    let files = Files::new();
    let mut command = slabctl();
    command.current_dir(files.dir.path());
    let output = command
        .args(["diff", "--interval", "1h", "--from", "before"])
        .output();
    assert_eq!(code(&output.unwrap()), Some(2));
}

/// A directory with a kernel's files is read as a live kernel by --root.
#[test]
fn an_interval_is_measured() {
    let dir = TempDir::new().unwrap();
    let text = fs::read(Files::new().path("before")).unwrap();
    fs::create_dir(dir.path().join("proc")).unwrap();
    fs::write(dir.path().join("proc/slabinfo"), text).unwrap();
    let mut command = slabctl();
    command.args(["diff", "--interval", "50ms", "--all", "--json", "--root"]);
    let output = command.arg(dir.path()).output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["generated_at"].is_string());
    assert!(document["elapsed_seconds"].as_f64().unwrap() >= 0.05);
    assert_eq!(names(&document).len(), 4);
    assert_eq!(row(&document, "dentry")["memory_bytes"]["per_hour"], 0.0);
}
