//! `slabctl show` as its users run it.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use support::{HOSTILE, NUMA, assert_plain, check_error, error, run, stdout};

#[test]
fn one_page_on_a_merged_cache() {
    let mut command = support::slabctl();
    command.current_dir(Path::new(NUMA).parent().unwrap());
    command.args(["show", "cred", "--from", "numa2-stats.tar.xz"]);
    let run = support::finish(command);
    assert_eq!(run.code, Some(0));
    insta::assert_snapshot!("merged", format!("{}----\n{}", run.stdout, run.stderr));
}

#[test]
fn one_page_where_little_is_known() {
    let run = run(&["show", "kmalloc-64", "--from", "slabinfo/4.18-coreos.txt"]);
    assert_eq!(run.code, Some(0));
    insta::assert_snapshot!("bare", format!("{}----\n{}", run.stdout, run.stderr));
}

#[test]
fn every_name_and_the_id_lead_to_the_cache() {
    let page = |name| stdout(&["show", name, "--from", NUMA]);
    let first = page("signal_cache");
    assert!(first.starts_with("signal_cache  (:A-0000960)\n"), "{first}");
    for name in ["UNIX", "PING", ":A-0000960"] {
        assert_eq!(page(name), first, "{name}");
    }
}

#[test]
fn only_the_section_asked_for() {
    let section = |name| stdout(&["show", "dentry", "--from", NUMA, "--section", name]);
    let numa = section("numa");
    assert!(
        numa.contains("Node  Slabs") && !numa.contains("Objects  in use"),
        "{numa}"
    );
    let cpus = section("cpus");
    assert!(
        cpus.contains("alloc_fastpath") && !cpus.contains("Node"),
        "{cpus}"
    );
    assert!(section("aliases").contains("Aliases"));
    assert!(section("sites").contains("Sites"));
}

#[test]
fn warnings_about_other_caches_are_not_said() {
    let of = |name| run(&["show", name, "--from", NUMA]).stderr;
    assert!(of("dentry").contains("warning: dentry: "));
    assert!(!of("cred").contains("dentry"));
}

#[test]
fn machines_get_the_cache_by_name() {
    let csv = stdout(&["show", "UNIX", "--csv", "--from", NUMA]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let records: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert!(records.iter().all(|r| &r[0] == "signal_cache"));
    let figure = |key: &str| records.iter().find(|r| &r[1] == key).unwrap().clone();
    assert_eq!(&figure("memory")[2], "180224");
    assert_eq!(&figure("memory")[3], "computed");
    assert_eq!(&figure("alloc_fastpath")[3], "sysfs");
    assert_eq!(&figure("aliases")[2], "PING RAW UNIX UNIX-STREAM");
    let json = stdout(&["show", "UNIX", "--json", "--from", NUMA]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["caches"].as_array().unwrap().len(), 1);
    assert_eq!(json["caches"][0]["memory_bytes"], 180_224);
}

#[test]
fn a_name_that_is_not_there_gets_a_suggestion() {
    let message = error(&["show", "dnetry", "--from", NUMA], 4);
    assert!(message.contains("hint: did you mean dentry?"), "{message}");
    let message = error(&["show", "zzzzzz", "--from", NUMA], 4);
    assert!(message.contains("slabctl report --names"), "{message}");
}

#[test]
fn a_suggestion_does_not_need_standard_input_twice() {
    let mut child = support::slabctl()
        .args(["show", "tcp", "--from", "-"])
        .stdin(fs::File::open(support::data("slabinfo/three-rows.txt")).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("did you mean TCP?"), "{message}");
}

#[test]
fn hostile_names_are_shown_and_suggested_harmlessly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slabinfo");
    fs::write(&path, HOSTILE).unwrap();
    let from = path.to_str().unwrap();
    let name = "ev\x1b]0;title\x07il";
    for form in ["table", "md", "json"] {
        let run = run(&["show", name, "--from", from, "-o", form]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_plain(&run.stdout);
        assert_plain(&run.stderr);
    }
    let run = run(&["show", "title", "--from", from]);
    check_error(&run, 4);
    assert!(run.stderr.contains("did you mean"), "{}", run.stderr);
    assert_plain(&run.stderr);
    assert_plain(&error(&["show", "no\x1b[2Jname", "--from", from], 4));
}
