//! `slabctl run`: a program on slabcore, told of at its end.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use support::library::library;
use support::{Run, check_error, finish, json, run, skip, slabctl, with_clean_environment};

#[test]
fn a_program_runs_and_its_caches_are_told_at_its_end() {
    library();
    let told = run(&["run", "--report", "--", "/bin/echo", "hello"]);
    assert_eq!(
        (told.code, &*told.stdout),
        (Some(0), "hello\n"),
        "{}",
        told.stderr
    );
    assert!(told.stderr.contains("kmalloc-64"), "{}", told.stderr);
    let quiet = run(&["run", "--", "/bin/echo", "hello"]);
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("hello\n", ""));
    let debugged = run(&[
        "run",
        "--validate",
        "--debug",
        "FZPU",
        "--policy",
        "classic",
        "--",
        "/bin/ls",
    ]);
    assert_eq!(debugged.code, Some(0), "{}", debugged.stderr);
    assert!(
        debugged.stderr.contains("checked, once: no findings"),
        "{}",
        debugged.stderr
    );
    let leaks = run(&["run", "--leaks", "--", "/bin/ls"]);
    assert!(
        leaks
            .stderr
            .contains("still allocated at the end, by stack:"),
        "{}",
        leaks.stderr
    );
    assert!(leaks.stderr.contains("[libc.so"), "{}", leaks.stderr);
}

/// A program that leaks by a function of its own, writes behind an object, and frees twice, as
/// its arguments say.
fn faulty(dir: &Path) -> Option<std::path::PathBuf> {
    let source = dir.join("faulty.c");
    let text = r#"
        #include <stdlib.h>
        #include <string.h>
        __attribute__((noinline)) char *leaking(void) { return malloc(100); }
        int main(int argc, char **argv) {
            char *volatile kept[10], *volatile other;
            for (int i = 0; i < 10; i++)
                kept[i] = leaking();
            if (argc > 1 && !strcmp(argv[1], "behind"))
                memset(kept[3] + 100, 7, 5);
            if (argc > 1 && !strcmp(argv[1], "twice"))
                other = malloc(50), free(other), free(other);
            if (argc > 1 && !strcmp(argv[1], "large"))
                other = malloc(5 << 20);
            if (argc > 1 && !strcmp(argv[1], "quick"))
                quick_exit(0);
            return 0;
        }"#;
    fs::write(&source, text).unwrap();
    let program = dir.join("faulty");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fno-builtin", "-rdynamic", "-w", "-o"]);
    let built = cc.arg(&program).arg(&source).status();
    built.is_ok_and(|of| of.success()).then_some(program)
}

#[test]
fn what_is_wrong_with_a_program_is_told_and_is_status_3() {
    library();
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = faulty(dir.path()) else {
        skip("needs a C compiler");
        return;
    };
    let program = program.to_str().unwrap();
    let checked =
        |fault: &str| run(&["run", "--debug", "FZPU", "--validate", "--", program, fault]);
    let fine = checked("none");
    assert_eq!(fine.code, Some(0), "{}", fine.stderr);
    // Only the process itself looks at guards; it is asked to.
    let behind = checked("behind");
    assert_eq!(behind.code, Some(3), "{}", behind.stderr);
    for part in ["Redzone overwritten", "leaking+0x", "1 finding"] {
        assert!(behind.stderr.contains(part), "{part}: {}", behind.stderr);
    }
    // What was reported and repaired before the end counts.
    let twice = checked("twice");
    assert_eq!(twice.code, Some(3), "{}", twice.stderr);
    assert!(
        twice.stderr.contains("1 report while it ran"),
        "{}",
        twice.stderr
    );
    // Whatever else is debugged, leaks have stacks.
    for debug in [&["--debug", "FZ"][..], &[]] {
        let told = run(&[&["run", "--leaks"], debug, &["--", program]].concat());
        let held = told.stderr.lines().find(|line| line.contains("leaking+0x"));
        assert!(
            held.unwrap().trim_start().starts_with("10 "),
            "{}",
            told.stderr
        );
    }
    // No row has what is too large for slabs, and it is told.
    let large = run(&["run", "--leaks", "--", program, "large"]);
    let says = "1 object too large for slabs is in no row, and of no call site: 8.00M";
    assert!(large.stderr.contains(says), "{}", large.stderr);
    // What was not checked is not sound.
    let unseen = checked("quick");
    assert_eq!(unseen.code, Some(69), "{}", unseen.stderr);
    let refused = run(&["run", "--debug", "XYZ", "--", program]);
    check_error(&refused, 2);
}

