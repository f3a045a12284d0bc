//! `slabctl bench`: real runs, short ones.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use support::{check_error, run, stdout};

#[test]
fn a_run_has_figures_counters_and_ratios() {
    let text = stdout(&[
        "bench",
        "kmalloc",
        "--cases",
        "64",
        "--rounds",
        "6",
        "--policy",
        "hybrid,classic",
        "--peers",
        "--json",
        "-q",
    ]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "slabctl.bench/1");
    let case = &document["workloads"][0]["cases"][0];
    assert_eq!(case["case"], 64);
    let results = case["results"].as_array().unwrap();
    let names: Vec<&str> = results
        .iter()
        .map(|r| r["contender"].as_str().unwrap())
        .collect();
    assert_eq!(names[..3], ["hybrid", "classic", "malloc"]);
    for result in results {
        assert_eq!(result["wrong"], serde_json::json!([]));
        for figure in result["figures"].as_array().unwrap() {
            assert_eq!(figure["rounds"].as_array().unwrap().len(), 6);
            assert!(figure["median"].as_f64().unwrap() > 0.0);
        }
        let counters = result["counters"].as_array();
        assert_eq!(counters.is_some(), result["contender"] != "malloc");
    }
    // The classic policy frees by the slow path what the arrays take.
    let share = |at: usize| {
        let counters = &results[at]["counters"][2];
        let n = |name: &str| counters[name].as_f64().unwrap();
        n("free_fastpath") / (n("free_fastpath") + n("free_slowpath"))
    };
    assert!(share(0) > share(1), "{} {}", share(0), share(1));
    let ratios = case["ratios"].as_array().unwrap();
    assert_eq!(ratios.len() % 3, 0);
    assert!(ratios.iter().all(|r| r["ratio"].as_f64().unwrap() > 0.0));
}

#[test]
fn tables_for_people_and_the_list() {
    let list = stdout(&["bench", "--list"]);
    for name in ["kmalloc", "hackbench", "ptl"] {
        assert!(list.contains(name), "{list}");
    }
    let args = [
        "bench",
        "bulk",
        "--cases",
        "16",
        "--rounds",
        "6",
        "--policy",
        "hybrid,sheaves",
        "--counters",
        "-q",
    ];
    let text = stdout(&args);
    assert!(text.contains("hybrid needs"), "{text}");
    assert!(text.contains("fast %"), "{text}");
}

#[test]
fn two_results_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.json");
    let path = file.to_str().unwrap();
    let args = [
        "bench", "bulk", "--cases", "8", "--rounds", "6", "--policy", "hybrid", "--json", "-q",
        "--write", path,
    ];
    assert_eq!(run(&args).code, Some(0));
    // Never over a file that is there.
    assert_ne!(run(&args).code, Some(0));
    let text = stdout(&["bench", "compare", path, path]);
    assert!(
        text.contains("not-shown") && text.contains("1.00"),
        "{text}"
    );
    std::fs::write(&file, "{}").unwrap();
    check_error(&run(&["bench", "compare", path, path]), 1);
}

#[test]
fn what_is_not_known_is_refused_before_anything_runs() {
    for args in [
        ["bench", "nothing"].as_slice(),
        &["bench"],
        &["bench", "kmalloc", "--policy", "best"],
        &["bench", "kmalloc", "--cases", "17"],
    ] {
        check_error(&run(args), 2);
    }
}

#[test]
fn a_run_is_drawn_into_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kmalloc.svg");
    let args = [
        "bench",
        "kmalloc",
        "--cases",
        "8,64",
        "--rounds",
        "1",
        "--policy",
        "hybrid,sheaves",
        "-q",
        "--plot",
        path.to_str().unwrap(),
    ];
    let text = stdout(&args);
    assert!(text.contains("hybrid"), "the table is there, too: {text}");
    let drawing = std::fs::read_to_string(&path).unwrap();
    for part in ["sheaves", "kmalloc: free", "medians of 1 rounds"] {
        assert!(drawing.contains(part), "{part}");
    }
    check_error(&run(&args), 1);
}
