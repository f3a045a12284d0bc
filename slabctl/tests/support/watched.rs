//! Commands that look at a process which makes that hard: each ends in time and holds little memory.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{Run, assert_plain, slabctl};

/// What a command may take.
const TIME: Duration = Duration::from_secs(5);
const KIBIBYTES: u64 = 64 << 10;

/// All that can be asked of a process.
pub const COMMANDS: [&[&str]; 8] = [
    &["report"],
    &["show", "plain"],
    &["validate"],
    &["dump"],
    &["sites", "--by", "stack"],
    &["ps"],
    &["diff", "--interval", "20ms"],
    &["top", "--linear", "--count", "1", "-d", "100ms"],
];

/// Runs a command and watches it.
pub fn watched(args: &[&str], pid: &str) -> Run {
    let mut command = slabctl();
    command.args(args).args(["--pid", pid]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let texts = std::thread::spawn(move || {
        let mut texts = [Vec::new(), Vec::new()];
        stdout.read_to_end(&mut texts[0]).unwrap();
        stderr.read_to_end(&mut texts[1]).unwrap();
        texts.map(|text| String::from_utf8(text).unwrap())
    });
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let code = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let held = { text.lines() }.find_map(|line| line.strip_prefix("VmHWM:"));
        let held = held.and_then(|of| of.trim().strip_suffix(" kB")?.parse().ok());
        most = most.max(held.unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if began.elapsed() > 3 * TIME {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = began.elapsed();
    let [stdout, stderr] = texts.join().unwrap();
    assert!(took < TIME, "{args:?} took {took:?}: {stderr}");
    assert!(most < KIBIBYTES, "{args:?} held {most} KiB: {stderr}");
    assert!(
        code.is_some_and(|code| code < 100),
        "{args:?}: {code:?} {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    assert_plain(&stdout);
    assert_plain(&stderr);
    Run {
        code,
        stdout,
        stderr,
    }
}
