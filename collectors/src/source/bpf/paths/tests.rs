//! Words of the programs as counters, and the numbers that both sides share.

use super::counters::{GONE, Known, SLOW};
use super::functions::Functions;
use super::missed::recursion;
use super::*;
use crate::model::{CounterId, Counters, Era};

fn count(words: &[u64; WORDS], known: &Known, slabs: Option<u64>, told: Told) -> Counters {
    counters(words, known, slabs, told, &Functions::default()).unwrap()
}

fn known(sheaves: Option<bool>) -> Known {
    Known {
        name: "filp".into(),
        index: 0,
        slabs: Some(10),
        sheaves,
    }
}

const fn told(era: Era) -> Told {
    Told {
        era,
        paths: true,
        pages: true,
        slabs: true,
    }
}

fn words() -> [u64; WORDS] {
    let mut words = [0; WORDS];
    words[..9].copy_from_slice(&[70, 30, 50, 10, 7, 3, 5, 1, 4]);
    words
}

#[test]
fn words_of_programs_are_the_kernels_counters() {
    let list = count(&words(), &known(None), Some(12), told(Era::CpuSlabs));
    let of = |id| list.total(id);
    assert_eq!(of(CounterId::AllocFastpath), Some(90));
    assert_eq!(of(CounterId::AllocSlowpath), Some(10));
    assert_eq!(of(CounterId::FreeFastpath), Some(54));
    assert_eq!(of(CounterId::FreeSlowpath), Some(6));
    assert_eq!(of(CounterId::FreeSlab), Some(4));
    // Two more than there were, and four came that are gone.
    assert_eq!(of(CounterId::AllocSlab), Some(6));
    assert_eq!(of(CounterId::AllocCpuSheaf), None);
}

#[test]
fn sheaves_count_apart_where_the_kernel_has_cpu_slabs_too() {
    let mixed = count(&words(), &known(Some(true)), None, told(Era::Mixed));
    assert_eq!(mixed.total(CounterId::AllocCpuSheaf), Some(90));
    assert_eq!(mixed.total(CounterId::AllocFastpath), Some(0));
    assert_eq!(mixed.total(CounterId::AllocSlab), None, "not known");
    let later = count(&words(), &known(Some(true)), None, told(Era::Sheaves));
    assert_eq!(later.total(CounterId::AllocFastpath), Some(90));
    assert_eq!(later.total(CounterId::AllocCpuSheaf), None);
}

#[test]
fn what_cannot_be_told_is_left_out() {
    let old = Told {
        slabs: false,
        ..told(Era::CpuSlabs)
    };
    let list = count(&words(), &known(None), Some(12), old);
    assert_eq!(list.total(CounterId::FreeSlab), None);
    assert_eq!(list.total(CounterId::AllocSlab), None);
    let blind = Told {
        pages: false,
        ..told(Era::CpuSlabs)
    };
    let list = count(&words(), &known(None), None, blind);
    assert_eq!(list.total(CounterId::FreeFastpath), None);
    assert_eq!(list.total(CounterId::AllocSlowpath), Some(10));
    // 7.0 and later have nothing fast but sheaves.
    let list = count(&words(), &known(Some(false)), None, told(Era::Sheaves));
    assert_eq!(list.total(CounterId::AllocFastpath), Some(0));
    assert_eq!(list.total(CounterId::AllocSlowpath), Some(100));
    assert_eq!(list.total(CounterId::FreeSlowpath), Some(60));
}

#[test]
fn without_paths_there_are_two_counters_and_both_are_whole() {
    let only = Told {
        paths: false,
        ..told(Era::Mixed)
    };
    let list = count(&words(), &known(Some(true)), Some(12), only);
    let all = [(CounterId::Allocs, 100), (CounterId::Frees, 60)];
    let found: Vec<_> = list.0.iter().map(|c| (c.id, c.total)).collect();
    assert_eq!(found, all);
    assert_eq!((list.allocs(), list.frees()), (Some(100), Some(60)));
    // The sum of the paths is the same figure.
    let list = count(&words(), &known(Some(true)), Some(12), told(Era::Mixed));
    assert_eq!((list.allocs(), list.frees()), (Some(100), Some(60)));
}

