//! The contract of machine output as a whole: golden files, order, schemas.

use collectors::model::{Cache, CacheId, Layer, Quantity, Snapshot};
use serde_json::Value;

use super::{check, json, jsonl, samples, schema};

fn text_of(snapshot: &Snapshot) -> String {
    let caches: Vec<_> = snapshot.caches.iter().collect();
    let mut text = Vec::new();
    json::write(&mut text, &json::report(snapshot, &caches, None)).unwrap();
    String::from_utf8(text).unwrap()
}

/// Names of the fields that stand `depth` spaces from the left, in order, once.
fn keys_at(text: &str, depth: usize) -> Vec<&str> {
    let margin = format!("{}\"", " ".repeat(depth));
    let mut keys = Vec::new();
    for line in text.lines() {
        let key = line
            .strip_prefix(&margin)
            .and_then(|l| l.split_once("\": "));
        if let Some((key, _)) = key.filter(|(key, _)| !keys.contains(key)) {
            keys.push(key);
        }
    }
    keys
}

fn assert_valid(name: &str, document: &Value) {
    let schema = schema::schema(name).unwrap();
    assert_eq!(check::errors(&schema, document), Vec::<String>::new());
}

#[test]
fn the_report_of_a_capture() {
    let text = text_of(&samples::snapshot());
    insta::assert_snapshot!("report", text);
    assert_eq!(
        text,
        text_of(&samples::snapshot()),
        "same input, same bytes"
    );
}

#[test]
fn the_schema_of_the_report() {
    let mut text = Vec::new();
    json::write(&mut text, &schema::schema("report").unwrap()).unwrap();
    insta::assert_snapshot!("report_schema", String::from_utf8(text).unwrap());
}

#[test]
fn the_golden_report_is_valid() {
    let golden = include_str!("snapshots/slabctl__output__tests__report.snap");
    let (_, body) = golden.split_once("\n---\n").unwrap();
    assert_valid("report", &serde_json::from_str(body).unwrap());
}

#[test]
fn what_is_written_is_valid_for_any_figures() {
    let mut snapshot = samples::snapshot();
    snapshot.system.page_size_assumed = true;
    snapshot.system.kernel = None;
    snapshot.origin.taken_at = None;
    let mut huge = Cache::new(CacheId(3), "huge");
    for q in Quantity::ALL {
        huge.set_exact(*q, u64::MAX, Layer::Derived);
    }
    snapshot.caches.push(huge);
    snapshot.caches.push(Cache::new(CacheId(4), ""));
    assert_valid(
        "report",
        &serde_json::from_str(&text_of(&snapshot)).unwrap(),
    );

    let caches: Vec<_> = snapshot.caches.iter().collect();
    let mut lines = Vec::new();
    jsonl::write(&mut lines, &caches, 4096).unwrap();
    for line in String::from_utf8(lines).unwrap().lines() {
        assert_valid("cache", &serde_json::from_str(line).unwrap());
    }
}

#[test]
fn a_broken_document_is_not_valid() {
    let schema = schema::schema("report").unwrap();
    let good: Value = serde_json::from_str(&text_of(&samples::snapshot())).unwrap();
    for (place, wrong) in [
        ("/schema", Value::from("slabctl.diff/1")),
        ("/source/kind", Value::from("dream")),
        ("/caches/0/memory_bytes", Value::from("80 KiB")),
        ("/caches/0/utilization", Value::from(1.66)),
        ("/caches/0/counters/free_fastpath/total", Value::Null),
        ("/totals/slabs", Value::from(-1)),
    ] {
        let mut broken = good.clone();
        *broken.pointer_mut(place).unwrap() = wrong;
        assert_ne!(
            check::errors(&schema, &broken),
            Vec::<String>::new(),
            "{place}"
        );
    }
}

