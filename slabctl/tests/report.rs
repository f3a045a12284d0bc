//! `slabctl report` as its users run it: every mode, every form of output, on
//! saved files of real machines.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

#[path = "../src/output/check.rs"]
#[allow(dead_code, reason = "shared with the unit tests")]
mod check;

mod support;

use std::fs;

use serde_json::Value;
use support::{HOSTILE, NUMA, Run, assert_plain, error, json, names, run, stdout, write_tree};

/// Name of the golden file, options.
const MODES: [(&str, &[&str]); 17] = [
    ("list", &[]),
    ("all", &["--all"]),
    ("aliases", &["--aliases"]),
    ("names", &["--names"]),
    ("activity", &["--activity"]),
    ("numa", &["--numa"]),
    ("loss", &["--loss"]),
    ("partial", &["--partial"]),
    ("size", &["--size"]),
    ("unreclaimable", &["--unreclaimable"]),
    ("empty", &["--empty"]),
    ("totals", &["--totals"]),
    ("xtotals", &["--xtotals"]),
    ("detail", &["--detail", "kmalloc-64", "dentry"]),
    ("tracking", &["--tracking"]),
    ("families", &["--families"]),
    ("debug", &["--debug"]),
];

/// Standard output, then standard error.
fn both(run: &Run) -> String {
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_plain(&run.stdout);
    assert_plain(&run.stderr);
    format!("{}----\n{}", run.stdout, run.stderr)
}

#[test]
fn families_are_cut_after_they_are_made() {
    let kernel = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../collectors/tests/data/kernels/deb7.3-cloud.tar.xz"
    );
    let run = |more: &[&str]| {
        let mut command = support::with_clean_environment(std::process::Command::new(env!(
            "CARGO_BIN_EXE_slabctl"
        )));
        command.args(["report", "--families", "--csv", "-q", "--from", kernel]);
        let output = command.args(more).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let sizes = |text: &str| text.lines().filter(|l| l.contains(",all,")).count();
    assert_eq!(sizes(&run(&["-n", "2"])), 2);
    assert!(sizes(&run(&[])) > 8);
    // The figures of a family do not depend on how many are shown.
    let all = run(&[]);
    let two = run(&["-n", "2"]);
    assert!(all.starts_with(&two), "{two}");
}

#[test]
fn every_mode_on_a_whole_capture() {
    for (name, mode) in MODES {
        let mut command = support::slabctl();
        // From here the notes do not hold the path of this checkout.
        command.current_dir(std::path::Path::new(NUMA).parent().unwrap());
        command.args(["report", "--from", "numa2-stats.tar.xz"]);
        command.args(mode);
        insta::assert_snapshot!(format!("numa_{name}"), both(&support::finish(command)));
    }
}

#[test]
fn every_mode_on_a_bare_slabinfo() {
    for (name, mode) in MODES {
        let limit: &[&str] = match name {
            "totals" | "xtotals" | "families" => &[],
            _ => &["-n", "4"],
        };
        let from = ["report", "--from", "slabinfo/5.4-openstack.txt"];
        let args = [&from[..], mode, limit].concat();
        insta::assert_snapshot!(format!("slabinfo_{name}"), both(&run(&args)));
    }
}

#[test]
fn every_mode_gives_csv_with_one_header_and_even_rows() {
    for from in [NUMA, "slabinfo/5.4-openstack.txt", "text/slabtop-6.18.txt"] {
        for (name, mode) in MODES {
            let text = stdout(&[&["report", "--csv", "--from", from], mode].concat());
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let heads = reader.headers().unwrap().clone();
            assert!(!heads.is_empty(), "{name}");
            for (at, head) in heads.iter().enumerate() {
                let first = heads.iter().position(|h| h == head);
                assert_eq!(first, Some(at), "{name}: {head}");
            }
            for record in reader.records() {
                let record = record.unwrap_or_else(|e| panic!("{name}: {e}"));
                let marked = record.iter().any(|field| field.starts_with('~'));
                assert!(!marked, "{name}: {record:?}");
            }
        }
    }
}

