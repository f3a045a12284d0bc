//! Dependencies between the crates point one way.

use std::process::Command;

use serde_json::Value;

/// From the bottom up: a crate may depend on those before it.
const ORDER: [&str; 5] = [
    "slabctl-slabcore",
    "slabctl-loads",
    "slabctl-collectors",
    "slabctl-tui",
    "slabctl",
];

#[test]
fn crates_depend_only_on_those_below_them() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() >= 2);
    let rank = |name: &str| ORDER.iter().position(|n| *n == name);
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let own = rank(name).unwrap_or_else(|| panic!("{name} has no place in the order"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            if let Some(other) = rank(used) {
                assert!(other < own, "{name} must not depend on {used}");
            }
        }
    }
}
