//! `slabctl advise` as its users run it: on a pasted slabtop, on two slabinfo texts.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use support::{run, stdout};
use tempfile::TempDir;

const HEAD: &str = "\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> \
: tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
";

/// A slabinfo of a cache of one-page slabs with 21 objects of 192 bytes.
fn slabinfo(objects: u64, slabs: u64) -> String {
    let room = slabs * 21;
    format!(
        "{HEAD}kmalloc-192 {objects} {room} 192 21 1 \
         : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"
    )
}

struct Files(TempDir);

impl Files {
    fn new(texts: &[(&str, String)]) -> Self {
        let dir = TempDir::new().unwrap();
        for (name, text) in texts {
            fs::write(dir.path().join(name), text).unwrap();
        }
        Self(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

fn rules(json: &str) -> Vec<(String, Value)> {
    let document: Value = serde_json::from_str(json).unwrap();
    assert_eq!(document["schema"], "slabctl.advise/1");
    let list = document["advice"].as_array().unwrap();
    let rule = |a: &Value| (a["rule"].as_str().unwrap().to_owned(), a["cache"].clone());
    list.iter().map(rule).collect()
}

#[test]
fn one_capture_tells_where_memory_is_and_never_of_a_leak() {
    let files = Files::new(&[("one", slabinfo(734_506_368, 34_976_494))]);
    let text = stdout(&["advise", "--from", &files.path("one")]);
    assert!(text.contains("[dominant-cache]"), "{text}");
    assert!(text.contains("cannot tell a leak"), "{text}");
    assert!(!text.contains("leak-shaped"), "{text}");
}

#[test]
fn two_captures_tell_the_shape_of_growth() {
    let files = Files::new(&[
        ("before", slabinfo(21_000, 1_000)),
        ("live", slabinfo(63_000, 3_000)),
        ("holes", slabinfo(21_500, 3_000)),
    ]);
    let shape = |after: &str| {
        let (a, b) = (files.path("before"), files.path(after));
        rules(&stdout(&["advise", &a, &b, "--json"])).remove(0)
    };
    let cache = Value::from("kmalloc-192");
    assert_eq!(shape("live"), ("leak-shaped-growth".into(), cache.clone()));
    assert_eq!(shape("holes"), ("growing-holes".into(), cache));
    let (a, b) = (files.path("before"), files.path("live"));
    let text = stdout(&["advise", &a, &b, "--elapsed", "1h"]);
    // 2,000 pages in an hour.
    assert!(text.contains("memory_growth +7.81M/h"), "{text}");
}

#[test]
fn what_is_small_is_left_out_unless_asked_for() {
    let files = Files::new(&[("small", slabinfo(100, 10))]);
    let path = files.path("small");
    let quiet = run(&["advise", "--from", &path]);
    assert_eq!((quiet.code, &*quiet.stdout), (Some(0), ""));
    assert!(
        quiet.stderr.contains("nothing to remark"),
        "{}",
        quiet.stderr
    );
    let all = stdout(&["advise", "--from", &path, "--min", "0", "--csv"]);
    assert!(all.starts_with("rule,cache,bytes,"), "{all}");
    assert!(all.contains("\nfragmentation,kmalloc-192,21120,"), "{all}");
}

#[test]
fn the_demonstration_has_its_holes() {
    let json = stdout(&["advise", "--demo", "--min", "100k", "--json", "-q"]);
    let cache = Value::from("demo_fragmented");
    assert!(rules(&json).contains(&("fragmentation".into(), cache)));
}

#[test]
fn wrong_usage_is_named() {
    for args in [
        &["advise", "--min", "lots"][..],
        &["advise", "-o", "jsonl"],
        &["advise", "--demo", "a.tar"],
    ] {
        let run = run(args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        assert_eq!(run.stdout, "");
    }
}