#[test]
fn every_mode_gives_markdown_or_nothing() {
    for (name, mode) in MODES {
        let text = stdout(&[&["report", "-o", "md", "--from", NUMA], mode].concat());
        let bars = |line: &str| line.matches('|').count() - line.matches("\\|").count();
        let wanted = text.lines().next().map(bars);
        assert!(wanted.is_some_and(|n| n > 1), "{name}: {text}");
        for line in text.lines() {
            assert!(line.starts_with('|'), "{name}: {line}");
            assert_eq!(Some(bars(line)), wanted, "{name}: {line}");
        }
    }
}

#[test]
fn every_mode_gives_json_that_its_schema_allows() {
    let schema = |name| -> Value { serde_json::from_str(&stdout(&["schema", name])).unwrap() };
    let (report, cache) = (schema("report"), schema("cache"));
    for from in [NUMA, "slabinfo/4.18-coreos.txt", "text/oom-nas-nfsd.txt"] {
        for (name, mode) in MODES {
            let document = json(&[&["--from", from], mode].concat());
            let broken = check::errors(&report, &document);
            assert!(broken.is_empty(), "{name}: {broken:?}");
            assert_eq!(document["schema"], "slabctl.report/1");
            let args = [&["report", "-o", "jsonl", "--from", from], mode].concat();
            let lines = stdout(&args);
            let lines: Vec<Value> = lines
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            for line in &lines {
                let broken = check::errors(&cache, line);
                assert!(broken.is_empty(), "{name}: {broken:?}");
            }
            assert_eq!(Value::Array(lines), document["caches"], "{name}");
        }
    }
}

#[test]
fn the_answers_that_careful_readers_found() {
    for answer in support::answers::ANSWERS {
        let file = answer.file;
        let all = json(&["--from", file]);
        let caches = all["caches"].as_array().unwrap();
        assert_eq!(caches.len(), answer.caches, "{file}");
        let bytes = |cache: &Value| cache["memory_bytes"].as_u64().unwrap();
        let sum: u64 = caches.iter().map(bytes).sum();
        assert_eq!(sum, answer.total * 1024, "{file}");
        assert_eq!(all["totals"]["memory_bytes"], sum, "{file}");

        let top = json(&["--from", file, "--size", "-n", "3"]);
        let top: Vec<(&str, u64)> = names(&top)
            .into_iter()
            .zip(top["caches"].as_array().unwrap().iter().map(bytes))
            .collect();
        let wanted: Vec<_> = answer.top.iter().map(|(n, k)| (*n, k * 1024)).collect();
        assert_eq!(top, wanted, "{file}");

        let shown = stdout(&["report", "--from", file]).lines().count() - 1;
        assert_eq!(shown, answer.caches - answer.empty, "{file}");
        let empty = stdout(&["report", "--from", file, "--empty"])
            .lines()
            .count()
            - 1;
        assert_eq!(empty, answer.empty, "{file}");
    }
}

#[test]
fn three_quarters_of_a_billion_objects_are_counted_exactly() {
    let report = json(&["--from", "text/slabtop-coreos-ebitmap.txt", "-S", "-n", "1"]);
    let cache = &report["caches"][0];
    assert_eq!(cache["name"], "ebitmap_node");
    assert_eq!(cache["objects"], 734_506_368);
    assert_eq!(cache["memory_bytes"], 45_906_648_u64 * 1024);
}

#[test]
fn unknown_is_not_zero() {
    let from = ["--from", "text/crash-kmem-question-marks.txt"];
    let report = json(&[&from[..], &["kmalloc-512"]].concat());
    assert_eq!(report["caches"][0]["objects"], Value::Null);
    let text = stdout(&[&["report"], &from[..], &["kmalloc-512"]].concat());
    assert!(
        text.lines()
            .nth(1)
            .unwrap()
            .split_whitespace()
            .any(|w| w == "-")
    );
}

