//! Each mode on a hand-built machine, and one test for each repaired defect.

use std::ffi::OsString;

use collectors::model::{Flag, Layer, NodeId, Quantity, Slabs, Snapshot, Warning, WarningCode};
use insta::assert_snapshot;

use super::*;
use crate::compat::Request;
use crate::compat::fixture;

fn options(line: &str) -> Options {
    let words = line.split_whitespace().map(OsString::from).collect();
    match Options::parse(words) {
        Ok(Request::Run(options)) => options,
        other => panic!("{line}: {other:?}"),
    }
}

fn on(snapshot: &Snapshot, line: &str) -> (String, Vec<String>) {
    let mut out = Vec::new();
    let outcome = run(&options(line), snapshot, &mut out).unwrap();
    assert_eq!(outcome.code, 0);
    (String::from_utf8(out).unwrap(), outcome.notes)
}

fn print(line: &str) -> String {
    let (out, notes) = on(&fixture::snapshot(), line);
    let notes: Vec<String> = notes.iter().map(|n| format!("stderr: {n}\n")).collect();
    format!("{out}{}", notes.concat())
}

/// The first word of each line after the title.
fn names(line: &str) -> Vec<String> {
    let (out, _) = on(&fixture::snapshot(), line);
    let lines = out.lines().skip(1);
    lines
        .map(|l| l.split_whitespace().next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn modes_look_as_in_the_tool() {
    for (name, line) in [
        ("list", ""),
        ("list_bytes_zero", "-Bz"),
        ("list_loss", "-L"),
        ("list_first_alias", "-f"),
        ("list_pattern", "inode"),
        ("activity", "-D"),
        ("aliases", "-a"),
        ("aliases_single", "-a1"),
        ("aliases_inverted", "-ai1"),
        ("numa", "-n"),
        ("report", r"-r kmalloc\|dentry"),
        ("report_of_unknown", "proc_only"),
        ("report_of_race", "raced"),
        ("tracking", "-t kmalloc-64"),
        ("totals", "-T"),
        ("xtotals", "-X -N2"),
    ] {
        assert_snapshot!(name, print(line));
    }
}

#[test]
fn inverting_turns_every_order_round() {
    for sort in ["", "-S", "-L", "-P", "-A"] {
        // Without the caches that tie or lack the figure.
        let pattern = r"^\(dentry\|kmalloc\|ext4\|raced\)";
        let down = names(&format!("{sort} {pattern}"));
        let mut up = names(&format!("-i {sort} {pattern}"));
        if sort == "-A" {
            // One cache has counters: it leads both ways, the rest stay by name.
            assert_eq!(down, up);
            continue;
        }
        up.reverse();
        assert_eq!(down, up, "{sort}");
    }
}

#[test]
fn equal_figures_are_ordered_by_name_both_ways() {
    for line in [r"-S ^bio-", r"-S -i ^bio-"] {
        assert_eq!(names(line), ["BIO-099", "bio-120"], "{line}");
    }
}

#[test]
fn unknown_figures_are_last_both_ways() {
    for line in ["-L", "-L -i", "-P", "-P -i"] {
        assert_eq!(names(line).last().unwrap(), "proc_only", "{line}");
    }
}

#[test]
fn a_line_count_counts_the_lines_that_are_shown() {
    let mut snapshot = fixture::snapshot();
    for i in 0..20 {
        let mut empty = snapshot.caches[5].clone();
        empty.name = format!("aaa_{i}").into();
        empty.sysfs_id = Some(empty.name.clone());
        snapshot.caches.insert(0, empty);
    }
    fixture::number(&mut snapshot);
    let (out, _) = on(&snapshot, "-N 3");
    assert_eq!(out.lines().count(), 4, "{out}");
    let (out, _) = on(&snapshot, "-n -N 3");
    assert_eq!(out.lines().count(), 6, "{out}");
}

#[test]
fn a_merged_cache_is_found_by_its_id_and_by_every_name() {
    for pattern in ["^cred$", "^pid$", "^:A-0000192$"] {
        let (out, _) = on(&fixture::snapshot(), &format!("-a {pattern}"));
        assert_eq!(out, "\n:A-0000192   <- cred pid zz_longest_of_all\n");
        let (out, _) = on(&fixture::snapshot(), pattern);
        assert!(out.contains("Objects: 420"), "{pattern}: {out}");
    }
}

#[test]
fn the_name_that_was_asked_for_is_the_one_shown() {
    assert_eq!(names(r"^\(cred\|dentry\)$"), ["cred", "dentry"]);
    // Several match: the id, or with -f the first-created one of them.
    assert_eq!(names(r"-f ^\(cred\|pid\|dentry\)$"), ["dentry", "pid"]);
}

#[test]
fn the_totals_keep_to_the_pattern() {
    let (out, _) = on(&fixture::snapshot(), "-T -B ^dentry$");
    assert!(
        out.contains("Slabcaches :               1   Aliases  :           0->0    Active:      1")
    );
    assert!(out.contains("Memory used:        14745600"), "{out}");
}

#[test]
fn the_mean_of_partial_objects_is_a_count() {
    let (out, _) = on(&fixture::snapshot(), r"-T -B ^dentry$\|^bio-120");
    let line = out.lines().find(|l| l.starts_with("PartObjs")).unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells, ["PartObjs", "750", "0", "1500", "1500"]);
}

#[test]
fn leaving_out_reclaimable_caches_works_in_every_mode() {
    for line in ["-U", "-U -n", "-U -r", "-U -X -N9", "-U -t"] {
        let (out, _) = on(&fixture::snapshot(), line);
        assert!(!out.contains("dentry"), "{line}: {out}");
    }
    let (out, _) = on(&fixture::snapshot(), "-U -T");
    assert!(out.contains("Slabcaches :               8"), "{out}");
}

#[test]
fn contradictions_are_cut_and_named_never_wrapped() {
    let (out, notes) = on(&fixture::snapshot(), "-zB");
    let line = out.lines().find(|l| l.starts_with("raced")).unwrap();
    assert!(line.contains(" 0/5/4 "), "{line}");
    assert!(line.contains(" 100 100 A"), "{line}");
    let kinds = [
        "more bytes used than held, read at different moments: raced",
        "more partial slabs than slabs, read at different moments: raced",
        "more slabs at CPUs than slabs, read at different moments: raced",
        "objects are an estimate: raced",
    ];
    assert_eq!(notes, kinds);
}

#[test]
fn a_race_that_the_source_names_is_not_named_twice() {
    let mut snapshot = fixture::snapshot();
    snapshot.warnings.push(Warning::new(
        WarningCode::Race,
        "raced: cpu_slabs 4 > slabs 3: read at different moments",
    ));
    let (_, notes) = on(&snapshot, "");
    assert_eq!(notes, ["objects are an estimate: raced"]);
}

#[test]
fn an_unknown_figure_is_a_dash_and_never_a_zero() {
    let (out, _) = on(&fixture::snapshot(), "");
    let line = out.lines().find(|l| l.starts_with("proc_only")).unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "proc_only",
            "90",
            "-",
            "40.9K",
            "-/-/-",
            "10",
            "0",
            "-",
            "-",
            "-"
        ]
    );
}

