//! Dependencies between the crates point one way.

use std::process::Command;

use serde_json::Value;

/// From the bottom up: a crate may depend on those before it.
const ORDER: [&str; 6] = [
    "slabctl-slabcore",
    "slabctl-loads",
    "slabctl-preload",
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
    let names: Vec<_> = packages
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    for name in ORDER {
        assert!(names.contains(&name), "{name} is not there");
    }
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

/// The screen of `tui` asks others to read and write: its sources name no
/// file system and no process.
#[test]
fn the_screen_opens_no_files() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tui/src");
    let mut folders = vec![sources];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for word in ["std::fs", "File::open", "std::env", "Command::new"] {
                assert!(!text.contains(word), "{}: {word}", path.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 20);
}
