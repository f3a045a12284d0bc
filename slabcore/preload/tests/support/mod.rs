//! The library, the programs that it is loaded into, and how they are run.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod library;

pub use library::library;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A program may take so long; the slowest takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Flags that debug everything.
#[allow(dead_code)]
pub const FULL: (&str, &str) = ("SLABCORE_DEBUG", "FZPU");

/// All policies.
#[allow(dead_code)]
pub const POLICIES: [&str; 5] = [
    "classic",
    "cpu-partial",
    "delayed-freeze",
    "sheaves",
    "hybrid",
];

/// Compiles a program of `tests/c`, once; `plugin` becomes a library.
pub fn program(name: &str) -> PathBuf {
    static COMPILED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
    std::fs::create_dir_all(&folder).unwrap();
    let at = folder.join(name);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.iter().any(|it| it == name) {
        return at;
    }
    let file = |end: &str| sources.join(format!("{name}.{end}"));
    let (driver, source) = if file("cc").exists() {
        ("c++", file("cc"))
    } else {
        ("cc", file("c"))
    };
    let mut cc = Command::new(driver);
    cc.args([
        "-O1",
        "-g",
        "-fno-builtin",
        "-pthread",
        "-rdynamic",
        "-w",
        "-o",
    ])
    .arg(&at)
    .arg(source);
    if name == "plugin" {
        cc.args(["-shared", "-fPIC"]);
    }
    // glibc has had it apart before 2.34; free_sized comes with the preloaded library.
    cc.args(["-ldl", "-Wl,--unresolved-symbols=ignore-all"]);
    let output = cc.output().expect(driver);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    compiled.push(name.to_owned());
    at
}

/// Whether a program is in the path; says so if not.
#[allow(dead_code)]
pub fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !found {
        eprintln!("SKIPPED: there is no {program}");
    }
    found
}

/// What a program wrote.
#[derive(Debug)]
#[allow(dead_code)]
pub struct Ran {
    pub out: String,
    pub err: String,
    pub status: std::process::ExitStatus,
}

/// Runs a command with the library, and fails if it takes too long.
pub fn run(command: &mut Command, variables: &[(&str, &str)]) -> Ran {
    command.env("LD_PRELOAD", library());
    run_bare(command, variables)
}

/// As [`run`], without the library.
pub fn run_bare(command: &mut Command, variables: &[(&str, &str)]) -> Ran {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SLABCORE_") {
            command.env_remove(name);
        }
    }
    command.envs(variables.iter().copied());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let id = child.id().cast_signed();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let begun = Instant::now();
        if wait.recv_timeout(PATIENCE).is_err() && begun.elapsed() >= PATIENCE {
            // SAFETY: no memory is involved; the child is not yet waited for.
            unsafe { libc::kill(id, libc::SIGKILL) };
        }
    });
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    drop(done);
    watch.join().unwrap();
    Ran {
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
        status,
    }
}

/// Runs a program of `tests/c` with the library; it must succeed and say nothing on stderr.
#[allow(dead_code)]
pub fn quiet(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let ran = run(Command::new(program(name)).args(arguments), variables);
    assert!(ran.status.success(), "{name} {variables:?}: {ran:?}");
    assert_eq!(ran.err, "", "{name} {variables:?}");
    ran.out
}
