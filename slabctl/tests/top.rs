//! `slabctl top` in a real pseudo-terminal, and where there is none.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::screen::Screen;
use support::{assert_plain, run, skip, slabctl, stdout};

#[test]
fn keys_work_sizes_change_and_quitting_gives_the_terminal_back() {
    let mut screen = Screen::start(&["--demo"], &[]);
    screen.sees("demo_leak");
    screen.types("/demo_l\r");
    screen.until("the filter", |s| !s.text().contains("demo_idle"));
    screen.types("\r");
    screen.sees("How full the slabs are");
    screen.types("G");
    screen.sees("measured: the engine's own counters");
    screen.types("\x1b");
    screen.sees("filter: demo_l");
    screen.resize(150, 40);
    screen.until("the wide screen", |s| {
        s.text()
            .lines()
            .any(|l| l.contains("Slabs/s") && l.contains("Rcl"))
    });
    screen.resize(20, 4);
    screen.sees("terminal too small");
    screen.resize(80, 24);
    screen.sees("filter: demo_l");
    screen.types("q");
    assert_eq!(screen.end().exit_code(), 0);
    screen.is_given_back();
    // A terminal on a slow line would answer late or never.
    assert!(!screen.raw().contains("\x1b[6n"), "asks for the cursor");
}

#[test]
fn a_suspended_program_gives_the_terminal_back_and_takes_it_again() {
    let mut screen = Screen::start(&["--demo"], &[]);
    screen.sees("demo_leak");
    for stop in ["key", "signal"] {
        match stop {
            "key" => screen.types("\x1a"),
            _ => screen.signal("TSTP"),
        }
        screen.until("it is stopped", |s| s.state() == 'T');
        screen.until("the screen", |s| {
            !s.seen.lock().unwrap().0.screen().alternate_screen()
        });
        screen.is_given_back();
        screen.signal("CONT");
        screen.until("it is back", |s| {
            s.seen.lock().unwrap().0.screen().alternate_screen() && s.text().contains("demo_leak")
        });
    }
    screen.types("?");
    screen.sees("Keys: type to search");
}

#[test]
fn a_signal_to_end_gives_the_terminal_back() {
    for signal in ["TERM", "HUP", "INT"] {
        let mut screen = Screen::start(&["--demo"], &[]);
        screen.sees("demo_leak");
        screen.signal(signal);
        assert!(!screen.end().success());
        screen.is_given_back();
    }
}

/// The numbers of every style that was set.
fn styles(raw: &str) -> Vec<u32> {
    let mut list = Vec::new();
    for part in raw.split("\x1b[").skip(1) {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        if let Some(end) = end.filter(|end| part[*end..].starts_with('m')) {
            list.extend(part[..end].split(';').filter_map(|n| n.parse::<u32>().ok()));
        }
    }
    list
}

/// Arguments, and variables of the environment.
type Call<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);

fn is_colour(style: u32) -> bool {
    matches!(style, 30..=49 | 90..=107)
}

#[test]
fn no_colour_means_none() {
    let plain: [Call<'_>; 3] = [
        (&["--demo"], &[("NO_COLOR", "1")]),
        (&["--demo", "--color", "never"], &[]),
        (&["--demo", "--theme", "okabe"], &[("CLICOLOR", "0")]),
    ];
    for (args, env) in plain {
        let mut screen = Screen::start(args, env);
        screen.sees("demo_leak");
        screen.types("m");
        screen.sees("marked");
        screen.types("q");
        screen.end();
        let styles = styles(&screen.raw());
        assert!(styles.contains(&7), "the selection is reversed: {styles:?}");
        let colours: Vec<_> = styles.iter().filter(|s| is_colour(**s)).collect();
        assert!(colours.is_empty(), "{env:?} {colours:?}");
    }
    let mut screen = Screen::start(&["--demo"], &[]);
    screen.sees("demo_leak");
    screen.types("q");
    screen.end();
    assert!(styles(&screen.raw()).iter().any(|s| (31..=38).contains(s)));
}

#[test]
fn a_dumb_terminal_gets_lines_without_escapes() {
    let mut screen = Screen::start(
        &["--demo", "-d", "100ms", "--count", "3"],
        &[("TERM", "dumb")],
    );
    assert_eq!(screen.end().exit_code(), 0);
    assert_plain(&screen.raw());
    assert!(screen.raw().contains("demo_leak holds"));
}

#[test]
fn a_pipe_gets_lines_without_escapes() {
    let text = stdout(&["top", "--demo", "-d", "100ms", "--count", "4", "-q"]);
    assert_plain(&text);
    assert!(text.contains("built-in engine"), "{text}");
    // A saved file does not change: one sample.
    let text = stdout(&["top", "--from", "kernels/deb7.3-cloud.tar.xz"]);
    assert!(text.contains(" dentry holds 1.25M"), "{text}");
}

#[test]
fn a_saved_file_is_looked_at_with_the_same_screens() {
    let file = support::data("kernels/deb7.3-cloud.tar.xz");
    let mut screen = Screen::start(&["--from", file.to_str().unwrap()], &[]);
    screen.sees("FILE");
    screen.types("/name=dentry\r");
    screen.sees("filter: name=dentry");
    screen.types("\r");
    screen.sees("object_size 192");
    screen.types("+");
    screen.sees("a saved file does not change");
    screen.types("Q");
    assert_eq!(screen.end().exit_code(), 0);
    assert!(
        screen.text().contains("object_size 192"),
        "the last frame stays"
    );
}

