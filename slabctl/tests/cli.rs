//! The program as a whole: failures, terminals, pipes, users without rights,
//! help, manual pages, completions.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{
    NUMA, Run, assert_plain, check_error, error, finish, run, skip, slabctl, stdout,
    with_clean_environment, write_tree,
};

const SLAB: &str = "/sys/kernel/slab";

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("Uid:"));
    line.is_some_and(|l| l.split_whitespace().nth(2) == Some("0"))
}

fn has(program: &str) -> bool {
    let probe = Command::new(program).arg("--version").output();
    probe.is_ok_and(|output| output.status.success())
}

#[test]
fn what_cannot_be_read_is_named_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("empty")).unwrap();
    fs::write(at("nothing"), "").unwrap();
    fs::write(at("prose"), "Nothing about memory.\n".repeat(50)).unwrap();
    let garbage: Vec<u8> = (0u32..50_000)
        .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    fs::write(at("garbage"), garbage).unwrap();
    let sparse = fs::File::create(at("sparse")).unwrap();
    sparse.set_len(5 << 30).unwrap();
    let gz = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4];
    fs::write(at("broken.gz"), gz).unwrap();
    for name in [
        "missing",
        "empty",
        "nothing",
        "prose",
        "garbage",
        "sparse",
        "broken.gz",
    ] {
        let path = at(name);
        let message = error(&["report", "--from", path.to_str().unwrap()], 1);
        assert!(message.contains(name), "{message}");
        assert_plain(&message);
    }
}

#[test]
fn a_root_without_slab_data_is_a_source_that_is_not_available() {
    let dir = tempfile::tempdir().unwrap();
    let message = error(&["report", "--root", dir.path().to_str().unwrap()], 69);
    assert!(message.contains("hint: slabctl doctor"), "{message}");
}