#[test]
fn missing_counters_are_said_and_the_order_is_by_name() {
    let mut snapshot = fixture::snapshot();
    for cache in &mut snapshot.caches {
        cache.counters = None;
    }
    let (by_activity, notes) = on(&snapshot, "-A");
    assert_eq!(by_activity, on(&snapshot, "").0);
    assert!(notes[0].contains("no CONFIG_SLUB_STATS") && notes[0].ends_with("sorted by name"));
    let (out, _) = on(&snapshot, "-D");
    assert!(out.lines().skip(1).all(|l| l.contains(" - ")), "{out}");
}

#[test]
fn traffic_through_sheaves_counts_as_activity() {
    let snapshot = fixture::snapshot();
    let (out, _) = on(&snapshot, "-D ^[kd]");
    let line = out.lines().find(|l| l.starts_with("kmalloc-64")).unwrap();
    // alloc_fastpath 7, alloc_slowpath 14, alloc_cpu_sheaf 189.
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((cells[2], cells[4]), ("210", "93"));
}

#[test]
fn one_node_is_a_table_too() {
    let mut snapshot = fixture::snapshot();
    for cache in &mut snapshot.caches {
        cache.nodes.truncate(1);
    }
    snapshot.system.nodes = Some(1);
    let (out, notes) = on(&snapshot, "-n -N1");
    assert!(out.contains("\n:A-0000192               15\n"), "{out}");
    assert!(notes.is_empty());
}

#[test]
fn a_kernel_without_node_lists_has_all_on_its_node() {
    let mut snapshot = fixture::snapshot();
    for cache in &mut snapshot.caches {
        cache.nodes.clear();
    }
    snapshot.system.nodes = Some(1);
    let (out, _) = on(&snapshot, "-n -N1");
    assert!(out.contains("\n:A-0000192               20\n"), "{out}");
    snapshot.system.nodes = None;
    let (out, notes) = on(&snapshot, "-n");
    assert_eq!(out, "");
    assert!(notes[0].starts_with("-n: no figures of nodes here"));
}

#[test]
fn a_huge_node_number_is_one_column() {
    let mut snapshot = fixture::snapshot();
    snapshot.caches[0].nodes[1].node = NodeId(u32::MAX);
    let (out, _) = on(&snapshot, "-n");
    assert!(
        out.lines().nth(1).unwrap().ends_with("0    1 4294967295"),
        "{out}"
    );
}

#[test]
fn long_lists_of_call_sites_are_whole() {
    let mut snapshot = fixture::snapshot();
    let sites = snapshot.caches[3].sites.as_mut().unwrap();
    let one = sites[0].clone();
    sites.extend(std::iter::repeat_n(one, 500));
    let (out, _) = on(&snapshot, "-t ^kmalloc");
    assert_eq!(out.matches("do_init+0x1/0x2 waste").count(), 501);
}