#[test]
fn what_is_written_is_the_list_as_it_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = support::data("kernels/deb7.3-cloud.tar.xz");
    let mut screen = Screen::start(&["--from", file.to_str().unwrap(), "--sort", "name"], &[]);
    screen.sees("FILE");
    screen.types("/kmalloc-1* and slabs>0\r");
    screen.sees("filter: kmalloc-1*");
    let csv = dir.path().join("list.csv");
    screen.types(&format!("e{}\r", csv.display()));
    screen.sees("list.csv: ");
    let text = std::fs::read_to_string(&csv).unwrap();
    let names: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|l| l.split(',').next().unwrap())
        .collect();
    assert!(
        names.len() > 2 && names.iter().all(|n| n.starts_with("kmalloc-1")),
        "{text}"
    );
    let json = dir.path().join("list.json");
    screen.types(&format!("e{}\r", json.display()));
    screen.sees("list.json: ");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(support::names(&report), names);
    // Never over a file that is there.
    screen.types(&format!("e{}\r", csv.display()));
    screen.sees("File exists");
}

#[test]
fn a_wrong_configuration_is_told_before_the_screen_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("top.toml");
    for (text, says) in [
        ("[keys]\nquit = \"/\"\n", "key / is bound twice"),
        (
            "[keys]\nqiut = \"x\"\n",
            "no action \"qiut\": did you mean quit?",
        ),
        ("colour = 1\n", "line 1, column 1: unknown field"),
        ("theme = \"pink\"\n", "theme: \"pink\" is none of"),
    ] {
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let run = run(&["top", "--demo", "--config", path]);
        support::check_error(&run, 2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    std::fs::write(
        &path,
        "columns = [\"name\", \"objects\"]\n[keys]\nquit = \"x\"\n",
    )
    .unwrap();
    let mut screen = Screen::start(&["--demo", "--config", path.to_str().unwrap()], &[]);
    screen.sees("demo_leak");
    assert!(!screen.text().contains("Space"));
    screen.types("qx");
    assert_eq!(screen.end().exit_code(), 0);
}

#[test]
fn a_source_that_cannot_be_read_is_told_as_everywhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_str().unwrap();
    let mut screen = Screen::start(&["--root", root], &[]);
    assert_eq!(screen.end().exit_code(), 69);
    let text = screen.text();
    assert!(text.contains("slabctl: error: slab data below"), "{text}");
    assert!(text.contains("hint: slabctl doctor"), "{text}");
    assert!(
        !screen.raw().contains("\x1b[?1049h"),
        "the screen was touched"
    );
}

/// Figures by name: slabs, objects there is room for, memory.
fn figures() -> Option<std::collections::BTreeMap<String, [u64; 3]>> {
    let mut command = slabctl();
    command.args(["report", "--json", "-q"]);
    let output = command.output().unwrap();
    if !output.status.success() {
        return None;
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut map = std::collections::BTreeMap::new();
    for cache in report["caches"].as_array().unwrap() {
        let figure = |name: &str| cache[name].as_u64();
        let row = [
            figure("slabs")?,
            figure("total_objects")?,
            figure("memory_bytes")?,
        ];
        map.insert(cache["name"].as_str()?.to_owned(), row);
    }
    Some(map)
}

/// A load: files are opened until it is dropped.
struct Opens(Arc<AtomicBool>);

impl Opens {
    fn start() -> Self {
        let go = Arc::new(AtomicBool::new(true));
        let on = Arc::clone(&go);
        std::thread::spawn(move || {
            while on.load(Ordering::Relaxed) {
                // It is about the opening.
                let _ = std::fs::File::open("/proc/self/stat");
            }
        });
        Self(go)
    }
}

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn live_figures_are_those_of_a_report_taken_around_them() {
    let Some(before) = figures() else {
        return skip("the running kernel's slab data cannot be read");
    };
    let _load = Opens::start();
    let columns = "name,slabs,total_objects,memory";
    let mut screen = Screen::start(&["--bytes", "-c", columns, "-s", "name"], &[]);
    screen.resize(120, 250);
    screen.sees("LIVE");
    // The second frame has them from the sample that reads everything.
    screen.until("caches", |s| s.text().lines().count() > 60);
    std::thread::sleep(Duration::from_millis(1500));
    screen.types(" ");
    screen.sees("HELD");
    let text = screen.text();
    let Some(after) = figures() else {
        return skip("the report failed");
    };
    let mut compared = 0;
    for line in text.lines() {
        let words: Vec<&str> = line
            .trim_start_matches(['>', ' '])
            .split_whitespace()
            .collect();
        let Some(name) = words.first() else { continue };
        let numbers: Vec<u64> = words
            .iter()
            .rev()
            .take(3)
            .rev()
            .filter_map(|w| w.parse().ok())
            .collect();
        let (Some(a), Some(b)) = (before.get(*name), after.get(*name)) else {
            continue;
        };
        // What did not change meanwhile must be on the screen as it is.
        if a == b && numbers.len() == 3 {
            assert_eq!(numbers, a, "{line}");
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared} compared of\n{text}");
}