/// A block of a tar file with one member.
fn member(name: &str, body: &str) -> Vec<u8> {
    let mut block = vec![0u8; 512];
    let mut put =
        |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(124, &format!("{:011o}\0", body.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend_from_slice(body.as_bytes());
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

#[test]
fn an_archive_cannot_reach_outside_itself() {
    let dir = tempfile::tempdir().unwrap();
    let row = |name: &str| format!("{name} 1 64 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n");
    let good = format!("slabinfo - version: 2.1\n{}", row("good"));
    let evil = format!("slabinfo - version: 2.1\n{}", row("evil"));
    let tar = [
        member("../../proc/slabinfo", &evil),
        member("proc/slabinfo", &good),
        member("proc/../../x\x1b[2J", "x"),
        vec![0; 1024],
    ]
    .concat();
    let path = dir.path().join("capture.tar");
    fs::write(&path, tar).unwrap();
    let run = run(&["report", "--from", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("good") && !run.stdout.contains("evil"));
    assert_plain(&run.stderr);
}

#[test]
fn standard_input_is_a_source() {
    let mut command = slabctl();
    command.args(["report", "--csv", "--from", "-"]);
    let input = fs::File::open(NUMA).unwrap();
    let output = command.stdin(input).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, stdout(&["report", "--csv", "--from", NUMA]));
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slabinfo");
    let row = "cache 7 64 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n";
    let rows = row.repeat(20_000);
    fs::write(&path, format!("slabinfo - version: 2.1\n{rows}")).unwrap();
    for form in ["table", "csv", "json", "jsonl", "md"] {
        let mut child = slabctl()
            .args(["report", "-q", "-o", form, "--from", path.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut reader = BufReader::with_capacity(64, child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        drop(reader);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{form}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{form}");
    }
}

#[test]
fn colour_is_for_terminals_and_those_who_ask() {
    let escapes = |args: &[&str], environment: &[(&str, &str)]| {
        let mut command = slabctl();
        command
            .args(["report", "--from", NUMA, "-n", "1"])
            .args(args);
        command.envs(environment.iter().copied());
        finish(command).stdout.contains('\x1b')
    };
    assert!(!escapes(&[], &[]));
    assert!(escapes(&["--color", "always"], &[]));
    assert!(escapes(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!escapes(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!escapes(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!escapes(&["--csv", "--color", "always"], &[]));
}

#[test]
fn a_pipe_is_not_cut_to_a_width() {
    let mut command = slabctl();
    command
        .args(["report", "--from", NUMA])
        .env("COLUMNS", "20");
    assert_eq!(finish(command).stdout, stdout(&["report", "--from", NUMA]));
}

/// Runs the program on a terminal with so many columns.
fn on_terminal(columns: u32, terminal: &str, arguments: &str) -> Option<String> {
    if !has("script") {
        skip("script of util-linux is not here");
        return None;
    }
    let program = env!("CARGO_BIN_EXE_slabctl");
    let line = format!("stty cols {columns}; {program} {arguments}");
    let mut command = with_clean_environment(Command::new("script"));
    command
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", terminal);
    let run = finish(command);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    Some(run.stdout.replace('\r', ""))
}

#[test]
fn a_narrow_terminal_loses_whole_columns_and_says_which() {
    let arguments = format!("report --from {NUMA} -n 3");
    let Some(text) = on_terminal(60, "xterm", &arguments) else {
        return;
    };
    assert!(text.contains('\x1b'), "headings are bold: {text}");
    let plain = text.replace("\x1b[1m", "").replace("\x1b[0m", "");
    let table: Vec<&str> = plain.lines().take(4).collect();
    assert!(
        table[0].starts_with("Name ") && !table[0].contains("%Ef"),
        "{plain}"
    );
    assert!(
        table.iter().all(|line| line.chars().count() <= 60),
        "{plain}"
    );
    let note = plain
        .lines()
        .find(|l| l.contains("too narrow for"))
        .unwrap();
    assert!(note.contains("%Ef") && note.contains("--columns"), "{note}");

    let wide = on_terminal(200, "dumb", &arguments).unwrap();
    assert_plain(&wide);
    assert!(wide.lines().next().unwrap().contains("%Ef"), "{wide}");
}

/// The smallest tree that a live report can be had from.
fn live_tree(root: &Path) {
    let cache = |file: &str| format!("sys/kernel/slab/demo/{file}");
    let figures = [
        ("object_size", "64\n"),
        ("slab_size", "64\n"),
        ("objs_per_slab", "64\n"),
        ("order", "0\n"),
        ("objects", "100 N0=100\n"),
        ("total_objects", "128 N0=128\n"),
        ("slabs", "2 N0=2\n"),
        ("partial", "1 N0=1\n"),
        ("cpu_slabs", "0\n"),
        ("reclaim_account", "0\n"),
    ];
    for (file, text) in figures {
        write_tree(root, &[(&cache(file), text)]);
    }
}

#[test]
fn watching_into_a_pipe_appends_blocks_with_their_time() {
    let dir = tempfile::tempdir().unwrap();
    live_tree(dir.path());
    let root = dir.path().to_str().unwrap();
    let text = stdout(&["report", "--root", root, "--watch=50ms", "--count", "2"]);
    assert_plain(&text);
    let blocks: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(blocks.len(), 2, "{text}");
    for block in blocks {
        let lines: Vec<&str> = block.trim_end().lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let time = jiff::Timestamp::strptime("%Y-%m-%d %H:%M:%S %z", lines[0]);
        assert!(time.is_ok(), "{}", lines[0]);
        assert!(lines[2].starts_with("demo"), "{text}");
    }
    for (args, part) in [
        (&["--root", root, "--watch=soon"][..], "is no time"),
        (&["--root", root, "--watch=1e19"], "is no time"),
        (
            &["--root", root, "--watch", "--count", "0"],
            "would show nothing",
        ),
        (&["--from", NUMA, "--watch"], "live source"),
    ] {
        let message = error(&[&["report"], args].concat(), 2);
        assert!(message.contains(part), "{message}");
    }
}

/// Runs a copy of the program, which anybody may execute, as a user without rights.
fn as_nobody(dir: &Path, args: &[&str]) -> Run {
    let program = dir.join("slabctl");
    if !program.exists() {
        fs::copy(env!("CARGO_BIN_EXE_slabctl"), &program).unwrap();
    }
    for path in [dir, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = with_clean_environment(Command::new("setpriv"));
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(program).args(args).current_dir(dir);
    finish(command)
}

/// A place that users without rights can get at.
fn public_dir() -> Option<tempfile::TempDir> {
    if is_root() && has("setpriv") {
        return Some(tempfile::tempdir().unwrap());
    }
    skip("only root can run as somebody else, and needs setpriv");
    None
}

#[test]
fn without_rights_the_live_kernel_is_refused_with_a_way_out() {
    let Some(dir) = public_dir() else { return };
    if !Path::new(SLAB).exists() {
        return skip("no /sys/kernel/slab here");
    }
    for command in [&[][..], &["report"], &["show", "dentry"]] {
        let run = as_nobody(dir.path(), command);
        check_error(&run, 77);
        assert!(run.stderr.contains("sudo"), "{}", run.stderr);
        assert!(run.stderr.contains("--from FILE"), "{}", run.stderr);
        let memory = "from /proc/meminfo, which anybody may read: Slab ";
        assert!(run.stderr.contains(memory), "{}", run.stderr);
    }
}

#[test]
fn without_rights_saved_files_work_and_closed_ones_are_named() {
    let Some(dir) = public_dir() else { return };
    let saved = dir.path().join("saved.tar.xz");
    fs::copy(NUMA, &saved).unwrap();
    fs::set_permissions(&saved, fs::Permissions::from_mode(0o644)).unwrap();
    for args in [
        &["report", "--from", "saved.tar.xz", "-S"][..],
        &["report", "--from", "saved.tar.xz", "--totals"],
        &["show", "cred", "--from", "saved.tar.xz"],
    ] {
        let run = as_nobody(dir.path(), args);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.lines().count() > 5);
    }
    fs::set_permissions(&saved, fs::Permissions::from_mode(0o600)).unwrap();
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["saved.tar.xz", "closed"] {
        let run = as_nobody(dir.path(), &["report", "--from", name]);
        check_error(&run, 77);
        assert!(run.stderr.contains(name), "{}", run.stderr);
    }
}

#[test]
fn the_program_alone_gives_the_report() {
    let plain = stdout(&["--from", NUMA]);
    assert_eq!(plain, stdout(&["report", "--from", NUMA]));
    assert_eq!(
        stdout(&["--from", NUMA, "--csv"]),
        stdout(&["report", "--csv", "--from", NUMA])
    );
    if is_root() && Path::new(SLAB).exists() {
        assert!(stdout(&[]).starts_with("Name "));
    } else {
        skip("the live report needs root and /sys/kernel/slab");
    }
}

#[test]
fn help_shows_by_example() {
    assert!(stdout(&["-V"]).starts_with("slabctl "));
    assert!(stdout(&["--help"]).contains("Exit status: 0 done"));
    for command in ["report", "show", "diff", "capture"] {
        for option in ["-h", "--help"] {
            let text = stdout(&[command, option]);
            assert!(text.contains("Examples:\n  slabctl "), "{command} {option}");
        }
    }
    let run = run(&["frobnicate"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("frobnicate"), "{}", run.stderr);
}

#[test]
fn the_columns_are_listed_with_their_meaning() {
    let text = stdout(&["report", "--list-columns", "--csv"]);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let keys: Vec<String> = reader
        .records()
        .map(|r| {
            let record = r.unwrap();
            assert!(record.iter().all(|field| !field.is_empty()), "{record:?}");
            record[0].to_owned()
        })
        .collect();
    assert!(keys.len() > 40);
    // Each can be asked for.
    let args = ["report", "--from", NUMA, "--csv", "-c", &keys.join(",")];
    let header = stdout(&args);
    assert_eq!(header.lines().next().unwrap(), keys.join(","));
}

#[test]
fn a_manual_page_for_each_command() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("man1");
    stdout(&["man", path.to_str().unwrap()]);
    let mut pages: Vec<PathBuf> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    pages.sort();
    for command in ["", "-report", "-show", "-diff", "-capture", "-doctor"] {
        let page = path.join(format!("slabctl{command}.1"));
        assert!(pages.contains(&page), "{}", page.display());
    }
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let request = text.lines().find(|line| line.starts_with(".TH "));
        assert!(request.is_some(), "{}", page.display());
        assert!(text.contains("EXIT STATUS"), "{}", page.display());
    }
    assert!(stdout(&["man"]).contains(".TH slabctl 1"));
    let message = error(&["man", "/proc/nowhere"], 1);
    assert!(message.contains("/proc/nowhere"), "{message}");
}

#[test]
fn completions_offer_the_caches_there_are() {
    for shell in ["bash", "zsh", "fish", "elvish"] {
        assert!(
            stdout(&["completions", shell]).contains("COMPLETE"),
            "{shell}"
        );
    }
    assert_eq!(run(&["completions", "dos"]).code, Some(2));
    if !Path::new(SLAB).exists() {
        return skip("no /sys/kernel/slab here");
    }
    let mut command = slabctl();
    command
        .envs([
            ("COMPLETE", "bash"),
            ("_CLAP_COMPLETE_INDEX", "2"),
            ("_CLAP_IFS", "\n"),
        ])
        .args(["--", "slabctl", "show", "kmalloc-1"]);
    let offered = finish(command).stdout;
    assert!(offered.lines().count() > 0);
    for name in offered.lines() {
        assert!(name.starts_with("kmalloc-1"), "{name}");
        assert!(Path::new(SLAB).join(name).exists(), "{name}");
    }
}

#[test]
fn schemas_are_listed_and_printed() {
    let list = stdout(&["schema"]);
    for name in list.lines() {
        let text = stdout(&["schema", name]);
        let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(schema["$id"], format!("slabctl.{name}/1"));
    }
    assert!(error(&["schema", "nosuch"], 2).contains("known are report"));
}