#[test]
fn a_path_that_the_loader_takes_apart_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("sp ace");
    fs::create_dir(&place).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_slabctl"), place.join("slabctl")).unwrap();
    fs::copy(library(), place.join("libslabcore_preload.so")).unwrap();
    let mut command = Command::new(place.join("slabctl"));
    command.args(["run", "--", "/bin/true"]);
    let refused = finish(with_clean_environment(command));
    check_error(&refused, 69);
    assert!(
        refused.stderr.contains("space or colon"),
        "{}",
        refused.stderr
    );
}

/// The bytes of a column of a table on standard error, line by line.
fn column(told: &Run, name: &str) -> Vec<f64> {
    let mut lines = told.stderr.lines();
    let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let at = head.iter().position(|of| *of == name).unwrap();
    let number = |text: &str| {
        let (digits, unit) = match text.as_bytes().last().unwrap() {
            b'K' => (text.trim_end_matches('K'), 1024.0),
            b'M' => (text.trim_end_matches('M'), 1024.0 * 1024.0),
            _ => (text, 1.0),
        };
        digits.parse::<f64>().unwrap() * unit
    };
    let rows = lines.take_while(|line| !line.starts_with("slabctl: "));
    rows.map(|line| number(line.split_whitespace().nth(at).unwrap()))
        .collect()
}

#[test]
fn the_largest_caches_come_first_or_those_asked_for() {
    library();
    let sorted = |args: &[&str], name: &str| {
        let args = [&["run", "--report"], args, &["--", "/bin/ls"]].concat();
        let told = column(&run(&args), name);
        assert!(
            told.len() > 2 && told.is_sorted_by(|a, b| a >= b),
            "{told:?}"
        );
        told.len()
    };
    sorted(&[], "Space");
    assert_eq!(sorted(&["-s", "objects", "-n", "3"], "Objects"), 3);
    // A wrong choice is told before the program runs.
    let marks = tempfile::tempdir().unwrap();
    let mark = marks.path().join("ran");
    let mark = mark.to_str().unwrap();
    for args in [
        &["run", "--report", "-s", "nothing", "--", "touch", mark][..],
        &["run", "-s", "objects", "--", "touch", mark],
    ] {
        check_error(&run(args), 2);
        assert!(!Path::new(mark).exists());
    }
}

#[test]
fn the_exit_status_is_the_programs() {
    library();
    let status = |script: &str| run(&["run", "--report", "--", "/bin/sh", "-c", script]);
    let ended = status("exit 7");
    assert_eq!(ended.code, Some(7));
    // Some shells end by _exit.
    assert!(ended.stderr.contains("kmalloc-"), "{}", ended.stderr);
    let killed = status("kill -9 $$");
    assert_eq!(killed.code, Some(137));
    assert!(
        killed.stderr.contains("without waiting to be looked at"),
        "{}",
        killed.stderr
    );
    assert_eq!(run(&["run", "--", "/nonexistent"]).code, Some(127));
    // Who ignores the ends of children has that inherited.
    let mut ignoring = Command::new("sh");
    ignoring.args(["-c", "trap '' CHLD; exec \"$0\" run -- sh -c 'exit 5'"]);
    ignoring.arg(env!("CARGO_BIN_EXE_slabctl"));
    assert_eq!(finish(with_clean_environment(ignoring)).code, Some(5));
    check_error(&run(&["run", "--demo", "--", "/bin/true"]), 2);
}

/// Runs a script with its last figures kept: what was told, and the file.
fn kept(script: &str) -> (Run, String) {
    let told = run(&["run", "--keep", "--", "/bin/sh", "-c", script]);
    let line = told.stderr.lines().last().unwrap_or_default();
    let path = line.rsplit(' ').next().unwrap().to_owned();
    assert!(
        path.starts_with("/dev/shm/slabcore-run-"),
        "{}",
        told.stderr
    );
    (told, path)
}

