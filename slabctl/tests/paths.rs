//! `--paths` and `sites --live` as users run them, on the running kernel.
//!
//! They need root and a kernel that takes BPF programs; elsewhere each test
//! holds the refusal to one line that says why.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::fs;
use std::time::Duration;

use serde_json::Value;
use support::{run, skip};

/// Whether the command was refused for want of BPF, which it says in one line.
fn is_refused(run: &support::Run, option: &str) -> bool {
    if !matches!(run.code, Some(69 | 77)) {
        return false;
    }
    let lines: Vec<&str> = run
        .stderr
        .lines()
        .filter(|l| !l.starts_with("hint"))
        .collect();
    if run.stderr.contains("needs BPF") {
        assert_eq!(lines.len(), 1, "{}", run.stderr);
        assert!(lines[0].contains(option), "{}", run.stderr);
    }
    skip(&format!("no BPF here: {}", run.stderr.trim()));
    true
}

/// The shell opens a file so many times, without another process.
const OPENS: &str = "for i in $(seq 3000); do : </dev/null; done";

#[test]
fn stat_counts_what_a_command_allocates_by_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stat.json");
    let path = file.to_str().unwrap();
    let run = run(&[
        "stat", "--paths", "--json", "-w", path, "--", "bash", "-c", OPENS,
    ]);
    if is_refused(&run, "--paths") {
        return;
    }
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let stat: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let caches = stat["caches"].as_array().unwrap();
    let counted = caches.iter().find(|cache| cache["name"] == "filp").unwrap();
    let steps = |name: &str| counted["counters"][name]["delta"].as_u64().unwrap_or(0);
    let allocs = steps("alloc_fastpath") + steps("alloc_cpu_sheaf") + steps("alloc_slowpath");
    assert!(allocs >= 3000, "{allocs} of 3000 opens: {counted}");
    let said = stat["warnings"].to_string();
    assert!(
        said.contains("inferred") && said.contains("missed"),
        "{said}"
    );
}

/// How many is known, which path they took is not, and neither is called 0.
#[test]
fn a_count_alone_has_totals_and_no_shares() {
    let dir = tempfile::tempdir().unwrap();
    let of = |format: &str| {
        let file = dir.path().join(format);
        let path = file.to_str().unwrap();
        let run = run(&[
            "stat",
            "--paths=counts",
            format,
            "-w",
            path,
            "--",
            "bash",
            "-c",
            OPENS,
        ]);
        if is_refused(&run, "--paths") {
            return None;
        }
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(!run.stderr.contains("inferred"), "{}", run.stderr);
        Some(fs::read_to_string(&file).unwrap())
    };
    let Some(json) = of("--json") else { return };
    let stat: Value = serde_json::from_str(&json).unwrap();
    let caches = stat["caches"].as_array().unwrap();
    let counted = caches.iter().find(|cache| cache["name"] == "filp").unwrap();
    for name in ["allocs", "frees"] {
        let steps = counted["counters"][name]["delta"].as_u64().unwrap();
        assert!(steps >= 2900, "{steps} {name} of 3000 opens: {counted}");
        let approx = counted["approx"].as_array().unwrap();
        assert!(!approx.iter().any(|key| key == name), "{counted}");
    }
    assert_eq!(counted["counters"].as_object().unwrap().len(), 2);
    let csv = of("--csv").unwrap();
    let mut lines = csv.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = lines.find(|line| line.starts_with("filp,")).unwrap();
    let row: Vec<&str> = row.split(',').collect();
    let cell = |name: &str| row[heads.iter().position(|head| *head == name).unwrap()];
    assert!(cell("allocs").parse::<u64>().unwrap() >= 3000, "{row:?}");
    assert_eq!((cell("allocs_fast"), cell("slabs_in")), ("", ""), "{row:?}");
}

