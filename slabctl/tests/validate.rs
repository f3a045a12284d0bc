//! `slabctl validate` as its users run it: on a tree with pipes that answer as a
//! kernel does, with real reports, and on this machine.

#![allow(clippy::unwrap_used)]

#[path = "../src/output/check.rs"]
#[allow(dead_code)]
mod check;
mod support;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Run, data, run, slabctl, write_tree};
use tempfile::TempDir;

const FLAGS: [&str; 5] = ["sanity_checks", "red_zone", "poison", "store_user", "trace"];

/// A machine with the caches that were given, as `name`, debug letters.
struct Machine {
    dir: TempDir,
    log: File,
}

/// A pipe, open at both ends and not waiting.
fn pipe(path: &Path) -> File {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(flags.cast_signed());
    options.open(path).unwrap()
}

/// Waits for something that takes no time on an idle machine.
fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "it did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Machine {
    fn new(kernel: &str, caches: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path();
        let release = format!("{kernel}\n");
        write_tree(
            root,
            &[
                ("proc/sys/kernel/osrelease", &release),
                ("proc/meminfo", "Slab: 9 kB\n"),
            ],
        );
        for (name, letters) in caches {
            let at = |file: &str| format!("sys/kernel/slab/{name}/{file}");
            let mut files = vec![
                (at("slabs"), "10\n"),
                (at("partial"), "3\n"),
                (at("validate"), ""),
            ];
            for (flag, letter) in FLAGS.iter().zip(["F", "Z", "P", "U", "T"]) {
                let set = if letters.contains(letter) {
                    "1\n"
                } else {
                    "0\n"
                };
                files.push((at(flag), set));
            }
            for (path, text) in files {
                write_tree(root, &[(&path, text)]);
            }
        }
        fs::create_dir_all(root.join("dev")).unwrap();
        let log = pipe(&root.join("dev/kmsg"));
        Self { dir, log }
    }

    fn file(&self, cache: &str) -> PathBuf {
        let base = self.dir.path().join("sys/kernel/slab");
        base.join(cache).join("validate")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = slabctl();
        command.arg("--root").arg(self.dir.path()).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        support::finish(self.command(args))
    }

    /// Runs it while each write to `validate` of a cache puts the next text
    /// into the log, before the write is done.
    fn answer(&self, args: &[&str], answers: &[(&str, &str)]) -> Run {
        let mut pipes: Vec<_> = (0..answers.len()).map(|n| self.full_pipe(n)).collect();
        let stage = |n: usize| fs::rename(self.stored(n), self.file(answers[n].0)).unwrap();
        // The first of each cache is in its place, a later one when the one before is open.
        let earlier = |n: usize| answers[..n].iter().any(|(c, _)| *c == answers[n].0);
        (0..answers.len()).filter(|n| !earlier(*n)).for_each(stage);
        let mut command = self.command(args);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        for (n, (cache, text)) in answers.iter().enumerate() {
            let path = self.file(cache);
            until(|| holds(&mut child, &path));
            let next = (n + 1..answers.len()).find(|next| answers[*next].0 == *cache);
            if let Some(next) = next {
                stage(next);
            } else {
                // From now on the cache is clean.
                fs::write(path.with_extension("done"), "").unwrap();
                fs::rename(path.with_extension("done"), &path).unwrap();
            }
            (&self.log).write_all(text.as_bytes()).unwrap();
            drain(&mut pipes[n]);
        }
        let output = child.wait_with_output().unwrap();
        let (stdout, stderr) = (output.stdout, output.stderr);
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }

    fn stored(&self, n: usize) -> PathBuf {
        self.dir.path().join(format!("pipe-{n}"))
    }

    fn full_pipe(&self, n: usize) -> File {
        let mut pipe = pipe(&self.stored(n));
        while pipe.write(&[b'-'; 4096]).is_ok() {}
        pipe
    }
}

/// Whether the program has the file open.
fn holds(child: &mut Child, path: &Path) -> bool {
    assert_eq!(child.try_wait().unwrap(), None, "it ended early");
    let Ok(list) = fs::read_dir(format!("/proc/{}/fd", child.id())) else {
        return false;
    };
    list.flatten()
        .any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == path))
}

/// Takes what fills the pipe, and then the program's own word.
fn drain(pipe: &mut File) {
    let mut block = [0; 4096];
    until(|| match pipe.read(&mut block) {
        Ok(n) => block[..n].contains(&b'1'),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::WouldBlock);
            false
        }
    });
}

/// The document, which follows its schema.
fn valid(name: &str, text: &str) -> Value {
    let document = serde_json::from_str(text).unwrap();
    let schema = serde_json::from_str(&support::stdout(&["schema", name])).unwrap();
    assert_eq!(check::errors(&schema, &document), Vec::<String>::new());
    document
}

