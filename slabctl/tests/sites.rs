//! `slabctl sites` as its users run it: on captures of kernels that record users.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use support::{run, stdout};
use tempfile::TempDir;

const TRACKED: &str = "kernels/deb6.12-cloud-FZPU-numa2.tar.xz";
const UNTRACKED: &str = "kernels/deb6.1-cloud.tar.xz";

#[test]
fn sites_are_put_together_by_function_or_kept_apart_by_stack() {
    let sites = |by: &str| -> Value {
        let json = stdout(&[
            "sites",
            "kmalloc-64",
            "--by",
            by,
            "--from",
            TRACKED,
            "--json",
        ]);
        serde_json::from_str(&json).unwrap()
    };
    let (site, stack) = (sites("site"), sites("stack"));
    assert_eq!(site["schema"], "slabctl.sites/1");
    let first = &site["caches"][0]["sites"][0];
    assert_eq!(first["symbol"], "kprobe_add_ksym_blacklist+0x6e/0xf0");
    assert_eq!(
        (&first["count"], &first["stacks"]),
        (&722.into(), &3.into())
    );
    // Slots of 256 bytes under full debugging.
    assert_eq!(first["bytes"], 722 * 256);
    let counts = |document: &Value| -> u64 {
        let list = document["caches"][0]["sites"].as_array().unwrap();
        list.iter().map(|s| s["count"].as_u64().unwrap()).sum()
    };
    assert_eq!(counts(&site), counts(&stack));
    let list = |document: &Value| document["caches"][0]["sites"].as_array().unwrap().len();
    assert!(list(&stack) > list(&site));
    assert_eq!(stack["caches"][0]["sites"][0]["count"], 400);
}

#[test]
fn two_copies_of_the_kernels_list_tell_what_accumulates() {
    // Samples around a directory listing of NFS, and after its cache was dropped.
    let text = fs::read_to_string(support::data("text/alloc-calls-nfs-readdir.txt")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|l| !l.is_empty()).collect();
    let dir = TempDir::new().unwrap();
    let file = |n: usize| {
        let path = dir.path().join(n.to_string());
        fs::write(&path, format!("{}\n", lines[n])).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let files = [file(0), file(1), file(2)];
    let diff = |a: usize, b: usize| stdout(&["sites", "--diff", &files[a], &files[b], "-q"]);
    assert!(diff(0, 1).contains("      +120 nfs_readdir_add_to_array+0x73/0xd0"));
    assert!(diff(0, 2).contains("       +10 nfs_readdir_add_to_array+0x73/0xd0"));
    assert!(diff(1, 2).contains("      -110 nfs_readdir_add_to_array+0x73/0xd0"));
    let same = run(&["sites", "--diff", &files[0], &files[0]]);
    assert_eq!((same.code, &*same.stdout), (Some(0), ""));
    assert!(same.stderr.contains("no difference"), "{}", same.stderr);
}

#[test]
fn a_side_without_records_is_named_and_never_counted_as_zero() {
    for (a, b, lacks) in [
        (UNTRACKED, TRACKED, "the earlier capture does not have"),
        (TRACKED, UNTRACKED, "the later capture does not have"),
        (UNTRACKED, UNTRACKED, "neither capture has"),
    ] {
        let run = run(&["sites", "kmalloc-64", "--diff", a, b]);
        assert_eq!((run.code, &*run.stdout), (Some(69), ""), "{}", run.stderr);
        assert!(run.stderr.contains(lacks), "{}", run.stderr);
    }
}

#[test]
fn without_records_it_says_what_to_do() {
    let run = run(&["sites", "dentry", "--from", UNTRACKED]);
    assert_eq!((run.code, &*run.stdout), (Some(0), ""));
    // The word of that kernel, which is older than 6.9.
    assert!(
        run.stderr.contains(" slub_debug=U,dentry"),
        "{}",
        run.stderr
    );
}

#[test]
fn what_is_not_there_is_named() {
    let missing = run(&["sites", "dentri", "--from", TRACKED]);
    assert_eq!(missing.code, Some(4), "{}", missing.stderr);
    assert!(
        missing.stderr.contains("did you mean dentry"),
        "{}",
        missing.stderr
    );
    let lines = run(&["sites", "-o", "jsonl", "--from", TRACKED]);
    assert_eq!(lines.code, Some(2), "{}", lines.stderr);
}
