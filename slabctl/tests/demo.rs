//! `--demo`: everything works without rights and without a kernel to read.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

#[path = "../src/output/check.rs"]
#[expect(dead_code, reason = "the schema itself is checked where it is made")]
mod check;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Run, check_error, error, finish, json, names, run, stdout, with_clean_environment};

const NOTE: &str = "slabctl: note: figures are of the built-in engine under a demonstration load, not of this machine";

/// Runs it, and fails when it takes long beyond the time it has to wait.
fn quick(args: &[&str], wait: Duration) -> Run {
    let start = Instant::now();
    let run = run(args);
    let took = start.elapsed();
    assert!(took < wait + Duration::from_secs(2), "{args:?}: {took:?}");
    run
}

/// What the engine does not tell, and that one cache is debugged on purpose.
fn expected(warning: &Value) -> bool {
    let about = |part| warning["message"].as_str().unwrap().contains(part);
    warning["code"] == "not-in-source" || warning["code"] == "note" && about("demo_handle")
}

fn valid(name: &str, text: &str) -> Value {
    let document = serde_json::from_str(text).unwrap();
    let schema = serde_json::from_str(&stdout(&["schema", name])).unwrap();
    assert_eq!(check::errors(&schema, &document), Vec::<String>::new());
    document
}

#[test]
fn the_report_is_there_at_once_and_says_that_it_is_no_machine() {
    let run = quick(&["report", "--demo"], Duration::ZERO);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.starts_with("Name "), "{}", run.stdout);
    for name in ["demo_leak", "demo_fragmented", "demo_sheaves", "kmalloc-96"] {
        assert!(run.stdout.contains(name), "{name}: {}", run.stdout);
    }
    assert_eq!(run.stderr.lines().next(), Some(NOTE));
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    let quiet = quick(&["report", "--demo", "-q"], Duration::ZERO);
    assert_eq!((quiet.code, &*quiet.stderr), (Some(0), ""));
}

#[test]
fn every_mode_of_the_report_works() {
    for mode in [
        "--aliases",
        "--names",
        "--activity",
        "--numa",
        "--loss",
        "--partial",
        "--size",
        "--unreclaimable",
        "--empty",
        "--totals",
        "--xtotals",
        "--detail",
        "--tracking",
        "--families",
        "--debug",
    ] {
        let run = quick(&["report", "--demo", mode], Duration::ZERO);
        assert_eq!(run.code, Some(0), "{mode}: {}", run.stderr);
        assert!(!run.stderr.contains("warning"), "{mode}: {}", run.stderr);
    }
}

#[test]
fn the_document_names_the_source_and_follows_its_schema() {
    let document = valid("report", &stdout(&["report", "--demo", "--json", "-q"]));
    assert_eq!(document["source"]["kind"], "demo");
    assert_eq!(document["source"]["layers"][0]["layer"], "engine");
    assert_ne!(document["generated_at"], Value::Null);
    // Nothing odd; only what the engine does not tell.
    let warnings = document["warnings"].as_array().unwrap();
    assert!(warnings.iter().all(expected), "{warnings:?}");
    let kernel = document["system"]["kernel"].as_str().unwrap();
    assert!(kernel.starts_with("slabcore "), "{kernel}");
    let caches = document["caches"].as_array().unwrap();
    assert_eq!(caches.len(), 16);
    for cache in caches {
        assert_eq!(cache["approx"], Value::Array(Vec::new()), "{cache}");
    }
}

