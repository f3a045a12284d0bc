//! What programs do to themselves and what systems lack: the heap goes on, and a process has a
//! segment of its own where it may have one. The long version is `hardships.sh`.

#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{FULL, POLICIES, Ran, program, quiet, run};

fn hardship(arguments: &[&str], variables: &[(&str, &str)]) {
    let output = quiet("hardships", arguments, variables);
    assert_eq!(output, "all right\n", "{arguments:?} {variables:?}");
}

fn is_root() -> bool {
    // SAFETY: no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("SKIPPED: needs root");
    }
    root
}

#[test]
fn a_storm_of_forks_leaves_each_child_a_heap_and_a_segment() {
    hardship(&["storm", "80"], &[]);
    hardship(&["storm", "4"], &[FULL]);
    for policy in POLICIES {
        hardship(&["storm", "12"], &[("SLABCORE_POLICY", policy)]);
    }
    let each = ("SLABCORE_SEGMENT", "file:/dev/shm/slabcore-storm-%p");
    hardship(&["storm", "24"], &[each]);
    let mut left = 0;
    for file in std::fs::read_dir("/dev/shm").unwrap().flatten() {
        if file
            .file_name()
            .to_string_lossy()
            .starts_with("slabcore-storm-")
        {
            std::fs::remove_file(file.path()).unwrap();
            left += 1;
        }
    }
    // The program, a quarter of its children that must, and some of the others; who becomes
    // another program has one, too.
    assert!((7..=25).contains(&left), "{left}");
}

#[test]
fn a_program_that_closes_its_files_or_becomes_a_daemon_is_seen() {
    for variables in [&[][..], &[FULL]] {
        hardship(&["closes"], variables);
        hardship(&["daemon"], variables);
    }
}

#[test]
fn a_program_that_locks_itself_in_goes_on() {
    if !is_root() {
        return;
    }
    let empty = tempfile::tempdir().unwrap();
    for variables in [&[][..], &[FULL]] {
        hardship(&["chroot", empty.path().to_str().unwrap()], variables);
        hardship(&["drops"], variables);
    }
}

#[test]
fn tiny_limits_make_allocations_fail_at_most() {
    for variables in [&[][..], &[FULL]] {
        hardship(&["files"], variables);
        hardship(&["length"], variables);
        hardship(&["memory"], variables);
    }
}

/// A filter that ends the process at a call that a segment in a file would take.
#[test]
fn a_filter_of_system_calls_ends_nobody() {
    for variables in [&[][..], &[("SLABCORE_DEBUG", "F")]] {
        hardship(&["sandbox"], variables);
        hardship(&["sandboxed-start"], variables);
    }
}

/// Runs a script in a mount namespace of its own, in which `/dev/shm` is as it says.
fn with_shm(script: &str, segment: &str) -> Ran {
    let mut command = Command::new("unshare");
    // Only the program itself is to have the library, so the script sets it.
    command.args(["--mount", "/bin/sh", "-ec", script]);
    command.env("LIBRARY", support::library());
    command.env("PROGRAM", program("hardships"));
    support::run_bare(&mut command, &[("SLABCORE_SEGMENT", segment)])
}

#[test]
fn a_file_that_cannot_be_made_is_done_without() {
    if !is_root() {
        return;
    }
    let place = "file:/dev/shm/slabcore-%p";
    let runs = "LD_PRELOAD=$LIBRARY $PROGRAM segments; [ ! -d /dev/shm ] || ls /dev/shm";
    for (shm, kept) in [
        ("mount -t tmpfs -o size=64k none /dev/shm", 0),
        ("mount -t tmpfs -o ro none /dev/shm", 0),
        ("mount -t tmpfs none /dev", 0),
        ("mount -t tmpfs none /dev/shm", 2),
    ] {
        let ran = with_shm(&format!("{shm}; {runs}"), place);
        if ran.status.code() == Some(77) || ran.err.contains("unshare") {
            eprintln!("SKIPPED: no mount namespace here: {}", ran.err);
            continue;
        }
        assert!(ran.status.success(), "{shm}: {ran:?}");
        let mut lines = ran.out.lines();
        assert_eq!(lines.next(), Some("all right"), "{shm}: {ran:?}");
        let files = lines.filter(|line| line.starts_with("slabcore")).count();
        assert_eq!(files, kept, "{shm}: {ran:?}");
    }
}

/// A copy of a program in a folder that everybody may enter.
fn copy(folder: &Path, of: &Path, mode: u32) -> PathBuf {
    let to = folder.join(of.file_name().unwrap());
    std::fs::copy(of, &to).unwrap();
    std::fs::set_permissions(&to, std::fs::Permissions::from_mode(mode)).unwrap();
    to
}

/// A program with more rights than who starts it, which is linked with the library: the
/// environment is not listened to. (The loader would not preload it.)
#[test]
fn a_privileged_program_takes_no_choices() {
    if !is_root() || !support::is_there("setpriv") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    copy(folder.path(), support::library(), 0o755);
    let source = folder.path().join("program.c");
    let text = "#include <stdlib.h>\nint main(void) { free(malloc(10)); return 0; }\n";
    std::fs::write(&source, text).unwrap();
    let program = folder.path().join("program");
    let mut cc = Command::new("cc");
    cc.arg("-o")
        .arg(&program)
        .arg(&source)
        .arg("-Wl,--no-as-needed");
    cc.arg(format!("-Wl,-rpath,{}", folder.path().display()));
    cc.arg(format!("-L{}", folder.path().display()));
    assert!(cc.arg("-lslabcore_preload").status().unwrap().success());
    let told = |mode: u32| {
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        let place = "file:/dev/shm/slabcore-privileged";
        let variables = [
            ("SLABCORE_HELP", "1"),
            ("SLABCORE_X", "1"),
            ("SLABCORE_SEGMENT", place),
        ];
        let ran = support::run_bare(command.arg(&program), &variables);
        assert!(ran.status.success(), "{ran:?}");
        let kept = std::fs::remove_file("/dev/shm/slabcore-privileged").is_ok();
        (
            ran.err.contains("SLABCORE_SAMPLE") && ran.err.contains("SLABCORE_X"),
            kept,
        )
    };
    assert_eq!(told(0o755), (true, true));
    assert_eq!(told(0o4755), (false, false));
}

/// An exec hands the file on: there is one, and it is the last program's.
#[test]
fn a_program_that_becomes_others_has_one_file() {
    let path = format!("/dev/shm/slabcore-execs-{}", std::process::id());
    let place = format!("file:{path}");
    let ran = run(
        Command::new(program("exec")).arg("100"),
        &[("SLABCORE_SEGMENT", &place)],
    );
    assert_eq!((&*ran.out, &*ran.err), ("all right\n", ""));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(&bytes[..8], b"slabcore");
    // The state: it came to its end, which only the last does.
    assert_eq!(bytes[48..56], 2u64.to_ne_bytes());
}