#[test]
fn fields_come_in_the_order_of_the_contract() {
    let text = text_of(&samples::snapshot());
    let document = [
        "schema",
        "generated_at",
        "source",
        "system",
        "caches",
        "totals",
        "warnings",
    ];
    assert_eq!(keys_at(&text, 2), document);
    let row = [
        "name",
        "id",
        "aliases",
        "object_size",
        "slab_size",
        "objs_per_slab",
        "order",
        "align",
        "usersize",
        "ctor",
        "flags",
        "limits",
        "objects",
        "total_objects",
        "objects_partial",
        "slabs",
        "partial",
        "cpu_slabs",
        "slabs_cpu_partial",
        "objects_cpu_partial",
        "occupancy",
        "memory_bytes",
        "used_bytes",
        "loss_bytes",
        "utilization",
        "nodes",
        "counters",
        "approx",
    ];
    let mut lines = text.lines();
    let from_caches = lines.by_ref().skip_while(|l| *l != "  \"caches\": [");
    let caches: Vec<_> = from_caches.take_while(|l| *l != "  ],").collect();
    let caches = caches.join("\n");
    assert_eq!(keys_at(&caches, 6)[..row.len()], row);
    let system = [
        "kernel",
        "page_size",
        "page_size_assumed",
        "cpus",
        "nodes",
        "era",
        "meminfo_slab_bytes",
        "reclaimable_bytes",
        "unreclaimable_bytes",
    ];
    let part = |name: &str| {
        let rest = text.split_once(&format!("\n  \"{name}\": {{")).unwrap().1;
        rest.split_once("\n  }").unwrap().0
    };
    assert_eq!(keys_at(part("system"), 4)[..system.len()], system);
    let source = ["kind", "detail", "taken_at"];
    assert_eq!(keys_at(part("source"), 4)[..source.len()], source);
    let totals = [
        "caches",
        "slabs",
        "objects",
        "total_objects",
        "memory_bytes",
        "used_bytes",
        "loss_bytes",
    ];
    assert_eq!(keys_at(part("totals"), 4)[..totals.len()], totals);
}

#[test]
fn caches_keep_their_order_and_their_namesakes() {
    let snapshot = samples::snapshot();
    let chosen: Vec<_> = snapshot.caches.iter().rev().collect();
    let report = serde_json::to_value(json::report(&snapshot, &chosen, None)).unwrap();
    let rows = report["caches"].as_array().unwrap().iter();
    let rows: Vec<_> = rows
        .map(|r| (r["name"].as_str(), r["objects"].as_u64()))
        .collect();
    assert_eq!(
        rows,
        [
            (Some("mlx5_fs_ftes"), Some(9)),
            (Some("mlx5_fs_ftes"), Some(7)),
            (Some("dentry"), Some(400)),
        ]
    );
}

#[test]
fn bytes_are_bytes_and_unknown_is_null() {
    let snapshot = samples::snapshot();
    let caches: Vec<_> = snapshot.caches.iter().collect();
    let report = serde_json::to_value(json::report(&snapshot, &caches, None)).unwrap();
    let dentry = &report["caches"][0];
    assert_eq!(dentry["memory_bytes"], 20 * 4096);
    assert_eq!(dentry["used_bytes"], 400 * 184);
    assert_eq!(dentry["loss_bytes"], 20 * 4096 - 400 * 184);
    assert_eq!(report["system"]["reclaimable_bytes"], 81_920);
    let sparse = &report["caches"][1];
    for field in [
        "id",
        "aliases",
        "slabs",
        "memory_bytes",
        "occupancy",
        "counters",
    ] {
        assert_eq!(sparse[field], Value::Null, "{field}");
    }
    assert_eq!(sparse["flags"]["poison"], Value::Null);
    assert_eq!(report["totals"]["slabs"], 20);
    assert_eq!(report["totals"]["objects"], 416);
}

#[test]
fn control_characters_are_escaped_and_come_back() {
    let mut snapshot = samples::snapshot();
    let name = "a\u{1b}[2J\u{7f}\u{9b}\"\\\n\u{0}é";
    snapshot.caches[0].name = name.into();
    snapshot.origin.detail = "\u{85}".to_owned();
    let text = text_of(&snapshot);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["caches"][0]["name"], name);
    assert_eq!(report["source"]["detail"], "\u{85}");
}
