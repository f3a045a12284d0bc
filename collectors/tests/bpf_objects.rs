//! The objects with the BPF programs are those that their sources make.

use std::path::Path;
use std::process::Command;

#[test]
fn the_pinned_compiler_makes_the_same_bytes() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/build.sh");
    let output = Command::new(script).arg("--check").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        // Nothing but the comparison needs it; .ci/run installs it.
        Some(77) => eprintln!("skipped: the objects were not built anew: {said}"),
        code => panic!("{code:?}: {said}"),
    }
}