/// What a planted fault put into a real kernel's log, as /dev/kmsg gives it.
fn planted(log: &str, title: &str) -> String {
    let path = data(&format!("log/{log}.txt.xz"));
    let unpacked = Command::new("xz").arg("-dc").arg(path).output().unwrap();
    let text = String::from_utf8(unpacked.stdout).unwrap();
    let title = format!("=== slabbug: {title}");
    let lines = text
        .lines()
        .skip_while(|line| !line.ends_with(&title))
        .skip(1);
    let lines = lines.take_while(|line| !line.contains("] === "));
    let record = |(n, line): (usize, &str)| {
        let line = line.split_once("] ").map_or(line, |(_, rest)| rest);
        format!("3,{},{},-;{line}\n", n + 900, n + 7_000_000)
    };
    let text: String = lines.enumerate().map(record).collect();
    assert!(text.len() > 100, "{title}");
    text
}

#[test]
fn a_damaged_cache_is_told_from_the_log_and_clean_ones_are_clean() {
    for (log, kernel) in [
        ("planted-6.1", "6.1.0-57-cloud-amd64"),
        ("planted-6.12", "6.12.117+deb12-cloud-amd64"),
        ("planted-7.3", "7.3.4+deb13-cloud-amd64"),
    ] {
        let machine = Machine::new(kernel, &[("sb-overflow", "FZPU"), ("dentry", "FZ")]);
        let text = planted(log, "overflow validate");
        // What was in the log before is nobody's fault now.
        (&machine.log)
            .write_all(planted(log, "uaf-mid validate").as_bytes())
            .unwrap();
        let both = ["validate", "sb-overflow", "dentry", "--yes", "--json"];
        let seen = machine.answer(&both, &[("sb-overflow", &text), ("dentry", "")]);
        assert_eq!(seen.code, Some(3), "{}", seen.stderr);
        let document: Value = valid("validate", &seen.stdout);
        assert_eq!(document["clean"], false);
        assert_eq!(document["findings"].as_array().unwrap().len(), 1, "{log}");
        let finding = &document["findings"][0];
        assert_eq!(finding["cache"], "sb-overflow");
        assert_eq!(finding["code"], "overflow");
        assert_eq!(finding["found_by_check"], true);
        assert_eq!(finding["likely_false_positive"], Value::Null);
        let verdicts = |n: usize| document["checked"][n]["verdict"].clone();
        assert_eq!(
            (verdicts(0), verdicts(1)),
            ("findings".into(), "clean".into())
        );
        assert_eq!(
            (&document["passes"], &document["slabs"]),
            (&2.into(), &13.into())
        );
        assert_eq!(fs::read(machine.file("sb-overflow")).unwrap(), b"1");
        assert!(seen.stderr.contains("out of reach"), "{}", seen.stderr);
        assert!(seen.stderr.contains("dentry"), "{}", seen.stderr);
    }
}

#[test]
fn all_caches_are_those_that_the_kernel_checks() {
    let caches = [("filp", "U"), ("dentry", ""), ("vmap", "Z")];
    let machine = Machine::new("6.12.0", &caches);
    let plan = machine.run(&["validate"]);
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    let expected = "filp: all slabs: free-lists, counters\n\
        vmap: slabs with free objects only (no store_user): free-lists, counters, red-zones\n";
    assert_eq!(plan.stdout, expected);
    assert!(
        plan.stderr.contains("1 cache cannot be validated"),
        "{}",
        plan.stderr
    );
    assert!(
        plan.stderr.contains("slab_debug=FZPU,NAME"),
        "{}",
        plan.stderr
    );
    assert_eq!(fs::read(machine.file("filp")).unwrap(), b"");
    let all = machine.run(&["validate", "--all", "--yes"]);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    assert_eq!(
        all.stdout,
        "2 caches checked, 13 slabs within reach: no findings\n"
    );
    assert_eq!(fs::read(machine.file("vmap")).unwrap(), b"1");
    assert_eq!(fs::read(machine.file("dentry")).unwrap(), b"");
    // Older kernels check every cache.
    let old = Machine::new("5.10.0", &caches);
    let all = old.run(&["validate", "--all", "--yes"]);
    assert!(all.stdout.starts_with("3 caches checked"), "{}", all.stdout);
}

