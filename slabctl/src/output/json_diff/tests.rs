//! The contract of the comparison: golden files, schema, the unknown.

use super::*;
use crate::output::{check, json, samples, schema};
use collectors::analysis::diff::diff;
use collectors::model::{Approx, Cache, CacheId, Layer, Quantity, Warning, WarningCode};
use serde_json::Value;
use std::time::Duration;

/// The sample, and the same machine two hours later: dentry grew and was shown
/// under another name, one cache came and one went.
fn pair() -> (Snapshot, Snapshot) {
    let before = samples::snapshot();
    let mut after = samples::snapshot();
    after.origin.detail = "later.tar.gz".to_owned();
    after.origin.taken_at = "2026-01-31T14:00:00Z".parse().ok();
    after.caches.truncate(2);
    let dentry = &mut after.caches[0];
    dentry.name = "kernfs_node_cache".into();
    dentry.aliases = Some(vec!["dentry".into(), "ext4_system_zone".into()]);
    for (q, value) in [
        (Quantity::Objects, 820),
        (Quantity::TotalObjects, 840),
        (Quantity::Slabs, 40),
        (Quantity::ReportedTotal, 163_840),
    ] {
        dentry.set_exact(q, value, Layer::Sysfs);
    }
    dentry.set(Quantity::Partial, Approx::estimate(1), Layer::Slabinfo);
    let counters = dentry.counters.as_mut().unwrap();
    counters.0[0].cpus[0].1 += 50;
    counters.0[0].total += 50;
    let mut new = Cache::new(CacheId(2), "ext4_groupinfo_4k");
    new.set_exact(Quantity::Objects, 12, Layer::Slabinfo);
    new.set_exact(Quantity::Slabs, 1, Layer::Slabinfo);
    after.caches.push(new);
    (before, after)
}

fn text_of(before: &Snapshot, after: &Snapshot, diff: &Diff) -> String {
    let mut text = Vec::new();
    json::write(&mut text, &document(before, after, diff, None)).unwrap();
    String::from_utf8(text).unwrap()
}

fn document_of(before: &Snapshot, after: &Snapshot) -> Value {
    let diff = diff(before, after, None);
    serde_json::from_str(&text_of(before, after, &diff)).unwrap()
}

fn assert_valid(name: &str, document: &Value) {
    let schema = schema::schema(name).unwrap();
    assert_eq!(check::errors(&schema, document), Vec::<String>::new());
}

/// A cache of which only the number of objects in use is known.
fn one(objects: u64) -> Snapshot {
    let mut snapshot = samples::snapshot();
    let mut cache = Cache::new(CacheId(0), "x");
    cache.set_exact(Quantity::Objects, objects, Layer::Slabinfo);
    snapshot.caches = vec![cache];
    snapshot
}

#[test]
fn the_diff_of_two_captures() {
    let (a, b) = pair();
    let text = text_of(&a, &b, &diff(&a, &b, None));
    insta::assert_snapshot!("diff", text);
    let again = text_of(&a, &b, &diff(&a, &b, None));
    assert_eq!(text, again, "same input, same bytes");
    assert_valid("diff", &serde_json::from_str(&text).unwrap());
}

#[test]
fn the_schema_of_the_diff() {
    let mut text = Vec::new();
    json::write(&mut text, &schema::schema("diff").unwrap()).unwrap();
    insta::assert_snapshot!("diff_schema", String::from_utf8(text).unwrap());
}

