//! `slabctl check` as a monitoring system runs it.

#![allow(clippy::unwrap_used)]

#[path = "../src/output/check.rs"]
#[allow(dead_code, reason = "the schema itself is checked where it is made")]
mod check;
mod support;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use support::{Run, run, stdout};
use tempfile::TempDir;

const CAPTURE: &str = "kernels/deb7.3-cloud.tar.xz";
const SMALL: &str = "slabinfo/three-rows.txt";

struct Rules(TempDir);

impl Rules {
    fn new(text: &str) -> Self {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("rules.toml"), text).unwrap();
        Self(dir)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("rules.toml")
    }

    fn run(&self, args: &[&str]) -> Run {
        let path = self.path();
        run(&[&["check", path.to_str().unwrap()], args].concat())
    }

    fn from(&self, capture: &str, args: &[&str]) -> Run {
        self.run(&[&["--from", capture, "-q"], args].concat())
    }
}

/// The one line on standard output.
fn line(run: &Run) -> &str {
    assert_eq!(run.stdout.matches('\n').count(), 1, "{}", run.stdout);
    run.stdout.trim_end()
}

fn document(text: &str) -> Value {
    let document = serde_json::from_str(text).unwrap();
    let schema = serde_json::from_str(&stdout(&["schema", "check"])).unwrap();
    assert_eq!(check::errors(&schema, &document), Vec::<String>::new());
    document
}

#[test]
fn the_example_of_the_documentation_gives_the_answer_there() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/CHECK.md");
    let page = fs::read_to_string(path).unwrap();
    let rules = page.split("```toml\n").nth(1).unwrap();
    let rules = Rules::new(rules.split("```").next().unwrap());
    let shown = page.lines().find(|l| l.trim().starts_with("SLAB WARNING"));
    let seen = rules.from(CAPTURE, &[]);
    assert_eq!((line(&seen), seen.code), (shown.unwrap().trim(), Some(1)));
    // And the broken one, as it is shown.
    let text = fs::read_to_string(rules.path()).unwrap();
    let broken = Rules::new(&text.replacen("memory", "memori", 1));
    let seen = broken.from(CAPTURE, &[]);
    assert_eq!(seen.code, Some(3));
    let shown: Vec<_> = page
        .lines()
        .skip_while(|l| !l.contains("SLAB UNKNOWN"))
        .take(3)
        .collect();
    let file = broken.path().display().to_string();
    let first = line(&seen).replace(&file, "rules.toml");
    let indent = "      ";
    assert_eq!(format!("{indent}{first}"), shown[0]);
    let marks: Vec<_> = seen
        .stderr
        .lines()
        .map(|l| format!("{indent}{l}"))
        .collect();
    assert_eq!(marks, shown[1..]);
}

#[test]
fn each_status_has_its_exit_code() {
    for (rule, code, word) in [
        ("warning = 'memory > 900G'", 0, "OK"),
        ("warning = 'memory > 1K'", 1, "WARNING"),
        (
            "warning = 'memory > 1K'\ncritical = 'memory > 2K'",
            2,
            "CRITICAL",
        ),
        ("warning = 'memory/h > 1K'", 3, "UNKNOWN"),
        ("caches = 'no_such'\nwarning = 'memory > 1K'", 3, "UNKNOWN"),
        (
            "caches = 'no_such'\nmissing = 'ok'\nwarning = 'memory > 1K'",
            0,
            "OK",
        ),
    ] {
        let rules = Rules::new(&format!("[[rule]]\n{rule}\n"));
        let seen = rules.from(CAPTURE, &[]);
        assert_eq!(
            seen.code,
            Some(code),
            "{rule}: {}{}",
            seen.stdout,
            seen.stderr
        );
        assert!(
            line(&seen).starts_with(&format!("SLAB {word} - ")),
            "{}",
            seen.stdout
        );
    }
}

#[test]
fn growth_is_told_from_an_earlier_capture_or_two_samples() {
    let rules = Rules::new("[[rule]]\nname = 'g'\nof = 'sum'\ncritical = 'memory/h > 1K'\n");
    let (old, new) = ("kernels/deb6.1-cloud.tar.xz", CAPTURE);
    let since = rules.from(new, &["--since", old, "--elapsed", "1h", "--json"]);
    let seen = document(&since.stdout);
    let memory = |capture| {
        let report = support::json(&["-q", "--from", capture]);
        report["totals"]["memory_bytes"].as_f64().unwrap()
    };
    let worst = &seen["rules"][0]["worst"];
    let change = memory(new) - memory(old);
    assert!(
        (worst["value"].as_f64().unwrap() - change).abs() < 1.0,
        "{worst} {change}"
    );
    assert_eq!(worst["cache"], Value::Null);
    let interval = rules.run(&["--demo", "--interval", "300ms", "-q"]);
    assert!(matches!(interval.code, Some(0 | 2)), "{}", interval.stdout);
    assert!(line(&interval).contains("'g'="), "{}", interval.stdout);
    let saved = rules.from(new, &["--interval", "1s"]);
    assert_eq!(saved.code, Some(3), "{}", saved.stdout);
    assert!(
        line(&saved).contains("needs a live source"),
        "{}",
        saved.stdout
    );
}