#[test]
fn a_cut_file_gives_its_rows_and_one_warning_with_its_place() {
    let file = "slabinfo/crlf-truncated.txt";
    let run = run(&["report", "--totals", "--from", file]);
    assert_eq!(run.code, Some(0));
    let warning = format!("slabctl: warning: {file}:61: truncated row, ignored");
    assert!(run.stderr.lines().any(|l| l == warning), "{}", run.stderr);
    assert!(run.stderr.contains("not complete"), "{}", run.stderr);
    let report = json(&["--from", file]);
    let warnings = report["warnings"].as_array().unwrap();
    let cut = warnings.iter().find(|w| w["code"] == "truncated").unwrap();
    assert_eq!(cut["line"], 61);
}

#[test]
fn the_sum_is_compared_with_meminfo() {
    let dir = tempfile::tempdir().unwrap();
    let slabinfo = fs::read_to_string(support::data("slabinfo/two-nodes-128g.txt")).unwrap();
    let meminfo = "MemTotal: 132000000 kB\nSlab:            1452008 kB\n";
    write_tree(
        dir.path(),
        &[("proc/slabinfo", &slabinfo), ("proc/meminfo", meminfo)],
    );
    let from = dir.path().to_str().unwrap();
    let text = stdout(&["report", "--totals", "--bytes", "--from", from]);
    let line = text
        .lines()
        .find(|l| l.starts_with("meminfo Slab "))
        .unwrap();
    assert!(line.contains(&(1_452_008_u64 * 1024).to_string()), "{line}");
    assert!(line.ends_with("difference 0"), "{line}");
    assert!(
        text.lines()
            .any(|l| l.starts_with("caches, empty") && l.ends_with("50")),
        "{text}"
    );
    // Sums of a choice are not the kernel's.
    let text = stdout(&["report", "--totals", "--from", from, "dentry"]);
    assert!(!text.contains("meminfo"), "{text}");
}

/// First words of the lines below the heading.
fn first_words(args: &[&str]) -> Vec<String> {
    let text = stdout(&[&["report", "-q", "--from", NUMA], args].concat());
    let words = text
        .lines()
        .skip(1)
        .filter_map(|l| l.split_whitespace().next());
    words.map(str::to_owned).collect()
}

#[test]
fn sorting_turning_and_limits() {
    assert_eq!(
        first_words(&["-s", "objects", "-n", "2"]),
        ["dentry", "kernfs_node_cache"]
    );
    assert_eq!(
        first_words(&["-s", "objects", "-r", "-n", "2"]),
        ["Acpi-State", "signal_cache"]
    );
    assert_eq!(first_words(&["-n", "1"]), ["Acpi-State"]);
    assert_eq!(first_words(&["-r", "-n", "1"]), ["vmap_area"]);
    // Hidden caches do not count, and -z brings them back.
    assert_eq!(
        first_words(&["-s", "slabs", "-r", "-n", "1"]),
        ["Acpi-State"]
    );
    assert_eq!(
        first_words(&["-s", "slabs", "-r", "-n", "1", "-z"]),
        ["ip6-frags"]
    );
    // Lines of --names are names, whichever way they are sorted.
    assert_eq!(
        first_words(&["--names", "-n", "2"]),
        ["Acpi-Operand", "Acpi-ParseExt"]
    );
    assert_eq!(
        first_words(&["--names", "-s", "size", "-n", "1"]),
        ["shmem_inode_cache"]
    );
    // Two merged caches, not the merged among the first two caches.
    assert_eq!(
        first_words(&["--aliases", "-n", "2"]),
        [":0000080", ":A-0000192"]
    );
    let args = ["--from", NUMA, "--names", "-n", "2"];
    assert_eq!(names(&json(&args)), ["Acpi-State", "anon_vma"]);
}

