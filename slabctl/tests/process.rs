//! `--pid`: a program on slabcore's engine, seen while it runs and after it died.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

#[path = "../src/output/check.rs"]
#[expect(dead_code, reason = "the schema itself is checked where it is made")]
mod check;

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::target::{self, Target};
use support::{check_error, finish, json, run, slabctl, stdout};

/// What the system calls a process.
fn comm(pid: &str) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    name.trim_end().to_owned()
}

#[test]
fn target() {
    target::main();
}

fn cache<'r>(report: &'r Value, name: &str) -> &'r Value {
    let caches = report["caches"].as_array().unwrap();
    caches.iter().find(|of| of["name"] == name).unwrap()
}

fn valid(name: &str, text: &str) -> Value {
    let document = serde_json::from_str(text).unwrap();
    let schema = serde_json::from_str(&stdout(&["schema", name])).unwrap();
    assert_eq!(check::errors(&schema, &document), Vec::<String>::new());
    document
}

#[test]
fn a_running_process_is_reported_exactly_and_grows() {
    let mut target = Target::start(&["objects=1000", "threads=4"]);
    let pid = target.pid();
    let report = valid("report", &stdout(&["report", "--json", "--pid", &pid]));
    assert_eq!(report["source"]["kind"], "process");
    let detail = report["source"]["detail"].as_str().unwrap();
    assert_eq!(detail, format!("process {pid} ({})", comm(&pid)));
    for n in 0..3 {
        let of = cache(&report, &format!("target-{n}"));
        assert_eq!(
            (&of["objects"], &of["object_size"]),
            (&1000.into(), &64.into())
        );
        assert_eq!(of["counters"]["alloc_slab"]["total"], of["slabs"]);
        assert_eq!(of["nodes"].as_array().unwrap().len(), 2);
    }
    target.more(500);
    let report = json(&["--pid", &pid]);
    assert_eq!(cache(&report, "target-2")["objects"], 1500);
    target.end();
}

#[test]
fn the_other_commands_take_a_process_too() {
    let target = Target::start(&["debug=FZPU"]);
    let pid = target.pid();
    let shown = stdout(&["show", "target-1", "--pid", &pid]);
    assert!(shown.contains("in use 1000"), "{shown}");
    assert!(
        shown.contains("poison red_zone sanity_checks store_user"),
        "{shown}"
    );
    let table = stdout(&["report", "--pid", &pid, "--columns", "name,objects"]);
    assert!(table.contains("target-0     1000"), "{table}");
    let changed = run(&["diff", "--pid", &pid, "--interval", "50ms", "--all"]);
    assert_eq!(changed.code, Some(0), "{}", changed.stderr);
    assert!(changed.stdout.contains("target-2"), "{}", changed.stdout);
    let lines = stdout(&[
        "top", "--pid", &pid, "--linear", "--count", "2", "-d", "100ms",
    ]);
    assert!(
        lines.contains(&format!("process {pid} ({}): 3 caches", comm(&pid))),
        "{lines}"
    );
    for args in [
        &["capture", "/tmp/nothing.tar"][..],
        &["tune", "target-1"],
        &["shrink", "target-1"],
        &["doctor"],
        &["explain"],
        &["report", "--demo"],
        &["report", "--from", "/"],
    ] {
        let run = run(&[args, &["--pid", &pid]].concat());
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
    }
    target.end();
}

#[test]
fn processes_on_the_engine_are_listed() {
    let target = Target::start(&["caches=2", "objects=10"]);
    let list = valid("ps", &stdout(&["ps", "--json"]));
    let all = list["processes"].as_array().unwrap();
    let own = all
        .iter()
        .find(|of| of["pid"] == target.child.id())
        .unwrap();
    assert_eq!(
        (&own["program"], &own["caches"]),
        (&comm(&target.pid()).into(), &2.into())
    );
    assert_eq!(
        (&own["objects"], &own["access"]),
        (&20.into(), &"read".into())
    );
    let table = stdout(&["ps"]);
    assert!(table.contains(&target.pid()), "{table}");
    let unseen = Target::start(&["segment=off"]);
    let list = stdout(&["ps", "--csv"]);
    assert!(!list.contains(&unseen.pid()), "{list}");
    let run = run(&["report", "--pid", &unseen.pid()]);
    check_error(&run, 69);
    assert!(run.stderr.contains("slabctl ps lists"), "{}", run.stderr);
    unseen.end();
    target.end();
}

