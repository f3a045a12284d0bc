//! The preload library, built for the tests that need it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library. Cargo does not build a shared object for the tests of its package, so it is asked
/// to, with the profile and the folder of this test.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // In target/PROFILE/deps.
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().and_then(Path::parent).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "build",
                "--package",
                "slabctl-preload",
                "--lib",
                "--locked",
                "--offline",
            ])
            .arg("--target-dir")
            .arg(profile.parent().unwrap())
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let output = cargo.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let at = profile.join("libslabcore_preload.so");
        assert!(at.exists(), "{}", at.display());
        at
    })
}
