//! `slabctl bench thread`: kernel threads asked again, in short runs of the built program.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

#[path = "../src/output/check.rs"]
#[allow(dead_code, reason = "the schema itself is checked where it is made")]
mod check;

use std::sync::OnceLock;

use serde_json::{Value, json};
use support::{check_error, run, stdout};

const YEARS: [&str; 5] = ["2008", "2011", "2013", "2022", "2023"];

/// A short run of each year, made once for all tests.
fn thread(year: &str) -> &'static Value {
    static RUNS: [OnceLock<Value>; YEARS.len()] = [const { OnceLock::new() }; YEARS.len()];
    let at = YEARS.iter().position(|it| *it == year).unwrap();
    RUNS[at].get_or_init(|| run_thread(year))
}

/// A short run, held to its schema.
fn run_thread(year: &str) -> Value {
    let mut args = vec![
        "bench", "thread", year, "--rounds", "1", "--cpus", "8", "--json", "-q",
    ];
    if year == "2022" {
        // Of ten, since a debug cache takes its time.
        args.extend(["--cases", "64"]);
    }
    let document: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let schema = serde_json::from_str(&stdout(&["schema", "bench-thread"])).unwrap();
    assert_eq!(check::errors(&schema, &document), Vec::<String>::new());
    assert_eq!(document["wrong"], json!([]), "{year}");
    document
}

fn sheets<'d>(document: &'d Value, kind: &str) -> Vec<&'d Value> {
    let all = document["sheets"].as_array().unwrap();
    all.iter().filter(|sheet| sheet["kind"] == kind).collect()
}

fn sheet<'d>(document: &'d Value, kind: &str, words: &str) -> &'d Value {
    let all = sheets(document, kind);
    let named = |sheet: &&&Value| sheet["title"].as_str().unwrap().contains(words);
    all.iter().find(named).unwrap()
}

/// The figures of a column, by its heading.
fn column(sheet: &Value, title: &str) -> Vec<f64> {
    let titles = sheet["columns"].as_array().unwrap();
    let at = titles.iter().position(|it| it == title).unwrap();
    let rows = sheet["rows"].as_array().unwrap();
    rows.iter().filter_map(|row| row[at].as_f64()).collect()
}

/// The numbers of a text, as they stand there.
fn numbers(text: &str) -> Vec<f64> {
    let text = text.replace(',', "");
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[test]
fn the_list_has_each_thread_and_the_command_that_runs_it() {
    let text = stdout(&["bench", "threads", "--list"]);
    let list: Value = serde_json::from_str(&stdout(&["bench", "threads", "--json"])).unwrap();
    let schema = serde_json::from_str(&stdout(&["schema", "bench-threads"])).unwrap();
    assert_eq!(check::errors(&schema, &list), Vec::<String>::new());
    let threads = list["threads"].as_array().unwrap();
    let years: Vec<String> = threads.iter().map(|it| it["year"].to_string()).collect();
    assert_eq!(years, YEARS);
    for thread in threads {
        for part in ["subject", "command"] {
            assert!(text.contains(thread[part].as_str().unwrap()), "{text}");
        }
    }
}

/// docs/BENCH.md has the tables of the threads; the program has the same figures.
#[test]
fn published_tables_are_those_of_the_page() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/BENCH.md");
    let page = std::fs::read_to_string(path).unwrap();
    for year in YEARS {
        let document = thread(year);
        let (_, part) = page.split_once(&format!("\n### {year}")).unwrap();
        let part = part.split("\n### ").next().unwrap();
        let published = sheets(document, "published");
        assert!(!published.is_empty(), "{year}");
        let mut tables = part.split("published: ").skip(1);
        for sheet in published {
            let table = tables.next().unwrap();
            let told: Vec<f64> = { table.lines() }
                .skip_while(|line| !line.starts_with("|-"))
                .skip(1)
                .take_while(|line| line.starts_with('|'))
                .flat_map(numbers)
                .collect();
            let rows = sheet["rows"].as_array().unwrap().iter();
            let cells = rows.flat_map(|row| row.as_array().unwrap().iter());
            let shown = cells.flat_map(|cell| match cell {
                Value::String(text) => numbers(text),
                cell => cell.as_f64().into_iter().collect(),
            });
            assert_eq!(
                told,
                shown.collect::<Vec<_>>(),
                "{year}: {}",
                sheet["title"]
            );
        }
    }
}

#[test]
fn a_model_gives_the_same_numbers_in_every_run_and_says_what_it_is() {
    let runs = [thread("2011"), &run_thread("2011")];
    let [a, b] = runs.map(|run| sheets(run, "model"));
    assert!(!a.is_empty());
    assert_eq!(a, b);
    let what = runs[0]["model"]["what"].as_str().unwrap();
    assert!(what.starts_with("A model:"));
    let args = [
        "bench", "thread", "2013", "--rounds", "1", "--cpus", "2", "-q",
    ];
    for format in [&[][..], &["-o", "md"]] {
        let text = stdout(&[&args, format].concat());
        assert!(
            text.contains("model: lines moved") && text.contains("A model:"),
            "{text}"
        );
        assert!(
            text.contains("published: a server of 4 sockets") && text.contains("here: "),
            "{text}"
        );
    }
    let lines = stdout(&[&args, &["--csv"][..]].concat());
    assert!(
        lines.starts_with("thread,kind,table,row,column,value"),
        "{lines}"
    );
    assert!(lines.lines().skip(1).all(|line| {
        ["published", "model", "measured", "counted"].contains(&line.split(',').nth(1).unwrap())
    }));
}