#[test]
fn what_is_no_process_is_said_in_one_line() {
    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id().to_string();
    ended.wait().unwrap();
    check_error(&run(&["report", "--pid", &pid]), 69);
    let own = std::process::id().to_string();
    let run = run(&["report", "--pid", &own]);
    check_error(&run, 69);
    assert!(
        run.stderr.contains("no segment of one is open there"),
        "{}",
        run.stderr
    );
}

/// A file on tmpfs that no other test uses.
fn place(name: &str) -> (String, String) {
    let path = format!("/dev/shm/slabcore-{name}-{}", std::process::id());
    // Left from an earlier run of the same number.
    let _ = fs::remove_file(&path);
    (format!("segment=file:{path}"), path)
}

#[test]
fn a_file_outlives_its_process_and_says_how_it_ended() {
    let (option, path) = place("end");
    let mut target = Target::start(&[&option, "objects=4000"]);
    let live = json(&["--pid", &target.pid()]);
    target.child.kill().unwrap();
    target.child.wait().unwrap();
    let run = run(&["report", "--json", "--from", &path]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let dead = valid("report", &run.stdout);
    assert!(
        run.stderr.contains("ended without a word"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("figures as of"), "{}", run.stderr);
    for n in 0..3 {
        let name = format!("target-{n}");
        let (live, dead) = (cache(&live, &name), cache(&dead, &name));
        for key in [
            "object_size",
            "slab_size",
            "objs_per_slab",
            "order",
            "limits",
            "flags",
        ] {
            assert_eq!(live[key], dead[key], "{name}: {key}");
        }
        let objects = |of: &Value| of["objects"].as_u64().unwrap();
        assert!(
            objects(dead) <= objects(live),
            "{name}: published before it was killed"
        );
        assert_eq!(dead["nodes"], Value::Array(Vec::new()));
        assert_eq!(dead["occupancy"], Value::Null);
    }
    fs::remove_file(path).unwrap();
    // Who comes to a normal end publishes once more.
    let (option, path) = place("normal");
    let target = Target::start(&[&option, "objects=4000"]);
    let live = json(&["--pid", &target.pid()]);
    target.end();
    let dead = json(&["--from", &path]);
    for key in [
        "objects",
        "slabs",
        "total_objects",
        "counters",
        "memory_bytes",
    ] {
        let counted = |of: &Value| match &of[key] {
            Value::Object(all) => all["alloc_slowpath"]["total"].clone(),
            other => other.clone(),
        };
        let (live, dead) = (cache(&live, "target-1"), cache(&dead, "target-1"));
        assert_eq!(counted(live), counted(dead), "{key}");
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn only_a_plain_file_of_ones_own_is_read() {
    let (option, path) = place("own");
    Target::start(&[&option]).end();
    let mode = fs::metadata(&path).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777,
        0o600
    );
    let link = format!("{path}-link");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let through = run(&["report", "--from", &link]);
    check_error(&through, 1);
    fs::remove_file(&link).unwrap();
    // Cut, grown, of another version, and of nonsense.
    let whole = fs::read(&path).unwrap();
    let mut version = whole.clone();
    version[8] = 9;
    let mut counts = whole.clone();
    counts[28] = 0xff;
    let mut nonsense = whole.clone();
    nonsense[128..4096].fill(0xee);
    for (bytes, says) in [
        (whole[..5000].to_vec(), "cannot be"),
        ([&*whole, b"more"].concat(), "cannot be a segment"),
        (version, "format 9, and this program reads 1"),
        (counts, "cannot be true"),
        (nonsense, "cannot be true"),
    ] {
        fs::write(&path, bytes).unwrap();
        let run = run(&["report", "--from", &path]);
        check_error(&run, 1);
        assert!(run.stderr.contains(says), "{says}: {}", run.stderr);
    }
    fs::remove_file(&path).unwrap();
}

#[test]
fn without_permission_the_published_sums_remain_or_it_is_said() {
    let target = Target::start(&[]);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups", "--"]);
    command
        .arg(slabctl().get_program())
        .args(["report", "--pid", &target.pid()]);
    if !command
        .output()
        .is_ok_and(|of| of.status.code() == Some(77))
    {
        support::skip("needs root to become somebody else");
        return;
    }
    let run = finish(command);
    check_error(&run, 77);
    assert!(
        run.stderr.contains("only the process's user and root"),
        "{}",
        run.stderr
    );
    target.end();
}

#[test]
fn a_process_is_validated_from_outside_and_when_asked_checks_itself() {
    let busy = Target::start(&["busy=1", "debug=FZPU,target-0", "engines=20"]);
    let pid = busy.pid();
    for more in [&[][..], &["--ask"]] {
        let args = [&["validate", "--json", "--pid", &pid], more].concat();
        let verdict = valid("validate", &stdout(&args));
        assert_eq!(
            (&verdict["clean"], &verdict["passes"]),
            (&true.into(), &1.into())
        );
        assert!(verdict["slabs"].as_u64().unwrap() > 40, "{verdict}");
        let caches = verdict["caches"].as_u64().unwrap();
        assert_eq!(caches, 24, "{verdict}");
    }
    busy.end();
    // Who waits for its input does not look.
    let idle = Target::start(&[]);
    let start = Instant::now();
    let silent = run(&["validate", "--ask", "--pid", &idle.pid()]);
    check_error(&silent, 1);
    assert!(
        silent.stderr.contains("not acknowledged within 2 s"),
        "{}",
        silent.stderr
    );
    assert!(start.elapsed() < Duration::from_secs(6));
    let outside = stdout(&["validate", "--pid", &idle.pid()]);
    assert!(outside.contains("checked, once: no findings"), "{outside}");
    check_error(&run(&["validate", "--ask"]), 2);
    idle.end();
}

#[test]
fn what_becomes_another_program_is_not_looked_into() {
    let mut target = Target::start(&[]);
    let pid = target.pid();
    let mut command = slabctl();
    command.args(["report", "--watch", "50ms", "--pid", &pid]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = command.spawn().unwrap();
    // It looks, and looks again at what is another program then.
    let mut shown = watch.stdout.take().unwrap();
    shown.read_exact(&mut [0]).unwrap();
    target.say("exec");
    std::io::copy(&mut shown, &mut std::io::sink()).unwrap();
    let ended = watch.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(69), "{said}");
    let says = "it has become another program by exec";
    assert!(said.contains(says), "{said}");
    assert!(!stdout(&["ps", "--csv"]).contains(&pid));
    target.end();
}

#[test]
fn slabs_and_objects_of_a_process_are_shown() {
    let target = Target::start(&["objects=100", "debug=FZPU"]);
    let pid = target.pid();
    let map = stdout(&["dump", "target-1", "--pid", &pid]);
    assert!(
        map.contains("target-1: debug FZPU, object 64, slot 160, 25 in a slab"),
        "{map}"
    );
    assert!(map.contains("4 slabs: 100 allocated"), "{map}");
    assert!(map.contains(&"#".repeat(25)), "{map}");
    let dump = valid(
        "dump",
        &stdout(&["dump", "target-1", "--json", "--pid", &pid]),
    );
    assert_eq!(dump["source"]["kind"], "process");
    let one = stdout(&["dump", "target-1", "--object", "1:3", "--pid", &pid]);
    for part in [
        "allocated",
        "by thread",
        "left red zone",
        "object",
        "padding",
    ] {
        assert!(one.contains(part), "{part}: {one}");
    }
    assert!(one.contains("support::target::fill+0x"), "named: {one}");
    check_error(&run(&["dump", "nothing", "--pid", &pid]), 4);
    target.end();
}

#[test]
fn who_holds_what_is_told_by_stack() {
    let target = Target::start(&["objects=90", "threads=3", "debug=U,target-2"]);
    let pid = target.pid();
    let sites = valid(
        "sites",
        &stdout(&["sites", "--by", "stack", "--json", "--pid", &pid]),
    );
    let caches = sites["caches"].as_array().unwrap();
    assert_eq!((caches.len(), &caches[0]["name"]), (1, &"target-2".into()));
    let all = caches[0]["sites"].as_array().unwrap();
    let count = |of: &Value| of["count"].as_u64().unwrap();
    assert_eq!(all.iter().map(count).sum::<u64>(), 90);
    assert!(
        all.len() >= 2,
        "the main thread and others come another way: {all:?}"
    );
    for site in all {
        assert_eq!(site["age_unit"], "ms");
        assert!(site["age_max"].as_u64().unwrap() < 600_000, "{site}");
        let stack = site["stack"].as_array().unwrap();
        let named = |of: &Value| of.as_str().unwrap().contains("support::target::fill+0x");
        assert!(stack.iter().any(named), "{stack:?}");
    }
    let text = stdout(&["sites", "target-2", "--pid", &pid]);
    assert!(
        text.contains("support::target::fill+0x") && text.contains(" ms"),
        "{text}"
    );
    let none = run(&["sites", "target-1", "--pid", &pid]);
    assert_eq!(none.stdout, "");
    assert!(none.stderr.contains("SLABCORE_DEBUG=U"), "{}", none.stderr);
    target.end();
}

#[test]
fn a_core_tells_what_the_process_told() {
    let target = Target::start(&["objects=1000", "threads=2", "debug=FZPU,target-2"]);
    let pid = target.pid();
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("core");
    let mut gcore = Command::new("gcore");
    gcore.arg("-o").arg(&prefix).arg(&pid);
    if !gcore.output().is_ok_and(|of| of.status.success()) {
        support::skip("needs gcore");
        return;
    }
    let core = format!("{}.{pid}", prefix.display());
    let live = json(&["--pid", &pid]);
    let live_map = stdout(&["dump", "--pid", &pid]);
    let live_sites = stdout(&["sites", "--by", "stack", "--csv", "--pid", &pid]);
    target.end();
    let dead = json(&["--core", &core]);
    assert_eq!(live["caches"], dead["caches"]);
    assert_eq!(live["totals"], dead["totals"]);
    assert_eq!(stdout(&["dump", "--core", &core]), live_map);
    let sites = stdout(&["sites", "--by", "stack", "--csv", "--core", &core]);
    // But for the ages.
    let counts = |text: &str| -> Vec<String> {
        let fields = text
            .lines()
            .map(|line| line.split(',').take(4).collect::<Vec<_>>().join(","));
        fields.collect()
    };
    assert_eq!(counts(&sites), counts(&live_sites));
    let verdict = stdout(&["validate", "--core", &core]);
    assert!(verdict.contains("no findings"), "{verdict}");
    // Cut anywhere it is a line, or what is there.
    let whole = fs::read(&core).unwrap();
    for part in [0, 10, 64, 5000, whole.len() / 2] {
        fs::write(&core, &whole[..part]).unwrap();
        let run = run(&["report", "--core", &core]);
        if run.code != Some(0) {
            check_error(&run, 1);
        }
    }
    let other = run(&["report", "--core", env!("CARGO_BIN_EXE_slabctl")]);
    check_error(&other, 1);
    assert!(other.stderr.contains("no core"), "{}", other.stderr);
}

#[test]
fn what_keeps_sparse_slabs_alive_is_told() {
    let target = Target::start(&["caches=1", "sparse=1", "debug=U,sparse"]);
    let pid = target.pid();
    let args = [
        "sites", "--pinned", "--by", "stack", "--json", "--pid", &pid,
    ];
    let sites = valid("sites", &stdout(&args));
    let [site] = &sites["caches"][0]["sites"].as_array().unwrap()[..] else {
        panic!("{sites}");
    };
    let number = |name: &str| site[name].as_u64().unwrap();
    assert!(number("pinned_objects") > 10, "{site}");
    assert!(
        number("pinned_bytes") > 4096 && number("pinned_slabs") > 1,
        "{site}"
    );
    let stack = site["stack"].to_string();
    assert!(stack.contains("support::target::pinning+0x"), "{stack}");
    check_error(&run(&["sites", "--pinned"]), 2);
    target.end();
}