#[test]
fn a_policy_can_be_chosen_by_name() {
    let capacity = |option| {
        let report = json(&[option, "-q", "demo_session"]);
        assert_eq!(names(&report), ["demo_session"]);
        report["caches"][0]["limits"]["sheaf_capacity"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(capacity("--demo=classic"), 0);
    assert!(capacity("--demo=hybrid") > 0);
    assert_eq!(run(&["report", "--demo=slob"]).code, Some(2));
    // A word after it is a pattern, not a policy.
    assert_eq!(names(&json(&["--demo", "demo_idle"])), ["demo_idle"]);
}

#[test]
fn a_page_on_a_cache() {
    let run = quick(&["show", "demo_message", "--demo"], Duration::ZERO);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for part in [
        "demo_message\n",
        "Main sheaf",
        "Barn full",
        "alloc_fastpath",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    // The engine knows what is in use; the boot options are not its own.
    assert!(!run.stdout.contains("parked"), "{}", run.stdout);
    assert!(!run.stdout.contains("slab_debug"), "{}", run.stdout);
    let message = error(&["show", "demo_leek", "--demo", "-q"], 4);
    assert!(message.contains("did you mean demo_leak"), "{message}");
}

#[test]
fn the_leak_grows_between_two_looks() {
    let args = ["diff", "--demo", "--interval", "1s", "--json", "-q"];
    let run = quick(&args, Duration::from_secs(1));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let document = valid("diff", &run.stdout);
    // Nothing odd; only what the engine does not tell.
    let warnings = document["warnings"].as_array().unwrap();
    assert!(warnings.iter().all(expected), "{warnings:?}");
    let rows = document["caches"].as_array().unwrap();
    let leak = rows.iter().find(|row| row["name"] == "demo_leak").unwrap();
    let grown = leak["objects"]["delta"].as_i64().unwrap();
    assert!(grown > 0, "{leak}");
    assert!(
        rows.iter()
            .all(|row| row["name"] != "demo_fragmented" || { row["objects"]["delta"] == 0 })
    );
}

#[test]
fn it_can_be_watched() {
    let args = [
        "report",
        "--demo",
        "-q",
        "--watch",
        "100ms",
        "--count",
        "2",
        "demo_leak",
    ];
    let run = quick(&args, Duration::ZERO);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout.matches("\ndemo_leak ").count(), 2);
}

#[test]
fn the_other_tools_can_look_at_it() {
    let table = stdout(&["--demo", "-q", "compat", "slabtop", "-o"]);
    assert!(table.contains("demo_session"), "{table}");
    let list = stdout(&["--demo", "-q", "compat", "slabinfo"]);
    assert!(list.contains("demo_session"), "{list}");
}

#[test]
fn validation_finds_nothing_under_load() {
    let run = quick(&["validate", "--demo"], Duration::ZERO);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let line = run.stdout.strip_prefix("16 caches, ").unwrap();
    // What moved all the time is told behind it.
    assert!(line.contains("while the load ran: no findings"), "{line}");
    let text = stdout(&["validate", "--demo=hybrid", "--json", "-q"]);
    let document = valid("validate", &text);
    assert_eq!(document["clean"], true);
    assert!(document["slabs"].as_u64() > Some(100));
    let table = stdout(&["validate", "--demo", "--csv", "-q"]);
    assert_eq!(table.lines().count(), 1, "{table}");
}

#[test]
fn what_cannot_be_validated_is_said() {
    let saved = ["validate", "--from", "slabinfo/three-rows.txt"];
    let message = error(&saved, 69);
    assert!(message.contains("only a running kernel"), "{message}");
    assert!(message.contains("hint: slabctl validate --demo"));
}

#[test]
fn where_the_engine_means_nothing_it_is_refused() {
    for (args, part) in [
        (&["doctor"][..], "neither"),
        (&["capture", "x.tar"], "no files to save"),
        (&["diff", "slabinfo/three-rows.txt"], "give --interval"),
        (&["validate", "-o", "jsonl"], "use --json"),
        (&["validate", "dentry"], "check all caches"),
    ] {
        let message = error(&[args, &["--demo"]].concat(), 2);
        assert!(message.contains(part), "{message}");
    }
    for other in [["--from", "x"], ["--root", "x"]] {
        let args = [&["report", "--demo"], &other[..]].concat();
        assert_eq!(run(&args).code, Some(2));
    }
}

#[test]
fn a_kernel_that_cannot_be_read_leads_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_str().unwrap();
    for command in [&[][..], &["report"], &["show", "dentry"]] {
        let message = error(&[command, &["--root", root]].concat(), 69);
        let hint = "hint: or try it on the built-in engine: slabctl report --demo";
        assert!(message.contains(hint), "{message}");
    }
}

#[test]
fn a_user_without_rights_can_use_it() {
    if !rustix::process::geteuid().is_root()
        || Command::new("setpriv").arg("--version").output().is_err()
    {
        return support::skip("only root can become nobody, and needs setpriv");
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("slabctl");
    fs::copy(env!("CARGO_BIN_EXE_slabctl"), &program).unwrap();
    for path in [dir.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let nobody = |args: &[&str]| {
        let mut command = with_clean_environment(Command::new("setpriv"));
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(&program).args(args).current_dir(dir.path());
        finish(command)
    };
    for args in [&["report"][..], &["show", "demo_leak"], &["validate"]] {
        let run = nobody(&[args, &["--demo"]].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.contains('1'), "{}", run.stdout);
    }
    if std::path::Path::new("/sys/kernel/slab").exists() {
        let run = nobody(&[]);
        check_error(&run, 77);
        assert!(
            run.stderr.contains("slabctl report --demo"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_look_into_caches_is_a_map_rows_or_one_object() {
    let all = quick(&["dump", "--demo"], Duration::ZERO);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    assert!(all.stdout.starts_with("# allocated "), "{}", all.stdout);
    assert!(
        all.stderr
            .contains("slabs are left out (--slabs N shows more)")
    );
    let text = stdout(&["dump", "--demo", "-q", "demo_handle"]);
    assert!(
        text.contains("\ndemo_handle: debug FZPU, object 96, slot "),
        "{text}"
    );
    assert!(text.contains(": 20 allocated, "), "{text}");
    let map = text
        .lines()
        .find_map(|line| line.strip_prefix("      0 "))
        .unwrap();
    assert!(map.starts_with('#') && map.contains('.'), "{text}");
    let rows = stdout(&["dump", "--demo", "-q", "demo_handle", "--objects", "--csv"]);
    assert!(
        rows.starts_with("cache,slab,object,address,state,"),
        "{rows}"
    );
    let live: Vec<_> = rows
        .lines()
        .skip(1)
        .filter(|line| line.contains(",allocated,"))
        .collect();
    assert_eq!(live.len(), 20, "{rows}");
    assert!(live.iter().all(|line| line.contains(",thread ")), "{rows}");
    let one = stdout(&["dump", "--demo", "-q", "demo_handle", "--object", "0"]);
    for part in [
        "\nallocated ",
        "\n  slabctl+0x",
        "\nleft red zone ",
        " cc cc cc cc",
        "\nalloc track ",
    ] {
        assert!(one.contains(part), "{part}: {one}");
    }
    let table = stdout(&["dump", "--demo=hybrid", "-q", "demo_session", "-o", "md"]);
    assert!(table.starts_with("| Cache "), "{table}");
}

#[test]
fn a_dump_as_a_document_is_bounded_and_adds_up() {
    let text = stdout(&["dump", "--demo", "--json", "-q", "--slabs", "3"]);
    let document = valid("dump", &text);
    let caches = document["caches"].as_array().unwrap();
    assert_eq!(caches.len(), 16);
    let mut cut = 0;
    for cache in caches {
        assert_eq!(cache["exact"], true, "{}", cache["name"]);
        assert_eq!(cache["objects"], cache["places"]["allocated"]);
        let shown = cache["slabs"].as_array().unwrap().len() as u64;
        assert!(shown <= 3);
        cut += cache["slabs_total"].as_u64().unwrap() - shown;
    }
    assert_eq!(document["cut_slabs"], cut);
}

#[test]
fn what_cannot_be_looked_into_is_said() {
    let message = error(&["dump"], 2);
    assert!(message.contains("needs a cache, or --demo"), "{message}");
    let message = error(&["dump", "--demo", "-q", "no_such"], 4);
    assert!(message.contains("no cache matches no_such"), "{message}");
    let message = error(
        &["dump", "--demo", "-q", "demo_idle", "--object", "99:0"],
        4,
    );
    assert!(message.contains("no such object"), "{message}");
    assert_eq!(run(&["dump", "--demo", "--object", "x"]).code, Some(2));
}