#[test]
fn each_line_is_the_object_of_the_document() {
    let (a, b) = pair();
    let diff = diff(&a, &b, None);
    let mut lines = Vec::new();
    for row in &diff.rows {
        write_line(&mut lines, row).unwrap();
    }
    let lines: Vec<Value> = String::from_utf8(lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for line in &lines {
        assert_valid("diff-row", line);
    }
    let document: Value = serde_json::from_str(&text_of(&a, &b, &diff)).unwrap();
    assert_eq!(document["caches"], Value::Array(lines));
}

#[test]
fn a_control_character_in_a_name_stays_in_its_line() {
    let (mut a, b) = (one(1), one(2));
    a.caches[0].name = "a\n\u{9b}31m".into();
    let mut line = Vec::new();
    let vanished = diff(&a, &b, None)
        .rows
        .into_iter()
        .find(|r| r.after.is_none());
    write_line(&mut line, &vanished.unwrap()).unwrap();
    let line = String::from_utf8(line).unwrap();
    assert_eq!(line.lines().count(), 1);
    assert!(line.starts_with(r#"{"name":"a\n\u009b31m","#), "{line}");
}

#[test]
fn what_is_unknown_is_null() {
    let mut before = one(5);
    before.origin.taken_at = None;
    let document = document_of(&before, &one(7));
    let row = &document["caches"][0];
    assert_eq!(document["elapsed_seconds"], Value::Null);
    assert_eq!(row["objects"]["delta"], 2);
    assert_eq!(row["objects"]["per_hour"], Value::Null);
    for field in [
        "total_objects",
        "slabs",
        "partial",
        "memory_bytes",
        "used_bytes",
        "loss_bytes",
    ] {
        for part in ["before", "after", "delta", "per_hour"] {
            assert_eq!(row[field][part], Value::Null, "{field} {part}");
            assert_eq!(
                document["totals"][field][part],
                Value::Null,
                "{field} {part}"
            );
        }
    }
    for field in ["renamed_from", "id", "cgroup", "counters"] {
        assert_eq!(row[field], Value::Null, "{field}");
    }
    assert_eq!(row["approx"], Value::Array(Vec::new()));
}

#[test]
fn a_figure_that_only_one_side_has_has_no_delta() {
    let (before, mut after) = (one(5), one(5));
    after.caches[0].set(Quantity::Partial, Approx::estimate(3), Layer::Sysfs);
    let row = &document_of(&before, &after)["caches"][0];
    assert_eq!(row["partial"]["before"], Value::Null);
    assert_eq!(row["partial"]["after"], 3);
    assert_eq!(row["partial"]["delta"], Value::Null);
    assert_eq!(row["approx"], serde_json::json!(["partial"]));
}

#[test]
fn the_widest_delta_is_an_exact_integer() {
    for (before, after, delta) in [
        (u64::MAX, 0, "\"delta\": -18446744073709551615,"),
        (0, u64::MAX, "\"delta\": 18446744073709551615,"),
    ] {
        let (a, b) = (one(before), one(after));
        let text = text_of(&a, &b, &diff(&a, &b, None));
        assert_eq!(text.matches(delta).count(), 2, "row and totals: {text}");
    }
    assert_valid("diff", &document_of(&one(0), &one(u64::MAX)));
    assert_valid("diff", &document_of(&one(5), &one(3)));
}

#[test]
fn a_cache_missing_from_a_partial_list_is_marked() {
    let (mut before, after) = (one(5), one(7));
    before.caches.clear();
    let incomplete = Warning::new(WarningCode::Incomplete, "a grep");
    before.warnings.push(incomplete);
    let document = document_of(&before, &after);
    let row = &document["caches"][0];
    assert_eq!(row["status"], "appeared");
    assert_eq!(row["objects"]["before"], Value::Null);
    assert_eq!(row["objects"]["delta"], 7);
    assert_eq!(row["approx"][0], "objects");
}

#[test]
fn each_warning_names_its_side() {
    let (mut before, mut after) = (one(1), one(1));
    before.warnings = Warnings::default();
    after.system.hostname = Some("db2".to_owned());
    let document = document_of(&before, &after);
    let warnings = document["warnings"].as_array().unwrap();
    let sides: Vec<_> = warnings.iter().map(|w| w["side"].as_str()).collect();
    // Of the comparison: other machines, and a broken row may hide a cache.
    assert_eq!(sides, [Some("after"), Some("after"), None, None]);
    assert_eq!(warnings[0]["line"], 61);
    assert_valid("diff", &document);
}

#[test]
fn only_the_caller_can_put_the_time_into_it() {
    let (a, b) = pair();
    let diff = diff(&a, &b, Some(Duration::from_millis(1500)));
    let live = document(&a, &b, &diff, Some(Timestamp::UNIX_EPOCH));
    let live = serde_json::to_value(live).unwrap();
    assert_eq!(live["generated_at"], "1970-01-01T00:00:00Z");
    assert_eq!(live["elapsed_seconds"], 1.5);
    assert_eq!(document_of(&a, &b)["generated_at"], Value::Null);
}