#[test]
fn what_cannot_be_validated_is_said_with_the_way_out() {
    let machine = Machine::new("6.6.9", &[("dentry", ""), ("filp", "U")]);
    let named = machine.run(&["validate", "dentry", "--yes"]);
    support::check_error(&named, 69);
    assert!(
        named.stderr.contains("slub_debug=FZPU,dentry"),
        "{}",
        named.stderr
    );
    // One of two: the other is checked, and the status says that not all was.
    let both = machine.run(&["validate", "dentry", "filp", "--yes"]);
    assert_eq!(both.code, Some(69), "{}", both.stderr);
    assert!(
        both.stdout.starts_with("1 cache checked"),
        "{}",
        both.stdout
    );
    assert!(
        both.stderr.contains("dentry: not validated"),
        "{}",
        both.stderr
    );
    let none = machine.run(&["validate", "none", "--yes"]);
    support::check_error(&none, 4);
    // Without the attribute nothing can be done at all.
    for cache in ["dentry", "filp"] {
        fs::remove_file(machine.file(cache)).unwrap();
    }
    let bare = machine.run(&["validate", "--all", "--yes"]);
    support::check_error(&bare, 69);
    assert!(bare.stderr.contains("CONFIG_SLUB_DEBUG"), "{}", bare.stderr);
}

#[test]
fn nothing_is_written_without_an_answer_or_without_a_log() {
    let machine = Machine::new("6.12.0", &[("filp", "FZPU")]);
    let unasked = machine.run(&["validate", "filp"]);
    support::check_error(&unasked, 2);
    assert!(
        unasked.stderr.contains("repairs what it finds"),
        "{}",
        unasked.stderr
    );
    fs::remove_file(machine.dir.path().join("dev/kmsg")).unwrap();
    let blind = machine.run(&["validate", "filp", "--yes"]);
    support::check_error(&blind, 69);
    assert!(
        blind.stderr.contains("nothing was validated"),
        "{}",
        blind.stderr
    );
    assert_eq!(fs::read(machine.file("filp")).unwrap(), b"");
}

/// The pair of reports of a free under way, as 5.10 prints it.
fn marked(found: &str, expected: &str) -> String {
    let row = [found; 8].join(" ");
    [
        "BUG filp (Not tainted): Right Redzone overwritten".to_owned(),
        format!("INFO: 0x000000001b3c2f00-0x000000001b3c2f07 @offset=512. First byte 0x{found} instead of 0x{expected}"),
        "INFO: Slab 0x0000000011111111 objects=21 used=20 fp=0x0000000000000000 flags=0x200".to_owned(),
        "INFO: Object 0x000000001b3c2e00 @offset=256 fp=0x0000000000000000".to_owned(),
        format!("Redzone  000000001b3c2f00: {row}                          ........"),
        " validate_slab+0xfa/0x130".to_owned(),
        format!("FIX filp: Restoring Right Redzone 0x000000001b3c2f00-0x000000001b3c2f07=0x{expected}"),
    ]
    .map(|line| format!("3,1,1,-;{line}\n"))
    .concat()
}

#[test]
fn the_race_of_old_kernels_is_called_a_likely_false_positive() {
    let pair = [marked("bb", "cc"), marked("cc", "bb")];
    let answers = [("filp", &*pair[0]), ("filp", &*pair[1])];
    let old = Machine::new("5.10.0-30-amd64", &[("filp", "FZPU")]);
    let seen = old.answer(&["validate", "filp", "--yes"], &answers);
    // Nothing to wake anybody for.
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let count = seen.stdout.matches("likely false positive: ").count();
    assert_eq!(count, 2, "{}", seen.stdout);
    assert!(seen.stdout.contains("before Linux 6.1"), "{}", seen.stdout);
    assert!(seen.stdout.ends_with("2 findings\n"), "{}", seen.stdout);
    let fixed = Machine::new("6.1.0", &[("filp", "FZPU")]);
    let seen = fixed.answer(&["validate", "filp", "--yes"], &answers[..1]);
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    assert!(!seen.stdout.contains("false positive"), "{}", seen.stdout);
}

#[test]
fn this_machine_says_truthfully_what_it_can_validate() {
    let Ok(list) = fs::read_dir("/sys/kernel/slab") else {
        return support::skip("no /sys/kernel/slab");
    };
    let on = |dir: &Path| {
        let is = |flag: &&str| fs::read_to_string(dir.join(flag)).is_ok_and(|v| v.trim() == "1");
        FLAGS.iter().any(is)
    };
    let dirs: Vec<_> = list
        .flatten()
        .filter(|e| e.file_type().unwrap().is_dir())
        .collect();
    if fs::read(dirs[0].path().join("slabs")).is_err() || !dirs[0].path().join("validate").exists()
    {
        return support::skip("its slab data cannot be read here, or it validates nothing");
    }
    let debugged = dirs.iter().filter(|e| on(&e.path())).count();
    let seen = run(&["validate"]);
    if debugged == 0 {
        support::check_error(&seen, 69);
        assert!(
            seen.stderr.contains("booted without slab debugging"),
            "{}",
            seen.stderr
        );
        assert!(seen.stderr.contains("=FZPU"), "{}", seen.stderr);
    } else {
        assert_eq!(seen.code, Some(0), "{}", seen.stderr);
        assert_eq!(seen.stdout.lines().count(), debugged, "{}", seen.stdout);
    }
}
