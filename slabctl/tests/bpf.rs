//! `--bpf` on this machine: the figures where programs may run, the reason where not.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use serde_json::Value;
use support::run;

const REFUSED: &str = "BPF is not used: ";

/// Every cache has figures of the programs, or one line says why none has.
#[test]
fn a_report_by_programs_says_so_or_says_why_not() {
    let run = run(&["report", "--bpf", "--json"]);
    if run.code != Some(0) {
        // Neither files nor programs: for root alone.
        assert_eq!(run.code, Some(77), "{}", run.stderr);
        return;
    }
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let caches = report["caches"].as_array().unwrap();
    let seen = |cache: &&Value| cache["sources"]["bpf"].is_array();
    let by_programs = caches.iter().filter(seen).count();
    let refused = run.stderr.contains(REFUSED);
    assert_eq!(refused, by_programs == 0, "{}", run.stderr);
    if refused {
        return;
    }
    assert_eq!(by_programs, caches.len());
    for cache in caches {
        let number = |name: &str| {
            cache[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {cache}"))
        };
        assert!(number("objects") <= number("total_objects"), "{cache}");
        assert!(number("parked") <= number("total_objects"), "{cache}");
        assert!(cache["occupancy"].is_array(), "{cache}");
    }
}

#[test]
fn a_page_tells_what_is_parked_and_how_full_slabs_are() {
    let run = run(&["show", "dentry", "--bpf"]);
    if run.code != Some(0) || run.stderr.contains(REFUSED) {
        support::skip(&format!("no BPF here: {}", run.stderr));
        return;
    }
    let page = run.stdout;
    for word in [
        "  Filling  ",
        "more are free and parked near CPUs",
        "From     bpf",
    ] {
        assert!(page.contains(word), "no {word:?} in:\n{page}");
    }
}

/// It is about the running kernel, and its figures are not those of the old tools.
#[test]
fn it_goes_with_the_running_kernel_alone() {
    for other in ["--from=x", "--root=/", "--demo", "--pid=1", "--core=x"] {
        assert_eq!(run(&["report", "--bpf", other]).code, Some(2), "{other}");
    }
    let tool = run(&["--bpf", "compat", "slabtop", "-o"]);
    assert_eq!(tool.code, Some(2), "{}", tool.stdout);
}
