//! `slabctl stat`: a command's effect on the caches, and its exit status.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::fs;
use std::process::Stdio;

use support::{check_error, run, skip, slabctl};

/// The document of a command, or nothing where the kernel's caches cannot be read.
fn document(args: &[&str]) -> Option<serde_json::Value> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stat.json");
    let mut command = slabctl();
    command.args(["stat", "--json", "-q", "--write"]).arg(&file);
    let run = support::finish({
        command.args(args);
        command
    });
    if run.code == Some(77) || run.code == Some(69) {
        return None;
    }
    Some(serde_json::from_slice(&fs::read(file).unwrap()).unwrap())
}

const UNREADABLE: &str = "the running kernel's slab data cannot be read";

#[test]
fn what_a_command_holds_while_it_runs_is_in_the_highest_figures() {
    // 400 open pipes: each has an inode and buffers of its own, gone at the end.
    let hold = "for i in $(seq 4 203); do eval \"exec $i<> <(:)\"; done; sleep 1";
    let Some(stat) = document(&["--all", "--interval", "100ms", "--", "bash", "-c", hold]) else {
        return skip(UNREADABLE);
    };
    assert_eq!(stat["schema"], "slabctl.stat/1");
    assert_eq!(stat["command"]["program"], "bash");
    assert!(stat["samples"].as_u64().unwrap() >= 5, "{stat}");
    let caches = stat["caches"].as_array().unwrap();
    assert!(caches.len() > 20);
    let mut rose = 0;
    for cache in caches {
        let highest = cache["highest"]["slabs"].as_u64();
        for side in ["before", "after"] {
            let slabs = cache["slabs"][side].as_u64();
            assert!(highest >= slabs, "{cache}");
        }
        rose += u64::from(highest > cache["slabs"]["before"].as_u64());
    }
    assert!(rose > 0, "nothing rose: {stat}");
}

#[test]
fn the_exit_status_is_the_commands() {
    if document(&["--", "true"]).is_none() {
        return skip(UNREADABLE);
    }
    let code = |command: &[&str]| {
        let mut all = vec!["stat", "-q", "--"];
        all.extend(command);
        run(&all).code
    };
    assert_eq!(code(&["true"]), Some(0));
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(137));
    let missing = run(&["stat", "--", "/no/such/program"]);
    assert_eq!(missing.code, Some(127));
    assert!(missing.stderr.contains("/no/such/program: No such file"));
}

#[test]
fn standard_output_is_the_commands_own() {
    let mut command = slabctl();
    command.args(["stat", "--", "echo", "hello"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    if output.status.code() == Some(77) {
        return skip(UNREADABLE);
    }
    assert_eq!(output.stdout, b"hello\n");
    let table = String::from_utf8(output.stderr).unwrap();
    assert!(table.contains("Highest"), "{table}");
    assert!(table.contains("echo ended in "), "{table}");
}

#[test]
fn a_source_that_does_not_change_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("made");
    let made = made.to_str().unwrap();
    let saved = "kernels/deb7.3-cloud.tar.xz";
    for args in [["--from", saved].as_slice(), &["--demo"]] {
        let mut all = vec!["stat"];
        all.extend(args);
        all.extend(["--", "touch", made]);
        check_error(&run(&all), 2);
        assert!(!fs::exists(made).unwrap());
    }
    // Nor over a file that is there.
    let file = dir.path().join("there");
    fs::write(&file, "x").unwrap();
    let there = file.to_str().unwrap();
    let refused = run(&["stat", "--write", there, "--", "touch", made]);
    assert_ne!(refused.code, Some(0));
    assert!(!fs::exists(made).unwrap());
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

#[test]
fn who_ends_it_ends_the_command_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let script = format!("echo $$ >{}; exec sleep 600", file.display());
    let mut command = slabctl();
    command.args(["stat", "-q", "--", "sh", "-c", &script]);
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(!status.success());
            return skip(UNREADABLE);
        }
        match fs::read_to_string(&file) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    };
    let id = child.id().to_string();
    let kill = std::process::Command::new("kill")
        .args(["-s", "TERM", &id])
        .status();
    assert!(kill.unwrap().success());
    // The command's end, by the rule of shells.
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
}

#[test]
fn the_caches_of_a_program_on_the_engine_begin_with_nothing() {
    support::library::library();
    let made = "import sys; x = [bytearray(700) for i in range(20000)]; del x";
    let args = [
        "--run", "--policy", "sheaves", "--all", "--", "python3", "-c", made,
    ];
    let stat = document(&args).unwrap();
    assert_eq!(stat["source"]["kind"], "process", "{}", stat["source"]);
    let caches = stat["caches"].as_array().unwrap();
    let cache = caches.iter().find(|c| c["name"] == "kmalloc-768").unwrap();
    assert_eq!(cache["objects"]["before"], 0, "{cache}");
    assert!(cache["slabs"]["after"].as_u64().unwrap() > 0, "{cache}");
    let count = |name: &str| cache["counters"][name]["delta"].as_u64().unwrap();
    let allocs = count("alloc_fastpath") + count("alloc_slowpath");
    assert!((20_000..40_000).contains(&allocs), "{allocs}");
    assert_eq!(count("order_fallback"), 0);
}

#[test]
fn a_program_that_cannot_be_looked_at_is_told() {
    support::library::library();
    let killed = run(&["stat", "--run", "--", "sh", "-c", "kill -9 $$"]);
    check_error(&killed, 137);
    let both = run(&["stat", "--run", "--paths", "--", "true"]);
    check_error(&both, 2);
}
