//! The frame on a hand-built machine, and what procps gets wrong.

use std::ffi::OsString;

use collectors::model::{Layer, Quantity, Snapshot};
use insta::assert_snapshot;

use super::*;
use crate::compat::{Request, fixture};

fn options(line: &str) -> Options {
    let words = line.split_whitespace().map(OsString::from).collect();
    match Options::parse(words) {
        Ok(Request::Run(options)) => options,
        other => panic!("{line}: {other:?}"),
    }
}

fn print(snapshot: &Snapshot, line: &str) -> String {
    let mut out = Vec::new();
    run(&options(line), snapshot, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_frame_looks_as_in_the_tool() {
    assert_snapshot!("frame", print(&fixture::snapshot(), "-o"));
}

#[test]
fn every_letter_has_its_order() {
    let snapshot = fixture::snapshot();
    for (letter, first) in [
        ("a", "dentry"),
        ("b", "jbd2_inode"),
        ("c", "ext4_inode_cache"),
        ("l", "dentry"),
        ("v", "dentry"),
        ("n", "BIO-099"),
        ("o", "dentry"),
        ("p", "ext4_inode_cache"),
        ("s", "ext4_inode_cache"),
        ("u", "BIO-099"),
    ] {
        let text = print(&snapshot, &format!("-o -s{letter}"));
        let line = text.lines().nth(7).unwrap();
        assert_eq!(line.split_whitespace().last().unwrap(), first, "{letter}");
    }
}

#[test]
fn a_machine_without_objects_has_no_nan() {
    let mut snapshot = fixture::snapshot();
    snapshot.caches.drain(..5);
    snapshot.caches.truncate(1);
    let text = print(&snapshot, "-o");
    assert!(text.contains(": 0 / 0 (-)\n"), "{text}");
    assert!(!text.to_lowercase().contains("nan"), "{text}");
    snapshot.caches.clear();
    let text = print(&snapshot, "-o");
    assert!(text.contains("Object : - / - / -\n"), "{text}");
}

#[test]
fn counts_beyond_32_bits_do_not_wrap() {
    let mut snapshot = fixture::snapshot();
    let many = 5_000_000_000;
    for q in [Quantity::Objects, Quantity::TotalObjects] {
        snapshot.caches[0].set_exact(q, many, Layer::Slabinfo);
    }
    assert!(print(&snapshot, "-o").contains("5000000000 5000000000 100%"));
}

#[test]
fn names_with_spaces_and_repeated_names_are_kept() {
    let mut snapshot = fixture::snapshot();
    snapshot.caches[0].name = "file lock cache".into();
    snapshot.caches[1].name = "file lock cache".into();
    let text = print(&snapshot, "-o");
    assert_eq!(text.matches(" file lock cache").count(), 2);
    assert_eq!(text.lines().count(), 7 + snapshot.caches.len());
}

#[test]
fn a_pipe_gets_no_control_sequence() {
    assert!(!print(&fixture::snapshot(), "").contains('\x1b'));
}

#[test]
fn a_frame_fits_the_terminal_and_names_cannot_drive_it() {
    let mut snapshot = fixture::snapshot();
    snapshot.caches[0].name = "\x1b[31mred".into();
    let text = frame(&options(""), &snapshot, 9, 70);
    assert_eq!(text.split("\r\n").count(), 9);
    assert!(text.split("\r\n").all(|l| l.chars().count() <= 70));
    assert!(!text.contains('\x1b'));
    assert_eq!(frame(&options(""), &snapshot, 0, 0), "");
}

#[test]
fn contradictions_are_cut_and_named() {
    let mut out = Vec::new();
    let outcome = run(&options("-o"), &fixture::snapshot(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("    48     70 100%"), "{text}");
    assert!(outcome.notes[0].ends_with(": raced"));
}