#[test]
fn filters_and_patterns() {
    assert_eq!(
        first_words(&["--filter", "size>1M and reclaim=no"]),
        ["kernfs_node_cache", "shmem_inode_cache"]
    );
    assert_eq!(
        first_words(&["kmalloc-{8,64}"]),
        ["kmalloc-64", "kmalloc-8"]
    );
    assert_eq!(
        first_words(&["/^kmalloc/", "--filter", "not name~cg"]).len(),
        3
    );
    // A merged cache is found by each of its names and by its id, not by the
    // size in its id.
    for pattern in ["UNIX", "signal_cache", ":A-0000960", "/^PING$/"] {
        assert_eq!(first_words(&[pattern]), ["signal_cache"], "{pattern}");
    }
    assert!(first_words(&["*960*"]).is_empty());
    assert_eq!(first_words(&["--names", "UNIX*"]), ["UNIX", "UNIX-STREAM"]);
    let run = run(&["report", "--from", NUMA, "cred"]);
    let note = "slabctl: cred is merged into kmalloc-cg-192";
    assert!(run.stderr.lines().any(|l| l == note), "{}", run.stderr);
}

#[test]
fn nothing_found_is_said_with_the_reason() {
    for (args, part) in [
        (&["dnetry"][..], "did you mean dentry?"),
        (
            &["--filter", "slabs>1G"],
            "no cache of 16 passes the filter",
        ),
    ] {
        let run = run(&[&["report", "--from", NUMA], args].concat());
        assert_eq!(run.code, Some(0));
        assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
    let run = run(&["report", "--from", NUMA, "dentry", "--filter", "slabs>1G"]);
    assert!(!run.stderr.contains("did you mean"), "{}", run.stderr);
    let run = support::run(&["report", "-U", "--from", "slabinfo/5.4-openstack.txt"]);
    assert!(
        run.stderr.contains("reclaim is not in this source"),
        "{}",
        run.stderr
    );
}

#[test]
fn columns_are_chosen_added_and_never_left_out_then() {
    let head = |args: &[&str]| {
        let from = ["report", "--from", "slabinfo/5.4-openstack.txt", "-n", "1"];
        let text = stdout(&[&from[..], args].concat());
        text.lines().next().unwrap_or_default().to_owned()
    };
    let own = head(&[]);
    assert!(own.contains("Slot") && !own.contains("Part"), "{own}");
    assert_eq!(head(&["-c", "name,partial"]), "Name          Part");
    assert_eq!(head(&["-c", "+flags"]), format!("{own}  Flg"));
    let added = head(&["-c", "+partial,+name"]);
    assert_eq!(added.matches("Part").count(), 1, "{added}");
    assert_eq!(added.matches("Name").count(), 1, "{added}");
    // A program gets the same columns from every source.
    let csv = |from| stdout(&["report", "--csv", "--from", from]);
    let (few, many) = (csv("slabinfo/5.4-openstack.txt"), csv(NUMA));
    assert_eq!(few.lines().next(), many.lines().next());
}

#[test]
fn sizes_are_scaled_as_asked() {
    let size = |args: &[&str]| {
        let from = [
            "report",
            "--from",
            NUMA,
            "kernfs_node_cache",
            "-c",
            "memory",
        ];
        let text = stdout(&[&from[..], args].concat());
        text.lines().nth(1).unwrap_or_default().trim().to_owned()
    };
    assert_eq!(size(&[]), "1.57M");
    assert_eq!(size(&["--si"]), "1.64MB");
    assert_eq!(size(&["--bytes"]), "1642496");
}

#[test]
fn the_same_file_gives_the_same_bytes() {
    for form in ["json", "jsonl", "csv", "table", "md"] {
        let args = ["report", "--from", NUMA, "-o", form];
        assert_eq!(stdout(&args), stdout(&args));
    }
}

#[test]
fn namesakes_stay_apart_and_large_numbers_exact() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slabinfo");
    let big = "18446744073709551615";
    let row = |n: &str| format!("mlx5_fs_ftes {n} {n} 64 64 1 : tunables 0 0 0 : slabdata 3 3 0\n");
    let text = format!(
        "slabinfo - version: 2.1\n# name <active_objs> <num_objs>\n{}{}",
        row(big),
        row("7")
    );
    fs::write(&path, text).unwrap();
    let report = json(&["--from", path.to_str().unwrap()]);
    let objects: Vec<_> = report["caches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["objects"].clone())
        .collect();
    assert_eq!(objects, [Value::from(u64::MAX), Value::from(7)]);
    let text = stdout(&["report", "--from", path.to_str().unwrap()]);
    assert_eq!(text.matches("mlx5_fs_ftes").count(), 2, "{text}");
    assert!(text.contains(big), "{text}");
}

#[test]
fn call_sites_of_a_tracked_cache() {
    let dir = tempfile::tempdir().unwrap();
    let text = |name: &str| fs::read_to_string(support::data(name)).unwrap();
    let (alloc, free) = (
        "text/alloc_traces-cred-6.12.txt",
        "text/free_traces-cred-6.12.txt",
    );
    write_tree(
        dir.path(),
        &[
            ("sys/kernel/slab/cred/object_size", "184\n"),
            ("sys/kernel/slab/cred/store_user", "1\n"),
            ("sys/kernel/debug/slab/cred/alloc_traces", &text(alloc)),
            ("sys/kernel/debug/slab/cred/free_traces", &text(free)),
        ],
    );
    let from = dir.path().to_str().unwrap();
    let table = stdout(&["report", "--tracking", "--from", from]);
    assert!(table.starts_with("cred\n  allocated by:\n"), "{table}");
    assert!(table.contains("prepare_creds"), "{table}");
    let csv = stdout(&["report", "--tracking", "--csv", "--from", from]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let kinds: Vec<String> = reader.records().map(|r| r.unwrap()[1].to_owned()).collect();
    assert!(kinds.iter().any(|k| k == "alloc") && kinds.iter().any(|k| k == "free"));

    fs::remove_dir_all(dir.path().join("sys/kernel/debug")).unwrap();
    let run = run(&["report", "--tracking", "--from", from]);
    assert!(
        run.stderr.contains("recorded, but not in this source"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_hostile_name_commands_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slabinfo");
    fs::write(&path, HOSTILE).unwrap();
    let from = path.to_str().unwrap();
    for form in ["table", "md", "json", "jsonl"] {
        let run = run(&["report", "--from", from, "-o", form]);
        assert_eq!(run.code, Some(0));
        assert!(run.stdout.contains("title"), "{form}: {}", run.stdout);
        assert_plain(&run.stdout);
        assert_plain(&run.stderr);
    }
    for mode in ["--names", "--detail", "--totals", "--debug", "--aliases"] {
        assert_plain(&both(&run(&["report", "--from", from, mode])));
    }
}

#[test]
fn wrong_options_are_explained_in_one_line() {
    for (args, part) in [
        (&["/[/"][..], "bad regex"),
        (&["--columns", "objcts"], "did you mean objects"),
        (&["--sort", "nosuch"], "no column \"nosuch\""),
        (&["--filter", "size>"], "lacks a value"),
        (&["--filter", "sise>1M"], "did you mean"),
        (&["--filter", "(a"], "unclosed parenthesis"),
        (&["--totals", "--columns", "name"], "--columns"),
        (&["--top", "0"], "--top 0"),
        (&["--watch"], "--watch needs a live source"),
    ] {
        let message = error(&[&["report", "--from", NUMA], args].concat(), 2);
        assert!(message.contains(part), "{args:?}: {message}");
    }
    let run = run(&["report", "--aliases", "--activity"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("cannot be used with"), "{}", run.stderr);
}