#[test]
fn last_figures_are_kept_when_asked() {
    library();
    let (told, path) = kept("exec /bin/ls");
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(
        told.stderr.contains("/ls: slabctl report"),
        "{}",
        told.stderr
    );
    let report = run(&["report", "--from", &path]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    assert!(report.stdout.contains("kmalloc-"), "{}", report.stdout);
    assert!(
        report.stderr.contains("the process came to its end"),
        "{}",
        report.stderr
    );
    fs::remove_file(path).unwrap();
}

/// The program becomes another again and again: one file is left, and it is the last one's.
#[test]
fn one_file_is_kept_of_a_program_that_becomes_others_and_none_of_children() {
    library();
    let script = "/bin/ls / >/dev/null; /bin/true; \
        [ \"$0\" = 100 ] && exec /bin/cat /dev/null; exec /bin/sh -c \"$SCRIPT\" $(($0 + 1))";
    let mut command = slabctl();
    command.args(["run", "--keep", "--", "/bin/sh", "-c", script, "0"]);
    command.env("SCRIPT", script);
    let told = finish(command);
    assert_eq!((told.code, &*told.stdout), (Some(0), ""), "{}", told.stderr);
    let line = told.stderr.trim_end();
    assert!(line.contains("/cat: slabctl report --from "), "{line}");
    let path = Path::new(line.rsplit(' ').next().unwrap());
    // All of this run: they are named by its number and time.
    let name = path.file_name().unwrap().to_str().unwrap();
    let files = fs::read_dir("/dev/shm").unwrap().flatten();
    let of_run = files.filter(|file| file.file_name().to_string_lossy().starts_with(name));
    assert_eq!(of_run.count(), 1);
    fs::remove_file(path).unwrap();
}

/// However it ends, what is kept is what the process last said of itself.
#[test]
fn a_program_that_a_signal_ends_leaves_its_figures() {
    library();
    for (signal, code) in [("KILL", 137), ("ABRT", 134), ("SEGV", 139)] {
        // It allocates for long enough to publish while it runs.
        let script = format!(
            "i=0; while [ $i -lt 30 ]; do eval \"v$i=$(head -c 3000 /dev/zero | tr '\\0' x)\"; \
             sleep 0.02; i=$((i + 1)); done; kill -{signal} $$"
        );
        let (told, path) = kept(&script);
        assert_eq!(told.code, Some(code), "{}", told.stderr);
        let dead = run(&["report", "--from", &path]);
        assert_eq!(dead.code, Some(0), "{}", dead.stderr);
        assert!(
            dead.stderr.contains("ended without a word"),
            "{}",
            dead.stderr
        );
        assert!(dead.stdout.contains("kmalloc-"), "{}", dead.stdout);
        fs::remove_file(path).unwrap();
    }
}

/// A core, the kept file, and the last report while it lived: of one still process they agree.
#[test]
fn a_core_and_the_kept_file_say_what_was_last_said_live() {
    library();
    let dir = tempfile::tempdir().unwrap();
    let path = format!("/dev/shm/slabcore-core-{}", std::process::id());
    // A core has shared files only when asked to.
    let script = "echo 0x3f >/proc/self/coredump_filter; ulimit -c unlimited; cd \"$0\"; echo $$ >pid.new; mv pid.new pid; exec cat fifo";
    let fifo = dir.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let library = library();
    let mut command = with_clean_environment(Command::new("/bin/sh"));
    command.args(["-c", script]).arg(dir.path());
    command.env("LD_PRELOAD", library);
    command.env("SLABCORE_SEGMENT", format!("file:{path}"));
    command.env("SLABCORE_DEBUG", "U");
    let mut child = command.spawn().unwrap();
    let pid = child.id().to_string();
    // Until it waits in the fifo, as cat.
    let until = Instant::now() + Duration::from_secs(20);
    let is_cat = || fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|of| of == "cat\n");
    while !(is_cat() && asleep(&pid)) {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(10));
    }
    let live = json(&["--pid", &pid]);
    Command::new("kill").args(["-ABRT", &pid]).status().unwrap();
    child.wait().unwrap();
    let caches = |of: &serde_json::Value| -> Vec<(String, u64)> {
        let all = of["caches"].as_array().unwrap().iter();
        let named = |of: &serde_json::Value| {
            let objects = of["objects"].as_u64().unwrap();
            (of["name"].as_str().unwrap().to_owned(), objects)
        };
        all.map(named).collect()
    };
    let kept = json(&["--from", &path]);
    fs::remove_file(&path).unwrap();
    // What the file has is as old as the last time it published, at most what was there.
    let (live_caches, kept_caches) = (caches(&live), caches(&kept));
    let names =
        |of: &[(String, u64)]| -> Vec<String> { of.iter().map(|of| of.0.clone()).collect() };
    if !kept_caches.is_empty() {
        assert_eq!(names(&kept_caches), names(&live_caches));
    }
    let files = fs::read_dir(dir.path()).unwrap().flatten();
    let core = files.map(|file| file.path()).find(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("core"))
    });
    let Some(core) = core else {
        skip("needs cores in the working directory (kernel.core_pattern)");
        return;
    };
    let dead = json(&["--core", core.to_str().unwrap()]);
    assert_eq!(dead["caches"], live["caches"]);
    assert_eq!(dead["totals"], live["totals"]);
}

