use super::*;
use slabcore::{Decommit, OnFault, Policy};

/// What is read, and the names of the variables complained of.
fn read(texts: &[&str]) -> (Settings, Vec<String>) {
    let mut complaints = Vec::new();
    let settings = Settings::read(
        texts.iter().map(|text| text.as_bytes()),
        &mut |name, value, wrong| {
            assert!(!wrong.is_empty());
            complaints.push(format!("{name}={value}"));
        },
    );
    (settings, complaints)
}

#[test]
fn every_variable_is_taken_over() {
    let texts = [
        "PATH=/bin",
        "SLABCORE_POLICY=cpu-partial",
        "SLABCORE_DEBUG=FZ,kmalloc-64",
        "SLABCORE_FAIL=7",
        "SLABCORE_SAMPLE=5000",
        "SLABCORE_ON_FAULT=abort",
        "SLABCORE_LOG=/tmp/a log",
        "SLABCORE_LIMIT=64M",
        "SLABCORE_HUGE=1",
        "SLABCORE_HARDEN=1",
        "SLABCORE_RANDOMISE=1",
        "SLABCORE_DECOMMIT=now",
        "SLABCORE_NODES=2",
        "SLABCORE_SEGMENT=file:/dev/shm/slabcore-%p",
        "SLABCORE_WATCHER=7",
        "SLABCORE_HELP=1",
    ];
    assert_eq!(texts.len(), TABLE.len() + 1, "each is tried here");
    let (settings, complaints) = read(&texts);
    assert_eq!(complaints, [""; 0]);
    let engine = settings.engine;
    assert_eq!(engine.policy, Policy::CpuPartial);
    assert_eq!(engine.debug, Some("FZ,kmalloc-64"));
    assert_eq!((engine.fail_every, engine.sample_every), (7, 5000));
    assert_eq!(engine.on_fault, OnFault::Abort);
    assert_eq!(settings.log, Some(c"/tmp/a log"));
    assert_eq!(engine.limit, 64 << 20);
    assert!(engine.huge_pages && engine.harden_freelist && engine.randomise_freelist);
    assert_eq!(engine.decommit, Decommit::Immediate);
    assert_eq!(engine.nodes, 2);
    let place = slabcore::segment::Place::File("/dev/shm/slabcore-%p");
    assert_eq!((engine.segment, engine.watcher), (place, 7));
    assert!(settings.help);
}

#[test]
fn what_means_nothing_is_told_and_leaves_the_default() {
    let default = Settings::new();
    let huge = format!("SLABCORE_LOG=/{}", "x".repeat(20_000));
    for broken in [
        "SLABCORE_POLICY=fast",
        "SLABCORE_POLICY=Hybrid",
        "SLABCORE_DEBUG=FZX",
        "SLABCORE_DEBUG=FZPU,kmalloc-65",
        "SLABCORE_FAIL=-1",
        "SLABCORE_SAMPLE=1e3",
        "SLABCORE_SAMPLE=99999999999",
        "SLABCORE_ON_FAULT=panic",
        "SLABCORE_LOG=log.txt",
        huge.as_str(),
        "SLABCORE_LIMIT=M",
        "SLABCORE_LIMIT=1T",
        "SLABCORE_LIMIT=18446744073709551615G",
        "SLABCORE_HUGE=yes",
        "SLABCORE_HARDEN=2",
        "SLABCORE_RANDOMISE=on",
        "SLABCORE_DECOMMIT=later",
        "SLABCORE_NODES=9",
        "SLABCORE_NODES=0",
        "SLABCORE_HELP=me",
        "SLABCORE_DEBGU=FZPU",
        "SLABCORE_",
    ] {
        let (settings, complaints) = read(&[broken]);
        assert_eq!(settings.engine, default.engine, "{broken}");
        assert!(settings.log.is_none() && !settings.help, "{broken}");
        assert_eq!(complaints.len(), 1, "{broken}");
    }
    let mut told = 0;
    Settings::read(
        [&b"SLABCORE_POLICY=\xff"[..]].into_iter(),
        &mut |_, _, _| told += 1,
    );
    assert_eq!(told, 1);
}

#[test]
fn a_broken_value_leaves_the_others_and_an_empty_one_is_not_set() {
    let (settings, complaints) = read(&["SLABCORE_NODES=x", "SLABCORE_SAMPLE=3", "SLABCORE_HUGE="]);
    assert_eq!((settings.engine.sample_every, complaints.len()), (3, 1));
    // As `slab_debug` without letters.
    let (settings, complaints) = read(&["SLABCORE_DEBUG="]);
    assert_eq!((settings.engine.debug, complaints.len()), (Some(""), 0));
}

#[test]
fn the_documentation_has_the_table() {
    let page = include_str!("../../../../docs/PRELOAD.md");
    let rows: Vec<_> = TABLE
        .iter()
        .map(|it| {
            format!(
                "| `{}` | {} | {} | {} |",
                it.name, it.values, it.default, it.what
            )
        })
        .collect();
    let table = rows.join("\n");
    assert!(
        page.contains(&table),
        "docs/PRELOAD.md should have:\n{table}"
    );
    assert_eq!(page.matches("| `SLABCORE_").count(), TABLE.len());
}