/// Where the kernel lets no program run at its functions, one line says so, and the
/// paths are inferred as without.
#[test]
fn slow_paths_at_functions_are_measured_or_the_refusal_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stat.json");
    let path = file.to_str().unwrap();
    let args = ["--json", "-w", path, "--", "bash", "-c", OPENS];
    let run = run(&[&["stat", "--paths=fentry"], &args[..]].concat());
    if is_refused(&run, "--paths") {
        return;
    }
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let stat: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let caches = stat["caches"].as_array().unwrap();
    let counted = caches.iter().find(|cache| cache["name"] == "filp").unwrap();
    let steps = |name: &str| counted["counters"][name]["delta"].as_u64();
    let approx = counted["approx"].to_string();
    let refusals = run.stderr.matches("lets no program run at its functions");
    if refusals.count() == 1 {
        assert!(run.stderr.contains("are inferred"), "{}", run.stderr);
        assert!(steps("alloc_fastpath").is_some(), "{counted}");
        assert!(approx.contains("alloc_slowpath"), "{counted}");
    } else {
        assert!(run.stderr.contains("at the entry of"), "{}", run.stderr);
        assert!(steps("allocs").unwrap() >= 3000, "{counted}");
        assert!(!approx.contains("alloc_slowpath"), "{counted}");
    }
}

#[test]
fn report_shows_the_activity_of_an_interval() {
    let run = run(&[
        "report",
        "--activity",
        "--paths",
        "--interval",
        "300ms",
        "filp",
        "--csv",
    ]);
    if is_refused(&run, "--paths") {
        return;
    }
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut lines = run.stdout.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = heads.iter().position(|head| *head == "allocs").unwrap();
    assert!(row[place].parse::<u64>().is_ok(), "{heads:?} {row:?}");
    assert!(run.stderr.contains("paths by BPF since"), "{}", run.stderr);
}

#[test]
fn sites_finds_who_keeps_files_open_without_a_reboot() {
    let looks = std::thread::spawn(|| {
        run(&[
            "sites", "filp", "--live", "--for", "3s", "--by", "stack", "--json",
        ])
    });
    // One file after the other, whenever the programs begin to see it.
    let mut held = Vec::new();
    while !looks.is_finished() && held.len() < 800 {
        held.push(fs::File::open("/dev/null").unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
    let run = looks.join().unwrap();
    if is_refused(&run, "--live") {
        return;
    }
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["sampled"], 1);
    let sites = document["caches"][0]["sites"].as_array().unwrap();
    let through_open = |site: &&Value| {
        let stack = site["stack"].to_string();
        stack.contains("do_sys_open") && stack.contains("alloc_empty_file")
    };
    let counts = sites.iter().filter(through_open);
    let open: u64 = counts.map(|site| site["count"].as_u64().unwrap()).sum();
    assert!(open >= 100, "{open} of {}: {sites:#?}", held.len());
}

#[test]
fn what_is_no_running_kernel_has_no_paths_and_no_live_sites() {
    for (args, said) in [
        (&["report", "--demo", "--paths"][..], "--paths counts"),
        (
            &["top", "--demo", "--linear", "--count", "1", "--paths"],
            "--paths counts",
        ),
        (&["sites", "filp", "--live", "--demo"], "--live"),
        (&["sites", "--live"], "CACHE"),
        (&["sites", "filp", "--for", "3s"], "--live"),
        (&["report", "--interval", "3s"], "--paths"),
        (&["diff", "a", "b", "--paths"], "--interval"),
        (&["report", "--activity", "--paths=guess"], "inferred"),
    ] {
        let run = run(args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn the_screen_of_a_cache_has_its_paths_and_how_full_its_slabs_are() {
    // Whether it is refused is told before there is a screen.
    let first = run(&[
        "top", "--bpf", "--paths", "--linear", "--count", "1", "-d", "100ms",
    ]);
    if is_refused(&first, "--paths") {
        return;
    }
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let args = ["--bpf", "--paths", "-d", "300ms"];
    let mut screen = support::screen::Screen::start(&args, &[]);
    screen.sees("Name");
    screen.types("/name=filp\r\r");
    screen.sees("How full the slabs are");
    screen.resize(120, 60);
    screen.sees("every slab on a list, by BPF");
    screen.sees("BPF: how many is counted, which way they went is inferred");
    screen.types("q");
    assert!(screen.end().success());
    screen.is_given_back();
}