/// Whether a process waits for something.
fn asleep(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(") S ")
}

/// The system ignores the library then: that is said instead.
#[test]
fn a_program_with_more_rights_is_refused() {
    library();
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("echo");
    fs::copy("/bin/echo", &program).unwrap();
    let as_nobody = |mode: u32| {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = with_clean_environment(Command::new("setpriv"));
        command.args(["--reuid", "65534", "--clear-groups", "--"]);
        command.arg(slabctl().get_program()).args(["run", "--"]);
        finish_or_none(command.arg(&program).arg("hello"))
    };
    let Some(plain) = as_nobody(0o755).filter(|told| told.code == Some(0)) else {
        skip("needs root to become somebody else");
        return;
    };
    assert_eq!((&*plain.stdout, &*plain.stderr), ("hello\n", ""));
    let refused = as_nobody(0o4755).unwrap();
    check_error(&refused, 69);
    assert!(refused.stderr.contains("more rights"), "{}", refused.stderr);
    // The system takes no bit of a script.
    fs::write(&program, "#!/bin/sh\necho hello\n").unwrap();
    assert_eq!(as_nobody(0o4755).unwrap().stdout, "hello\n");
}

fn finish_or_none(command: &mut Command) -> Option<Run> {
    let output = command.output().ok()?;
    Some(Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    })
}

/// The first process of a container gets all orphans: they end at once, and are waited for.
#[test]
fn orphans_of_a_container_do_not_wait_for_the_watcher() {
    library();
    // An orphan that becomes another program when it is one, and one that only forks.
    let script = "(/bin/sh -c 'sleep 0.2; echo $$ >a; exec /bin/ls / >/dev/null' &); \
        ( (sleep 0.2; /bin/sh -c 'echo $PPID' >b; exit) & ); i=0; \
        while [ $i -lt 60 ]; do sleep 0.1; i=$((i + 1)); [ -s a ] && [ -s b ] || continue; \
            [ -d /proc/$(cat a) ] || [ -d /proc/$(cat b) ] || break; done; echo $i";
    let dir = tempfile::tempdir().unwrap();
    let mut command = with_clean_environment(Command::new("unshare"));
    command.args(["--pid", "--fork", "--mount-proc", "--"]);
    command.arg(slabctl().get_program()).current_dir(dir.path());
    command.args(["run", "--report", "--", "/bin/sh", "-c", script]);
    let told = finish(command);
    if told.stderr.contains("unshare:") {
        skip("needs root to be the first process of a namespace");
        return;
    }
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(told.stderr.contains("kmalloc-"), "{}", told.stderr);
    // In tenths of a second: the orphan by exec is let go after two seconds.
    let took: u32 = told.stdout.trim().parse().unwrap();
    assert!(took < 50, "{took}");
}

/// What a program may do is what it may do without slabctl.
#[test]
fn a_program_has_the_limits_of_who_starts_it() {
    library();
    let script = "ulimit -Sn 200; exec \"$0\" run -- sh -c 'ulimit -Sn; ulimit -Hn'";
    let mut shell = with_clean_environment(Command::new("sh"));
    shell.args(["-c", script, env!("CARGO_BIN_EXE_slabctl")]);
    let told = finish(shell);
    assert_eq!(told.stdout.lines().next(), Some("200"), "{}", told.stderr);
}

/// It may hold locks of the engine then, and must not wait for itself.
#[test]
fn an_end_from_a_signal_handler_amid_an_allocation_is_an_end() {
    library();
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("ends.c"), dir.path().join("ends"));
    let text = "
        #include <signal.h>
        #include <stdlib.h>
        #include <sys/time.h>
        #include <unistd.h>
        static void end(int n) { (void)n; _exit(7); }
        int main(void) {
            struct itimerval soon = {{0, 0}, {0, 30000}};
            static void *all[4000];
            signal(SIGALRM, end);
            setitimer(ITIMER_REAL, &soon, 0);
            for (;;) {
                for (int i = 0; i < 4000; i++) all[i] = malloc(64 + i % 40 * 50);
                for (int i = 0; i < 4000; i++) free(all[i]);
            }
        }";
    fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(&program).arg(&source);
    assert!(compiler.status().unwrap().success());
    for _ in 0..8 {
        let since = Instant::now();
        let mut command = slabctl();
        command.args(["run", "--validate", "--policy", "classic", "--"]);
        let told = finish({
            command.arg(&program);
            command
        });
        assert_eq!(told.code, Some(7), "{}", told.stderr);
        assert!(since.elapsed() < Duration::from_secs(15));
    }
}