/// Events of kmalloc are not seen without knowing where pages are described.
#[test]
fn a_cache_of_which_nothing_could_be_seen_has_no_counters() {
    for paths in [true, false] {
        let blind = Told {
            paths,
            pages: false,
            ..told(Era::CpuSlabs)
        };
        assert_eq!(
            counters(
                &[0; WORDS],
                &known(None),
                None,
                blind,
                &Functions::default()
            ),
            None
        );
        let list = count(&words(), &known(None), None, blind);
        assert_eq!((list.allocs(), list.frees()), (Some(100), Some(60)));
        let seeing = Told {
            pages: true,
            ..blind
        };
        let list = count(&[0; WORDS], &known(None), None, seeing);
        assert_eq!(list.allocs(), Some(0));
    }
}

#[test]
fn each_thing_that_was_missed_is_told() {
    let said = |missed: &Missed, how| {
        let mut warnings = Warnings::default();
        missed.say(how, std::time::Duration::from_secs(3), None, &mut warnings);
        let lines: Vec<String> = warnings.iter().map(|w| w.message.clone()).collect();
        lines
    };
    let missed = Missed {
        interrupted: Some(41),
        elsewhere: 42,
        unsure: 43,
        ..Missed::default()
    };
    let lines = said(&missed, CountPaths::Inferred);
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in [
        "3.00 s",
        "41 events",
        "42 of unknown",
        "43 allocations",
        "inferred",
    ] {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
    let refused = Refusal::Refused {
        what: "the entry of f".to_owned(),
        why: "not permitted".to_owned(),
    };
    let mut warnings = Warnings::default();
    missed.say(
        CountPaths::Inferred,
        std::time::Duration::ZERO,
        Some(&refused),
        &mut warnings,
    );
    let lines: Vec<String> = warnings.iter().map(|w| w.message.clone()).collect();
    let of_refusal = lines
        .iter()
        .filter(|line| line.contains("the entry of f: not permitted"));
    assert_eq!(of_refusal.count(), 1, "{lines:?}");
    let lacks = Missed {
        functions: vec!["f", "g"],
        ..Missed::default()
    };
    assert!(
        said(&lacks, CountPaths::Fentry)
            .iter()
            .any(|line| line.contains("f, g"))
    );
    let lines = said(&missed, CountPaths::Counts);
    assert!(
        !lines[0].contains("inferred") && !lines[0].contains("43"),
        "{lines:?}"
    );
    let all = Missed {
        unplaced: 7,
        kmalloc: true,
        slabs: true,
        ..missed
    };
    assert_eq!(said(&all, CountPaths::Inferred).len(), 4);
}

#[test]
fn numbers_are_those_of_the_header() {
    let header = include_str!("../../../../bpf/slots.h");
    let enumerators = |name: &str| -> Vec<String> {
        let (_, rest) = header.split_once(&format!("enum {name} {{")).unwrap();
        let (body, _) = rest.split_once("};").unwrap();
        let lines = body
            .lines()
            .filter_map(|line| line.trim().split(',').next());
        lines.filter(|l| !l.is_empty()).map(str::to_owned).collect()
    };
    let counts = enumerators("count_word");
    assert_eq!(
        counts[..4].join(" "),
        "COUNT_ALLOC COUNT_KMALLOC COUNT_FREE COUNT_KFREE"
    );
    assert_eq!(
        (&*counts[SLOW], counts[5].contains("COUNT_SLOW + 4")),
        ("COUNT_SLOW", true)
    );
    // Of the word after COUNT_GONE.
    assert_eq!((GONE + 2, &*counts[7]), (UNSURE, "COUNT_UNSURE"));
    assert!(counts[5].starts_with("COUNT_GONE") && SLOW + 4 == GONE);
    assert_eq!(counts.last().unwrap(), &format!("COUNT_WORDS = {WORDS}"));
    let here = enumerators("here_word");
    assert_eq!(here[ELSEWHERE], "HERE_ELSEWHERE");
    assert_eq!(here[2], "HERE_WORDS = HERE_ELSEWHERE + 4");
}

#[test]
fn what_the_kernel_missed_is_read_from_its_own_figure() {
    let text = "pos:\t0\nprog_type:\t17\nrecursion_misses:\t42\nverified_insns:\t9\n";
    assert_eq!(recursion(text), Some(42));
    assert_eq!(recursion("prog_type:\t17\n"), None);
}
