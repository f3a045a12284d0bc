//! `slabctl dump` on kernels: saved ones, a tree that stands for one, and this machine's.

#![allow(clippy::unwrap_used)]

#[path = "../src/output/check.rs"]
#[allow(dead_code, reason = "the schema itself is checked where it is made")]
mod check;
mod support;

use serde_json::Value;
use support::{error, run, stdout, write_tree};
use tempfile::TempDir;

const TRACKED: &str = "kernels/deb6.12-cloud-FZPU-numa2.tar.xz";

fn document(args: &[&str]) -> Value {
    let text = stdout(&[&["dump", "--json", "-q"], args].concat());
    let document = serde_json::from_str(&text).unwrap();
    let schema = serde_json::from_str(&stdout(&["schema", "dump"])).unwrap();
    assert_eq!(check::errors(&schema, &document), Vec::<String>::new());
    document
}

fn attribute<'d>(cache: &'d Value, name: &str) -> &'d Value {
    let list = cache["kernel"]["attributes"].as_array().unwrap();
    list.iter().find(|a| a["name"] == name).unwrap()
}

#[test]
fn a_capture_gives_attributes_nodes_counters_and_stacks() {
    let seen = document(&["kmalloc-64", "--from", TRACKED]);
    let cache = &seen["caches"][0];
    assert_eq!(
        (&cache["name"], &cache["debug"]),
        (&"kmalloc-64".into(), &"FZPU".into())
    );
    assert_eq!(attribute(cache, "object_size")["value"], "64");
    assert!(
        attribute(cache, "object_size")["meaning"]
            .as_str()
            .unwrap()
            .contains("Payload")
    );
    assert_eq!(attribute(cache, "validate")["value"], Value::Null);
    let kernel = &cache["kernel"];
    assert_eq!(kernel["attributes_read"], true);
    assert_eq!(kernel["figures"]["nodes"].as_array().unwrap().len(), 2);
    let first = &kernel["allocated_by"][0];
    assert!(first["stack"].as_array().unwrap().len() > 2, "{first}");
    assert_eq!(kernel["sites_missing"], Value::Array(Vec::new()));
    // The same input gives the same output.
    assert_eq!(seen["generated_at"], Value::Null);
    let text = stdout(&["dump", "kmalloc-64", "-q", "-n", "2", "--from", TRACKED]);
    for part in [
        "debug options FZPU",
        "Payload bytes",
        "\nNode ",
        "allocated by",
        "more not shown",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn counters_are_with_the_cpus_and_in_machine_output() {
    let from = ["dentry", "--from", support::NUMA];
    let seen = document(&from);
    let counter = attribute(&seen["caches"][0], "alloc_fastpath");
    assert!(
        counter["value"].as_str().unwrap().contains("C0="),
        "{counter}"
    );
    let text = stdout(&[&["dump", "-q"], &from[..]].concat());
    let (attributes, rest) = text.split_once("\nCounter").unwrap();
    assert!(!attributes.contains("alloc_fastpath"), "{text}");
    assert!(rest.contains("alloc_fastpath"), "{text}");
}

#[test]
fn call_sites_of_every_age_and_unknown_attributes_are_there() {
    let dir = TempDir::new().unwrap();
    let slab = "sys/kernel/slab";
    write_tree(
        dir.path(),
        &[
            ("proc/sys/kernel/osrelease", "5.10.0\n"),
            ("proc/meminfo", "Slab: 9 kB\n"),
            (&format!("{slab}/old/store_user"), "1\n"),
            (&format!("{slab}/old/slab_size"), "64\n"),
            (&format!("{slab}/old/zz_later"), "of a later kernel\n"),
            (
                &format!("{slab}/old/alloc_calls"),
                "      7 foo+0x1/0x2 age=1/2/3 pid=4-5 cpus=0-1 nodes=0\n",
            ),
            (&format!("{slab}/old/free_calls"), "No data\n"),
            (&format!("{slab}/new/store_user"), "1\n"),
            (&format!("{slab}/new/slab_size"), "64\n"),
            (&format!("{slab}/bare/store_user"), "0\n"),
            (&format!("{slab}/bare/slab_size"), "64\n"),
            (
                "sys/kernel/debug/slab/new/alloc_traces",
                "     30 bar+0x1/0x10 waste=60/2 age=10/20/30 pid=5-9\n        bar+0x1/0x10\n        baz+0x2/0x20\n\n      2 plain+0x1/0x2 age=5 pid=3\n",
            ),
        ],
    );
    let root = dir.path().to_str().unwrap();
    let old = document(&["old", "--root", root]);
    let cache = &old["caches"][0];
    assert_eq!(attribute(cache, "zz_later")["value"], "of a later kernel");
    assert_eq!(attribute(cache, "zz_later")["meaning"], Value::Null);
    assert_eq!(attribute(cache, "alloc_calls")["value"], Value::Null);
    assert_eq!(cache["kernel"]["allocated_by"][0]["count"], 7);
    assert_eq!(cache["kernel"]["freed_by"], Value::Array(Vec::new()));
    assert_eq!(attribute(cache, "slab_size")["error"], Value::Null);
    let new = document(&["new", "--root", root]);
    let sites = &new["caches"][0]["kernel"]["allocated_by"];
    assert_eq!(
        (&sites[0]["waste_bytes"], &sites[0]["bytes"]),
        (&60.into(), &1920.into())
    );
    assert_eq!(sites[0]["stack"].as_array().unwrap().len(), 2);
    assert_eq!(sites[1]["stack"], Value::Array(Vec::new()));
    // Without tracking: null, and what to do, in the words of that kernel.
    let bare = document(&["bare", "--root", root]);
    let kernel = &bare["caches"][0]["kernel"];
    assert_eq!(kernel["allocated_by"], Value::Null);
    let said = kernel["sites_missing"][0].as_str().unwrap();
    assert!(said.contains("slub_debug=U,bare"), "{said}");
    let text = run(&["dump", "old", "bare", "--root", root]);
    assert!(
        text.stdout.contains("not known to this program"),
        "{}",
        text.stdout
    );
    assert!(text.stderr.contains("slub_debug=U,bare"), "{}", text.stderr);
}

#[test]
fn a_text_without_files_gives_its_figures() {
    let args = ["dump", "dentry", "--from", "slabinfo/5.4-openstack.txt"];
    let seen = run(&args);
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert!(
        seen.stdout.contains("slab_size       192"),
        "{}",
        seen.stdout
    );
    assert!(
        seen.stderr.contains("no attribute files"),
        "{}",
        seen.stderr
    );
    let json = document(&args[1..]);
    assert_eq!(json["caches"][0]["kernel"]["attributes_read"], false);
    assert_eq!(json["caches"][0]["object_size"], Value::Null);
}

#[test]
fn what_is_not_there_is_named() {
    let message = error(&["dump", "dentri", "--from", TRACKED], 4);
    assert!(message.contains("did you mean dentry"), "{message}");
    let options = run(&["dump", "dentry", "--objects", "--from", TRACKED]);
    assert_eq!(options.code, Some(2), "{}", options.stderr);
}

#[test]
fn this_machines_cache_is_dumped_whole() {
    let seen = run(&["dump", "kmalloc-64", "--json", "-q"]);
    if seen.code == Some(69) || seen.code == Some(77) {
        return support::skip("its slab data cannot be read here");
    }
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let document: Value = serde_json::from_str(&seen.stdout).unwrap();
    let id = document["caches"][0]["kernel"]["figures"]["id"]
        .as_str()
        .unwrap();
    let files = std::fs::read_dir(format!("/sys/kernel/slab/{id}")).unwrap();
    let files = files.filter(|e| e.as_ref().unwrap().file_type().unwrap().is_file());
    let attributes = document["caches"][0]["kernel"]["attributes"]
        .as_array()
        .unwrap();
    assert_eq!(attributes.len(), files.count());
}