/// More objects in a slab: fewer slow paths, in the model and where this machine counts.
#[test]
fn in_2008_the_share_of_slow_paths_falls() {
    let document = thread("2008");
    let model = sheet(document, "model", "beside what was published");
    let rows = model["rows"].as_array().unwrap();
    let row = |of: &str| -> Vec<f64> {
        let row = rows.iter().find(|row| row[0] == of).unwrap();
        let cells = row.as_array().unwrap().iter().skip(1);
        cells.map(|cell| cell.as_f64().unwrap()).collect()
    };
    let published = row("share of slow paths, published, %");
    let model = row("share of slow paths, model, %");
    assert_eq!(published, [88.0, 44.0, 13.0, 12.0]);
    assert!(model.is_sorted_by(|a, b| a > b), "{model:?}");
    // 8 against 64: 7.3 times in the thread.
    let ratio = (model[0] / model[3]) / (published[0] / published[3]);
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
    let counted = sheet(document, "counted", "hackbench");
    let fast: Vec<f64> = column(counted, "fast %");
    assert!(fast[0] < fast[2] && fast[0] < fast[3], "{fast:?}");
    let made = column(counted, "slabs new/k");
    assert!(made[0] > made[2], "{made:?}");
}

/// Lists of slots: the node's list is locked less often. On two processors that depends on who
/// runs when, so it is the model that is held to it.
#[test]
fn in_2011_the_nodes_list_is_locked_less_often() {
    let document = thread("2011");
    let model = sheet(document, "model", "list locks taken");
    let (classic, eager) = (column(model, "classic"), column(model, "cpu-partial"));
    assert_eq!(classic.len(), eager.len());
    for (classic, eager) in classic.iter().zip(&eager) {
        assert!(2.0 * eager < *classic, "{eager} {classic}");
    }
    let counted = sheet(document, "counted", "hackbench:");
    assert_eq!(column(counted, "list locks/k").len(), 3);
    // Processes have an engine each: nobody waits for anybody.
    let alone = sheet(document, "counted", "hackbench-processes");
    assert!(column(alone, "waited/k").iter().all(|n| *n == 0.0));
    assert_eq!(column(alone, "allocs"), [40_000.0; 3]);
}

#[test]
fn in_2022_only_a_debug_cache_pays() {
    let document = thread("2022");
    let counted = sheet(document, "counted", "locked instructions");
    assert!(column(counted, "false findings").iter().all(|n| *n == 0.0));
    assert!(
        column(counted, "counters that differ")
            .iter()
            .all(|n| *n == 0.0)
    );
    let kmalloc = sheet(document, "counted", "kmalloc");
    assert_eq!(column(kmalloc, "bytes"), [64.0; 3]);
    for each in column(kmalloc, "atomics/k").chunks(3) {
        assert!(
            (each[0] - each[1]).abs() < 1e-9 && each[2] > each[0] + 2000.0,
            "{each:?}"
        );
    }
}

#[test]
fn switches_make_a_contender_of_each_value() {
    let args = [
        "bench",
        "hackbench",
        "--cases",
        "1",
        "--policy",
        "classic",
        "--min-objects",
        "8,64",
        "--min-partial",
        "0,50",
        "--rounds",
        "1",
        "--json",
        "-q",
    ];
    let document: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let names: Vec<&str> = { document["contenders"].as_array().unwrap().iter() }
        .map(|name| name.as_str().unwrap())
        .collect();
    let expected = [
        "classic/min-objects=8/min-partial=0",
        "classic/min-objects=8/min-partial=50",
        "classic/min-objects=64/min-partial=0",
        "classic/min-objects=64/min-partial=50",
    ];
    assert_eq!(names, expected);
    let results = document["workloads"][0]["cases"][0]["results"]
        .as_array()
        .unwrap();
    let gone = |at: usize| results[at]["counters"][0]["free_slab"].as_u64().unwrap();
    assert!(gone(0) > gone(1), "kept with 50: {} {}", gone(0), gone(1));
}

#[test]
fn processes_send_every_message() {
    let args = [
        "bench",
        "hackbench",
        "--processes",
        "--cases",
        "1",
        "--policy",
        "hybrid",
        "--rounds",
        "1",
        "--json",
        "-q",
    ];
    let document: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let workload = &document["workloads"][0];
    assert_eq!(workload["name"], "hackbench-processes");
    let result = &workload["cases"][0]["results"][0];
    assert_eq!(result["wrong"], json!([]));
    let counted = |name: &str| result["counters"][0][name].as_u64().unwrap();
    let allocs = counted("alloc_fastpath") + counted("alloc_slowpath");
    assert_eq!(allocs, 2 * 20 * 20 * 50);
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    for args in [
        ["bench", "thread", "2009"].as_slice(),
        &["bench", "thread", "2008", "-o", "jsonl"],
        &["bench", "kmalloc", "--processes"],
        &["bench", "larson", "--min-objects", "8"],
        &[
            "bench",
            "kmalloc",
            "--min-objects",
            "1,2,3,4",
            "--min-partial",
            "1,2,3,4",
        ],
    ] {
        check_error(&run(args), 2);
    }
    for args in [
        ["bench", "thread", "2008", "--cpus", "1"].as_slice(),
        &["bench", "kmalloc", "--max-order", "11"],
    ] {
        assert_eq!(run(args).code, Some(2));
    }
}
