//! `--pid` of processes that lie: each command ends in time, holds little memory, and says what
//! it does not know.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

#[path = "support/hostile.rs"]
mod hostile;

use std::process::{Command, Stdio};

use hostile::Hostile;
use support::watched::{COMMANDS, watched};
use support::{Run, skip};

#[test]
fn target() {
    hostile::main();
}

/// What all commands say of a process.
fn all(target: &Hostile) -> Vec<Run> {
    let pid = target.pid();
    COMMANDS.iter().map(|args| watched(args, &pid)).collect()
}

#[test]
fn words_that_lie_are_refused_or_marked_in_time() {
    for kind in ["true", "far", "layer", "stacks", "slabs"] {
        let runs = all(&Hostile::start(kind));
        assert_eq!(runs[0].code, Some(0), "{kind}: {}", runs[0].stderr);
    }
    let honest = Hostile::start("true");
    let file = honest.copy();
    let of_engine = ["engines", "counts", "sizes", "limits", "nowhere"];
    let of_segment = ["noise", "cut", "grown", "huge"];
    let engines = of_engine.map(|kind| (kind, Hostile::start(kind)));
    let segments = of_segment.map(|kind| (kind, Hostile::segment(kind, file.path())));
    for (kind, target) in engines.iter().chain(&segments) {
        let runs = all(target);
        for (run, args) in runs.iter().zip(COMMANDS) {
            let refused = run.code != Some(0) || args[0] == "ps";
            assert!(refused, "{kind}: {args:?}: {}", run.stdout);
            assert!(!run.stderr.is_empty(), "{kind}: {args:?} says why");
        }
    }
}

#[test]
fn what_changes_all_the_time_is_survived() {
    let file = Hostile::start("true").copy();
    all(&Hostile::segment("flicker", file.path()));
    all(&Hostile::start("churn"));
}

#[test]
fn what_has_no_end_is_cut_and_not_called_clean() {
    let target = Hostile::start("zeroes");
    for args in [&["report"][..], &["validate"], &["dump"]] {
        let run = watched(args, &target.pid());
        let says = [run.stdout, run.stderr].concat();
        assert!(
            says.contains("than") && says.contains("one look"),
            "{args:?}: {says}"
        );
        assert_ne!(run.code, Some(0), "{args:?}: {says}");
    }
    let listed = watched(&["ps"], &target.pid());
    assert!(listed.stdout.contains("refused"), "{}", listed.stdout);
}

#[test]
fn a_list_too_long_to_be_held_is_not_called_clean() {
    let target = Hostile::start("slabs");
    let run = watched(&["validate", "--json"], &target.pid());
    let verdict: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_ne!(verdict["clean"], true, "{verdict}");
    assert_ne!(run.code, Some(0));
}

#[test]
fn a_layer_that_cannot_be_read_is_not_known_and_not_empty() {
    let target = Hostile::start("layer");
    let report = watched(&["report", "--json"], &target.pid());
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let caches = report["caches"].as_array().unwrap();
    let flags = |name: &str| &caches.iter().find(|of| of["name"] == name).unwrap()["flags"];
    assert_ne!(flags("plain"), flags("debug"), "{report}");
    let dump = watched(&["dump", "debug"], &target.pid());
    assert!(dump.stdout.contains("debug ?"), "{}", dump.stdout);
    let verdict = watched(&["validate"], &target.pid());
    assert!(
        verdict.stdout.contains("did not hold still"),
        "{}",
        verdict.stdout
    );
}

#[test]
fn a_user_is_who_the_system_says_and_not_the_process() {
    let mut other = Command::new("setpriv");
    other.args(["--reuid", "65534", "--clear-groups", "--"]);
    let mut probe = Command::new("setpriv");
    probe.args(["--reuid", "65534", "--clear-groups", "--"]);
    let own = std::env::current_exe().unwrap();
    probe.arg(&own).args(["--list"]);
    if !probe.output().is_ok_and(|of| of.status.success()) {
        skip("needs root to become somebody else");
        return;
    }
    other.arg(own);
    let target = Hostile::by(other, "user");
    let list = watched(&["ps", "--json"], &target.pid());
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(list["processes"][0]["uid"], 65534, "{list}");
}

/// Memory that another program serves, and does not: userfaultfd(2). Its own engine is the true
/// one of a file; only the first address is another.
const STUCK: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
uffd = libc.syscall(323, os.O_CLOEXEC)
if uffd < 0: sys.exit(3)
def ioctl(number, value):
    if libc.ioctl(uffd, ctypes.c_ulong(number), value) != 0: sys.exit(3)
ioctl(0xc018aa3f, ctypes.create_string_buffer(struct.pack("QQQ", 0xaa, 0, 0)))
at = libc.mmap(None, 1 << 20, 3, 0x22, -1, 0)
ioctl(0xc020aa00, ctypes.create_string_buffer(struct.pack("QQQQ", at, 1 << 20, 1, 0)))
data = bytearray(open(sys.argv[1], "rb").read())
place = data.index(b"root.engines\0") + 48
data[place:place + 8] = struct.pack("Q", at)
fd = os.memfd_create("slabcore-v1")
os.write(fd, data)
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn memory_that_lets_its_reader_wait_is_left_behind() {
    let honest = Hostile::start("true");
    let file = honest.copy();
    let python = || {
        let mut command = Command::new("python3");
        command.arg("-c").arg(STUCK).arg(file.path());
        command
    };
    let able = python().stdin(Stdio::null()).output();
    if !cfg!(target_arch = "x86_64") || !able.is_ok_and(|of| of.status.success()) {
        skip("needs python3 and userfaultfd");
        return;
    }
    let target = Hostile::ready(python());
    for args in [&["report"][..], &["validate"], &["ps"]] {
        let run = watched(args, &target.pid());
        let says = [run.stdout, run.stderr].concat();
        assert!(
            says.contains("did not come back in time"),
            "{args:?}: {says}"
        );
    }
}