#[test]
fn machine_output_has_every_rule() {
    let rules = Rules::new(
        "[[rule]]\nname = 'a'\nwarning = 'use < 0%'\n[[rule]]\nname = 'b'\ncritical = 'slabs > 100'\n",
    );
    let seen = rules.from(CAPTURE, &["--json"]);
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    let json = document(&seen.stdout);
    assert_eq!(
        (&json["status"], &json["error"]),
        (&"critical".into(), &Value::Null)
    );
    assert_eq!(json["rules"][0]["status"], "ok");
    let beyond = json["rules"][1]["beyond"].as_array().unwrap();
    assert!(beyond.len() > 2);
    assert_eq!(
        (&beyond[0]["critical"], &beyond[0]["status"]),
        (&100.0.into(), &"critical".into())
    );
    assert_eq!(rules.from(CAPTURE, &["--json"]).stdout, seen.stdout);
    let csv = rules.from(CAPTURE, &["--csv"]);
    assert!(
        csv.stdout
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("a,ok,object_use,"),
        "{}",
        csv.stdout
    );
}

#[test]
fn whatever_happens_there_is_a_status_line_and_unknown() {
    let rules = Rules::new("[[rule]]\nwarning = 'memory > 1K'\n");
    let path = rules.path();
    let path = path.to_str().unwrap();
    let empty = TempDir::new().unwrap();
    for args in [
        &["check", "/nowhere/rules.toml"][..],
        &["check", path, "--from", "/nowhere"],
        &["check", path, "--root", empty.path().to_str().unwrap()],
        &["check", path, "--from", SMALL, "--since", "/nowhere"],
        &["check", path, "--interval", "never"],
        &["check", path, "-o", "jsonl"],
    ] {
        let seen = run(args);
        assert_eq!(
            seen.code,
            Some(3),
            "{args:?}: {}{}",
            seen.stdout,
            seen.stderr
        );
        assert!(
            line(&seen).starts_with("SLAB UNKNOWN - "),
            "{args:?}: {}",
            seen.stdout
        );
    }
    let json = run(&["check", "/nowhere/rules.toml", "--json"]);
    let seen = document(&json.stdout);
    assert_eq!((json.code, &seen["status"]), (Some(3), &"unknown".into()));
    assert_eq!(seen["error"]["file"], "/nowhere/rules.toml");
    // Wrong words would else be critical.
    assert_eq!(run(&["check"]).code, Some(3));
    assert_eq!(run(&["check", path, "--nonsense"]).code, Some(3));
    assert_eq!(run(&["check", "--help"]).code, Some(0));
    assert_eq!(run(&["report", "--nonsense"]).code, Some(2));
}

#[test]
fn a_figure_that_the_source_lacks_is_unknown() {
    let rules = Rules::new("[[rule]]\nname = 'p'\nwarning = 'partial > 1'\n");
    let seen = rules.from(SMALL, &[]);
    assert_eq!(seen.code, Some(3), "{}", seen.stdout);
    assert_eq!(
        line(&seen),
        "SLAB UNKNOWN - p: the figure of 3 of 3 caches is not known"
    );
}

#[test]
fn names_from_outside_cannot_break_the_line() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("slabinfo");
    fs::write(&file, support::HOSTILE).unwrap();
    let rules = Rules::new("[[rule]]\nname = 'x'\nwarning = 'objects >= 1'\n");
    let seen = rules.from(file.to_str().unwrap(), &[]);
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
    support::assert_plain(line(&seen));
}

#[test]
fn this_machine_can_be_checked() {
    let rules = Rules::new("[[rule]]\nname = 'all'\nof = 'sum'\ncritical = 'memory > 100%'\n");
    let seen = rules.run(&["-q"]);
    if seen.code == Some(3) {
        return support::skip("its slab data cannot be read here");
    }
    assert_eq!(seen.code, Some(0), "{}", seen.stdout);
}
