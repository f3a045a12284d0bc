//! Runs the built program and checks what every run has to keep to.

#![allow(dead_code, reason = "each test file uses some of these")]

pub mod answers;
#[path = "../../../slabcore/preload/tests/support/library.rs"]
pub mod library;
pub mod screen;
pub mod target;
pub mod watched;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run gave.
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The program, with nothing of the caller's environment that changes output.
pub fn slabctl() -> Command {
    with_clean_environment(Command::new(env!("CARGO_BIN_EXE_slabctl")))
}

/// The same for another command that runs it.
pub fn with_clean_environment(mut command: Command) -> Command {
    command.env("RUST_BACKTRACE", "1").current_dir(data(""));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM"] {
        command.env_remove(name);
    }
    command
}

/// Runs a command without input.
pub fn finish(mut command: Command) -> Run {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let run = Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    for text in [&run.stdout, &run.stderr] {
        // Not these words alone: they are in names of functions that stacks show.
        assert!(!text.contains("panicked at"), "{text}");
        assert!(!text.contains("stack backtrace"), "{text}");
    }
    run
}

/// Runs the program; a relative path is below the parsers' test data.
pub fn run(args: &[&str]) -> Run {
    let mut command = slabctl();
    command.args(args);
    finish(command)
}

/// Runs it and expects success; the text on standard output.
pub fn stdout(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    run.stdout
}

/// Runs it and expects one line for the error, then hints, and no output.
pub fn error(args: &[&str], code: i32) -> String {
    let run = run(args);
    check_error(&run, code);
    run.stderr
}

/// Checks the form of a failure.
pub fn check_error(run: &Run, code: i32) {
    assert_eq!(run.code, Some(code), "{}", run.stderr);
    assert_eq!(run.stdout, "");
    let mut lines = run.stderr.lines();
    let first = lines.next().unwrap_or_default();
    assert!(first.starts_with("slabctl: error: "), "{}", run.stderr);
    for line in lines {
        assert!(line.starts_with("hint: "), "{}", run.stderr);
    }
}

/// A report in JSON, with the options.
pub fn json(args: &[&str]) -> serde_json::Value {
    let args = [&["report", "--json"], args].concat();
    serde_json::from_str(&stdout(&args)).unwrap()
}

/// The shown names of the caches of a report in JSON.
pub fn names(report: &serde_json::Value) -> Vec<&str> {
    let caches = report["caches"].as_array().unwrap();
    caches.iter().map(|c| c["name"].as_str().unwrap()).collect()
}

/// Real texts that the parsers are tested with.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../collectors/tests/data")
        .join(path)
}

/// Sixteen caches of a 6.12 kernel with counters, four CPUs and two nodes.
pub const NUMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/numa2-stats.tar.xz");

/// A slabinfo whose names try to command the terminal.
pub const HOSTILE: &str = "slabinfo - version: 2.1\n\
    # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n\
    ev\x1b]0;title\x07il 10 64 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n\
    \u{9b}31mred 10 64 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n\
    bad\x1b[2Jrow 10 64 x 64 1 : tunables 0 0 0 : slabdata 1 1 0\n\
    race\x1b[2J 99 64 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n";

/// Fails when a text could command a terminal.
pub fn assert_plain(text: &str) {
    let bad = text
        .chars()
        .find(|c| c.is_control() && !"\n\r".contains(*c));
    assert_eq!(bad, None, "{text:?}");
}

/// Writes a tree as `/sys/kernel/slab` has it: file after file with its text.
pub fn write_tree(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Says on the test's output that something could not be tested here.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}
