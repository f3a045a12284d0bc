//! `slabctl run`: a program on slabcore, told of at its end.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::fs;
use std::path::Path;

use support::{check_error, run, skip};

/// The library lies beside the program once it has been built (`slabctl-preload`).
fn has_library() -> bool {
    let program = Path::new(env!("CARGO_BIN_EXE_slabctl"));
    let there = program.with_file_name("libslabcore_preload.so").is_file();
    if !there {
        skip("needs the preload library: cargo build -p slabctl-preload");
    }
    there
}

#[test]
fn a_program_runs_and_its_caches_are_told_at_its_end() {
    if !has_library() {
        return;
    }
    let told = run(&["run", "--report", "--", "/bin/echo", "hello"]);
    assert_eq!(
        (told.code, &*told.stdout),
        (Some(0), "hello\n"),
        "{}",
        told.stderr
    );
    assert!(told.stderr.contains("kmalloc-64"), "{}", told.stderr);
    let quiet = run(&["run", "--", "/bin/echo", "hello"]);
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("hello\n", ""));
    let debugged = run(&[
        "run",
        "--validate",
        "--debug",
        "FZPU",
        "--policy",
        "classic",
        "--",
        "/bin/ls",
    ]);
    assert_eq!(debugged.code, Some(0), "{}", debugged.stderr);
    assert!(
        debugged.stderr.contains("checked, once: no findings"),
        "{}",
        debugged.stderr
    );
    let leaks = run(&["run", "--leaks", "--", "/bin/ls"]);
    assert!(
        leaks
            .stderr
            .contains("still allocated at the end, by stack:"),
        "{}",
        leaks.stderr
    );
    assert!(leaks.stderr.contains("[libc.so"), "{}", leaks.stderr);
}

#[test]
fn the_exit_status_is_the_programs() {
    if !has_library() {
        return;
    }
    let status = |script: &str| run(&["run", "--report", "--", "/bin/sh", "-c", script]);
    assert_eq!(status("exit 7").code, Some(7));
    let killed = status("kill -9 $$");
    assert_eq!(killed.code, Some(137));
    assert!(
        killed.stderr.contains("without waiting to be looked at"),
        "{}",
        killed.stderr
    );
    assert_eq!(run(&["run", "--", "/nonexistent"]).code, Some(127));
    check_error(&run(&["run", "--demo", "--", "/bin/true"]), 2);
}

#[test]
fn last_figures_are_kept_when_asked() {
    if !has_library() {
        return;
    }
    let kept = run(&["run", "--keep", "--", "/bin/ls"]);
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    let path = kept.stderr.trim_end().rsplit(' ').next().unwrap();
    assert!(path.starts_with("/dev/shm/slabcore-"), "{}", kept.stderr);
    let report = run(&["report", "--from", path]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    assert!(report.stdout.contains("kmalloc-"), "{}", report.stdout);
    assert!(
        report.stderr.contains("the process came to its end"),
        "{}",
        report.stderr
    );
    fs::remove_file(path).unwrap();
}