#[test]
fn call_sites_of_other_caches_are_not_printed() {
    let (out, _) = on(&fixture::snapshot(), "-t ^kmalloc-64$");
    assert_eq!(out.matches("Kernel object").count(), 2, "{out}");
}

#[test]
fn there_is_no_limit_of_caches_or_names() {
    let mut snapshot = fixture::snapshot();
    let model = snapshot.caches[1].clone();
    for i in 0..3000 {
        let mut cache = model.clone();
        cache.name = format!("name_{i}").into();
        cache.sysfs_id = Some(format!(":{i:07}").into());
        snapshot.caches.push(cache);
    }
    fixture::number(&mut snapshot);
    assert_eq!(on(&snapshot, "").0.lines().count(), 3010);
    assert_eq!(on(&snapshot, "-a").0.lines().count(), 3002);
}

#[test]
fn counts_beyond_32_bits_are_printed_as_they_are() {
    let mut snapshot = fixture::snapshot();
    let huge = 3_000_000_000;
    for q in [Quantity::CpuSlabs, Quantity::Slabs] {
        snapshot.caches[0].set_exact(q, huge, Layer::Sysfs);
    }
    snapshot.caches[0].nodes[0].slabs = Some(Slabs(huge));
    let (out, _) = on(&snapshot, r"^dentry$\|^cred$");
    assert!(out.contains("0/130/3000000000"), "{out}");
}

#[test]
fn a_name_cannot_drive_the_terminal() {
    let mut snapshot = fixture::snapshot();
    snapshot.caches[0].name = "den\x1b[31mtry".into();
    for line in ["", "-r", "-t", "-n", "-S -X"] {
        let (out, _) = on(&snapshot, line);
        assert!(
            !out.contains('\x1b') && out.contains("den\\x1b[31mtry"),
            "{line}"
        );
    }
}

#[test]
fn nothing_found_is_said_and_succeeds() {
    let (out, notes) = on(&fixture::snapshot(), "nosuch");
    assert_eq!(out, "");
    assert_eq!(notes, ["no cache matches 'nosuch'"]);
}

#[test]
fn two_caches_of_one_name_are_two_lines() {
    let mut snapshot = fixture::snapshot();
    let mut second = snapshot.caches[0].clone();
    second.set_exact(Quantity::Objects, 5, Layer::Slabinfo);
    snapshot.caches.push(second);
    fixture::number(&mut snapshot);
    let (out, _) = on(&snapshot, "^dentry$");
    assert_eq!(out.matches("\ndentry ").count(), 2, "{out}");
}

#[test]
fn no_more_is_read_than_the_mode_needs() {
    let aliases = demand(&options("-a"));
    assert!(aliases.quantities.is_empty() && aliases.flags.is_empty());
    let list = demand(&options(""));
    assert!(!list.sites && !list.counters && !list.nodes);
    assert!(!list.quantities.contains(Quantity::ObjectsPartial));
    assert!(
        demand(&options("-T"))
            .quantities
            .contains(Quantity::ObjectsPartial)
    );
    assert!(demand(&options("-t")).sites);
    assert!(demand(&options("-D")).counters);
    assert!(
        demand(&options("-nU"))
            .flags
            .contains(&Flag::ReclaimAccount)
    );
    let snapshot = fixture::snapshot();
    assert_eq!(second_demand(&options("-S"), &snapshot), None);
    let single = second_demand(&options("^cred$"), &snapshot).unwrap();
    assert!(single.sites && single.only == Some(vec![":A-0000192".to_owned()]));
    assert_eq!(first_demand(&options("inode")), Demand::names());
    let several = second_demand(&options("inode"), &snapshot).unwrap();
    assert_eq!(several.only.map(|o| o.len()), Some(3));
    assert!(!several.sites);
}

proptest::proptest! {
    #[test]
    fn no_figure_makes_a_mode_panic(
        figures in proptest::collection::vec((0..Quantity::COUNT, proptest::prelude::any::<u64>()), 0..40),
        small in proptest::prelude::any::<bool>(),
    ) {
        let mut snapshot = fixture::snapshot();
        for (i, (q, value)) in figures.into_iter().enumerate() {
            let cache = i % snapshot.caches.len();
            let value = if small { value % 3 } else { value };
            snapshot.caches[cache].set_exact(Quantity::ALL[q], value, Layer::Sysfs);
            snapshot.caches[cache].counters = Some(Box::new(fixture::counters(value)));
        }
        for line in ["-z", "-LB", "-DA", "-n", "-r", "-X -N9", "-T", "-a1"] {
            on(&snapshot, line);
        }
        let mut out = Vec::new();
        let slabtop = crate::compat::slabtop::Options::default();
        crate::compat::slabtop::run(&slabtop, &snapshot, &mut out).unwrap();
    }
}
