//! Each screen of `slabctl top` in a real pseudo-terminal, by what a user does there.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use support::screen::Screen;

const SAVED: &str = "kernels/deb7.3-cloud.tar.xz";

fn saved(args: &[&str]) -> Screen {
    let file = support::data(SAVED);
    let mut all = vec!["--from", file.to_str().unwrap()];
    all.extend(args);
    Screen::start(&all, &[])
}

#[test]
fn the_matrix_turns_from_cpus_to_nodes_and_shows_other_figures() {
    let mut screen = Screen::start(&["--demo"], &[]);
    screen.sees("demo_leak");
    screen.types("3");
    screen.sees("slabs on the partial list, by CPU");
    screen.sees("C0");
    screen.types("v");
    screen.until("another figure", |s| {
        !s.text().contains("slabs on the partial list, by CPU")
    });
    screen.types("o");
    screen.sees("by node");
    screen.sees("N0");
    // Down, and into the cache of that line.
    screen.types("j\r");
    screen.sees("How full the slabs are");
    screen.types("-");
    screen.sees("by node");
}

#[test]
fn the_difference_grows_from_the_mark_and_opens_a_cache() {
    let mut screen = Screen::start(&["--demo", "-d", "200ms"], &[]);
    screen.sees("demo_leak");
    screen.types("m4");
    screen.sees("since the mark at");
    screen.until("the leak", |s| {
        let text = s.text();
        let line = text.lines().find(|l| l.contains(">demo_leak"));
        line.is_some_and(|l| l.contains('K') && l.contains('+'))
    });
    screen.sees("counters: alloc_fastpath +");
    screen.sees("caches that did not change:");
    screen.types("M");
    screen.sees("no mark is set");
}

#[test]
fn sites_say_why_there_are_none_and_what_to_do() {
    let mut screen = saved(&[]);
    screen.sees("FILE");
    screen.types("/name=dentry\r5");
    screen.sees("who allocated the objects in use");
    screen.sees("slab_debug=U,dentry");
}

#[test]
fn sites_of_a_cache_that_records_them_are_grouped_and_turned() {
    let file = support::data("kernels/deb6.12-cloud-FZPU-numa2.tar.xz");
    let mut screen = Screen::start(&["--from", file.to_str().unwrap()], &[]);
    screen.sees("FILE");
    screen.types("/name=dentry\r5");
    screen.sees("__d_alloc");
    screen.types("o");
    screen.sees("who freed");
}

#[test]
fn checks_give_evidence_and_lead_to_the_cache() {
    let mut screen = Screen::start(&["--demo"], &[]);
    screen.sees("demo_leak");
    screen.types("6");
    screen.sees("worth a look");
    screen.sees("demo_fragmented  fragmentation");
    screen.sees("hold no object in use");
    screen.types("j\r");
    screen.sees("How full the slabs are");
}

#[test]
fn the_system_of_a_capture_is_the_captures_own() {
    let mut screen = saved(&["--screen", "system"]);
    screen.resize(120, 60);
    screen.sees("Slab in the machine's memory");
    let report = support::stdout(&["report", "--totals", "--bytes", "--from", SAVED]);
    let text = screen.text();
    let all = text
        .lines()
        .find(|l| l.trim_start().starts_with("all "))
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .to_owned();
    screen.types("uu");
    screen.until("exact bytes", |s| {
        let text = s.text();
        let line = text.lines().find(|l| l.trim_start().starts_with("all "));
        let bytes = line.and_then(|l| l.split_whitespace().nth(1));
        bytes.is_some_and(|b| b != all && report.contains(b))
    });
}

#[test]
fn the_screen_is_written_as_a_picture() {
    let dir = tempfile::tempdir().unwrap();
    let mut screen = Screen::start(&["--demo", "--screen", "checks"], &[]);
    screen.sees("worth a look");
    let svg = dir.path().join("checks.svg");
    screen.types(&format!("e{}\r", svg.display()));
    screen.sees("checks.svg: the screen");
    let text = std::fs::read_to_string(&svg).unwrap();
    assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    assert!(text.contains("worth a look"), "{text}");
    // The question for the name is not in it.
    assert!(!text.contains("write to"), "{text}");
    let plain = dir.path().join("checks.txt");
    screen.types(&format!("e{}\r", plain.display()));
    screen.sees("checks.txt: the screen");
    let text = std::fs::read_to_string(&plain).unwrap();
    assert!(text.contains("demo_fragmented  fragmentation") && !text.contains('\x1b'));
}

/// Figures of the demonstration do not depend on when they are looked at, where
/// its load has ended.
#[test]
fn the_demonstration_shows_what_its_report_shows() {
    let report = support::stdout(&["report", "--demo", "--json", "-q"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let mut screen = Screen::start(
        &["--demo", "--bytes", "-c", "name,objects,slabs,memory"],
        &[],
    );
    screen.sees("demo_leak");
    screen.types(" ");
    let text = screen.text();
    for name in [
        "demo_fragmented",
        "demo_odd",
        "demo_page_lock",
        "kmalloc-96",
        "kmalloc-1k",
    ] {
        let cache = report["caches"].as_array().unwrap();
        let cache = cache.iter().find(|c| c["name"] == name).unwrap();
        let line = text
            .lines()
            .find(|l| l.trim_start_matches(['>', ' ']).starts_with(name))
            .unwrap_or_else(|| panic!("{name} in {text}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        let shown: Vec<u64> = words[words.len() - 3..]
            .iter()
            .filter_map(|w| w.parse().ok())
            .collect();
        let figure = |key: &str| cache[key].as_u64().unwrap();
        assert_eq!(
            shown,
            [figure("objects"), figure("slabs"), figure("memory_bytes")],
            "{line}"
        );
    }
}
